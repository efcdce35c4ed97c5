#include "app/cli/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "app/cli/commands.h"
#include "app/cli/options.h"
#include "app/cli/words.h"
#include "app/common/interruption.h"
#include "app/common/running.h"
#include "app/panels/arrangement.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"
#include "engine/run/intervention.h"

namespace statescope {
namespace {

constexpr std::size_t kMessage = 8192;  // bytes

/// What is wrong with an intervention; empty: it is understood.
std::string wrong_intervention(const std::string& text) {
  try {
    parse_intervention(text);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void add_memory(CLI::App& command, std::int64_t& megabytes) {
  command
      .add_option("--memory", megabytes,
                  "MB that a recording takes of the device's memory, and of the host's beside it; older tokens go to a file (default: a "
                  "quarter of what is free)")
      ->check(CLI::Range(1, 100'000'000));
}

void add_run(CLI::App& app, RunArguments& run) {
  CLI::App& command = *app.add_subcommand("run", "read a prompt with a checkpoint and generate");
  command.add_option("checkpoint", run.checkpoint, "an .h5 file or a Hugging Face folder; none: that of the session");
  add_prompt(command, run.prompt, false);
  command.add_option("--generate", run.generate, "tokens to generate (default: as many as the prompt expects, else 32)")
      ->check(CLI::Range(0, 1'000'000));
  command.add_option("--temperature", run.sampling.temperature, "0: greedy")->check(CLI::Range(0.0, 1000.0));
  command.add_option("--top-p", run.sampling.top_p, "sample from the most probable tokens that hold this mass")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", run.sampling.seed, "of the sampling");
  add_compute(command, run.device);
  command.add_option("--chunk", run.chunk_size, "tokens per chunk of the memories")->check(CLI::Range(1, 1'000'000));
  auto* dump = command.add_option("--dump", run.dump, "write everything that was computed to this HDF5 file");
  auto* session =
      command.add_option("--session", run.session, "record in this new .scope file; without a checkpoint, go on with what it holds");
  session->excludes(dump);
  command.add_option("--branch", run.branch, "of the session: 0, or the n-th that --do made (default: the last one shown)")
      ->needs(session)
      ->check(at_least(0));
  command
      .add_option("--do", run.interventions, "leave the session's branch by an intervention, once for each (statescope intervene --help)")
      ->needs(session)
      ->allow_extra_args(false)
      ->check(CLI::Validator(wrong_intervention, ""));
  command.add_option("--other", run.others, "a prompt file, read as a further run of the session: its states can be imported")
      ->needs(session)
      ->allow_extra_args(false);
  command.add_option("--against", run.against, "compare the branch with this one: logits, states, answer")
      ->needs(session)
      ->check(at_least(0));
  add_memory(command, run.memory);
  command.get_option("--memory")->needs(session);
  command.add_option("--states", run.states, "tokens after which the dump keeps all states: 0,16,63")->delimiter(',')->check(at_least(0));
  add_json(command, run.json, "all of it");
  command.add_flag("--force", run.force, "replace existing files");
  command.callback([&run, &command] {
    if (run.checkpoint.empty() && run.session.empty()) throw CLI::RequiredError("checkpoint");
    if (!run.checkpoint.empty() && !run.prompt.given()) throw CLI::RequiredError("one of --text, --ids, --prompt, --chat");
    if (!run.checkpoint.empty()) return;
    for (const char* option : {"--text", "--ids", "--prompt", "--chat", "--chat-file", "--chat-set", "--temperature", "--top-p", "--seed",
                               "--device", "--precision", "--chunk"}) {
      if (command.count(option) > 0) throw CLI::ValidationError(option, "is the session's own where no checkpoint is given");
    }
  });
}

void add_convert(CLI::App& app, ConvertArguments& convert) {
  CLI::App& command = *app.add_subcommand("convert", "Hugging Face folder to .h5, or .h5 to a folder");
  command.add_option("from", convert.from, "an .h5 file or a Hugging Face folder")->required();
  command.add_option("to", convert.to, "OUT.h5, or a folder")->required();
  command.add_option("--dtype", convert.dtype, "round matrices to this type")->check(CLI::IsMember({"f32", "f16", "bf16"}));
  command.add_flag("--force", convert.force, "replace what exists");
}

void add_tokenize(CLI::App& app, TokenizeArguments& tokenize) {
  CLI::App& command = *app.add_subcommand("tokenize", "texts to token ids and back: lines of JSON from standard input");
  command.add_option("path", tokenize.path, "a checkpoint, or a folder or file of a tokenizer alone")->required();
  auto* text = command.add_option("--text", tokenize.text, "this text, instead of lines {\"text\": …}");
  command.add_flag("--ids", tokenize.ids, "the other way: lines {\"ids\": […]} to texts")->excludes(text);
  command.add_flag("--plain", tokenize.plain, "without the special tokens that are put around a text");
  command.add_flag("--special", tokenize.recognise_specials, "special tokens written in the text are those tokens");
  command.add_flag("--skip-specials", tokenize.skip_specials, "leave special tokens out of decoded text");
}

void add_bench_sse(CLI::App& bench, BenchSseArguments& sse) {
  CLI::App& command = *bench.add_subcommand("sse", "measure the three ways to compute SSE: sequential, masking, varlen");
  command.add_option("--length", sse.lengths, "tokens: 512,1024,2048 (default: 128 to 4096 with 4 partitions; on a GPU 1024 to 32768)")
      ->delimiter(',')
      ->check(CLI::Range(1, 10'000'000));
  command.add_option("--partitions", sse.partitions, "2,4,8,16 (default: 2 to 32 with 1024 tokens; on a GPU 8192)")
      ->delimiter(',')
      ->check(CLI::Range(1, 100'000));
  add_json(command, sse.json, "the times, which figures read,");
  command.add_flag("--force", sse.force, "overwrite the file");
  add_compute(command, sse.device);
}

void add_bench(CLI::App& app, BenchArguments& bench, BenchSseArguments& sse) {
  CLI::App& command = *app.add_subcommand("bench", "measure loading, reading and decoding");
  command.add_option("checkpoints", bench.checkpoints, "checkpoints to measure (default: operations and random models)");
  command.add_option("--only", bench.only, "measure what has this in its name");
  add_compute(command, bench.device);
  add_bench_sse(command, sse);
}

/// Which examples: lists make a grid; the options `files` bring theirs.
void add_lists(CLI::App& command, EvalLists& lists, std::initializer_list<CLI::Option*> files) {
  TaskOptions& task = lists.base.task;
  const auto alone = [&](CLI::Option* option) {
    for (CLI::Option* file : files) option->excludes(file);
    return option;
  };
  const auto list = [&](const char* name, auto& values, const char* help) {
    return alone(command.add_option(name, values, help)->delimiter(',')->allow_extra_args(false));
  };
  list("--length", lists.lengths,
       "words, or bytes of prose, or tokens of real text: 256,512,1024 (default: 512; copy 511; text 1024, of each window)")
      ->check(CLI::Range(1, 100'000'000));
  list("--needles", lists.needles, "niah: keys that needles name: 4,8,16 (default: 1; 0: as many as fit)")->check(at_least(0));
  list("--pairs", lists.pairs, "mqar: pairs of key and value (default: 8)")->check(at_least(1));
  auto* depth = list("--depth", lists.depths, "niah: where the asked needles stand, in percent of the text: 0,25,50,75,100")
                    ->check(CLI::Range(0, 100));
  alone(command.add_option_function<int>(
            "--depths", [&lists](int count) { lists.depths = even_depths(count); }, "niah: so many depths, evenly"))
      ->check(CLI::Range(1, 101))
      ->excludes(depth);
  command.add_option("--values", task.values, "niah: needles for each key, each with a value of its own")->check(at_least(1));
  command.add_option("--queries", task.queries, "niah: keys that are asked")->check(at_least(1));
  command.add_option("--haystack", task.haystack, "niah: filler, prose or a text file; text: a text file (default: the prose)");
  command.add_option("--value", task.value, "niah: what needles say")->check(CLI::IsMember({"code", "number", "uuid"}));
  command.add_option("--filler", task.filler, "mqar: between the questions")->check(CLI::IsMember({"noise", "zero"}));
  command.add_option("--samples", lists.base.samples, "examples of each cell (default: 500; all of a prompt file)")
      ->check(CLI::Range(1, 10'000'000));
  command.add_option("--seed", task.seed, "of the examples");
}

void add_eval(CLI::App& app, EvalArguments& eval) {
  CLI::App& command = *app.add_subcommand("eval", "score checkpoints on a task");
  command.add_option("checkpoints", eval.checkpoints, "an .h5 file or a Hugging Face folder each")->required();
  auto* what = command.add_option_group("what", "what they do");
  what->add_option("--task", eval.lists.base.task.name, "niah (needles), mqar (associative recall), copy, text (bits per byte)")
      ->check(CLI::IsMember({"niah", "mqar", "copy", "text"}));
  auto* grid =
      what->add_option("--grid", eval.grid, "a JSON file that lists the cells: [{\"task\": \"niah\", \"length\": 512, \"needles\": 4}, …]");
  auto* suite = what->add_option("--suite", eval.suite, "the cells that shipped checkpoints are scored on: niah, mqar, prose");
  auto* prompts = what->add_option("--prompt", eval.prompts,
                                   "prompt files that say what a right reply contains (ours, RULER's, lm-eval's), or - for standard input")
                      ->allow_extra_args(false);
  what->require_option(1);
  add_lists(command, eval.lists, {grid, suite, prompts});
  command
      .add_option("--reply", eval.lists.base.reply,
                  "tokens that a reply may have, where the answer is looked for in it (default: as many as the answer, and 32)")
      ->check(CLI::Range(1, 10'000));
  command
      .add_option("--score", eval.lists.base.score,
                  "which answers of a prompt file a right reply contains: all (the share of them counts), any (one is enough) or mixed: as "
                  "each prompt says (default: any where its \"task\", or else the file or its folder, has qa in its name, as RULER's)")
      ->check(CLI::IsMember({"all", "any", "mixed"}))
      ->needs(prompts);
  command.add_flag("--special", eval.lists.base.special, "names of special tokens in prompt files are those tokens")->needs(prompts);
  add_compute(command, eval.device);
  add_json(command, eval.json, "the scores");
  command.add_option("--csv", eval.csv, "write the scores to this file");
  command.add_flag("--force", eval.force, "replace existing files");
  command.callback([&eval, &command] {
    if (!eval.prompts.empty()) eval.lists.base.task.name = "file";
    if (!eval.prompts.empty() && command.count("--samples") == 0) eval.lists.base.samples = 10'000'000;  // all
    if (const std::string wrong = eval.grid.empty() && eval.suite.empty() ? wrong_lists(eval.lists) : ""; !wrong.empty())
      throw CLI::ValidationError(wrong);
  });
}

void add_inspect(CLI::App& app, InspectArguments& inspect) {
  CLI::App& command = *app.add_subcommand("inspect", "does the memory of checkpoints do its work, and if not, what ails it?");
  command
      .add_option("checkpoints", inspect.checkpoints,
                  "an .h5 file or a Hugging Face folder each, or a folder of them, as trainers write (checkpoint-5000/ …)")
      ->required();
  auto* group = command.add_option_group("prompt", "what the models read (default: examples of the task that they were trained on)");
  group->add_option("--text", inspect.prompt.text, "a text");
  group->add_option("--ids", inspect.prompt.ids, "a file of token ids, or - for standard input");
  group->add_option("--prompt", inspect.prompts, "prompt files, or - for standard input: text, JSON, or JSONL of examples, all of them")
      ->allow_extra_args(false);
  add_chat_prompt(*group, inspect.prompt);
  group->require_option(0, 1);
  add_chat_settings(command, inspect.prompt);
  command
      .add_option("--length", inspect.lengths,
                  "of examples of its own task, where no prompt is given, 64 to 1000000 words or bytes: 256,1024,2048")
      ->delimiter(',')
      ->check(CLI::Range(64, 1'000'000));
  command.add_option("--samples", inspect.samples, "examples of each length (default: 3)")->check(CLI::Range(1, 1000));
  add_compute(command, inspect.device);
  add_json(command, inspect.json, "all figures and verdicts");
  command.add_option("--out,--html", inspect.html, "write them as a page to this file");
  command.add_option("--csv", inspect.csv, "write all figures to this file in long format, a number a line");
  command.add_flag("--check", inspect.check, "end with status 3 where something is ill; where nothing can be said, with 0");
  auto* watch = command.add_flag("--watch", inspect.watch, "look for new checkpoints, and write the reports anew, until Ctrl+C");
  command.add_option("--every", inspect.every, "seconds between two looks (default: 10)")->check(CLI::Range(0.1, 86400.0))->needs(watch);
  command
      .add_option("--when-ill", inspect.when_ill,
                  "a command for the shell, run when a new checkpoint is ill; it has STATESCOPE_CHECKPOINT and STATESCOPE_VERDICT")
      ->needs(watch);
  command.add_flag("--force", inspect.force, "replace an existing file");
}

void add_needle(CLI::App& app, NeedleArguments& needle) {
  CLI::App& command = *app.add_subcommand("needle", "what became of a prompt's needle in every memory: kept, decayed, erased, read");
  command.add_option("checkpoint", needle.checkpoint, "an .h5 file or a Hugging Face folder")->required();
  command.add_option("--prompt", needle.prompt.file, "a JSON prompt file whose \"spans\" name the needle")->required();
  command.add_option("--heads", needle.heads, "shown of each layer, those that wrote most (default: 4)")->check(CLI::Range(1, 100'000));
  command.add_option("--events", needle.events, "shown of each head, those that took most (default: 3)")->check(CLI::Range(0, 1000));
  add_compute(command, needle.device);
  add_json(command, needle.json, "all of it");
  command.add_option("--out,--html", needle.html, "write it as a page to this file");
  command.add_flag("--force", needle.force, "replace an existing file");
}

/// What a run is that is asked about.
void add_asked(CLI::App& command, AskArguments& ask) {
  command.add_option("checkpoint", ask.checkpoint, "an .h5 file or a Hugging Face folder");
  add_prompt(command, ask.prompt, false);
  command.add_option("--generate", ask.generate, "tokens behind the prompt (default: 0)")->check(CLI::Range(0, 1'000'000));
  command.add_option("--do", ask.interventions, "an intervention first, once for each (statescope intervene --help)")
      ->allow_extra_args(false)
      ->check(CLI::Validator(wrong_intervention, ""));
  command.add_option("--token", ask.token, "below 0: counted from the prompt's end (default: -1, its last)")->check(whole_number());
  add_compute(command, ask.device);
  add_json(command, ask.json, "all of it");
  command.add_flag("--force", ask.force, "replace an existing file");
}

void need_run(const AskArguments& ask) {
  if (ask.checkpoint.empty()) throw CLI::RequiredError("checkpoint");
  if (!ask.prompt.given()) throw CLI::RequiredError("one of --text, --ids, --prompt, --chat");
}

void add_observe(CLI::App& app, ObserveArguments& observe) {
  CLI::App& command = *app.add_subcommand("observe", "every quantity of a layer at a token, with how exact it is");
  add_asked(command, observe);
  command.add_option("--layer", observe.layer, "default: all")->check(at_least(0));
  command.add_option("--until", observe.until, "the last of several tokens, at most 512; counted as --token")->check(whole_number());
  command.add_option("--since", observe.since, "the token that decay_since counts from, as --token (default: 0)")->check(whole_number());
  command.add_option("--only", observe.names, "names, of those that --list tells: routing_entropy,load")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--list", observe.list, "only tell which quantities there are, with unit, equation and source");
  command.callback([&observe] {
    if (!observe.list) need_run(observe);
  });
}

void add_history(CLI::App& app, HistoryArguments& history) {
  CLI::App& command = *app.add_subcommand("history", "who wrote a partition, a row or a cell of a state: tokens that add up to it");
  add_asked(command, history);
  command.add_option("--layer", history.layer, "default: 0")->check(at_least(0));
  command.add_option("--slot", history.slot, "partition, 0: the shared one (default)")->check(at_least(0));
  command.add_option("--head", history.head, "default: 0")->check(at_least(0));
  auto* row = command.add_option("--row", history.row, "default: all of them, the whole partition")->check(at_least(0));
  command.add_option("--column", history.column, "of the row: one cell")->check(at_least(0))->needs(row);
  command.add_flag("--read", history.read, "of what the token reads of the partition, instead of the state")->excludes(row);
  command.add_option("--most", history.most, "tokens shown (default: 12)")->check(CLI::Range(1, 1'000'000));
  command.callback([&history] { need_run(history); });
}

void add_intervene(CLI::App& app, InterveneArguments& intervene) {
  CLI::App& command = *app.add_subcommand("intervene", "change a memory, a rule or a token at a token, and see what becomes of the rest");
  command.add_option("checkpoint", intervene.checkpoint, "an .h5 file or a Hugging Face folder")->required();
  add_prompt(command, intervene.prompt, true);
  command.add_option("--do", intervene.interventions, "an intervention, once for each (see below)")
      ->required()
      ->allow_extra_args(false)
      ->check(CLI::Validator(wrong_intervention, ""));
  command.add_option("--other", intervene.others, "a prompt file, read as run 1, 2, …: its states can be imported")
      ->allow_extra_args(false);
  command.add_option("--generate", intervene.generate, "tokens to generate (default: as many as the prompt expects, else 32)")
      ->check(CLI::Range(0, 1'000'000));
  add_compute(command, intervene.device);
  add_memory(command, intervene.memory);
  add_json(command, intervene.json, "all of it");
  command.add_flag("--force", intervene.force, "replace an existing file");
  command.footer("Interventions: states change once token T has been read, rules hold from T on; without a layer, for all that can.\n\n" +
                 std::string(intervention_forms()));
}

/// The command line without where its outputs go, as it is written into the figure.
std::string command_text(int argc, char** argv) {
  constexpr std::array<std::string_view, 5> outputs{"-o", "--output", "--data", "--caption", "--preview"};
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

/// `defaults` name the task and say what holds where no option does.
CLI::App& add_task(CLI::App& command, DatasetArguments& dataset, const TaskOptions& defaults, const std::string& what) {
  CLI::App& task = *command.add_subcommand(defaults.name, what);
  task.preparse_callback([&dataset, defaults](std::size_t) { dataset.task = defaults; });
  task.add_option("-o,--output", dataset.output, "the .jsonl file to write; -: standard output")->required();
  task.add_option("--samples", dataset.samples, "examples (default: 500)")->check(CLI::Range(1, 100'000'000));
  task.add_option("--length", dataset.task.length, "words, or bytes of prose (default: " + std::to_string(defaults.length) + ")");
  task.add_option("--seed", dataset.task.seed, "of the examples");
  task.add_option_function<std::string>(
          "--split", [&](const std::string& split) { dataset.task.split = split == "training" ? Split::training : Split::evaluation; },
          "evaluation (default) or training: they share no draw and no prose")
      ->check(CLI::IsMember({"evaluation", "training"}));
  task.add_flag("--force", dataset.force, "replace an existing file");
  return task;
}

void add_needles(CLI::App& command, DatasetArguments& dataset) {
  CLI::App& task = add_task(command, dataset, {.name = "niah"}, "needles in a haystack");
  CLI::Option& ruler = *task.add_option("--ruler", dataset.ruler, "as RULER's task of this name")->check(CLI::IsMember(ruler_tasks()));
  const auto own = [&](CLI::Option* option) { option->excludes(&ruler); };
  own(task.add_option("--needles", dataset.task.needles, "keys that needles name (default: 1; 0: as many as fit)"));
  own(task.add_option("--values", dataset.task.values, "needles for each key, each with a value of its own"));
  own(task.add_option("--queries", dataset.task.queries, "keys that are asked"));
  own(task.add_option("--haystack", dataset.task.haystack, "filler (default), prose or a text file"));
  own(task.add_option("--value", dataset.task.value, "what needles say: code (default), number, uuid"));
  auto* tokenizer =
      task.add_option("--tokenizer", dataset.tokenizer,
                      "needles in real text for the model with this tokenizer (a checkpoint, a folder or a file): lengths are its tokens");
  task.add_flag("--chat", dataset.chat, "said by a user, as the chat template beside the tokenizer has it: the prompts of eval --task niah")
      ->needs(tokenizer);
  task.add_option("--depth", dataset.task.depth_percent, "where the asked needles stand, in percent of the text (default: anywhere)");
}

void add_dataset(CLI::App& app, DatasetArguments& dataset) {
  CLI::App& command = *app.add_subcommand("dataset", "write examples of a task");
  command.require_subcommand(1);
  add_needles(command, dataset);
  CLI::App& recall = add_task(command, dataset, {.name = "mqar"}, "multi-query associative recall");
  recall.add_option("--pairs", dataset.task.pairs, "pairs of key and value (default: 8)");
  recall.add_option("--filler", dataset.task.filler, "between the questions: noise (default), zero");
  add_task(command, dataset, {.name = "copy", .length = 511}, "copying: n words, a mark, the same words");
}

void add_window(CLI::App& app, WindowArguments& window) {
  auto* open = app.add_option("--open", window.checkpoint, "checkpoint to open (default: the one shipped)");
  const auto side_by_side = [&window](const std::vector<std::string>& checkpoints) {
    window.checkpoint = checkpoints.front();
    window.beside.assign(checkpoints.begin() + 1, checkpoints.end());
  };
  app.add_option_function<std::vector<std::string>>("checkpoints", side_by_side, "checkpoints to open side by side, at most four")
      ->expected(1, 4)
      ->check(CLI::ExistingPath)
      ->excludes(open);
  add_prompt(app, window.prompt, false);
  app.get_option_group("prompt")
      ->add_option("--example", window.prompt.example,
                   "an example, of that length, of what the checkpoint was trained on, as inspect reads it")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--number", window.prompt.number, "of the example, or of one of several in a prompt file (default: 0)")
      ->check(at_least(0));
  add_device(app, window.device);
  add_memory(app, window.memory);
  app.add_option("--theme", window.theme, "light, dark, high-contrast, system")
      ->check(CLI::IsMember({"light", "dark", "high-contrast", "system"}));
  app.add_option("--scale", window.scale, "of type and spacing, 1 to 3")->check(CLI::Range(1.0F, 3.0F));
  app.add_flag("--no-opengl", window.software, "draw without OpenGL");
  app.add_flag("--no-autoplay", window.no_autoplay, "do not start playing");
  const auto is_png = [](std::string& name) { return name.ends_with(".png") ? "" : name + " does not end in .png"; };
  app.add_option("--screenshot", window.screenshot, "write a PNG of the window at --token, --layer, --head, --slot and end")
      ->check(CLI::Validator(is_png, ""));
  app.add_option("--watch", window.watch, "a training's folder: each of its checkpoints is inspected as it comes")
      ->check(CLI::ExistingDirectory);
  app.add_option("--lesson", window.lesson, "begin a lesson: a file, or the name of one in assets/lessons");
  app.add_option("--step", window.step, "of the lesson, for the screenshot")->check(CLI::Range(1, 200));
  app.add_flag("--revealed", window.revealed, "the step's question answered, for the screenshot");
  app.add_option("--token", window.token, "where to stand at first, and in the screenshot")->check(at_least(0));
  app.add_option("--layer", window.layer, "likewise")->check(at_least(0));
  app.add_option("--head", window.head, "likewise")->check(at_least(0));
  app.add_option("--slot", window.slot, "likewise: the partition, 0: the shared one")->check(at_least(0));
  const auto is_view = [](std::string& name) { return wrong_view(name); };
  app.add_option("--view", window.views, "to show, once for each, at most six, with its way of looking behind it: routing, decay/Half-life")
      ->allow_extra_args(false)
      ->expected(1, static_cast<int>(most_views))
      ->check(CLI::Validator(is_view, ""))
      ->excludes("--lesson");
  app.add_option("--size", window.size, "of the screenshot, WIDTHxHEIGHT");
}

void add_chat(CLI::App& app, ChatArguments& chat) {
  CLI::App& command = *app.add_subcommand("chat", "conversations, as JSON lines on standard input, into a model's prompts");
  command.add_option("path", chat.path, "a checkpoint's folder, a folder of chat templates, or a template file")->required();
  command.add_option("--template", chat.template_name, "its name, where there are several (default: tool_use with tools, else default)");
  command.add_option("--set", chat.settings, "NAME=VALUE for the template: enable_thinking=false")->allow_extra_args(false);
  command.add_option("--now", chat.now, "the time that the template sees: 2026-03-04T05:06:07 (default: the clock's)");
  command.footer(
      "A line: {\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"tools\": […], \"documents\": […], "
      "\"add_generation_prompt\": true, \"kwargs\": {…}, \"now\": \"…\", \"template\": \"…\", \"template_name\": \"…\"}; "
      "for each, {\"text\": …} or {\"error\": …}.");
}

/// As from a variable of the shell that is not set: not "none".
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool may_be_empty = option->get_name() == "--text" || option->get_name() == "--chat";
    if (!may_be_empty && std::ranges::count(option->results(), "") > 0) throw CLI::ValidationError(option->get_name(), "is empty");
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_values(*command);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("Statescope: a microscope for the memory of linear-attention language models.\nWithout a command, the window.",
               "statescope");
  app.set_version_flag("--version", "statescope " STATESCOPE_VERSION);
  app.require_subcommand(0, 1);
  RunArguments run;
  ConvertArguments convert;
  TokenizeArguments tokenize;
  BenchArguments bench;
  BenchSseArguments sse;
  EvalArguments eval;
  DatasetArguments dataset;
  InspectArguments inspect;
  NeedleArguments needle;
  ObserveArguments observe;
  HistoryArguments history;
  InterveneArguments intervene;
  FigureArguments figure;
  FilmArguments film;
  BatchArguments batch;
  ChatArguments chat;
  WindowArguments window;
  add_run(app, run);
  add_convert(app, convert);
  add_tokenize(app, tokenize);
  add_bench(app, bench, sse);
  add_eval(app, eval);
  add_dataset(app, dataset);
  add_inspect(app, inspect);
  add_needle(app, needle);
  add_observe(app, observe);
  add_history(app, history);
  add_intervene(app, intervene);
  add_figure(app, figure);
  add_film(app, film);
  add_batch(app, batch);
  add_chat(app, chat);
  add_window(app, window);
  const std::initializer_list<DeviceChoice*> devices{
      &run.device,     &bench.device,     &sse.device,    &eval.device,        &inspect.device, &needle.device, &observe.device,
      &history.device, &intervene.device, &figure.device, &film.figure.device, &batch.device,   &window.device};
  try {
    std::vector<std::string> words = parsable_words(app, {argv + std::min(argc, 1), argv + argc});
    std::ranges::reverse(words);  // as the parser takes them
    app.parse(std::move(words));
    refuse_empty_values(app);
    if (!app.get_subcommands().empty() && window.device.name != "cpu") throw CLI::ValidationError("--device", "stands after the command");
  } catch (const CLI::ParseError& error) {
    std::ostringstream wrong;
    const int status = app.exit(error, std::cout, wrong);
    std::cerr << printable(wrong.str());
    return status == 0 ? 0 : 2;
  }
  const auto command = [&] {
    if (app.got_subcommand("run")) return run_command(run);
    if (app.got_subcommand("convert")) return convert_command(convert);
    if (app.got_subcommand("chat")) return chat_command(chat);
    if (app.got_subcommand("tokenize")) return tokenize_command(tokenize);
    if (app.got_subcommand("bench"))
      return app.get_subcommand("bench")->got_subcommand("sse") ? bench_sse_command(sse) : bench_command(bench);
    if (app.got_subcommand("eval")) return eval_command(eval);
    if (app.got_subcommand("dataset")) return dataset_command(dataset);
    if (app.got_subcommand("inspect")) return inspect_command(inspect);
    if (app.got_subcommand("needle")) return needle_command(needle);
    if (app.got_subcommand("observe")) return observe_command(observe);
    if (app.got_subcommand("history")) return history_command(history);
    if (app.got_subcommand("intervene")) return intervene_command(intervene);
    if (app.got_subcommand("figure")) {
      figure.command = command_text(argc, argv);
      return figure_command(figure);
    }
    if (app.got_subcommand("film")) return film_command(film);
    if (app.got_subcommand("batch")) return batch_command(batch);
    return window_command(argc, argv, window);
  };
  // A session goes on where it stopped, what bench tells is of the device, and the window reads on by itself.
  const bool once = !run.session.empty() || app.got_subcommand("bench") || app.get_subcommands().empty();
  const auto chosen = std::ranges::find(devices, "auto", &DeviceChoice::name);
  try {
    const int status = once || chosen == devices.end() ? command() : run_with_fallback(**chosen, command);
    if (status == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout.flush()))
      throw Error("standard output: cannot be written");
    return status;
  } catch (const OptionsError& error) {
    std::cerr << "statescope: " << one_line(error.what(), kMessage) << '\n';
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
    std::cerr << "statescope: " << one_line(error.what(), kMessage) << '\n';
  }
  return Interruption::status();
}

}  // namespace statescope
