#include "app/web/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/figure/view_picture.h"
#include "engine/error.h"
#include "engine/place_words.h"

namespace statescope {
namespace {

constexpr std::size_t much = 1'000'000;  // bytes of one view
constexpr std::int64_t around = 96;      // tokens before and behind those that a lesson shows it at

std::int64_t token_in(std::string_view text) {
  std::int64_t token = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  if (error != std::errc() || end != text.data() + text.size()) throw Error(fmt::format("\"{}\" is no token: write its number", text));
  return token;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::int64_t place_in(std::int64_t token, const RunInfo& run) { return token_place(token, run.prompt_length, std::ssize(run.tokens)); }

std::string megabytes(double bytes) { return fmt::format("{:.3g} MB", bytes / 1e6); }

}  // namespace

RecordedTokens recorded_tokens(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos) throw Error(fmt::format("\"{}\" is no range of tokens: write FIRST..LAST, one of them may be left out", text));
  RecordedTokens range;
  if (const auto first = trimmed(std::string_view(text).substr(0, dots)); !first.empty()) range.first = token_in(first);
  if (const auto last = trimmed(std::string_view(text).substr(dots + 2)); !last.empty()) range.last = token_in(last);
  return range;
}

RecordedView Recorder::record(const FigurePanel& panel, std::optional<TokenPair> shown) {
  runs_.begin(done_, std::max(expected_, done_ + 1));
  FigurePanel at = panel;
  at.token.reset();
  const RunInfo& planned = runs_.planned(at, panel.checkpoints.front());
  TokenPair tokens{place_in(options_.tokens.first, planned),
                   options_.tokens.last ? place_in(*options_.tokens.last, planned) : std::ssize(planned.tokens) - 1};
  if (tokens.last < tokens.first) throw Error(fmt::format("a page from token {} to token {} has none", tokens.first, tokens.last));
  cursor_of(at, planned);
  at = settled(at, runs_);
  std::string packed = recorded(at, tokens, shown.has_value());
  if (shown && packed.size() > much) {
    tokens = {std::max(tokens.first, shown->first - around), std::min(tokens.last, shown->last + around)};
    packed = recorded(at, tokens, true);
  }
  const ViewRow& row = *std::ranges::find(view_catalogue(), panel.view, &ViewRow::id);
  const RunInfo& run = runs_.run(at, at.checkpoints.front()).info();
  bytes_ += bytes_in_page(packed.size());
  check_room(bytes_, 1, 1);
  ++done_;
  return {.question = std::string(row.question),
          .title = at.mode.empty() ? std::string(row.title) : fmt::format("{} ({})", row.title, at.mode),
          .place = place_words(row, run, cursor_of(at, run)),
          .model = run.model.name,
          .size = options_.size,
          .first = tokens.first,
          .tokens = tokens.last - tokens.first + 1,
          .packed = std::move(packed)};
}

std::string Recorder::recorded(FigurePanel panel, TokenPair tokens, bool may_be_empty) {
  const std::int64_t count = tokens.last - tokens.first + 1;
  Reel reel(options_.size);
  for (std::int64_t token = tokens.first; token <= tokens.last; ++token) {
    const std::int64_t so_far = token - tokens.first + 1;
    panel.token = token;
    reel.add(*make_view_picture(panel, runs_, true)->view());
    check_room(bytes_ + bytes_in_page(reel.least_bytes()), so_far, count);
    runs_.tell(static_cast<double>(so_far) / static_cast<double>(count), fmt::format("{}, token {} of {}", panel.view, token, tokens.last));
  }
  if (!may_be_empty && !reel.shows_numbers()) make_view_picture(panel, runs_);  // says why
  return reel.packed();
}

/// `bytes` is what the views take so far, the last of them up to token `recorded` of `tokens`.
void Recorder::check_room(std::size_t bytes, std::int64_t recorded, std::int64_t tokens) const {
  if (bytes <= options_.most_bytes) return;
  const double views = static_cast<double>(done_) + static_cast<double>(recorded) / static_cast<double>(tokens);
  const double whole = static_cast<double>(bytes) * static_cast<double>(std::max(expected_, done_ + 1)) / views;
  const double part = static_cast<double>(options_.most_bytes) / whole;
  throw Error(fmt::format("the page would have about {}, more than {}: about {} tokens of these views would fit, or all with --max-size {}",
                          megabytes(whole), megabytes(static_cast<double>(options_.most_bytes)),
                          std::max<std::int64_t>(1, static_cast<std::int64_t>(0.9 * part * static_cast<double>(tokens))),
                          static_cast<std::int64_t>(std::ceil(1.2 * whole / 1e6))));
}

}  // namespace statescope
