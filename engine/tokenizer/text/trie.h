// Which of many texts begin at a place.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace statescope {

/// Built once. Node 0 is the root; a node's edges lie together, and edge e leads to node e + 1.
class Trie {
 public:
  static constexpr std::int32_t kNone = -1;
  static constexpr std::size_t kMostNodes = 1 << 23;
  struct Key {
    std::string_view text;  // not empty
    std::int32_t value;     // not below 0
  };

  Trie() = default;
  /// Of equal texts the last counts. Throws Error where the texts are longer than any vocabulary's.
  explicit Trie(std::vector<Key> keys);

  /// The node behind `byte`; kNone: no text goes on like that.
  std::int32_t next(std::int32_t node, unsigned char byte) const;
  /// Of the text that ends at this node.
  std::int32_t value(std::int32_t node) const { return values_[static_cast<std::size_t>(node)]; }

  struct Match {
    std::size_t length = 0;  // bytes; 0: none
    std::int32_t value = kNone;
  };
  Match longest(std::string_view text) const;
  bool empty() const { return labels_.empty(); }

 private:
  std::vector<unsigned char> labels_;  // of edges
  std::vector<std::uint32_t> first_;   // edge of a node, and one more
  std::vector<std::int32_t> values_;   // of nodes
  std::array<std::int32_t, 256> root_{};
};

}  // namespace statescope
