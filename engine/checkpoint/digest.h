// A short name for what bytes are: to see that a file is what it was, not to keep anybody from forging one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/checkpoint/checkpoint.h"

namespace statescope {

/// XXH64 of what is added, seed 0; as `xxhsum -H1` prints it.
class Digest {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  std::uint64_t value() const;
  void add_stripe(const std::byte* stripe);

  std::array<std::uint64_t, 4> lanes_{0x60ea27eeadc0b5d6, 0xc2b2ae3d27d4eb4f, 0, 0x61c8864e7a143579};
  std::array<std::byte, 32> rest_{};  // the last bytes, fewer than a stripe
  std::uint64_t size_ = 0;
};

/// Of the config, the tensors and the tokenizer, however they are stored. Reads every byte of them.
std::string content_digest(const Checkpoint& checkpoint);

}  // namespace statescope
