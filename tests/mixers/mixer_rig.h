// One mixer of a small model by itself: its input is given, everything it shows is kept.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test {

/// A channel over all passes; `shape` is that of one pass's tensor with all rows.
struct Channel {
  Shape shape;
  DType dtype = DType::f32;
  std::vector<float> floats;
  std::vector<std::int32_t> integers;
  std::span<const float> row(std::int64_t t) const {
    return std::span(floats).subspan(static_cast<std::size_t>(t * shape.row_size()), static_cast<std::size_t>(shape.row_size()));
  }
};

class Channels final : public ChannelSink {
 public:
  void channel(std::string_view name, ConstTensor values) override {
    Channel& all = by_name[std::string(name)];
    if (all.shape.rank() == 0) {
      all.shape = values.shape;
      all.shape[0] = 0;
      all.dtype = values.dtype;
    }
    all.shape[0] += values.rows();
    for (std::int64_t t = 0; t < values.rows(); ++t) {
      if (values.dtype == DType::i32) {
        all.integers.insert(all.integers.end(), values.i32(t), values.i32(t) + values.row_size());
      } else {
        all.floats.insert(all.floats.end(), values.f32(t), values.f32(t) + values.row_size());
      }
    }
  }
  bool wants_all() const override { return true; }
  std::map<std::string, Channel> by_name;
};

/// Tokens, and how the memories read them (0: step form).
struct Piece {
  std::int64_t tokens, chunk_size;
};
using Way = std::vector<Piece>;
inline Way steps(std::int64_t T) { return Way(static_cast<std::size_t>(T), Piece{1, 0}); }

/// What a mixer did with its tokens.
struct Pass {
  std::vector<float> y;  // [T, D]
  MixerState state;
  std::map<std::string, Channel> channels;
  const Channel& operator[](const std::string& name) const { return channels.at(name); }
};

inline std::vector<float> values_of(ConstTensor x) {
  std::vector<float> values;
  for (std::int64_t t = 0; x && t < x.rows(); ++t) values.insert(values.end(), x.f32(t), x.f32(t) + x.row_size());
  return values;
}

class MixerRig {
 public:
  MixerRig(std::shared_ptr<const Checkpoint> checkpoint, std::int64_t layer)
      : checkpoint_(std::move(checkpoint)),
        plan_(plan_model(Config::parse(checkpoint_->config))),
        weights_(regular_tensors(*checkpoint_, plan_), *backend_),
        workspace_(*backend_) {
    const LayerPlan& layer_plan = plan_.layers[static_cast<std::size_t>(layer)];
    row = &mixer_row(layer_plan.mixer);
    mixer = row->build({layer_plan.config, WeightScope(weights_, layer_plan.mixer_prefix), layer});
    layout = mixer->layout();
    const std::int64_t beside = layer_plan.companion_layer < 0 ? plan_.companion_parts : 1;
    input_width_ = (1 + (layer_plan.reads_companion ? beside : 0)) * plan_.hidden;
  }
  explicit MixerRig(const Editable& edited, std::int64_t layer = 0) : MixerRig(edited.checkpoint(), layer) {}

  /// Of x, with the companion where the mixer reads one; and of y.
  std::int64_t input_width() const { return input_width_; }
  std::int64_t hidden() const { return plan_.hidden; }
  std::vector<float> some_input(std::int64_t T, std::uint32_t seed = 3) const {
    std::mt19937 random(seed);
    std::vector<float> x;
    for (std::int64_t i = 0; i < T * input_width(); ++i) x.push_back(static_cast<float>(random() >> 8) * 0x1p-23F * 1.7F - 1.7F);
    return x;
  }
  MixerState start() const { return make_state(layout, *backend_); }

  /// Reads x [T, input_width()] as `way` cuts it. All scratch memory and y hold NaN beforehand.
  Pass read(std::span<const float> x, const Way& way, bool state_only = false) {
    Channels channels;
    Pass pass = read(x, way, state_only, &channels);
    pass.channels = std::move(channels.by_name);
    return pass;
  }
  /// The same, and nobody asks for a channel.
  Pass read_unwatched(std::span<const float> x, const Way& way) { return read(x, way, false, nullptr); }
  Pass read(std::span<const float> x) { return read(x, {{static_cast<std::int64_t>(x.size()) / input_width(), 64}}); }

  const MixerRow* row;
  std::unique_ptr<Mixer> mixer;
  MixerLayout layout;

 private:
  Pass read(std::span<const float> x, const Way& way, bool state_only, ChannelSink* channels) {
    const auto T = static_cast<std::int64_t>(x.size()) / input_width();
    Pass pass{std::vector<float>(static_cast<std::size_t>(T * hidden()), std::nanf("")), start(), {}};
    poison();
    std::int64_t position = 0;
    for (const Piece& piece : way) {
      const Workspace::Mark mark(workspace_);
      Context ctx(*backend_, workspace_, piece.tokens);
      ctx.position = position;
      ctx.prompt_length = T;
      ctx.chunk_size = piece.chunk_size;
      ctx.channels = channels;
      ctx.state_only = state_only;
      const ConstTensor rows(x.data() + position * input_width(), DType::f32, {piece.tokens, input_width()});
      mixer->forward(ctx, rows, pass.state, Tensor(pass.y.data() + position * hidden(), DType::f32, {piece.tokens, hidden()}));
      position += piece.tokens;
    }
    REQUIRE(position == T);
    return pass;
  }
  void poison() {
    const Workspace::Mark mark(workspace_);
    backend_->fill(workspace_.tensor({std::int64_t{1} << 19}), std::nanf(""));
  }

  std::shared_ptr<Backend> backend_ = make_cpu_backend(1);
  std::shared_ptr<const Checkpoint> checkpoint_;
  Plan plan_;
  std::int64_t input_width_ = 0;
  StoredWeights weights_;
  Workspace workspace_;
};

/// ‖a − b‖ / ‖b‖; infinite if the sizes differ, NaN if a number is.
inline double difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  return std::equal(a.begin(), a.end(), b.begin()) ? 0 : relative_error(a, b);
}

/// max |a − b|
inline double largest_distance(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

/// The channels in which two passes differ by more than rounding; "state" and "y" among them.
inline std::set<std::string> changed(const Pass& a, const Pass& b, double rounding = 1e-4) {
  std::set<std::string> names;
  REQUIRE(a.channels.size() == b.channels.size());
  for (const auto& [name, channel] : a.channels) {
    const Channel& other = b[name];
    if (difference(channel.floats, other.floats) > rounding || channel.integers != other.integers) names.insert(name);
  }
  if (difference(values_of(a.state.everything), values_of(b.state.everything)) > rounding) names.insert("state");
  if (difference(a.y, b.y) > rounding) names.insert("y");
  return names;
}

inline void check_same_state(const MixerState& a, const MixerState& b, double tolerance) {
  CHECK(difference(values_of(a.everything), values_of(b.everything)) <= tolerance);
  REQUIRE(a.kv.length == b.kv.length);
  if (a.kv.length == 0) return;
  CHECK(difference(values_of(a.kv.k.slice(0, a.kv.length)), values_of(b.kv.k.slice(0, b.kv.length))) <= tolerance);
  CHECK(difference(values_of(a.kv.v.slice(0, a.kv.length)), values_of(b.kv.v.slice(0, b.kv.length))) <= tolerance);
  if (a.kv.index) CHECK(difference(values_of(a.kv.index.slice(0, a.kv.length)), values_of(b.kv.index.slice(0, b.kv.length))) <= tolerance);
}

}  // namespace statescope::test
