// A folder of a training under way: every new checkpoint is read once, when it is whole.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/inspect/checkpoints.h"
#include "app/inspect/report.h"

namespace statescope {

class Watch {
 public:
  using Inspect = std::function<Inspected(const FoundCheckpoint&)>;
  explicit Watch(Inspect inspect) : inspect_(std::move(inspect)) {}

  struct Look {
    std::vector<Inspected> fresh;      // read now
    std::vector<std::string> skipped;  // "PATH: why", said once for each state of a file
    bool changed = false;              // whether results() are others than before
  };
  /// Looks once. A checkpoint is read when its files are as they were at the last look, so that one that is being written is left alone;
  /// one that was read and has the same bytes as another, or as before, is not read again. What cannot be read is named and tried again
  /// once its files have changed.
  Look look(const std::vector<std::string>& given);
  /// In the order of the checkpoints that are there now.
  std::vector<Inspected> results() const;

 private:
  struct Known {
    std::string stamp;   // names, sizes and times of its files
    std::string digest;  // of those whose result is there; empty: none
    bool refused = false;
  };
  void read(const FoundCheckpoint& found, Known& known, Look& look);

  Inspect inspect_;
  std::map<std::string, Known> known_;        // by path
  std::map<std::string, Inspected> results_;  // by digest
  std::vector<FoundCheckpoint> there_;        // at the last look
};

}  // namespace statescope
