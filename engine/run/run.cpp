#include "engine/run/run.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/model/host_floats.h"

namespace statescope {
namespace {

constexpr std::int64_t kSpan = 128;  // tokens of one forward pass; bounds scratch memory and the wait for a cancel

}  // namespace

/// Appends to the run what a forward pass shows of itself.
class Run::Recorder final : public Observer {
 public:
  explicit Recorder(Run& run) : run_(run) {}

  void residual(std::int64_t layer, ConstTensor x) override { run_.inputs_.append(layer, host_floats(run_.model_->backend(), x)); }

  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override {
    const std::shared_ptr<Routing>& routing = run_.routing_[static_cast<std::size_t>(layer)];
    if (!routing) return;
    if (name == "partition_gate") {
      const std::vector<float> e = host_floats(run_.model_->backend(), values);
      routing->gate.insert(routing->gate.end(), e.begin(), e.end());
      routing->selected.resize(routing->gate.size(), 0);
    } else if (name == "partition_selected") {
      mark_selected(*routing, values);
    }
  }

 private:
  void mark_selected(Routing& routing, ConstTensor ids) {
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(ids.shape.size()));
    Tensor host(chosen.data(), DType::i32, ids.shape);
    run_.model_->backend().download(host, ids);
    const std::int64_t first = routing.tokens() - ids.rows();
    for (std::int64_t t = 0; t < ids.rows(); ++t) {
      for (std::int64_t w = 0; w < ids.row_size(); ++w) {
        routing.selected[static_cast<std::size_t>((first + t) * routing.partitions + host.i32(t)[w])] = 1;
      }
    }
  }

  Run& run_;
};

Run::Run(std::shared_ptr<Model> model, RunOptions options)
    : model_(std::move(model)),
      options_(options),
      forward_{.chunk_size = options.chunk_size},
      state_(model_->start()),
      inputs_(model_->layers() + 1, model_->hidden()) {
  if (options_.memory_budget == 0) options_.memory_budget = available_memory() / 4;
  for (std::int64_t layer = 0; layer < model_->layers(); ++layer) {
    const std::int64_t partitions = model_->layout(layer).partitions;
    routing_.push_back(partitions > 0 ? std::make_shared<Routing>() : nullptr);
    if (partitions > 0) routing_.back()->partitions = partitions;
  }
}

void Run::read(std::span<const std::int32_t> ids, std::int64_t prompt_length, const Progress& progress) {
  if (reading_) throw Error("this run was cut short by an earlier failure; read the prompt again");
  model_->check_ids(ids);
  forward_.prompt_length = prompt_length;
  while (!ids.empty()) {
    // A span ends where a keyframe is due.
    const std::int64_t to_keyframe = options_.keyframe_interval - tokens() % options_.keyframe_interval;
    const auto count = static_cast<std::size_t>(std::min({static_cast<std::int64_t>(ids.size()), kSpan, to_keyframe}));
    read_span(ids.first(count));
    ids = ids.subspan(count);
    if (tokens() % options_.keyframe_interval == 0) keep_keyframe();
    inputs_.keep_within(options_.memory_budget - std::min(options_.memory_budget, keyframe_bytes_));
    if (progress && !progress(tokens())) return;
  }
}

void Run::read_span(std::span<const std::int32_t> ids) {
  // A longer run gets routing of its own, so that what has been handed out stays as it was.
  for (std::shared_ptr<Routing>& routing : routing_) {
    if (routing && routing.use_count() > 1) routing = std::make_shared<Routing>(*routing);
  }
  Buffer memory = model_->backend().allocate(ids.size() * static_cast<std::size_t>(model_->hidden()) * sizeof(float));
  Tensor hidden(memory.get(), DType::f32, {static_cast<std::int64_t>(ids.size()), model_->hidden()});
  Recorder recorder(*this);
  ForwardOptions options = forward_;
  if (ids.size() == 1) options.chunk_size = 0;
  reading_ = true;
  model_->forward(state_, ids, options, hidden, &recorder);
  reading_ = false;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void Run::keep_keyframe() {
  Keyframe frame;
  std::size_t bytes = 0;
  for (const MixerState& layer : state_.layers) {
    frame.layers.push_back(layer.everything ? host_floats(model_->backend(), layer.everything) : std::vector<float>{});
    bytes += frame.layers.back().size() * sizeof(float);
  }
  keyframes_.emplace(tokens(), std::move(frame));
  keyframe_bytes_ += bytes;
  if (keyframe_bytes_ <= options_.memory_budget / 2 || keyframes_.size() < 2) return;
  options_.keyframe_interval *= 2;
  keyframe_bytes_ -= bytes * std::erase_if(keyframes_, [&](const auto& entry) { return entry.first % options_.keyframe_interval != 0; });
}

std::vector<float> Run::residual(std::int64_t layer, std::int64_t from, std::int64_t to) const {
  std::vector<float> rows(static_cast<std::size_t>((to - from) * model_->hidden()));
  inputs_.read(rows.data(), layer, from, to);
  return rows;
}

std::vector<float> Run::logits(std::int64_t token) {
  Backend& backend = model_->backend();
  const std::int64_t D = model_->hidden(), V = model_->vocab();
  Buffer memory = backend.allocate(static_cast<std::size_t>(D + V + 16) * sizeof(float));
  Tensor hidden(memory.get(), DType::f32, {1, D}), device(static_cast<float*>(memory.get()) + (D + 15) / 16 * 16, DType::f32, {1, V});
  backend.upload(hidden, ConstTensor(residual(model_->layers(), token, token + 1).data(), DType::f32, {1, D}));
  model_->logits(device, hidden);
  return host_floats(backend, device);
}

/// The layer's state after the first `tokens` tokens; the run's own, not a copy, if those are all.
MixerState Run::replayed(std::int64_t layer, std::int64_t tokens) {
  if (tokens == this->tokens() && !reading_) return state_.layers[static_cast<std::size_t>(layer)];
  MixerState state = make_state(model_->layout(layer), model_->backend());
  auto frame = keyframes_.upper_bound(tokens);
  std::int64_t from = 0;
  if (frame != keyframes_.begin()) {
    --frame;
    from = frame->first;
    model_->backend().upload(state.everything,
                             ConstTensor(frame->second.layers[static_cast<std::size_t>(layer)].data(), DType::f32, state.everything.shape));
  }
  advance(layer, state, from, tokens);
  return state;
}

void Run::advance(std::int64_t layer, MixerState& state, std::int64_t from, std::int64_t to) {
  for (; to - from > kSpan; from += kSpan) advance(layer, state, from, from + kSpan);
  if (from >= to) return;
  const std::int64_t D = model_->hidden();
  Backend& backend = model_->backend();
  Buffer memory = backend.allocate(static_cast<std::size_t>((to - from) * D) * sizeof(float));
  Tensor rows(memory.get(), DType::f32, {to - from, D});
  backend.upload(rows, ConstTensor(residual(layer, from, to).data(), DType::f32, rows.shape));
  ForwardOptions options = forward_;
  if (to - from == 1) options.chunk_size = 0;
  model_->replay(layer, state, rows, from, options);
}

LayerState Run::downloaded(std::int64_t layer, const MixerState& state) const {
  LayerState out;
  const MixerLayout& layout = model_->layout(layer);
  if (layout.memory.empty()) return out;
  const Shape& shape = layout.memory[0].shape;
  out.slots = shape[0];
  out.heads = shape[1];
  out.rows = shape[2];
  out.columns = shape[3];
  out.values = host_floats(model_->backend(), state.memory[0]);
  return out;
}

LayerState Run::state(std::int64_t layer, std::int64_t token) {
  if (model_->layout(layer).memory.empty()) return {};
  return downloaded(layer, replayed(layer, token + 1));
}

std::pair<LayerState, LayerState> Run::states_around(std::int64_t layer, std::int64_t token) {
  if (model_->layout(layer).memory.empty()) return {};
  MixerState state = replayed(layer, token);
  LayerState before = downloaded(layer, state);
  if (is_keyframe(token)) {
    state = replayed(layer, token + 1);
  } else {
    advance(layer, state, token, token + 1);
  }
  return {std::move(before), downloaded(layer, state)};
}

std::shared_ptr<const Routing> Run::routing(std::int64_t layer) { return routing_[static_cast<std::size_t>(layer)]; }

}  // namespace statescope
