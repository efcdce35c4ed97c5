#include "datasets/files.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace statescope {
namespace {

using nlohmann::json;
constexpr std::size_t max_bytes = 64 << 20;
constexpr int max_nesting = 16;

bool is_utf8(const std::string& text) {
  try {
    return !json(text).dump().empty();
  } catch (const json::type_error&) {
    return false;
  }
}

}  // namespace

void refuse(const std::filesystem::path& path, const std::string& what) { throw std::runtime_error(path.string() + ": " + what); }

std::string read_text(const std::filesystem::path& path) {
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) refuse(path, "is not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be opened: " + std::generic_category().message(errno));
  if (std::filesystem::file_size(path) > max_bytes) refuse(path, "has more than " + std::to_string(max_bytes) + " bytes");
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!is_utf8(text)) refuse(path, "is not UTF-8 text");
  return text;
}

bool splits_character(std::string_view text, std::size_t offset) {
  return offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xc0) == 0x80;
}

json parse_json(const std::filesystem::path& path, std::string_view text, const std::string& where) {
  const auto limit_depth = [&](int depth, json::parse_event_t, json&) {
    if (depth > max_nesting) refuse(path, where + "is nested more than " + std::to_string(max_nesting) + " deep");
    return true;
  };
  json document = json::parse(text, limit_depth, /*allow_exceptions=*/false);
  if (document.is_discarded()) refuse(path, where + "is not JSON");
  return document;
}

}  // namespace statescope
