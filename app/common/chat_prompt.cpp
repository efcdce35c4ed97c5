#include <nlohmann/json.hpp>
#include <string>

#include "app/common/prompts.h"
#include "engine/chat/chat_template.h"
#include "engine/chat/request.h"
#include "engine/chat/values/json.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

constexpr std::size_t kMostOfConversation = 16'000'000;

/// What is said, as a line of `statescope chat`.
std::string conversation_of(const PromptArguments& arguments) {
  if (arguments.chat) {
    const nlohmann::json turn{{"role", "user"}, {"content", *arguments.chat}};
    return nlohmann::json::object({{"messages", nlohmann::json::array({turn})}}).dump();
  }
  std::string text = read_file(arguments.chat_file, kMostOfConversation);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (!chat::parse_json(text, arguments.chat_file).is_list()) return text;
  return "{\"messages\": " + text + "}";
}

}  // namespace

PromptInput chat_prompt(const PromptArguments& arguments, const std::string& checkpoint) {
  if (checkpoint.empty()) throw Error("--chat and --chat-file need a checkpoint, whose chat template they go through");
  const chat::TemplateFolder folder(checkpoint);
  chat::RequestDefaults defaults{.template_name = "", .now = chat::local_time(), .variables = {}, .add_generation_prompt = true};
  for (const std::string& setting : arguments.chat_settings) chat::add_setting(defaults.variables, setting);
  const std::string text = chat::prompt_of(conversation_of(arguments), folder, defaults);
  PromptInput input;
  input.ids = open_tokenizer(checkpoint)->encode(text, {.add_specials = false, .recognise_specials = true}).ids;
  return input;
}

}  // namespace statescope
