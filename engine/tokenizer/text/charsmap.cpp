#include "engine/tokenizer/text/charsmap.h"

#include "engine/error.h"

namespace statescope {
namespace {

std::uint32_t unit_at(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(bytes[at + i])}; };
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 512) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
  if (bytes.empty()) return;
  if (bytes.size() < 4) throw Error("precompiled_charsmap is cut off");
  const std::uint32_t size = unit_at(bytes, 0);
  if (size > bytes.size() - 4 || size % 4 != 0) throw Error("precompiled_charsmap is damaged: its table is longer than the map");
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(unit_at(bytes, at));
  texts_ = bytes.substr(4 + size);
  texts_ += '\0';
}

std::optional<Charsmap::Match> Charsmap::find(std::string_view text, bool longest) const {
  if (units_.empty()) return std::nullopt;
  std::optional<Match> match;
  std::uint32_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || (units_[at] & 0x800000FFU) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (at >= units_.size()) break;
    const std::uint32_t value = units_[at] & 0x7FFFFFFFU;
    if (value < texts_.size()) match = {i + 1, std::string_view(texts_.data() + value)};
    if (match && !longest) break;
  }
  return match;
}

}  // namespace statescope
