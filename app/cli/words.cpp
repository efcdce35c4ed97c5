#include "app/cli/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "app/assets.h"
#include "app/inspect/checkpoints.h"
#include "engine/tokenizer/nearest.h"

namespace statescope {
namespace {

constexpr std::size_t kShown = 3;  // commands and models that look like a wrong one

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  return names;
}

[[noreturn]] void refuse_command(const std::string& word, const std::vector<std::string>& commands) {
  std::vector<std::string> known = commands;
  for (const std::filesystem::path& model : shipped_checkpoints()) known.push_back(model.stem().string());
  const std::vector<std::string> near = nearest(word, known, kShown);
  const std::string there_are =
      near.empty() ? fmt::format("there are {}", fmt::join(commands, ", ")) : fmt::format("did you mean {}?", fmt::join(near, " or "));
  throw CLI::ParseError(fmt::format("there is no command {}; {}", word, there_are), 2);
}

/// Neither an option, nor a path that is there or is written as one, nor a shipped model.
bool is_command_word(const std::string& word) {
  std::error_code ignored;
  return !word.empty() && word.front() != '-' && word.find_first_of("/.") == word.npos && !std::filesystem::exists(word, ignored) &&
         shipped_checkpoint(word).empty();
}

/// `words` from `at` on: commands within commands, until one has none.
void check_commands(const CLI::App& app, const std::vector<std::string>& words, std::size_t at) {
  const std::vector<std::string> commands = commands_of(app);
  if (commands.empty() || at == words.size()) return;
  const auto known = std::ranges::find(commands, words[at]);
  if (known != commands.end()) return check_commands(*app.get_subcommand(words[at]), words, at + 1);
  const bool may_be_path = app.get_name() != "statescope" && app.get_require_subcommand_min() == 0;  // as the checkpoint of bench
  if (is_command_word(words[at]) && !may_be_path) refuse_command(words[at], commands);
}

/// Whether a report may be meant to go there: it is no option, and no checkpoint, which --json may stand in front of.
bool may_be_report(const std::string& word) {
  std::error_code ignored;
  const bool is_option = word.size() > 1 && word.front() == '-';
  const bool holds_checkpoints = std::filesystem::is_directory(word, ignored) && !find_checkpoints({word}).checkpoints.empty();
  return !is_option && !word.ends_with(".h5") && !holds_checkpoints;
}

/// Where no file follows --json, "-" does.
std::vector<std::string> with_json_places(std::vector<std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--json" && (i + 1 == words.size() || !may_be_report(words[i + 1])))
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, "-");
  }
  return words;
}

/// The options that name an engine may stand behind the command too.
std::vector<std::string> with_engine_first(std::vector<std::string> words) {
  std::vector<std::string> engine, others;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string option = words[i].substr(0, words[i].find('='));
    const bool is_engine = option == "--engine" || option == "--engine-token-file" || option == "--engine-ca";
    (is_engine ? engine : others).push_back(words[i]);
    if (!is_engine || option != words[i]) continue;
    if (i + 1 == words.size() || words[i + 1].starts_with('-')) throw CLI::ArgumentMismatch(option + ": 1 required TEXT missing");
    engine.push_back(words[++i]);
  }
  engine.insert(engine.end(), others.begin(), others.end());
  return engine;
}

}  // namespace

std::vector<std::string> parsable_words(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words[0] == "version" && words.size() == 1) return {"--version"};
  words = with_engine_first(std::move(words));
  const bool wants_help = words[0] == "help";
  if (wants_help) words.erase(words.begin());
  check_commands(app, words, 0);
  if (wants_help) words.push_back("--help");
  return with_json_places(std::move(words));
}

}  // namespace statescope
