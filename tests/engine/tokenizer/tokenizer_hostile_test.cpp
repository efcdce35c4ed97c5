// Damaged vocabularies: each is one line of error, or a tokenizer that works; never anything else.
#include <fmt/format.h>

#include <algorithm>

#include "engine/error.h"
#include "engine/tokenizer/text/split_pattern.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/tokenizer/tokenizer_golden.h"

namespace statescope::tokenizer_hostile_test {
using namespace statescope::test;
namespace {

constexpr const char* kText = "The ▁café, 12345 <s>\t\n你好 🙂 zzz";
const std::vector<std::string> kFileKinds{"gpt2_bpe",   "llama2_metaspace_bpe", "t5_unigram",      "bert_wordpiece", "sp_bpe",
                                          "sp_unigram", "tiktoken_bpe",         "sp_unigram_user", "tekken",         "rwkv_world"};

/// A checkpoint of that kind whose vocabulary has these bytes.
std::unique_ptr<Tokenizer> with_bytes(const std::string& kind, const std::string& bytes) {
  Checkpoint checkpoint;
  checkpoint.path = "model";
  checkpoint.tokenizer[vocabulary_file(kind).filename()] = bytes;
  if (kind == "tiktoken_bpe") checkpoint.tokenizer["meta.json"] = read_bytes(tokenizer_folder(kind) / "meta.json");
  return make_tokenizer(checkpoint, 5000);
}

/// Whether it reads text; what it says otherwise is one line with the file's name.
bool works(const std::string& kind, const std::string& bytes) {
  const auto tokenizer = with_bytes(kind, bytes);
  const std::string& refusal = tokenizer->info().refusal;
  if (!refusal.empty()) {
    INFO(refusal);
    CHECK(refusal.find('\n') == refusal.npos);
    CHECK(refusal.starts_with("model: "));
    return false;
  }
  try {
    const Encoding encoding = tokenizer->encode(kText, {.recognise_specials = true});
    tokenizer->decode(encoding.ids);
    const std::size_t size = std::string_view(kText).size();
    for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
      if (encoding.begin[i] > encoding.end[i] || encoding.end[i] > size) FAIL("a place beyond the text");
      tokenizer->text_of(encoding.ids[i]);
    }
  } catch (const Error&) {
  }
  return true;
}

}  // namespace

TEST_CASE("a vocabulary that is cut off anywhere is refused or works") {
  for (const std::string& kind : kFileKinds) {
    INFO(kind);
    const std::string whole = read_bytes(vocabulary_file(kind));
    REQUIRE(works(kind, whole));
    const std::size_t step = std::max<std::size_t>(1, whole.size() / 3000);
    for (std::size_t size = 0; size < whole.size(); size += step) {
      const bool is_json = whole.front() == '{';
      const bool is_read = works(kind, whole.substr(0, size));
      if (is_json && is_read) FAIL("a JSON without its end was read");
    }
  }
}

TEST_CASE("a vocabulary with more and more wrong bytes is refused or works") {
  for (const std::string& kind : kFileKinds) {
    INFO(kind);
    std::string bytes = read_bytes(vocabulary_file(kind));
    std::uint32_t x = 7;
    const auto draw = [&x] { return (x = 1664525U * x + 1013904223U) >> 8; };
    const std::string whole = bytes;
    for (int round = 0; round < 300; ++round) {
      if (round % 20 == 0) bytes = whole;
      bytes[draw() % bytes.size()] = static_cast<char>(draw());
      works(kind, bytes);
    }
  }
}

TEST_CASE("parts that are not understood are named") {
  const struct {
    std::string json, says;
  } cases[] = {
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})", "merge 1 names piece 'b'"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]}})", "merge 1 names the result 'aa'"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["aa"]}})", "merge 1 is not two pieces"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}})", "same id 0"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 4294967296}, "merges": []}})", "piece 'a'"},
      {R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})", "piece 'a'"},
      {R"({"model": {"type": "BPE", "vocab": {"a": "x"}, "merges": []}})", "the id of piece 'a'"},
      {R"({"model": {"type": "Unigram", "vocab": [["a", -1], ["b"]]}})", "no score"},
      {R"({"model": {"type": "Unigram", "unk_id": 9, "vocab": [["a", -1]]}})", "unk_id"},
      {R"({"normalizer": {"type": "Magic"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})", "normalizer 'Magic'"},
      {R"({"pre_tokenizer": {"type": "UnicodeScripts"}, "model": {"vocab": {"a": 0}, "merges": []}})", "pre_tokenizer 'UnicodeScripts'"},
      {R"({"decoder": {"type": "CTC"}, "model": {"vocab": {"a": 0}, "merges": []}})", "decoder 'CTC'"},
      {R"({"post_processor": {"type": "X"}, "model": {"vocab": {"a": 0}, "merges": []}})", "post_processor 'X'"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}}, "model": {"vocab": {"a": 0}, "merges": []}})",
       "the pattern '(a'"},
      {R"({"added_tokens": [{"id": 1}], "model": {"vocab": {"a": 0}, "merges": []}})", "added_tokens"},
  };
  for (const auto& [json, says] : cases) {
    Checkpoint checkpoint;
    checkpoint.path = "model";
    checkpoint.tokenizer["tokenizer.json"] = json;
    const std::string refusal = make_tokenizer(checkpoint, 100)->info().refusal;
    INFO(refusal);
    CHECK(refusal.starts_with("model: tokenizer.json: "));
    CHECK(refusal.find(says) != refusal.npos);
  }
}

TEST_CASE("steps that make a text too long for any memory are refused by their part") {
  const auto refusal = [](const char* part, int times) {
    std::string steps;
    for (int i = 0; i < times; ++i) steps += R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"},)";
    steps.pop_back();
    Checkpoint checkpoint;
    checkpoint.path = "model";
    checkpoint.tokenizer["tokenizer.json"] = fmt::format(
        R"({{"{0}": {{"type": "Sequence", "{0}s": [{1}]}}, "model": {{"type": "BPE", "vocab": {{"a": 0}}, "merges": []}}}})", part, steps);
    return make_tokenizer(checkpoint, 100)->info().refusal;
  };
  for (const char* part : {"normalizer", "decoder"}) {
    CHECK(refusal(part, 3).empty());
    CHECK(refusal(part, 4) ==
          fmt::format("model: tokenizer.json: {}: it may make a text 1e+04 times as long; at most 1000 times is supported", part));
  }
}

TEST_CASE("Git LFS pointers and unknown files are named") {
  Checkpoint checkpoint;
  checkpoint.path = "model";
  checkpoint.tokenizer["tokenizer.model"] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  CHECK(make_tokenizer(checkpoint, 100)->info().refusal.find("Git LFS pointer") != std::string::npos);
  checkpoint.tokenizer["tokenizer.model"] = "something else";
  CHECK(make_tokenizer(checkpoint, 100)->info().refusal.find("tokenizer.model is neither") != std::string::npos);
}

TEST_CASE("patterns are said as PCRE2 understands them") {
  CHECK(translated(R"([\p{L}&&[^\p{Han}]]+)", RegexFlavour::rust) == R"((?:(?![\p{sc:Han}])[\p{L}])+)");
  CHECK(translated(R"(\p{N}{1,3}+)", RegexFlavour::rust) == R"(\p{N}{1,3}+)");
  CHECK(translated(R"(\p{N}{1,3}+)", RegexFlavour::oniguruma) == R"((?:\p{N}{1,3})+)");
  CHECK(translated(R"((?i:'s)|[^a]?x)", RegexFlavour::rust) == R"((?i:'s)|[^a]?x)");
  for (const char* pattern : {"[a[b]]", "[^a&&[b]]", "[a&&b]", "a\\", "[a", "a)", R"(\h)"})
    CHECK_THROWS_AS(translated(pattern, RegexFlavour::rust), Error);
}

TEST_CASE("a pattern that never ends its search is an error, not a wait") {
  const SplitPattern pattern("(a+)+$", RegexFlavour::rust);
  const std::string text(5000, 'a');
  CHECK_THROWS_AS(pattern.each_match(text + "b", {0, 5001}, [](Range) {}), Error);
}

}  // namespace statescope::tokenizer_hostile_test
