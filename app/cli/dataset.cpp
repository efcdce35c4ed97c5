#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <map>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/eval/text_task.h"
#include "datasets/records.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

struct RulerTask {
  std::string haystack, value;
  std::int64_t needles, values, queries;
};

const std::map<std::string, RulerTask>& ruler_table() {
  static const std::map<std::string, RulerTask> table{
      {"single_1", {"filler", "code", 1, 1, 1}},    {"single_2", {"prose", "number", 1, 1, 1}},
      {"single_3", {"prose", "uuid", 1, 1, 1}},     {"multikey_1", {"prose", "number", 4, 1, 1}},
      {"multikey_2", {"prose", "number", 0, 1, 1}}, {"multikey_3", {"prose", "uuid", 0, 1, 1}},
      {"multivalue", {"prose", "number", 1, 4, 1}}, {"multiquery", {"prose", "number", 4, 1, 4}}};
  return table;
}

TaskOptions with_ruler(TaskOptions task, const std::string& name) {
  if (name.empty()) return task;
  const RulerTask& ruler = ruler_table().at(name);
  task.haystack = ruler.haystack;
  task.value = ruler.value;
  task.needles = ruler.needles;
  task.values = ruler.values;
  task.queries = ruler.queries;
  return task;
}

void write_lines(const DatasetArguments& arguments, const TaskOptions& options, const Task& task,
                 const std::function<void(const std::string&)>& write) {
  ProgressBar bar(fmt::format("writing {}", arguments.output));
  for (std::int64_t i = 0; i < arguments.samples; ++i) {
    write(record_line(task.example(i), options, arguments.chat) + "\n");
    bar.show(static_cast<double>(i + 1) / static_cast<double>(arguments.samples));
  }
}

void write_stdout(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) fail_standard_output();
}

void write_file(const DatasetArguments& arguments, const TaskOptions& options, const Task& task) {
  Draft draft(arguments.output, arguments.force);
  OutputFile file(draft);
  write_lines(arguments, options, task, [&](const std::string& line) { file.write(line); });
  file.finish();
  draft.publish();
}

std::unique_ptr<const Task> task_of(const DatasetArguments& arguments, const TaskOptions& options) {
  if (arguments.tokenizer.empty()) return make_task(options, assets_folder());
  std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(arguments.tokenizer);
  if (!tokenizer->info().refusal.empty()) throw Error(tokenizer->info().refusal);
  if (!reads_real_text(*tokenizer))
    throw Error(arguments.tokenizer + ": is a tokenizer of words or bytes; without --tokenizer there are examples for it");
  const ChatForm chat = arguments.chat ? chat_form(arguments.tokenizer) : ChatForm();
  if (arguments.chat && !chat) throw Error(arguments.tokenizer + ": has no chat template; without --chat the examples are plain text");
  return make_text_task(options, std::move(tokenizer), assets_folder(), chat);
}

}  // namespace

const std::vector<std::string>& ruler_tasks() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> keys;
    for (const auto& [name, task] : ruler_table()) keys.push_back(name);
    return keys;
  }();
  return names;
}

int dataset_command(const DatasetArguments& arguments) {
  const TaskOptions options = with_ruler(arguments.task, arguments.ruler);
  const auto task = task_of(arguments, options);
  if (arguments.output == "-") {
    write_lines(arguments, options, *task, write_stdout);
    finish_standard_output();
    return 0;
  }
  write_file(arguments, options, *task);
  fmt::print("{}: {} of {} {} each, {} {}, seed {}\n", printable(arguments.output),
             arguments.samples == 1 ? "1 example" : fmt::format("{} examples", arguments.samples), options.length, task->unit(),
             options.split == Split::training ? "training" : "evaluation", options.name, options.seed);
  return 0;
}

}  // namespace statescope
