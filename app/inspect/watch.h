// A folder of a training under way: every new checkpoint is read once, when it is whole.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/inspect/checkpoints.h"
#include "app/inspect/kept_results.h"
#include "app/inspect/report.h"

namespace statescope {

class Watch {
 public:
  using Inspect = std::function<Inspected(const FoundCheckpoint&)>;
  /// `kept`: where results of earlier processes are, and these are kept too.
  explicit Watch(Inspect inspect, std::optional<KeptResults> kept = {}) : inspect_(std::move(inspect)), kept_(std::move(kept)) {}

  struct Look {
    std::vector<Inspected> fresh;      // read now
    std::vector<Inspected> known;      // seen first now, and read by an earlier process
    std::vector<std::string> skipped;  // "PATH: why", said once for each state of a file
    bool changed = false;              // whether results() are others than before
  };
  /// Looks once. A checkpoint is read when its files are as they were at the last look, so that one that is being written is left alone;
  /// one that was read and has the same bytes as another, or as before, is not read again. What cannot be read is named and tried again
  /// once its files have changed.
  Look look(const std::vector<std::string>& given);
  /// In the order of the checkpoints. Those that were deleted since stand among them, with a note.
  std::vector<Inspected> results() const;

 private:
  struct Known {
    std::string stamp;   // names, sizes and times of its files
    std::string digest;  // of those whose result is there; empty: none
    bool refused = false;
  };
  void read(const FoundCheckpoint& found, Known& known, Look& look);
  bool is_there(const FoundCheckpoint& checkpoint) const;

  Inspect inspect_;
  std::optional<KeptResults> kept_;
  std::map<std::string, Known> known_;        // by path
  std::map<std::string, Inspected> results_;  // by digest
  std::vector<FoundCheckpoint> there_;        // at the last look
  std::vector<FoundCheckpoint> seen_;         // those, and what was deleted since it was read, in their order
};

}  // namespace statescope
