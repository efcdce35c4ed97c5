#include "engine/run/reading.h"

#include <tuple>

#include "engine/error.h"
#include "engine/run/sampling.h"

namespace statescope {
namespace {

constexpr std::size_t kPredictions = 8;

/// Tokens that lie, wholly or in part, in a span of bytes.
TokenSpan token_span(const TextSpan& span, const Encoding& encoding) {
  TokenSpan tokens{span.kind, 0, 0};
  for (std::size_t i = 0; i < encoding.begin.size(); ++i) {
    if (encoding.end[i] <= span.begin || encoding.begin[i] >= span.end) continue;
    if (tokens.end == 0) tokens.begin = static_cast<std::int64_t>(i);
    tokens.end = static_cast<std::int64_t>(i) + 1;
  }
  return tokens;
}

/// A checkpoint without a tokenizer still runs from ids: it is asked only where there is a text.
std::int64_t tokens_to_generate(const PromptInput& prompt, const Tokenizer& tokenizer) {
  if (prompt.generate) return *prompt.generate;
  return prompt.expected.empty() ? 0 : static_cast<std::int64_t>(tokenizer.encode(prompt.expected).ids.size());
}

}  // namespace

Reading::Reading(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer, const PromptInput& prompt,
                 const Progress& progress)
    : run_(std::move(model)), tokenizer_(std::move(tokenizer)) {
  Encoding encoding;
  encoding.ids = prompt.ids;
  if (prompt.ids.empty()) encoding = tokenizer_->encode(prompt.text);
  if (encoding.ids.empty()) throw Error("the prompt is empty");
  to_generate_ = tokens_to_generate(prompt, *tokenizer_);
  RunInfo info;
  info.model = run_.model().info();
  info.prompt_length = static_cast<std::int64_t>(encoding.ids.size());
  for (const TextSpan& span : prompt.spans) {
    if (const TokenSpan tokens = token_span(span, encoding); tokens.end > tokens.begin) info.spans.push_back(tokens);
  }
  run_.read(encoding.ids, info.prompt_length, [&](std::int64_t tokens) {
    return !progress || progress(static_cast<double>(tokens) / static_cast<double>(info.prompt_length));
  });
  if (run_.tokens() < info.prompt_length) throw Error("cancelled");
  for (std::int32_t id : encoding.ids) info.tokens.push_back({id, tokenizer_->text_of(id)});
  if (prompt.ids.empty() && !prompt.expected.empty()) {
    for (std::int32_t id : tokenizer_->encode(prompt.expected).ids) info.expected.push_back({id, tokenizer_->text_of(id)});
  }
  info_ = std::make_shared<const RunInfo>(std::move(info));
}

void Reading::generate_one() {
  const std::int32_t id = most_probable_id(run_.logits(run_.tokens() - 1));
  run_.read({&id, 1}, info_->prompt_length);
  auto longer = std::make_shared<RunInfo>(*info_);
  longer->tokens.push_back({id, tokenizer_->text_of(id)});
  info_ = std::move(longer);
}

std::shared_ptr<const Snapshot> Reading::snapshot(std::int64_t layer, std::int64_t token) {
  if (layer < 0 || layer >= run_.model().layers() || token < 0 || token >= run_.tokens()) return nullptr;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->run = info_;
  snapshot->layer = layer;
  snapshot->token = token;
  std::tie(snapshot->before, snapshot->state) = run_.states_around(layer, token);
  snapshot->routing = run_.routing(layer);
  snapshot->predictions = most_probable(run_.logits(token), kPredictions, *tokenizer_);
  snapshot->accuracy = run_.is_keyframe(token) ? kExact : kReplayed;
  return snapshot;
}

}  // namespace statescope
