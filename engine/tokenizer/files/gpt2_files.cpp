#include "engine/tokenizer/files/gpt2_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"
#include "engine/tokenizer/files/special_names.h"
#include "engine/tokenizer/pipeline/pipeline.h"
#include "engine/tokenizer/text/lines.h"
#include "engine/tokenizer/vocabularies/bpe.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::unique_ptr<Vocabulary> read_vocabulary(const TokenizerFiles& files, const std::string& text) {
  check_json_text(files.source, "vocab.json", text);
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || object.empty()) throw Error("vocab.json is not a JSON object with pieces");
  auto vocabulary = std::make_unique<Vocabulary>();
  vocabulary->reserve(object.size(), text.size());
  for (const auto& [piece, id] : object.items()) {
    if (!id.is_number_unsigned()) throw Error(fmt::format("vocab.json: the id of piece {} is not a number", in_quotes(piece)));
    vocabulary->add(piece, static_cast<std::int64_t>(std::min<std::uint64_t>(id.get<std::uint64_t>(), kMostIds)));
  }
  return vocabulary;
}

std::unique_ptr<PieceModel> read_merges(const Vocabulary& vocabulary, std::string_view text) {
  auto bpe = std::make_unique<Bpe>(vocabulary, BpeOptions{.bytes = true});
  bpe->reserve(static_cast<std::size_t>(std::ranges::count(text, '\n')));
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos)
      throw Error(fmt::format("merges.txt: line {} is not two pieces: {}", number, in_quotes(line)));
    bpe->add_merge(line.substr(0, space), line.substr(space + 1));
  }
  return bpe;
}

/// added_tokens.json (name → id), added_tokens_decoder of tokenizer_config.json, and the names that are special.
AddedTokens read_added(const TokenizerFiles& files, const Vocabulary& vocabulary, const SpecialNames& names) {
  AddedTokens added;
  const auto add = [&](const std::string& name, std::int64_t id, bool special) {
    if (id < 0 || id >= kMostIds || name.empty() || added.of_id(static_cast<std::int32_t>(id))) return;
    added.add({.id = static_cast<std::int32_t>(id), .content = name, .special = special});
  };
  const json config = json_file(files, "tokenizer_config.json");
  const json decoder = config.value("added_tokens_decoder", json::object());
  for (const auto& [key, token] : decoder.items()) {
    std::int64_t id = -1;
    std::from_chars(key.data(), key.data() + key.size(), id);
    if (token.is_object() && token.contains("content") && token["content"].is_string())
      add(token["content"].get<std::string>(), id, token.value("special", json(false)) == true);
  }
  const json list = json_file(files, "added_tokens.json");
  for (const auto& [name, id] : list.items())
    if (id.is_number_unsigned() && id.get<std::uint64_t>() < kMostIds) add(name, id.get<std::int64_t>(), true);
  for (const std::string& name : {names.begin, names.end, std::string("<|endoftext|>")}) add(name, vocabulary.find(name), true);
  return added;
}

struct Cutting {
  const char* pattern;
  bool composes;  // NFC first
};

Cutting cutting_of(const TokenizerFiles& files) {
  static constexpr std::array<std::string_view, 5> gpt2{"", "GPT2Tokenizer", "GPT2TokenizerFast", "GPTNeoXTokenizer",
                                                        "PreTrainedTokenizerFast"};
  const json config = json_file(files, "tokenizer_config.json");
  const auto name = config.find("tokenizer_class");
  const std::string kind = name != config.end() && name->is_string() ? name->get<std::string>() : "";
  if (kind == "Qwen2Tokenizer" || kind == "Qwen2TokenizerFast") return {kQwen2Pattern, true};
  if (std::ranges::find(gpt2, kind) == gpt2.end())
    throw Error(fmt::format("vocab.json and merges.txt of a {} (tokenizer_config.json) are not supported; a tokenizer.json would be",
                            in_quotes(kind)));
  return {kGpt2Pattern, false};
}

std::unique_ptr<Tokenizer> read_parts(const TokenizerFiles& files, const std::string& vocabulary, std::string_view merges) {
  const SpecialNames names = special_names(files);
  const Cutting cutting = cutting_of(files);
  PipelineParts parts;
  parts.info.kind = "byte-level BPE";
  parts.vocabulary = read_vocabulary(files, vocabulary);
  parts.model = read_merges(*parts.vocabulary, merges);
  parts.takes_bytes = true;
  parts.added = read_added(files, *parts.vocabulary, names);
  if (cutting.composes) parts.normalizers = read_normalizers({{"type", "NFC"}});
  parts.pre_tokenizers = read_pre_tokenizers({{"type", "Split"}, {"pattern", {{"Regex", cutting.pattern}}}});
  parts.decoders.push_back(byte_level_decoder());
  for (const AddedToken& token : parts.added.all()) {
    if (token.content == names.begin) parts.info.begin_of_text = token.id;
    if (token.content == names.end) parts.info.end_of_text = token.id;
  }
  if (names.add_begin == true && parts.info.begin_of_text) parts.post_processor.before = {*parts.info.begin_of_text};
  return std::make_unique<Pipeline>(std::move(parts));
}

}  // namespace

std::unique_ptr<Tokenizer> read_gpt2_files(const TokenizerFiles& files, const std::string& vocabulary, std::string_view merges) {
  try {
    return read_parts(files, vocabulary, merges);
  } catch (const Error& error) {
    const std::string what = error.what(), source = files.source.string() + ": ";
    fail(files.source, what.starts_with(source) ? what.substr(source.size()) : what);
  }
}

}  // namespace statescope
