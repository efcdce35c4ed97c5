// What models reply to prompts, scored as RULER does: right as far as a reply contains the answers (string_match_all, of needles), or where
// it contains one of them (string_match_part, of question answering).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
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

/// Up to where the example's answers stand.
AskedPrompt asked_of(const Example& example, const Tokenizer& tokenizer, const EncodeOptions& encoding);

/// Tokens that a reply may have where nothing else is said: as many as the answers that are wanted may have, and 32 more.
std::int64_t most_tokens(const AskedPrompt& prompt, const Tokenizer& tokenizer);

/// Has a checkpoint's model reply and looks for the answers.
class ReplyScorer {
 public:
  /// `most`: tokens that a reply may have; unset: most_tokens().
  ReplyScorer(const Checkpoint& checkpoint, std::shared_ptr<const Tokenizer> tokenizer, std::optional<std::int64_t> most);

  struct Scored {
    ReplyHits found;
    std::int64_t tokens = 0;  // that were read
  };
  /// The reply is greedy; it ends where the text does, or once it contains what is wanted. Throws Error, Cancelled; NotFiniteError.
  Scored score(std::shared_ptr<Model> model, const AskedPrompt& prompt, const std::stop_token& stop) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<std::int64_t> most_;
  std::set<std::int32_t> ends_;
};

/// Of make(0) … make(count − 1), called on the pool's threads; `most` as of ReplyScorer. Throws as ScorerPool::score.
TaskScore score_replies(ScorerPool& pool, const std::shared_ptr<const Tokenizer>& tokenizer, std::int64_t count,
                        const std::function<AskedPrompt(std::int64_t)>& make, std::optional<std::int64_t> most,
                        const std::function<bool(std::int64_t tokens)>& tell = {});

}  // namespace statescope
