#include "views/needle_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/colormaps.h"
#include "views/hits.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostNeedles = 64;
constexpr ColorScale kShare{ColorMap::viridis, 0, 1};

/// The engine's word for it.
std::string unit_of(const NeedleGridData& data) { return Engine::tr(data.grid.unit.empty() ? "words" : data.grid.unit.c_str()); }

double share_of(const NeedleGrid::Cell& cell) {
  return cell.read == 0 ? NAN : static_cast<double>(cell.right) / static_cast<double>(cell.read);
}

std::string cell_text(const NeedleGrid::Cell& cell) {
  if (!cell.impossible.empty()) return "—";
  return cell.read == 0 ? "…" : fmt::format("{}/{}", cell.right, cell.read);
}

std::string place_text(const NeedleGridData& data, std::int64_t cell) {
  return Views::tr("{} {}, {} % deep", data.length_of(cell), unit_of(data), data.depth_of(cell));
}

/// Of all prompts read so far; and the cell where the fewest are right, −1: every cell is as good.
struct Totals {
  std::int64_t right = 0, read = 0, worst = -1;
};
Totals totals_of(const NeedleGridData& data) {
  Totals totals;
  double least = 1;
  for (std::int64_t i = 0; i < data.count(); ++i) {
    const NeedleGrid::Cell& cell = data.grid.cells[static_cast<std::size_t>(i)];
    totals.right += cell.right;
    totals.read += cell.read;
    if (const double share = share_of(cell); share < least) least = share, totals.worst = i;
  }
  return totals;
}

/// The cell of the prompt that is being read, the first of that cell; −1: there is none.
std::int64_t first_read_now(const NeedleGridData& data) {
  if (data.progress >= 1) return -1;
  const auto prompt = std::lround(data.progress * static_cast<double>(data.count() * data.question.samples));
  for (std::int64_t i = prompt; i < data.count(); ++i)
    if (data.grid.cells[static_cast<std::size_t>(i)].impossible.empty()) return i;
  return -1;
}

std::string summary(const NeedleGridData& data, bool with_worst = true) {
  const Totals totals = totals_of(data);
  const std::int64_t needles = data.question.needles;
  if (totals.read == 0 && data.progress < 1)
    return needles == 1 ? Views::tr("the first prompt with {} needle is being read", needles)
                        : Views::tr("the first prompt with {} needles is being read", needles);
  std::vector<std::string> parts = {
      needles == 1 ? Views::tr("{} of {} prompts with {} needle are answered right", totals.right, totals.read, needles)
                   : Views::tr("{} of {} prompts with {} needles are answered right", totals.right, totals.read, needles)};
  if (with_worst && totals.worst >= 0) parts.push_back(Views::tr("fewest with {}", place_text(data, totals.worst)));
  if (data.progress < 1) parts.push_back(Views::tr("{:.0f} % read", 100 * data.progress));
  return joined(parts, "; ");
}

/// Where there is no room for more.
std::string short_summary(const NeedleGridData& data) {
  const Totals totals = totals_of(data);
  if (totals.read == 0 && data.progress < 1) return Views::tr("the first prompt is being read");
  const std::string right = Views::tr("{} of {} answered right", totals.right, totals.read);
  return data.progress < 1 ? joined({right, Views::tr("{:.0f} % read", 100 * data.progress)}, "; ") : right;
}

}  // namespace

/// The same numbers from the command line.
std::string command_of(const NeedleGridData& data, std::int64_t cell) {
  return fmt::format("statescope eval {} --task niah --length {} --needles {} --depth {} --samples {}{}", data.model, data.length_of(cell),
                     data.question.needles, data.depth_of(cell), data.question.samples,
                     data.grid.haystack == "filler" ? "" : " --haystack " + data.grid.haystack);
}

std::string failure_text(const NeedleGridData& data, const NeedleGrid::Failure& failure) {
  if (data.grid.by_reply) return Views::tr("prompt {}: the reply does not contain the answer", failure.index);
  return Views::tr("prompt {}: answer token {} is wrong", failure.index, failure.place + 1);
}

namespace {

const std::vector<NeedleGrid::Failure>* marked_failures(const NeedleGridData& data) {
  return data.mark < 0 || data.mark >= data.count() ? nullptr : &data.grid.cells[static_cast<std::size_t>(data.mark)].failures;
}

/// One drawing: where things stand.
struct Picture {
  const NeedleGridData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, bar, list;  // w 0: left out
  Plot plot;              // likewise

  Picture(const NeedleGridData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  Rect cell(std::int64_t i) const {
    const Rect& all = plot.all;
    const float w = all.w / static_cast<float>(data.columns()), h = all.h / static_cast<float>(data.question.depths.size());
    return {all.x + w * static_cast<float>(i % data.columns()), all.y + h * static_cast<float>(i / data.columns()), w, h};
  }
  TextStyle small(Align align = Align::left) const { return label(frame, kSmallType, frame.theme.faint, align); }
};

Picture::Picture(const NeedleGridData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  const float line = 1.5f * kBodyType * s;
  title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
  const float left = canvas.text_width("100 %", small()) + 8 * s, names = 1.5f * kSmallType * s, right = bar_room(frame, 12 * s + 50 * s);
  Rect body{inner.x + left, title.bottom() + names + 4 * s, inner.w - left - right, 0};
  body.h = inner.bottom() - body.y - 2 * names;
  const float list_width = 270 * s, list_height = 5.5f * line;
  if (frame.shown.captions && body.w - list_width > 240 * s) {
    body.w -= list_width + 12 * s;
    list = {inner.right() - list_width, body.y, list_width, body.h};
  } else if (frame.shown.captions && body.h - list_height > 120 * s) {
    body.h -= list_height + 4 * s;
    list = {inner.x, inner.bottom() - list_height, inner.w, list_height};
  }
  if (body.w < 80 * s || body.h < 40 * s) return;
  plot = zoomed(canvas, body, true, true, frame);
  bar = {plot.right() + 10 * s, plot.y, 12 * s, plot.h};
}

void draw_axes(const Picture& picture) {
  const NeedleGridData& data = picture.data;
  const float s = picture.s, names = 1.5f * kSmallType * s;
  const PlaceRange across = places_across(picture.plot, data.columns()), down = places_down(picture.plot, std::ssize(data.question.depths));
  for (std::int64_t r = down.from; r < down.to; ++r) {
    const Rect cell = seen(picture.plot, picture.cell(r * data.columns() + across.from));
    if (cell.h < kSmallType * s) continue;
    fitted_text(picture.canvas, {picture.plot.x - 6 * s, cell.y + cell.h / 2},
                fmt::format("{} %", data.question.depths[static_cast<std::size_t>(r)]),
                value(picture.frame, kSmallType, picture.frame.theme.ink, Align::right), picture.plot.x);
  }
  for (std::int64_t c = across.from; c < across.to; ++c) {
    const Rect cell = seen(picture.plot, picture.cell(down.from * data.columns() + c));
    const std::int64_t length = data.question.lengths[static_cast<std::size_t>(c)];
    const bool trained = length == data.trained_length && picture.frame.shown.marks;
    fitted_text(picture.canvas, {cell.x + cell.w / 2, picture.plot.bottom() + names / 2 + 2 * s},
                fitting(picture.canvas, trained ? Views::tr("{} (trained on)", length) : std::to_string(length), std::to_string(length),
                        value(picture.frame, kSmallType, picture.frame.theme.ink, Align::center), cell.w - 4 * s),
                value(picture.frame, kSmallType, picture.frame.theme.ink, Align::center), cell.w);
  }
  fitted_text(picture.canvas, {picture.plot.x, picture.plot.y - names / 2},
              fitting(picture.canvas, Views::tr("down: depth of the needle; across: length of the text"),
                      Views::tr("down: depth; across: length"), picture.small(), picture.plot.w),
              picture.small(), picture.plot.w);
  fitted_text(picture.canvas, {picture.plot.x, picture.plot.bottom() + 1.5f * names}, unit_of(data), picture.small(), picture.plot.w);
}

void draw_cells(const Picture& picture) {
  const NeedleGridData& data = picture.data;
  const float s = picture.s;
  std::vector<float> shares;
  for (const NeedleGrid::Cell& cell : data.grid.cells) shares.push_back(static_cast<float>(share_of(cell)));
  const Within inside(picture.canvas, picture.plot);
  picture.canvas.heatmap(picture.plot.all, {std::ssize(data.question.depths), data.columns(), shares, kShare});
  hit_plot(picture.canvas, picture.plot, {{NeedleGridSheets::cells, 0, 0}, std::ssize(data.question.depths), data.columns()});
  for (std::int64_t i = 0; i < data.count(); ++i) {
    const NeedleGrid::Cell& cell = data.grid.cells[static_cast<std::size_t>(i)];
    const Rect rect = seen(picture.plot, picture.cell(i));
    if (rect.w <= 0 || rect.h <= 0) continue;  // out of sight
    const double share = share_of(cell);
    const TextStyle style = value(picture.frame, picture.frame.shown.cursor ? kBodyType : kSmallType, {}, Align::center, i == data.mark);
    const std::string text = cell_text(cell);
    const Color ground = std::isnan(share) ? picture.frame.theme.panel : color_at(kShare.map, static_cast<float>(share));
    if (std::isnan(share)) picture.canvas.fill_rect(rect, ground);  // quiet instead of hatched: most cells are not read yet for a while
    picture.canvas.stroke_rect(rect, picture.frame.theme.line, s);
    const float width = picture.canvas.text_width(text, style) + 6 * s;
    if (width > rect.w || 1.4f * style.size > rect.h) {
      picture.canvas.left_out();
      continue;
    }
    TextStyle readable = style;
    readable.color = readable_on(ground);
    picture.canvas.text({rect.x + rect.w / 2, rect.y + rect.h / 2}, text, readable);
  }
  picture.canvas.stroke_rect(picture.plot, picture.frame.theme.line, s);
  if (const std::int64_t now = first_read_now(data); now >= 0)
    picture.canvas.stroke_rect(picture.cell(now), picture.frame.theme.ink, 1.5f * s);
  if (data.mark < 0 || data.mark >= data.count() || !picture.frame.shown.cursor) return;
  const Rect marked = picture.cell(data.mark);
  picture.canvas.stroke_rect(marked, picture.frame.theme.panel, 5 * s);
  picture.canvas.stroke_rect(marked, picture.frame.theme.accent, 3 * s);
}

/// What the marked cell says, and its failed prompts.
void draw_list(const Picture& picture) {
  const NeedleGridData& data = picture.data;
  if (picture.list.w <= 0) return;
  const float line = 1.5f * kBodyType * picture.s;
  Rect row{picture.list.x, picture.list.y, picture.list.w, line};
  const auto write = [&](std::string_view text, Color color, bool bold = false) {
    fitted_text(picture.canvas, {row.x, row.y + line / 2}, text, label(picture.frame, kBodyType, color, Align::left, bold), row.w);
    row.y += line;
  };
  const Theme& theme = picture.frame.theme;
  const auto explain = [&](std::string_view text) {
    const TextStyle style = label(picture.frame, kBodyType, theme.faint);
    for (const std::string& part : wrapped(picture.canvas, text, style, row.w))
      if (row.bottom() <= picture.list.bottom()) write(part, theme.faint);
  };
  const std::vector<NeedleGrid::Failure>* failures = marked_failures(data);
  if (!failures && !picture.frame.shown.hints) return;
  if (!failures) return explain(Views::tr("Choose a cell to open a prompt that failed."));
  const NeedleGrid::Cell& cell = data.grid.cells[static_cast<std::size_t>(data.mark)];
  write(place_text(data, data.mark), theme.ink, true);
  if (!cell.impossible.empty()) return explain(cell.impossible);
  if (failures->empty()) return explain(Views::tr("No prompt has failed."));
  const auto room = static_cast<std::int64_t>((picture.list.bottom() - row.y) / line);
  const std::int64_t all = std::ssize(*failures), shown = all <= room ? all : std::max<std::int64_t>(0, room - 1);
  for (std::int64_t i = 0; i < shown; ++i) {
    picture.canvas.hit(row, {{NeedleGridSheets::failures, i}});
    write(failure_text(data, (*failures)[static_cast<std::size_t>(i)]), theme.accent);
  }
  if (shown < all && room > 0) write(Views::tr("and {} more failed", all - shown), theme.faint);
}

class NeedleGridView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor&) const override {
    if (!snapshot.run) return {};
    return {question(*snapshot.run)};
  }
  void build(const Snapshot& snapshot, const Cursor&, const Findings& findings) override {
    const std::int64_t columns = data_.columns();
    data_ = build_needle_grid(snapshot, findings, snapshot.run ? question(*snapshot.run) : NeedleGridQuestion{}, data_.mark);
    if (data_.columns() != columns) data_.mark = -1;  // of other cells
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 3> names = {QT_TRANSLATE_NOOP("Views", "Usual"), QT_TRANSLATE_NOOP("Views", "Quick"),
                                                              QT_TRANSLATE_NOOP("Views", "Thorough")};
    return names;
  }
  std::optional<Knob> knob() const override {
    return Knob{QT_TRANSLATE_NOOP("Views", "Needles"),
                QT_TRANSLATE_NOOP("Views", "How many needles a text holds; one of them is asked for."),
                1,
                static_cast<double>(kMostNeedles),
                static_cast<double>(needles_),
                true};
  }
  void turn(double value) override { needles_ = std::int64_t{1} << std::lround(std::log2(value)); }

  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }
  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    if (data_.message) return data_.message.sentence();
    return summary(data_) + ".";
  }
  std::optional<NeedleExample> example(const Hit& hit) const override {
    const bool listed = hit.sheet == NeedleGridSheets::failures;
    const std::int64_t cell = listed ? data_.mark : cell_of(hit);
    if (cell < 0 || cell >= data_.count()) return {};
    const std::vector<NeedleGrid::Failure>& failures = data_.grid.cells[static_cast<std::size_t>(cell)].failures;
    const std::int64_t index = listed ? hit.at[0] : 0;
    if (index < 0 || index >= std::ssize(failures)) return {};
    return data_.example(cell, failures[static_cast<std::size_t>(index)]);
  }
  void set_mark(const Hit& hit) override {
    if (hit.sheet == NeedleGridSheets::cells && cell_of(hit) >= 0 && cell_of(hit) < data_.count()) data_.mark = cell_of(hit);
  }
  bool step_mark(std::int64_t rows, std::int64_t columns) override {
    if (data_.count() == 0) return true;
    const std::int64_t at = std::max<std::int64_t>(data_.mark, 0), width = data_.columns();
    const bool first = data_.mark < 0;
    const std::int64_t row = std::clamp<std::int64_t>(at / width + (first ? 0 : rows), 0, data_.count() / width - 1);
    data_.mark = row * width + std::clamp<std::int64_t>(at % width + (first ? 0 : columns), 0, width - 1);
    return true;
  }
  std::optional<Hit> marked() const override {
    if (data_.mark < 0) return {};
    return Hit{NeedleGridSheets::cells, data_.mark / data_.columns(), data_.mark % data_.columns()};
  }

 private:
  std::int64_t cell_of(const Hit& hit) const { return hit.at[0] * data_.columns() + hit.at[1]; }
  NeedleGridQuestion question(const RunInfo& run) const { return needle_grid_question(run, needles_, static_cast<NeedleGridMode>(mode())); }
  NeedleGridData data_;
  std::int64_t needles_ = 16;
};

}  // namespace

NeedleExample NeedleGridData::example(std::int64_t cell, const NeedleGrid::Failure& failure) const {
  return {question.needles, length_of(cell), depth_of(cell), grid.haystack, failure.index, failure.place};
}

NeedleGridQuestion needle_grid_question(const RunInfo& run, std::int64_t needles, NeedleGridMode mode) {
  NeedleGridQuestion question{.needles = needles, .samples = 20, .lengths = {}, .depths = {0, 25, 50, 75, 100}};
  if (mode == NeedleGridMode::thorough) question.samples = 100;
  const bool quick = mode == NeedleGridMode::quick;
  if (quick) question.samples = 5, question.depths = {0, 50, 100};
  const std::int64_t trained = run.model.trained_length > 0 ? run.model.trained_length : 512;
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    const auto length = static_cast<std::int64_t>(factor * static_cast<double>(trained));
    if (length > 0 && (!quick || (factor >= 0.5 && factor <= 2))) question.lengths.push_back(length);
  }
  return question;
}

NeedleGridData build_needle_grid(const Snapshot& snapshot, const Findings& findings, const NeedleGridQuestion& question,
                                 std::int64_t mark) {
  NeedleGridData data;
  data.mark = mark;
  if (!snapshot.run) {
    data.message = {Views::tr("No checkpoint is open"), Views::tr("Open one to see how often it finds a needle.")};
    return data;
  }
  data.model = snapshot.run->model.name;
  data.trained_length = snapshot.run->model.trained_length;
  data.question = question;
  const Finding* finding = findings.find(data.question);
  const NeedleGrid* grid = findings.get(data.question);
  if (!grid) {
    data.message = waiting(findings, data.question, Views::tr("How often needles are found"));
    return data;
  }
  data.grid = *grid;
  data.progress = finding->progress;
  return data;
}

void draw(const NeedleGridData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  if (frame.shown.captions) {
    const TextStyle style = label(frame, kBodyType, frame.theme.ink, Align::left, true);
    clauses_text(canvas, {picture.title.x, picture.title.y + picture.title.h / 2},
                 fitting(canvas, summary(data), fitting(canvas, summary(data, false), short_summary(data), style, picture.title.w), style,
                         picture.title.w),
                 style, picture.title.w);
  }
  if (picture.plot.w <= 0) canvas.left_out();
  if (picture.plot.w > 0) {
    draw_axes(picture);
    draw_cells(picture);
    const std::array<ScaleMark, 3> marks = {{{1, Views::tr("all")}, {0.5f, Views::tr("half")}, {0, Views::tr("none")}}};
    draw_color_bar(canvas, picture.bar, kShare, marks, frame);
  }
  draw_list(picture);
  canvas.pop_clip();
}

std::unique_ptr<View> make_needle_grid() { return std::make_unique<NeedleGridView>(); }

}  // namespace statescope
