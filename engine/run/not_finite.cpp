#include "engine/run/not_finite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/config/host_floats.h"
#include "engine/config/weights.h"
#include "engine/run/run.h"
#include "kernels/cpu/parallel.h"

namespace statescope {
namespace {

constexpr std::int64_t kPiece = 1 << 18;  // elements scanned by a thread at once
constexpr std::int64_t kRows = 4096;      // of a residual stream, brought to the host at once

/// The first element whose exponent has all its bits: the number is NaN or infinite. n: there is none.
template <class Bits>
std::int64_t first_not_finite(const Bits* values, std::int64_t n, Bits exponent) {
  constexpr std::int64_t block = 1024;  // looked at without a branch
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(begin + block, n);
    Bits any = 0;
    for (std::int64_t i = begin; i < end; ++i) any |= static_cast<Bits>((values[i] & exponent) == exponent);
    if (any == 0) continue;
    return std::find_if(values + begin, values + end, [&](Bits value) { return (value & exponent) == exponent; }) - values;
  }
  return n;
}

std::int64_t first_not_finite(std::span<const float> values) {
  return first_not_finite(reinterpret_cast<const std::uint32_t*>(values.data()), std::ssize(values), std::uint32_t{0x7f800000});
}

/// Elements [begin, begin + n) of a stored tensor; n: all are finite.
std::int64_t first_not_finite(const StoredTensor& tensor, std::int64_t begin, std::int64_t n) {
  const std::byte* data = tensor.data + static_cast<std::size_t>(begin) * size_of(tensor.dtype);
  switch (tensor.dtype) {
    case DType::f32:
      return first_not_finite(reinterpret_cast<const std::uint32_t*>(data), n, std::uint32_t{0x7f800000});
    case DType::f16:
      return first_not_finite(reinterpret_cast<const std::uint16_t*>(data), n, std::uint16_t{0x7c00});
    case DType::bf16:
      return first_not_finite(reinterpret_cast<const std::uint16_t*>(data), n, std::uint16_t{0x7f80});
    case DType::f8:  // e4m3fn: all bits but the sign's are NaN, and nothing is infinite
      return first_not_finite(reinterpret_cast<const std::uint8_t*>(data), n, std::uint8_t{0x7f});
    case DType::i32:
      return n;
  }
  return n;
}

/// The first of the whole tensor; its size: there is none.
std::int64_t first_not_finite(const StoredTensor& tensor) {
  const std::int64_t size = tensor.size();
  std::atomic<std::int64_t> first = size;
  parallel_for((size + kPiece - 1) / kPiece, [&](std::int64_t piece) {
    const std::int64_t begin = piece * kPiece, n = std::min(kPiece, size - begin);
    if (begin >= first) return;
    const std::int64_t found = first_not_finite(tensor, begin, n);
    std::int64_t known = first;
    while (found < n && begin + found < known && !first.compare_exchange_weak(known, begin + found)) {
    }
  });
  return first;
}

/// Remembers which of a checkpoint's tensors a model reads: others, of a vision tower, say, may hold what they like.
class AskedWeights final : public Weights {
 public:
  AskedWeights(std::vector<StoredTensor> tensors, LookedThrough which) : which_(which) {
    for (StoredTensor& tensor : tensors) tensors_.emplace(tensor.name, tensor);
  }

  bool has(const std::string& name) const override { return tensors_.contains(name); }
  std::int64_t extent(const std::string& name, std::size_t axis, std::int64_t fallback) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() || axis >= found->second.shape.size() ? fallback : found->second.shape[axis];
  }
  ConstTensor matrix(const std::string& name, std::vector<std::int64_t> /*shape*/) override { return ask(name).matrix(); }
  ConstTensor expert_matrix(const std::string& name, std::vector<std::int64_t> /*shape*/) override {
    return which_ == LookedThrough::all ? ask(name).matrix() : tensors_.at(name).matrix();
  }
  ConstTensor matrix_in_order(const std::string& name, std::vector<std::int64_t> /*shape*/, std::span<const std::int64_t>) override {
    return ask(name).matrix();
  }
  ConstTensor floats(const std::string& name, std::vector<std::int64_t> /*shape*/) override { return ask(name).matrix(); }
  std::vector<float> host(const std::string& name, std::vector<std::int64_t> /*shape*/) override {
    const StoredTensor& tensor = ask(name);
    std::vector<float> values(static_cast<std::size_t>(tensor.size()));
    widen(values.data(), tensor);
    return values;
  }
  ConstTensor constant(const std::vector<float>& values) override {
    return {tensors_.begin()->second.data, DType::f32, {std::ssize(values)}};  // nothing reads it
  }
  ConstTensor indices(const std::vector<std::int32_t>& values) override {
    return {tensors_.begin()->second.data, DType::i32, {std::ssize(values)}};  // likewise
  }

  /// In the order of their names.
  std::vector<StoredTensor> asked() const {
    std::vector<StoredTensor> all;
    for (const std::string& name : asked_) all.push_back(tensors_.at(name));
    return all;
  }

 private:
  const StoredTensor& ask(const std::string& name) {
    asked_.insert(name);
    return tensors_.at(name);
  }
  LookedThrough which_;
  std::map<std::string, StoredTensor> tensors_;
  std::set<std::string> asked_;
};

float value_at(const StoredTensor& tensor, std::int64_t element) {
  if (tensor.dtype == DType::f8) return std::nanf("");
  StoredTensor one = tensor;
  one.shape = {1};
  one.data += static_cast<std::size_t>(element) * size_of(tensor.dtype);
  float value = 0;
  widen(&value, one);
  return value;
}

std::vector<std::int64_t> indices_of(std::int64_t element, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> indices(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) indices[axis] = element % shape[axis];
  return indices;
}

/// By the plan's names.
std::optional<NotFiniteWeight> find_in_weights(const Checkpoint& checkpoint, Plan plan, LookedThrough which = LookedThrough::all) {
  AskedWeights weights(regular_tensors(checkpoint, plan), which);
  const Stack asked(plan, weights);  // only asks
  for (const StoredTensor& tensor : weights.asked()) {
    const std::int64_t at = first_not_finite(tensor);
    if (at < tensor.size()) return NotFiniteWeight{tensor.name, indices_of(at, tensor.shape), value_at(tensor, at)};
    const std::span<const float> scales = tensor.scale_values();
    const std::int64_t scale = first_not_finite(scales);
    if (scale < std::ssize(scales)) return NotFiniteWeight{tensor.name + "'s scales", {scale}, scales[static_cast<std::size_t>(scale)]};
  }
  return {};
}

/// The first of the residual stream as it enters block `layer`, or leaves the last one.
std::optional<NotFiniteActivation> find_in_stream(const Run& run, std::int64_t layer) {
  const std::int64_t D = run.model().hidden();
  for (std::int64_t from = 0; from < run.tokens(); from += kRows) {
    const std::vector<float> rows = run.residual(layer, from, std::min(from + kRows, run.tokens()));
    const std::int64_t at = first_not_finite(rows);
    if (at == std::ssize(rows)) continue;
    return NotFiniteActivation{layer - 1, from + at / D, layer == 0 ? "embedding" : "residual stream", rows[static_cast<std::size_t>(at)]};
  }
  return {};
}

/// A number that is not finite stays in the stream, so there is one behind the last block if there is one anywhere. The first layer that
/// has one counts, not the first token: a memory read by chunks spreads it to tokens before it (0 · ∞ is NaN).
std::optional<NotFiniteActivation> find_in_streams(const Run& run) {
  const std::int64_t layers = run.model().layers();
  const std::optional<NotFiniteActivation> behind = find_in_stream(run, layers);
  for (std::int64_t layer = 0; behind && layer < layers; ++layer) {
    if (const auto found = find_in_stream(run, layer)) return found;
  }
  return behind;
}

std::optional<NotFiniteActivation> find_in_states(Run& run) {
  for (std::int64_t layer = 0; layer < run.model().layers(); ++layer) {
    if (run.model().layout(layer).memory.empty()) continue;
    const std::vector<float> values = host_floats(run.model().backend(), run.mixer_state(layer, run.tokens()).everything);
    const std::int64_t at = first_not_finite(values);
    if (at < std::ssize(values)) return NotFiniteActivation{layer, run.tokens() - 1, "state", values[static_cast<std::size_t>(at)]};
  }
  return {};
}

std::optional<NotFiniteActivation> find_in_logits(Run& run) {
  const std::vector<float> logits = run.logits(run.tokens() - 1);
  const std::int64_t at = first_not_finite(logits);
  if (at == std::ssize(logits)) return {};
  return NotFiniteActivation{run.model().layers(), run.tokens() - 1, "logits", logits[static_cast<std::size_t>(at)]};
}

/// "NaN", "infinity"
std::string_view name_of_value(float value) { return std::isnan(value) ? "NaN" : value < 0 ? "−infinity" : "infinity"; }

std::string word_of(float value) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; }

std::string text_of(const NotFiniteWeight& weight) {
  return fmt::format("tensor {}, element [{}], is {}", weight.tensor, fmt::join(weight.element, ", "), name_of_value(weight.value));
}

std::string text_of(const NotFiniteActivation& activation) {
  const std::string_view value = name_of_value(activation.value);
  if (activation.quantity == "embedding") return fmt::format("the embedding of token {} is {}", activation.token, value);
  if (activation.quantity == "logits") return fmt::format("the unembedding computes {} after token {} (logits)", value, activation.token);
  return fmt::format("the model computes {} from layer {} on, at token {} ({})", value, activation.layer, activation.token,
                     activation.quantity);
}

nlohmann::json layer_json(const NotFiniteActivation& activation) {
  if (activation.quantity == "embedding") return "embedding";
  if (activation.quantity == "logits") return "head";
  return activation.layer;
}

}  // namespace

std::string NotFinite::text() const {
  if (!weight) return activation ? text_of(*activation) : "";
  return text_of(*weight) + (activation ? "; " + text_of(*activation) : "");
}

nlohmann::json to_json(const NotFinite& found) {
  if (!found) return nullptr;
  nlohmann::json all{{"weight", nullptr}, {"activation", nullptr}};
  if (const auto& weight = found.weight)
    all["weight"] = {{"tensor", weight->tensor}, {"element", weight->element}, {"value", word_of(weight->value)}};
  if (const auto& activation = found.activation)
    all["activation"] = {{"layer", layer_json(*activation)},
                         {"token", activation->token},
                         {"quantity", activation->quantity},
                         {"value", word_of(activation->value)}};
  return all;
}

std::optional<NotFiniteWeight> find_not_finite(const Model& model, LookedThrough tensors) {
  return find_in_weights(model.checkpoint(), model.plan(), tensors);
}
std::optional<NotFiniteWeight> find_not_finite(const Checkpoint& checkpoint) {
  return find_in_weights(checkpoint, plan_model(Config::parse(checkpoint.config)));
}

std::optional<NotFiniteActivation> find_not_finite(Run& run) {
  if (run.tokens() == 0) return {};
  if (const auto found = find_in_streams(run)) return found;
  if (const auto found = find_in_states(run)) return found;
  return find_in_logits(run);
}

NotFinite not_finite(Run& run) {
  const std::optional<NotFiniteActivation> activation = find_not_finite(run);
  return {find_not_finite(run.model(), activation ? LookedThrough::all : LookedThrough::all_but_experts), activation};
}

NotFinite not_finite(const std::shared_ptr<Model>& model, std::span<const std::int32_t> ids) {
  Run run(model);
  run.read(ids, std::ssize(ids));
  return not_finite(run);
}

void refuse_not_finite(const NotFinite& found, const Model& model, std::string_view wanted) {
  refuse_not_finite(found, model.checkpoint().path.string(), wanted);
}
void refuse_not_finite(const NotFinite& found, const std::string& checkpoint, std::string_view wanted) {
  if (found) throw NotFiniteError(fmt::format("{}: {}; so there is no {}", checkpoint, found.text(), wanted));
}

}  // namespace statescope
