#include "engine/analysis/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/analysis/parts.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// Keeps every channel of one layer. Nothing here is on a device.
class Listener final : public ChannelSink {
 public:
  explicit Listener(std::map<std::string, ChannelRows>& channels) : channels_(channels) {}

  bool wants_all() const override { return true; }

  void channel(std::string_view name, ConstTensor values) override {
    ChannelRows& rows = channels_[std::string(name)];
    rows.shape.clear();
    for (int axis = 1; axis < values.shape.rank(); ++axis) rows.shape.push_back(values.shape[axis]);
    for (std::int64_t t = 0; t < values.rows(); ++t) {
      if (values.dtype == DType::i32) {
        std::transform(values.i32(t), values.i32(t) + values.row_size(), std::back_inserter(rows.values),
                       [](std::int32_t index) { return static_cast<float>(index); });
      } else {
        rows.values.insert(rows.values.end(), values.f32(t), values.f32(t) + values.row_size());
      }
    }
  }

 private:
  std::map<std::string, ChannelRows>& channels_;
};

std::size_t bytes_of(const MemoryTrace& trace) {
  std::size_t numbers = 0;
  for (const SlotVisits& slot : trace.slots)
    numbers += slot.token.size() + slot.q.size() + slot.k.size() + slot.v.size() + slot.log_decay.size() + slot.beta.size() +
               slot.dt.size() + slot.erase_key.size() + slot.erase_along.size() + slot.o.size();
  return numbers * sizeof(float);
}

}  // namespace

Evidence::Evidence(std::shared_ptr<Reading> reading, FairMutex& mutex, std::size_t budget)
    : reading_(std::move(reading)), mutex_(&mutex), budget_(budget), backend_(make_cpu_backend()), workspace_(*backend_) {
  const std::lock_guard lock(*mutex_);
  info_ = reading_->info();
  model_ = reading_->model();
}

Evidence::~Evidence() = default;

const LayerInfo& Evidence::layer(std::int64_t layer) const {
  check_index("layer", layer, std::ssize(info_->model.layers));
  return info_->model.layers[static_cast<std::size_t>(layer)];
}

const LayerInfo& Evidence::layer_with_state(std::int64_t layer) const {
  const LayerInfo& asked = Evidence::layer(layer);
  if (asked.has_state()) return asked;
  std::vector<std::int64_t> others;
  for (std::int64_t l = 0; l < std::ssize(info_->model.layers); ++l) {
    if (info_->model.layers[static_cast<std::size_t>(l)].has_state()) others.push_back(l);
  }
  const std::string have = others.empty()       ? "nor does any other of this model"
                           : others.size() == 1 ? counted("layer", others) + " does"
                                                : counted("layer", others) + " do";
  throw Error(fmt::format("layer {} ({}) keeps no matrix state, {}", layer, asked.mixer, have));
}

void Evidence::tell(double fraction) const {
  if (progress_ && !progress_(fraction)) throw Cancelled();
}

/// What was asked for longest ago goes first.
void Evidence::make_room(std::size_t bytes) {
  const auto used = [&] {
    return std::accumulate(layers_.begin(), layers_.end(), std::size_t{0},
                           [](std::size_t sum, const auto& kept) { return sum + kept.second.bytes; });
  };
  while (!layers_.empty() && used() + bytes > budget_) {
    layers_.erase(
        std::min_element(layers_.begin(), layers_.end(), [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
}

Evidence::LayerEvidence& Evidence::evidence_of(std::int64_t layer) {
  Evidence::layer(layer);
  if (const auto known = layers_.find(layer); known != layers_.end()) {
    known->second.used = ++clock_;
    return known->second;
  }
  const std::vector<float> entered = residual(layer, 0, tokens());
  if (!tracer_) tracer_ = std::make_unique<MemoryTracer>(model_->checkpoint_ptr());
  const std::vector<float> beside = companion(layer);
  LayerEvidence evidence;
  Listener listener(evidence.channels);
  evidence.traces = tracer_->trace(layer, entered, info_->prompt_length, &listener, course(layer), beside);
  for (const MemoryTrace& trace : evidence.traces) evidence.bytes += bytes_of(trace);
  for (const auto& [name, rows] : evidence.channels) evidence.bytes += rows.values.size() * sizeof(float);
  make_room(evidence.bytes);
  evidence.used = ++clock_;
  return layers_[layer] = std::move(evidence);
}

const std::vector<MemoryTrace>& Evidence::traces(std::int64_t layer) { return evidence_of(layer).traces; }

const MemoryTrace* Evidence::trace(std::int64_t layer) {
  const auto rows_decay = [](const MemoryTrace& trace) { return trace.decay_axis == DecayAxis::rows || trace.decay_width <= 1; };
  const std::vector<MemoryTrace>& all = traces(layer);
  const auto found = std::find_if(all.begin(), all.end(), rows_decay);
  return found == all.end() ? nullptr : &*found;
}

const MemoryTrace& Evidence::trace_of_state(std::int64_t layer) {
  if (const MemoryTrace* found = trace(layer)) return *found;
  layer_with_state(layer);
  throw Error(fmt::format("every token writes all states of layer {} alike, as its weights say: it chooses no rows", layer));
}

std::vector<float> Evidence::memory_keys(std::int64_t layer) {
  evidence_of(layer);
  if (!tracer_) tracer_ = std::make_unique<MemoryTracer>(model_->checkpoint_ptr());
  return tracer_->memory_keys(layer);
}

const ChannelRows* Evidence::channel(std::int64_t layer, const std::string& name) {
  const LayerEvidence& evidence = evidence_of(layer);
  const auto found = evidence.channels.find(name);
  return found == evidence.channels.end() ? nullptr : &found->second;
}

std::vector<float> Evidence::residual(std::int64_t layer, std::int64_t from, std::int64_t to) {
  const std::lock_guard lock(*mutex_);
  return reading_->run().residual(layer, from, to);
}

std::vector<float> Evidence::companion(std::int64_t layer) {
  const std::lock_guard lock(*mutex_);
  return reading_->run().companion(layer, 0, tokens());
}

std::vector<Stretch> Evidence::course(std::int64_t layer) {
  const std::lock_guard lock(*mutex_);
  return reading_->run().course(layer, tokens());
}

LayerState Evidence::state(std::int64_t layer, std::int64_t token) {
  const std::lock_guard lock(*mutex_);
  return reading_->run().state(layer, token);
}

HeadState Evidence::head_state(std::int64_t layer, std::int64_t head, std::int64_t token) {
  const std::lock_guard lock(*mutex_);
  return reading_->run().head_state(layer, head, token);
}

std::pair<LayerState, LayerState> Evidence::states_around(std::int64_t layer, std::int64_t token) {
  const std::lock_guard lock(*mutex_);
  return reading_->run().states_around(layer, token);
}

std::shared_ptr<const Routing> Evidence::routing(std::int64_t layer) {
  const std::lock_guard lock(*mutex_);
  return reading_->run().routing(layer);
}

std::vector<float> Evidence::logits(std::int64_t from, std::int64_t to) {
  const std::lock_guard lock(*mutex_);
  return reading_->run().logits(from, to);
}

Run& Evidence::left() const {
  if (!reading_->parent()) throw Error("this is the model's own run: it has left no other");
  return reading_->parent()->run();
}

RunDifference Evidence::difference(std::int64_t from, std::int64_t to) {
  const std::lock_guard lock(*mutex_);
  return compare(left(), reading_->run(), from, to);
}

StateDifference Evidence::state_difference(std::int64_t layer, std::int64_t token) {
  const std::lock_guard lock(*mutex_);
  return compare_states(left(), reading_->run(), layer, token);
}

std::string Evidence::text(std::int32_t id) const { return reading_->tokenizer()->text_of(id); }

const Checkpoint& Evidence::checkpoint() const { return model_->checkpoint(); }

}  // namespace statescope
