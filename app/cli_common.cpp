#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "app/cli_commands.h"
#include "app/eval/own_task.h"
#include "datasets/prompt.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

SpanKind kind_of(PromptPart part) {
  return part == PromptPart::needle ? SpanKind::needle : part == PromptPart::question ? SpanKind::question : SpanKind::answer;
}

}  // namespace

PromptInput load_prompt(const PromptArguments& arguments, const std::string& fallback, const std::string& checkpoint) {
  if (arguments.number > 0 && arguments.example == 0 && arguments.file.empty())
    throw OptionsError("--number is for --example and --prompt");
  if (arguments.is_chat()) return chat_prompt(arguments, checkpoint);
  if (!arguments.chat_settings.empty()) throw OptionsError("--chat-set is for --chat and --chat-file");
  if (arguments.example > 0) return own_example(*open_checkpoint(checkpoint), checkpoint, arguments.example, arguments.number);
  PromptInput input;
  if (arguments.special && !arguments.text) throw OptionsError("--special is for --text");
  if (arguments.special) {
    input.ids = open_tokenizer(checkpoint)->encode(*arguments.text, {.recognise_specials = true}).ids;
  } else if (arguments.text) {
    input.text = *arguments.text;
  } else if (!arguments.ids.empty()) {
    input.ids = read_ids(arguments.ids);
  } else if (const std::string file = arguments.file.empty() ? fallback : arguments.file; !file.empty()) {
    Prompt prompt = read_prompt(file, static_cast<std::size_t>(arguments.number));
    input.text = std::move(prompt.text);
    input.ids = std::move(prompt.ids);
    input.expected = std::move(prompt.expected);
    input.in_chat = prompt.in_chat;
    if (input.text.empty() && input.ids.empty()) throw Error(file + ": the prompt is empty");
    for (const PromptSpan& span : prompt.spans) input.spans.push_back({kind_of(span.part), span.begin, span.end});
  } else {
    throw Error("no prompt: give one of --text, --ids, --prompt, --chat");
  }
  return input;
}

namespace {

constexpr std::size_t kMessage = 2000;  // bytes

}  // namespace

void print_note(const std::string& note) { fmt::print(stderr, "note: {}\n", one_line(note, kMessage)); }

void print_failure(const std::string& why) { fmt::print(stderr, "statescope: {}\n", one_line(why, kMessage)); }

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_note(note);
}

std::shared_ptr<Model> load_model(std::shared_ptr<const Checkpoint> checkpoint, const DeviceChoice& device) {
  std::shared_ptr<Model> model = Model::load(std::move(checkpoint), open_device(device));
  print_notes(model->notes());
  return model;
}

int run_with_fallback(DeviceChoice& device, const std::function<int()>& command) {
  const auto on_cpu = [&](const std::string& why) {
    print_note(why + "; the CPU does it from the beginning");
    device.name = "cpu";
    return command();
  };
  if (device.name != "auto") return command();
  try {
    return command();
  } catch (const DeviceError& error) {
    return on_cpu(error.what());
  } catch (const std::bad_alloc&) {
    if (!open_cuda_device(device)) throw;  // the host's
  }
  return on_cpu("cuda: out of memory");
}

PromptInput first_prompt(const PromptArguments& arguments, const std::string& checkpoint) {
  if (arguments.given() || checkpoint.empty())
    return load_prompt(arguments, default_run().prompt.string(), checkpoint.empty() ? default_run().checkpoint.string() : checkpoint);
  try {
    const auto opened = open_checkpoint(checkpoint);
    if (const auto training = training_of(*opened); training && training->task != "niah") return own_prompt(*opened, checkpoint);
  } catch (const Error&) {
    // Who opens it says what is wrong with it.
  }
  return load_prompt(arguments, default_run().prompt.string());
}

RunOptions recording_budgets(std::int64_t megabytes) {
  const std::size_t bytes = static_cast<std::size_t>(megabytes) * 1'000'000;
  return {.memory_budget = bytes, .host_memory_budget = bytes};
}

std::string recording_text(const RecordingInfo& recording) {
  const auto megabytes = [](std::int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6); };
  const bool has_device = recording.host_budget > 0;
  std::string text =
      fmt::format("recording: a keyframe every {} tokens; {} of {} MB of {}", recording.keyframe_interval, megabytes(recording.memory),
                  megabytes(recording.memory_budget), has_device ? "the device's memory" : "memory");
  if (has_device) text += fmt::format(", {} of {} MB of the host's", megabytes(recording.host), megabytes(recording.host_budget));
  return text + (recording.file > 0 ? fmt::format(", {} MB in a file", megabytes(recording.file)) : "");
}

nlohmann::json recording_json(const RecordingInfo& recording) {
  return {{"keyframe_interval", recording.keyframe_interval},
          {"memory", recording.memory},
          {"memory_budget", recording.memory_budget},
          {"host", recording.host},
          {"host_budget", recording.host_budget},
          {"file", recording.file}};
}

bool answers(const std::string& text, const std::string& expected) {
  const auto begins_word = [](unsigned char c) { return c >= 0x80 || std::isalnum(c) != 0; };
  const std::string_view reply = std::string_view(text).substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return reply.starts_with(expected) &&
         (reply.size() == expected.size() || !begins_word(static_cast<unsigned char>(reply[expected.size()])));
}

ReportFile::ReportFile(const std::string& path, bool force) {
  if (path.empty()) return;
  is_standard_output_ = path == "-";
  if (is_standard_output_) return;
  if (std::error_code error; std::filesystem::is_directory(path, error))
    throw Error(path + ": is a folder; a file does not take its place");
  draft_.emplace(path, force);
  const std::filesystem::path folder = draft_->path().parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) fail_errno(path, "cannot be written", errno);
}

void ReportFile::write(const std::string& text) {
  if (is_standard_output_) fmt::print("{}", text);
  if (!draft_) return;
  OutputFile file(draft_->path());
  file.write(text);
  file.finish();
  draft_->publish();
}

void print_report(const std::string& text, std::initializer_list<const ReportFile*> files) {
  if (std::ranges::none_of(files, &ReportFile::is_standard_output)) fmt::print("{}", printable(text));
}

ProgressBar::ProgressBar(std::string what) : what_(printable(what)), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (shown_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(double fraction, const std::string& note) {
  const int percent = static_cast<int>(fraction * 100);
  if (!terminal_ || percent == shown_) return;
  shown_ = percent;
  const int filled = percent * 40 / 100;
  std::fputs(fmt::format("\r{} [{}{}] {:3}%{}{}\033[K", what_, std::string(static_cast<std::size_t>(filled), '#'),
                         std::string(static_cast<std::size_t>(40 - filled), ' '), percent, note.empty() ? "" : "  ", printable(note))
                 .c_str(),
             stderr);
  std::fflush(stderr);
}

}  // namespace statescope
