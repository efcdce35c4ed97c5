#include "app/common/chat_prompt.h"

#include <nlohmann/json.hpp>
#include <string>

#include "engine/chat/chat_template.h"
#include "engine/chat/request.h"
#include "engine/chat/values/json.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

constexpr std::size_t kMostOfConversation = 16'000'000;

}  // namespace

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

PromptInput chat_prompt(const std::string& conversation, const std::vector<std::string>& settings, const std::string& checkpoint) {
  const chat::TemplateFolder folder(checkpoint);
  chat::RequestDefaults defaults{.template_name = "", .now = chat::local_time(), .variables = {}, .add_generation_prompt = true};
  for (const std::string& setting : settings) chat::add_setting(defaults.variables, setting);
  return special_prompt(chat::prompt_of(conversation, folder, defaults), checkpoint, false);
}

PromptInput chat_prompt(const PromptArguments& arguments, const std::string& checkpoint) {
  if (checkpoint.empty()) throw Error("--chat and --chat-file need a checkpoint, whose chat template they go through");
  return chat_prompt(conversation_of(arguments), arguments.chat_settings, checkpoint);
}

PromptInput special_prompt(const std::string& text, const std::string& checkpoint, bool add_specials) {
  PromptInput input;
  input.ids = open_tokenizer(checkpoint)->encode(text, {.add_specials = add_specials, .recognise_specials = true}).ids;
  return input;
}

}  // namespace statescope
