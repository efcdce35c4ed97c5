#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "datasets/files.h"
#include "datasets/text_needles.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string filled_text_at(const fs::path& path, const json& object, const char* key) {
  if (!object.contains(key) || !object[key].is_string() || object[key] == "")
    refuse(path, std::string("has no text under \"") + key + "\"");
  return object[key];
}

std::vector<std::string> words_at(const fs::path& path, const json& object, const char* key) {
  const json list = object.value(key, json());
  if (!list.is_array() || list.empty()) refuse(path, std::string("has no list of words under \"") + key + "\"");
  std::vector<std::string> words;
  for (const json& word : list) {
    if (!word.is_string() || word == "") refuse(path, std::string("\"") + key + "\" has an entry that is no word");
    words.push_back(word);
  }
  return words;
}

void read_kinds(const fs::path& path, const json& kinds, TextTemplates& templates) {
  for (const char* kind : {"code", "number", "uuid"}) {
    const json words = kinds.is_object() ? kinds.value(kind, json()) : json();
    if (!words.is_array() || words.size() != 2 || !words[0].is_string() || !words[1].is_string())
      refuse(path, std::string("\"kinds\" has no [one, several] under \"") + kind + "\"");
    templates.kinds[kind] = {words[0], words[1]};
  }
}

/// Throws unless the sentence has each of these just once, and nothing else in braces.
void check_places(const fs::path& path, const char* key, const std::string& text, std::initializer_list<std::string_view> places) {
  std::size_t braces = 0;
  for (const std::string_view place : places) {
    const std::size_t at = text.find(place);
    if (at == text.npos || text.find(place, at + 1) != text.npos)
      refuse(path, std::string("\"") + key + "\" needs one " + std::string(place));
    braces += 2;
  }
  if (static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return c == '{' || c == '}'; })) != braces)
    refuse(path, std::string("\"") + key + "\" has other braces than its places");
}

}  // namespace

TextTemplates read_text_templates(const fs::path& path) {
  const json object = parse_json(path, read_text(path));
  if (!object.is_object()) refuse(path, "is not a JSON object");
  TextTemplates templates;
  templates.first = words_at(path, object, "first");
  templates.second = words_at(path, object, "second");
  read_kinds(path, object.value("kinds", json()), templates);
  templates.filler = filled_text_at(path, object, "filler");
  templates.introduction = filled_text_at(path, object, "introduction");
  templates.needle = filled_text_at(path, object, "needle");
  templates.question = filled_text_at(path, object, "question");
  templates.questions = filled_text_at(path, object, "questions");
  templates.answer = filled_text_at(path, object, "answer");
  templates.answers = filled_text_at(path, object, "answers");
  check_places(path, "introduction", templates.introduction, {"{kind}"});
  check_places(path, "needle", templates.needle, {"{kind}", "{key}", "{value}"});
  check_places(path, "question", templates.question, {"{kind}", "{keys}"});
  check_places(path, "questions", templates.questions, {"{kinds}", "{keys}"});
  check_places(path, "answer", templates.answer, {"{kind}", "{keys}"});
  check_places(path, "answers", templates.answers, {"{kinds}", "{keys}"});
  return templates;
}

}  // namespace statescope
