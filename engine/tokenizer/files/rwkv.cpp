#include "engine/tokenizer/files/rwkv.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/text/lines.h"
#include "engine/tokenizer/text/trie.h"
#include "engine/tokenizer/text/utf8.h"
#include "engine/tokenizer/vocabularies/vocabulary.h"
#include "engine/tokenizer/words.h"

namespace statescope {
namespace {

/// A number of `digits` hexadecimal digits off the front of `rest`.
std::optional<char32_t> take_hex(std::string_view& rest, std::size_t digits) {
  std::uint32_t code = 0;
  if (rest.size() < digits) return std::nullopt;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + digits, code, 16);
  if (error != std::errc() || end != rest.data() + digits) return std::nullopt;
  rest.remove_prefix(digits);
  return code;
}

/// What stands behind a backslash, off the front of `rest`.
std::optional<char32_t> take_escape(std::string_view& rest, bool is_bytes) {
  if (rest.empty()) return std::nullopt;
  const char kind = rest.front();
  rest.remove_prefix(1);
  if (kind == 'x') return take_hex(rest, 2);
  if (kind == 'u' && !is_bytes) return take_hex(rest, 4);
  if (kind == 'U' && !is_bytes) return take_hex(rest, 8);
  constexpr std::string_view names = "nrt0ab\\'\"", values("\n\r\t\0\a\b\\'\"", 9);
  const std::size_t at = names.find(kind);
  return at == names.npos ? std::nullopt : std::optional<char32_t>(static_cast<unsigned char>(values[at]));
}

/// The bytes of a Python literal: '…', "…" (text) or b'…' (bytes).
std::optional<std::string> bytes_of_literal(std::string_view literal) {
  const bool is_bytes = literal.starts_with('b');
  if (is_bytes) literal.remove_prefix(1);
  if (literal.size() < 2 || (literal.front() != '\'' && literal.front() != '"') || literal.back() != literal.front()) return std::nullopt;
  std::string_view rest = literal.substr(1, literal.size() - 2);
  std::string bytes;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c != '\\') {
      bytes += c;
      continue;
    }
    const auto code = take_escape(rest, is_bytes);
    if (!code || *code > 0x10FFFF) return std::nullopt;
    if (is_bytes)
      bytes += static_cast<char>(*code);
    else
      utf8::append(bytes, *code);
  }
  return bytes;
}

struct Line {
  std::int64_t id;
  std::string bytes;
};

std::optional<Line> parsed(std::string_view line) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || last <= first) return std::nullopt;
  const auto number_in = [](std::string_view text) {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? number : -1;
  };
  const std::int64_t id = number_in(line.substr(0, first)), length = number_in(line.substr(last + 1));
  auto bytes = bytes_of_literal(line.substr(first + 1, last - first - 1));
  if (id < 0 || !bytes || bytes->empty() || std::ssize(*bytes) != length) return std::nullopt;
  return Line{id, std::move(*bytes)};
}

class Rwkv final : public Tokenizer {
 public:
  explicit Rwkv(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
    std::vector<Trie::Key> keys;
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id)
      if (vocabulary_.has(id)) keys.push_back({vocabulary_.piece(id), id});
    trie_ = Trie(std::move(keys));
    for (int byte = 0; byte < 256; ++byte)
      if (vocabulary_.find(std::string(1, static_cast<char>(byte))) == kNoId)
        throw Error(fmt::format("lacks a piece for the byte {:02X}", byte));
    info_.kind = "RWKV pieces";
    info_.size = vocabulary_.size();
    info_.end_of_text = 0;
  }

  Encoding encode(std::string_view text, const EncodeOptions&) const override {
    Encoding result;
    for (std::size_t at = 0; at < text.size();) {
      const Trie::Match match = trie_.longest(text.substr(at));
      result.ids.push_back(match.value);
      result.begin.push_back(at);
      result.end.push_back(at += match.length);
    }
    return result;
  }
  std::string text_of(std::int32_t id) const override { return vocabulary_.has(id) ? std::string(vocabulary_.piece(id)) : number_of(id); }
  std::string decode(std::span<const std::int32_t> ids, bool) const override {
    std::string bytes;
    for (const std::int32_t id : ids)
      if (vocabulary_.has(id)) bytes += vocabulary_.piece(id);
    return utf8::repaired(bytes);
  }
  std::optional<std::string> bytes_of(std::int32_t id, bool) const override {
    return vocabulary_.has(id) ? std::string(vocabulary_.piece(id)) : std::string();
  }

 private:
  Vocabulary vocabulary_;
  Trie trie_;
};

}  // namespace

bool is_rwkv(std::string_view text) { return parsed(take_line(text)).has_value(); }

std::unique_ptr<Tokenizer> read_rwkv(const TokenizerFiles& files, const std::string& name, std::string_view text) {
  try {
    Vocabulary vocabulary;
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::string_view line = take_line(text);
      if (line.empty()) continue;
      const auto piece = parsed(line);
      if (!piece) throw Error(fmt::format("line {} is not an id, a Python literal and its length in bytes", number));
      vocabulary.add(piece->bytes, piece->id);
    }
    return std::make_unique<Rwkv>(std::move(vocabulary));
  } catch (const Error& error) {
    fail(files.source, fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace statescope
