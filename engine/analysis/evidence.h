// What answers to questions about a run are made of: its recording, read a piece at a time, and what its layers' memories were given.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/analysis/memory_trace.h"
#include "engine/run/branches.h"
#include "engine/run/fair_mutex.h"
#include "engine/run/reading.h"

namespace statescope {

/// Rows of one of a layer's channels (engine/mixers/mixer.h, channel_row), one row a token.
struct ChannelRows {
  std::vector<std::int64_t> shape;  // of one row
  std::vector<float> values;        // [T, …]; indices as numbers
};

/// Of a run as long as it is at the beginning. Traces and channels are kept once made, those last asked for up to a budget. Not for use by
/// two threads at once; the run itself may be used by another thread that holds the same mutex.
class Evidence {
 public:
  /// Returning false ends the work: it throws Cancelled.
  using Progress = std::function<bool(double fraction)>;

  /// `mutex` outlives it. `budget`: bytes of traces and channels beside those of the layer last asked for.
  Evidence(std::shared_ptr<Reading> reading, FairMutex& mutex, std::size_t budget = std::size_t{1} << 30);
  ~Evidence();

  const std::shared_ptr<const RunInfo>& run() const { return info_; }
  const RunInfo& info() const { return *info_; }
  std::int64_t tokens() const { return std::ssize(info_->tokens); }
  /// Throws Error.
  const LayerInfo& layer(std::int64_t layer) const;
  /// Throws Error, which says which layers have one, where this one has none.
  const LayerInfo& layer_with_state(std::int64_t layer) const;

  /// All matrix memories of a layer (MemoryTracer::trace).
  const std::vector<MemoryTrace>& traces(std::int64_t layer);
  /// The memory that the snapshot's state is of and whose rows have coefficients; null where the layer has none.
  const MemoryTrace* trace(std::int64_t layer);
  /// The same. Throws Error where there is none.
  const MemoryTrace& trace_of_state(std::int64_t layer);
  /// Null where the layer has no such channel.
  const ChannelRows* channel(std::int64_t layer, const std::string& name);
  /// Keys of the model's memory tokens in a layer's softmax attention (MemoryTracer::memory_keys).
  std::vector<float> memory_keys(std::int64_t layer);
  /// [to − from, D] as it enters the block of `layer`.
  std::vector<float> residual(std::int64_t layer, std::int64_t from, std::int64_t to);
  /// By which rules the layer read the run (Run::course); empty: by the model's own.
  std::vector<Stretch> course(std::int64_t layer);
  LayerState state(std::int64_t layer, std::int64_t token);
  /// One head of it, which is all that comes from the device.
  HeadState head_state(std::int64_t layer, std::int64_t head, std::int64_t token);
  std::pair<LayerState, LayerState> states_around(std::int64_t layer, std::int64_t token);
  std::shared_ptr<const Routing> routing(std::int64_t layer);
  /// [to − from, V]
  std::vector<float> logits(std::int64_t from, std::int64_t to);
  /// Of the branch that the run left. Throws Error where it left none.
  RunDifference difference(std::int64_t from, std::int64_t to);
  StateDifference state_difference(std::int64_t layer, std::int64_t token);
  std::string text(std::int32_t id) const;
  const Checkpoint& checkpoint() const;
  const Model& model() const { return *model_; }
  /// For products, cosines and singular values, on the host.
  Backend& backend() { return *backend_; }
  Workspace& workspace() { return workspace_; }

  /// To be called now and then by whatever takes long.
  void tell(double fraction) const;
  void set_progress(Progress progress) { progress_ = std::move(progress); }

 private:
  struct LayerEvidence {
    std::vector<MemoryTrace> traces;
    std::map<std::string, ChannelRows> channels;
    std::size_t bytes = 0;
    std::uint64_t used = 0;
  };
  LayerEvidence& evidence_of(std::int64_t layer);
  std::vector<float> companion(std::int64_t layer);
  Run& left() const;
  void make_room(std::size_t bytes);

  std::shared_ptr<Reading> reading_;
  FairMutex* mutex_;
  std::size_t budget_;
  std::shared_ptr<const RunInfo> info_;
  std::shared_ptr<Model> model_;
  std::shared_ptr<Backend> backend_;
  Workspace workspace_;
  std::unique_ptr<MemoryTracer> tracer_;
  std::map<std::int64_t, LayerEvidence> layers_;
  std::uint64_t clock_ = 0;
  Progress progress_;
};

}  // namespace statescope
