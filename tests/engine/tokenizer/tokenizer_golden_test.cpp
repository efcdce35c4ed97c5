// Every kind of tokenizer against its reference library: ids, places, texts, and texts as they come.
#include "tests/engine/tokenizer/tokenizer_golden.h"

#include "engine/tokenizer/text/utf8.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/catch.h"

namespace statescope::tokenizer_golden_test {
using namespace statescope::test;
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

/// The long texts are said by how they are made.
std::string text_of(const json& made) {
  std::string text;
  if (made.contains("bytes_hex_in")) return from_hex(made["bytes_hex_in"]);
  if (made.contains("text")) return made["text"];
  const json& rule = made["text_gen"];
  if (rule.contains("repeat")) {
    for (int i = 0; i < rule["times"]; ++i) text += rule["repeat"].get<std::string>();
    return text;
  }
  const std::string alphabet = rule["alphabet"];
  std::uint32_t x = rule["lcg_seed"];
  for (int i = 0; i < rule["n"]; ++i) {
    x = 1664525U * x + 1013904223U;
    text += alphabet[(x >> 16) % alphabet.size()];
  }
  return text;
}

std::vector<std::vector<std::size_t>> places(const Encoding& encoding) {
  std::vector<std::vector<std::size_t>> pairs;
  for (std::size_t i = 0; i < encoding.ids.size(); ++i) pairs.push_back({encoding.begin[i], encoding.end[i]});
  return pairs;
}

/// A long text's ids: how many, the first and the last ones.
void check_long(const json& made, const Ids& ids) {
  if (made.contains("n_ids_alt") && ids.size() == made["n_ids_alt"]) return;
  REQUIRE(ids.size() == made["n_ids"]);
  const Ids head = made["head"], tail = made["tail"];
  CHECK(Ids(ids.begin(), ids.begin() + std::ssize(head)) == head);
  CHECK(Ids(ids.end() - std::ssize(tail), ids.end()) == tail);
}

void check_text(const Tokenizer& tokenizer, const json& made) {
  const std::string text = text_of(made);
  const Encoding all = tokenizer.encode(text, {.recognise_specials = true});
  const Ids plain = tokenizer.encode(text, {.add_specials = false, .recognise_specials = true}).ids;
  if (made.contains("text_gen")) return check_long(made, plain);
  const Ids ids = made["ids"];
  if (all.ids != ids && made.contains("ids_alt")) {
    CHECK(all.ids == made["ids_alt"].get<Ids>());
    return;
  }
  CHECK(all.ids == ids);
  CHECK(plain == made.value("ids_plain", ids));
  if (made.contains("ids_ordinary")) CHECK(tokenizer.encode(text).ids == made["ids_ordinary"].get<Ids>());
  const std::string decoded = made.value("decoded", utf8::repaired(text));
  CHECK(tokenizer.decode(ids) == decoded);
  if (made.contains("decoded_skip")) CHECK(tokenizer.decode(ids, true) == made["decoded_skip"].get<std::string>());
  const char* key = made.contains("byte_offsets") ? "byte_offsets" : "offsets";
  if (made.contains(key)) CHECK(places(all) == made[key].get<std::vector<std::vector<std::size_t>>>());
}

/// What the reference's decoder says after each token, as long as it does not fail; of tokens that are bytes, all of it together is the
/// text.
void check_stream(const std::shared_ptr<const Tokenizer>& tokenizer, const json& made, const std::string& key, bool skip) {
  const Ids ids = made["ids"];
  const bool says_the_same = made.contains(key) && !tokenizer->bytes_of(ids.front(), skip);
  StreamDecoder decoder(tokenizer, skip);
  std::string said;
  bool fails = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string added = decoder.add(ids[i]);
    CHECK(utf8::is_valid(added));
    said += added;
    fails = fails || (says_the_same && made[key][i].is_object());
    if (says_the_same && !fails) CHECK(added == (made[key][i].is_null() ? "" : made[key][i].get<std::string>()));
  }
  said += decoder.finish();
  // Byte pieces may break a text of which a part has been said.
  if (tokenizer->bytes_of(ids.front(), skip)) CHECK(said == tokenizer->decode(ids, skip));
}

void check_ids(const std::shared_ptr<const Tokenizer>& tokenizer, const json& made) {
  const Ids ids = made["ids"];
  if (made.contains("decoded")) CHECK(tokenizer->decode(ids) == made["decoded"].get<std::string>());
  if (made.contains("bytes_hex")) CHECK(tokenizer->decode(ids) == utf8::repaired(from_hex(made["bytes_hex"])));
  if (made.contains("decoded_skip")) CHECK(tokenizer->decode(ids, true) == made["decoded_skip"].get<std::string>());
  const bool has_texts = made.contains("prefix");
  const json prefixes = has_texts ? made["prefix"] : made.value("prefix_bytes_hex", json::array());
  for (std::size_t k = 0; k < prefixes.size(); ++k) {
    const std::string text = has_texts ? prefixes[k].get<std::string>() : utf8::repaired(from_hex(prefixes[k]));
    CHECK(tokenizer->decode(std::span(ids).first(k + 1)) == text);
  }
  if (ids.empty()) return;
  check_stream(tokenizer, made, "stream", false);
  if (made.contains("stream_skip")) check_stream(tokenizer, made, "stream_skip", true);
}

}  // namespace

TEST_CASE("tokenizers agree with their reference libraries") {
  REQUIRE(tokenizer_kinds().size() >= 15);
  for (const std::string& kind : tokenizer_kinds()) {
    const std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(tokenizer_folder(kind));
    for (const char* file : {"cases.jsonl", "decode.jsonl"}) {
      for (const json& made : json_lines(tokenizer_folder(kind) / file)) {
        INFO(kind + " " + made["id"].get<std::string>());
        if (std::string(file) == "cases.jsonl")
          check_text(*tokenizer, made);
        else
          check_ids(tokenizer, made);
      }
    }
  }
}

TEST_CASE("every id has a text of its own, and beyond the last there are numbers") {
  for (const std::string& kind : tokenizer_kinds()) {
    const auto tokenizer = open_tokenizer(vocabulary_file(kind));
    INFO(kind);
    CHECK(tokenizer->info().refusal.empty());
    CHECK(!tokenizer->info().kind.empty());
    const auto size = static_cast<std::int32_t>(tokenizer->info().size);
    CHECK(tokenizer->text_of(size) == "<" + std::to_string(size) + ">");
    CHECK(tokenizer->text_of(-1) == "<-1>");
    for (const auto& [name, id] : tokenizer->info().specials) CHECK(id < size);
    CHECK(tokenizer->encode("").ids == tokenizer->encode("", {}).ids);
  }
}

TEST_CASE("one word of a million letters takes no quadratic time") {
  std::string word;
  for (int i = 0; i < 1'000'000; ++i) word += static_cast<char>('a' + i * i % 23);
  for (const char* kind : {"gpt2_bpe", "llama2_bpe", "t5_unigram", "sp_bpe", "sp_unigram", "tiktoken_bpe", "bert_wordpiece"}) {
    INFO(kind);
    CHECK(open_tokenizer(tokenizer_folder(kind))->encode(word).ids.size() > 0);
  }
}

}  // namespace statescope::tokenizer_golden_test
