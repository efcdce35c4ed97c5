#include "datasets/templates.h"

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "datasets/files.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Classes = std::map<std::string, std::size_t>;
constexpr std::size_t max_placeholders = 16;  // of a filler sentence: each has draws of its own

std::string text_at(const fs::path& path, const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string())
    refuse(path, std::string("has no text under \"") + key + "\"");
  return object[key];
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> class_words(const fs::path& path, const std::string& name, const json& list) {
  if (!list.is_array() || list.empty()) refuse(path, "the class \"" + name + "\" is not a list of words");
  std::vector<std::string> words;
  for (const json& word : list) {
    if (!word.is_string() || word.get<std::string>().find_first_of("{}") != std::string::npos ||
        words_of(word) != std::vector<std::string>{word})
      refuse(path, "the class \"" + name + "\" has an entry that is not one word");
    words.push_back(word);
  }
  return words;
}

Classes read_classes(const fs::path& path, const json& document, Templates& templates) {
  const json words = document.value("words", json());
  if (!words.is_object()) refuse(path, "has no classes of words under \"words\"");
  Classes classes;
  for (const auto& [name, list] : words.items()) {
    classes[name] = templates.classes.size();
    templates.classes.push_back(class_words(path, name, list));
  }
  if (!classes.contains("name")) refuse(path, "has no class \"name\" under \"words\"");
  templates.names = classes["name"];
  return classes;
}

TemplateWord template_word(const fs::path& path, const std::string& word, const Classes& classes) {
  if (word.find_first_of("{}") == std::string::npos) return {word, {}};
  const auto found = word.front() == '{' && word.back() == '}' ? classes.find(word.substr(1, word.size() - 2)) : classes.end();
  if (found == classes.end()) refuse(path, "\"filler\" has a placeholder that names no class of words");
  return {word, found->second};
}

std::vector<TemplateWord> filler_sentence(const fs::path& path, const json& text, const Classes& classes) {
  if (!text.is_string()) refuse(path, "\"filler\" is not a list of sentences");
  std::vector<TemplateWord> sentence;
  std::size_t placeholders = 0;
  for (const std::string& word : words_of(text)) {
    sentence.push_back(template_word(path, word, classes));
    placeholders += sentence.back().one_of.has_value();
  }
  if (sentence.empty()) refuse(path, "\"filler\" has a sentence without words");
  if (placeholders > max_placeholders) refuse(path, "\"filler\" has a sentence with more than 16 placeholders");
  return sentence;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Refuses a text that has not at least one {name}, just `times` times {what}, and nothing else in braces.
void check_placeholders(const fs::path& path, const std::string& key, const std::string& text, const std::string& what, std::size_t times) {
  const std::size_t names = count(text, "{name}"), braces = count(text, "{") + count(text, "}");
  if (names == 0 || count(text, what) != times || braces != 2 * (names + times))
    refuse(path, "\"" + key + "\" needs {name}, " + std::to_string(times) + " times " + what + ", and no other braces");
}

std::string in_single_spaces(const std::string& text) {
  std::string joined;
  for (const std::string& word : words_of(text)) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

void read_sentences(const fs::path& path, const json& document, Templates& templates) {
  templates.needle = in_single_spaces(text_at(path, document, "needle"));
  templates.question = in_single_spaces(text_at(path, document, "question"));
  const json prose = document.value("prose", json());
  templates.prose_needle = text_at(path, prose, "needle");
  templates.prose_question = text_at(path, prose, "question");
  check_placeholders(path, "needle", templates.needle, "{digit}", 4);
  check_placeholders(path, "question", templates.question, "{digit}", 0);
  check_placeholders(path, "prose needle", templates.prose_needle, "{value}", 1);
  check_placeholders(path, "prose question", templates.prose_question, "{value}", 0);
  if (!templates.prose_needle.ends_with(' ')) refuse(path, "\"prose needle\" does not end in a space");
}

}  // namespace

Templates read_templates(const fs::path& path) {
  const json document = parse_json(path, read_text(path));
  if (!document.is_object()) refuse(path, "is not a JSON object");
  Templates templates;
  const Classes classes = read_classes(path, document, templates);
  const json filler = document.value("filler", json());
  if (!filler.is_array() || filler.empty()) refuse(path, "\"filler\" is not a list of sentences");
  for (const json& text : filler) templates.filler.push_back(filler_sentence(path, text, classes));
  read_sentences(path, document, templates);
  return templates;
}

std::string filled(std::string_view text, std::string_view name, std::string_view value) {
  std::string result;
  for (std::size_t digits = 0; !text.empty();) {
    const std::size_t open = std::min(text.find('{'), text.size());
    result += text.substr(0, open);
    text.remove_prefix(open);
    if (text.empty()) break;
    const std::string_view placeholder = text.substr(0, text.find('}') + 1);
    if (placeholder == "{name}") result += name;
    if (placeholder == "{value}") result += value;
    if (placeholder == "{digit}") result += value[digits++];
    text.remove_prefix(placeholder.size());
  }
  return result;
}

}  // namespace statescope
