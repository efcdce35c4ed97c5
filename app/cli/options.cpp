#include "app/cli/options.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/error.h"
#include "engine/run/intervention.h"

namespace statescope {

Precision precision_called(const std::string& text) {
  if (text == "float32") return Precision::float32;
  if (text == "bfloat16") return Precision::bfloat16;
  throw Error(text + " is neither float32 nor bfloat16");
}

CLI::Validator at_least(std::int64_t least) {
  const auto wrong = [least](std::string& text) {
    std::int64_t number = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return error == std::errc() && end == last && number >= least ? ""
                                                                  : fmt::format("{} is not a whole number of at least {}", text, least);
  };
  return {wrong, ""};
}

CLI::Validator is_intervention() {
  const auto wrong = [](const std::string& text) -> std::string {
    try {
      parse_intervention(text);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  return {wrong, ""};
}

CLI::Validator whole_number() {
  const auto wrong = [](std::string& text) {
    std::int64_t number = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return error == std::errc() && end == last ? "" : fmt::format("{} is not a whole number, or it is too large", text);
  };
  return {wrong, ""};
}

void add_chat_prompt(CLI::App& group, PromptArguments& prompt) {
  group.add_option("--chat", prompt.chat, "what the user says to an instruct model: the prompt that its chat template makes of it");
  group.add_option("--chat-file", prompt.chat_file, "a conversation: a JSON list of messages, or an object as `statescope chat` reads it");
}

void add_chat_settings(CLI::App& command, PromptArguments& prompt) {
  command.add_option("--chat-set", prompt.chat_settings, "NAME=VALUE for the chat template: enable_thinking=false")
      ->allow_extra_args(false);
}

void add_prompt(CLI::App& command, PromptArguments& prompt, bool required) {
  auto* group = command.add_option_group("prompt", "what the model reads");
  group->add_option("--text", prompt.text, "a text");
  group->add_option("--ids", prompt.ids, "a file of token ids, or - for standard input");
  group->add_option(
      "--prompt", prompt.file,
      "a prompt file, or - for standard input: text, JSON with \"prompt\", \"expected\", \"spans\", or JSONL of examples (ours, "
      "RULER's, lm-eval's)");
  add_chat_prompt(*group, prompt);
  group->require_option(required ? 1 : 0, 1);
  add_chat_settings(command, prompt);
  command.add_flag("--special", prompt.special, "with --text: names of special tokens in it (<|im_end|>) are those tokens, not letters");
}

void add_json(CLI::App& command, std::string& json, const std::string& what) {
  command.add_option("--json", json, "write " + what + " as JSON to FILE; without one, or with -, to standard output")
      ->option_text("[FILE]");
}

void add_device(CLI::App& command, DeviceChoice& device) {
  command
      .add_option("--device", device.name,
                  "cpu, cuda, cuda:1, …; several, in the order of the layers: cuda:0,cuda:1,cpu; auto: a CUDA device if there is one; "
                  "check:cpu,cuda: each operation on both, until they differ by more than 1e-4 of a value's largest number (bfloat16: "
                  "2e-2; another tolerance: check:cpu,cuda,1e-3) (default: cpu)")
      ->check(CLI::Validator(wrong_device_name, ""));
  add_parsed(
      command, "--precision", [&device](const std::string& text) { device.precision = precision_called(text); },
      "precision of the operands of products: float32 (default), bfloat16, which is faster");
}

void add_memory(CLI::App& command, std::int64_t& megabytes) {
  command
      .add_option("--memory", megabytes,
                  "MB that a recording takes of the device's memory, and of the host's beside it; older tokens go to a file (default: a "
                  "quarter of what is free)")
      ->check(CLI::Range(1, 100'000'000));
}

void add_compute(CLI::App& command, DeviceChoice& device) {
  add_device(command, device);
  command.add_option("--threads", device.threads, "threads of the CPU; 0: one per core")->check(CLI::Range(0, 1024));
}

}  // namespace statescope
