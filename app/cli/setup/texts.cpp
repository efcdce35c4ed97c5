// Options of the commands on files and texts: checkpoints, token ids, conversations, examples of a task.
#include <string>

#include "app/cli/setup/setup.h"

namespace statescope {
namespace {

/// `defaults` name the task and say what holds where no option does.
CLI::App& add_task(CLI::App& command, DatasetArguments& dataset, const TaskOptions& defaults, const std::string& what) {
  CLI::App& task = *command.add_subcommand(defaults.name, what);
  task.preparse_callback([&dataset, defaults](std::size_t) { dataset.task = defaults; });
  task.add_option("-o,--output", dataset.output, "the .jsonl file to write; -: standard output")->required();
  task.add_option("--samples", dataset.samples, "examples (default: 500)")->check(CLI::Range(1, 100'000'000));
  task.add_option("--length", dataset.task.length, "words, or bytes of prose (default: " + std::to_string(defaults.length) + ")");
  task.add_option("--seed", dataset.task.seed, "seed of the examples");
  task.add_option_function<std::string>(
          "--split", [&](const std::string& split) { dataset.task.split = split == "training" ? Split::training : Split::evaluation; },
          "evaluation (default) or training: they share no draw and no prose")
      ->check(CLI::IsMember({"evaluation", "training"}));
  task.add_flag("--force", dataset.force, "replace an existing file");
  return task;
}

void add_needles(CLI::App& command, DatasetArguments& dataset) {
  CLI::App& task = add_task(command, dataset, {.name = "niah"}, "needles in a haystack");
  CLI::Option& ruler =
      *task.add_option("--ruler", dataset.ruler, "settings of RULER's task of this name")->check(CLI::IsMember(ruler_tasks()));
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

}  // namespace

void add_model(CLI::App& app, ModelArguments& model) {
  CLI::App& command = *app.add_subcommand("model", "what a model is made of, and what its layers compute");
  command.add_option("checkpoint", model.checkpoint, "an .h5 file or a Hugging Face folder")->required();
  command.add_flag("--program", model.program, "the programs of the layers' mixers: each operation, in the terms of its paper");
  command.add_option("--layer", model.layer, "the program of this layer alone (default: of each kind of layer, once)")->check(at_least(0));
  command.add_flag("--after-passes", model.after_passes, "the program as it runs, with operations joined that a device does at once");
  command.add_flag("--one-token", model.one_token, "the program as it runs for a single token");
  add_device(command, model.device);
  command.callback([&model] {  // what only programs have asks for them
    model.after_passes = model.after_passes || model.one_token;
    model.program = model.program || model.layer || model.after_passes;
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
  command.add_option("path", tokenize.path, "a checkpoint, or only a tokenizer's folder or file")->required();
  auto* text = command.add_option("--text", tokenize.text, "this text, instead of lines {\"text\": …}");
  command.add_flag("--ids", tokenize.ids, "the other way: lines {\"ids\": […]} to texts")->excludes(text);
  command.add_flag("--plain", tokenize.plain, "without the special tokens that are put around a text");
  command.add_flag("--special", tokenize.recognise_specials, "special tokens written in the text are those tokens");
  command.add_flag("--skip-specials", tokenize.skip_specials, "leave special tokens out of decoded text");
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

void add_dataset(CLI::App& app, DatasetArguments& dataset) {
  CLI::App& command = *app.add_subcommand("dataset", "write examples of a task");
  command.require_subcommand(1);
  add_needles(command, dataset);
  CLI::App& recall = add_task(command, dataset, {.name = "mqar"}, "multi-query associative recall");
  recall.add_option("--pairs", dataset.task.pairs, "pairs of key and value (default: 8)");
  recall.add_option("--filler", dataset.task.filler, "between the questions: noise (default), zero");
  add_task(command, dataset, {.name = "copy", .length = 511}, "copying: n words, a mark, the same words");
}

void add_manual(CLI::App& app, std::string& shell) {
  app.add_subcommand("manual", "these pages for man: statescope manual | man -l -");
  CLI::App& command =
      *app.add_subcommand("completion", "what makes a shell complete commands and options: source <(statescope completion bash)");
  command.add_option("shell", shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

}  // namespace statescope
