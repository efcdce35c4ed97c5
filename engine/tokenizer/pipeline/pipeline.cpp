#include "engine/tokenizer/pipeline/pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/error.h"
#include "engine/tokenizer/text/utf8.h"
#include "engine/tokenizer/words.h"

namespace statescope {
namespace {

constexpr std::string_view kSign = "▁";

/// Words end before each ▁ that stands behind another character.
std::vector<Range> ended_before_sign(const std::string& text, const std::vector<Range>& words) {
  std::vector<Range> result;
  for (Range word : words) {
    const std::string_view part = std::string_view(text).substr(0, word.end);
    bool is_behind_sign = true;
    for (std::size_t at = part.find(kSign, word.begin); at != part.npos; at = part.find(kSign, at + kSign.size())) {
      is_behind_sign = at >= word.begin + kSign.size() && part.substr(at - kSign.size(), kSign.size()) == kSign;
      if (is_behind_sign || at == word.begin) continue;
      result.push_back({word.begin, static_cast<std::uint32_t>(at)});
      word.begin = static_cast<std::uint32_t>(at);
    }
    result.push_back(word);
  }
  return result;
}

}  // namespace

Pipeline::Pipeline(PipelineParts parts) : parts_(std::move(parts)) {
  parts_.added.finish([this](const std::string& content) { return normal(AlignedText(content, 0)).text(); });
  info_ = std::move(parts_.info);
  info_.size = parts_.vocabulary->size();
  for (const AddedToken& token : parts_.added.all()) {
    info_.size = std::max<std::int64_t>(info_.size, std::int64_t{token.id} + 1);
    if (token.special) info_.specials[token.content] = token.id;
  }
}

AlignedText Pipeline::normal(AlignedText text) const {
  for (const auto& normalizer : parts_.normalizers) normalizer->apply(text);
  return text;
}

CutText Pipeline::cut(AlignedText text) const {
  CutText words = CutText::of(std::move(text));
  for (std::size_t i = 0; i < parts_.pre_tokenizers.size(); ++i) {
    const PreTokenizer& cutter = *parts_.pre_tokenizers[i];
    cutter.cut(words);
    if (cutter.is_byte_level() && !parts_.takes_bytes) to_byte_alphabet(words);
  }
  if (parts_.model->ends_before_sign()) words.ranges = ended_before_sign(words.text.text(), words.ranges);
  return words;
}

/// One text on its way.
struct Pipeline::Encoder {
  const Pipeline& tokenizer;
  std::string_view text;
  bool recognise_specials;
  Encoding result;
  WordCaches::Borrowed cache;
  std::vector<TokenPiece> long_word;

  Encoder(const Pipeline& pipeline, std::string_view given, const EncodeOptions& options)
      : tokenizer(pipeline), text(given), recognise_specials(options.recognise_specials), cache(pipeline.caches_) {
    result.ids.reserve(given.size() / 4), result.begin.reserve(given.size() / 4), result.end.reserve(given.size() / 4);
  }

  void put(std::int32_t id, std::string_view piece, Range place) {
    const PostProcessor& post = tokenizer.parts_.post_processor;
    if (post.trims) place = post.trimmed(text, piece, place, result.ids.empty());
    result.ids.push_back(id);
    result.begin.push_back(place.begin);
    result.end.push_back(place.end);
  }

  /// Cuts tokens out of a text and hands on what lies between them.
  template <class Rest>
  void sections(AlignedText whole, bool normalized, Rest rest) {
    const std::vector<Section> sections = tokenizer.parts_.added.cut(whole.text(), normalized, recognise_specials);
    if (sections.size() == 1 && !sections[0].token) return rest(std::move(whole));
    for (const Section& section : sections) {
      if (section.token)
        put(section.token->id, whole.part(section.range), whole.origin_of(section.range));
      else
        rest(whole.slice(section.range));
    }
  }

  void encode(AlignedText whole) {
    sections(std::move(whole), false, [this](AlignedText part) {
      sections(tokenizer.normal(std::move(part)), true, [this](AlignedText normal) { put_words(tokenizer.cut(std::move(normal))); });
    });
  }

  void put_words(const CutText& words) {
    const Vocabulary& vocabulary = *tokenizer.parts_.vocabulary;
    for (const Range word : words.ranges) {
      for (const TokenPiece& piece : pieces_of(words.text.part(word)))
        put(piece.id, vocabulary.piece(piece.id), words.text.origin_of({word.begin + piece.begin, word.begin + piece.end}));
    }
  }

  std::span<const TokenPiece> pieces_of(std::string_view word) {
    const auto split = [this](std::string_view part, std::vector<TokenPiece>& pieces) { tokenizer.parts_.model->split(part, pieces); };
    if (word.size() <= WordCache::kLongestWord) return (*cache).pieces_of(word, split);
    long_word.clear();
    split(word, long_word);
    return long_word;
  }
};

Encoding Pipeline::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > std::numeric_limits<std::uint32_t>::max() / 4) throw Error("text: longer than 1 GB");
  Encoder encoder(*this, text, options);
  const auto put_specials = [&](const std::vector<std::int32_t>& ids, std::size_t place) {
    if (!options.add_specials) return;
    encoder.result.ids.insert(encoder.result.ids.end(), ids.begin(), ids.end());
    encoder.result.begin.resize(encoder.result.ids.size(), place);
    encoder.result.end.resize(encoder.result.ids.size(), place);
  };
  encoder.encode(AlignedText::repaired(text));
  Encoding body = std::exchange(encoder.result, {});
  put_specials(parts_.post_processor.before, 0);
  if (encoder.result.ids.empty()) {
    encoder.result = std::move(body);
  } else {
    encoder.result.ids.insert(encoder.result.ids.end(), body.ids.begin(), body.ids.end());
    encoder.result.begin.insert(encoder.result.begin.end(), body.begin.begin(), body.begin.end());
    encoder.result.end.insert(encoder.result.end.end(), body.end.begin(), body.end.end());
  }
  put_specials(parts_.post_processor.after, 0);
  return std::move(encoder.result);
}

std::optional<std::string_view> Pipeline::piece_of(std::int32_t id, bool skip_specials) const {
  if (const AddedToken* token = parts_.added.of_id(id))
    return skip_specials && token->special ? std::nullopt : std::optional<std::string_view>(token->content);
  if (parts_.vocabulary->has(id)) return parts_.vocabulary->piece(id);
  return std::nullopt;
}

std::string Pipeline::text_of(std::int32_t id) const {
  const auto piece = piece_of(id, false);
  if (!piece) return number_of(id);
  std::string text(*piece);
  for (const auto& decoder : parts_.decoders) text = decoder->shown(std::move(text));
  return text;
}

std::string Pipeline::decode(std::span<const std::int32_t> ids, bool skip_specials) const {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (const auto piece = piece_of(id, skip_specials)) pieces.emplace_back(*piece);
  }
  for (const auto& decoder : parts_.decoders) decoder->apply(pieces);
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && parts_.decoders.empty()) text += ' ';
    text += pieces[i];
  }
  return text;
}

std::optional<std::string> Pipeline::bytes_of(std::int32_t id, bool skip_specials) const {
  if (parts_.decoders.size() != 1 || !parts_.decoders[0]->joins_bytes()) return std::nullopt;
  const auto piece = piece_of(id, skip_specials);
  return piece ? parts_.decoders[0]->shown(std::string(*piece)) : std::string();
}

}  // namespace statescope
