// Indices for the device. Included by .cu files alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cuda/common/cuda.h"
#include "kernels/cuda/common/decode_queue.h"

namespace statescope::cuda {

/// Uploads small arrays: the host copies them to pinned memory, the stream copies them from there to the device. The ring buffer starts
/// over once the stream has done all earlier work.
class IndexRing {
 public:
  explicit IndexRing(DecodeQueue& queue) : queue_(queue) { grow(std::size_t{1} << 20); }
  ~IndexRing() { release(); }
  IndexRing(const IndexRing&) = delete;
  IndexRing& operator=(const IndexRing&) = delete;

  template <std::size_t n>
  using Arrays = std::array<std::span<const std::int32_t>, n>;

  /// The arrays of one operation on the device; an empty one is null. They last until as much again as the ring holds has been sent. Short
  /// arrays whose values were sent before, like those of the layers of one pass, are not sent again: a copy takes longer than its few
  /// bytes.
  template <std::size_t n>
  std::array<const std::int32_t*, n> send(const Arrays<n>& arrays) {
    std::size_t bytes = 0;
    for (const auto& numbers : arrays) bytes += taken(numbers);
    if (used_ + bytes > bytes_) {
      check(cudaStreamSynchronize(queue_.stream()), "the work before");
      used_ = 0;
      short_.clear();
      if (bytes > bytes_) grow(std::max(bytes, 2 * bytes_));
    }
    std::array<const std::int32_t*, n> addresses{};
    for (std::size_t i = 0; i < n; ++i) addresses[i] = arrays[i].empty() ? nullptr : put(arrays[i]);
    return addresses;
  }

 private:
  static std::size_t taken(std::span<const std::int32_t> numbers) {
    constexpr std::size_t alignment = 256;
    return (numbers.size_bytes() + alignment - 1) / alignment * alignment;
  }
  const std::int32_t* put(std::span<const std::int32_t> numbers) {
    constexpr std::size_t most_numbers = 16, most_kept = 16;
    const auto same = [&](const SentArray& array) {
      return array.count == numbers.size() && std::memcmp(host_ + array.at, numbers.data(), numbers.size_bytes()) == 0;
    };
    const auto known = std::ranges::find_if(short_, same);
    if (known != short_.end()) return reinterpret_cast<const std::int32_t*>(device_ + known->at);
    char *const from = host_ + used_, *const to = device_ + used_;
    std::memcpy(from, numbers.data(), numbers.size_bytes());
    check(cudaMemcpyAsync(to, from, numbers.size_bytes(), cudaMemcpyHostToDevice, queue_.stream()), "indices");
    if (numbers.size() <= most_numbers) {
      if (short_.size() == most_kept) short_.erase(short_.begin());
      short_.push_back({used_, numbers.size()});
    }
    used_ += taken(numbers);
    return reinterpret_cast<const std::int32_t*>(to);
  }
  void release() {
    cudaFreeHost(host_);
    cudaFree(device_);
    host_ = device_ = nullptr;
    bytes_ = 0;
    short_.clear();
  }
  void grow(std::size_t bytes) {
    release();
    check(cudaMallocHost(&host_, bytes), "pinned memory");
    check(cudaMalloc(&device_, bytes), "device memory");
    bytes_ = bytes;
  }

  struct SentArray {
    std::size_t at, count;  // in bytes; numbers
  };

  DecodeQueue& queue_;
  std::vector<SentArray> short_;  // arrays, the oldest first
  char *host_ = nullptr, *device_ = nullptr;
  std::size_t bytes_ = 0, used_ = 0;
};

}  // namespace statescope::cuda
