// The one error a user sees: what went wrong, where, and what to do, in a line.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace statescope {

/// A mistake in what came from outside (a file, an argument), or a failure of the machine. Thrown anywhere below app/, handled once there.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What was under way was told to stop.
class Cancelled : public Error {
 public:
  Cancelled() : Error("cancelled") {}
};

/// A text has a word that is not among those of the model.
class UnknownWordError : public Error {
 public:
  using Error::Error;
};

/// What was thrown on one thread, for another: which of the above it was, and its message.
struct Failure {
  enum class Kind : std::uint8_t { error, cancelled, unknown_word };
  Kind kind;
  std::string message;

  Failure(const std::exception& thrown)  // NOLINT(google-explicit-constructor): an error is a failure
      : kind(dynamic_cast<const Cancelled*>(&thrown)          ? Kind::cancelled
             : dynamic_cast<const UnknownWordError*>(&thrown) ? Kind::unknown_word
                                                              : Kind::error),
        message(thrown.what()) {}
};

}  // namespace statescope
