// Experts that have no room on a device: they stay in the host's memory, mapped from the file, and come to the device as tokens choose
// them.
#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace statescope {

/// What a device holds of them: those chosen last. Not for use by two threads at once.
class ExpertCache {
 public:
  /// Takes about so many bytes of the device's memory, but room for one expert at least.
  ExpertCache(Backend& device, std::size_t bytes) : device_(device), bytes_(bytes) {}

  /// Says that these matrices of one expert will be asked for. Not behind the first `bring`.
  void expect(std::span<const ConstTensor> matrices);
  /// The matrices of one expert where the device reads them. They stay there until so many other experts have been asked for as there is
  /// room for; what was computed with them before is not disturbed. Throws std::bad_alloc, DeviceError.
  std::vector<ConstTensor> bring(std::span<const ConstTensor> matrices);

  /// How many experts have room, and how many have been brought.
  std::size_t places() const { return std::max<std::size_t>(1, bytes_ / std::max<std::size_t>(1, place_bytes_)); }
  std::size_t brought() const { return brought_; }

 private:
  struct Place {
    const void* expert = nullptr;  // its first matrix in the host's memory
    std::byte* memory = nullptr;
  };
  static std::size_t bytes_of(ConstTensor matrix);
  Place& free_place();

  Backend& device_;
  std::size_t bytes_, place_bytes_ = 0, brought_ = 0;
  Buffer memory_;
  std::list<Place> places_;  // the one used last at the end
  std::map<const void*, std::list<Place>::iterator> by_expert_;
};

}  // namespace statescope
