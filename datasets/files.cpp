#include "datasets/files.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace statescope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
constexpr std::size_t max_bytes = 64 << 20;
constexpr int max_nesting = 16;
constexpr std::chrono::seconds longest_wait{10};  // for somebody who writes into a named pipe

bool is_utf8(const std::string& text) {
  try {
    return !json(text).dump().empty();
  } catch (const json::type_error&) {
    return false;
  }
}

std::string name_of(const fs::path& path) { return path == "-" ? "standard input" : path.string(); }

std::string read_to_end(const fs::path& path, std::istream& in) {
  std::string bytes;
  std::array<char, 1 << 16> piece{};
  while (in.read(piece.data(), piece.size()), in.gcount() > 0) {
    bytes.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    if (bytes.size() > max_bytes) refuse(path, "has more than " + std::to_string(max_bytes) + " bytes");
  }
  if (in.bad()) refuse(path, "cannot be read");
  return bytes;
}

/// An open file, closed at the end.
struct OpenFile {
  explicit OpenFile(int opened) : descriptor(opened) {}
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int descriptor;
};

/// A named pipe, until whoever writes into it closes it. Throws where nobody opens it to write.
std::string read_pipe(const fs::path& path) {
  const OpenFile pipe(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (pipe.descriptor < 0) refuse(path, "cannot be opened: " + std::generic_category().message(errno));
  const auto deadline = std::chrono::steady_clock::now() + longest_wait;
  std::string bytes;
  std::array<char, 1 << 16> piece{};
  for (bool has_writer = false;;) {
    const ssize_t count = ::read(pipe.descriptor, piece.data(), piece.size());
    if (count > 0) bytes.append(piece.data(), static_cast<std::size_t>(count));
    if (bytes.size() > max_bytes) refuse(path, "has more than " + std::to_string(max_bytes) + " bytes");
    has_writer = has_writer || count > 0 || (count < 0 && errno == EAGAIN);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count < 0 && errno != EAGAIN) refuse(path, "cannot be read: " + std::generic_category().message(errno));
    pollfd state{pipe.descriptor, POLLIN, 0};
    const bool has_ended = ::poll(&state, 1, 0) > 0 && (state.revents & POLLIN) == 0;  // a writer came and went
    if (count == 0 && (has_writer || has_ended)) return bytes;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (!has_writer && left <= 0)
      refuse(path, "is a named pipe that nobody writes to: waited for " + std::to_string(longest_wait.count()) + " s");
    ::poll(&state, 1, has_writer ? -1 : static_cast<int>(left));
  }
}

std::string read_to_end(const fs::path& path) {
  if (path == "-") return read_to_end(path, std::cin);
  if (std::error_code ignored; fs::is_fifo(path, ignored)) return read_pipe(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be opened: " + std::generic_category().message(errno));
  return read_to_end(path, file);
}

/// What streams gave, by their names.
std::string read_stream(const fs::path& path) {
  static std::mutex mutex;
  static std::map<fs::path, std::string> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(path);
  return found != known.end() ? found->second : known.emplace(path, read_to_end(path)).first->second;
}

/// How Windows programs write text that is no UTF-8.
bool is_utf16(std::string_view bytes) { return bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff"); }

}  // namespace

void refuse(const fs::path& path, const std::string& what) { throw std::runtime_error(name_of(path) + ": " + what); }

bool is_stream(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return path == "-" || (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status));
}

std::string read_bytes(const fs::path& path) {
  if (is_stream(path)) return read_stream(path);
  if (std::error_code ignored; fs::is_directory(path, ignored)) refuse(path, "is not a file");
  return read_to_end(path);
}

std::string read_text(const fs::path& path) {
  std::string text = read_bytes(path);
  if (is_utf16(text)) refuse(path, "is UTF-16; write it as UTF-8");
  if (!is_utf8(text)) refuse(path, "is not UTF-8 text");
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

bool splits_character(std::string_view text, std::size_t offset) {
  return offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xc0) == 0x80;
}

std::string without_nan_literals(std::string_view text) {
  constexpr std::array<std::string_view, 3> literals{"NaN", "-Infinity", "Infinity"};
  std::string cleaned;
  cleaned.reserve(text.size());
  bool in_string = false;
  while (!text.empty()) {
    const auto literal = std::ranges::find_if(literals, [&](std::string_view word) { return !in_string && text.starts_with(word); });
    if (literal != literals.end()) {
      cleaned += "null";
      text.remove_prefix(literal->size());
      continue;
    }
    const std::size_t count = in_string && text.front() == '\\' ? std::min<std::size_t>(2, text.size()) : 1;
    if (text.front() == '"') in_string = !in_string;
    cleaned += text.substr(0, count);
    text.remove_prefix(count);
  }
  return cleaned;
}

json parse_json(const fs::path& path, std::string_view text, const std::string& where) {
  const auto limit_depth = [&](int depth, json::parse_event_t, json&) {
    if (depth > max_nesting) refuse(path, where + "is nested more than " + std::to_string(max_nesting) + " deep");
    return true;
  };
  json document = json::parse(text, limit_depth, /*allow_exceptions=*/false);
  if (document.is_discarded()) document = json::parse(without_nan_literals(text), limit_depth, /*allow_exceptions=*/false);
  if (document.is_discarded()) refuse(path, where + "is not JSON");
  return document;
}

}  // namespace statescope
