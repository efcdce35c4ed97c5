#include "app/remote/about_checkpoints.h"

#include "app/common/chat_prompt.h"
#include "app/common/checkpoint_facts.h"
#include "app/common/own_task.h"
#include "engine/error.h"
#include "engine/remote/wire.h"

namespace statescope {
namespace {

constexpr std::int64_t kLongestExample = 1'000'000;

PromptInput prompt_of(const remote::MakePrompt& asked, const std::filesystem::path& path) {
  if (asked.example < 0 || asked.example > kLongestExample || asked.number < 0) throw Error("there is no such example");
  if (asked.example > 0) return own_example(*open_checkpoint(path), asked.checkpoint, asked.example, asked.number);
  if (!asked.conversation.empty()) return chat_prompt(asked.conversation, asked.settings, path.string());
  return special_prompt(asked.text, path.string());
}

}  // namespace

AboutCheckpoints about_checkpoints(const std::string& device) {
  AboutCheckpoints about;
  about.describe = [device](const remote::Describe& asked, const std::filesystem::path& path, const std::function<bool()>& goes_on) {
    const CheckpointFacts facts = facts_of(path, asked.checkpoint, asked.digest, goes_on);
    return remote::Described{.device = device,
                             .config = facts.config,
                             .digest = facts.sha256,
                             .prompt = facts.prompt ? remote::pack(*facts.prompt) : "",
                             .why_no_prompt = facts.why_no_prompt,
                             .weight = remote::pack(facts.not_finite)};
  };
  about.make_prompt = [](const remote::MakePrompt& asked, const std::filesystem::path& path) {
    return remote::PromptMade{remote::pack(prompt_of(asked, path))};
  };
  return about;
}

}  // namespace statescope
