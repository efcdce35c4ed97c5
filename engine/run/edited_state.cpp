// What interventions change of a layer's state.
#include <variant>

#include "engine/model/model.h"
#include "engine/run/intervention.h"

namespace statescope {
namespace {

/// S ← factor · S, where the address says.
void apply(const ScaleState& scale, MixerState& state, const MixerLayout& layout, Backend& backend) {
  const Buffer memory = backend.allocate(sizeof(float));
  const Tensor factor(memory.get(), DType::f32, {1, 1});
  backend.fill(factor, scale.factor);
  for (std::size_t m = 0; m < layout.memory.size(); ++m) {
    if (scale.row && m > 0 && layout.memory[m].name != "z") continue;
    const Shape& shape = layout.memory[m].shape;  // [slots, H, K, V]
    for (std::int64_t slot = 0; slot < shape[0]; ++slot) {
      if (scale.partition && slot != slot_of(*scale.partition, layout)) continue;
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        if (scale.head && h != *scale.head) continue;
        const std::int64_t first = (h * shape[2] + scale.row.value_or(0)) * shape[3], count = (scale.row ? 1 : shape[2]) * shape[3];
        const Tensor part = state.memory[m].slice(slot, 1).columns(first, {1, count});
        if (scale.factor == 0) {
          backend.fill(part, 0);  // NaN and ∞ too
        } else {
          backend.scale_heads(part, part, factor);
        }
      }
    }
  }
}

}  // namespace

void Schedule::edit(std::int64_t layer, MixerState& state, std::int64_t tokens, const Model& model) const {
  const auto [begin, end] = edits_.equal_range(tokens);
  for (auto entry = begin; entry != end; ++entry) {
    const Edit& edit = entry->second;
    if (edit.layer != layer) continue;
    if (!edit.imported) {
      apply(edit.scale, state, model.layout(layer), model.backend(layer));
      continue;
    }
    if (state.everything) model.backend().copy(state.everything, edit.imported->everything);
    state.kv = edit.imported->kv;
  }
}

}  // namespace statescope
