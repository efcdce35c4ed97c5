#include "app/common/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "app/assets.h"
#include "app/common/chat_prompt.h"
#include "app/common/own_task.h"
#include "datasets/prompt.h"
#include "engine/checkpoint/checkpoint.h"
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
  if (arguments.special) return special_prompt(*arguments.text, checkpoint);
  if (arguments.text) {
    input.text = *arguments.text;
  } else if (!arguments.ids.empty()) {
    input.ids = read_ids(arguments.ids);
    input.spans = arguments.spans;
    for (const TextSpan& span : input.spans) {
      if (span.end > input.ids.size())
        throw OptionsError(fmt::format("tokens {}:{} are asked for; {} has {}", span.begin, span.end, arguments.ids, input.ids.size()));
    }
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

bool answers(const std::string& text, const std::string& expected) {
  const auto begins_word = [](unsigned char c) { return c >= 0x80 || std::isalnum(c) != 0; };
  const std::string_view reply = std::string_view(text).substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return reply.starts_with(expected) &&
         (reply.size() == expected.size() || !begins_word(static_cast<unsigned char>(reply[expected.size()])));
}

}  // namespace statescope
