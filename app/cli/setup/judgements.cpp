// Options of the commands that judge a model: on tasks, by its memory, by its speed.
#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>

#include "app/cli/setup/setup.h"

namespace statescope {
namespace {

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
  command.callback([&bench] {
    for (const CLI::Option* option : bench.get_options()) {
      if (option->count() > 0) throw CLI::ValidationError(option->get_name(), "is not for bench sse, whose options stand behind it");
    }
  });
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
  command.add_option("--samples", lists.base.samples, "examples in each cell (default: 500; all of a prompt file)")
      ->check(CLI::Range(1, 10'000'000));
  command.add_option("--seed", task.seed, "seed of the examples");
}

/// What was read does not tell where the needle is.
[[noreturn]] void refuse_without_spans(const std::string& what) {
  throw CLI::ValidationError(what,
                             "which tokens are the needle has to be said: give --prompt FILE, JSON with \"prompt\" and \"spans\" "
                             "(datasets/README.md), or --ids FILE with --needle BEGIN:END");
}

/// "5:9", the tokens 5 to 8. Throws Error.
TextSpan span_called(SpanKind kind, const std::string& text) {
  TextSpan span{kind, 0, 0};
  const char *const last = text.data() + text.size(), *const colon = std::find(text.data(), last, ':');
  const auto [begun, wrong_begin] = std::from_chars(text.data(), colon, span.begin);
  if (colon == last || begun != colon || wrong_begin != std::errc()) throw Error(text + " is not BEGIN:END");
  const auto [ended, wrong_end] = std::from_chars(colon + 1, last, span.end);
  if (ended != last || wrong_end != std::errc()) throw Error(text + " is not BEGIN:END");
  if (span.begin >= span.end) throw Error(text + " has no token: END is the first behind it");
  return span;
}

/// What the needle is in token ids, which have no marks of their own.
void add_spans(CLI::App& command, PromptArguments& prompt, CLI::Option* ids) {
  const auto span = [&](const char* name, SpanKind kind, const char* help) {
    const auto add = [&prompt, kind](const std::string& text) { prompt.spans.push_back(span_called(kind, text)); };
    return add_parsed(command, name, add, help)->needs(ids)->option_text("BEGIN:END");
  };
  ids->needs(span("--needle", SpanKind::needle, "the tokens of --ids that are the needle: 5:9 are 5 to 8"));
  span("--question", SpanKind::question, "likewise those that ask for it");
  span("--answer", SpanKind::answer, "likewise those that answer: it is asked for before them (default: after the last token)");
}

}  // namespace

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
  command.add_flag("--special", eval.lists.base.special, "read names of special tokens in prompt files as those tokens")->needs(prompts);
  add_compute(command, eval.device);
  command
      .add_option("--memory", eval.memory,
                  "MB that states and caches of the texts read at a time take; where they need more, fewer are read side by side (default: "
                  "as many as they take)")
      ->check(CLI::Range(1, 100'000'000));
  add_json(command, eval.json, "the scores");
  command.add_option("--csv", eval.csv, "write the scores to this file");
  command.add_option("--hdf5", eval.hdf5, "write them to this HDF5 file, a group of columns for each checkpoint and task");
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
  command.add_flag("--all", inspect.whole, "print every figure of every length, not only the verdict and what tells most");
  command.add_flag("--check", inspect.check, "end with status 3 where something is ill; where nothing can be said, with 0");
  auto* watch = command.add_flag("--watch", inspect.watch, "look for new checkpoints and rewrite the reports until Ctrl+C");
  command.add_option("--every", inspect.every, "seconds between two looks (default: 10)")->check(CLI::Range(0.1, 86400.0))->needs(watch);
  command
      .add_option("--when-ill", inspect.when_ill,
                  "a command for the shell, run when a new checkpoint is ill; it has STATESCOPE_CHECKPOINT and STATESCOPE_VERDICT")
      ->needs(watch);
  command.add_flag("--force", inspect.force, "replace an existing file");
}

void add_check(CLI::App& app, CheckArguments& check) {
  CLI::App& command =
      *app.add_subcommand("check",
                          "do two devices compute the same, and if not, which value is the first that differs? Each reads by itself, as it "
                          "runs alone; --device check:cpu,cuda of other commands compares one operation after the other");
  command.add_option("checkpoint", check.checkpoint, "an .h5 file or a Hugging Face folder")->required();
  add_prompt(command, check.prompt, false);
  command.add_option("--devices", check.devices, "two: cpu, cuda, cuda:1, … (default: cpu,cuda)")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Validator(wrong_device_name, ""));
  add_parsed(
      command, "--precision", [&check](const std::string& text) { check.device.precision = precision_called(text); },
      "precision of the operands of products: float32 (default), bfloat16");
  add_parsed(
      command, "--other-precision", [&check](const std::string& text) { check.other_precision = precision_called(text); },
      "precision of the second device, where it differs");
  command.add_option("--threads", check.device.threads, "threads of the CPU; 0: one per core")->check(CLI::Range(0, 1024));
  command
      .add_option("--tolerance", check.tolerance,
                  "how far apart numbers may be, relative to the largest number of their value (default: 1e-4)")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--steps", check.steps, "tokens at the end that are read one by one, as text is generated (default: 16)")
      ->check(CLI::Range(0, 100'000));
}

void add_needle(CLI::App& app, NeedleArguments& needle) {
  CLI::App& command = *app.add_subcommand(
      "needle", "what became of a prompt's needle in every memory: how much is left and clear, who took the rest, who reads it");
  command.add_option("checkpoint", needle.checkpoint, "an .h5 file or a Hugging Face folder")->required();
  CLI::Option* file =
      command.add_option("--prompt", needle.prompt.file, "a JSON prompt file whose \"spans\" name the needle (datasets/README.md)");
  CLI::Option* ids = command.add_option("--ids", needle.prompt.ids, "a file of token ids, or - for standard input")->excludes(file);
  add_spans(command, needle.prompt, ids);
  command
      .add_option_function<std::string>(
          "--text", [](const std::string&) { refuse_without_spans("--text"); }, "")
      ->group("");  // hidden
  command.add_option("--heads", needle.heads, "heads to show of each layer, those that wrote most (default: 4)")
      ->check(CLI::Range(1, 100'000));
  command.add_option("--events", needle.events, "tokens to show of each head, those that took most (default: 3)")
      ->check(CLI::Range(0, 1000));
  add_compute(command, needle.device);
  add_json(command, needle.json, "all of it");
  command.add_option("--out,--html", needle.html, "write it as a page to this file");
  command.add_flag("--force", needle.force, "replace an existing file");
  command.callback([&needle] {
    if (!needle.prompt.given()) refuse_without_spans("needle");
  });
}

void add_bench(CLI::App& app, BenchArguments& bench, BenchSseArguments& sse) {
  CLI::App& command = *app.add_subcommand("bench", "measure loading, reading and decoding");
  command.add_option("checkpoints", bench.checkpoints, "checkpoints to measure (default: operations and random models)");
  auto* only = command.add_option("--only", bench.only, "measure what has this in its name");
  auto* placement =
      command
          .add_flag("--placement", bench.placement,
                    "on paper: where the layers of configs (a config.json or a folder each; default: of four released models) would "
                    "lie on several GPUs, and how fast they would decode there; on a GPU, also measured")
          ->excludes(only);
  command.add_option("--gpus", bench.gpus, "how many: 2,4 (default: 1,2,4,8)")->delimiter(',')->check(CLI::Range(1, 64))->needs(placement);
  command.add_option("--gpu-memory", bench.memory, "GB of each: 24,80,141 (default)")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 4096.0))
      ->needs(placement);
  command.add_option("--gpu-bandwidth", bench.bandwidth, "GB/s of their memory (default: that of a GPU with such a memory)")
      ->check(CLI::Range(1.0, 1e6))
      ->needs(placement);
  command.add_option("--link", bench.link, "GB/s from one to the next (default: likewise)")->check(CLI::Range(0.1, 1e6))->needs(placement);
  command.add_option("--host-memory", bench.host_memory, "GB of the host, whose CPU takes the layers that have no room (default: none)")
      ->check(CLI::Range(1.0, 1e6))
      ->needs(placement);
  command.add_option("--host-bandwidth", bench.host_bandwidth, "GB/s of it (default: 200)")->check(CLI::Range(1.0, 1e6))->needs(placement);
  command.add_option("--context", bench.context, "tokens before the one that is decoded (default: 8192)")
      ->check(CLI::Range(0, 100'000'000))
      ->needs(placement);
  add_compute(command, bench.device);
  add_bench_sse(command, sse);
}

}  // namespace statescope
