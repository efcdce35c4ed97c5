#include "datasets/prompt_object.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "datasets/answer_spans.h"
#include "datasets/files.h"
#include "datasets/lines.h"
#include "datasets/records.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c; }

/// Letters "qa" with none beside them: qa_1, QA-hotpot, ruler_qa_squad.
bool has_word_qa(const std::string& name) {
  std::string word;
  for (const char each : name + ' ') {
    const char c = small(each);
    if (c >= 'a' && c <= 'z') {
      word += c;
    } else if (word == "qa") {
      return true;
    } else {
      word.clear();
    }
  }
  return false;
}

/// Reads one object; its errors say which.
class ObjectReader {
 public:
  ObjectReader(const fs::path& path, const std::string& where) : path_(path), where_(where) {}

  Prompt read(const json& object) const {
    Prompt prompt = of_form(object);
    prompt.any_answer = takes_any(object);
    prompt.in_chat = object.value("chat", json()) == true;
    if (prompt.any_answer && !prompt.answers.empty()) prompt.expected = prompt.answers.front();
    return prompt;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { refuse(path_, where_ + what); }

  Prompt of_form(const json& object) const {
    if (!object.is_object()) fail("has no text under \"prompt\"");
    if (object.contains("prompt")) return own_prompt(object);
    if (object.contains("input")) return record_prompt(object);
    if (object.contains("arguments")) return logged_prompt(object);
    if (object.contains("doc") && object["doc"].is_object() && !object["doc"].contains("doc")) return read(object["doc"]);
    if (object.contains("messages")) fail("has \"messages\" and no \"prompt\": give the text that the chat template makes of them");
    for (const char* key : {"ids", "input_ids", "token_ids", "prompt_token_ids"}) {
      if (object.contains(key)) return ids_prompt(object, key);
    }
    if (object.contains("text")) return text_prompt(object);
    fail("has no text under \"prompt\" or \"input\", and no \"ids\"");
  }

  /// As its "task" says, or else the name of the file, or how that of its folder begins: RULER has qa_1/validation.jsonl, lm-eval
  /// samples_ruler_qa_squad….
  bool takes_any(const json& object) const {
    if (object.contains("task") && object["task"].is_string()) return has_word_qa(object["task"]);
    const fs::path folder = path_ == "-" ? "" : fs::absolute(path_).parent_path().filename();
    return has_word_qa(path_.stem().string()) || has_word_qa(folder.string().substr(0, std::string_view("qa_").size()));
  }

  std::string text(const json& object, const char* key) const {
    if (!object[key].is_string()) fail(std::string("has no text under \"") + key + "\"");
    return object[key];
  }

  std::vector<std::string> texts(const json& list, const std::string& otherwise) const {
    std::vector<std::string> all;
    for (const json& each : list) {
      if (!each.is_string()) fail(otherwise);
      all.push_back(each);
    }
    return all;
  }

  // ---- ours
  // -------------------------------------------------------------------------------------------------------------------------------

  /// {"prompt": text or ids, "expected": text or words, "spans": […], "answer_prefix": text}
  Prompt own_prompt(const json& object) const {
    if (object["prompt"].is_array()) return ids_prompt(object, "prompt");
    Prompt prompt{.text = text(object, "prompt"), .ids = {}, .expected = expected(object), .answers = {}, .spans = {}};
    if (!prompt.expected.empty()) prompt.answers = {prompt.expected};
    const std::size_t asked = prompt.text.size();
    prompt.text = with_prefix(std::move(prompt.text), object);
    if (!object.contains("spans")) {
      prompt.spans = answer_spans(prompt.text, prompt.answers, asked);
      return prompt;
    }
    prompt.spans = spans(object, prompt.text.size(), "bytes");
    for (const PromptSpan& span : prompt.spans)
      if (splits_character(prompt.text, span.begin) || splits_character(prompt.text, span.end)) fail("a span cuts a character in two");
    return prompt;
  }

  std::string expected(const json& object) const {
    const std::string wrong = "\"expected\" is neither text nor a list of words";
    const json value = object.value("expected", json());
    if (value.is_null()) return "";
    if (value.is_string()) return value;
    if (!value.is_array()) fail(wrong);
    return joined(texts(value, wrong));
  }

  /// Within `length` of what they count.
  std::vector<PromptSpan> spans(const json& object, std::size_t length, const std::string& counted) const {
    const json list = object.value("spans", json::array());
    if (!list.is_array()) fail("\"spans\" is not a list of objects");
    std::vector<PromptSpan> spans;
    for (const json& each : list) {
      if (!each.is_object()) fail("\"spans\" is not a list of objects");
      spans.push_back({part(each), offset(each, "begin", length, counted), offset(each, "end", length, counted)});
      if (spans.back().begin >= spans.back().end) fail("a span ends where it begins, or before");
    }
    return spans;
  }
  PromptPart part(const json& span) const {
    static constexpr std::array<std::string_view, 3> names{"needle", "question", "answer"};
    const std::string name = span.value("part", json()).is_string() ? span["part"].get<std::string>() : "";
    for (std::size_t i = 0; i < names.size(); ++i)
      if (name == names[i]) return static_cast<PromptPart>(i);
    fail("a span has no \"part\" that is needle, question or answer");
  }
  std::size_t offset(const json& span, const char* key, std::size_t limit, const std::string& counted) const {
    const json offset = span.value(key, json());
    if (!offset.is_number_unsigned() || offset.get<std::uint64_t>() > limit)
      fail(std::string("a span has no \"") + key + "\" between 0 and the " + std::to_string(limit) + " " + counted + " of the prompt");
    return offset.get<std::size_t>();
  }

  /// {"text": …}, as `statescope tokenize` reads it.
  Prompt text_prompt(const json& object) const {
    return {.text = text(object, "text"), .ids = {}, .expected = {}, .answers = {}, .spans = {}};
  }

  // ---- token ids
  // --------------------------------------------------------------------------------------------------------------------------

  Prompt ids_prompt(const json& object, const char* key) const {
    if (!are_ids(path_, object[key], where_)) fail(std::string("has neither text nor token ids under \"") + key + "\"");
    Prompt prompt{.text = {}, .ids = ids_of(object[key]), .expected = {}, .answers = answers(object), .spans = {}};
    prompt.expected = joined(prompt.answers);
    prompt.spans = spans(object, prompt.ids.size(), "tokens");
    return prompt;
  }

  // ---- RULER, lm-eval
  // ---------------------------------------------------------------------------------------------------------------------

  /// The model reads input + prefix, with a space between them where neither has one: RULER cuts its prompts in two where the answer begins
  /// ("answer_prefix", with its space), lm-eval joins them again by one ("gen_prefix").
  std::string with_prefix(std::string input, const json& object) const {
    for (const char* key : {"answer_prefix", "gen_prefix"}) {
      const json value = object.value(key, json());
      if (value.is_null() || value == "") continue;
      const std::string prefix = text(object, key);
      const bool apart = input.empty() || kWhiteInTexts.find(input.back()) != kWhiteInTexts.npos ||
                         kWhiteInTexts.find(prefix.front()) != kWhiteInTexts.npos;
      return input + (apart ? "" : " ") + prefix;
    }
    return input;
  }

  /// What a right reply contains, under whichever name; empty: it is not said.
  std::vector<std::string> answers(const json& object) const {
    for (const char* key : {"outputs", "expected", "answers", "answer", "target"}) {
      const json value = object.value(key, json());
      const std::string wrong = std::string("has no list of texts under \"") + key + "\"";
      if (value.is_null()) continue;
      if (value.is_string()) return {value};
      if (!value.is_array()) fail(wrong);
      return texts(value, wrong);
    }
    return {};
  }

  Prompt record_prompt(const json& object) const {
    if (object["input"].is_array()) return ids_prompt(object, "input");
    if (object.contains("questions")) return prompt_of(record_of(path_, object, where_));
    Prompt prompt{.text = text(object, "input"), .ids = {}, .expected = {}, .answers = answers(object), .spans = {}};
    return finished(std::move(prompt), object);
  }

  /// With its prefix, and with what can be told of needle and question.
  Prompt finished(Prompt prompt, const json& object) const {
    const std::size_t asked = prompt.text.size();
    prompt.text = with_prefix(std::move(prompt.text), object);
    prompt.expected = joined(prompt.answers);
    prompt.spans = answer_spans(prompt.text, prompt.answers, asked);
    return prompt;
  }

  /// Up to the first answer that the text gives, or to the last question where it gives none; what is expected is the answer that comes
  /// next.
  static Prompt prompt_of(const Record& record) {
    const std::vector<ExampleQuestion>& questions = record.example.questions;
    Prompt prompt{.text = record.input, .ids = {}, .expected = joined(record.outputs), .answers = record.outputs, .spans = {}};
    if (questions.empty()) return prompt;
    const ExampleQuestion& last = questions.back();
    const bool given = record.input.size() < record.example.text.size();
    if (!given) prompt.text.resize(last.asked.end);
    prompt.expected = given ? questions.front().answer : last.answer;
    prompt.answers.clear();
    for (const ExampleQuestion& question : questions) {
      const bool with_first = question.asked.begin == questions.front().asked.begin;  // one question with several answers
      if (given ? with_first : &question == &last) prompt.answers.push_back(question.answer);
    }
    const auto mark = [&](PromptPart part, TextRange range) {
      if (range.end <= prompt.text.size()) prompt.spans.push_back({part, range.begin, range.end});
    };
    for (const TextRange& needle : record.example.needles) mark(PromptPart::needle, needle);
    for (const ExampleQuestion& question : questions) mark(PromptPart::question, question.asked);
    return prompt;
  }

  /// A line of lm-eval's log: "arguments" holds, for each request, the text that the model was given, then what the answer was to be or how
  /// it was generated. The text has its prefix already.
  Prompt logged_prompt(const json& object) const {
    const std::vector<json> requests = logged_requests(object["arguments"]);
    if (requests.empty() || requests[0].empty() || !requests[0][0].is_string())
      fail("\"arguments\" has no text that a model was given, as lm-eval logs it");
    Prompt prompt{.text = requests[0][0], .ids = {}, .expected = {}, .answers = logged_answers(object, requests), .spans = {}};
    return finished(std::move(prompt), json::object());
  }

  /// [text, continuation or options] of each: from {"gen_args_0": {"arg_0": …, "arg_1": …}, …}, [[…, …], …] or […, …].
  static std::vector<json> logged_requests(const json& arguments) {
    std::vector<json> requests;
    if (arguments.is_object()) {
      for (const json& request : arguments) {
        json list = json::array();
        for (int i = 0; request.is_object() && request.contains("arg_" + std::to_string(i)); ++i)
          list.push_back(request["arg_" + std::to_string(i)]);
        requests.push_back(std::move(list));
      }
    } else if (arguments.is_array() && !arguments.empty() && arguments[0].is_array()) {
      requests.assign(arguments.begin(), arguments.end());
    } else if (arguments.is_array()) {
      requests.push_back(arguments);
    }
    return requests;
  }

  /// Its "target": texts, or which of the requests' continuations is right.
  std::vector<std::string> logged_answers(const json& object, const std::vector<json>& requests) const {
    const json target = object.value("target", json());
    if (const std::optional<std::size_t> choice = choice_of(target); choice && *choice < requests.size()) {
      const json& request = requests[*choice];
      if (request.size() > 1 && request[1].is_string()) return {trimmed(request[1])};
    }
    if (target.is_string() || target.is_array()) return answers(json{{"target", target}});
    if (const json doc = object.value("doc", json()); doc.is_object() && target.is_null()) return answers(doc);
    return {};
  }

  /// The number that a target of several choices is, as a number or as text.
  static std::optional<std::size_t> choice_of(const json& target) {
    if (target.is_number_unsigned()) return target.get<std::size_t>();
    if (!target.is_string()) return {};
    const auto& digits = target.get_ref<const std::string&>();
    if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != digits.npos) return {};
    return static_cast<std::size_t>(std::stoul(digits));
  }

  static std::string trimmed(const std::string& text) {
    const std::size_t begin = std::min(text.find_first_not_of(kWhiteInTexts), text.size());
    return text.substr(begin, text.find_last_not_of(kWhiteInTexts) + 1 - begin);
  }

  const fs::path& path_;
  const std::string& where_;
};

}  // namespace

Prompt prompt_of(const fs::path& path, const json& object, const std::string& where) { return ObjectReader(path, where).read(object); }

bool are_ids(const fs::path& path, const json& value, const std::string& where) {
  if (!value.is_array() || value.empty() || !std::ranges::all_of(value, [](const json& id) { return id.is_number(); })) return false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_number_unsigned() || value[i].get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      refuse(path, where + value[i].dump() + " (number " + std::to_string(i + 1) + ") is not a token id");
  }
  return true;
}

std::vector<std::int32_t> ids_of(const json& value) {
  std::vector<std::int32_t> ids;
  for (const json& id : value) ids.push_back(id.get<std::int32_t>());
  return ids;
}

}  // namespace statescope
