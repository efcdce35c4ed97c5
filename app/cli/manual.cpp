#include "app/cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace statescope {
namespace {

/// A command and the words that lead to it: "dataset niah"; the program itself has none.
struct Command {
  std::string words;
  const CLI::App* app;
};

/// Of the parser, and of the groups of its options, which it takes for commands without a name; not those that help hides.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> options = app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
  for (const CLI::App* group : app.get_subcommands([](const CLI::App* each) { return each->get_name().empty(); })) {
    const std::vector<const CLI::Option*> more = options_of(*group);
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

std::vector<Command> commands_in(const Command& command) {
  std::vector<Command> found;
  for (const CLI::App* each : command.app->get_subcommands([](const CLI::App* each) { return !each->get_name().empty(); }))
    found.push_back({command.words + (command.words.empty() ? "" : " ") + each->get_name(), each});
  return found;
}

/// The program and all commands, each before those in it.
std::vector<Command> all_commands(const CLI::App& app) {
  std::vector<Command> all{{"", &app}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<Command> inside = commands_in(all[i]);
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, inside.begin(), inside.end());
  }
  return all;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// "TEXT" of "TEXT:{light,dark}"
std::string kind_of_value(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

/// "light", "dark" of "TEXT:{light,dark}"; none where any value will do.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == type.npos || end == type.npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

/// "-o", "--output"; none of a place that has no name on the line.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// ---- the manual page ----

/// Text as it is meant, not as requests to man.
std::string plain(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) escaped += "\\&";
    if (c == '\\' || c == '-') escaped += '\\';
    escaped += c == '\\' ? 'e' : c;
  }
  return escaped;
}

std::string option_entry(const CLI::Option& option) {
  const std::vector<std::string> names = names_of(option);
  std::string head = names.empty() ? fmt::format("\\fI{}\\fR", plain(option.get_name(true))) : "";
  for (const std::string& name : names) head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", plain(name));
  if (!names.empty() && takes_value(option)) head += fmt::format(" \\fI{}\\fR", plain(kind_of_value(option)));
  const std::vector<std::string> values = values_of(option);
  std::string meaning = option.get_description();
  if (!values.empty() && meaning.find(values.front()) == meaning.npos) meaning += fmt::format(": {}", fmt::join(values, ", "));
  return fmt::format(".TP\n{}\n{}\n", head, plain(meaning));
}

std::string entries(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : options_of(app)) text += option_entry(*option);
  return text;
}

// ---- completions ----

/// Within single quotes of a shell.
std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// What may stand next on a command's line: names of its options, values of a place, the commands in it, each with what it does.
std::vector<std::pair<std::string, std::string>> next_words(const Command& command) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const CLI::Option* option : options_of(*command.app)) {
    const std::vector<std::string> names = names_of(*option);
    for (const std::string& word : names.empty() ? values_of(*option) : names) words.emplace_back(word, option->get_description());
  }
  for (const Command& inside : commands_in(command)) words.emplace_back(inside.app->get_name(), inside.app->get_description());
  return words;
}

/// Which command the words before lead to: sets `command`.
std::string search_for_command(const std::vector<Command>& commands, std::string_view words_before) {
  std::vector<std::string> known;
  for (const Command& command : commands)
    if (!command.words.empty()) known.push_back(in_quotes(command.words));
  return fmt::format(
      "  local command= word\n"
      "  for word in {}; do\n"
      "    case \"${{command:+$command }}$word\" in\n"
      "      {}) command=\"${{command:+$command }}$word\" ;;\n"
      "    esac\n"
      "  done\n",
      words_before, fmt::join(known, "|"));
}

/// Cases of `command` and the word before: behind an option that takes a value what `then` makes of its values, none where a file may
/// stand.
template <typename Then>
std::string cases_of_values(const std::vector<Command>& commands, const Then& then) {
  std::string cases;
  for (const Command& command : commands)
    for (const CLI::Option* option : options_of(*command.app))
      for (const std::string& name : names_of(*option))
        if (takes_value(*option)) cases += fmt::format("    {}) {} ;;\n", in_quotes(command.words + " " + name), then(values_of(*option)));
  return cases;
}

/// Cases of `command`: what `each` makes of every word that may stand next, and of what it does.
template <typename Each>
std::string cases_of_words(const std::vector<Command>& commands, const std::string& variable, const Each& each) {
  std::string cases;
  for (const Command& command : commands) {
    std::vector<std::string> words;
    for (const auto& [word, description] : next_words(command)) words.push_back(each(word, description));
    cases += fmt::format("    {}) {}=({}) ;;\n", in_quotes(command.words), variable, fmt::join(words, " "));
  }
  return cases;
}

std::string for_bash(const std::vector<Command>& commands) {
  const auto case_of = [](const std::vector<std::string>& values) {
    return fmt::format("words=({}) command=none", fmt::join(values, " "));
  };
  const auto name = [](const std::string& word, const std::string&) { return word; };
  return fmt::format(
      "# Completions of statescope for bash\n"
      "_statescope() {{\n{}"
      "  local -a words=()\n"
      "  case \"$command ${{COMP_WORDS[COMP_CWORD - 1]}}\" in\n{}  esac\n"
      "  case \"$command\" in\n{}  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"${{words[*]}}\" -- \"${{COMP_WORDS[COMP_CWORD]}}\")\n"
      "}}\n"
      "complete -o default -o bashdefault -F _statescope statescope\n",
      search_for_command(commands, "\"${COMP_WORDS[@]:1:COMP_CWORD - 1}\""), cases_of_values(commands, case_of),
      cases_of_words(commands, "words", name));
}

std::string for_zsh(const std::vector<Command>& commands) {
  const auto case_of = [](const std::vector<std::string>& values) {
    return values.empty() ? "_files; return" : fmt::format("compadd -- {}; return", fmt::join(values, " "));
  };
  const auto with_description = [](const std::string& word, const std::string& description) { return in_quotes(word + ":" + description); };
  return fmt::format(
      "#compdef statescope\n"
      "_statescope() {{\n{}"
      "  local -a found=()\n"
      "  case \"$command ${{words[CURRENT - 1]}}\" in\n{}  esac\n"
      "  case \"$command\" in\n{}  esac\n"
      "  _describe statescope found\n"
      "  _files\n"
      "}}\n"
      "_statescope \"$@\"\n",
      search_for_command(commands, "\"${(@)words[2,CURRENT - 1]}\""), cases_of_values(commands, case_of),
      cases_of_words(commands, "found", with_description));
}

std::string for_fish(const std::vector<Command>& commands) {
  const auto text = [](const std::string& words) {
    std::string quoted = "'";
    for (const char c : words) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return quoted + "'";
  };
  std::string script = "# Completions of statescope for fish\n";
  for (const Command& command : commands) {
    const std::string where = command.words.empty() ? "__fish_use_subcommand"
                                                    : "__fish_seen_subcommand_from " + command.words.substr(command.words.rfind(' ') + 1);
    const std::string begin = fmt::format("complete -c statescope -n '{}'", where);
    for (const CLI::Option* option : options_of(*command.app)) {
      std::string names;
      for (const std::string& name : option->get_snames()) names += " -s " + name;
      for (const std::string& name : option->get_lnames()) names += " -l " + name;
      const std::vector<std::string> values = values_of(*option);
      const std::string value = !takes_value(*option) ? "" : values.empty() ? " -r" : fmt::format(" -x -a '{}'", fmt::join(values, " "));
      if (!names.empty()) script += fmt::format("{}{}{} -d {}\n", begin, names, value, text(option->get_description()));
    }
    for (const Command& inside : commands_in(command))
      script += fmt::format("{} -a {} -d {}\n", begin, inside.app->get_name(), text(inside.app->get_description()));
  }
  return script;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH STATESCOPE 1 \"\" \"Statescope {}\" \"User commands\"\n"
      ".SH NAME\nstatescope \\- a microscope for the memory of linear\\-attention language models\n"
      ".SH SYNOPSIS\n.B statescope\n[\\fIoptions\\fR] [\\fIcheckpoint\\fR ...]\n.br\n.B statescope\n\\fIcommand\\fR [\\fIoptions\\fR]\n"
      ".SH DESCRIPTION\nWithout a command, a window opens with the checkpoints that are named, or with one that comes with the program.\n"
      ".SH OPTIONS\n{}.SH COMMANDS\n",
      STATESCOPE_VERSION, entries(app));
  for (const Command& command : all_commands(app)) {
    if (!command.words.empty())
      page += fmt::format(".SS {}\n{}\n{}.P\n{}\n", plain(command.words), plain(command.app->get_description()), entries(*command.app),
                          plain(command.app->get_footer()));
  }
  return page +
         ".SH EXIT STATUS\n.TP\n0\nit is done\n.TP\n1\nit failed, and a line says why\n.TP\n2\nthe command line is wrong\n"
         ".SH ENVIRONMENT\n.TP\n.B STATESCOPE_ASSETS\nthe folder of checkpoints, prompts and lessons that come with the program\n";
}

std::string completions(const CLI::App& app, const std::string& shell) {
  const std::vector<Command> commands = all_commands(app);
  return shell == "bash" ? for_bash(commands) : shell == "zsh" ? for_zsh(commands) : for_fish(commands);
}

}  // namespace statescope
