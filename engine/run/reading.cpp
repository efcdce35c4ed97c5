#include "engine/run/reading.h"

#include <algorithm>
#include <tuple>

#include "engine/error.h"
#include "engine/run/sampling.h"
#include "engine/unread.h"

namespace statescope {
namespace {

constexpr std::size_t kPredictions = 8;

/// Tokens that lie, wholly or in part, in a span of what was encoded.
TokenSpan token_span(const TextSpan& span, const Encoding& encoding) {
  TokenSpan tokens{span.kind, 0, 0};
  for (std::size_t i = 0; i < encoding.begin.size(); ++i) {
    if (encoding.end[i] <= span.begin || encoding.begin[i] >= span.end) continue;
    if (tokens.end == 0) tokens.begin = static_cast<std::int64_t>(i);
    tokens.end = static_cast<std::int64_t>(i) + 1;
  }
  return tokens;
}

/// Progress that ends a reading behind its first pass.
bool one_pass(std::int64_t) { return false; }

/// A run of the prompt that has been read as far as that.
std::shared_ptr<Run> read_prompt(std::shared_ptr<Model> model, const Tokenizer& tokenizer, const PromptInput& prompt,
                                 const Progress& progress, const RunOptions& options) {
  const std::vector<std::int32_t> ids = encode(prompt, tokenizer).ids;
  const std::int64_t length = std::ssize(ids);
  auto run = std::make_shared<Run>(std::move(model), options);
  run->read(ids, length,
            [&](std::int64_t tokens) { return !progress || progress(static_cast<double>(tokens) / static_cast<double>(length)); });
  if (run->tokens() < length) throw Cancelled();
  return run;
}

/// A checkpoint without a tokenizer still runs from ids: it is asked only where there is a text.
std::int64_t tokens_to_generate(const PromptInput& prompt, const Tokenizer& tokenizer) {
  if (prompt.generate) return *prompt.generate;
  return prompt.expected.empty() ? 0 : static_cast<std::int64_t>(tokenizer.encode(prompt.expected, kContinuation).ids.size());
}

}  // namespace

Encoding encode(const PromptInput& prompt, const Tokenizer& tokenizer) {
  Encoding encoding;
  encoding.ids = prompt.ids;
  for (std::size_t i = 0; i < prompt.ids.size(); ++i) encoding.begin.push_back(i), encoding.end.push_back(i + 1);
  if (prompt.ids.empty()) encoding = tokenizer.encode(prompt.text, {.add_specials = !prompt.in_chat, .recognise_specials = prompt.in_chat});
  if (encoding.ids.empty()) throw Error("the prompt is empty");
  return encoding;
}

Reading::Reading(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer, const PromptInput& prompt,
                 const Progress& progress, const RunOptions& options)
    : Reading(read_prompt(std::move(model), *tokenizer, prompt, progress, options), tokenizer, prompt) {}

Reading::Reading(std::shared_ptr<Run> run, std::shared_ptr<const Tokenizer> tokenizer, const PromptInput& prompt, BranchInfo branch,
                 std::shared_ptr<Reading> parent)
    : run_(std::move(run)),
      parent_(std::move(parent)),
      to_generate_(tokens_to_generate(prompt, *tokenizer)),
      tokenizer_(std::move(tokenizer)) {
  Encoding encoding = encode(prompt, *tokenizer_);
  RunInfo info;
  info.model = run_->model().info();
  info.prompt_length = run_->prompt_length();
  info.branch = std::move(branch);
  for (const TextSpan& span : prompt.spans) {
    if (const TokenSpan tokens = token_span(span, encoding); tokens.end > tokens.begin) info.spans.push_back(tokens);
  }
  prompt_ids_ = std::move(encoding.ids);
  if (prompt.ids.empty() && !prompt.expected.empty()) {
    for (const std::int32_t id : tokenizer_->encode(prompt.expected, kContinuation).ids)
      info.expected.push_back({id, tokenizer_->text_of(id)});
  }
  info_ = std::make_shared<const RunInfo>(std::move(info));
  show_tokens();
}

std::shared_ptr<Reading> Reading::begin(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer, const PromptInput& prompt,
                                        const RunOptions& options) {
  const std::vector<std::int32_t> ids = encode(prompt, *tokenizer).ids;
  auto run = std::make_shared<Run>(std::move(model), options);
  run->read(ids, std::ssize(ids), one_pass);
  return std::make_shared<Reading>(std::move(run), std::move(tokenizer), prompt);
}

void Reading::read_on() {
  if (unread(*info_) == 0) return;
  run_->read(std::span(prompt_ids_).subspan(static_cast<std::size_t>(run_->tokens())), info_->prompt_length, one_pass);
  show_tokens();
}

void Reading::generate_one() { append(most_probable_id(run_->logits(run_->tokens() - 1))); }

void Reading::append(std::int32_t id) {
  run_->read({&id, 1}, info_->prompt_length);
  show_tokens();
}

/// Those that have been read since the last time.
void Reading::show_tokens() {
  auto longer = std::make_shared<RunInfo>(*info_);
  for (const std::int32_t id : std::span(run_->ids()).subspan(longer->tokens.size()))
    longer->tokens.push_back({id, tokenizer_->text_of(id)});
  longer->recording = run_->recording();
  info_ = std::move(longer);
}

std::shared_ptr<const Snapshot> Reading::snapshot(std::int64_t layer, std::int64_t head, std::int64_t token) {
  if (layer < 0 || layer >= run_->model().layers() || token < 0 || token >= run_->tokens()) return nullptr;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->run = info_;
  snapshot->layer = layer;
  const LayerInfo& info = info_->model.layers[static_cast<std::size_t>(layer)];
  snapshot->head = info.most_heads() > 0 ? std::clamp<std::int64_t>(head, 0, info.most_heads() - 1) : head;
  snapshot->token = token;
  if (snapshot->head < info.heads) std::tie(snapshot->before, snapshot->state) = run_->head_states_around(layer, snapshot->head, token);
  snapshot->routing = run_->routing(layer);
  snapshot->predictions = most_probable(run_->logits(token), kPredictions, *tokenizer_);
  snapshot->accuracy = run_->is_keyframe(token) ? kExact : kReplayed;
  return snapshot;
}

}  // namespace statescope
