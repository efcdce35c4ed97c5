// What the fuzz targets of the wire share.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/remote/wire.h"

namespace statescope::fuzz {

/// Reads the bytes as a T, which must pack to the same bytes again. Throws WireError.
template <class T>
void attempt(std::string_view bytes) {
  if (remote::pack(remote::unpack<T>(bytes)) != bytes) std::abort();
}

/// Of an input the first byte says what the others are; they may be refused, with one line.
template <class Attempt>
int attempt_input(const std::uint8_t* data, std::size_t size, const Attempt& attempt_as) {
  if (size == 0) return 0;
  try {
    attempt_as(data[0], std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  } catch (const remote::WireError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}

}  // namespace statescope::fuzz
