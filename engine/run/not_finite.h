// The first number of a model, or of what it computes, that is not finite: what is worked out from it is worth nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/error.h"

namespace statescope {

class Checkpoint;
class Model;
class Run;

struct NotFiniteWeight {
  std::string tensor;
  std::vector<std::int64_t> element;  // an index for each axis
  float value = 0;                    // NaN, or infinite
};

struct NotFiniteActivation {
  std::int64_t layer = 0;  // whose block computes it; −1: the embedding, number of layers: the head
  std::int64_t token = 0;
  std::string quantity;  // "embedding", "residual stream", "state", "logits"
  float value = 0;
};

/// What there is of both.
struct NotFinite {
  std::optional<NotFiniteWeight> weight;
  std::optional<NotFiniteActivation> activation;

  explicit operator bool() const { return weight || activation; }
  /// "tensor model.norm.weight, element [3], is NaN; the model computes NaN from layer 0 on, at token 2 (residual stream)"
  std::string text() const;
};

/// {"weight": {"tensor", "element", "value"} or null, "activation": {"layer", "token", "quantity", "value"} or null}; values are "nan",
/// "inf", "-inf", a layer is its number, "embedding" or "head". Null where all is finite.
nlohmann::json to_json(const NotFinite& found);

/// Which tensors are looked through. Experts that no token goes to play no part in what is computed, and may lie on the disk still.
enum class LookedThrough { all, all_but_experts };

/// In the order of names, of the tensors that the model reads. On any thread; the time is that of reading them from memory once.
std::optional<NotFiniteWeight> find_not_finite(const Model& model, LookedThrough tensors = LookedThrough::all);
/// Likewise, without a model. Throws Error.
std::optional<NotFiniteWeight> find_not_finite(const Checkpoint& checkpoint);
/// The first token, and of it the first layer, where a residual stream is not finite; else the first layer whose state is not after the
/// last token; else the last token's logits. Throws Error.
std::optional<NotFiniteActivation> find_not_finite(Run& run);

/// Both of a run and its model; of experts where there is an activation.
NotFinite not_finite(Run& run);
/// Both, of these tokens: they are read for it.
NotFinite not_finite(const std::shared_ptr<Model>& model, std::span<const std::int32_t> ids);

/// Where something was wanted of numbers that are not finite.
class NotFiniteError : public Error {
 public:
  using Error::Error;
};
/// Throws NotFiniteError if there is something: which checkpoint, what, and that it gets no `wanted`.
void refuse_not_finite(const NotFinite& found, const Model& model, std::string_view wanted);
void refuse_not_finite(const NotFinite& found, const std::string& checkpoint, std::string_view wanted);

}  // namespace statescope
