// Pieces and their ids, in one block of bytes with a flat table: hundreds of thousands are read in a moment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

inline constexpr std::int32_t kNoId = -1;
inline constexpr std::int64_t kMostIds = 1 << 24;  // a larger id is a damaged file's

class Vocabulary {
 public:
  /// Throws Error for an id that no model has, an id that is taken, or a piece that is there already.
  void add(std::string_view piece, std::int64_t id);
  /// The same, but of two equal pieces the later one is found.
  void add_or_replace(std::string_view piece, std::int64_t id);
  void reserve(std::size_t pieces, std::size_t bytes);

  /// kNoId if there is none.
  std::int32_t find(std::string_view piece) const;
  bool has(std::int32_t id) const { return id >= 0 && id < size() && places_[static_cast<std::size_t>(id)].begin != kNowhere; }
  /// Of an id that is there.
  std::string_view piece(std::int32_t id) const;
  /// One more than the largest id.
  std::int32_t size() const { return static_cast<std::int32_t>(places_.size()); }
  std::size_t pieces() const { return pieces_; }

 private:
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;
  struct Place {
    std::uint32_t begin = kNowhere, length = 0;
  };
  struct Slot {
    std::uint32_t hash;
    std::int32_t id = kNoId;
  };

  void put(std::string_view piece, std::int64_t id, bool may_replace);
  std::size_t slot_of(std::string_view piece, std::uint32_t hash) const;
  void grow(std::size_t pieces);

  std::string bytes_;
  std::vector<Place> places_;  // by id
  std::vector<Slot> slots_;    // a power of two, at most half full
  std::size_t pieces_ = 0;
};

}  // namespace statescope
