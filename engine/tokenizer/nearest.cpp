#include "engine/tokenizer/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace statescope {
namespace {

constexpr std::size_t kLongest = 64;  // bytes: longer words are no slips of the hand

std::string small(std::string_view text) {
  std::string letters(text);
  std::ranges::transform(letters, letters.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return letters;
}

/// How many changes make b of a (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> known, std::size_t most) {
  std::vector<std::string> found;
  if (word.empty() || word.size() > kLongest) return found;
  const std::string wanted = small(word);
  const std::size_t changes = std::max<std::size_t>(1, wanted.size() / 3);
  std::vector<std::pair<std::size_t, const std::string*>> near;
  for (const std::string& each : known) {
    if (each.size() > wanted.size() + changes || each.size() + changes < wanted.size()) continue;
    const std::size_t apart = distance(wanted, small(each));
    if (apart <= changes) near.emplace_back(apart, &each);
  }
  std::ranges::stable_sort(near, {}, [](const auto& one) { return one.first; });
  for (std::size_t i = 0; i < std::min(most, near.size()); ++i) found.push_back(*near[i].second);
  return found;
}

}  // namespace statescope
