// What needles say: a value of four digits, of seven, or a UUID, drawn.
#pragma once

#include <map>
#include <string>

#include "datasets/philox.h"

namespace statescope {

/// By its name a value's look: every x is drawn.
inline const std::map<std::string, std::string>& value_forms() {
  static const std::map<std::string, std::string> forms{
      {"code", "xxxx"}, {"number", "xxxxxxx"}, {"uuid", "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"}};
  return forms;
}

/// Of needle number `needle`, from that stream of the example.
inline std::string drawn_value(const std::string& form, const Draws& draws, std::uint32_t stream, std::size_t needle) {
  constexpr std::uint32_t draws_per_value = 64;
  const std::uint32_t digits = form.find('-') == std::string::npos ? 10 : 16;
  std::string value = form;
  auto next = static_cast<std::uint32_t>(needle) * draws_per_value;
  for (char& c : value)
    if (c == 'x') c = "0123456789abcdef"[draws.below(digits, stream, next++)];
  return value;
}

}  // namespace statescope
