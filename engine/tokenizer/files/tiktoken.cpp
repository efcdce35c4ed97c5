// Vocabularies as tiktoken writes them (OpenAI): Qwen, Kimi, Llama-3.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/files/byte_pieces.h"
#include "engine/tokenizer/files/special_names.h"
#include "engine/tokenizer/text/base64.h"
#include "engine/tokenizer/text/lines.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kKimi =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

using Specials = std::vector<std::pair<std::string, std::int64_t>>;

/// A vocabulary that is known by its number of pieces.
struct Known {
  std::size_t pieces;
  const char* pattern;
  Specials specials;
  std::string begin, end;
};

const std::vector<Known>& known_vocabularies() {
  static const std::vector<Known> known{
      {151643, kQwen, {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}}, "", "<|endoftext|>"},
      {248044, kQwen35, {{"<|endoftext|>", 248044}, {"<|im_start|>", 248045}, {"<|im_end|>", 248046}}, "", "<|im_end|>"},
      {128000,
       kLlama3,
       {{"<|begin_of_text|>", 128000},
        {"<|end_of_text|>", 128001},
        {"<|start_header_id|>", 128006},
        {"<|end_header_id|>", 128007},
        {"<|eom_id|>", 128008},
        {"<|eot_id|>", 128009}},
       "<|begin_of_text|>",
       "<|end_of_text|>"},
      {163584,
       kKimi,
       {{"[BOS]", 163584}, {"[EOS]", 163585}, {"<|im_end|>", 163586}, {"<|im_user|>", 163587}, {"<|im_assistant|>", 163588}},
       "[BOS]",
       "[EOS]"},
      {100256,
       kCl100k,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}},
       "",
       "<|endoftext|>"},
      {199998, kO200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}, "", "<|endoftext|>"}};
  return known;
}

struct RankedPiece {
  std::string bytes;
  std::int64_t rank;
};

std::optional<RankedPiece> piece_in(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == line.npos || space == 0) return std::nullopt;
  std::int64_t rank = -1;
  const auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
  if (error != std::errc() || end != line.data() + line.size()) return std::nullopt;
  auto bytes = from_base64(line.substr(0, space));
  if (!bytes || bytes->empty()) return std::nullopt;
  return RankedPiece{std::move(*bytes), rank};
}

Vocabulary read_pieces(std::string_view text) {
  Vocabulary vocabulary;
  vocabulary.reserve(static_cast<std::size_t>(std::ranges::count(text, '\n')), text.size() / 2);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.empty()) continue;
    const auto piece = piece_in(line);
    if (!piece) throw Error(fmt::format("line {} is not a piece in base64 and its rank", number));
    vocabulary.add(piece->bytes, piece->rank);
  }
  return vocabulary;
}

/// Special tokens of a JSON beside the vocabulary: name → id, or (added_tokens_decoder) id → {content}.
Specials specials_in(const json& object) {
  Specials specials;
  if (!object.is_object()) return specials;
  for (const auto& [key, value] : object.items()) {
    std::int64_t id = -1;
    if (value.is_number_unsigned()) {
      specials.emplace_back(key, static_cast<std::int64_t>(std::min<std::uint64_t>(value.get<std::uint64_t>(), kMostIds)));
    } else if (value.is_object() && value.contains("content") && value["content"].is_string() &&
               std::from_chars(key.data(), key.data() + key.size(), id).ec == std::errc()) {
      specials.emplace_back(value["content"].get<std::string>(), id);
    }
  }
  return specials;
}

/// The pattern and the special tokens, from what lies beside the file or from what is known of such a vocabulary.
void set_rest(BytePieces& pieces, const TokenizerFiles& files) {
  const json beside = json_file(files, "meta.json"), config = json_file(files, "tokenizer_config.json");
  const SpecialNames names = special_names(files);
  Specials specials = specials_in(beside.value("special_tokens", json()));
  if (specials.empty()) specials = specials_in(config.value("added_tokens_decoder", json()));
  std::string begin = names.begin, end = names.end;
  if (beside.contains("pat_str") && beside["pat_str"].is_string()) {
    pieces.pattern = beside["pat_str"].get<std::string>();
  } else {
    const auto known = std::ranges::find(known_vocabularies(), pieces.vocabulary.pieces(), &Known::pieces);
    if (known == known_vocabularies().end())
      throw Error(
          fmt::format("has {} pieces, as no known model, and does not say how it cuts words; meta.json beside it with pat_str and "
                      "special_tokens would",
                      pieces.vocabulary.pieces()));
    pieces.pattern = known->pattern;
    if (specials.empty()) specials = known->specials;
    if (begin.empty()) begin = known->begin;
    if (end.empty()) end = known->end;
  }
  for (const auto& [name, id] : specials) {
    if (id < 0 || id >= kMostIds || pieces.vocabulary.has(static_cast<std::int32_t>(id)))
      throw Error(fmt::format("the id {} of special token {} is taken, or none that a model has", id, in_quotes(name)));
    const auto number = static_cast<std::int32_t>(id);
    pieces.specials.add({.id = number, .content = name, .special = true});
    if (name == begin) pieces.info.begin_of_text = number;
    if (name == end) pieces.info.end_of_text = number;
  }
  if (names.add_begin == true && pieces.info.begin_of_text) pieces.before = {*pieces.info.begin_of_text};
}

}  // namespace

bool is_tiktoken(std::string_view text) { return piece_in(take_line(text)).has_value(); }

std::unique_ptr<Tokenizer> read_tiktoken(const TokenizerFiles& files, const std::string& name, std::string_view text) {
  try {
    BytePieces pieces;
    pieces.info.kind = "tiktoken BPE";
    pieces.vocabulary = read_pieces(text);
    set_rest(pieces, files);
    return byte_piece_tokenizer(std::move(pieces));
  } catch (const Error& error) {
    fail(files.source, fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace statescope
