#include "engine/tokenizer/vocabularies/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/text/byte_alphabet.h"
#include "engine/tokenizer/text/utf8.h"
#include "engine/tokenizer/vocabularies/merging.h"

namespace statescope {
namespace {

constexpr std::string_view kSign = "▁";

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

/// Whether ▁ stands behind anything but ▁.
bool has_sign_inside(std::string_view piece) {
  while (piece.starts_with(kSign)) piece.remove_prefix(kSign.size());
  return piece.find(kSign) != piece.npos;
}

}  // namespace

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  const std::uint64_t hash = pair * 0x9E3779B97F4A7C15U;
  std::size_t at = (hash ^ hash >> 32) & mask;
  while (slots_[at].pair != kEmpty && slots_[at].pair != pair) at = (at + 1) & mask;
  return at;
}

void MergeTable::reserve(std::size_t merges) {
  if (2 * merges <= slots_.size()) return;
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(std::bit_ceil(std::max<std::size_t>(4 * merges, 16))));
  for (const Slot& slot : before)
    if (slot.pair != kEmpty) slots_[slot_of(slot.pair)] = slot;
}

void MergeTable::add(std::int32_t left, std::int32_t right, Value value) {
  reserve(pairs_ + 1);
  Slot& slot = slots_[slot_of(pair_of(left, right))];
  if (slot.pair != kEmpty) return;
  slot = {pair_of(left, right), value};
  ++pairs_;
}

const MergeTable::Value* MergeTable::find(std::int32_t left, std::int32_t right) const {
  if (slots_.empty() || left < 0 || right < 0) return nullptr;
  const Slot& slot = slots_[slot_of(pair_of(left, right))];
  return slot.pair == kEmpty ? nullptr : &slot.value;
}

Bpe::Bpe(const Vocabulary& vocabulary, BpeOptions options) : vocabulary_(vocabulary), options_(std::move(options)) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string sign = utf8::of(byte_alphabet::character_of(static_cast<unsigned char>(byte)));
    const std::string piece = options_.bytes ? sign : fmt::format("<0x{:02X}>", byte);
    byte_ids_[byte] = vocabulary_.find(piece);
  }
  has_all_bytes_ = std::ranges::find(byte_ids_, kNoId) == byte_ids_.end();
}

void Bpe::add_merge(std::string_view left, std::string_view right) {
  const auto id_of = [&](std::string_view piece, const char* what) {
    const std::int32_t id = vocabulary_.find(piece);
    if (id == kNoId)
      throw Error(fmt::format("merge {} names {} {}, which is not in the vocabulary", next_rank_ + 1, what, in_quotes(piece)));
    return id;
  };
  const std::int32_t a = id_of(left, "piece"), b = id_of(right, "piece");
  std::string_view end = right;
  if (end.starts_with(options_.prefix)) end.remove_prefix(options_.prefix.size());
  thread_local std::string both;
  both.assign(left).append(end);
  const std::int32_t result = id_of(both, "the result");
  joins_before_sign_ = joins_before_sign_ || has_sign_inside(both);
  merges_.add(a, b, {next_rank_++, result});
}

bool Bpe::ends_before_sign() const {
  return !options_.bytes && !joins_before_sign_ && !options_.ignore_merges && !options_.fuse_unknown && options_.prefix.empty() &&
         options_.suffix.empty();
}

void Bpe::split(std::string_view word, std::vector<TokenPiece>& pieces) const {
  if (options_.ignore_merges) {
    if (const std::int32_t id = whole_word(word); id != kNoId) return pieces.push_back({id, 0, static_cast<std::uint32_t>(word.size())});
  }
  thread_local std::vector<Symbol> symbols;
  symbols.clear();
  put_symbols(word, symbols);
  if (symbols.empty()) return;
  merge_symbols(symbols, [this](const Symbol& a, const Symbol& b) {
    const MergeTable::Value* merge = merges_.find(a.id, b.id);
    return merge ? Merge{merge->rank, merge->id} : Merge{0, kNoId};
  });
  for (std::int32_t i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
    const Symbol& symbol = symbols[static_cast<std::size_t>(i)];
    pieces.push_back({symbol.id, symbol.begin, symbol.end});
  }
}

std::int32_t Bpe::whole_word(std::string_view word) const {
  if (!options_.bytes) return vocabulary_.find(word);
  std::string spelled;
  for (const char byte : word) utf8::append(spelled, byte_alphabet::character_of(static_cast<unsigned char>(byte)));
  return vocabulary_.find(spelled);
}

void Bpe::put_symbols(std::string_view word, std::vector<Symbol>& symbols) const {
  const auto size = static_cast<std::uint32_t>(word.size());
  if (options_.bytes) {
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::int32_t id = byte_ids_[static_cast<unsigned char>(word[i])];
      if (id != kNoId || options_.unknown != kNoId) symbols.push_back({id == kNoId ? options_.unknown : id, i, i + 1, 0, 0});
    }
  } else {
    for (std::uint32_t begin = 0; begin < size;) {
      const std::uint32_t end = begin + utf8::character_at(word, begin).length;
      put_character(word, begin, end, symbols);
      begin = end;
    }
  }
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<std::int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<std::int32_t>(i) + 1 : -1;
  }
}

void Bpe::put_character(std::string_view word, std::uint32_t begin, std::uint32_t end, std::vector<Symbol>& symbols) const {
  std::string_view character = word.substr(begin, end - begin);
  std::string dressed;
  const bool wants_prefix = begin > 0 && !options_.prefix.empty(), wants_suffix = end == word.size() && !options_.suffix.empty();
  if (wants_prefix || wants_suffix) {
    dressed.append(wants_prefix ? options_.prefix : "").append(character).append(wants_suffix ? options_.suffix : "");
    character = dressed;
  }
  const std::int32_t id = vocabulary_.find(character);
  if (id != kNoId) return symbols.push_back({id, begin, end, 0, 0});
  if (options_.byte_fallback && has_all_bytes_) {
    for (std::uint32_t i = begin; i < end; ++i) symbols.push_back({byte_ids_[static_cast<unsigned char>(word[i])], i, i + 1, 0, 0});
    return;
  }
  if (options_.unknown == kNoId) return;
  const bool joins = options_.fuse_unknown && !symbols.empty() && symbols.back().id == options_.unknown;
  if (joins)
    symbols.back().end = end;
  else
    symbols.push_back({options_.unknown, begin, end, 0, 0});
}

}  // namespace statescope
