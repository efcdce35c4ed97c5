#include "datasets/answer_spans.h"

#include <algorithm>
#include <string_view>

#include "datasets/example.h"
#include "datasets/lines.h"

namespace statescope {
namespace {

constexpr std::string_view sentence_ends = ".!?";

bool is_white(char c) { return kWhiteInTexts.find(c) != kWhiteInTexts.npos; }
/// Bytes of other scripts count as letters.
bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/// Whether a sentence ends behind the byte at `i`: a line does, and a mark that white space follows.
bool ends_sentence(std::string_view text, std::size_t i) {
  if (text[i] == '\n') return true;
  return sentence_ends.find(text[i]) != sentence_ends.npos && (i + 1 == text.size() || is_white(text[i + 1]));
}

/// The sentence around byte `at`, without the white space at both its ends.
TextRange sentence_around(std::string_view text, std::size_t at) {
  std::size_t begin = at, end = at;
  while (begin > 0 && !ends_sentence(text, begin - 1)) --begin;
  while (end < text.size() && !ends_sentence(text, end)) ++end;
  end = std::min(end + 1, text.size());
  while (begin < end && is_white(text[begin])) ++begin;
  while (end > begin && is_white(text[end - 1])) --end;
  return {begin, end};
}

/// Where the answer stands first, its ends not within a word; npos: nowhere.
std::size_t find_words(std::string_view text, std::string_view answer) {
  for (std::size_t at = text.find(answer); at != text.npos; at = text.find(answer, at + 1)) {
    const std::size_t end = at + answer.size();
    const bool begins = at == 0 || !is_word(answer.front()) || !is_word(text[at - 1]);
    const bool ends = end == text.size() || !is_word(answer.back()) || !is_word(text[end]);
    if (begins && ends) return at;
  }
  return text.npos;
}

/// The last sentence that has a word.
TextRange last_sentence(std::string_view text) {
  std::size_t last = text.size();
  while (last > 0 && !is_word(text[last - 1])) --last;
  return last == 0 ? TextRange{} : sentence_around(text, last - 1);
}

}  // namespace

std::vector<PromptSpan> answer_spans(const std::string& text, const std::vector<std::string>& answers, std::size_t question_end) {
  const TextRange question = last_sentence(std::string_view(text).substr(0, question_end));
  std::vector<PromptSpan> spans;
  for (const std::string& answer : answers) {
    if (answer.empty()) continue;
    const std::size_t at = find_words(std::string_view(text).substr(0, question.begin), answer);
    if (at == text.npos) continue;
    const TextRange needle = sentence_around(text, at);
    const bool is_known = std::ranges::any_of(spans, [&](const PromptSpan& span) { return span.begin == needle.begin; });
    if (!is_known) spans.push_back({PromptPart::needle, needle.begin, std::min(needle.end, question.begin)});
  }
  const std::size_t end = text.find_last_not_of(kWhiteInTexts) + 1;
  if (!spans.empty()) spans.push_back({PromptPart::question, question.begin, end});
  return spans;
}

}  // namespace statescope
