#include "datasets/prompt.h"

#include <unistd.h>

#include <fstream>

#include "tests/catch.h"

using namespace statescope;
namespace fs = std::filesystem;

namespace {

class PromptFile {
 public:
  PromptFile(const std::string& name, const std::string& text) {
    std::string pattern = (fs::temp_directory_path() / "statescope-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
  }
  ~PromptFile() { fs::remove_all(folder_); }
  PromptFile(const PromptFile&) = delete;
  PromptFile& operator=(const PromptFile&) = delete;
  fs::path path;

 private:
  fs::path folder_;
};

Prompt read(const std::string& name, const std::string& text, std::size_t index = 0) {
  return read_prompt(PromptFile(name, text).path, index);
}

std::string error_of(const std::string& name, const std::string& text, std::size_t index = 0) {
  const PromptFile file(name, text);
  try {
    read_prompt(file.path, index);
  } catch (const std::runtime_error& error) {
    const std::string what = error.what();
    CHECK(what.find(file.path.string()) != what.npos);
    CHECK(what.find('\n') == what.npos);
    return what;
  }
  FAIL("no error was thrown");
  return {};
}

/// A prompt with one span.
std::string spans(const std::string& list) { return R"({"prompt": "nä dle", "spans": )" + list + "}"; }

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != text.npos);
  return text.find(part) != text.npos;
}

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
