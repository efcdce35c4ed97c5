// tekken.json: Mistral's vocabularies over tiktoken. Special tokens have the first ids.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"
#include "engine/tokenizer/files/byte_pieces.h"
#include "engine/tokenizer/pipeline/json_fields.h"
#include "engine/tokenizer/text/base64.h"

namespace statescope {
namespace {

using nlohmann::json;

// Of files that list none (mistral-common, up to version 7).
constexpr std::array<const char*, 20> kSpecials{"<unk>",
                                                "<s>",
                                                "</s>",
                                                "[INST]",
                                                "[/INST]",
                                                "[AVAILABLE_TOOLS]",
                                                "[/AVAILABLE_TOOLS]",
                                                "[TOOL_RESULTS]",
                                                "[/TOOL_RESULTS]",
                                                "[TOOL_CALLS]",
                                                "[IMG]",
                                                "<pad>",
                                                "[IMG_BREAK]",
                                                "[IMG_END]",
                                                "[PREFIX]",
                                                "[MIDDLE]",
                                                "[SUFFIX]",
                                                "[SYSTEM_PROMPT]",
                                                "[/SYSTEM_PROMPT]",
                                                "[TOOL_CONTENT]"};

std::vector<std::string> special_names_in(const json& object, std::int64_t count) {
  std::vector<std::string> names(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("<SPECIAL_{}>", i);
  if (!object.contains("special_tokens") || object["special_tokens"].is_null()) {
    for (std::size_t i = 0; i < std::min(names.size(), kSpecials.size()); ++i) names[i] = kSpecials[i];
    return names;
  }
  for (const json& one : JsonFields("tekken", object).list("special_tokens")) {
    const JsonFields fields("special_tokens", one);
    const std::int64_t rank = fields.number("rank", -1);
    if (rank < 0 || rank >= count) fields.refuse("a rank beyond default_num_special_tokens");
    names[static_cast<std::size_t>(rank)] = fields.text("token_str");
  }
  return names;
}

/// The first `count` pieces; their ids follow those of the special tokens.
Vocabulary read_pieces(const json& list, std::int64_t count, std::int64_t specials) {
  if (std::ssize(list) < count) throw Error(fmt::format("vocab has {} pieces, fewer than config says ({})", list.size(), count));
  Vocabulary vocabulary;
  for (std::int64_t i = 0; i < count; ++i) {
    const JsonFields fields("vocab", list[static_cast<std::size_t>(i)]);
    const auto bytes = from_base64(fields.text("token_bytes"));
    if (fields.number("rank", -1) != i) fields.refuse("a rank out of order");
    if (!bytes || bytes->empty()) fields.refuse("token_bytes that are no base64");
    vocabulary.add(*bytes, i + specials);
  }
  return vocabulary;
}

BytePieces read_parts(const json& object) {
  const JsonFields fields("tekken", object), config("config", fields.value("config"));
  const std::int64_t size = config.number("default_vocab_size", -1), specials = config.number("default_num_special_tokens", -1);
  if (specials < 0 || size <= specials || size > kMostIds) config.refuse("such a default_vocab_size");
  BytePieces pieces;
  pieces.info.kind = "tekken BPE";
  pieces.pattern = config.text("pattern");
  pieces.vocabulary = read_pieces(fields.list("vocab"), size - specials, specials);
  pieces.finds_specials = false;
  std::int32_t id = 0;
  for (const std::string& name : special_names_in(object, specials)) {
    if (name == "<s>") pieces.info.begin_of_text = id;
    if (name == "</s>") pieces.info.end_of_text = id;
    pieces.specials.add({.id = id++, .content = name, .special = true});
  }
  return pieces;
}

}  // namespace

std::unique_ptr<Tokenizer> read_tekken(const TokenizerFiles& files, const std::string& name, const std::string& text) {
  check_json_text(files.source, name, text);
  try {
    const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) throw Error("is not a JSON object");
    return byte_piece_tokenizer(read_parts(object));
  } catch (const Error& error) {
    fail(files.source, fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace statescope
