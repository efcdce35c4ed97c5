// What entered a layer's matrix memories, token by token, in one form for every family: which slot a token visited, and with which q, k, v,
// decay and β. Observables of the memory (spec §12.2, 12.3, 12.8, 12.9) and the provenance of a state are functions of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/run/run.h"

namespace statescope {

/// In the place of a token: those that a model reads before the first one.
constexpr std::int32_t kMemoryTokens = -1;

enum class MemoryRule {
  outer_product,  // S ← diag(α) S + kᵀ v, of a selective scan α ⊙ S + kᵀ v     (GLA eq. 3; SSE eq. 9; spec §17.1)
  delta,          // S̄ = α S;  S ← S̄ + kᵀ β (v − k S̄)                   (Gated DeltaNet eq. 10)
  two_keys,       // S ← α S − eᵀ (p S) + kᵀ v                           (RWKV-7, spec §17.10)
};

/// The tokens that visited a slot, in their order: those that the routing sent there, for a shared slot all; where a token takes several
/// steps of the delta rule, so many times. Rows are contiguous. An intervention on the state after a token is a visit of that token too,
/// which reads nothing: scaling is a decay; an imported state, or one that was scaled by a number below 0, is forgotten and written anew
/// row by row. So is, before all, what a model's memory tokens have written, of token kMemoryTokens.
struct SlotVisits {
  std::vector<std::int32_t> token;  // [n]
  std::vector<float> q, k;          // [n, H, K], with all gates and norms; q times the memory's scale, 0 where the token does not read,
                                    // k 0 where it does not write
  std::vector<float> v;             // [n, H, V]
  std::vector<float> log_decay;     // [n, H, decay_width]
  std::vector<float> beta;          // [n, H]; delta rule alone
  std::vector<float> erase_key;     // [n, H, K]; two keys alone: p
  std::vector<float> erase_along;   // [n, H, K]; the same: e
  std::vector<float> dt;            // [n, H, V]; selective scan alone: Δ, as the decays have it
  std::vector<float> o;             // [n, H, V]: what the token read here, q S; where it reads first, of the S before it
  std::vector<std::int64_t> edits;  // which of the n are interventions, ascending

  std::int64_t count() const { return static_cast<std::int64_t>(token.size()); }
  /// Whether visit i is an intervention.
  bool is_edit(std::int64_t i) const;
  /// How many of them are not after `token_`.
  std::int64_t until(std::int64_t token_) const;
  /// The visit in which the token itself came and read, of several the last; −1: it did not.
  std::int64_t reading(std::int64_t token_) const;
};

struct MemoryTrace {
  MemoryRule rule = MemoryRule::outer_product;
  DecayAxis decay_axis = DecayAxis::rows;
  std::int64_t H = 0, K = 0, V = 0;
  bool reads_first = false;      // before the token's own decay and write (RWKV-6)
  std::int64_t steps = 1;        // visits of one token, one after the other (Gated DeltaProduct)
  std::int64_t decay_width = 0;  // 0: no decay, 1: one number a head, else one a row (or column, see decay_axis)
  std::vector<float> rates;      // [H, K, V]: A of a selective scan, whose cells each have a decay of their own; else empty
  std::vector<SlotVisits> slots;

  /// Whether every cell decays on its own: log α of a cell is Δ A of it and that of its row together.
  bool of_cells() const { return !rates.empty(); }
  /// Δ A of a cell in visit j; 0 where cells have no decay of their own.
  double log_decay_of_cell(const SlotVisits& visits, std::int64_t j, std::int64_t head, std::int64_t row, std::int64_t column) const;
};

/// log α of a slot's gates, without what interventions did to its state: the visits of the tokens themselves. Of a selective scan the mean
/// over the channels of every state's log α.
struct GateDecays {
  GateDecays(const MemoryTrace& trace, std::int64_t slot);

  std::vector<std::int32_t> token;  // [n], ascending
  std::vector<float> log_decay;     // [n, H, width]
  std::int64_t width = 0;           // MemoryTrace::decay_width; of a selective scan K
};

/// Runs single layers again and keeps what their memories are given. It has the model a second time, on the CPU in float32; weights stay
/// mapped. Not for use by two threads at once.
class MemoryTracer {
 public:
  /// Throws Error.
  explicit MemoryTracer(std::shared_ptr<const Checkpoint> checkpoint, int threads = 0);
  ~MemoryTracer();

  /// Of every matrix memory of the layer, in the order in which they are computed (most have one, GSA and normalised linear attention two,
  /// softmax none), from the start of the sequence. `residual` [T, D]: what entered the block. `channels` hears what the mixer computes on
  /// the way, in host memory. `course`: Run::course of the T tokens, where the run is a branch; empty: nothing was changed. `companion` [T,
  /// parts · D]: what went beside the stream, where the layer reads it. Throws std::bad_alloc.
  std::vector<MemoryTrace> trace(std::int64_t layer, std::span<const float> residual, std::int64_t prompt_length,
                                 ChannelSink* channels = nullptr, std::span<const Stretch> course = {},
                                 std::span<const float> companion = {});

  /// Of the softmax attention of a layer the keys of the model's memory tokens, [memory tokens, kv_heads, d]; empty: it has none.
  std::vector<float> memory_keys(std::int64_t layer);

 private:
  class Backend;
  void edit(MixerState& state, const MixerLayout& layout, const Stretch& stretch);

  std::shared_ptr<Backend> backend_;
  std::shared_ptr<Model> model_;
};

}  // namespace statescope
