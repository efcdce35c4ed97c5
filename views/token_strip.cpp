#include "views/token_strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kBlock = 256;       // tokens that are wrapped together
constexpr std::int64_t kMostTogether = 8;  // tokens
constexpr float kMarkType = 10;

/// Where the line that would end before `t` ends, so that what belongs together stays together.
std::int64_t line_end(TokenLine line, std::int64_t t, const std::function<bool(std::int64_t)>& goes_on) {
  std::int64_t end = t;
  while (end > line.begin && t - end < kMostTogether && goes_on(end)) --end;
  return end == line.begin || goes_on(end) ? t : end;
}

std::vector<TokenLine> wrap_block(std::int64_t begin, std::int64_t end, float width, const std::function<float(std::int64_t)>& token_width,
                                  const std::function<bool(std::int64_t)>& goes_on) {
  std::vector<TokenLine> lines;
  float x = 0;
  for (std::int64_t t = begin; t < end; ++t) {
    const float w = token_width(t);
    if (lines.empty() || x + w > width) {
      const std::int64_t first = lines.empty() ? t : lines.back().end = line_end(lines.back(), t, goes_on);
      lines.push_back({first, t});
      x = 0;
      for (std::int64_t taken = first; taken < t; ++taken) x += token_width(taken);
    }
    x += w;
    lines.back().end = t + 1;
  }
  return lines;
}

bool is_digits(std::string_view text) {
  text = text.substr(std::min(text.size(), text.find_first_not_of(' ')));
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// A digit that follows a digit: a code is read as a whole.
bool goes_on_with(const RunInfo& run, std::int64_t token) {
  if (token == 0) return false;
  const auto i = static_cast<std::size_t>(token);
  return is_digits(run.tokens[i].text) && is_digits(run.tokens[i - 1].text);
}

/// "2", "1 3"
std::string chosen_text(const Routing& routing, std::int64_t token) {
  std::string text;
  for (std::int64_t n = 0; n < routing.partitions; ++n)
    if (routing.selected_at(token, n)) text += fmt::format("{}{}", text.empty() ? "" : " ", n + 1);
  return text;
}

/// One drawing of the strip: what every part of it needs.
struct Strip {
  const TokenStripData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;            // scale
  float gutter;       // left of the tokens: position of the line's first token
  float line_height;  // tokens, marks and lanes
  bool lanes_named;
  std::span<const TokenLane> lanes;  // that have room in one line of the text, with the text's own place

  /// `room`: of all lines.
  Strip(const TokenStripData& data_, Canvas& canvas_, const Frame& frame_, Size room)
      : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
    std::size_t shown = data.lanes.size();
    while (shown > 1 && lane_top(shown) + 6 * s > room.h) --shown;
    lanes = std::span(data.lanes).first(shown);
    float name = 0;
    for (const TokenLane& lane : lanes) name = std::max(name, canvas.text_width(lane.name(), lane_name_style()));
    lanes_named = name < 0.1f * room.w;
    const float position = canvas.text_width(std::to_string(std::max<std::int64_t>(data.tokens() - 1, 100)), position_style());
    gutter = std::max(position, lanes_named ? name : 0) + 10 * s;
    line_height = lane_top(lanes.size()) + 6 * s;
  }

  TextStyle token_style(Color color) const { return label(frame, kTokenType, color); }
  TextStyle position_style() const { return value(frame, kSmallType, frame.theme.faint, Align::right); }
  TextStyle lane_name_style() const { return label(frame, kSmallType, frame.theme.faint, Align::right); }
  TextStyle lane_style(Color color) const { return value(frame, kSmallType, color, Align::center); }
  float token_height() const { return 22 * s; }
  float mark_height() const { return 12 * s; }
  /// Below a line's upper edge.
  float lane_top(std::size_t lane) const { return token_height() + mark_height() + 18 * s * static_cast<float>(lane); }
  float gap() const { return 5 * s; }

  float token_width(std::int64_t t) const {
    const float text = canvas.text_width(visible_token(*data.run, t), token_style({})) + 4 * s;
    float chips = 0;
    for (const TokenLane& lane : lanes)
      if (t < lane.routing->tokens()) chips = std::max(chips, canvas.text_width(chosen_text(*lane.routing, t), lane_style({})) + 3 * s);
    return std::max({text, chips, 10 * s}) + gap();
  }
};

/// White space marks are drawn faint (on gold in ink), the letters in ink.
void draw_token_text(const Strip& strip, Rect cell, std::int64_t token, Color ink, Color space_ink) {
  const std::string text = visible_token(*strip.data.run, token);
  const bool space = text.starts_with("␣") && text.size() > std::string_view("␣").size();
  const std::string_view lead = space ? std::string_view(text).substr(0, std::string_view("␣").size()) : std::string_view();
  float x = cell.x + 2 * strip.s;
  const float y = cell.y + strip.token_height() / 2;
  if (space) {
    strip.canvas.text({x, y}, lead, strip.token_style(space_ink));
    x += strip.canvas.text_width(lead, strip.token_style({}));
  }
  const std::string_view rest = std::string_view(text).substr(lead.size());
  fitted_text(strip.canvas, {x, y}, rest, strip.token_style(ink), cell.right() - x);
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

/// Bytes of the UTF-8 character that begins with this one; 1 where none of several does.
std::size_t length_after(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC2 || byte > 0xF4 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The character that begins at the end of token `first` and goes on in tokens up to one beyond `token`; empty: there is none.
std::string character_from(const RunInfo& run, std::int64_t first, std::int64_t token) {
  const std::string& text = run.tokens[static_cast<std::size_t>(first)].text;
  const auto lead = std::find_if_not(text.rbegin(), text.rend(), continues_character);
  if (lead == text.rend()) return {};
  std::string bytes(lead.base() - 1, text.end());
  const std::size_t length = length_after(*lead);
  for (std::int64_t t = first + 1; t < std::ssize(run.tokens) && bytes.size() < length; ++t) {
    for (const char c : run.tokens[static_cast<std::size_t>(t)].text) {
      if (bytes.size() == length) break;
      if (!continues_character(c)) return {};
      bytes += c;
    }
    if (bytes.size() == length) return t >= token ? bytes : std::string();
  }
  return {};
}

/// "你", where the token is one of several that make it; else empty. A character has at most four bytes.
std::string shared_character(const RunInfo& run, std::int64_t token) {
  for (std::int64_t first = token; first >= std::max<std::int64_t>(0, token - 3); --first)
    if (std::string character = character_from(run, first, token); !character.empty()) return character;
  return {};
}

MarkStyle generated_style(const Theme& theme) { return {"G", QT_TRANSLATE_NOOP("Views", "generated"), theme.faint}; }

/// "N", "A", "AG", "G": one letter per reason.
std::string mark_letters(const Mark& mark) {
  return fmt::format("{}{}", mark.span ? span_style(*mark.span, {}).letter : "", mark.generated ? generated_style({}).letter : "");
}

void draw_dashes(const Strip& strip, float x0, float x1, float y, float dash, float period, float thickness, Color color) {
  for (float x = x0; x < x1; x += period) strip.canvas.fill_rect({x, y - thickness / 2, std::min(dash, x1 - x), thickness}, color);
}

/// Each kind has a line of its own: solid for the needle, dashed for the question, double for the answer; dotted where only the model
/// wrote.
void draw_mark_line(const Strip& strip, float x0, float x1, float y, const Mark& mark) {
  const float s = strip.s;
  if (!mark.span) {
    draw_dashes(strip, x0, x1, y, 1.5f * s, 4 * s, 1.5f * s, generated_style(strip.frame.theme).color);
    return;
  }
  const Color color = span_style(*mark.span, strip.frame.theme).color;
  switch (*mark.span) {
    case SpanKind::needle:
      strip.canvas.fill_rect({x0, y - 1.5f * s, x1 - x0, 3 * s}, color);
      break;
    case SpanKind::question:
      draw_dashes(strip, x0, x1, y, 4 * s, 7 * s, 2 * s, color);
      break;
    case SpanKind::answer:
      strip.canvas.fill_rect({x0, y - 2.5f * s, x1 - x0, 1.5f * s}, color);
      strip.canvas.fill_rect({x0, y + 1 * s, x1 - x0, 1.5f * s}, color);
      break;
  }
}

/// The letters as far as there is room, then the line, from x0 to x1.
void draw_mark(const Strip& strip, float x0, float x1, float top, const Mark& mark) {
  const TextStyle style = label(strip.frame, kMarkType, strip.frame.theme.ink, Align::left, true);
  const std::string letters = mark_letters(mark);
  const float y = top + strip.token_height() + strip.mark_height() / 2, width = strip.canvas.text_width(letters, style);
  const bool room = width <= x1 - x0;
  if (room) strip.canvas.text({x0, y}, letters, style);
  draw_mark_line(strip, room ? x0 + width + 2 * strip.s : x0, x1, y, mark);
}

/// `cell`: of the token, from the lane's upper edge on.
void draw_lane_cell(const Strip& strip, Rect cell, const TokenLane& lane, std::int64_t token) {
  const Routing& routing = *lane.routing;
  const std::string text = partitions_text(lane, token);
  if (text.empty()) return;
  const float y = cell.y, width = cell.w - strip.gap();
  const auto chosen = static_cast<float>(std::ranges::count(text, ' ') + 1);
  float x = cell.x;
  for (std::int64_t n = 0; n < routing.partitions; ++n) {
    if (!routing.selected_at(token, n)) continue;
    strip.canvas.fill_rect({x, y, width / chosen, 4 * strip.s}, identity_color(n + 1, strip.frame.theme));
    x += width / chosen;
  }
  strip.canvas.text({cell.x + width / 2, y + 11 * strip.s}, text, strip.lane_style(strip.frame.theme.ink));
}

/// Dashes above and below the token that is compared with; the cursor's own frame stays visible between them.
void draw_reference(const Strip& strip, Rect box) {
  const float s = strip.s;
  for (const float y : {box.y, box.bottom()}) draw_dashes(strip, box.x, box.right(), y, 3 * s, 5 * s, 2 * s, strip.frame.theme.ink);
}

void draw_token(const Strip& strip, Rect cell, std::int64_t token) {
  const Theme& theme = strip.frame.theme;
  const bool cursor = strip.frame.shown.cursor;
  const bool read = token <= strip.data.token || !cursor, needle = mark_of(*strip.data.run, token).span == SpanKind::needle;
  const Color ink = read ? theme.ink : theme.faint;
  const Rect box{cell.x, cell.y + 1 * strip.s, cell.w - strip.gap(), strip.token_height() - 2 * strip.s};
  if (needle) strip.canvas.fill_rect(box, faded(theme.needle, read ? 0.35f : 0.15f), 3 * strip.s);
  const bool found = std::ranges::binary_search(strip.frame.shown.found, token);
  if (found) strip.canvas.fill_rect(box, faded(theme.accent, 0.2f), 3 * strip.s);
  draw_token_text(strip, {cell.x, cell.y, cell.w - strip.gap(), cell.h}, token, ink, needle || found ? ink : theme.faint);
  if (found) strip.canvas.stroke_rect(box, theme.ink, strip.s, 3 * strip.s);
  if (token == strip.data.token && cursor) strip.canvas.stroke_rect(box, theme.accent, 2 * strip.s, 3 * strip.s);
  if (token == strip.data.reference) draw_reference(strip, box);
  for (std::size_t i = 0; i < strip.lanes.size(); ++i)
    draw_lane_cell(strip, {cell.x, cell.y + strip.lane_top(i), cell.w, cell.h}, strip.lanes[i], token);
  strip.canvas.hit({cell.x, cell.y, cell.w, strip.line_height}, {{0, token}});
}

void draw_line(const Strip& strip, Rect row, TokenLine line) {
  const float s = strip.s, names = row.x + strip.gutter - 8 * s;
  strip.canvas.text({names, row.y + strip.token_height() / 2}, std::to_string(line.begin), strip.position_style());
  for (std::size_t i = 0; strip.lanes_named && i < strip.lanes.size(); ++i)
    strip.canvas.text({names, row.y + strip.lane_top(i) + 11 * s}, strip.lanes[i].name(), strip.lane_name_style());
  float x = row.x + strip.gutter, mark_begin = x;
  for (std::int64_t t = line.begin; t < line.end; ++t) {
    const float width = std::min(strip.token_width(t), row.right() - x);
    draw_token(strip, {x, row.y, width, row.h}, t);
    x += width;
    const Mark mark = mark_of(*strip.data.run, t);
    if (t + 1 < line.end && mark_of(*strip.data.run, t + 1) == mark) continue;
    if (mark.any()) draw_mark(strip, mark_begin, x - strip.gap(), row.y, mark);
    mark_begin = x;
  }
}

/// The marks that occur in the run.
std::vector<MarkStyle> occurring_marks(const TokenStripData& data, const Theme& theme) {
  std::vector<MarkStyle> marks;
  for (const SpanKind kind : {SpanKind::needle, SpanKind::question, SpanKind::answer}) {
    if (std::ranges::any_of(data.run->spans, [kind](const TokenSpan& span) { return span.kind == kind; }))
      marks.push_back(span_style(kind, theme));
  }
  if (data.run->prompt_length < data.tokens()) marks.push_back(generated_style(theme));
  return marks;
}

/// What the letters mean.
void draw_legend(const Strip& strip, Rect row) {
  const TextStyle letter = label(strip.frame, kSmallType, strip.frame.theme.ink, Align::left, true);
  const TextStyle name = label(strip.frame, kSmallType, strip.frame.theme.faint);
  float x = row.x + strip.gutter;
  for (const MarkStyle& style : occurring_marks(strip.data, strip.frame.theme)) {
    const float letter_width = strip.canvas.text_width(style.letter, letter) + 4 * strip.s;
    const std::string text = Views::tr(style.name);
    const float name_width = strip.canvas.text_width(text, name) + 16 * strip.s;
    if (x + letter_width + name_width > row.right()) return strip.canvas.left_out();
    strip.canvas.text({x, row.y + row.h / 2}, style.letter, letter);
    strip.canvas.text({x + letter_width, row.y + row.h / 2}, text, name);
    x += letter_width + name_width;
  }
}

/// The whole run as one bar: marks at their place (needle full height, question below, answer above), the visible window, the cursor.
void draw_overview(const Strip& strip, Rect bar, TokenLine visible) {
  const TokenStripData& data = strip.data;
  const Theme& theme = strip.frame.theme;
  const float s = strip.s, per_token = bar.w / static_cast<float>(data.tokens());
  const auto x_of = [&](std::int64_t token) { return bar.x + per_token * static_cast<float>(token); };
  strip.canvas.fill_rect(bar, faded(theme.line, 0.5f));
  strip.canvas.fill_rect({bar.x, bar.y, x_of(data.token + 1) - bar.x, bar.h}, theme.line);
  for (const TokenSpan& span : data.run->spans) {
    if (span.begin >= data.tokens()) continue;  // not read yet
    const float x = x_of(span.begin), w = std::max(3 * s, x_of(span.end) - x);
    const float top = span.kind == SpanKind::question ? bar.h / 2 : 0, height = span.kind == SpanKind::needle ? bar.h : bar.h / 2;
    strip.canvas.fill_rect({std::min(x, bar.right() - w), bar.y + top, w, height}, span_style(span.kind, theme).color);
  }
  strip.canvas.stroke_rect({x_of(visible.begin), bar.y, std::max(4 * s, x_of(visible.end) - x_of(visible.begin)), bar.h}, theme.faint, s);
  const float cursor = x_of(data.token) + per_token / 2;
  strip.canvas.fill_rect({std::clamp(cursor - s, bar.x, bar.right() - 2 * s), bar.y - 3 * s, 2 * s, bar.h + 6 * s}, theme.accent);
  strip.canvas.hit({bar.x, bar.y - 3 * s, bar.w, bar.h + 6 * s}, {{0, 0}, 1, data.tokens(), 0, 0});
}

/// What has no room is told of: returns how wide that is.
float draw_hidden_lanes(const Strip& strip, Rect row) {
  const std::span<const TokenLane> hidden = std::span(strip.data.lanes).subspan(strip.lanes.size());
  if (hidden.empty()) return 0;
  std::vector<std::string> letters;
  for (const TokenLane& lane : hidden) letters.push_back(lane.letter);
  const std::string text = Views::tr("no room for {}", joined(letters, ", "));
  const TextStyle style = label(strip.frame, kSmallType, strip.frame.theme.ink);
  fitted_text(strip.canvas, {row.x, row.y + row.h / 2}, text, style, row.w / 2);
  return std::min(strip.canvas.text_width(text, style), row.w / 2) + 12 * strip.s;
}

/// "12/512" and the overview.
void draw_position(const Strip& strip, Rect row, TokenLine visible) {
  const float used = draw_hidden_lanes(strip, row);
  row = {row.x + used, row.y, row.w - used, row.h};
  const TextStyle style = value(strip.frame, kBodyType, strip.frame.theme.ink, Align::right, true);
  const std::string all = std::to_string(strip.data.tokens());
  const float width = strip.canvas.text_width(all + "/" + all, style) + 12 * strip.s;
  strip.canvas.text({row.right(), row.y + row.h / 2}, fmt::format("{}/{}", strip.data.token, all), style);
  const float bar_height = 12 * strip.s;
  if (row.w - width < 20 * strip.s) return;
  draw_overview(strip, {row.x, row.y + (row.h - bar_height) / 2, row.w - width, bar_height}, visible);
}

class TokenStrip : public View {
 public:
  bool compares() const override { return true; }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_token_strip(snapshot, cursor, findings);
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    if (data_.tokens() == 0) return Views::tr("No tokens have been read yet.");
    const std::string here = Views::tr("Token {} of {}: {}.", data_.token, data_.tokens(), visible_token(*data_.run, data_.token));
    return data_.reference < 0 ? here : here + " " + Views::tr("Compared with token {}.", data_.reference);
  }

 private:
  TokenStripData data_;
};

}  // namespace

Mark mark_of(const RunInfo& run, std::int64_t token) {
  Mark mark{.generated = token >= run.prompt_length};
  for (const TokenSpan& span : run.spans) {
    if (!mark.span && token >= span.begin && token < span.end) mark.span = span.kind;
  }
  return mark;
}

std::string mark_words(const TokenStripData& data, std::int64_t token) {
  std::vector<std::string> words;
  const Mark mark = mark_of(*data.run, token);
  if (const std::string character = shared_character(*data.run, token); !character.empty())
    words.push_back(Views::tr("part of “{}”", character));
  if (mark.span) words.push_back(Views::tr(span_style(*mark.span, {}).name));
  if (mark.generated) words.push_back(Views::tr(generated_style({}).name));
  if (token == data.reference) words.push_back(Views::tr("compared with (D)"));
  return joined(words, ", ");
}

std::string partitions_text(const TokenLane& lane, std::int64_t token) {
  return token < 0 || token > lane.until || token >= lane.routing->tokens() ? "" : chosen_text(*lane.routing, token);
}

std::vector<TokenLine> lines_around(std::int64_t tokens, std::int64_t cursor, float width, std::int64_t count,
                                    const std::function<float(std::int64_t)>& token_width,
                                    const std::function<bool(std::int64_t)>& goes_on) {
  const auto block_lines = [&](std::int64_t block) {
    return wrap_block(block * kBlock, std::min(tokens, (block + 1) * kBlock), width, token_width, goes_on);
  };
  std::int64_t first_block = cursor / kBlock, last_block = first_block;
  std::vector<TokenLine> lines = block_lines(first_block);
  const auto cursor_line = [&] { return std::ranges::find_if(lines, [&](TokenLine line) { return cursor < line.end; }) - lines.begin(); };
  while (first_block > 0 && cursor_line() < count) {
    const std::vector<TokenLine> earlier = block_lines(--first_block);
    lines.insert(lines.begin(), earlier.begin(), earlier.end());
  }
  while ((last_block + 1) * kBlock < tokens && std::ssize(lines) - cursor_line() <= count) {
    const std::vector<TokenLine> later = block_lines(++last_block);
    lines.insert(lines.end(), later.begin(), later.end());
  }
  // The cursor's line stands in the middle, except near the ends of the text.
  const std::int64_t first = std::clamp<std::int64_t>(cursor_line() - count / 2, 0, std::max<std::int64_t>(0, std::ssize(lines) - count));
  lines.erase(lines.begin(), lines.begin() + first);
  lines.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, std::ssize(lines))));
  return lines;
}

std::string TokenLane::name() const { return letter.empty() ? Views::tr("partition") : Views::tr("partition {}", letter); }

TokenStripData build_token_strip(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) {
  if (!snapshot.run || snapshot.run->tokens.empty()) return {};
  const std::int64_t last = static_cast<std::int64_t>(snapshot.run->tokens.size()) - 1;
  const std::int64_t token = std::clamp<std::int64_t>(cursor.token, 0, last);
  const std::int64_t routed = cursor.progress < 1 ? token - 1 : token;
  TokenStripData data{.run = snapshot.run, .token = token, .lanes = {}, .reference = std::min(cursor.reference, last)};
  if (snapshot.routing) data.lanes.push_back({"", snapshot.routing, snapshot.layer, routed});
  for (const auto& peer : findings.beside) {
    if (!peer->snapshot || !peer->snapshot->routing) continue;
    if (snapshot.routing) data.lanes.front().letter = peer->own_letter;
    data.lanes.push_back({peer->letter, peer->snapshot->routing, peer->snapshot->layer, std::min(routed, peer->same_until - 1)});
  }
  return data;
}

void draw(const TokenStripData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.tokens() == 0) {
    draw_message(canvas, area, frame, Views::tr("Nothing to read yet"),
                 Views::tr("It appears as soon as a model has read its first tokens."));
    return;
  }
  const Rect inner = inset(area, 6 * frame.scale);
  const float position_height = frame.shown.cursor ? 22 * frame.scale : 0, legend_height = 18 * frame.scale;
  const float foot = frame.shown.cursor ? position_height : legend_height;  // paper has always room for what the letters mean
  const Strip strip(data, canvas, frame, {inner.w, inner.h - foot});
  const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>((inner.h - foot) / strip.line_height));
  const std::vector<TokenLine> lines = lines_around(
      data.tokens(), data.token, inner.w - strip.gutter, count, [&](std::int64_t t) { return strip.token_width(t); },
      [&](std::int64_t t) { return count > 1 && goes_on_with(*data.run, t); });  // a line alone shows what comes next
  canvas.push_clip(area);
  float y = inner.y;
  for (const TokenLine line : lines) {
    draw_line(strip, {inner.x, y, inner.w, strip.line_height}, line);
    y += strip.line_height;
  }
  const Rect legend{inner.x, inner.bottom() - position_height - legend_height, inner.w, legend_height};
  if (legend.y >= y) draw_legend(strip, legend);
  if (!frame.shown.cursor) {
    if (strip.lanes.size() < data.lanes.size() || y > inner.bottom() + 1) canvas.left_out();
    return canvas.pop_clip();
  }
  draw_position(strip, {inner.x, inner.bottom() - position_height, inner.w, position_height}, {lines.front().begin, lines.back().end});
  canvas.pop_clip();
}

std::unique_ptr<View> make_token_strip() { return std::make_unique<TokenStrip>(); }

}  // namespace statescope
