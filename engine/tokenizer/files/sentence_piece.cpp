#include "engine/tokenizer/files/sentence_piece.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/files/sentence_piece_normalizer.h"
#include "engine/tokenizer/files/special_names.h"
#include "engine/tokenizer/pipeline/decoders.h"
#include "engine/tokenizer/text/utf8.h"
#include "engine/tokenizer/vocabularies/merging.h"
#include "engine/tokenizer/vocabularies/unigram.h"
#include "engine/tokenizer/words.h"

namespace statescope {
namespace {

using Type = SentencePieceFile::Type;
constexpr std::string_view kSign = "▁";

bool matches_text(const SentencePieceFile::Piece& piece) { return piece.type == Type::normal || piece.type == Type::user_defined; }

/// Merges the pair whose text together is the piece of highest score. User-defined pieces stand as they are.
class ScoredMerges final : public PieceModel {
 public:
  ScoredMerges(const Vocabulary& matching, const SentencePieceFile& file, const SentencePieceNormalizer& normalizer)
      : matching_(matching), normalizer_(normalizer), ranks_(file.pieces.size()) {
    std::vector<std::size_t> order(file.pieces.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto score = [&](std::size_t id) { return file.pieces[id].score; };
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return score(a) > score(b); });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool is_equal = i > 0 && score(order[i]) == score(order[i - 1]);
      ranks_[order[i]] = is_equal ? ranks_[order[i - 1]] : static_cast<std::uint32_t>(i);
    }
  }

  void split(std::string_view text, std::vector<TokenPiece>& pieces) const override {
    std::vector<Symbol> symbols;
    for (std::size_t at = 0; at < text.size();) {
      const Trie::Match user = normalizer_.user_defined(text.substr(at));
      const std::size_t length = user.length > 0 ? user.length : utf8::character_at(text, at).length;
      const auto place = static_cast<std::int32_t>(symbols.size());
      symbols.push_back({user.length > 0 ? kFrozen : kOpen, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + length),
                         place - 1, place + 1});
      at += length;
    }
    if (symbols.empty()) return;
    symbols.back().next = -1;
    merge_symbols(symbols, [&](const Symbol& a, const Symbol& b) {
      const bool is_fixed = a.id == kFrozen || b.id == kFrozen;
      const std::int32_t id = is_fixed ? kNoId : matching_.find(text.substr(a.begin, b.end - a.begin));
      return Merge{id == kNoId ? 0 : ranks_[static_cast<std::size_t>(id)], id};
    });
    for (std::int32_t i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
      const Symbol& symbol = symbols[static_cast<std::size_t>(i)];
      pieces.push_back({matching_.find(text.substr(symbol.begin, symbol.end - symbol.begin)), symbol.begin, symbol.end});
    }
  }

 private:
  static constexpr std::int32_t kOpen = 0, kFrozen = -2;
  const Vocabulary& matching_;
  const SentencePieceNormalizer& normalizer_;
  std::vector<std::uint32_t> ranks_;  // by id
};

std::unique_ptr<PieceModel> model_of(const SentencePieceFile& file, const Vocabulary& matching, const SentencePieceNormalizer& normalizer) {
  if (file.is_bpe) return std::make_unique<ScoredMerges>(matching, file, normalizer);
  std::vector<Unigram::Scored> scored;
  double lowest = std::numeric_limits<float>::max();
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece& piece = file.pieces[id];
    if (matches_text(piece)) scored.push_back({static_cast<std::int32_t>(id), piece.score});
    if (piece.type == Type::normal) lowest = std::min<double>(lowest, piece.score);
  }
  return std::make_unique<Unigram>(matching, scored, lowest, Unigram::Options{.keeps_unknown = true, .sum = ScoreSum::in_float});
}

class SentencePiece final : public Tokenizer {
 public:
  SentencePiece(SentencePieceFile file, const SpecialNames& names) : file_(std::move(file)), normalizer_(file_) {
    bytes_.fill(kNoId);
    for (std::size_t i = 0; i < file_.pieces.size(); ++i) take_piece(static_cast<std::int32_t>(i));
    if (unknown_ == kNoId) throw Error("has no piece for what is unknown");
    if (file_.byte_fallback && std::ranges::find(bytes_, kNoId) != bytes_.end()) throw Error("has byte_fallback, but not all 256 bytes");
    model_ = model_of(file_, matching_, normalizer_);
    info_.kind = file_.is_bpe ? "sentencepiece BPE" : "sentencepiece Unigram";
    info_.size = std::ssize(file_.pieces);
    info_.begin_of_text = control_at(file_.begin);
    info_.end_of_text = control_at(file_.end);
    if (names.add_begin == true) before_ = info_.begin_of_text;
    if (names.add_end == true) after_ = info_.end_of_text;
  }

  Encoding encode(std::string_view text, const EncodeOptions& options) const override {
    if (text.size() > 0x3FFFFFFF) throw Error("text: longer than 1 GB");
    Encoding result;
    if (options.add_specials && before_) put(result, *before_, 0, 0);
    const SentencePieceText normal = normalizer_.normal(text);
    std::vector<TokenPiece> pieces;
    if (!normal.text.empty()) model_->split(normal.text, pieces);
    bool follows_unknown = false;
    for (const TokenPiece& piece : pieces) {
      const std::uint32_t begin = normal.origin[piece.begin], end = normal.origin[piece.end];
      if (piece.id != kNoId)
        put(result, piece.id, begin, end);
      else if (file_.byte_fallback)
        put_bytes(result, std::string_view(normal.text).substr(piece.begin, piece.end - piece.begin), begin, end);
      else if (follows_unknown)
        result.end.back() = end;
      else
        put(result, unknown_, begin, end);
      follows_unknown = piece.id == kNoId;
    }
    if (options.add_specials && after_) put(result, *after_, 0, 0);
    return result;
  }

  std::string text_of(std::int32_t id) const override {
    if (!has(id)) return number_of(id);
    const SentencePieceFile::Piece& piece = piece_of(id);
    if (piece.type == Type::byte) return std::string(1, static_cast<char>(byte_of_piece(piece.text)));
    return with_spaces(piece.text);
  }

  std::string decode(std::span<const std::int32_t> ids, bool) const override {
    std::string text, bytes;
    bool at_start = true, dropped = false;
    const auto flush = [&] {
      text += every_byte_repaired(bytes);
      bytes.clear();
    };
    for (const std::int32_t id : ids) {
      if (!has(id)) continue;
      if (piece_of(id).type == Type::byte) {
        bytes += text_of(id);
        continue;
      }
      flush();
      if (dropped || !text.empty()) at_start = false;
      dropped = false;
      text += surface(piece_of(id), at_start, dropped);
    }
    flush();
    return text;
  }

 private:
  bool has(std::int32_t id) const { return id >= 0 && id < std::ssize(file_.pieces); }
  const SentencePieceFile::Piece& piece_of(std::int32_t id) const { return file_.pieces[static_cast<std::size_t>(id)]; }

  void take_piece(std::int32_t id) {
    const SentencePieceFile::Piece& piece = piece_of(id);
    if (piece.text.empty()) throw Error(fmt::format("piece {} is empty", id));
    if (matches_text(piece)) matching_.add(piece.text, id);
    if (piece.type == Type::unused)
      throw Error(fmt::format("piece {} is of the type unused, which is not supported", in_quotes(piece.text)));
    if (piece.type == Type::unknown) unknown_ = id;
    if (piece.type == Type::control) info_.specials[piece.text] = id;
    if (piece.type != Type::byte) return;
    const int byte = byte_of_piece(piece.text);
    if (byte < 0) throw Error(fmt::format("piece {} is of the type byte, and names none", in_quotes(piece.text)));
    bytes_[static_cast<std::size_t>(byte)] = id;
  }

  std::optional<std::int32_t> control_at(std::int64_t id) const {
    const bool is_there = id >= 0 && id < std::ssize(file_.pieces) && piece_of(static_cast<std::int32_t>(id)).type == Type::control;
    return is_there ? std::optional(static_cast<std::int32_t>(id)) : std::nullopt;
  }

  static void put(Encoding& result, std::int32_t id, std::uint32_t begin, std::uint32_t end) {
    result.ids.push_back(id);
    result.begin.push_back(begin);
    result.end.push_back(end);
  }

  /// The last byte of a character stands for it, the others for nothing.
  void put_bytes(Encoding& result, std::string_view bytes, std::uint32_t begin, std::uint32_t end) const {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      put(result, bytes_[static_cast<unsigned char>(bytes[i])], begin, i + 1 == bytes.size() ? end : begin);
  }

  static std::string with_spaces(std::string_view piece) {
    std::string text;
    for (std::size_t at = 0; at < piece.size();) {
      const bool is_sign = piece.substr(at).starts_with(kSign);
      text += is_sign ? ' ' : piece[at];
      at += is_sign ? kSign.size() : 1;
    }
    return text;
  }

  /// U+FFFD for each byte that is no part of a character.
  static std::string every_byte_repaired(std::string_view bytes) {
    std::string text;
    for (std::size_t at = 0; at < bytes.size();) {
      const Character character = utf8::character_at(bytes, at);
      const std::size_t length = character.valid ? character.length : 1;
      utf8::append(text, character.valid ? character.code : kReplacement);
      at += length;
    }
    return text;
  }

  /// What a piece that is no byte adds to a text; at its start the space that was put in is dropped.
  std::string surface(const SentencePieceFile::Piece& piece, bool at_start, bool& dropped) const {
    if (piece.type == Type::control) return {};
    if (piece.type == Type::unknown) return file_.unknown_surface;
    std::string_view text = piece.text;
    if (at_start && (file_.add_dummy_prefix || file_.remove_extra_spaces) && text.starts_with(kSign)) {
      text.remove_prefix(kSign.size());
      dropped = !file_.remove_extra_spaces;
    }
    return with_spaces(text);
  }

  SentencePieceFile file_;
  SentencePieceNormalizer normalizer_;
  Vocabulary matching_;  // pieces that text is split into
  std::array<std::int32_t, 256> bytes_{};
  std::int32_t unknown_ = kNoId;
  std::optional<std::int32_t> before_, after_;
  std::unique_ptr<PieceModel> model_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_sentence_piece(const TokenizerFiles& files, const std::string& name, std::string_view bytes) {
  try {
    return std::make_unique<SentencePiece>(parse_sentence_piece_file(bytes), special_names(files));
  } catch (const Error& error) {
    fail(files.source, fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace statescope
