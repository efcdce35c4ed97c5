#include "engine/tokenizer/text/aligned_text.h"

#include "engine/tokenizer/text/byte_alphabet.h"

namespace statescope {
namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

Range AlignedText::character_around(std::size_t byte) const {
  std::size_t begin = byte, end = byte + 1;
  while (begin > 0 && continues(text_[begin])) --begin;
  while (end < text_.size() && continues(text_[end])) ++end;
  return {origin_ + static_cast<std::uint32_t>(begin), origin_ + static_cast<std::uint32_t>(end)};
}

Range AlignedText::span_of(std::size_t byte) const { return spans_.empty() ? character_around(byte) : spans_[byte]; }

Range AlignedText::origin_of(Range range) const {
  if (text_.empty()) return {origin_, origin_};
  if (range.size() == 0) {
    const std::uint32_t at = range.begin < text_.size() ? span_of(range.begin).begin : span_of(text_.size() - 1).end;
    return {at, at};
  }
  return {span_of(range.begin).begin, span_of(range.end - 1).end};
}

AlignedText AlignedText::slice(Range range) const {
  AlignedText part(this->part(range), origin_of(range).begin);
  if (!spans_.empty()) part.spans_.assign(spans_.begin() + range.begin, spans_.begin() + range.end);
  return part;
}

void AlignedText::make_spans() {
  if (!spans_.empty()) return;
  spans_.reserve(text_.size());
  for (std::size_t at = 0; at < text_.size();) {
    const Range span = character_around(at);
    spans_.insert(spans_.end(), span.size(), span);
    at += span.size();
  }
}

void AlignedText::put(std::string_view bytes, Range span) {
  text_ += bytes;
  spans_.insert(spans_.end(), bytes.size(), span);
}

AlignedText AlignedText::repaired(std::string_view text) {
  if (utf8::is_valid(text)) return {text, 0};
  AlignedText result;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = utf8::character_at(text, at);
    const auto begin = static_cast<std::uint32_t>(at);
    result.put(utf8::of(character.code), {begin, begin + character.length});
    at += character.length;
  }
  return result;
}

void AlignedText::transform(const std::vector<unicode::Changed>& changed) {
  AlignedText result;
  result.origin_ = origin_;
  std::size_t at = 0;
  const auto pass_one = [&] {
    if (at < text_.size()) at += utf8::character_at(text_, at).length;
  };
  for (const unicode::Changed& part : changed) {
    const std::size_t last = at == 0 ? 0 : at - 1;
    const Range span = part.change > 0 || at >= text_.size() ? (at == 0 ? Range{origin_, origin_} : span_of(last)) : span_of(at);
    result.put(utf8::of(part.code), span);
    for (int i = part.change; i <= 0; ++i) pass_one();
  }
  *this = std::move(result);
}

void AlignedText::replace(const std::vector<Range>& matches, std::string_view content) {
  if (matches.empty()) return;
  make_spans();
  AlignedText result;
  result.origin_ = origin_;
  result.text_.reserve(text_.size());
  result.spans_.reserve(spans_.size());
  const auto copy = [&](std::size_t begin, std::size_t end) {
    result.text_.append(text_, begin, end - begin);
    result.spans_.insert(result.spans_.end(), spans_.begin() + static_cast<std::ptrdiff_t>(begin),
                         spans_.begin() + static_cast<std::ptrdiff_t>(end));
  };
  std::size_t at = 0;
  for (const Range match : matches) {
    copy(at, match.begin);
    result.put(content, match.end == 0 ? Range{origin_, origin_} : spans_[match.end - 1]);
    at = match.end;
  }
  copy(at, text_.size());
  *this = std::move(result);
}

void AlignedText::prepend(std::string_view content) {
  if (text_.empty()) return;
  make_spans();
  const Range span = spans_.front();
  text_.insert(0, content);
  spans_.insert(spans_.begin(), content.size(), span);
}

void AlignedText::append(const AlignedText& other) {
  if (text_.empty()) {
    *this = other;
    return;
  }
  make_spans();
  for (std::size_t i = 0; i < other.text_.size(); ++i) spans_.push_back(other.span_of(i));
  text_ += other.text_;
}

AlignedText AlignedText::in_byte_alphabet() const {
  AlignedText result;
  result.origin_ = origin_;
  for (std::size_t i = 0; i < text_.size(); ++i)
    result.put(utf8::of(byte_alphabet::character_of(static_cast<unsigned char>(text_[i]))), span_of(i));
  return result;
}

}  // namespace statescope
