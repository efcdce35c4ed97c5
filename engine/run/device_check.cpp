#include "engine/run/device_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/config/host_floats.h"
#include "engine/error.h"
#include "engine/model/model.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostTokens = 1024;  // of a pass: every value of all layers is held on the host

/// A named value of a pass.
struct Value {
  std::int64_t layer = 0;
  std::string name;
  Shape shape;
  std::vector<float> numbers;
  bool of_tokens = true;  // else what a layer holds after the last of them
};

/// Everything that a pass computes on the way, in its order.
class Watched final : public Observer {
 public:
  explicit Watched(Backend& backend) : backend_(backend) {}
  void residual(std::int64_t layer, ConstTensor x) override { add(layer, "residual stream", x); }
  void channel(std::int64_t layer, std::string_view name, ConstTensor x) override { add(layer, name, x); }
  bool wants_all() const override { return true; }

  std::vector<Value> values;

 private:
  void add(std::int64_t layer, std::string_view name, ConstTensor x) {
    Value value{.layer = layer, .name = std::string(name), .shape = x.shape, .numbers = {}};
    if (x.dtype == DType::i32) {
      std::vector<std::int32_t> whole(static_cast<std::size_t>(x.shape.size()));
      backend_.download(Tensor(whole.data(), DType::i32, x.shape), x);
      value.numbers.assign(whole.begin(), whole.end());
    } else {
      value.numbers = host_floats(backend_, x);
    }
    values.push_back(std::move(value));
  }
  Backend& backend_;
};

/// One model and its place in the text.
struct Reader {
  Model& model;
  ModelState state;
  Buffer memory{};

  explicit Reader(Model& model_) : model(model_), state(model_.start()) {}

  Tensor room(Shape shape) {
    memory = model.backend().allocate(static_cast<std::size_t>(shape.size()) * sizeof(float));
    return Tensor(memory.get(), DType::f32, shape);
  }
  std::vector<Value> watched(std::span<const std::int32_t> ids) {
    Watched seen(model.backend());
    model.forward(state, ids, {}, room({std::ssize(ids), model.hidden()}), &seen);
    return std::move(seen.values);
  }
  /// The logits after one token, read as generating reads it.
  Value step(std::int32_t id) {
    const Tensor hidden = room({1, model.hidden()});
    const Buffer logits_memory = model.backend().allocate(static_cast<std::size_t>(model.vocab()) * sizeof(float));
    const Tensor logits(logits_memory.get(), DType::f32, {1, model.vocab()});
    model.forward(state, {&id, 1}, {.chunk_size = 0, .outputs = 1, .logits = logits}, hidden);
    return {.layer = model.layers(), .name = "logits", .shape = logits.shape, .numbers = host_floats(model.backend(), logits)};
  }
  std::vector<Value> states() {
    std::vector<Value> all;
    for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
      const MixerState& mixer = state.layers[static_cast<std::size_t>(layer)];
      const auto add = [&](std::string name, ConstTensor x) {
        all.push_back(
            {.layer = layer, .name = std::move(name), .shape = x.shape, .numbers = host_floats(model.backend(), x), .of_tokens = false});
      };
      for (std::size_t i = 0; i < mixer.memory.size(); ++i) add("state " + model.layout(layer).memory[i].name, mixer.memory[i]);
      for (std::size_t i = 0; i < mixer.conv_caches.size(); ++i) add(fmt::format("convolution cache {}", i), mixer.conv_caches[i]);
    }
    return all;
  }
};

/// Of all axes from `first` on.
std::vector<std::int64_t> indices_in(std::int64_t at, const Shape& shape, int first) {
  std::vector<std::int64_t> indices;
  for (int axis = shape.rank() - 1; axis >= first; --axis) {
    indices.insert(indices.begin(), at % shape[axis]);
    at /= shape[axis];
  }
  return indices;
}

class Comparison {
 public:
  Comparison(DeviceCheck& found, double tolerance) : found_(found), tolerance_(tolerance) {}

  /// Values of the tokens from `token` on. Returns whether all are alike, within the tolerance.
  bool alike(const std::vector<Value>& ones, const std::vector<Value>& others, std::int64_t token, bool stepwise) {
    std::map<std::pair<std::int64_t, std::string>, const Value*> by_name;
    for (const Value& value : others) by_name[{value.layer, value.name}] = &value;
    for (const Value& value : ones) {
      const auto other = by_name.find({value.layer, value.name});
      if (other == by_name.end()) continue;  // a way that has no such value
      if (!compare(value, *other->second, token, stepwise)) return false;
    }
    return true;
  }

 private:
  bool compare(const Value& one, const Value& other, std::int64_t token, bool stepwise) {
    if (one.numbers.size() != other.numbers.size())
      throw Error(
          fmt::format("{} of layer {} is {} here and {} there", one.name, one.layer, one.shape.to_string(), other.shape.to_string()));
    found_.values += std::ssize(one.numbers);
    double scale = 0;
    for (const Value* value : {&one, &other}) {
      for (const float x : value->numbers) scale = std::isfinite(x) ? std::max(scale, std::abs(double{x})) : scale;
    }
    std::optional<DeviceDifference> worst;
    for (std::size_t i = 0; i < one.numbers.size(); ++i) {
      const double a = one.numbers[i], b = other.numbers[i];
      const double relative = a == b ? 0 : std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) / scale : HUGE_VAL;
      if (worst && !(relative > worst->relative)) continue;
      const auto at = static_cast<std::int64_t>(i);
      worst = DeviceDifference{one.layer, one.name, token, indices_in(at, one.shape, one.of_tokens ? 1 : 0), a, b, relative, stepwise};
      if (one.of_tokens) worst->token += at / one.shape.row_size();
    }
    if (!worst) return true;
    DeviceDifference& largest = found_.largest[static_cast<std::size_t>(one.layer)];
    if (worst->relative > largest.relative || largest.name.empty()) largest = *worst;
    if (worst->relative <= tolerance_) return true;
    found_.first = worst;
    return false;
  }

  DeviceCheck& found_;
  double tolerance_;
};

}  // namespace

std::string DeviceDifference::text(std::int64_t layers) const {
  const std::string where = layer == layers ? "after the last layer" : fmt::format("layer {}", layer);
  const std::string index = element.empty() ? "" : fmt::format(" [{}]", fmt::join(element, ", "));
  return fmt::format("{}, {} after token {}{}{}: {:.6g} and {:.6g}", where, name, token, index, stepwise ? ", in a token's step" : "", one,
                     other);
}

DeviceCheck check_devices(Model& one, Model& other, std::span<const std::int32_t> ids, std::int64_t steps, double tolerance,
                          const std::function<bool(double)>& progress) {
  one.check_ids(ids);
  const std::int64_t n = std::ssize(ids), in_passes = n - std::min(steps, n - 1);
  const std::int64_t pass = std::min({one.backend().tokens_at_once(), other.backend().tokens_at_once(), kMostTokens});
  DeviceCheck found;
  found.largest.resize(static_cast<std::size_t>(one.layers() + 1));
  Comparison comparison(found, tolerance);
  Reader a(one), b(other);
  const auto tell = [&](std::int64_t read) {
    if (progress && !progress(static_cast<double>(read) / static_cast<double>(n))) throw Cancelled();
  };
  for (std::int64_t from = 0; from < in_passes; from += pass) {
    tell(from);
    const auto part = ids.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(std::min(pass, in_passes - from)));
    found.tokens += std::ssize(part);
    if (!comparison.alike(a.watched(part), b.watched(part), from, false)) return found;
    if (!comparison.alike(a.states(), b.states(), found.tokens - 1, false)) return found;
  }
  for (std::int64_t at = in_passes; at < n; ++at) {
    tell(at);
    const std::int32_t id = ids[static_cast<std::size_t>(at)];
    ++found.steps;
    if (!comparison.alike({a.step(id)}, {b.step(id)}, at, true) || !comparison.alike(a.states(), b.states(), at, true)) return found;
  }
  tell(n);
  return found;
}

}  // namespace statescope
