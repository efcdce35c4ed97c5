#include "datasets/records.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "datasets/files.h"
#include "datasets/lines.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

bool is_given(const ExampleQuestion& question) { return question.given.begin < question.given.end; }

std::string input_of(const Example& example) {
  for (const ExampleQuestion& question : example.questions)
    if (is_given(question)) return example.text.substr(0, question.given.begin);
  return example.text;
}

ordered_json json_of(TextRange range) { return {range.begin, range.end}; }

ordered_json json_of(const ExampleQuestion& question) {
  return {{"asked", json_of(question.asked)},
          {"answer", question.answer},
          {"given", is_given(question) ? json_of(question.given) : ordered_json()},
          {"needles", question.needles},
          {"depth", question.depth}};
}

/// Reads one object; its errors say which.
class RecordReader {
 public:
  RecordReader(const fs::path& path, const std::string& where) : path_(path), where_(where) {}

  Record read(const json& object) const {
    if (!object.is_object()) fail("is not a JSON object");
    Record record{.input = text(object, "input"), .outputs = outputs(object), .example = {}};
    Example& example = record.example;
    example.index = number(object, "index");
    example.length = number(object, "length");
    example.text = object.contains("text") ? text(object, "text") : record.input;
    if (!example.text.starts_with(record.input)) fail("\"text\" does not begin with \"input\"");
    for (const json& needle : list(object, "needles")) example.needles.push_back(range(needle, example.text));
    for (const json& asked : list(object, "questions")) example.questions.push_back(question(asked, example));
    return record;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { refuse(path_, where_ + what); }

  std::string text(const json& object, const char* key) const {
    if (!object.contains(key) || !object[key].is_string()) fail(std::string("has no text under \"") + key + "\"");
    return object[key];
  }

  /// 0 if absent.
  std::int64_t number(const json& object, const char* key) const {
    const json value = object.value(key, json(0));
    if (!value.is_number_integer()) fail(std::string("has no whole number under \"") + key + "\"");
    return value;
  }

  /// Empty if absent.
  json list(const json& object, const char* key) const {
    json value = object.value(key, json::array());
    if (!value.is_array()) fail(std::string("\"") + key + "\" is not a list");
    return value;
  }

  std::vector<std::string> outputs(const json& object) const {
    std::vector<std::string> answers;
    if (!object.contains("outputs")) fail("has no list of texts under \"outputs\"");
    for (const json& answer : list(object, "outputs")) {
      if (!answer.is_string()) fail("has no list of texts under \"outputs\"");
      answers.push_back(answer);
    }
    return answers;
  }

  TextRange range(const json& pair, const std::string& text) const {
    const auto is_offset = [&](const json& value) {
      return value.is_number_unsigned() && value.get<std::uint64_t>() <= text.size() && !splits_character(text, value.get<std::size_t>());
    };
    if (!pair.is_array() || pair.size() != 2 || !is_offset(pair[0]) || !is_offset(pair[1]) || pair[0] >= pair[1])
      fail("has a range that is not [begin, end] between the characters of its " + std::to_string(text.size()) + " bytes");
    return {pair[0], pair[1]};
  }

  ExampleQuestion question(const json& object, const Example& example) const {
    if (!object.is_object()) fail("\"questions\" is not a list of objects");
    ExampleQuestion question{.asked = range(object.value("asked", json()), example.text),
                             .answer = text(object, "answer"),
                             .given = {},
                             .needles = {},
                             .depth = 0};
    if (const json given = object.value("given", json()); !given.is_null()) question.given = range(given, example.text);
    for (const json& needle : list(object, "needles")) {
      if (!needle.is_number_unsigned() || needle.get<std::uint64_t>() >= example.needles.size())
        fail("a question names a needle that is not there");
      question.needles.push_back(needle);
    }
    const json depth = object.value("depth", json());
    if (!depth.is_number() || depth < 0.0 || depth > 1.0) fail("a question has no \"depth\" between 0 and 1");
    question.depth = depth;
    return question;
  }

  const fs::path& path_;
  const std::string& where_;
};

std::string line_name(std::size_t number) { return "line " + std::to_string(number) + ": "; }

Record read_line(const fs::path& path, std::size_t number, std::string_view line) {
  return record_of(path, parse_json(path, line, line_name(number)), line_name(number));
}

}  // namespace

std::string record_line(const Example& example, const TaskOptions& options, bool in_chat) {
  ordered_json outputs = ordered_json::array(), needles = ordered_json::array(), questions = ordered_json::array();
  for (const TextRange& needle : example.needles) needles.push_back(json_of(needle));
  for (const ExampleQuestion& question : example.questions) {
    outputs.push_back(question.answer);
    questions.push_back(json_of(question));
  }
  ordered_json object{{"index", example.index},
                      {"input", input_of(example)},
                      {"outputs", std::move(outputs)},
                      {"length", example.length},
                      {"text", example.text},
                      {"needles", std::move(needles)},
                      {"questions", std::move(questions)},
                      {"task", options.name},
                      {"seed", options.seed},
                      {"split", options.split == Split::training ? "training" : "evaluation"}};
  if (in_chat) object["chat"] = true;
  return object.dump();
}

std::vector<Record> read_records(const fs::path& path) {
  std::vector<Record> records;
  const std::string text = read_text(path);
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    records.push_back(read_line(path, number, line));
    return true;
  });
  return records;
}

Record read_record(const fs::path& path, std::size_t index) {
  const std::string text = read_text(path);
  const Line line = line_at(path, text, index);
  return read_line(path, line.number, line.text);
}

Record record_of(const fs::path& path, const json& object, const std::string& where) { return RecordReader(path, where).read(object); }

}  // namespace statescope
