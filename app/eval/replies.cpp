#include "app/eval/replies.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/chat/values/unicode.h"
#include "engine/config/host_floats.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/run/sampling.h"

namespace statescope {
namespace {

using nlohmann::json;
using Ids = std::set<std::int32_t>;

constexpr std::size_t kSpan = 512;    // tokens of one forward pass
constexpr std::int64_t kBeside = 32;  // tokens of a reply beside its answers

void add_ids(const json& value, Ids& ids) {
  for (const json& id : value.is_array() ? value : json::array({value})) {
    if (id.is_number_unsigned() && id <= std::numeric_limits<std::int32_t>::max()) ids.insert(id.get<std::int32_t>());
  }
}

/// Tokens that end a reply: the config's, and what the tokenizer knows as the end of a text or of a turn.
Ids ending_ids(const Checkpoint& checkpoint, const Tokenizer& tokenizer) {
  Ids ids;
  const json config = json::parse(checkpoint.config, nullptr, /*allow_exceptions=*/false);
  if (config.is_object()) {
    add_ids(config.value("eos_token_id", json()), ids);
    if (const json text = config.value("text_config", json()); text.is_object()) add_ids(text.value("eos_token_id", json()), ids);
  }
  const TokenizerInfo& info = tokenizer.info();
  if (info.end_of_text) ids.insert(*info.end_of_text);
  for (const char* name : {"<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>"}) {
    if (const auto found = info.specials.find(name); found != info.specials.end()) ids.insert(found->second);
  }
  return ids;
}

/// A text that a model reads and goes on with.
class Greedy {
 public:
  Greedy(std::shared_ptr<Model> model, std::int64_t prompt_length)
      : model_(std::move(model)), prompt_length_(prompt_length), state_(model_->start()) {
    hidden_ = model_->backend().allocate(kSpan * static_cast<std::size_t>(model_->hidden()) * sizeof(float));
    logits_ = model_->backend().allocate(static_cast<std::size_t>(model_->vocab()) * sizeof(float));
  }

  /// The most probable token after all that was read. Throws Error for ids outside the vocabulary; NotFiniteError.
  std::int32_t read(std::span<const std::int32_t> ids, const std::stop_token& stop) {
    read_.insert(read_.end(), ids.begin(), ids.end());
    for (; ids.size() > kSpan; ids = ids.subspan(kSpan)) {
      if (stop.stop_requested()) throw Cancelled();
      forward(ids.first(kSpan), {});
    }
    if (stop.stop_requested()) throw Cancelled();
    const Tensor logits(logits_.get(), DType::f32, {1, model_->vocab()});
    forward(ids, logits);
    const std::vector<float> numbers = host_floats(model_->backend(), logits);
    if (!std::ranges::all_of(numbers, [](float logit) { return std::isfinite(logit); }))
      refuse_not_finite(not_finite(model_, read_), *model_, "score");
    return most_probable_id(numbers);
  }
  std::int64_t tokens() const { return std::ssize(read_); }

 private:
  void forward(std::span<const std::int32_t> ids, Tensor logits) {
    const auto T = static_cast<std::int64_t>(ids.size());
    const std::int64_t outputs = logits.data ? 1 : 0;
    model_->forward(state_, ids,
                    {.chunk_size = T == 1 ? 0 : 64, .prompt_length = prompt_length_, .outputs = outputs, .logits = logits, .rules = {}},
                    Tensor(hidden_.get(), DType::f32, {T, model_->hidden()}));
  }

  std::shared_ptr<Model> model_;
  std::int64_t prompt_length_;
  ModelState state_;
  std::vector<std::int32_t> read_;
  Buffer hidden_, logits_;
};

/// Of all answers, or of the longest where any will do.
std::int64_t answer_tokens(const AskedPrompt& prompt, const Tokenizer& tokenizer) {
  std::int64_t all = 0, longest = 0;
  for (const std::string& answer : prompt.answers) {
    const std::int64_t tokens = std::ssize(tokenizer.encode(" " + answer, kContinuation).ids) + 1;  // a comma
    all += tokens;
    longest = std::max(longest, tokens);
  }
  return prompt.any ? longest : all;
}

}  // namespace

std::int64_t contained(const std::string& reply, const std::vector<std::string>& answers) {
  const std::string said = chat::lower(reply);
  return std::ranges::count_if(answers, [&](const std::string& answer) { return said.find(chat::lower(answer)) != said.npos; });
}

ReplyHits hits_of(const std::string& reply, const AskedPrompt& prompt) {
  const std::int64_t found = contained(reply, prompt.answers);
  return prompt.any ? ReplyHits{std::min<std::int64_t>(found, 1), 1} : ReplyHits{found, std::ssize(prompt.answers)};
}

AskedPrompt asked_of(const Example& example, const Tokenizer& tokenizer, const EncodeOptions& encoding) {
  AskedPrompt asked{tokenizer.encode(example.text.substr(0, example.questions.front().given.begin), encoding).ids, {}};
  for (const ExampleQuestion& question : example.questions) asked.answers.push_back(question.answer);
  return asked;
}

std::int64_t most_tokens(const AskedPrompt& prompt, const Tokenizer& tokenizer) { return answer_tokens(prompt, tokenizer) + kBeside; }

ReplyScorer::ReplyScorer(const Checkpoint& checkpoint, std::shared_ptr<const Tokenizer> tokenizer, std::optional<std::int64_t> most)
    : tokenizer_(std::move(tokenizer)), most_(most), ends_(ending_ids(checkpoint, *tokenizer_)) {}

ReplyScorer::Scored ReplyScorer::score(std::shared_ptr<Model> model, const AskedPrompt& prompt, const std::stop_token& stop) const {
  Greedy greedy(std::move(model), std::ssize(prompt.ids));
  StreamDecoder decoder(tokenizer_, /*skip_specials=*/true);
  const std::int64_t most = most_ ? *most_ : most_tokens(prompt, *tokenizer_);
  std::string reply;
  std::int32_t next = greedy.read(prompt.ids, stop);
  for (std::int64_t said = 1; !ends_.contains(next); ++said) {
    reply += decoder.add(next);
    const ReplyHits found = hits_of(reply, prompt);
    if (said == most || found.hits == found.answers) break;
    next = greedy.read({&next, 1}, stop);
  }
  return {hits_of(reply + decoder.finish(), prompt), greedy.tokens()};
}

TaskScore summarise_replies(std::span<const ReplyHits> replies) {
  TaskScore score{.by_reply = true, .exact = {}, .tokens = {}, .nll = std::nan("")};
  std::vector<double> shares;
  for (const ReplyHits& reply : replies) {
    score.questions += reply.answers;
    score.hits += reply.hits;
    shares.push_back(static_cast<double>(reply.hits) / static_cast<double>(reply.answers));
  }
  const bool one_answer_each = score.questions == std::ssize(replies);
  score.exact = one_answer_each ? wilson(static_cast<double>(score.hits), score.questions) : clustered(shares);
  return score;
}

TaskScore score_replies(ScorerPool& pool, const std::shared_ptr<const Tokenizer>& tokenizer, std::int64_t count,
                        const std::function<AskedPrompt(std::int64_t)>& make, std::optional<std::int64_t> most,
                        const std::function<bool(std::int64_t)>& tell) {
  if (count > 0) pool.check_weights([&] { return ScoredSequence{.ids = make(0).ids, .prompt_length = 0, .targets = {}}; });
  const ReplyScorer by_reply(pool.model().checkpoint(), tokenizer, most);
  std::vector<ReplyHits> replies(static_cast<std::size_t>(count));
  const auto work = [&](Scorer& scorer, std::int64_t i, const std::stop_token& stop) {
    const AskedPrompt prompt = make(i);
    const ReadingRoom::Place place = pool.room_for(std::ssize(prompt.ids) + most.value_or(most_tokens(prompt, *tokenizer)));
    const ReplyScorer::Scored scored = by_reply.score(scorer.model_ptr(), prompt, stop);
    replies[static_cast<std::size_t>(i)] = scored.found;
    return scored.tokens;
  };
  pool.each(count, work, tell);
  return summarise_replies(replies);
}

}  // namespace statescope
