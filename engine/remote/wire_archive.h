// The archives behind pack and unpack, for cereal.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cereal/cereal.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/variant.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/remote/wire.h"

namespace statescope::remote {

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

class Writer : public cereal::OutputArchive<Writer, cereal::AllowEmptyClassElision> {
 public:
  Writer() : OutputArchive(this) {}
  void write(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Never reads behind the end, and makes room for nothing that cannot be there.
class Reader : public cereal::InputArchive<Reader, cereal::AllowEmptyClassElision> {
 public:
  explicit Reader(std::string_view bytes) : InputArchive(this), left_(bytes) {}
  std::size_t left() const { return left_.size(); }
  void read(void* data, std::size_t size) {
    if (size > left_.size()) throw WireError(fmt::format("a message ends too early: {} bytes where {} are needed", left_.size(), size));
    if (size > 0) std::memcpy(data, left_.data(), size);
    left_.remove_prefix(size);
  }
  /// Of a list whose elements take `each` bytes or more.
  std::size_t length(std::size_t each) {
    std::uint64_t length = 0;
    read(&length, sizeof(length));
    if (length > left_.size() / each)
      throw WireError(fmt::format("a message has a list of {} elements, for which {} bytes are too few", length, left_.size()));
    return static_cast<std::size_t>(length);
  }

 private:
  std::string_view left_;
};

template <class T>
concept Number = std::is_arithmetic_v<T>;

template <Number T>
void save(Writer& writer, const T& x) {
  writer.write(&x, sizeof(T));
}
template <Number T>
void load(Reader& reader, T& x) {
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t byte = 0;
    reader.read(&byte, 1);
    if (byte > 1) throw WireError(fmt::format("a message says {} where 0 or 1 is meant", byte));
    x = byte == 1;
  } else {
    reader.read(&x, sizeof(T));
  }
}

// What cereal's own types are made of.
template <class T>
void serialize(Writer& writer, cereal::NameValuePair<T>& pair) {
  writer(pair.value);
}
template <class T>
void serialize(Reader& reader, cereal::NameValuePair<T>& pair) {
  reader(pair.value);
}
template <class T>
void save(Writer& writer, const cereal::SizeTag<T>& tag) {
  const std::uint64_t length = tag.size;
  writer.write(&length, sizeof(length));
}
template <class T>
void load(Reader& reader, cereal::SizeTag<T>& tag) {
  tag.size = reader.length(1);
}
template <class T>
void save(Writer& writer, const cereal::BinaryData<T>& data) {
  writer.write(data.data, static_cast<std::size_t>(data.size));
}
template <class T>
void load(Reader& reader, cereal::BinaryData<T>& data) {
  reader.read(data.data, static_cast<std::size_t>(data.size));
}

template <class T>
void save(Writer& writer, const std::vector<T>& list) {
  const std::uint64_t length = list.size();
  writer.write(&length, sizeof(length));
  if constexpr (Number<T>) {
    writer.write(list.data(), list.size() * sizeof(T));
  } else {
    for (const T& one : list) writer(one);
  }
}
template <class T>
void load(Reader& reader, std::vector<T>& list) {
  if constexpr (Number<T>) {
    list.resize(reader.length(sizeof(T)));
    reader.read(list.data(), list.size() * sizeof(T));
  } else {
    const std::size_t length = reader.length(1);
    list.clear();
    while (list.size() < length) reader(list.emplace_back());  // what is not there takes no room
  }
}

template <class T>
void save(Writer& writer, const std::shared_ptr<const T>& shared) {
  writer(shared != nullptr);
  if (shared) writer(*shared);
}
template <class T>
void load(Reader& reader, std::shared_ptr<const T>& shared) {
  bool is_there = false;
  reader(is_there);
  if (!is_there) return shared.reset();
  auto value = std::make_shared<T>();
  reader(*value);
  shared = std::move(value);
}

inline void save(Writer& writer, const std::filesystem::path& path) { writer(path.string()); }
inline void load(Reader& reader, std::filesystem::path& path) {
  std::string text;
  reader(text);
  path = std::move(text);
}

/// A value of an enumeration whose last one is `last`, for its field.
template <class Enum>
struct Choice {
  Enum& value;
  Enum last;
};
template <class Enum>
void save(Writer& writer, const Choice<Enum>& choice) {
  writer(static_cast<std::uint8_t>(choice.value));
}
template <class Enum>
void load(Reader& reader, Choice<Enum>& choice) {
  std::uint8_t number = 0;
  reader(number);
  if (number > static_cast<std::uint8_t>(choice.last))
    throw WireError(fmt::format("a message chooses {} of 0 … {}", number, static_cast<int>(choice.last)));
  choice.value = static_cast<Enum>(number);
}

/// Reads all of `bytes`, with read(reader), and says what it finds wrong in one way.
template <class Read>
auto read_whole(std::string_view bytes, Read read) {
  try {
    Reader reader(bytes);
    auto value = read(reader);
    if (reader.left() > 0) throw WireError(fmt::format("a message goes on for {} bytes behind its end", reader.left()));
    return value;
  } catch (const cereal::Exception& problem) {
    throw WireError(fmt::format("a message cannot be read: {}", problem.what()));
  }
}

template <class T>
std::string pack(const T& value) {
  Writer writer;
  writer(value);
  return writer.take();
}
template <class T>
T unpack(std::string_view bytes) {
  return read_whole(bytes, [](Reader& reader) {
    T value;
    reader(value);
    return value;
  });
}

/// Throws WireError unless a matrix of these sizes has so many numbers.
inline void check_sizes(std::size_t numbers, std::initializer_list<std::int64_t> sizes) {
  std::size_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(product, static_cast<std::size_t>(size), &product))
      throw WireError("a message has a matrix of an impossible size");
  }
  if (product != numbers) throw WireError(fmt::format("a message has a matrix of {} numbers where {} belong", numbers, product));
}

}  // namespace statescope::remote

/// How a type travels: all of its fields, each named once; where one is missing this does not compile.
#define STATESCOPE_FIELDS(Type, ...)          \
  template <class Archive>                    \
  void serialize(Archive& archive, Type& x) { \
    auto& [__VA_ARGS__] = x;                  \
    archive(__VA_ARGS__);                     \
  }
