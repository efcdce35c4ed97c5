// Byte-pair encoding: the best adjacent pair becomes one symbol, again and again. A heap of pairs over a linked list: n log n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace statescope {

struct Symbol {
  std::int32_t id;  // below 0: merges with nothing
  std::uint32_t begin, end;
  std::int32_t previous, next;  // in the list; -1: none
};

/// What two symbols become; the pair of lowest rank goes first, the leftmost of equals.
struct Merge {
  std::uint32_t rank;
  std::int32_t id;
};

/// Merges `symbols`, which are in a list already. `find(left, right)`: a Merge, whose id is below 0 where the two do not merge.
/// What is left is the list from symbol 0 on.
template <class Find>
void merge_symbols(std::vector<Symbol>& symbols, Find find) {
  struct Entry {
    std::uint64_t order;  // rank, then place
    std::int32_t id;
    std::uint32_t left_end, end;  // of the two symbols, to see whether the pair is still there
  };
  const auto is_later = [](const Entry& a, const Entry& b) { return a.order > b.order; };
  thread_local std::vector<Entry> heap;
  heap.clear();
  const auto entry_of = [&](std::int32_t left) {
    const Symbol& a = symbols[static_cast<std::size_t>(left)];
    const Symbol& b = symbols[static_cast<std::size_t>(a.next)];
    const Merge merge = find(a, b);
    return Entry{std::uint64_t{merge.rank} << 32 | static_cast<std::uint32_t>(left), merge.id, a.end, b.end};
  };
  const auto push = [&](std::int32_t left) {
    if (left < 0 || symbols[static_cast<std::size_t>(left)].next < 0) return;
    const Entry entry = entry_of(left);
    if (entry.id < 0) return;
    heap.push_back(entry);
    std::push_heap(heap.begin(), heap.end(), is_later);
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
    if (const Entry entry = entry_of(static_cast<std::int32_t>(i)); entry.id >= 0) heap.push_back(entry);
  }
  std::make_heap(heap.begin(), heap.end(), is_later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    const Entry entry = heap.back();
    heap.pop_back();
    const auto place = static_cast<std::int32_t>(entry.order & 0xFFFFFFFF);
    Symbol& left = symbols[static_cast<std::size_t>(place)];
    if (left.begin == left.end || left.end != entry.left_end || left.next < 0) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    if (right.end != entry.end) continue;
    left.id = entry.id;
    left.end = right.end;
    left.next = right.next;
    right.begin = right.end;  // gone
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = place;
    push(left.previous);
    push(place);
  }
}

}  // namespace statescope
