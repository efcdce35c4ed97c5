#include "app/cli/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <system_error>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/cli/engine.h"
#include "app/cli/manual.h"
#include "app/cli/setup/setup.h"
#include "app/cli/usage.h"
#include "app/cli/words.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/common/path_words.h"
#include "app/common/process.h"
#include "app/common/running.h"
#include "app/ranks/place.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::size_t kMessage = 8192;  // bytes

/// The command line without where its outputs go and which engine read, as it is written into the figure.
std::string command_text(int argc, char** argv) {
  constexpr std::array<std::string_view, 8> outputs{
      "-o", "--output", "--data", "--caption", "--preview", "--engine", "--engine-token-file", "--engine-ca"};
  std::string text = "statescope";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto option =
        std::ranges::find_if(outputs, [&](std::string_view name) { return word == name || word.starts_with(std::string(name) + "="); });
    const bool attached = word.starts_with("-o") && word.size() > 2;
    if (word == "--force" || attached || (option != outputs.end() && word != *option)) continue;
    if (option != outputs.end()) {
      ++i;
      continue;
    }
    const bool plain = word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+%@") == word.npos;
    text += plain && !word.empty() ? fmt::format(" {}", word) : fmt::format(" '{}'", word);
  }
  return text;
}

/// As from a variable of the shell that is not set: not "none".
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool may_be_empty = option->get_name() == "--text" || option->get_name() == "--chat";
    if (!may_be_empty && std::ranges::count(option->results(), "") > 0) throw CLI::ValidationError(option->get_name(), "is empty");
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_values(*command);
}

/// NaN is in no range and outside of none.
void refuse_numbers_that_are_none(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_type_name().find("FLOAT") == std::string::npos) continue;
    for (const std::string& text : option->results()) {
      if (!std::isfinite(std::strtod(text.c_str(), nullptr))) throw CLI::ValidationError(option->get_name(), text + " is not a number");
    }
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_numbers_that_are_none(*command);
}

void refuse_engine(const std::string& command) {
  if (const std::string why = why_no_engine(command); !why.empty()) throw CLI::ValidationError("--engine", why);
}

/// What the words after the name of each command say.
struct Arguments {
  RunArguments run;
  ConvertArguments convert;
  TokenizeArguments tokenize;
  BenchArguments bench;
  BenchSseArguments sse;
  EvalArguments eval;
  DatasetArguments dataset;
  InspectArguments inspect;
  NeedleArguments needle;
  CheckArguments check;
  ModelArguments model;
  ObserveArguments observe;
  HistoryArguments history;
  InterveneArguments intervene;
  FigureArguments figure;
  FilmArguments film;
  PageArguments page;
  BatchArguments batch;
  ChatArguments chat;
  ServeArguments serve;
  WindowArguments window;
  std::string shell;
};

/// Several processes that are started together say once what is wrong.
bool may_speak() {
  const std::optional<RankPlace> place = rank_place();
  return !place || place->is_first();
}

void add_commands(CLI::App& app, Arguments& all) {
  add_run(app, all.run);
  add_convert(app, all.convert);
  add_tokenize(app, all.tokenize);
  add_bench(app, all.bench, all.sse);
  add_eval(app, all.eval);
  add_dataset(app, all.dataset);
  add_inspect(app, all.inspect);
  add_needle(app, all.needle);
  add_check(app, all.check);
  add_model(app, all.model);
  add_observe(app, all.observe);
  add_history(app, all.history);
  add_intervene(app, all.intervene);
  add_figure(app, all.figure);
  add_film(app, all.film);
  add_page(app, all.page, all.window.engine);
  add_batch(app, all.batch);
  add_chat(app, all.chat);
  add_serve(app, all.serve);
  add_manual(app, all.shell);
  add_window(app, all.window);
  for (const std::string_view name : commands_of_engine()) name_engine(*app.get_subcommand(std::string(name)), all.window.engine);
}

std::vector<DeviceChoice*> devices_of(Arguments& all) {
  return {&all.run.device,       &all.bench.device,  &all.sse.device,         &all.eval.device,
          &all.inspect.device,   &all.needle.device, &all.observe.device,     &all.history.device,
          &all.intervene.device, &all.figure.device, &all.film.figure.device, &all.page.figure.device,
          &all.batch.device,     &all.window.device, &all.model.device,       &all.serve.device};
}

/// The window, `convert` and `tokenize` are given a path: of a checkpoint that is not there, that of a shipped one of that name. The other
/// commands look for it themselves, and call it as it was called.
void find_shipped(Arguments& all) {
  if (!all.window.engine.place.empty()) return;  // an engine on another machine knows its own
  for (std::string* one : {&all.window.checkpoint, &all.convert.from, &all.tokenize.path})
    if (!one->empty()) *one = checkpoint_at(*one).string();
  for (std::string& one : all.window.beside) one = checkpoint_at(one).string();
}

/// What names a checkpoint to the other commands.
std::vector<std::string> checkpoints_in(const Arguments& all) {
  std::vector<std::string> named{all.run.checkpoint,     all.model.checkpoint,   all.needle.checkpoint,   all.check.checkpoint,
                                 all.observe.checkpoint, all.history.checkpoint, all.intervene.checkpoint};
  for (const std::vector<std::string>* several : {&all.eval.checkpoints, &all.inspect.checkpoints})
    named.insert(named.end(), several->begin(), several->end());
  return named;
}

/// As the standard library says it, and oneTBB.
bool is_lack_of_threads(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return (system && system->code() == std::errc::resource_unavailable_try_again) ||
         std::string_view(error.what()).starts_with("pthread_create has failed");
}

/// What a shipped checkpoint is called in it is what it was called on the command line; what fmt says of standard output is said as
/// everything else here says it.
std::string message_of(const std::exception& error, const Arguments& all) {
  constexpr std::string_view fmt_says = "cannot write to file";
  std::string said = error.what();
  if (said.starts_with(fmt_says)) said.replace(0, fmt_says.size(), "standard output: cannot be written");
  for (const std::string& name : checkpoints_in(all)) said = with_path_called(said, checkpoint_at(name), name);
  return said;
}

/// What the parser says of wrong use: the words of the command line that it quotes in one line, and where help is in the next.
std::string wrong_use(const std::string& said) {
  const std::size_t hint = std::min(said.rfind("\nRun with "), said.find_last_not_of('\n') + 1);
  return said.empty() ? "" : one_line(std::string_view(said).substr(0, hint), kMessage) + said.substr(hint);
}

/// The command that was asked for, or the window. Returns its exit status.
int run_chosen(const CLI::App& app, Arguments& all, int argc, char** argv) {
  for (EngineArguments* engine :
       {&all.run.engine, &all.figure.engine, &all.film.figure.engine, &all.page.figure.engine, &all.batch.engine, &all.observe.engine,
        &all.history.engine, &all.needle.engine, &all.intervene.engine, &all.model.engine, &all.inspect.engine, &all.eval.engine})
    *engine = all.window.engine;
  find_shipped(all);
  if (app.got_subcommand("run")) return run_command(all.run);
  if (app.got_subcommand("model")) return model_command(all.model);
  if (app.got_subcommand("convert")) return convert_command(all.convert);
  if (app.got_subcommand("chat")) return chat_command(all.chat);
  if (app.got_subcommand("manual")) return std::cout << manual_page(app), 0;
  if (app.got_subcommand("completion")) return std::cout << completions(app, all.shell), 0;
  if (app.got_subcommand("tokenize")) return tokenize_command(all.tokenize);
  if (app.got_subcommand("bench"))
    return app.get_subcommand("bench")->got_subcommand("sse") ? bench_sse_command(all.sse)
           : all.bench.placement                              ? bench_placement_command(all.bench)
                                                              : bench_command(all.bench);
  if (app.got_subcommand("eval")) return eval_command(all.eval);
  if (app.got_subcommand("dataset")) return dataset_command(all.dataset);
  if (app.got_subcommand("inspect")) return inspect_command(all.inspect);
  if (app.got_subcommand("needle")) return needle_command(all.needle);
  if (app.got_subcommand("check")) return check_command(all.check);
  if (app.got_subcommand("observe")) return observe_command(all.observe);
  if (app.got_subcommand("history")) return history_command(all.history);
  if (app.got_subcommand("intervene")) return intervene_command(all.intervene);
  if (app.got_subcommand("figure")) {
    all.figure.command = command_text(argc, argv);
    return figure_command(all.figure);
  }
  if (app.got_subcommand("film")) return film_command(all.film);
  if (app.got_subcommand("page")) return page_command(all.page);
  if (app.got_subcommand("batch")) return batch_command(all.batch);
  if (app.got_subcommand("serve")) return serve_command(all.serve);
  return window_command(argc, argv, all.window);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("Statescope: a microscope for the memory of linear-attention language models.\nWithout a command, the window.",
               "statescope");
  app.set_version_flag("--version", "statescope " STATESCOPE_VERSION);
  app.formatter(std::make_shared<UsageFormatter>());
  app.require_subcommand(0, 1);
  Arguments all;
  add_commands(app, all);
  try {
    std::vector<std::string> words = parsable_words(app, {argv + std::min(argc, 1), argv + argc});
    std::ranges::reverse(words);  // as the parser takes them
    app.parse(std::move(words));
    refuse_empty_values(app);
    refuse_numbers_that_are_none(app);
    if (!app.get_subcommands().empty() && all.window.device.name != "cpu")
      throw CLI::ValidationError("--device", "belongs after the command");
    if (!app.get_subcommands().empty() && !all.window.engine.place.empty()) refuse_engine(app.get_subcommands().front()->get_name());
  } catch (const CLI::ParseError& error) {
    std::ostringstream wrong;
    std::ostringstream help;
    const int status = app.exit(error, help, wrong);
    if (may_speak()) {
      std::cout << help.str();
      std::cerr << wrong_use(wrong.str());
    }
    return status == 0 ? 0 : 2;
  }
  const auto command = [&] { return run_chosen(app, all, argc, argv); };
  // A session goes on where it stopped, what bench tells is of the device, and the window reads on by itself.
  const bool once = !all.run.session.empty() || app.got_subcommand("bench") || app.got_subcommand("serve") || app.get_subcommands().empty();
  const std::vector<DeviceChoice*> devices = devices_of(all);
  const auto chosen = std::ranges::find(devices, "auto", &DeviceChoice::name);
  try {
    const int status = once || chosen == devices.end() ? command() : run_with_fallback(**chosen, command);
    if (status == 0) finish_standard_output();
    return status;
  } catch (const OptionsError& error) {
    if (may_speak()) std::cerr << "statescope: " << one_line(message_of(error, all), kMessage) << '\n';
    return 2;
  } catch (const std::bad_alloc&) {
    std::cerr << "statescope: out of memory";
    for (const DeviceChoice* device : devices) {
      if (device->name != "cpu") std::cerr << " with --device " << device->name;
    }
    std::cerr << '\n';
  } catch (const std::filesystem::filesystem_error& error) {
    std::cerr << "statescope: " << one_line(error.path1().string() + ": " + error.code().message(), kMessage) << '\n';
  } catch (const std::exception& error) {
    if (is_lack_of_threads(error)) end_for_lack_of_threads();
    if (!Interruption::was_reader()) std::cerr << "statescope: " << one_line(message_of(error, all), kMessage) << '\n';
  }
  return Interruption::status();
}

}  // namespace statescope
