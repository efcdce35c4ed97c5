#include "engine/run/sample_ids.h"

#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

constexpr std::int64_t kHalf = 32;

}  // namespace

std::string why_no_text(const Tokenizer& tokenizer) { return tokenizer.info().refusal; }

/// xₙ₊₁ = 1664525 xₙ + 1013904223 mod 2³² (Numerical Recipes, §7.1), of which the upper bits choose.
std::vector<std::int32_t> sample_ids(std::int64_t vocab) {
  std::vector<std::int32_t> ids;
  std::uint32_t x = 1;
  for (std::int64_t i = 0; i < kHalf; ++i) {
    x = 1664525u * x + 1013904223u;
    ids.push_back(static_cast<std::int32_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(vocab) >> 32));
  }
  for (std::int64_t i = 0; i < kHalf; ++i) ids.push_back(ids[static_cast<std::size_t>(i)]);
  return ids;
}

}  // namespace statescope
