// One sequence read by one model, kept so that any layer can be seen at any token, forwards and back at the same price.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/run/block_inputs.h"
#include "engine/run/intervention.h"
#include "engine/run/piece.h"

namespace statescope {

struct RunOptions {
  std::int64_t chunk_size = 64;        // of the memories while a prompt is read
  std::int64_t tokens_at_once = 0;     // of one forward pass; 0: as the device likes it, less where the budget is small
  std::int64_t keyframe_interval = 0;  // tokens between keyframes, doubled whenever they exceed half of the budget; 0: tokens_at_once
  std::size_t memory_budget = 0;       // bytes of the recording on the device; 0: a quarter of what is free there
  std::size_t host_memory_budget = 0;  // bytes of it beside the device's memory, more goes to a file; 0: a quarter of what is free
};

/// Forward passes of the same number of tokens, one after the other.
struct Passes {
  std::int64_t tokens = 0, times = 0;
};

/// Tokens that one layer read by the same rules, and what was done to its state behind them.
struct Stretch {
  std::int64_t to = 0;  // tokens; it begins where the one before it ends
  Rules rules;
  Schedule::Edits edits;
  std::vector<float> kept;         // MixerState::everything, after the edits; empty where there are none
  std::vector<float> k, v, index;  // and keys and values, where they were imported; the indexer's keys where there is one
};

/// Records, per token, what enters each block and how it was routed, and every so often the states of all layers, on the device that makes
/// them. A state at any token is the keyframe before it, brought forward by one layer's memory over at most `keyframe_interval` tokens.
class Run {
 public:
  explicit Run(std::shared_ptr<Model> model, RunOptions options = {});
  /// Another future of `parent`, whose first `first` tokens are this run's too: nothing of them is computed or kept again. What is read
  /// from there on follows the schedule; edits that are due after `first` tokens are made here. The budgets are the parent's, or a quarter
  /// of what is free where that is less. Throws std::bad_alloc, Error.
  Run(std::shared_ptr<Run> parent, std::int64_t first, Schedule schedule);

  /// Called with the tokens read so far; returning false stops the reading after that token.
  using Progress = std::function<bool(std::int64_t tokens)>;

  /// Reads more tokens; those before `prompt_length` are the prompt. Throws Error.
  void read(std::span<const std::int32_t> ids, std::int64_t prompt_length, const Progress& progress = {});

  /// Writes the rows [n, D] of what `residual` says to `rows`.
  using BlockInputRows = std::function<void(std::int64_t layer, float* rows)>;
  /// Takes n tokens, no more than tokens_at_once(), as a run of the same model and options read them in one pass, from the block inputs of
  /// then: states and routing become what they were, to the bit, and nothing but memories is computed. Throws Error.
  void take(std::span<const std::int32_t> ids, std::int64_t prompt_length, const BlockInputRows& rows);

  Model& model() const { return *model_; }
  const std::shared_ptr<Model>& model_ptr() const { return model_; }
  const std::vector<std::int32_t>& ids() const { return ids_; }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids_.size()); }
  std::int64_t prompt_length() const { return forward_.prompt_length; }
  /// Tokens before this one are another run's; 0: none.
  std::int64_t first() const { return first_; }
  /// As it reads, without budgets: what a run must be given to be this one again.
  RunOptions options() const { return {options_.chunk_size, options_.tokens_at_once, options_.keyframe_interval, 0, 0}; }
  /// Of another run beside it: it reads as this one does, within its budgets, or a quarter of what is free where that is less.
  RunOptions beside() const;
  /// In which its tokens from first() on were read.
  const std::vector<Passes>& passes() const { return passes_; }
  std::int64_t tokens_at_once() const { return options_.tokens_at_once; }
  std::int64_t keyframe_interval() const { return options_.keyframe_interval; }

  /// Why the recording is not where it was meant to be, in a line; empty: it is.
  std::string remark() const;

  /// [to − from, D]: what entered the block of `layer`; of layer = number of layers: what left the last one; behind that the companion,
  /// where the model has one. Throws Error.
  std::vector<float> residual(std::int64_t layer, std::int64_t from, std::int64_t to) const;
  /// [to − from, parts · D]: the companion, where the layer reads one; else empty. Throws Error.
  std::vector<float> companion(std::int64_t layer, std::int64_t from, std::int64_t to) const;
  /// What the recording takes of the device's memory, of all memory, and of the file behind it; without the run that it left.
  std::size_t bytes_on_device() const { return keyframe_bytes(true) + routing_bytes(true) + inputs_.bytes_on_device(); }
  std::size_t bytes_in_memory() const { return bytes_on_device() + keyframe_bytes(false) + routing_bytes(false) + inputs_.bytes_on_host(); }
  std::size_t bytes_in_file() const { return inputs_.bytes_in_file(); }
  std::size_t memory_budget() const { return options_.memory_budget; }
  RecordingInfo recording() const;
  /// [V], after `token`.
  std::vector<float> logits(std::int64_t token) { return logits(token, token + 1); }
  /// [to − from, V]
  std::vector<float> logits(std::int64_t from, std::int64_t to);
  /// The layer's first memory after `token`; token −1: as it starts. Empty for a layer without matrix state.
  LayerState state(std::int64_t layer, std::int64_t token);
  /// Everything that a layer keeps after its first `tokens` tokens, on the device, a copy. Keys and values are shared with the run. Throws
  /// std::bad_alloc.
  MixerState mixer_state(std::int64_t layer, std::int64_t tokens);
  /// After token − 1 and after `token`, for the price of one.
  std::pair<LayerState, LayerState> states_around(std::int64_t layer, std::int64_t token);
  /// The same of one head, for a window (HeadState::on_device): no other head's come to the host. The states last asked for stay on the
  /// device, so that their other heads cost no more than their copy.
  std::pair<HeadState, HeadState> head_states_around(std::int64_t layer, std::int64_t head, std::int64_t token);
  /// One head of `state`.
  HeadState head_state(std::int64_t layer, std::int64_t head, std::int64_t token);
  /// Null without routing. Shared: a longer run gives a new one. Throws Error.
  std::shared_ptr<const Routing> routing(std::int64_t layer);
  bool is_keyframe(std::int64_t token) const;
  /// How a layer read its first `tokens` tokens, over this run and those that it left: what a MemoryTracer needs beside the block inputs.
  std::vector<Stretch> course(std::int64_t layer, std::int64_t tokens);

 private:
  class Recorder;
  class LayerRecorder;
  class StateDownload;
  class HeadDownload;
  /// A layer's first memory after token − 1 and after `token`, on the device; what the token leaves alone has the same bits in both.
  struct Around {
    std::int64_t layer = -1, token = -1;
    Buffer before, after;
  };
  /// How the tokens of one layer were routed.
  struct Routes {
    std::shared_ptr<Routing> routing;  // of the tokens up to the last time that somebody asked
    GatheredRows gate, selected;       // of those since then
  };
  /// Keys and values of a layer up to an import of others.
  struct FormerKv {
    std::int64_t layer, tokens;
    KvCache kv;
  };
  void read_span(std::span<const std::int32_t> ids);
  void add_tokens(std::span<const std::int32_t> ids);
  std::span<const Rules> rules(std::int64_t token) const;
  std::int64_t next_stop(std::int64_t tokens) const;
  Schedule::Edits edits(std::int64_t layer, std::int64_t tokens) const;
  void edit_states(std::int64_t tokens);
  void keep_keyframe();
  void keep_within_budget(std::int64_t coming);
  void leave_room();
  std::size_t keyframe_bytes(bool on_device) const;
  std::size_t routing_bytes(bool on_device) const;
  /// Of what a budget is for, whatever keyframes and block inputs do.
  std::size_t routing_within(bool device_budget) const;
  Tensor block_inputs(Buffer& memory, std::int64_t layer, std::int64_t from, std::int64_t to) const;
  void record_companion(ConstTensor x);
  Tensor companion_inputs(Buffer& memory, std::int64_t layer, std::int64_t from, std::int64_t to) const;
  Tensor side_by_side(Buffer& memory, std::int64_t parts, const Shape& part_shape,
                      const std::function<void(std::int64_t part, Tensor to)>& read) const;
  MixerState replayed(std::int64_t layer, std::int64_t tokens);
  void advance(std::int64_t layer, MixerState& state, std::int64_t from, std::int64_t to);
  /// Reads one token, this run's or one that it left.
  void step(std::int64_t layer, MixerState& state, std::int64_t token);
  const Around& around(std::int64_t layer, std::int64_t token);

  std::shared_ptr<Run> parent_;  // of the tokens before first_; null: none
  std::int64_t first_ = 0;
  Schedule schedule_;
  std::shared_ptr<Model> model_;
  RunOptions options_;
  ForwardOptions forward_;
  ModelState state_;
  Buffer hidden_;         // [tokens_at_once, D], of the pass under way
  bool reading_ = false;  // stays true where a forward pass was cut short by an exception: state_ is then not that of tokens()
  std::vector<std::int32_t> ids_;
  std::vector<Passes> passes_;
  std::vector<FormerKv> former_kv_;            // by tokens
  BlockInputs inputs_;                         // of each block, and what left the last one; row 0 is token first_
  std::vector<std::optional<Routes>> routes_;  // [layers]; none without routing
  std::vector<std::int64_t> frame_offsets_;    // [layers + 1]: where MixerState::everything of a layer begins in a keyframe
  std::vector<Piece::Part> frame_parts_;       // of a keyframe
  std::map<std::int64_t, Piece> keyframes_;    // by tokens read
  bool device_was_full_ = false;
  Around around_;  // last asked for
};

}  // namespace statescope
