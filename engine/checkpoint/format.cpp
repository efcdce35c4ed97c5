#include "engine/checkpoint/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_json_values = 8'000'000;

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_utf8(std::string_view text) {
  try {
    return !nlohmann::json(text).dump().empty();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

bool is_plain(std::string_view name) {
  return !name.empty() && name.find('/') == name.npos && !has_control_character(name) && is_utf8(name);
}

}  // namespace

void check_tensor_name(const fs::path& path, std::string_view name) {
  const bool regular = is_plain(name) && name != "." && name.size() <= 1024;
  if (!regular) fail(path, fmt::format("tensor name {} is empty, too long or has a character that names do not have", in_quotes(name)));
}

void check_file_name(const fs::path& path, std::string_view name) {
  const bool regular = is_plain(name) && name.front() != '.' && name.size() <= 255;
  if (!regular) fail(path, fmt::format("{} is not the plain name of a file", in_quotes(name)));
}

std::int64_t checked_bytes(const fs::path& path, std::string_view name, const std::vector<std::int64_t>& shape, std::size_t element) {
  if (shape.size() > max_rank)
    fail(path, fmt::format("tensor {} has {} axes; at most {} are read", in_quotes(name), shape.size(), max_rank));
  auto bytes = static_cast<std::int64_t>(element);
  for (const std::int64_t extent : shape) {
    if (extent <= 0) fail(path, fmt::format("tensor {} has an axis of {} elements", in_quotes(name), extent));
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      fail(path, fmt::format("tensor {} declares more elements than there can be", in_quotes(name)));
  }
  return bytes;
}

void check_range(const fs::path& path, std::string_view name, std::uint64_t offset, std::int64_t bytes, std::size_t size) {
  if (offset > size || static_cast<std::uint64_t>(bytes) > size - offset)
    fail(path, fmt::format("{} takes {} bytes from byte {} of {}; the file is cut off or damaged", in_quotes(name), bytes, offset, size));
}

void check_json_text(const fs::path& path, std::string_view what, std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) fail(path, fmt::format("{} is empty; a JSON object was expected", what));
  if (text.size() > max_text_bytes) fail(path, fmt::format("{} has {} bytes; at most {} are read", what, text.size(), max_text_bytes));
  std::size_t depth = 0, values = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == '[' || c == '{' || c == ',' || c == ':') ++values;
    if (depth > max_nesting) fail(path, fmt::format("{} is nested more than {} deep", what, max_nesting));
    if (values > max_json_values) fail(path, fmt::format("{} has more than {} values", what, max_json_values));
  }
}

std::string quote_python_floats(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string || text[i] == '"') {
      out += text[i];
      if (text[i] == '"') in_string = !in_string;
      if (in_string && text[i] == '\\' && i + 1 < text.size()) out += text[++i];
      continue;
    }
    if (text[i] == '{' || text[i] == '[') ++depth;
    if ((text[i] == '}' || text[i] == ']') && depth > 0) --depth;
    if (depth > max_nesting) throw Error(fmt::format("config: nested deeper than {} levels", max_nesting));
    bool replaced = false;
    for (std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (text.substr(i, word.size()) != word) continue;
      out += fmt::format(R"({{"{}": "{}"}})", python_float_key, word);
      i += word.size() - 1;
      replaced = true;
      break;
    }
    if (!replaced) out += text[i];
  }
  return out;
}

bool is_tokenizer_file(std::string_view name) {
  static constexpr std::array<std::string_view, 14> names{"tokenizer.json",
                                                          "tokenizer_config.json",
                                                          "special_tokens_map.json",
                                                          "added_tokens.json",
                                                          "chat_template.jinja",
                                                          "chat_template.json",
                                                          "vocab.json",
                                                          "vocab.txt",
                                                          "merges.txt",
                                                          "encoder.json",
                                                          "vocab.bpe",
                                                          "spiece.model",
                                                          "tiktoken.model",
                                                          "meta.json"};
  const bool is_numbered = name.starts_with("tokenizer.model") || (name.starts_with("tekken") && name.ends_with(".json")) ||
                           (name.starts_with("rwkv_vocab") && name.ends_with(".txt")) || name.ends_with(".tiktoken");
  return is_numbered || std::ranges::find(names, name) != names.end();
}

bool is_provenance_file(std::string_view name) { return name == "eval.json" || name == "prompts.json"; }

const std::byte* aligned(const std::byte* data, std::int64_t bytes, DType dtype, std::vector<std::shared_ptr<const void>>& storage) {
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(dtype) == 0) return data;
  const std::shared_ptr<std::byte[]> copy(new std::byte[static_cast<std::size_t>(bytes)]);
  std::memcpy(copy.get(), data, static_cast<std::size_t>(bytes));
  storage.push_back(copy);
  return copy.get();
}

void sort_by_name(const fs::path& path, std::vector<StoredTensor>& tensors) {
  if (tensors.size() > max_tensors) fail(path, fmt::format("has {} tensors; at most {} are read", tensors.size(), max_tensors));
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  const auto twin = std::ranges::adjacent_find(tensors, {}, &StoredTensor::name);
  if (twin != tensors.end()) fail(path, fmt::format("tensor {} is there twice", in_quotes(twin->name)));
}

const StoredTensor* find_by_name(const std::vector<StoredTensor>& tensors, std::string_view name) {
  const auto found =
      std::ranges::lower_bound(tensors, name, std::ranges::less{}, [](const StoredTensor& t) { return std::string_view(t.name); });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

}  // namespace statescope
