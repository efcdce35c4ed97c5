#include "datasets/prompt.h"

#include "tests/datasets/prompt_file.h"

namespace statescope::prompt_test {
using test::contains;
using test::InputFile;
using test::read;
namespace fs = std::filesystem;

namespace {

std::string error_of(const std::string& name, const std::string& text, std::size_t index = 0) {
  return test::error_of(InputFile(name, text), [index](const fs::path& path) { read_prompt(path, index); });
}

/// A prompt with one span.
std::string spans(const std::string& list) { return R"({"prompt": "nä dle", "spans": )" + list + "}"; }

}  // namespace

TEST_CASE("a text file is its prompt, byte for byte") {
  const Prompt prompt = read("prompt.txt", "  two\nlines ä\n");
  CHECK(prompt.text == "  two\nlines ä\n");
  CHECK(prompt.expected.empty());
  CHECK(prompt.spans.empty());
  CHECK(read("prompt", "").text.empty());
}

TEST_CASE("one object, or one of a list") {
  CHECK(read("p.json", R"({"prompt": "a b", "expected": "c"})").expected == "c");
  const std::string list = R"([{"prompt": "first", "ids": [1]}, {"prompt": "second", "expected": ["3", "6"]}])";
  CHECK(read("p.json", list).text == "first");
  CHECK(read("p.json", list).expected.empty());
  CHECK(read("p.json", list, 1).text == "second");
  CHECK(read("p.json", list, 1).expected == "3 6");
  contains(error_of("p.json", list, 2), "has 2 prompts; there is no number 2");
  contains(error_of("p.json", "[]"), "has 0 prompts");
}

TEST_CASE("all prompts of a file: of a list, of lines, or the one that it is") {
  const auto all = [](const std::string& name, const std::string& text) { return read_prompts(InputFile(name, text).path); };
  const std::vector<Prompt> list = all("p.json", R"([{"prompt": "first"}, {"prompt": "second", "expected": "3"}])");
  REQUIRE(list.size() == 2);
  CHECK((list[0].text == "first" && list[1].text == "second" && list[1].expected == "3"));
  CHECK(all("p.json", R"({"prompt": "a b"})").at(0).text == "a b");
  CHECK(all("p.txt", "[1, 2]").at(0).text == "[1, 2]");
  contains(test::error_of(InputFile("p.json", "[]"), [](const fs::path& path) { read_prompts(path); }), "has no prompts");
  contains(test::error_of(InputFile("p.json", R"([{"prompt": "a"}, 7])"), [](const fs::path& path) { read_prompts(path); }), "no text");
}

TEST_CASE("spans mark bytes") {
  const Prompt prompt = read("p.json", spans(R"([{"part": "needle", "begin": 0, "end": 3}, {"part": "question", "begin": 3, "end": 7},
                                                 {"part": "answer", "begin": 4, "end": 5}])"));
  REQUIRE(prompt.spans.size() == 3);
  CHECK(prompt.spans[0].part == PromptPart::needle);
  CHECK(prompt.spans[1].part == PromptPart::question);
  CHECK(prompt.spans[2].part == PromptPart::answer);
  CHECK(prompt.text.substr(prompt.spans[0].begin, prompt.spans[0].end - prompt.spans[0].begin) == "nä");
  CHECK(prompt.spans[1].end == prompt.text.size());
  CHECK(read("p.json", R"({"prompt": "a", "spans": []})").spans.empty());
}

TEST_CASE("spans outside the prompt, empty, or within a character are refused") {
  contains(error_of("p.json", spans(R"([{"part": "needle", "begin": 0, "end": 8}])")), "\"end\" between 0 and the 7 bytes");
  contains(error_of("p.json", spans(R"([{"part": "needle", "begin": -1, "end": 3}])")), "no \"begin\"");
  contains(error_of("p.json", spans(R"([{"part": "needle", "begin": 0.5, "end": 3}])")), "no \"begin\"");
  contains(error_of("p.json", spans(R"([{"part": "needle", "begin": 0, "end": 18446744073709551615}])")), "no \"end\"");
  contains(error_of("p.json", spans(R"([{"part": "needle", "end": 3}])")), "no \"begin\"");
  contains(error_of("p.json", spans(R"([{"part": "needle", "begin": 3, "end": 3}])")), "ends where it begins");
  contains(error_of("p.json", spans(R"([{"part": "needle", "begin": 4, "end": 3}])")), "ends where it begins");
  contains(error_of("p.json", spans(R"([{"part": "needle", "begin": 0, "end": 2}])")), "cuts a character");
  contains(error_of("p.json", spans(R"([{"part": "thread", "begin": 0, "end": 3}])")), "no \"part\"");
  contains(error_of("p.json", spans(R"([{"part": 1, "begin": 0, "end": 3}])")), "no \"part\"");
  contains(error_of("p.json", spans(R"([[0, 3]])")), "not a list of objects");
  contains(error_of("p.json", spans(R"({"part": "needle"})")), "not a list of objects");
}

TEST_CASE("what is no prompt is refused") {
  contains(error_of("p.json", ""), "is not JSON");
  contains(error_of("p.json", "{\"prompt\": \"a\"} x"), "is not JSON");
  contains(error_of("p.json", "7"), "no text under \"prompt\"");
  contains(error_of("p.json", "{}"), "no text under \"prompt\"");
  contains(error_of("p.json", R"([{"prompt": 7}])"), "no text under \"prompt\"");
  contains(error_of("p.json", R"({"prompt": "a", "expected": 7})"), "\"expected\" is neither");
  contains(error_of("p.json", R"({"prompt": "a", "expected": ["b", 7]})"), "\"expected\" is neither");
  contains(error_of("p.json", std::string(1000000, '[')), "nested more than 16 deep");
  contains(error_of("p.txt", "a\xff"), "is not UTF-8");
  contains(error_of("p.json", "{\"prompt\": \"a\xff\"}"), "is not UTF-8");
  CHECK_THROWS_WITH(read_prompt("/nonexistent/p.json"), "/nonexistent/p.json: cannot be opened: No such file or directory");
  CHECK_THROWS_WITH(read_prompt(fs::temp_directory_path()), fs::temp_directory_path().string() + ": is not a file");
}

TEST_CASE("a file of token ids") {
  CHECK(read_ids(InputFile("ids", "1 2\n  2147483647\n").path) == std::vector<std::int32_t>{1, 2, 2147483647});
  const auto error = [](const std::string& text) { return test::error_of(InputFile("ids", text), read_ids); };
  contains(error(""), "no token ids");
  contains(error("1 -2"), "\"-2\" (number 2) is not a token id");
  contains(error("2147483648"), "is not a token id");
  contains(error("1 2x"), "\"2x\" (number 2)");
  CHECK_THROWS_WITH(read_ids("/nonexistent/ids"), "/nonexistent/ids: cannot be opened: No such file or directory");
}

TEST_CASE("a prompt of a JSONL file ends where its first answer begins") {
  const std::string line = R"({"index": 0, "input": "ab is 12. cd? ", "outputs": ["12"], "length": 16, "text": "ab is 12. cd? 12",
    "needles": [[0, 9]], "questions": [{"asked": [10, 13], "answer": "12", "given": [14, 16], "needles": [0], "depth": 0}]})";
  std::string one_line = line;
  one_line.erase(one_line.find('\n'), 1);
  const Prompt prompt = read("p.jsonl", "{}\n" + one_line + "\n", 1);
  CHECK(prompt.text == "ab is 12. cd? ");
  CHECK(prompt.expected == "12");
  REQUIRE(prompt.spans.size() == 2);
  CHECK(prompt.spans[0].part == PromptPart::needle);
  CHECK(prompt.spans[1].part == PromptPart::question);
  CHECK(prompt.spans[1].begin == 10);
  contains(error_of("p.jsonl", one_line, 1), "has 1 prompts; there is no number 1");
}

TEST_CASE("a prompt of recall ends after its last question") {
  const Prompt prompt =
      read("p.jsonl", R"({"index": 0, "input": "k1 v1 k1 n4", "outputs": ["v1"], "length": 4, "text": "k1 v1 k1 n4",)"
                      R"("needles": [[0, 5]], "questions": [{"asked": [6, 8], "answer": "v1", "given": null, "depth": 0}]})");
  CHECK(prompt.text == "k1 v1 k1");
  CHECK(prompt.expected == "v1");
  CHECK(prompt.spans.size() == 2);
}

TEST_CASE("RULER's prompts have a text and what is expected") {
  const Prompt prompt = read("p.jsonl", R"({"index": 7, "input": "a b", "outputs": ["3", "6"], "length": 2, "answer_prefix": " x"})");
  CHECK(prompt.text == "a b x");
  CHECK(prompt.expected == "3 6");
  CHECK(prompt.answers == std::vector<std::string>{"3", "6"});
  CHECK(prompt.spans.empty());
}

}  // namespace statescope::prompt_test
