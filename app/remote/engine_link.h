// A client's end of what it has with an engine, over all the streams between them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "app/remote/engine_place.h"
#include "app/remote/outgoing.h"
#include "engine/remote/transport.h"

namespace statescope {

/// Connects, and again whenever the stream breaks, until it is destroyed. Everything is called on threads of its own and of the
/// transport's.
class EngineLink {
 public:
  struct Hearing {
    std::function<void(remote::Event)> event;  // may throw: the stream ends for good
    /// A stream stands. `anew`: the engine knows nothing of the session before; then the stream goes on once `go_on` has been called.
    std::function<void(bool anew)> connected;
    /// The stream has broken, or there is none; where that is final, there will be none.
    std::function<void(const remote::Ending& ending)> lost;
  };

  EngineLink(EnginePlace place, Hearing hearing);
  /// Tells the engine that the session is over, where that can be told at once.
  ~EngineLink();

  Outgoing<remote::Request>& out() { return out_; }
  void go_on();

 private:
  class Stream;
  void work();

  const EnginePlace place_;
  const Hearing hearing_;
  Outgoing<remote::Request> out_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::string session_;  // empty: none yet
  bool stopping_ = false;
  std::shared_ptr<Stream> waits_;  // for go_on
  std::thread thread_;             // last
};

}  // namespace statescope
