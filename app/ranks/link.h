// How the processes of a job talk: what the module libstatescope-mpi.so makes of Open MPI (mpi_link.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace statescope {

/// What one of them tells another.
struct RankMessage {
  enum class Kind : std::uint8_t {
    alive,     // now and then
    job,       // do this
    progress,  // how much of it is done
    result,    // what came of it
    failed,    // why nothing came of it
    lost,      // the process that computes has ended; why
    end        // there is nothing left to do
  };
  Kind kind;
  std::uint64_t job = 0;  // that it is about
  std::string bytes = {};
  int from = 0;
};

class RankLink {
 public:
  virtual ~RankLink() = default;
  virtual int size() const = 0;
  virtual void send(int to, const RankMessage& message) = 0;
  /// What has arrived; does not wait.
  virtual std::optional<RankMessage> receive() = 0;
  /// Once nobody sends any more.
  virtual void finish() = 0;
};

}  // namespace statescope
