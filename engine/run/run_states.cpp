// A run's states at any token: the keyframe before it, brought forward.
#include <algorithm>

#include "engine/run/run.h"

namespace statescope {
namespace {

/// Keys and values of a layer's first `tokens` tokens, behind those of the `before` that are none of the run's.
template <class Former>
KvCache keys_and_values(const std::vector<Former>& former_kv, const MixerState& now, std::int64_t layer, std::int64_t tokens,
                        std::int64_t before) {
  const auto former = std::ranges::find_if(former_kv, [&](const Former& kv) { return kv.layer == layer && tokens < kv.tokens; });
  return (former == former_kv.end() ? now.kv : former->kv).first(before + tokens);
}

}  // namespace

/// The layer's state after the first `tokens` tokens; the run's own, not a copy, if those are all.
MixerState Run::replayed(std::int64_t layer, std::int64_t tokens) {
  if (tokens < first_) return parent_->replayed(layer, tokens);
  if (tokens == this->tokens() && !reading_) return state_.layers[static_cast<std::size_t>(layer)];
  MixerState state = model_->start(layer);
  auto frame = keyframes_.upper_bound(tokens);
  std::int64_t from = 0;
  if (frame != keyframes_.begin()) {
    --frame;
    from = frame->first;
    frame->second.load(state.everything, frame_offsets_[static_cast<std::size_t>(layer)]);
  }
  // Of a layer whose memory is written behind its attention.
  state.kv = keys_and_values(former_kv_, state_.layers[static_cast<std::size_t>(layer)], layer, from, model_->plan().memory_token_count);
  advance(layer, state, from, tokens);
  return state;
}

void Run::advance(std::int64_t layer, MixerState& state, std::int64_t from, std::int64_t to) {
  for (std::int64_t end; from < to; from = end) {
    end = std::min({to, from + options_.tokens_at_once, schedule_.next_stop(from)});
    ForwardOptions options = forward_;
    options.rules = schedule_.rules(from);
    if (end - from == 1) options.chunk_size = 0;
    Buffer memory, companion;
    if (model_->reads_companion(layer)) options.companion = block_inputs(companion, model_->companion_stream(layer), from, end);
    model_->replay(layer, state, block_inputs(memory, layer, from, end), from, options);
    schedule_.edit(layer, state, end, *model_);
  }
}

void Run::step(std::int64_t layer, MixerState& state, std::int64_t token) {
  if (token >= first_) return advance(layer, state, token, token + 1);
  parent_->step(layer, state, token);
  if (token + 1 == first_) schedule_.edit(layer, state, first_, *model_);
}

MixerState Run::mixer_state(std::int64_t layer, std::int64_t tokens) {
  if (tokens < first_) return parent_->mixer_state(layer, tokens);
  MixerState state = make_state(model_->layout(layer), model_->backend(layer));
  if (state.everything) model_->backend(layer).copy(state.everything, replayed(layer, tokens).everything);
  state.kv = keys_and_values(former_kv_, state_.layers[static_cast<std::size_t>(layer)], layer, tokens, model_->plan().memory_token_count);
  return state;
}

}  // namespace statescope
