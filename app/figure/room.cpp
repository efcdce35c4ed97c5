#include "app/figure/room.h"

#include <fmt/format.h>

#include <QFontMetricsF>
#include <algorithm>

#include "app/canvas/paper_canvas.h"

namespace statescope {
namespace {

constexpr float kSlack = 1;  // units that two boxes may share: letters do not fill theirs

/// Where a text's letters stand: capitals are lower than an em, and small indices stand close to them.
Rect letters_of(const TextCanvas::Placed& text) {
  return {text.rect.x + kSlack / 2, text.rect.y + 0.12f * text.rect.h, std::max(0.0F, text.rect.w - kSlack), 0.72f * text.rect.h};
}

bool overlap(Rect a, Rect b) { return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom(); }

bool lies_in(Rect letters, Rect place) {
  return letters.x >= place.x - kSlack && letters.right() <= place.right() + kSlack && letters.y >= place.y - kSlack &&
         letters.bottom() <= place.bottom() + kSlack;
}

}  // namespace

float RoomCanvas::text_width(std::string_view text, const TextStyle& style) const {
  const QString words = QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
  return static_cast<float>(QFontMetricsF(paper_font(style, QString::fromStdString(family_))).horizontalAdvance(words));
}

void RoomCanvas::heatmap(Rect rect, const Heatmap& cells) {
  diverging_ = diverging_ || cells.scale.map == ColorMap::diverging;
  if (cells.columns == 1 && rect.h > 3 * rect.w) bar_ = {rect, cells.scale};
}

std::optional<DrawnBar> RoomCanvas::bar() const {
  constexpr float near = 8;  // units
  std::optional<DrawnBar> found = bar_;
  if (!found) return {};
  const Rect& bar = found->rect;
  for (const Placed& text : texts()) {
    const float y = text.rect.y + text.rect.h / 2, gap = text.rect.x - bar.right();
    if (gap <= 0 || gap >= near || y < bar.y || y > bar.bottom()) continue;
    const float end = 0.6f * text.rect.h;  // a text that would reach beyond an end stands within it
    const float share = y - bar.y < end ? 1 : bar.bottom() - y < end ? 0 : (bar.bottom() - y) / bar.h;
    found->marks.push_back({share, text.text});
  }
  return found;
}

std::string RoomCanvas::collision() const {
  const std::vector<Placed>& all = texts();
  std::vector<Rect> letters;
  std::ranges::transform(all, std::back_inserter(letters), letters_of);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!lies_in(letters[i], all[i].clip)) return fmt::format("“{}” is cut", all[i].text);
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(letters[i], letters[j])) return fmt::format("“{}” lies over “{}”", all[i].text, all[j].text);
  }
  return {};
}

bool RoomCanvas::has_room() const { return !left_out_ && collision().empty(); }

}  // namespace statescope
