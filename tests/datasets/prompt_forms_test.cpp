// Prompts as other programs write them, and how they come: by names in capitals, from pipes, with marks and words that JSON has not.
#include <fcntl.h>
#include <sys/stat.h>

#include <thread>

#include "datasets/answer_spans.h"
#include "datasets/files.h"
#include "datasets/prompt.h"
#include "tests/datasets/prompt_file.h"

namespace statescope::prompt_forms_test {
using test::contains;
using test::InputFile;
using test::read;
namespace fs = std::filesystem;

namespace {

std::string error_of(const std::string& name, const std::string& text) {
  return test::error_of(InputFile(name, text), [](const fs::path& path) { read_prompts(path); });
}

std::string part(const Prompt& prompt, std::size_t span) {
  return prompt.text.substr(prompt.spans.at(span).begin, prompt.spans[span].end - prompt.spans[span].begin);
}

const std::string kObject = R"({"prompt": "a b", "expected": "c"})";
const std::string kLine = R"({"index": 0, "input": "ann is 12 . bob is 34 . who is bob", "outputs": ["34"], "length": 9})";

}  // namespace

TEST_CASE("JSON is known by names in any letters, and by content where the name says nothing") {
  for (const char* name : {"p.json", "P.JSON", "p.Json", "p", "p.prompt", "63"}) {
    INFO(name);
    CHECK(read(name, kObject).text == "a b");
    CHECK(read(name, "[" + kObject + ", {\"prompt\": \"second\"}]", 1).text == "second");
  }
  CHECK(read("p.txt", kObject).text == kObject);  // text may be JSON
  CHECK(read("p", "{a} b [c]").text == "{a} b [c]");
  CHECK(read("p", "[1] first").text == "[1] first");
  CHECK(read("p", "  ").text == "  ");
}

TEST_CASE("JSONL is known by names in any letters, and by content where the name says nothing") {
  for (const char* name : {"p.jsonl", "p.JSONL", "p.ndjson", "P.NDJSON", "p", "p.json", "p.log"}) {
    INFO(name);
    const InputFile file(name, kLine + "\n" + kObject + "\n");
    CHECK(read_prompt(file.path).text == "ann is 12 . bob is 34 . who is bob");
    CHECK(read_prompt(file.path, 1).text == "a b");
    CHECK(read_prompts(file.path).size() == 2);
  }
  CHECK(read("p.jsonl", "[\n" + kObject + "\n]").text == "a b");  // a list, whatever it is called
  contains(error_of("p.jsonl", kLine + "\n{\"inp"), "line 2: is not JSON");
  contains(error_of("p.ndjson", "word\n" + kLine), "line 1: is not JSON");
  contains(error_of("p", "{\"input\": \"a"), "is not JSON");  // cut off: not read as text
}

TEST_CASE("a byte order mark, ends of lines of Windows and NaN do no harm") {
  const std::string mark = "\xef\xbb\xbf";
  CHECK(read("p.json", mark + kObject).text == "a b");
  CHECK(read("p.jsonl", mark + kLine + "\r\n\r\n" + kLine + "\r\n", 1).answers == std::vector<std::string>{"34"});
  CHECK(read("p.txt", mark + "a\r\nb").text == "a\r\nb");
  CHECK(read("p.json", R"({"prompt": "NaN \" Infinity", "score": NaN, "range": [-Infinity, Infinity]})").text == "NaN \" Infinity");
  CHECK(read("p.jsonl", R"({"input": "a", "acc": NaN})").text == "a");
  CHECK(read_ids(InputFile("ids", mark + "1 2\r\n3\r\n").path) == std::vector<std::int32_t>{1, 2, 3});
  contains(error_of("p.txt", std::string("\xff\xfe\x61\x00", 4)), "is UTF-16; write it as UTF-8");
  contains(error_of("p.json", R"({"prompt": "a", "x": NaNs})"), "is not JSON");
}

TEST_CASE("RULER's and lm-eval's prefixes go behind the input, with a space where neither has one") {
  const auto text = [](const std::string& input, const std::string& prefix) {
    return read("p.jsonl", "{\"input\": \"" + input + "\", \"outputs\": [\"7\"], " + prefix + "}").text;
  };
  CHECK(text("what is the code of", R"("answer_prefix": "ivan ")") == "what is the code of ivan ");
  CHECK(text("what is it?", R"("answer_prefix": " It is")") == "what is it? It is");
  CHECK(text("what is it? ", R"("gen_prefix": "It is")") == "what is it? It is");
  CHECK(text("what is it?", R"("gen_prefix": "It is")") == "what is it? It is");
  CHECK(text("what is it?", R"("gen_prefix": null, "answer_prefix": "")") == "what is it?");
  contains(error_of("p.jsonl", R"({"input": "a", "answer_prefix": 7})"), "has no text under \"answer_prefix\"");
}

TEST_CASE("needle and question are the sentences of the answer and the end") {
  const Prompt prompt = read("p.jsonl", kLine);
  REQUIRE(prompt.spans.size() == 2);
  CHECK(part(prompt, 0) == "bob is 34 .");
  CHECK(prompt.spans[0].part == PromptPart::needle);
  CHECK(part(prompt, 1) == "who is bob");
  CHECK(prompt.spans[1].part == PromptPart::question);

  const std::string text = "Read this.\nOne number for oak is 4821.\nThe harbour was 14821 years old! What is the number for oak? It is";
  const std::vector<PromptSpan> spans = answer_spans(text, {"4821", "absent"}, text.size() - 6);
  REQUIRE(spans.size() == 2);
  CHECK(text.substr(spans[0].begin, spans[0].end - spans[0].begin) == "One number for oak is 4821.");
  CHECK(text.substr(spans[1].begin, spans[1].end - spans[1].begin) == "What is the number for oak? It is");
  CHECK(answer_spans(text, {"oak"}, text.size()).size() == 2);
  CHECK(answer_spans("", {"a"}, 0).empty());
  CHECK(answer_spans("a. a", {""}, 4).empty());
  CHECK(answer_spans(text, {"482"}, text.size()).empty());  // within a word
}

TEST_CASE("a line of lm-eval's log of samples") {
  const Prompt now =
      read("samples_niah.jsonl",
           R"({"doc_id": 0, "doc": {"input": "x"}, "target": ["12", "34"], "arguments": {"gen_args_0": {"arg_0": "the text", )"
           R"("arg_1": {"until": ["\n"]}}}, "resps": [["12"]], "exact_match": NaN})");
  CHECK(now.text == "the text");
  CHECK(now.answers == std::vector<std::string>{"12", "34"});
  const Prompt before = read("p.jsonl", R"({"doc_id": 0, "target": "34", "arguments": [["the text", {"until": []}]]})");
  CHECK(before.text == "the text");
  CHECK(before.expected == "34");
  const std::string choices =
      R"("arguments": {"gen_args_0": {"arg_0": "Q:", "arg_1": " no"}, "gen_args_1": {"arg_0": "Q:", "arg_1": " yes"}}})";
  CHECK(read("p.jsonl", "{\"target\": 1, " + choices).expected == "yes");
  CHECK(read("p.jsonl", "{\"target\": \"0\", " + choices).expected == "no");
  CHECK(read("p.jsonl", "{\"target\": 7, " + choices).expected.empty());
  CHECK(read("p.jsonl", R"({"doc": {"input": "in", "outputs": ["5"], "gen_prefix": "so"}})").text == "in so");
  contains(error_of("p.jsonl", R"({"arguments": []})"), "\"arguments\" has no text");
  contains(error_of("p.jsonl", R"({"arguments": {"a": {"arg_0": 1}}})"), "\"arguments\" has no text");
  contains(error_of("p.jsonl", R"({"messages": [{"role": "user", "content": "x"}]})"), "has \"messages\" and no \"prompt\"");
}

TEST_CASE("token ids in place of text") {
  const std::vector<std::int32_t> ids{5, 0, 7};
  for (const char* object : {R"({"ids": [5, 0, 7]})", R"({"input_ids": [5, 0, 7]})", R"({"prompt_token_ids": [5, 0, 7]})",
                             R"({"prompt": [5, 0, 7]})", R"({"input": [5, 0, 7], "outputs": ["4"]})"}) {
    INFO(object);
    CHECK(read("p.json", object).ids == ids);
    CHECK(read_ids(InputFile("ids", object).path) == ids);
  }
  CHECK(read("p.json", R"({"input": [5], "outputs": ["4"]})").expected == "4");
  for (const char* text : {"5 0\n7", "5,0,7", "[5, 0, 7]", " [5,\n0,7]\n", "{\"ids\": [5, 0, 7]}\n{\"ids\": [1]}\n"}) {
    INFO(text);
    CHECK(read_ids(InputFile("ids", text).path) == ids);
  }
  contains(error_of("p.json", R"({"ids": [5, -1]})"), "-1 (number 2) is not a token id");
  contains(error_of("p.json", R"({"ids": [5, 2147483648]})"), "2147483648 (number 2) is not a token id");
  contains(error_of("p.json", R"({"ids": []})"), "neither text nor token ids under \"ids\"");
  contains(error_of("p.json", R"({"ids": "5"})"), "neither text nor token ids under \"ids\"");
  contains(test::error_of(InputFile("ids", "{\"prompt\": \"text\"}"), read_ids), "no token ids");
}

TEST_CASE("spans of token ids count tokens") {
  const Prompt prompt = read("p.json", R"({"ids": [5, 0, 7], "spans": [{"part": "needle", "begin": 1, "end": 3}]})");
  REQUIRE(prompt.spans.size() == 1);
  CHECK((prompt.spans[0].part == PromptPart::needle && prompt.spans[0].begin == 1 && prompt.spans[0].end == 3));
  contains(error_of("p.json", R"({"prompt": [5, 0, 7], "spans": [{"part": "needle", "begin": 1, "end": 4}]})"),
           "a span has no \"end\" between 0 and the 3 tokens of the prompt");
}

TEST_CASE("pipes and devices are read once and within bounds") {
  const InputFile beside("p", "");
  const fs::path pipe = beside.folder / "pipe.jsonl";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(pipe) << kLine << "\n"; });
  const Prompt prompt = read_prompt(pipe);
  writer.join();
  CHECK(prompt.answers == std::vector<std::string>{"34"});
  CHECK(read_prompt(pipe).text == prompt.text);  // nobody writes any more
  CHECK(is_stream(pipe));
  CHECK(is_stream("-"));
  CHECK(!is_stream(beside.path));
  CHECK(!is_stream(beside.folder));
  CHECK_THROWS_WITH(read_ids("/dev/zero"), "/dev/zero: has more than 67108864 bytes");
  CHECK_THROWS_WITH(read_prompt("/dev/zero"), "/dev/zero: has more than 67108864 bytes");
  CHECK_THROWS_WITH(read_ids("/dev/null"), "/dev/null: no token ids");
}

TEST_CASE("a logged line cut short at any byte is refused") {
  const std::string line = R"({"target": "1", "arguments": [["the text", " a"], ["the text", " b"]], "doc": {"input": "x"}})";
  CHECK(read("p.jsonl", line).expected == "b");
  for (std::size_t size = 1; size < line.size(); ++size) contains(error_of("p.jsonl", line.substr(0, size)), "is not JSON");
}

TEST_CASE("one answer is enough where a task is of question answering: its name, the file's or the folder's says so") {
  const auto any = [](const std::string& name, const std::string& task = "") {
    const std::string object = R"({"input": "q", "outputs": ["a", "b"])" + (task.empty() ? "" : R"(, "task": ")" + task + '"') + "}";
    const Prompt prompt = read(name, object + "\n");
    CHECK(prompt.expected == (prompt.any_answer ? "a" : "a b"));
    return prompt.any_answer;
  };
  CHECK(any("qa_1.jsonl"));
  CHECK(any("QA.jsonl"));
  CHECK(any("samples_ruler_qa_squad_2026.jsonl"));
  CHECK_FALSE(any("validation.jsonl"));
  CHECK_FALSE(any("aqaba.jsonl"));
  CHECK(any("validation.jsonl", "qa_2"));
  CHECK_FALSE(any("qa_1.jsonl", "niah_multivalue"));
  const InputFile folder("none.txt", "");
  fs::create_directory(folder.folder / "qa_1");
  folder.add("qa_1/validation.jsonl", R"({"input": "q", "outputs": ["a", "b"]})");
  CHECK(read_prompt(folder.folder / "qa_1/validation.jsonl").any_answer);
}

}  // namespace statescope::prompt_forms_test
