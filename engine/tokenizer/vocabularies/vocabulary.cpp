#include "engine/tokenizer/vocabularies/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace {

std::uint32_t hash_of(std::string_view piece) {
  const std::size_t hash = std::hash<std::string_view>{}(piece);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

void Vocabulary::add(std::string_view piece, std::int64_t id) { put(piece, id, /*may_replace=*/false); }
void Vocabulary::add_or_replace(std::string_view piece, std::int64_t id) { put(piece, id, /*may_replace=*/true); }

void Vocabulary::put(std::string_view piece, std::int64_t id, bool may_replace) {
  if (id < 0 || id >= kMostIds) throw Error(fmt::format("the id {} of piece {} is not one that a model has", id, in_quotes(piece)));
  if (bytes_.size() + piece.size() >= kNowhere) throw Error("the pieces are too long");
  const auto number = static_cast<std::int32_t>(id);
  if (has(number)) throw Error(fmt::format("pieces {} and {} have the same id {}", in_quotes(this->piece(number)), in_quotes(piece), id));
  grow(pieces_ + 1);
  const std::uint32_t hash = hash_of(piece);
  Slot& slot = slots_[slot_of(piece, hash)];
  if (slot.id != kNoId && !may_replace) throw Error(fmt::format("piece {} is there twice", in_quotes(piece)));
  if (number >= size()) places_.resize(static_cast<std::size_t>(number) + 1);
  places_[static_cast<std::size_t>(number)] = {static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(piece.size())};
  bytes_ += piece;
  pieces_ += slot.id == kNoId;
  slot = {hash, number};
}

void Vocabulary::reserve(std::size_t pieces, std::size_t bytes) {
  grow(pieces);
  bytes_.reserve(bytes);
  places_.reserve(pieces);
}

std::int32_t Vocabulary::find(std::string_view piece) const { return slots_.empty() ? kNoId : slots_[slot_of(piece, hash_of(piece))].id; }

std::string_view Vocabulary::piece(std::int32_t id) const {
  const Place place = places_[static_cast<std::size_t>(id)];
  return std::string_view(bytes_).substr(place.begin, place.length);
}

/// Where it is, or would be.
std::size_t Vocabulary::slot_of(std::string_view piece, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == kNoId || (slot.hash == hash && this->piece(slot.id) == piece)) return at;
  }
}

void Vocabulary::grow(std::size_t pieces) {
  if (2 * pieces <= slots_.size()) return;
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(std::bit_ceil(std::max<std::size_t>(4 * pieces, 16))));
  for (const Slot& slot : before) {
    if (slot.id == kNoId) continue;
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = slot.hash & mask;
    while (slots_[at].id != kNoId) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace statescope
