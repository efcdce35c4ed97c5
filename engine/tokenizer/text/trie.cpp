#include "engine/tokenizer/text/trie.h"

#include <algorithm>

#include "engine/error.h"

namespace statescope {

Trie::Trie(std::vector<Key> keys) {
  std::ranges::stable_sort(keys, {}, &Key::text);
  struct Span {
    std::size_t begin, end, depth;  // keys that share so many bytes
  };
  std::vector<Span> nodes{{0, keys.size(), 0}};
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (nodes.size() > kMostNodes) throw Error("the pieces are too long");
    auto [begin, end, depth] = nodes[node];
    first_.push_back(static_cast<std::uint32_t>(labels_.size()));
    values_.push_back(kNone);
    for (; begin < end && keys[begin].text.size() == depth; ++begin) values_.back() = keys[begin].value;
    while (begin < end) {
      const char label = keys[begin].text[depth];
      std::size_t stop = begin + 1;
      while (stop < end && keys[stop].text[depth] == label) ++stop;
      labels_.push_back(static_cast<unsigned char>(label));
      nodes.push_back({begin, stop, depth + 1});
      begin = stop;
    }
  }
  first_.push_back(static_cast<std::uint32_t>(labels_.size()));
  root_.fill(kNone);
  for (std::uint32_t edge = 0; edge < first_[1]; ++edge) root_[labels_[edge]] = static_cast<std::int32_t>(edge + 1);
}

std::int32_t Trie::next(std::int32_t node, unsigned char byte) const {
  if (labels_.empty()) return kNone;
  if (node == 0) return root_[byte];
  const std::uint32_t begin = first_[static_cast<std::size_t>(node)], end = first_[static_cast<std::size_t>(node) + 1];
  const auto found = std::lower_bound(labels_.begin() + begin, labels_.begin() + end, byte);
  return found != labels_.begin() + end && *found == byte ? static_cast<std::int32_t>(found - labels_.begin()) + 1 : kNone;
}

Trie::Match Trie::longest(std::string_view text) const {
  Match match;
  std::int32_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    node = next(node, static_cast<unsigned char>(text[i]));
    if (node == kNone) break;
    if (const std::int32_t found = value(node); found != kNone) match = {i + 1, found};
  }
  return match;
}

}  // namespace statescope
