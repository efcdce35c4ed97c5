#include "datasets/prompt.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace statescope {
namespace {

using nlohmann::json;
constexpr std::size_t max_bytes = 64 << 20;
constexpr int max_nesting = 16;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error(path.string() + ": " + what);
}

bool is_utf8(const std::string& text) {
  try {
    return !json(text).dump().empty();
  } catch (const json::type_error&) {
    return false;
  }
}

std::string read_text(const std::filesystem::path& path) {
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) fail(path, "is not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be opened: " + std::generic_category().message(errno));
  if (std::filesystem::file_size(path) > max_bytes) fail(path, "has more than " + std::to_string(max_bytes) + " bytes");
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!is_utf8(text)) fail(path, "is not UTF-8 text");
  return text;
}

PromptPart part_of(const std::filesystem::path& path, const json& span) {
  static constexpr std::array<std::string_view, 3> names{"needle", "question", "answer"};
  const std::string name = span.value("part", json()).is_string() ? span["part"].get<std::string>() : "";
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<PromptPart>(i);
  fail(path, "a span has no \"part\" that is needle, question or answer");
}

std::size_t offset_of(const std::filesystem::path& path, const json& span, const char* key, std::size_t limit) {
  const json offset = span.value(key, json());
  if (!offset.is_number_unsigned() || offset.get<std::uint64_t>() > limit)
    fail(path, std::string("a span has no \"") + key + "\" between 0 and the " + std::to_string(limit) + " bytes of the prompt");
  return offset.get<std::size_t>();
}

bool splits_character(const std::string& text, std::size_t offset) {
  return offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xc0) == 0x80;
}

PromptSpan span_of(const std::filesystem::path& path, const json& object, const std::string& text) {
  if (!object.is_object()) fail(path, "\"spans\" is not a list of objects");
  const PromptSpan span{part_of(path, object), offset_of(path, object, "begin", text.size()), offset_of(path, object, "end", text.size())};
  if (span.begin >= span.end) fail(path, "a span ends where it begins, or before");
  if (splits_character(text, span.begin) || splits_character(text, span.end)) fail(path, "a span cuts a character in two");
  return span;
}

std::string expected_of(const std::filesystem::path& path, const json& expected) {
  if (expected.is_null()) return "";
  if (expected.is_string()) return expected;
  if (!expected.is_array()) fail(path, "\"expected\" is neither text nor a list of words");
  std::string text;
  for (const json& word : expected) {
    if (!word.is_string()) fail(path, "\"expected\" is neither text nor a list of words");
    text += (text.empty() ? "" : " ") + word.get<std::string>();
  }
  return text;
}

Prompt prompt_of(const std::filesystem::path& path, const json& object) {
  if (!object.is_object() || !object.contains("prompt") || !object["prompt"].is_string()) fail(path, "has no text under \"prompt\"");
  Prompt prompt{.text = object["prompt"], .expected = expected_of(path, object.value("expected", json())), .spans = {}};
  const json spans = object.value("spans", json::array());
  if (!spans.is_array()) fail(path, "\"spans\" is not a list of objects");
  for (const json& span : spans) prompt.spans.push_back(span_of(path, span, prompt.text));
  return prompt;
}

json parse(const std::filesystem::path& path, const std::string& text) {
  const auto limit_depth = [&](int depth, json::parse_event_t, json&) {
    if (depth > max_nesting) fail(path, "is nested more than " + std::to_string(max_nesting) + " deep");
    return true;
  };
  json document = json::parse(text, limit_depth, /*allow_exceptions=*/false);
  if (document.is_discarded()) fail(path, "is not JSON");
  return document;
}

}  // namespace

Prompt read_prompt(const std::filesystem::path& path, std::size_t index) {
  std::string text = read_text(path);
  if (path.extension() != ".json") return {.text = std::move(text), .expected = {}, .spans = {}};
  const json document = parse(path, text);
  if (!document.is_array()) return prompt_of(path, document);
  if (index >= document.size())
    fail(path, "has " + std::to_string(document.size()) + " prompts; there is no number " + std::to_string(index));
  return prompt_of(path, document[index]);
}

}  // namespace statescope
