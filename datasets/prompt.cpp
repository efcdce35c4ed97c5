#include "datasets/prompt.h"

#include <array>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "datasets/files.h"
#include "datasets/records.h"

namespace statescope {
namespace {

using nlohmann::json;

PromptPart part_of(const std::filesystem::path& path, const json& span) {
  static constexpr std::array<std::string_view, 3> names{"needle", "question", "answer"};
  const std::string name = span.value("part", json()).is_string() ? span["part"].get<std::string>() : "";
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<PromptPart>(i);
  refuse(path, "a span has no \"part\" that is needle, question or answer");
}

std::size_t offset_of(const std::filesystem::path& path, const json& span, const char* key, std::size_t limit) {
  const json offset = span.value(key, json());
  if (!offset.is_number_unsigned() || offset.get<std::uint64_t>() > limit)
    refuse(path, std::string("a span has no \"") + key + "\" between 0 and the " + std::to_string(limit) + " bytes of the prompt");
  return offset.get<std::size_t>();
}

PromptSpan span_of(const std::filesystem::path& path, const json& object, const std::string& text) {
  if (!object.is_object()) refuse(path, "\"spans\" is not a list of objects");
  const PromptSpan span{part_of(path, object), offset_of(path, object, "begin", text.size()), offset_of(path, object, "end", text.size())};
  if (span.begin >= span.end) refuse(path, "a span ends where it begins, or before");
  if (splits_character(text, span.begin) || splits_character(text, span.end)) refuse(path, "a span cuts a character in two");
  return span;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string expected_of(const std::filesystem::path& path, const json& expected) {
  if (expected.is_null()) return "";
  if (expected.is_string()) return expected;
  if (!expected.is_array()) refuse(path, "\"expected\" is neither text nor a list of words");
  std::vector<std::string> words;
  for (const json& word : expected) {
    if (!word.is_string()) refuse(path, "\"expected\" is neither text nor a list of words");
    words.push_back(word);
  }
  return joined(words);
}

Prompt prompt_of(const std::filesystem::path& path, const json& object) {
  if (!object.is_object() || !object.contains("prompt") || !object["prompt"].is_string()) refuse(path, "has no text under \"prompt\"");
  Prompt prompt{.text = object["prompt"], .expected = expected_of(path, object.value("expected", json())), .spans = {}};
  const json spans = object.value("spans", json::array());
  if (!spans.is_array()) refuse(path, "\"spans\" is not a list of objects");
  for (const json& span : spans) prompt.spans.push_back(span_of(path, span, prompt.text));
  return prompt;
}

/// Up to the first answer that the text gives, or to the last question where it gives none; what is expected is the answer that comes next.
Prompt prompt_of(const Record& record) {
  const std::vector<ExampleQuestion>& questions = record.example.questions;
  Prompt prompt{.text = record.input, .expected = joined(record.outputs), .spans = {}};
  if (questions.empty()) return prompt;
  const ExampleQuestion& last = questions.back();
  const bool given = record.input.size() < record.example.text.size();
  if (!given) prompt.text.resize(last.asked.end);
  prompt.expected = given ? questions.front().answer : last.answer;
  const auto mark = [&](PromptPart part, TextRange range) {
    if (range.end <= prompt.text.size()) prompt.spans.push_back({part, range.begin, range.end});
  };
  for (const TextRange& needle : record.example.needles) mark(PromptPart::needle, needle);
  for (const ExampleQuestion& question : questions) mark(PromptPart::question, question.asked);
  return prompt;
}

std::int32_t id_of(const std::filesystem::path& path, const std::string& word, std::size_t number) {
  std::int32_t id = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || end != word.data() + word.size() || id < 0)
    refuse(path, "\"" + word.substr(0, 40) + "\" (number " + std::to_string(number) + ") is not a token id");
  return id;
}

}  // namespace

Prompt read_prompt(const std::filesystem::path& path, std::size_t index) {
  if (path.extension() == ".jsonl") return prompt_of(read_record(path, index));
  std::string text = read_text(path);
  if (path.extension() != ".json") return {.text = std::move(text), .expected = {}, .spans = {}};
  const json document = parse_json(path, text);
  if (!document.is_array()) return prompt_of(path, document);
  if (index >= document.size())
    refuse(path, "has " + std::to_string(document.size()) + " prompts; there is no number " + std::to_string(index));
  return prompt_of(path, document[index]);
}

std::vector<Prompt> read_prompts(const std::filesystem::path& path) {
  std::vector<Prompt> prompts;
  if (path.extension() == ".jsonl") {
    for (const Record& record : read_records(path)) prompts.push_back(prompt_of(record));
  } else if (const json document = path.extension() == ".json" ? parse_json(path, read_text(path)) : json(); document.is_array()) {
    for (const json& object : document) prompts.push_back(prompt_of(path, object));
  } else {
    prompts.push_back(read_prompt(path));
  }
  if (prompts.empty()) refuse(path, "has no prompts");
  return prompts;
}

std::vector<std::int32_t> read_ids(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) refuse(path, "cannot be read");
  std::vector<std::int32_t> ids;
  for (std::string word; file >> word;) ids.push_back(id_of(path, word, ids.size() + 1));
  if (ids.empty()) refuse(path, "no token ids");
  return ids;
}

}  // namespace statescope
