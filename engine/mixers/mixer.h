// A mixer: projection → route → memory → readout. One class per family, each in one file that reads like its paper; table.cpp lists them.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/config.h"
#include "engine/config/weights.h"
#include "engine/mixers/rules.h"
#include "kernels/backend.h"
#include "kernels/program/kv_cache.h"

namespace statescope {

/// What a mixer keeps from one token to the next.
struct MixerLayout {
  struct Memory {
    std::string name;  // "recurrent"; GSA "recurrent_k", "recurrent_v"; normalised linear attention also "z"
    Shape shape;       // [slots, H, K, V]
  };
  std::vector<Memory> memory;                                           // matrix states; views show the first
  std::string_view memory_kind, recurrence;                             // where they are not those that the mixer's row of the table names
  std::string_view row_name = "key row", column_name = "value column";  // what a row and a column of the first memory are
  std::vector<std::string> slot_names;                                  // of the first memory: "shared", "1", …
  bool has_shared_slot = false;
  std::int64_t partitions = 0;                            // slots that tokens are routed to
  std::vector<Shape> conv_caches;                         // [slots, w − 1, C]
  std::int64_t attention_heads = 0;                       // of softmax attention; 0: none
  std::int64_t kv_heads = 0, key_dim = 0, value_dim = 0;  // of the softmax cache; 0: none; no values: keys are latents
  std::int64_t index_dim = 0;                             // of the indexer's keys in it; 0: nothing chooses tokens so
  bool decays = false, head_gates = false;
  std::int64_t steps = 1;  // writes of a token to a slot, one after the other
  bool decays_by_slot =
      false;  // log_decay is [T, slots, ...]; else it has a part for the shared slot, if there is one, and one for all others
  std::int64_t writers = 0, readers = 0;  // partitions that a token is written to, and read from; no readers: those that it is written to
};

/// The state of one layer. `memory` and `conv_caches` lie in one block of constant size: a keyframe is one copy.
struct MixerState {
  Buffer block;
  Tensor everything;                // the block as [1, n] float32
  std::vector<Tensor> memory;       // as MixerLayout::memory
  std::vector<Tensor> conv_caches;  // as MixerLayout::conv_caches
  KvCache kv;
};

/// All zeros: the start of a sequence.
MixerState make_state(const MixerLayout& layout, Backend& backend);

/// Receives what a mixer computes on the way. Tensors live on the device and only during the call.
class ChannelSink {
 public:
  virtual ~ChannelSink() = default;
  virtual void channel(std::string_view name, ConstTensor values) = 0;
  /// Whether it does anything with this channel; it may be spared others.
  virtual bool wants(std::string_view /*name*/) const { return true; }
  /// Whether it wants what costs work of its own too: output_gate and read_gate_effective, and in a replay what lies behind the memory.
  virtual bool wants_all() const { return false; }
};

/// One forward pass over T tokens of one sequence.
struct Context {
  Backend& backend;
  Workspace& workspace;
  std::int64_t tokens = 0;         // T
  std::int64_t position = 0;       // of the first of them in its sequence
  std::int64_t prompt_length = 0;  // tokens at earlier positions are the prompt; MoBA treats the rest otherwise (spec §4.8)
  std::int64_t chunk_size = 64;    // of the memories; 0: step form, T = 1
  ChannelSink* channels = nullptr;
  const Rules* rules = nullptr;  // null: the model's own
  bool state_only = false;       // replay: stop once the memory has been brought forward; y is not written
  InputNorm norm;                // what x still has to pass on its way into products: only for parts that say `folds_norm`; by default none
  Tensor residual;               // where there is such a norm: what y is added to as well

  Context(Backend& backend_, Workspace& workspace_, std::int64_t tokens_)
      : backend(backend_), workspace(workspace_), tokens(tokens_), cu_seqlens_{0, static_cast<std::int32_t>(tokens_)} {}

  /// [T, axes...] of scratch, float32: scores, decays and whatever else must not be rounded.
  Tensor tensor(std::initializer_list<std::int64_t> axes) const { return workspace.tensor(shape(axes)); }
  /// [T, axes...] of scratch for what the next product or memory rounds anyway.
  Tensor activation(std::initializer_list<std::int64_t> axes) const { return workspace.tensor(shape(axes), activation_type()); }
  DType activation_type() const { return backend.activation_type(tokens); }
  /// Whether somebody wants the channels that cost work of their own.
  bool wants_all() const { return channels && channels->wants_all() && !state_only; }
  /// All T tokens as one segment.
  std::span<const std::int32_t> cu_seqlens() const { return cu_seqlens_; }
  /// Whether somebody wants this channel, so that it must not be passed over on the way to others.
  bool wants(std::string_view name) const { return channels && channels->wants(name); }
  /// Channels are float32 or indices, whatever the type of the activation.
  void emit(std::string_view name, ConstTensor values) const {
    if (!wants(name)) return;
    if (values.dtype != DType::bf16) return channels->channel(name, values);
    const Workspace::Mark mark(workspace);
    const Tensor widened = workspace.tensor(values.shape);
    backend.copy(widened, values);
    channels->channel(name, widened);
  }

 private:
  Shape shape(std::initializer_list<std::int64_t> axes) const {
    Shape result{tokens};
    for (std::int64_t extent : axes) result.push_back(extent);
    return result;
  }

  std::array<std::int32_t, 2> cu_seqlens_;
};

/// Says what a layer computes as a program, and nothing of how: passes and the device see to that.
class Mixer {
 public:
  Mixer();
  virtual ~Mixer();
  virtual MixerLayout layout() const = 0;
  /// The layer's program from x, the normalised input, to p.result; channels are shown by name, `p.reads` and `p.readouts` are said.
  virtual void describe(program::Program& p) const = 0;

  /// What it describes.
  const program::Program& program() const;
  /// Whether x may come before its norm, with Context::norm, and y be added to Context::residual.
  bool folds_norm() const;
  /// y [T, D] = mixer(x [T, D], already normalised); `state` is brought from before the first token to after the last.
  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const;

 private:
  struct Programs;
  std::unique_ptr<Programs> programs_;
};

/// What a layer's mixer is built from.
struct MixerBuild {
  const Config& config;  // of this layer: the model's, or for a hybrid's attention layers their own
  WeightScope weights;   // tensors of the mixer: "….attn."
  std::int64_t layer;
};

/// A channel as views and dumps know it (channels.cpp).
struct ChannelRow {
  std::string_view name;
  std::string_view axes;  // after the token axis
  std::string_view unit;
  std::string_view equation;  // with its source
};
const ChannelRow& channel_row(std::string_view name);

struct MixerRow {
  std::string_view name;        // also the model_type, where a family is made of this mixer alone
  std::string_view memory;      // what kind of memory it keeps: "gated delta rule", …
  std::string_view recurrence;  // how a token changes its state, with the source; empty: it keeps none
  std::vector<std::string_view> channels;
  std::unique_ptr<Mixer> (*build)(const MixerBuild&);
};

/// All mixers, in the order of the papers.
std::span<const MixerRow> mixer_table();
/// Throws Error naming the unknown mixer and the known ones.
const MixerRow& mixer_row(std::string_view name);

/// What a mixer of this config needs: every tensor with its shape (the builder itself, run on weights that only take notes).
std::vector<TensorSpec> mixer_tensors(const MixerRow& row, const Config& config);

}  // namespace statescope
