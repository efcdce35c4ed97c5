#include "engine/tokenizer/tokenizer.h"

#include "tests/engine/checkpoint/checkpoint_files.h"

namespace statescope::tokenizer_test {
using namespace statescope::test;

namespace {

std::unique_ptr<Tokenizer> tokenizer(const std::map<std::string, std::string>& files, std::int64_t vocab_size) {
  Checkpoint checkpoint;
  checkpoint.path = "model";
  checkpoint.tokenizer = files;
  return make_tokenizer(checkpoint, vocab_size);
}

std::unique_ptr<Tokenizer> from_json(const std::string& text, std::int64_t vocab_size = 10) {
  return tokenizer({{"tokenizer.json", text}}, vocab_size);
}

std::string refusal(const Tokenizer& tokenizer) {
  return error_of([&] { tokenizer.encode("a"); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("words become ids, with the bytes that they came from") {
  const auto words = from_json(R"({"the": 4, "code": 9, ".": 2})");
  const Encoding encoding = words->encode("  the\tcode\n . ");
  CHECK(encoding.ids == std::vector<std::int32_t>{4, 9, 2});
  CHECK(encoding.begin == std::vector<std::size_t>{2, 6, 12});
  CHECK(encoding.end == std::vector<std::size_t>{5, 10, 13});
  CHECK(words->decode(encoding.ids) == "the code .");
  CHECK(words->text_of(9) == "code");
  CHECK(words->text_of(7) == "<7>");
  CHECK(words->text_of(-1) == "<-1>");
  CHECK(words->encode(" \n").ids.empty());
  CHECK(words->encode("").ids.empty());
}

TEST_CASE("a word that the model does not know is named, with its place") {
  const std::string error = error_of([] { from_json(R"({"the": 4})")->encode("the the\nunknown"); });
  CHECK(contains(error, "'unknown' (number 3, byte 8)"));
  CHECK_THROWS_AS(from_json(R"({"the": 4})")->encode("the unknown"), UnknownWordError);
  CHECK(!contains(error, "--"));  // the window shows it too
}

TEST_CASE("a word may be called type or model") {
  CHECK(from_json(R"({"type": 1, "model": 2})")->encode("model type").ids == std::vector<std::int32_t>{2, 1});
}

TEST_CASE("bytes are their own ids") {
  for (const auto& bytes : {from_json(R"({"type": "bytes"})", 300), tokenizer({}, 256), tokenizer({}, 260)}) {
    const Encoding encoding = bytes->encode("a\xc3\xa4");
    CHECK(encoding.ids == std::vector<std::int32_t>{97, 195, 164});
    CHECK(encoding.begin == std::vector<std::size_t>{0, 1, 2});
    CHECK(encoding.end == std::vector<std::size_t>{1, 2, 3});
    CHECK(bytes->decode(encoding.ids) == "a\xc3\xa4");
    CHECK(bytes->text_of(256) == "<256>");
  }
}

TEST_CASE("other tokenizers are refused by name, and only when text is given") {
  const struct {
    std::map<std::string, std::string> files;
    std::string name;
  } cases[] = {
      {{{"tokenizer.json", R"({"version": "1.0", "model": {"type": "BPE"}})"}}, "model BPE: a model without a vocabulary"},
      {{{"tokenizer.json", R"({"model": {}})"}}, "model: a model without a vocabulary"},
      {{{"tokenizer.json", R"({"model": {"type": "X", "vocab": {"a": 0}}})"}}, "model 'X' is not supported"},
      {{{"vocab.txt", "a"}}, "vocab.txt"},
      {{}, "has no tokenizer"},
  };
  for (const auto& [files, name] : cases) {
    const auto other = tokenizer(files, 32000);
    CHECK(contains(refusal(*other), name));
    CHECK(contains(refusal(*other), "--ids"));
    CHECK(other->text_of(7) == "<7>");
    CHECK(other->decode(std::vector<std::int32_t>{7, 8}) == "<7> <8>");
  }
}

TEST_CASE("a damaged tokenizer.json is refused when text is given") {
  CHECK(contains(refusal(*from_json("{")), "is not JSON"));
  CHECK(contains(refusal(*from_json("")), "is empty"));
  CHECK(contains(refusal(*from_json("{}")), "not a JSON object"));
  CHECK(contains(refusal(*from_json("[1]")), "not a JSON object"));
  CHECK(contains(refusal(*from_json(std::string(1000000, '['))), "nested more than 64 deep"));
  CHECK(contains(refusal(*from_json(R"({"a": 10})")), "id of word 'a' is not an integer below 10"));
  CHECK(contains(refusal(*from_json(R"({"a": -1})")), "id of word 'a'"));
  CHECK(contains(refusal(*from_json(R"({"a": 1.5})")), "id of word 'a'"));
  CHECK(contains(refusal(*from_json(R"({"a": "b"})")), "id of word 'a'"));
  CHECK(contains(refusal(*from_json(R"({"a": 1, "b": 1})")), "words 'a' and 'b' have the same id 1"));
  CHECK(contains(refusal(*from_json(R"({"type": "bytes"})", 100)), "only 100 token ids"));
}

}  // namespace statescope::tokenizer_test
