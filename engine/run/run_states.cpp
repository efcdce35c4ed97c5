// A run's states at any token: the keyframe before it, brought forward.
#include <algorithm>

#include "engine/config/host_floats.h"
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
    if (model_->reads_companion(layer)) options.companion = companion_inputs(companion, layer, from, end);
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

void Run::record_companion(ConstTensor x) {
  const std::int64_t D = model_->hidden(), first = model_->layers() + 1, parts = x.row_size() / D;
  if (parts == 1) return inputs_.append(first, x);
  const Buffer memory = model_->backend().allocate(static_cast<std::size_t>(x.rows() * D) * sizeof(float));
  const Tensor rows(memory.get(), DType::f32, {x.rows(), D});
  for (std::int64_t part = 0; part < parts; ++part) {
    model_->backend().copy(rows, x.columns(part * D, {D}));
    inputs_.append(first + part, rows);
  }
}

/// Parts [T, D], each of which `read` brings to contiguous memory, as [T, parts · D].
Tensor Run::side_by_side(Buffer& memory, std::int64_t parts, const Shape& part_shape,
                         const std::function<void(std::int64_t part, Tensor to)>& read) const {
  Backend& backend = model_->backend();
  const auto bytes = static_cast<std::size_t>(part_shape.size()) * sizeof(float);
  const std::int64_t D = part_shape[1];
  memory = backend.allocate(static_cast<std::size_t>(parts) * bytes);
  const Tensor all(memory.get(), DType::f32, {part_shape[0], parts * D});
  if (parts == 1) return read(0, all), all;
  const Buffer one = backend.allocate(bytes);
  const Tensor part(one.get(), DType::f32, part_shape);
  for (std::int64_t i = 0; i < parts; ++i) {
    read(i, part);
    backend.copy(all.columns(i * D, {D}), part);
  }
  return all;
}

Tensor Run::companion_inputs(Buffer& memory, std::int64_t layer, std::int64_t from, std::int64_t to) const {
  const std::int64_t stream = model_->companion_stream(layer), parts = model_->companion_parts(layer);
  if (parts == 1) return block_inputs(memory, stream, from, to);
  return side_by_side(memory, parts, {to - from, model_->hidden()}, [&](std::int64_t part, Tensor rows) {
    Buffer own;
    model_->backend().copy(rows, block_inputs(own, stream + part, from, to));
  });
}

std::vector<float> Run::companion(std::int64_t layer, std::int64_t from, std::int64_t to) const {
  if (!model_->reads_companion(layer)) return {};
  Buffer memory;
  return host_floats(model_->backend(), companion_inputs(memory, layer, from, to));
}

}  // namespace statescope
