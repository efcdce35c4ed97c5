// Values as bytes for another process of the same program.
#pragma once

#include <cereal/archives/portable_binary.hpp>
#include <sstream>
#include <string>

namespace statescope {

template <class T>
std::string packed(const T& value) {
  std::ostringstream stream;
  cereal::PortableBinaryOutputArchive archive(stream);
  archive(value);
  return std::move(stream).str();
}

template <class T>
T unpacked(const std::string& bytes) {
  std::istringstream stream(bytes);
  cereal::PortableBinaryInputArchive archive(stream);
  T value;
  archive(value);
  return value;
}

}  // namespace statescope
