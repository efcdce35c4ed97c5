// The process that computes for a rank: whatever ends it (a lack of memory, a fault of a device) leaves the rank itself alive to say so.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "app/ranks/link.h"

namespace statescope {

/// Does a job, any bytes, and returns what came of it. `tell` hears how much of it is done. Throws Error; DeviceError costs the rank.
using RankWork = std::function<std::string(const std::string& job, const std::function<void(double)>& tell)>;

class RankWorker {
 public:
  /// Before this process has threads.
  explicit RankWorker(const RankWork& work);
  ~RankWorker();
  RankWorker(const RankWorker&) = delete;
  RankWorker& operator=(const RankWorker&) = delete;

  void give(const RankMessage& job);
  /// What it has told: progress, result, failed, and once, as the last, lost. Waits a moment for it.
  std::optional<RankMessage> receive();

 private:
  pid_t process_ = -1;
  int socket_ = -1;
  bool lost_ = false;
};

}  // namespace statescope
