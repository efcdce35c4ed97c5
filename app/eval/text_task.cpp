#include "app/eval/text_task.h"

#include <nlohmann/json.hpp>

#include "datasets/prose.h"
#include "datasets/text_needles.h"
#include "engine/chat/chat_template.h"
#include "engine/chat/request.h"

namespace statescope {
namespace {

constexpr const char* kDay = "2026-01-01";  // of templates that tell the date: a score does not depend on when it is made

/// As a line of `statescope chat`.
std::string one_turn(const std::string& said) {
  const nlohmann::json turn{{"role", "user"}, {"content", said}};
  const nlohmann::json line{{"messages", nlohmann::json::array({turn})}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

bool reads_real_text(const Tokenizer& tokenizer) {
  const std::string& kind = tokenizer.info().kind;
  return !kind.empty() && kind != "words" && kind != "bytes";
}

ChatForm chat_form(const std::filesystem::path& checkpoint) {
  const auto folder = std::make_shared<const chat::TemplateFolder>(checkpoint);
  if (!folder->has_templates()) return {};
  return [folder](const std::string& said) {
    chat::RequestDefaults defaults{.template_name = "", .now = chat::parse_time(kDay), .variables = {}, .add_generation_prompt = true};
    chat::add_setting(defaults.variables, "enable_thinking=false");
    return chat::prompt_of(one_turn(said), *folder, defaults);
  };
}

EncodeOptions encoding_of(const ChatForm& chat) { return {.add_specials = !chat, .recognise_specials = static_cast<bool>(chat)}; }

std::unique_ptr<const Task> make_text_task(const TaskOptions& options, std::shared_ptr<const Tokenizer> tokenizer,
                                           const std::filesystem::path& assets, const ChatForm& chat) {
  const std::filesystem::path haystack = options.haystack == "prose" ? assets / "texts" : std::filesystem::path(options.haystack);
  const std::string text = options.haystack == "filler" ? "" : prose(haystack, options.split);
  const auto count = [tokenizer, encoding = encoding_of(chat)](std::string_view part) {
    return std::ssize(tokenizer->encode(part, encoding).ids);
  };
  return make_text_needles(options, read_text_templates(assets / "tasks/text-needles.json"), text, {.count = count, .in_chat = chat});
}

}  // namespace statescope
