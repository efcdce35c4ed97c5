#include "engine/tokenizer/files/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"
#include "engine/tokenizer/files/special_names.h"
#include "engine/tokenizer/files/tokenizer_json_text.h"
#include "engine/tokenizer/pipeline/json_fields.h"
#include "engine/tokenizer/pipeline/pipeline.h"
#include "engine/tokenizer/vocabularies/bpe.h"
#include "engine/tokenizer/vocabularies/unigram.h"
#include "engine/tokenizer/vocabularies/word_piece.h"
#include "engine/tokenizer/words.h"

namespace statescope {
namespace {

using nlohmann::json;

/// Files of 2022 do not say their model's type.
std::string type_of(const JsonFields& fields, const TokenizerJsonText& text) {
  if (!fields.type().empty()) return fields.type();
  if (text.has_merges) return "BPE";
  if (fields.has("max_input_chars_per_word")) return "WordPiece";
  return fields.has("unk_id") ? "Unigram" : "";
}

std::int32_t unknown_id(const JsonFields& fields, const Vocabulary& vocabulary, const char* otherwise) {
  const std::string name = fields.text("unk_token", otherwise);
  return name.empty() ? kNoId : vocabulary.find(name);
}

std::unique_ptr<PieceModel> read_bpe(const JsonFields& fields, const TokenizerJsonText& text, PipelineParts& parts) {
  BpeOptions options{.unknown = unknown_id(fields, *parts.vocabulary, ""),
                     .fuse_unknown = fields.flag("fuse_unk", false),
                     .byte_fallback = fields.flag("byte_fallback", false),
                     .ignore_merges = fields.flag("ignore_merges", false),
                     .prefix = fields.text("continuing_subword_prefix", ""),
                     .suffix = fields.text("end_of_word_suffix", "")};
  const bool is_byte_level = !parts.pre_tokenizers.empty() && parts.pre_tokenizers.back()->is_byte_level();
  const auto others = std::ranges::count_if(parts.pre_tokenizers, [](const auto& cutter) { return cutter->is_byte_level(); });
  const bool normalizes = std::ranges::any_of(parts.normalizers, [](const auto& normalizer) { return normalizer->is_byte_level(); });
  options.bytes = parts.takes_bytes = is_byte_level && others == 1 && !normalizes && options.prefix.empty() && options.suffix.empty();
  parts.info.kind = options.bytes ? "byte-level BPE" : "BPE";
  auto bpe = std::make_unique<Bpe>(*parts.vocabulary, std::move(options));
  bpe->reserve(text.merges.size());
  for (const TokenizerJsonText::Merge& merge : text.merges) bpe->add_merge(text.left(merge), text.right(merge));
  return bpe;
}

std::unique_ptr<PieceModel> read_unigram(const JsonFields& fields, const TokenizerJsonText& text, PipelineParts& parts) {
  parts.info.kind = "Unigram";
  std::vector<Unigram::Scored> scored;
  double lowest = 0;
  for (std::size_t i = 0; i < text.scores.size(); ++i) {
    scored.push_back({static_cast<std::int32_t>(i), text.scores[i]});
    lowest = i == 0 ? text.scores[i] : std::min(lowest, text.scores[i]);
  }
  const std::int64_t unknown = fields.number("unk_id", kNoId);
  if (unknown != kNoId && !(unknown >= 0 && unknown < std::ssize(scored))) fields.refuse("an unk_id beyond the vocabulary");
  return std::make_unique<Unigram>(
      *parts.vocabulary, scored, lowest,
      Unigram::Options{.unknown = static_cast<std::int32_t>(unknown), .byte_fallback = fields.flag("byte_fallback", false)});
}

std::unique_ptr<PieceModel> read_word_piece(const JsonFields& fields, PipelineParts& parts) {
  constexpr std::int64_t most = 1000;
  parts.info.kind = "WordPiece";
  const std::int32_t unknown = unknown_id(fields, *parts.vocabulary, "[UNK]");
  if (unknown == kNoId) fields.refuse("an unk_token that is not in the vocabulary");
  const std::int64_t longest = fields.number("max_input_chars_per_word", 100);
  if (longest < 0 || longest > most) fields.refuse("such a max_input_chars_per_word");
  return std::make_unique<WordPiece>(*parts.vocabulary, unknown, fields.text("continuing_subword_prefix", "##"),
                                     static_cast<std::size_t>(longest));
}

std::unique_ptr<PieceModel> read_model(const json& part, const TokenizerJsonText& text, PipelineParts& parts) {
  const JsonFields fields("model", part);
  const std::string type = type_of(fields, text);
  if (parts.vocabulary->pieces() == 0) fields.refuse("a model without a vocabulary");
  if (text.has_scores != (type == "Unigram")) fields.refuse("a vocabulary of another model's form");
  if (type == "BPE") return read_bpe(fields, text, parts);
  if (type == "Unigram") return read_unigram(fields, text, parts);
  if (type == "WordPiece") return read_word_piece(fields, parts);
  if (type != "WordLevel") fields.refuse_type();
  parts.info.kind = "WordLevel";
  return std::make_unique<WordLevel>(*parts.vocabulary, unknown_id(fields, *parts.vocabulary, ""));
}

const json& part_called(const json& object, const char* name) {
  static const json nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

/// The tokens for a text's beginning and end; the one that is put in front only where the configuration does not forbid it.
void set_specials(PipelineParts& parts, const SpecialNames& names) {
  const auto id_of = [&](const std::string& name) -> std::optional<std::int32_t> {
    const auto added = std::ranges::find(parts.added.all(), name, &AddedToken::content);
    if (added != parts.added.all().end()) return added->id;
    const std::int32_t id = name.empty() ? kNoId : parts.vocabulary->find(name);
    return id == kNoId ? std::nullopt : std::optional(id);
  };
  parts.info.begin_of_text = id_of(names.begin);
  parts.info.end_of_text = id_of(names.end);
  std::vector<std::int32_t>& before = parts.post_processor.before;
  if (names.add_begin == false && !before.empty() && parts.info.begin_of_text == before.front()) before.erase(before.begin());
}

std::unique_ptr<Tokenizer> read_pipeline(const TokenizerFiles& files, TokenizerJsonText text) {
  PipelineParts parts;
  parts.vocabulary = std::make_unique<Vocabulary>(std::move(text.vocabulary));
  parts.added = AddedTokens::read(part_called(text.rest, "added_tokens"));
  parts.normalizers = read_normalizers(part_called(text.rest, "normalizer"));
  parts.pre_tokenizers = read_pre_tokenizers(part_called(text.rest, "pre_tokenizer"));
  parts.post_processor = read_post_processor(part_called(text.rest, "post_processor"));
  parts.decoders = read_decoders(part_called(text.rest, "decoder"));
  parts.model = read_model(text.rest["model"], text, parts);
  set_specials(parts, special_names(files));
  return std::make_unique<Pipeline>(std::move(parts));
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const TokenizerFiles& files, const std::string& text) {
  check_json_text(files.source, "tokenizer.json", text);
  TokenizerJsonText parts;
  try {
    parts = read_tokenizer_json_text(text);
    const auto model = parts.rest.find("model");
    if (model != parts.rest.end() && model->is_object()) return read_pipeline(files, std::move(parts));
  } catch (const Error& error) {
    fail(files.source, fmt::format("tokenizer.json: {}", error.what()));
  }
  if (parts.rest.empty()) fail(files.source, "tokenizer.json is not a JSON object");
  if (const auto type = parts.rest.find("type"); type != parts.rest.end() && *type == "bytes")
    return byte_tokenizer(files.source, files.vocab_size);
  return word_tokenizer(files.source, parts.rest, files.vocab_size);
}

}  // namespace statescope
