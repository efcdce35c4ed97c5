// What models reply to prompts, scored as RULER does: right as far as a reply contains the answers (string_match_all, of needles), or where
// it contains one of them (string_match_part, of question answering).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/eval/score.h"

namespace statescope {

/// What is read, and what a right reply contains, at least one text.
struct AskedPrompt {
  std::vector<std::int32_t> ids;
  std::vector<std::string> answers;
  bool any = false;  // one of them is enough
};

/// How many of the answers the reply contains, capitals or not.
std::int64_t contained(const std::string& reply, const std::vector<std::string>& answers);

/// Answers that a reply contains, and how many are wanted.
struct ReplyHits {
  std::int64_t hits = 0, answers = 0;
};
ReplyHits hits_of(const std::string& reply, const AskedPrompt& prompt);
/// The mean over prompts of the share of answers.
TaskScore summarise_replies(std::span<const ReplyHits> replies);

/// Of make(0) … make(count − 1), called on the pool's threads. Each reply is greedy; it ends where the text does, once it contains all
/// answers that are wanted, or at `most` tokens (unset: as many as those may have, and 32 more). Throws as ScorerPool::score.
TaskScore score_replies(ScorerPool& pool, const std::shared_ptr<const Tokenizer>& tokenizer, std::int64_t count,
                        const std::function<AskedPrompt(std::int64_t)>& make, std::optional<std::int64_t> most,
                        const std::function<bool(std::int64_t tokens)>& tell = {});

}  // namespace statescope
