// A language model, whole: embedding, blocks, head (spec §1.1).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/mixers/mixer.h"
#include "engine/model/family.h"
#include "engine/model/ffn.h"
#include "engine/model/observer.h"
#include "engine/model/placement.h"
#include "engine/model/steps.h"
#include "engine/snapshot.h"

namespace statescope {

/// What the model carries from token to token.
struct ModelState {
  std::vector<MixerState> layers;
  std::int64_t position = 0;  // tokens read so far
};

struct ForwardOptions {
  std::int64_t chunk_size = 64;    // of the memories; 0: step form, one token at a time
  std::int64_t prompt_length = 0;  // of the sequence, see Context
  // Of so many of the last tokens `hidden` is wanted; with the others the last block brings forward its memory and does nothing else,
  // unless somebody observes. None: of all.
  std::optional<std::int64_t> outputs = {};
  Tensor logits = {};            // [n, V]: where those of the last n tokens go, n at most `outputs`; absent: nowhere
  std::int64_t piece = 0;        // tokens that go from device to device together, where devices take turns; 0: as many as pays
  std::span<const Rules> rules;  // [layers]; empty: the model's own
  Tensor companion = {};  // [T, parts · D] of the same tokens (Companion), where a pass begins behind layer 0 of a model that has one
  std::span<const Tensor> entered = {};  // [layers] what entered each block, where a pass begins behind one that a later layer reads of
};

/// A model's weights in their places.
struct Stack {
  struct Block {
    /// A norm of the stream: RMSNorm, or with the mean taken away; absent: none.
    struct Norm {
      ConstTensor weight, bias;
      explicit operator bool() const { return static_cast<bool>(weight); }
    };
    /// Norms before and after one of the two parts, absent: none; and how the part enters the residual stream.
    struct Norms {
      Norm before, after;
      Residual residual;
    };
    std::unique_ptr<Mixer> mixer;  // null: none
    MixerLayout layout;
    Norms mixer_norms, ffn_norms;
    std::unique_ptr<Ffn> ffn;  // null: none
    bool reads_companion = false;
    std::int64_t companion_layer = -1;  // as in the plan
    bool is_companion = false;          // of a later layer

    /// The part of the state that is the FFN's.
    std::span<const Tensor> ffn_caches(const MixerState& state) const {
      return std::span(state.conv_caches).last(ffn ? ffn->cache_shapes().size() : 0);
    }
  };
  ConstTensor embeddings, head, memory_tokens;
  Block::Norm embedding_norm, norm;
  std::vector<Block> blocks;

  Stack(const Plan& plan, Weights& weights);
};

/// Every tensor that a model of this config needs, with its shape. Throws Error.
std::vector<TensorSpec> model_tensors(const Config& config);

/// Not for use by two threads at once: scratch memory is shared.
class Model {
 public:
  /// Throws Error: which tensor or key, what was found, what was expected. On several devices (kernels/devices.h) the layers are placed by
  /// what they take, or so many on each as `layers_of_devices` says.
  static std::shared_ptr<Model> load(std::shared_ptr<const Checkpoint> checkpoint, std::shared_ptr<Backend> backend,
                                     std::span<const std::int64_t> layers_of_devices = {});
  /// The same weights, held once, with scratch memory of its own: for another thread, while this one works. `backend` is another of the
  /// same device and precision.
  std::shared_ptr<Model> beside(std::shared_ptr<Backend> backend) const;

  const Plan& plan() const { return plan_; }
  std::int64_t layers() const { return static_cast<std::int64_t>(stack_.blocks.size()); }
  std::int64_t hidden() const { return plan_.hidden; }
  bool has_companion() const { return plan_.companion != Companion::none; }
  bool reads_companion(std::int64_t layer) const { return stack_.blocks[static_cast<std::size_t>(layer)].reads_companion; }
  /// Which of the streams is the companion of a layer that reads one.
  std::int64_t companion_stream(std::int64_t layer) const {
    const std::int64_t of_layer = stack_.blocks[static_cast<std::size_t>(layer)].companion_layer;
    return of_layer < 0 ? layers() + 1 : of_layer;
  }
  /// How many streams in succession, from that one on, are the companion of a layer that reads one.
  std::int64_t companion_parts(std::int64_t layer) const { return companion_stream(layer) < layers() ? 1 : companion_parts(); }
  std::int64_t companion_parts() const { return plan_.companion_parts; }
  /// Rows [D] of a token that tell all about it: what enters each block, what leaves the last one, and the parts of the companion, where
  /// there is one.
  std::int64_t streams() const { return layers() + 1 + (has_companion() ? companion_parts() : 0); }
  std::int64_t vocab() const { return plan_.vocab; }
  const Checkpoint& checkpoint() const { return *loaded_->checkpoint; }
  const std::shared_ptr<const Checkpoint>& checkpoint_ptr() const { return loaded_->checkpoint; }
  /// All that it runs on. Memory that is asked for here is where embeddings, head and logits are.
  Backend& backend() const { return *backend_; }
  /// Where a layer and its states live; of layer = number of layers, or behind it: as above.
  Backend& backend(std::int64_t layer) const { return place_of(layer).backend; }
  /// Bytes that a recording could take, which lies where the layers do.
  std::size_t free_bytes() const;
  /// Null for a layer that is an MLP or experts alone.
  const Mixer* mixer(std::int64_t layer) const { return stack_.blocks[static_cast<std::size_t>(layer)].mixer.get(); }
  const MixerLayout& layout(std::int64_t layer) const { return stack_.blocks[static_cast<std::size_t>(layer)].layout; }
  /// What was passed over or mended on the way from the files to the model, a sentence each: the checkpoint's notes, then the plan's.
  const std::vector<std::string>& notes() const { return plan_.notes; }
  ModelInfo info() const;
  /// Bytes of weights that one token reads: all of them but the embedding table, of which it reads a row.
  std::int64_t bytes_per_token() const;

  /// The start of a sequence: zeros, and what memory tokens leave behind where the model has such.
  ModelState start();
  /// The same of one layer.
  MixerState start(std::int64_t layer);
  /// Throws Error for an id outside the vocabulary.
  void check_ids(std::span<const std::int32_t> ids) const;

  /// Reads T tokens; `hidden` [T, D] becomes the residual stream after the last block, in the rows that the options want. It and logits are
  /// memory of backend(). Throws Error for ids outside the vocabulary.
  void forward(ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options, Tensor hidden,
               Observer* observer = nullptr);
  /// How many of a pass's tokens devices read together: fewer than all where several devices work on one piece each at a time.
  std::int64_t piece_of(std::int64_t tokens, const ForwardOptions& options, const Observer* observer) const;
  /// Goes on with the blocks from `layer` on: x [T, D], the residual stream of the tokens behind the state's position as it enters that
  /// block, becomes what leaves the last one. Their states come forward; the position, and the states before them, stay.
  void forward_from(std::int64_t layer, ModelState& state, const ForwardOptions& options, Tensor x);
  /// logits [T, V] = RMSNorm(hidden; norm) · lm_headᵀ
  void logits(Tensor logits, ConstTensor hidden);
  /// Brings one layer's state forward over recorded residual streams [T, D] that entered its block, the first of them at `position`, with
  /// its companion in `options` where the layer reads one. What the mixer puts out, and which experts are chosen behind it, is worked out
  /// only for `channels` that want all.
  void replay(std::int64_t layer, MixerState& state, ConstTensor recorded, std::int64_t position, const ForwardOptions& options,
              ChannelSink* channels = nullptr);

 private:
  /// What never changes: models beside each other have it in common.
  struct Loaded {
    std::shared_ptr<const Checkpoint> checkpoint;  // whose memory weights may lie in
    Plan plan;
    Stack stack;
    Placement placement;
    std::vector<Buffer> weight_memory;

    Loaded(std::shared_ptr<const Checkpoint> checkpoint_, Plan plan_, Placement placement_, StoredWeights weights);
  };
  /// A device, and what belongs to it.
  struct Place {
    Backend& backend;
    Workspace workspace;
    Steps steps;
    std::size_t number;

    Place(Backend& backend_, std::size_t number_) : backend(backend_), workspace(backend_), steps(backend_), number(number_) {}
  };
  /// Blocks that one device computes one after the other.
  struct Stretch {
    std::size_t place;
    std::int64_t first, end;
  };
  struct Piece;
  /// What a device does with x, tokens of a pass from `begin` on.
  using InStretch = std::function<void(const Stretch&, std::int64_t begin, const ForwardOptions&, Tensor x)>;

  Model(std::shared_ptr<const Loaded> loaded, std::shared_ptr<Backend> backend);
  void require_whole_files() const;
  Place& home() const { return *places_[Devices::home]; }
  Place& place_of(std::int64_t layer) const;
  template <class T>
  T brought(Place& place, T x);
  void pass_on(const Stretch& stretch, const ForwardOptions& options, Piece& piece, const InStretch& work);
  void go(std::int64_t first, const ForwardOptions& options, Tensor x, std::int64_t piece, const InStretch& work);
  void norm(Place& at, Tensor y, ConstTensor x, const Stack::Block::Norm& by, float eps);
  ConstTensor beside(Place& at, ConstTensor x, ConstTensor companion);
  std::vector<Tensor> room_for_entered(const Shape& rows, std::int64_t first, std::span<const Tensor> known);
  static Tensor companion_of(const Stack::Block& block, const ForwardOptions& options);
  ConstTensor read_by_ffn(Place& at, const Stack::Block& block, ConstTensor x, ConstTensor n, ConstTensor y);
  void read_memory_tokens();
  bool adds_itself(const Stack::Block::Norms& norms) const;
  void finish_part(Place& at, Tensor y, const Stack::Block::Norms& norms, float eps);
  void blocks(const Stretch& stretch, ModelState& state, std::int64_t position, const ForwardOptions& options, Tensor x,
              Observer* observer);
  void blocks_without_outputs(const Stretch& stretch, ModelState& state, std::int64_t position, const ForwardOptions& options, Tensor x,
                              std::int64_t unwanted);

  std::shared_ptr<const Loaded> loaded_;
  std::shared_ptr<Backend> backend_;
  const Plan& plan_;
  const Stack& stack_;
  std::vector<std::unique_ptr<Place>> places_;  // at least one; the first is home
  std::vector<Stretch> stretches_;              // all blocks; the last is at home, where the head is
  std::vector<MixerState> begun_;               // [layers] behind the memory tokens, once somebody has asked
};

}  // namespace statescope
