// Where a command's work is done and who waits for it: this program, or an engine on another machine.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "engine/device.h"

namespace statescope {

struct JobSite {
  /// Hears which part of what is done, 0 … 1. Returning false ends the work: it throws Cancelled.
  using Tell = std::function<bool(double part, const std::string& what)>;

  std::string checkpoint;      // as whoever asks calls it
  std::filesystem::path path;  // where it lies
  DeviceChoice device = {};
  std::size_t memory = 0;  // bytes of a recording; 0: a quarter of what is free
  Tell tell = {};

  bool goes_on(double part, const std::string& what) const { return !tell || tell(part, what); }
  /// Throws Cancelled.
  void say(double part, const std::string& what) const;
};

}  // namespace statescope
