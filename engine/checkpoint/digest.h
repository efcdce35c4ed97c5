// A short name for what bytes are: to see that a file is what it was, not to keep anybody from forging one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/checkpoint/checkpoint.h"

struct XXH64_state_s;

namespace statescope {

/// XXH64 of what is added, seed 0; as `xxhsum -H1` prints it.
class Digest {
 public:
  Digest();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  struct Free {
    void operator()(XXH64_state_s* state) const;
  };
  std::unique_ptr<XXH64_state_s, Free> state_;
};

/// Of the config, the tensors and the tokenizer, however they are stored. Reads every byte of them.
std::string content_digest(const Checkpoint& checkpoint);

}  // namespace statescope
