#include "engine/run/run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/config/host_floats.h"
#include "engine/error.h"
#include "kernels/cpu/host_memory.h"

namespace statescope {
namespace {

constexpr std::int64_t kFewestTokens = 128;  // of one forward pass, where the budget is small
constexpr std::size_t kSpanShare = 4;        // the block inputs of one pass take no more than this part of the budget

/// The device of each stream of a recording.
std::vector<Backend*> devices_of(const Model& model) {
  std::vector<Backend*> of_streams;
  for (std::int64_t stream = 0; stream < model.streams(); ++stream) of_streams.push_back(&model.backend(stream));
  return of_streams;
}

std::size_t left_of(std::size_t budget, std::size_t taken) { return budget - std::min(budget, taken); }

}  // namespace

/// Appends to the run what a forward pass shows of itself. Nothing of it leaves the device.
class Run::Recorder final : public Observer {
 public:
  explicit Recorder(Run& run) : run_(run) {}

  void residual(std::int64_t layer, ConstTensor x) override { run_.inputs_.append(layer, x); }
  void companion(ConstTensor x) override { run_.record_companion(x); }

  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override {
    std::optional<Routes>& routes = run_.routes_[static_cast<std::size_t>(layer)];
    if (!routes) return;
    if (name == "partition_gate") routes->gate.append(values);
    if (name == "partition_selected") routes->selected.append(values);
  }
  bool wants(std::string_view name) const override { return name == "partition_gate" || name == "partition_selected"; }
  bool takes_pieces() const override { return true; }

 private:
  Run& run_;
};

/// Hands the channels of one layer on.
class Run::LayerRecorder final : public ChannelSink {
 public:
  LayerRecorder(Recorder& recorder, std::int64_t layer) : recorder_(recorder), layer_(layer) {}
  void channel(std::string_view name, ConstTensor values) override { recorder_.channel(layer_, name, values); }
  bool wants(std::string_view name) const override { return recorder_.wants(name); }

 private:
  Recorder& recorder_;
  std::int64_t layer_;
};

/// A layer's first memory on its way to the host.
class Run::StateDownload {
 public:
  /// `memory` lasts until it has been waited for.
  StateDownload(Backend& backend, ConstTensor memory) {
    const Shape& shape = memory.shape;
    state_ = {shape[0], shape[1], shape[2], shape[3], std::vector<float>(static_cast<std::size_t>(shape.size()))};
    download_ = backend.download_later(Tensor(state_.values.data(), DType::f32, shape), memory);
  }
  LayerState wait() {
    download_->wait();
    return std::move(state_);
  }

 private:
  LayerState state_;
  std::unique_ptr<Download> download_;
};

/// One head of it on its way to the host, and kept for a window.
class Run::HeadDownload {
 public:
  HeadDownload(Backend& backend, ConstTensor memory, std::int64_t head, bool for_window) {
    const std::int64_t slots = memory.shape[0], K = memory.shape[2], V = memory.shape[3];
    state_ = {slots, memory.shape[1], K, V, std::vector<float>(static_cast<std::size_t>(slots * K * V))};
    copy_ = backend.allocate(state_.values.size() * sizeof(float));
    const Tensor copy(copy_.get(), DType::f32, {slots, K, V});
    backend.copy(copy, memory.columns(head * K * V, {K, V}));
    if (for_window) state_.on_device = backend.rows_for_window(copy);
    download_ = backend.download_later(Tensor(state_.values.data(), DType::f32, copy.shape), copy);
  }
  HeadState wait() {
    download_->wait();
    return std::move(state_);
  }

 private:
  HeadState state_;
  Buffer copy_;
  std::unique_ptr<Download> download_;
};

Run::Run(std::shared_ptr<Run> parent, std::int64_t first, Schedule schedule) : Run(parent->model_, parent->beside()) {
  parent_ = std::move(parent);
  first_ = first;
  schedule_ = std::move(schedule);
  forward_ = parent_->forward_;
  ids_.assign(parent_->ids_.begin(), parent_->ids_.begin() + first);
  state_.position = first;
  for (std::int64_t layer = 0; layer < model_->layers(); ++layer) {
    state_.layers[static_cast<std::size_t>(layer)] = parent_->mixer_state(layer, first);
    const std::shared_ptr<const Routing> routing = parent_->routing(layer);
    if (!routing) continue;
    Routing& own = *routes_[static_cast<std::size_t>(layer)]->routing;
    own.gate.assign(routing->gate.begin(), routing->gate.begin() + first * routing->partitions);
    own.selected.assign(routing->selected.begin(), routing->selected.begin() + first * routing->partitions);
  }
  edit_states(first);
  keep_keyframe();
}

Run::Run(std::shared_ptr<Model> model, RunOptions options)
    : model_(std::move(model)),
      options_(options),
      forward_{.chunk_size = options.chunk_size},
      state_(model_->start()),
      inputs_(model_->backend(), devices_of(*model_), model_->hidden()) {
  Backend& backend = model_->backend();
  if (options_.memory_budget == 0) options_.memory_budget = model_->free_bytes() / 4;
  if (options_.host_memory_budget == 0) options_.host_memory_budget = available_memory() / 4;
  if (!backend.has_own_memory()) options_.host_memory_budget = 0;
  if (options_.tokens_at_once == 0) {
    const auto token = static_cast<std::size_t>(model_->streams() * model_->hidden()) * sizeof(float);
    const auto affordable = static_cast<std::int64_t>(options_.memory_budget / kSpanShare / token);
    options_.tokens_at_once = std::min(backend.tokens_at_once(), std::max(affordable / kFewestTokens, std::int64_t{1}) * kFewestTokens);
  }
  if (options_.keyframe_interval == 0) options_.keyframe_interval = options_.tokens_at_once;
  hidden_ = backend.allocate(static_cast<std::size_t>(options_.tokens_at_once * model_->hidden()) * sizeof(float));
  frame_offsets_.push_back(0);
  for (std::int64_t layer = 0; layer < model_->layers(); ++layer) {
    const std::int64_t partitions = model_->layout(layer).partitions;
    std::optional<Routes>& routes = routes_.emplace_back();
    if (partitions > 0) {
      routes.emplace(std::make_shared<Routing>(), GatheredRows(model_->backend(layer)), GatheredRows(model_->backend(layer)));
      routes->routing->partitions = partitions;
    }
    const std::int64_t numbers = state_.layers[static_cast<std::size_t>(layer)].everything.shape.size();
    Piece::add(frame_parts_, model_->backend(layer), numbers);
    frame_offsets_.push_back(frame_offsets_.back() + numbers);
  }
}

RunOptions Run::beside() const {
  RunOptions other = options();
  other.memory_budget = std::min(options_.memory_budget, model_->free_bytes() / 4);
  other.host_memory_budget = std::min(options_.host_memory_budget, available_memory() / 4);
  return other;
}

void Run::read(std::span<const std::int32_t> ids, std::int64_t prompt_length, const Progress& progress) {
  if (reading_) throw Error("this run was cut short by an earlier failure; read the prompt again");
  model_->check_ids(ids);
  forward_.prompt_length = prompt_length;
  while (!ids.empty()) {
    // A span ends where a keyframe is due, and where the schedule wants something.
    const std::int64_t to_keyframe = options_.keyframe_interval - tokens() % options_.keyframe_interval;
    const std::int64_t to_stop = schedule_.next_stop(tokens()) - tokens();
    const auto count =
        static_cast<std::size_t>(std::min({static_cast<std::int64_t>(ids.size()), options_.tokens_at_once, to_keyframe, to_stop}));
    keep_within_budget(static_cast<std::int64_t>(count));
    read_span(ids.first(count));
    ids = ids.subspan(count);
    if (tokens() % options_.keyframe_interval == 0) keep_keyframe();
    if (progress && !progress(tokens())) return;
  }
}

void Run::read_span(std::span<const std::int32_t> ids) {
  const Tensor hidden(hidden_.get(), DType::f32, {static_cast<std::int64_t>(ids.size()), model_->hidden()});
  Recorder recorder(*this);
  ForwardOptions options = forward_;
  if (ids.size() == 1) options.chunk_size = 0;
  options.rules = schedule_.rules(tokens());
  reading_ = true;
  model_->forward(state_, ids, options, hidden, &recorder);
  const std::int64_t read = tokens() + std::ssize(ids);
  if (read == schedule_.next_stop(tokens())) edit_states(read);
  reading_ = false;
  const auto piece = static_cast<std::size_t>(model_->piece_of(std::ssize(ids), options, &recorder));
  for (std::size_t begin = 0; begin < ids.size(); begin += piece) add_tokens(ids.subspan(begin, std::min(piece, ids.size() - begin)));
}

/// Of one pass, or of what devices read together of it.
void Run::add_tokens(std::span<const std::int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  if (!passes_.empty() && passes_.back().tokens == std::ssize(ids)) {
    ++passes_.back().times;
  } else {
    passes_.push_back({std::ssize(ids), 1});
  }
}

void Run::take(std::span<const std::int32_t> ids, std::int64_t prompt_length, const BlockInputRows& rows) {
  if (reading_) throw Error("this run was cut short by an earlier failure; read the prompt again");
  model_->check_ids(ids);
  const std::int64_t n = std::ssize(ids);
  keep_within_budget(n);
  forward_.prompt_length = prompt_length;
  ForwardOptions options = forward_;
  if (n == 1) options.chunk_size = 0;
  const Tensor x(hidden_.get(), DType::f32, {n, model_->hidden()});
  std::vector<float> host(static_cast<std::size_t>(x.shape.size()));
  const auto take_rows = [&](std::int64_t stream, Tensor to) {
    rows(stream, host.data());
    model_->backend().upload(to, ConstTensor(host.data(), DType::f32, to.shape));
  };
  const auto take_companion = [&](Buffer& memory, std::int64_t stream, std::int64_t parts) {
    return side_by_side(memory, parts, x.shape, [&](std::int64_t part, Tensor to) { take_rows(stream + part, to); });
  };
  Recorder recorder(*this);
  Buffer companion;
  reading_ = true;
  if (model_->has_companion()) {
    options.companion = take_companion(companion, model_->layers() + 1, model_->companion_parts());
    recorder.companion(options.companion);
  }
  for (std::int64_t layer = 0; layer <= model_->layers(); ++layer) {
    take_rows(layer, x);
    recorder.residual(layer, x);
    if (layer == model_->layers()) break;
    if (const std::int64_t stream = model_->companion_stream(layer); stream < layer && model_->reads_companion(layer)) {
      options.companion = take_companion(companion, stream, 1);
    }
    LayerRecorder channels(recorder, layer);
    model_->replay(layer, state_.layers[static_cast<std::size_t>(layer)], x, tokens(), options, &channels);
  }
  state_.position += n;
  reading_ = false;
  add_tokens(ids);
  if (tokens() % options_.keyframe_interval == 0) keep_keyframe();
}

/// After so many tokens.
void Run::edit_states(std::int64_t tokens) {
  for (std::int64_t layer = 0; layer < model_->layers(); ++layer) {
    MixerState& state = state_.layers[static_cast<std::size_t>(layer)];
    const KvCache kv = state.kv;
    schedule_.edit(layer, state, tokens, *model_);
    if (state.kv.memory != kv.memory) former_kv_.push_back({layer, tokens, kv});
    routing(layer);  // tokens may go to another number of partitions from here on
  }
}

void Run::keep_keyframe() {
  if (frame_offsets_.back() == 0) return;
  Piece frame(model_->backend(), frame_parts_, !device_was_full_);
  for (std::size_t layer = 0; layer < state_.layers.size(); ++layer) {
    if (state_.layers[layer].everything) frame.store(frame_offsets_[layer], state_.layers[layer].everything);
  }
  const bool refused = !frame.on_device();
  keyframes_.emplace(tokens(), std::move(frame));
  if (refused) leave_room();
  const std::size_t whole = device_was_full_ ? options_.host_memory_budget : options_.memory_budget;
  const std::size_t budget = left_of(whole, routing_within(!device_was_full_)) / 2;
  while (keyframe_bytes(true) + keyframe_bytes(false) > budget && keyframes_.size() > 1) {
    options_.keyframe_interval *= 2;
    std::erase_if(keyframes_, [&](const auto& entry) { return entry.first % options_.keyframe_interval != 0 && entry.first != first_; });
  }
}

/// With so many tokens more.
void Run::keep_within_budget(std::int64_t coming) {
  if (inputs_.device_was_full()) leave_room();
  inputs_.keep_within(left_of(options_.memory_budget, keyframe_bytes(true) + routing_within(true)),
                      left_of(options_.host_memory_budget, keyframe_bytes(false) + routing_within(false)), coming);
}

/// A device that is full gets back half of what the recording has taken, and is asked for no more.
void Run::leave_room() {
  if (std::exchange(device_was_full_, true)) return;
  options_.memory_budget = bytes_on_device() / 2;
}

std::string Run::remark() const {
  return device_was_full_ || inputs_.device_was_full() ? "the device is out of memory: the recording continues in the host's" : "";
}

std::size_t Run::keyframe_bytes(bool on_device) const {
  const auto frames = std::ranges::count_if(keyframes_, [&](const auto& entry) { return entry.second.on_device() == on_device; });
  return static_cast<std::size_t>(frames * frame_offsets_.back()) * sizeof(float);
}

std::size_t Run::routing_bytes(bool on_device) const {
  std::size_t bytes = 0;
  for (const std::optional<Routes>& routes : routes_) {
    if (!routes) continue;
    for (const GatheredRows* rows : {&routes->gate, &routes->selected})
      bytes += on_device ? rows->bytes_on_device() : rows->bytes_on_host();
    if (!on_device) bytes += routes->routing->gate.capacity() * sizeof(float) + routes->routing->selected.capacity();
  }
  return bytes;
}

std::size_t Run::routing_within(bool device_budget) const {
  if (model_->backend().has_own_memory()) return routing_bytes(device_budget);
  return device_budget ? routing_bytes(true) + routing_bytes(false) : 0;
}

RecordingInfo Run::recording() const {
  const auto bytes = [](std::size_t count) { return static_cast<std::int64_t>(count); };
  const std::size_t here = model_->backend().has_own_memory() ? bytes_on_device() : bytes_in_memory();
  return {.keyframe_interval = options_.keyframe_interval,
          .memory = bytes(here),
          .memory_budget = bytes(options_.memory_budget),
          .host = bytes(bytes_in_memory() - here),
          .host_budget = bytes(options_.host_memory_budget),
          .file = bytes(bytes_in_file())};
}

/// Rows [from, to) of what entered a block, on the device.
Tensor Run::block_inputs(Buffer& memory, std::int64_t layer, std::int64_t from, std::int64_t to) const {
  const Shape shape{to - from, model_->hidden()};
  memory = model_->backend(layer).allocate(static_cast<std::size_t>(shape.size()) * sizeof(float));
  const Tensor rows(memory.get(), DType::f32, shape);
  Tensor own = rows;
  if (const std::int64_t count = std::min(to, first_) - from; count > 0) {
    Buffer others;
    model_->backend().copy(rows.slice(0, count), parent_->block_inputs(others, layer, from, from + count));
    own = rows.slice(count, rows.rows() - count);
    from += count;
  }
  inputs_.read(own, layer, from - first_);
  return rows;
}

std::vector<float> Run::residual(std::int64_t layer, std::int64_t from, std::int64_t to) const {
  Buffer memory;
  return host_floats(model_->backend(), block_inputs(memory, layer, from, to));
}

std::vector<float> Run::logits(std::int64_t from, std::int64_t to) {
  Backend& backend = model_->backend();
  const Shape shape{to - from, model_->vocab()};
  Buffer hidden, memory = backend.allocate(static_cast<std::size_t>(shape.size()) * sizeof(float));
  const Tensor logits(memory.get(), DType::f32, shape);
  model_->logits(logits, block_inputs(hidden, model_->layers(), from, to));
  return host_floats(backend, logits);
}

bool Run::is_keyframe(std::int64_t token) const {
  if (token + 1 < first_) return parent_->is_keyframe(token);
  return (token + 1) % options_.keyframe_interval == 0 || token == tokens() - 1 || (parent_ && token + 1 == first_);
}

std::span<const Rules> Run::rules(std::int64_t token) const { return token < first_ ? parent_->rules(token) : schedule_.rules(token); }

std::int64_t Run::next_stop(std::int64_t tokens) const {
  return tokens < first_ ? std::min(first_, parent_->next_stop(tokens)) : schedule_.next_stop(tokens);
}

Schedule::Edits Run::edits(std::int64_t layer, std::int64_t tokens) const {
  Schedule::Edits all;
  if (tokens <= first_ && parent_) all = parent_->edits(layer, tokens);
  if (tokens < first_) return all;
  const Schedule::Edits own = schedule_.edits(layer, tokens);
  all.scaled.insert(all.scaled.end(), own.scaled.begin(), own.scaled.end());
  all.imported = all.imported || own.imported;
  return all;
}

std::vector<Stretch> Run::course(std::int64_t layer, std::int64_t tokens) {
  std::vector<Stretch> course;
  for (std::int64_t from = 0; from < tokens; from = course.back().to) {
    const std::span<const Rules> rules = this->rules(from);
    Stretch& stretch = course.emplace_back();
    stretch.to = std::min(tokens, next_stop(from));
    if (!rules.empty()) stretch.rules = rules[static_cast<std::size_t>(layer)];
    stretch.edits = edits(layer, stretch.to);
    if (stretch.edits.scaled.empty() && !stretch.edits.imported) continue;
    const MixerState state = mixer_state(layer, stretch.to);
    if (state.everything) stretch.kept = host_floats(model_->backend(), state.everything);
    if (!stretch.edits.imported || !state.kv.k) continue;
    stretch.k = host_floats(model_->backend(), state.kv.k);
    if (state.kv.v) stretch.v = host_floats(model_->backend(), state.kv.v);
    if (state.kv.index) stretch.index = host_floats(model_->backend(), state.kv.index);
  }
  return course;
}

LayerState Run::state(std::int64_t layer, std::int64_t token) {
  if (model_->layout(layer).memory.empty()) return {};
  const MixerState state = replayed(layer, token + 1);
  return StateDownload(model_->backend(layer), state.memory[0]).wait();
}

HeadState Run::head_state(std::int64_t layer, std::int64_t head, std::int64_t token) {
  if (model_->layout(layer).memory.empty()) return {};
  const MixerState state = replayed(layer, token + 1);
  return HeadDownload(model_->backend(layer), state.memory[0], head, false).wait();
}

const Run::Around& Run::around(std::int64_t layer, std::int64_t token) {
  if (token + 1 < first_) return parent_->around(layer, token);
  if (around_.layer == layer && around_.token == token) return around_;
  around_ = {};
  Backend& backend = model_->backend(layer);
  const auto copy_of = [&](const MixerState& state) {
    const Tensor memory = state.memory[0];
    Buffer copy = backend.allocate(static_cast<std::size_t>(memory.shape.size()) * sizeof(float));
    backend.copy(Tensor(copy.get(), DType::f32, memory.shape), memory);
    return copy;
  };
  MixerState state = replayed(layer, token);
  Around found{layer, token, copy_of(state), {}};
  step(layer, state, token);
  if (!is_keyframe(token)) {
    found.after = copy_of(state);
    return around_ = std::move(found);
  }
  // A keyframe was made in another order of sums. So that what the token leaves alone is the same before and after it, before ←
  // keyframe − (stepped − before).
  const MixerState keyframe = replayed(layer, token + 1);
  found.after = copy_of(keyframe);
  if (token == 0) return around_ = std::move(found);
  const Tensor before(found.before.get(), DType::f32, state.memory[0].shape), change = state.memory[0];
  backend.add(change, change, before, -1);
  backend.add(before, keyframe.memory[0], change, -1);
  return around_ = std::move(found);
}

std::pair<LayerState, LayerState> Run::states_around(std::int64_t layer, std::int64_t token) {
  if (model_->layout(layer).memory.empty()) return {};
  const Shape& shape = model_->layout(layer).memory[0].shape;
  const Around& found = around(layer, token);
  StateDownload before(model_->backend(layer), ConstTensor(found.before.get(), DType::f32, shape));
  StateDownload after(model_->backend(layer), ConstTensor(found.after.get(), DType::f32, shape));
  return {before.wait(), after.wait()};
}

std::pair<HeadState, HeadState> Run::head_states_around(std::int64_t layer, std::int64_t head, std::int64_t token) {
  if (model_->layout(layer).memory.empty()) return {};
  const Shape& shape = model_->layout(layer).memory[0].shape;
  const Around& found = around(layer, token);
  HeadDownload before(model_->backend(layer), ConstTensor(found.before.get(), DType::f32, shape), head, true);
  HeadDownload after(model_->backend(layer), ConstTensor(found.after.get(), DType::f32, shape), head, true);
  return {before.wait(), after.wait()};
}

std::shared_ptr<const Routing> Run::routing(std::int64_t layer) {
  std::optional<Routes>& routes = routes_[static_cast<std::size_t>(layer)];
  if (!routes) return nullptr;
  const std::int64_t rows = routes->selected.count();
  if (rows == 0) return routes->routing;
  // A longer run gets a routing of its own, so that what has been handed out stays as it was.
  if (routes->routing.use_count() > 1) routes->routing = std::make_shared<Routing>(*routes->routing);
  Routing& routing = *routes->routing;
  const std::int64_t first = routing.tokens();
  routes->gate.take(routing.gate);
  routing.selected.resize(routing.gate.size(), 0);
  std::vector<std::int32_t> chosen;
  routes->selected.take(chosen);
  const auto width = static_cast<std::int64_t>(chosen.size()) / rows;
  for (std::int64_t i = 0; i < rows * width; ++i)
    routing.selected[static_cast<std::size_t>((first + i / width) * routing.partitions + chosen[static_cast<std::size_t>(i)])] = 1;
  return routes->routing;
}

}  // namespace statescope
