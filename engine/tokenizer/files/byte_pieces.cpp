#include "engine/tokenizer/files/byte_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/error.h"
#include "engine/tokenizer/text/utf8.h"
#include "engine/tokenizer/vocabularies/merging.h"
#include "engine/tokenizer/vocabularies/word_cache.h"
#include "engine/tokenizer/words.h"

namespace statescope {
namespace {

/// Merges the pair whose bytes together are the piece of lowest id, again and again.
class RankedBytes {
 public:
  explicit RankedBytes(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      bytes_[byte] = vocabulary_.find(std::string(1, static_cast<char>(byte)));
      if (bytes_[byte] == kNoId) throw Error(fmt::format("lacks a piece for the byte {:02X}", byte));
    }
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }

  void split(std::string_view word, std::vector<TokenPiece>& pieces) const {
    if (const std::int32_t id = vocabulary_.find(word); id != kNoId)
      return pieces.push_back({id, 0, static_cast<std::uint32_t>(word.size())});
    thread_local std::vector<Symbol> symbols;
    symbols.clear();
    const auto size = static_cast<std::int32_t>(word.size());
    for (std::int32_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::uint32_t>(i);
      symbols.push_back({bytes_[static_cast<unsigned char>(word[at])], at, at + 1, i - 1, i + 1 < size ? i + 1 : -1});
    }
    merge_symbols(symbols, [&](const Symbol& a, const Symbol& b) {
      const std::int32_t id = vocabulary_.find(word.substr(a.begin, b.end - a.begin));
      return Merge{static_cast<std::uint32_t>(id), id};
    });
    for (std::int32_t i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
      const Symbol& symbol = symbols[static_cast<std::size_t>(i)];
      pieces.push_back({symbol.id, symbol.begin, symbol.end});
    }
  }

 private:
  Vocabulary vocabulary_;
  std::array<std::int32_t, 256> bytes_{};
};

class BytePieceTokenizer final : public Tokenizer {
 public:
  explicit BytePieceTokenizer(BytePieces pieces)
      : model_(std::move(pieces.vocabulary)),
        pattern_(pieces.pattern, RegexFlavour::rust),
        specials_(std::move(pieces.specials)),
        finds_specials_(pieces.finds_specials),
        before_(std::move(pieces.before)) {
    specials_.finish([](const std::string& content) { return content; });
    info_ = std::move(pieces.info);
    info_.size = model_.vocabulary().size();
    for (const AddedToken& token : specials_.all()) {
      info_.specials[token.content] = token.id;
      info_.size = std::max<std::int64_t>(info_.size, std::int64_t{token.id} + 1);
    }
  }

  Encoding encode(std::string_view text, const EncodeOptions& options) const override {
    if (text.size() > 0x3FFFFFFF) throw Error("text: longer than 1 GB");
    Encoding result;
    if (options.add_specials) {
      for (const std::int32_t id : before_) put(result, id, {0, 0});
    }
    const std::size_t valid = valid_beginning(text);
    const std::string_view whole = text.substr(0, valid);
    const bool is_broken = valid < text.size();
    std::uint32_t last_word = 0;  // where it begins
    for (const Section& section : specials_.cut(whole, false, finds_specials_ && options.recognise_specials && !is_broken)) {
      if (section.token)
        put(result, section.token->id, section.range);
      else
        last_word = put_words(result, whole, section.range);
    }
    if (is_broken) put_broken(result, text, last_word);
    return result;
  }

  std::string text_of(std::int32_t id) const override {
    const auto piece = piece_of(id, false);
    return piece ? std::string(*piece) : number_of(id);
  }
  std::string decode(std::span<const std::int32_t> ids, bool skip_specials) const override {
    std::string bytes;
    for (const std::int32_t id : ids) bytes += piece_of(id, skip_specials).value_or("");
    return utf8::repaired(bytes);
  }
  std::optional<std::string> bytes_of(std::int32_t id, bool skip_specials) const override {
    return std::string(piece_of(id, skip_specials).value_or(""));
  }

 private:
  static void put(Encoding& result, std::int32_t id, Range place) {
    result.ids.push_back(id);
    result.begin.push_back(place.begin);
    result.end.push_back(place.end);
  }

  static std::size_t valid_beginning(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const Character character = utf8::character_at(text, at);
      if (!character.valid) break;
      at += character.length;
    }
    return at;
  }

  std::optional<std::string_view> piece_of(std::int32_t id, bool skip_specials) const {
    if (const AddedToken* token = specials_.of_id(id))
      return skip_specials ? std::nullopt : std::optional<std::string_view>(token->content);
    return model_.vocabulary().has(id) ? std::optional(model_.vocabulary().piece(id)) : std::nullopt;
  }

  /// Returns where the last word begins. What the pattern leaves out is lost, as in tiktoken.
  std::uint32_t put_words(Encoding& result, std::string_view text, Range section) const {
    WordCaches::Borrowed cache(caches_);
    std::vector<TokenPiece> long_word;
    std::uint32_t last = section.begin;
    pattern_.each_match(text, section, [&](Range word) {
      last = word.begin;
      const std::string_view part = text.substr(word.begin, word.size());
      const auto split = [this](std::string_view bytes, std::vector<TokenPiece>& pieces) { model_.split(bytes, pieces); };
      std::span<const TokenPiece> pieces;
      if (part.size() <= WordCache::kLongestWord) {
        pieces = (*cache).pieces_of(part, split);
      } else {
        long_word.clear();
        split(part, long_word);
        pieces = long_word;
      }
      for (const TokenPiece& piece : pieces) put(result, piece.id, {word.begin + piece.begin, word.begin + piece.end});
    });
    return last;
  }

  /// What follows the first broken byte is one word with the last one before it, and with the white space before that one if it is nothing
  /// else (tiktoken's _encode_bytes).
  void put_broken(Encoding& result, std::string_view text, std::uint32_t last_word) const {
    const auto is_space = [&](std::size_t token) {
      return std::ranges::all_of(model_.vocabulary().piece(result.ids[token]), [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
    };
    std::size_t keep = result.ids.size();
    while (keep > before_count(result) && result.begin[keep - 1] >= last_word) --keep;
    if (keep < result.ids.size() && is_space(keep)) {
      while (keep > before_count(result) && is_space(keep - 1)) --keep;
    }
    const std::size_t begin = keep < result.ids.size() ? result.begin[keep] : valid_beginning(text);
    result.ids.resize(keep), result.begin.resize(keep), result.end.resize(keep);
    std::vector<TokenPiece> pieces;
    model_.split(text.substr(begin), pieces);
    const auto shift = static_cast<std::uint32_t>(begin);
    for (const TokenPiece& piece : pieces) put(result, piece.id, {shift + piece.begin, shift + piece.end});
  }
  std::size_t before_count(const Encoding& result) const {
    return !before_.empty() && !result.ids.empty() && result.end[0] == 0 ? before_.size() : 0;
  }

  RankedBytes model_;
  SplitPattern pattern_;
  AddedTokens specials_;
  bool finds_specials_;
  std::vector<std::int32_t> before_;
  mutable WordCaches caches_;
};

}  // namespace

std::unique_ptr<Tokenizer> byte_piece_tokenizer(BytePieces pieces) { return std::make_unique<BytePieceTokenizer>(std::move(pieces)); }

}  // namespace statescope
