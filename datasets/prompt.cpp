#include "datasets/prompt.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "datasets/files.h"
#include "datasets/lines.h"
#include "datasets/prompt_object.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

enum class Form { text, whole, lines };

std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c; });
  return ending;
}

/// An object with a key, an object without one, or a list of objects: no text begins so.
bool begins_as_json(std::string_view text) {
  const auto mark = [&](std::size_t from) { return std::min(text.find_first_not_of(kWhiteInTexts, from), text.size()); };
  const std::size_t first = mark(0), second = mark(first + 1);
  if (second == text.size()) return false;
  return (text[first] == '{' && (text[second] == '"' || text[second] == '}')) || (text[first] == '[' && text[second] == '{');
}

bool is_json(std::string_view text) { return json::accept(text) || json::accept(without_nan_literals(text)); }

/// Whether the first line is JSON by itself and something follows it.
bool has_lines(std::string_view text) {
  std::size_t count = 0;
  bool first_is_json = false;
  for_each_line(text, [&](std::size_t, std::string_view line) {
    if (count == 0) first_is_json = is_json(line);
    return ++count < 2 && first_is_json;
  });
  return first_is_json && count > 1;
}

Form form_of(const fs::path& path, std::string_view text) {
  const std::string ending = ending_of(path);
  const bool is_lines = ending == ".jsonl" || ending == ".ndjson";
  if (ending == ".txt" || ending == ".md") return Form::text;
  if (!is_lines && ending != ".json" && !begins_as_json(text)) return Form::text;
  if (has_lines(text)) return Form::lines;
  return is_lines && !is_json(text) ? Form::lines : Form::whole;
}

Prompt text_prompt(std::string text) { return {.text = std::move(text), .ids = {}, .expected = {}, .answers = {}, .spans = {}}; }

Prompt line_prompt(const fs::path& path, const Line& line) {
  const std::string where = "line " + std::to_string(line.number) + ": ";
  const json object = parse_json(path, line.text, where);
  if (!object.is_object()) refuse(path, where + "is not a JSON object");
  return prompt_of(path, object, where);
}

std::int32_t id_of(const fs::path& path, std::string_view word, std::size_t number) {
  std::int32_t id = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || end != word.data() + word.size() || id < 0)
    refuse(path, "\"" + std::string(word.substr(0, 40)) + "\" (number " + std::to_string(number) + ") is not a token id");
  return id;
}

std::vector<std::int32_t> ids_in_words(const fs::path& path, std::string_view text) {
  constexpr std::string_view apart = " \t\r\n\v\f,";
  std::vector<std::int32_t> ids;
  for (std::size_t begin, end = 0; (begin = text.find_first_not_of(apart, end)) != text.npos;) {
    end = std::min(text.find_first_of(apart, begin), text.size());
    ids.push_back(id_of(path, text.substr(begin, end - begin), ids.size() + 1));
  }
  return ids;
}

/// A list of ids, an object that has some, or the first of several lines.
std::vector<std::int32_t> ids_in_json(const fs::path& path, std::string_view text) {
  const json value = has_lines(text) ? parse_json(path, line_at(path, text, 0).text, "line 1: ") : parse_json(path, text);
  if (are_ids(path, value, "")) return ids_of(value);
  return value.is_object() ? prompt_of(path, value, "").ids : std::vector<std::int32_t>{};
}

}  // namespace

Prompt read_prompt(const fs::path& path, std::size_t index) {
  std::string text = read_text(path);
  const Form form = form_of(path, text);
  if (form == Form::text) return text_prompt(std::move(text));
  if (form == Form::lines) return line_prompt(path, line_at(path, text, index));
  const json document = parse_json(path, text);
  const std::size_t count = document.is_array() ? document.size() : 1;
  if (index >= count) refuse(path, "has " + std::to_string(count) + " prompts; there is no number " + std::to_string(index));
  return prompt_of(path, document.is_array() ? document[index] : document, "");
}

std::vector<Prompt> read_prompts(const fs::path& path) {
  std::string text = read_text(path);
  const Form form = form_of(path, text);
  std::vector<Prompt> prompts;
  if (form == Form::text) return {text_prompt(std::move(text))};
  if (form == Form::lines) {
    for_each_line(text, [&](std::size_t number, std::string_view line) {
      prompts.push_back(line_prompt(path, {number, line}));
      return true;
    });
  } else if (const json document = parse_json(path, text); document.is_array()) {
    for (const json& object : document) prompts.push_back(prompt_of(path, object, ""));
  } else {
    prompts.push_back(prompt_of(path, document, ""));
  }
  if (prompts.empty()) refuse(path, "has no prompts");
  return prompts;
}

std::vector<std::int32_t> read_ids(const fs::path& path) {
  const std::string text = read_text(path);
  const std::size_t first = text.find_first_not_of(kWhiteInTexts);
  const bool as_json = first != text.npos && (text[first] == '[' || text[first] == '{');
  std::vector<std::int32_t> ids = as_json ? ids_in_json(path, text) : ids_in_words(path, text);
  if (ids.empty()) refuse(path, "no token ids");
  return ids;
}

}  // namespace statescope
