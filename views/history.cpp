#include "views/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/plot.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::size_t kMostParts = 24;
constexpr float kLine = 1.45f * kSmallType;

std::string signed_number(double value, int digits) {
  return (value < 0 ? "−" : "+") + number(static_cast<float>(std::abs(value)), digits);
}

}  // namespace

std::string HistoryStrip::sentence() const {
  if (what.empty()) return {};
  if (!waiting.empty()) return Views::tr("Who wrote {}: {}", what, waiting);
  const std::int64_t tokens = std::ssize(parts) + others;
  const std::string there = number(static_cast<float>(shown), 6), all = number(static_cast<float>(sum), 6);
  return tokens == 1 ? Views::tr("{} = {}, written by one token: {}", what, there, all)
                     : Views::tr("{} = {}, written by {} tokens that add up to {}", what, there, tokens, all);
}

std::string HistoryStrip::largest(std::size_t count) const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(count, parts.size()); ++i)
    texts.push_back(fmt::format("{} {} {}", parts[i].token, parts[i].text, signed_number(parts[i].contribution, 3)));
  return joined(texts, ", ");
}

HistoryStrip build_history(const RunInfo& run, const HistoryQuestion& question, const Findings& findings) {
  HistoryStrip strip;
  if (!findings.find(question)) return strip;
  strip.of = question.row < 0 ? HistoryStrip::Of::all_rows : question.column < 0 ? HistoryStrip::Of::row : HistoryStrip::Of::cell;
  strip.what = question.row < 0      ? "‖S‖"
               : question.column < 0 ? Views::tr("‖row {}‖", question.row)
                                     : fmt::format("S[{}, {}]", question.row, question.column);
  const History* history = findings.get(question);
  if (!history) {
    const std::string& refused = findings.find(question)->refused;
    strip.waiting = refused.empty() ? Views::tr("the run is being read again") : refused;
    return strip;
  }
  std::vector<std::size_t> order(history->token.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto size = [&](std::size_t i) { return std::abs(history->contribution[i]); };
  const std::size_t count = std::min(order.size(), kMostParts);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) { return size(a) != size(b) ? size(a) > size(b) : a < b; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t j = order[i];
    if (i >= count) {
      ++strip.others;
      strip.rest += history->contribution[j];
      continue;
    }
    const std::int32_t token = history->token[j];
    const std::string text = token < 0 ? Views::tr("memory tokens") : visible_token(run, token);
    strip.parts.push_back({token, text, is_needle(run, token), history->contribution[j], history->coefficient[j], history->written[j]});
  }
  strip.sum = history->sum;
  strip.shown = history->shown;
  return strip;
}

float history_height(const Frame& frame) { return (3 * kLine + 4) * frame.scale; }

void draw(const HistoryStrip& strip, Canvas& canvas, Rect area, const Frame& frame, int sheet) {
  if (strip.what.empty() || area.h < history_height(frame)) return;
  const Theme& theme = frame.theme;
  const float s = frame.scale, line = kLine * s, each = 96 * s, gap = 8 * s;
  const TextStyle words = label(frame, kSmallType, theme.ink), figures = value(frame, kSmallType, theme.ink);
  fitted_text(canvas, {area.x, area.y + line / 2}, strip.sentence(), words, area.w);
  if (strip.parts.empty()) return;
  const float most = std::max(std::abs(strip.parts.front().contribution), 1e-30f);
  const auto fit = std::max<std::int64_t>(1, static_cast<std::int64_t>((area.w + gap) / (each + gap)));
  const std::int64_t all = std::ssize(strip.parts);
  const std::int64_t count = all + (strip.others > 0 ? 1 : 0) <= fit ? all : std::max<std::int64_t>(0, std::min(all, fit - 1));
  double rest = strip.rest;
  for (std::int64_t i = count; i < all; ++i) rest += strip.parts[static_cast<std::size_t>(i)].contribution;
  const ColorMap map = theme.dark ? ColorMap::diverging_dark : ColorMap::diverging;
  const float first = area.y + line + 4 * s, second = first + line;
  float x = area.x;
  const auto draw_part = [&](const std::string& text, double contribution, TextStyle style) {
    const auto length = (each - gap / 2) * std::min(1.0f, static_cast<float>(std::abs(contribution)) / most);
    canvas.fill_rect({x, second + s, length, line - 2 * s}, faded(color_at(map, contribution < 0 ? 0.1f : 0.9f), 0.4f));
    fitted_text(canvas, {x, first + line / 2}, text, style, each - gap / 2);
    fitted_text(canvas, {x + 3 * s, second + line / 2}, signed_number(contribution, 3), figures, each - gap / 2 - 3 * s);
  };
  for (std::int64_t i = 0; i < count; ++i, x += each + gap) {
    const HistoryPart& part = strip.parts[static_cast<std::size_t>(i)];
    if (part.needle) canvas.fill_rect({x - 2 * s, first, each - gap / 2 + 2 * s, line}, faded(theme.needle, 0.35f));
    draw_part(fmt::format("{} {}", part.token, part.text), part.contribution, label(frame, kSmallType, theme.ink, Align::left, true));
    canvas.hit({x, first, each, 2 * line}, {{sheet, i}});
  }
  const std::int64_t others = strip.others + all - count;
  if (others > 0 && x + each - gap / 2 <= area.right() + s)
    draw_part(others == 1 ? Views::tr("{} other", others) : Views::tr("{} others", others), rest, label(frame, kSmallType, theme.faint));
}

namespace {}  // namespace

std::string HistoryStrip::equation() const {
  switch (of) {
    case Of::cell:
      return Views::tr("c v[column] with the token's value vector v");
    case Of::row:
      return Views::tr("c ⟨v, Z⟩ / ‖Z‖ with the token's value vector v and the row Z");
    case Of::all_rows:
      return Views::tr("⟨c v, S⟩ / ‖S‖ with the token's value vector v and a coefficient c for each row of the state S; below: √Σc²");
  }
  return {};
}

}  // namespace statescope
