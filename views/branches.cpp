#include "views/branches.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::string_view kTwoDigits = "00";  // what a column of names has room for

std::string parents_name(const BranchInfo& branch) {
  return branch.parent == 0 ? Views::tr("the model's own run") : Views::tr("branch {}", branch.parent);
}

/// Of [from, …) to the window's tokens.
std::vector<float> in_window(const std::vector<float>& values, std::int64_t from, const TokenAxis& tokens) {
  std::vector<float> shown;
  for (const std::int32_t token : tokens.tokens) {
    const std::int64_t i = token - from;
    shown.push_back(i >= 0 && i < std::ssize(values) ? values[static_cast<std::size_t>(i)] : kNone);
  }
  return shown;
}

std::string sentence(const BranchPredictions& found, const RunInfo& run) {
  if (found.kl.empty()) return Views::tr("No prediction has changed");
  const auto most = std::ranges::max_element(found.kl);
  const std::string most_text = number(*most, 3), where = after_words(run, found.from + (most - found.kl.begin()));
  if (found.changed < 0) return Views::tr("The most probable next token stays the same everywhere; KL up to {} nat, {}", most_text, where);
  const std::string first =
      Views::tr("First changed prediction {}; KL up to {} nat, {}", after_words(run, found.changed), most_text, where);
  return found.parted < 0 ? first : Views::tr("{}; from token {} on they read different texts", first, found.parted);
}

void fill_predictions(BranchesData& data, const BranchPredictions& found, const Snapshot& snapshot) {
  data.divergence = in_window(found.kl, found.from, data.tokens);
  data.logits = in_window(found.logits, found.from, data.tokens);
  data.values = data.mode == BranchesMode::divergence ? data.divergence : data.logits;
  data.axis = axis_over(data.mode == BranchesMode::divergence ? found.kl : found.logits);
  data.changed = found.changed;
  data.title = sentence(found, *snapshot.run);
}

void fill_states(BranchesData& data, const BranchStates& found, const Snapshot& snapshot) {
  for (std::size_t l = 0; l < found.difference.size(); ++l) {
    if (!snapshot.run->model.layers[l].has_state()) continue;
    const double relative = found.difference[l] == 0 ? 0 : found.difference[l] / found.left[l];
    data.layers.push_back({static_cast<std::int64_t>(l), found.left[l], found.here[l], found.difference[l], static_cast<float>(relative)});
  }
}

struct Picture {
  const BranchesData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, list;  // w 0: left out
  Plot plot;

  Picture(const BranchesData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
      : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
    const Rect inner = inset(area, 8 * s);
    title = {inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
    const float name = 17 * s, left = value_axis_width(frame), axis = token_axis_height(frame);
    const float rows = (static_cast<float>(data.layers.size()) + 1) * line();
    const Rect body{inner.x, title.bottom() + name, inner.w, inner.bottom() - title.bottom() - name};
    const float most = std::max(0.0f, std::floor(0.45f * body.h / line())) * line();
    const float below = std::min(rows, most);
    if (body.w - left > 120 * s && body.h - below - axis > 40 * s) plot = {body.x + left, body.y, body.w - left, body.h - below - axis};
    if (!data.curve_message) plot = zoomed(canvas, plot, true, false, frame);
    if (below >= 2 * line()) list = {body.x, inner.bottom() - below, body.w, below};
  }
  float line() const { return 1.7f * kBodyType * s; }
};

void draw_changed_line(const Picture& picture) {
  const std::int64_t place = picture.data.tokens.place_of(picture.data.changed);
  if (place < 0 || picture.data.tokens.tokens[static_cast<std::size_t>(place)] != picture.data.changed) return;
  const Plot& plot = picture.plot;
  const float x = picture.data.tokens.x_of(plot, place), s = picture.s;
  if (plot.shows_part() && (x < plot.x || x > plot.right())) return;
  picture.canvas.line({x, plot.y}, {x, plot.bottom()}, picture.frame.theme.accent, 1.5f * s);
  const bool left = x > plot.x + plot.w / 2;
  fitted_text(picture.canvas, {left ? x - 5 * s : x + 5 * s, plot.y + 9 * s}, Views::tr("first changed prediction"),
              label(picture.frame, kSmallType, picture.frame.theme.accent, left ? Align::right : Align::left), plot.w / 2);
}

void draw_curve_of(const Picture& picture) {
  const BranchesData& data = picture.data;
  if (picture.plot.w <= 0) return picture.canvas.left_out();
  if (data.curve_message)
    return draw_message(picture.canvas, picture.plot, picture.frame, data.curve_message.headline, data.curve_message.detail);
  const std::string name = data.mode == BranchesMode::divergence ? Views::tr("KL(parent ‖ here) of the next token, nat")
                                                                 : Views::tr("largest change of a logit");
  draw_value_axis(picture.canvas, picture.plot, data.axis, name, picture.frame);
  draw_curve(picture.canvas, picture.plot, data.axis, data.values, {picture.frame.theme.ink}, 1.5f * picture.s, picture.frame);
  draw_changed_line(picture);
  draw_token_axis(picture.canvas, picture.plot, data.tokens, picture.frame);
  hit_plot(picture.canvas, picture.plot, {{BranchesSheets::tokens, 0}, 1, data.tokens.count(), 0, 0});
}

void draw_layer(const Picture& picture, const LayerChange& change, Rect row) {
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, y = row.y + row.h / 2;
  const TextStyle name = label(picture.frame, kBodyType, theme.ink), exact = value(picture.frame, kBodyType, theme.ink, Align::right);
  const float before = picture.canvas.text_width(Views::tr("layer {}", kTwoDigits), name) + 10 * s,
              after = picture.canvas.text_width("0.00e+00", exact) + 8 * s;
  fitted_text(picture.canvas, {row.x, y}, Views::tr("layer {}", change.layer), name, before);
  picture.canvas.text({row.right(), y}, number(change.relative, 3), exact);
  const Rect track{row.x + before, y - 4 * s, row.w - before - after, 8 * s};
  if (track.w < 20 * s) return;
  picture.canvas.fill_rect(track, faded(theme.line, 0.5f));
  picture.canvas.fill_rect({track.x, track.y, track.w * std::clamp(change.relative, 0.0f, 1.0f), track.h}, theme.accent);
}

void draw_layers(const Picture& picture) {
  const Rect& list = picture.list;
  if (list.w <= 0 && !picture.data.layers.empty()) picture.canvas.left_out();
  if (list.w <= 0) return;
  const float line = picture.line();
  fitted_text(picture.canvas, {list.x, list.y + line / 2}, "‖S′ − S‖ / ‖S‖ " + picture.data.states_after,
              label(picture.frame, kSmallType, picture.frame.theme.faint), list.w);
  const auto fit = std::min<std::int64_t>(std::ssize(picture.data.layers), static_cast<std::int64_t>(list.h / line) - 1);
  if (fit < std::ssize(picture.data.layers)) picture.canvas.left_out();
  for (std::int64_t i = 0; i < fit; ++i) {
    const Rect row{list.x, list.y + static_cast<float>(i + 1) * line, list.w, line};
    draw_layer(picture, picture.data.layers[static_cast<std::size_t>(i)], row);
    picture.canvas.hit(row, {{BranchesSheets::layers, i}});
  }
}

class BranchesView final : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (!snapshot.run || snapshot.run->branch.number == 0) return {};
    std::vector<Question> all{BranchPredictionsQuestion{}};
    if (const std::int64_t token = shown_token(snapshot, cursor); token >= 0) all.emplace_back(BranchStatesQuestion{token});
    return all;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_branches(snapshot, cursor, findings, static_cast<BranchesMode>(mode()));
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::string_view names[] = {QT_TRANSLATE_NOOP("Views", "KL divergence"), QT_TRANSLATE_NOOP("Views", "Logits")};
    return names;
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : data_.title + "."; }

 private:
  BranchesData data_;
};

}  // namespace

BranchesData build_branches(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, BranchesMode mode) {
  BranchesData data;
  data.mode = mode;
  if (!snapshot.run) {
    data.message = {Views::tr("No run yet"), Views::tr("Open a checkpoint and a prompt")};
    return data;
  }
  const BranchInfo& branch = snapshot.run->branch;
  if (branch.number == 0) {
    data.message = {Views::tr("This is the model's own run"),
                    Views::tr("Change something in it (Run, Interventions) to compare what follows")};
    return data;
  }
  data.interventions = branch.interventions;
  const TokenWindow window = window_around(snapshot.token, std::ssize(snapshot.run->tokens));
  data.tokens = {snapshot.run, token_range(window.from, window.to), snapshot.token};
  const BranchPredictionsQuestion question;
  if (const BranchPredictions* found = findings.get(question)) {
    fill_predictions(data, *found, snapshot);
  } else {
    data.curve_message = waiting(findings, question, Views::tr("What the branch predicts"));
    data.title = data.curve_message.headline;
  }
  const std::int64_t token = shown_token(snapshot, cursor);
  data.states_after = after_words(*snapshot.run, token);
  if (const BranchStates* found = findings.get(BranchStatesQuestion{token})) fill_states(data, *found, snapshot);
  data.title = sentence_at(data.title, Views::tr("{}, against {}", joined(data.interventions, ", "), parents_name(branch)));
  return data;
}

void draw(const BranchesData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) return draw_message(canvas, area, frame, data.message.headline, data.message.detail);
  const Picture picture(data, canvas, area, frame);
  draw_caption(canvas, picture.title, data.title, BranchPredictions::accuracy, frame);
  draw_curve_of(picture);
  draw_layers(picture);
}

std::unique_ptr<View> make_branches() { return std::make_unique<BranchesView>(); }

}  // namespace statescope
