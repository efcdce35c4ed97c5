// The engine that --engine names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/remote/remote_source.h"
#include "app/remote/tunnel.h"

namespace statescope {

/// Answers when it stands; where ssh leads there, that runs as long.
class ReachedEngine {
 public:
  /// `options`: what an engine that ssh starts is told, as `statescope serve` takes it. Needs a running QCoreApplication. Throws Error.
  ReachedEngine(const std::string& place, const std::string& token_file, const std::string& authorities_file,
                std::vector<std::string> options);

  const EnginePlace& place() const { return place_; }

 private:
  std::unique_ptr<Tunnel> tunnel_;  // null: it is reached without
  EnginePlace place_;
};

/// Throws Error where that is neither HOST:PORT nor a place behind ssh.
void check_place(const std::string& place);

}  // namespace statescope
