// The one error a user sees: what went wrong, where, and what to do, in a line.
#pragma once

#include <stdexcept>
#include <string>

namespace statescope {

/// A mistake in what came from outside (a file, an argument), or a failure of the machine. Thrown anywhere below app/, handled once there.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace statescope
