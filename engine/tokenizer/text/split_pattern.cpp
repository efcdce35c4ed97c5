#include "engine/tokenizer/text/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>

#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::uint32_t kMatchSteps = 5'000'000;
constexpr std::uint32_t kHeap = 256 << 10;  // KiB
constexpr std::size_t kLargestStack = 64 << 20;
constexpr std::size_t kLongestPattern = 1 << 16;

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<&pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<&pcre2_match_context_free>>;
using Stack = std::unique_ptr<pcre2_jit_stack, Deleter<&pcre2_jit_stack_free>>;

/// What one thread needs to match; the just-in-time code's own stack only where the machine's does not do.
struct Matcher {
  MatchData data;
  MatchContext context{pcre2_match_context_create(nullptr)};
  Stack stack;

  explicit Matcher(const pcre2_code* code) : data(pcre2_match_data_create_from_pattern(code, nullptr)) {
    if (!data || !context) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), kMatchSteps);
    pcre2_set_heap_limit(context.get(), kHeap);
  }

  int match(const pcre2_code* code, std::string_view text, std::size_t at) {
    const auto with = [&](std::uint32_t options) {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, PCRE2_NO_UTF_CHECK | options, data.get(),
                         context.get());
    };
    int result = with(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && !stack) {
      stack.reset(pcre2_jit_stack_create(1 << 20, kLargestStack, nullptr));
      pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
      result = with(0);
    }
    return result == PCRE2_ERROR_JIT_STACKLIMIT ? with(PCRE2_NO_JIT) : result;
  }
};

std::string beginning(std::string_view pattern) { return in_quotes(pattern.substr(0, 60)); }

}  // namespace

struct SplitPattern::Code {
  std::string literal;  // not empty: no expression but this text
  std::string shown;
  std::unique_ptr<pcre2_code, Deleter<&pcre2_code_free>> code;
};

SplitPattern::SplitPattern(std::string_view pattern, RegexFlavour flavour) {
  if (pattern.size() > kLongestPattern) throw Error(fmt::format("the pattern {} has {} bytes", beginning(pattern), pattern.size()));
  const std::string source = translated(pattern, flavour);
  auto code = std::make_shared<Code>();
  code->shown = beginning(pattern);
  // ^ and $ are a line's in Oniguruma, the text's elsewhere.
  const std::uint32_t lines = flavour == RegexFlavour::oniguruma ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY;
  int error = 0;
  std::size_t at = 0;
  code->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | lines, &error, &at, nullptr));
  if (!code->code) {
    std::array<PCRE2_UCHAR, 200> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    throw Error(fmt::format("the pattern {} is not understood: {}", code->shown, reinterpret_cast<const char*>(message.data())));
  }
  pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE);  // where it fails, matching is slower
  code_ = std::move(code);
}

SplitPattern SplitPattern::literal(std::string_view text) {
  if (text.empty()) throw Error("the pattern is empty");
  SplitPattern pattern;
  auto code = std::make_shared<Code>();
  code->literal = text;
  pattern.code_ = std::move(code);
  return pattern;
}

void SplitPattern::each_match(std::string_view whole, Range range, const std::function<void(Range)>& found) const {
  const std::string_view text = whole.substr(range.begin, range.size());
  const auto tell = [&](std::size_t begin, std::size_t end) {
    found({range.begin + static_cast<std::uint32_t>(begin), range.begin + static_cast<std::uint32_t>(end)});
  };
  if (!code_->literal.empty()) {
    for (std::size_t at = 0; (at = text.find(code_->literal, at)) != text.npos; at += code_->literal.size())
      tell(at, at + code_->literal.size());
    return;
  }
  const pcre2_code* code = code_->code.get();
  Matcher matcher(code);
  for (std::size_t at = 0; at <= text.size();) {
    const int result = matcher.match(code, text, at);
    if (result == PCRE2_ERROR_NOMATCH) return;
    if (result < 0) throw Error(fmt::format("the pattern {} needs too many steps for this text", code_->shown));
    const std::size_t* ends = pcre2_get_ovector_pointer(matcher.data.get());
    if (ends[0] < ends[1]) tell(ends[0], ends[1]);
    at = ends[1];
    if (ends[0] >= ends[1]) at = ends[1] < text.size() ? ends[1] + utf8::character_at(text, ends[1]).length : text.size() + 1;
  }
}

}  // namespace statescope
