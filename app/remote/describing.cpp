#include "app/remote/describing.h"

#include <utility>

#include "app/common/chat_prompt.h"
#include "app/common/checkpoint_facts.h"
#include "app/common/own_task.h"
#include "app/runs/post.h"
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

Describing::Describing() : thread_([this](const std::stop_token& stop) { work(stop); }) {}

Describing::~Describing() = default;

void Describing::add(Job job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  wake_.notify_one();
}

void Describing::work(const std::stop_token& stop) {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return !jobs_.empty(); })) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Told told;
    try {
      told = job.find_out([&stop] { return !stop.stop_requested(); });
    } catch (const std::exception& error) {
      told = remote::Failed{remote::pack(Failure(error))};
    }
    post([tell = std::move(job.tell), told = std::move(told)]() mutable { tell(std::move(told)); });
  }
}

remote::Described described(const remote::Describe& asked, const std::filesystem::path& path, const std::string& device,
                            const std::function<bool()>& goes_on) {
  const CheckpointFacts facts = facts_of(path, asked.checkpoint, asked.digest, goes_on);
  return {.device = device,
          .config = facts.config,
          .digest = facts.sha256,
          .prompt = facts.prompt ? remote::pack(*facts.prompt) : "",
          .why_no_prompt = facts.why_no_prompt,
          .weight = remote::pack(facts.not_finite)};
}

remote::PromptMade made(const remote::MakePrompt& asked, const std::filesystem::path& path) {
  return {remote::pack(prompt_of(asked, path))};
}

}  // namespace statescope
