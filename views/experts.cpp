#include "views/experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/routing.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kFewestRows = 32;  // they are not gathered
constexpr std::size_t kMostInTitle = 5, kMostNamed = 10;

/// Where there is nothing to ask.
Message without_experts(const Snapshot& snapshot) {
  const LayerInfo* layer = layer_of(snapshot);
  if (!layer) return nothing_read();
  if (layer->experts > 0) return {};
  const std::vector<std::int64_t> others = layers_that(snapshot.run->model, [](const LayerInfo& each) { return each.experts > 0; });
  const std::string list = layer_list(others, "");
  return {Views::tr("Layer {} ({}) has no experts", snapshot.layer, layer->mixer),
          others.empty() ? Views::tr("No layer of this model has any. Mixture-of-experts hybrids do: Qwen3-Next, Qwen3.5 MoE, Kimi Linear, "
                                     "Granite 4.0-H, Nemotron 3, Jamba, LFM2-MoE.")
          : others.size() == 1 ? Views::tr("In this model, {} has some.", list)
                               : Views::tr("In this model, {} have some.", list)};
}

ExpertsQuestion question_of(const Snapshot& snapshot) {
  const TokenWindow window = window_around(snapshot.token, std::ssize(snapshot.run->tokens));
  return {snapshot.layer, window.from, window.to};
}

/// w_e / Σ w, [n, k]
std::vector<float> shares_of(const Experts& known) {
  std::vector<float> shares = known.weight;
  for (auto token = shares.begin(); token != shares.end(); token += known.chosen) {
    const float sum = std::accumulate(token, token + known.chosen, 0.0f);
    std::for_each(token, token + known.chosen, [sum](float& share) { share /= sum; });
  }
  return shares;
}

/// Two rows in one, the larger number of each pair.
std::vector<float> halved(const std::vector<float>& fine, std::int64_t columns) {
  const std::int64_t rows = std::ssize(fine) / columns;
  std::vector<float> coarse(static_cast<std::size_t>((rows + 1) / 2 * columns), NAN);
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    float& most = coarse[static_cast<std::size_t>(i / columns / 2 * columns + i % columns)];
    most = std::fmax(most, fine[static_cast<std::size_t>(i)]);  // of the two the number, where there is one
  }
  return coarse;
}

void fill_rows(ExpertsData& data) {
  if (data.until == 0) return;
  std::vector<float> cells = data.share;
  for (std::int64_t each = 1;; each *= 2) {
    const std::int64_t rows = std::ssize(cells) / data.until;
    data.rows.push_back({each, Pyramid(cells, rows, data.until)});
    if (rows <= kFewestRows) return;
    cells = halved(cells, data.until);
  }
}

void fill_map(ExpertsData& data, const Experts& known, std::span<const float> shares, const RangeChoice& range) {
  data.share.assign(static_cast<std::size_t>(known.experts * data.until), NAN);
  for (std::int64_t i = 0; i < data.until * known.chosen; ++i) {
    const auto at = static_cast<std::size_t>(i);
    data.share[static_cast<std::size_t>(known.expert[at] * data.until + i / known.chosen)] = shares[at];
  }
  fill_rows(data);
  // Twice the mean share: few are larger where there are many experts.
  data.coloring = colored(data.share, {0, std::min(1.0f, 2 / static_cast<float>(known.chosen))}, {}, range);
  data.coloring->marks = range_marks(data.coloring->shading);
}

void fill_loads(ExpertsData& data, const Experts& known) {
  std::vector<std::int64_t> tokens = known.load;
  for (std::int64_t i = 0; i < data.until * known.chosen; ++i)
    ++tokens[static_cast<std::size_t>(known.expert[static_cast<std::size_t>(i)])];
  const std::int64_t choices = (data.tokens.cursor + 1) * known.chosen;  // as of so many tokens that go to one expert each
  for (const std::int64_t load : tokens) {
    // f_e / (k / E)
    const float ratio = choices > 0 ? static_cast<float>(load * known.experts) / static_cast<float>(choices) : 0;
    data.loads.push_back({load, ratio, load_alarm(load, ratio, choices, known.experts)});
  }
}

void fill_chosen(ExpertsData& data, const Experts& known, std::span<const float> shares) {
  if (data.until == 0) return;
  for (std::int64_t i = (data.until - 1) * known.chosen; i < data.until * known.chosen; ++i) {
    const auto at = static_cast<std::size_t>(i);
    data.chosen.push_back({known.expert[at], known.weight[at], shares[at]});
  }
}

/// "Layer 0: “␣anna” (59) goes to experts 3 and 1 (of 4)"
std::string summary(const ExpertsData& data, std::int64_t layer) {
  if (data.chosen.empty()) return Views::tr("Layer {}: nothing has been read yet", layer);
  const std::string token = numbered_token(*data.tokens.run, data.tokens.cursor);
  std::vector<std::string> names;
  for (const ExpertsData::Chosen& chosen : std::span(data.chosen).first(std::min(kMostInTitle, data.chosen.size())))
    names.push_back(std::to_string(chosen.expert));
  const std::size_t more = data.chosen.size() - names.size();
  if (names.size() == 1) return Views::tr("Layer {}: {} goes to expert {} (of {})", layer, token, names.front(), data.experts());
  if (more > 0)
    return Views::tr("Layer {}: {} goes to experts {} and {} more (of {})", layer, token, joined(names, ", "), more, data.experts());
  const std::string last = names.back();
  names.pop_back();
  return Views::tr("Layer {}: {} goes to experts {} and {} (of {})", layer, token, joined(names, ", "), last, data.experts());
}

std::vector<Fact> facts_of(const ExpertsData& data) {
  if (data.chosen.empty()) return {};
  const auto columns = [](const std::string& weight, const std::string& load) { return fmt::format("{:>6} {:>6}", weight, load); };
  std::vector<Fact> facts{{Views::tr("expert"), columns(Views::tr("weight"), Views::tr("load"))}};
  const std::size_t named = std::min(kMostNamed, data.chosen.size());
  for (const ExpertsData::Chosen& chosen : std::span(data.chosen).first(named)) {
    const ExpertsData::Load& load = data.loads[static_cast<std::size_t>(chosen.expert)];
    facts.push_back({std::to_string(chosen.expert), columns(fmt::format("{:.3f}", chosen.weight), fmt::format("{:.2f}", load.ratio))});
  }
  if (named < data.chosen.size()) facts.push_back({Views::tr("and {} more", data.chosen.size() - named), ""});
  for (const std::string_view alarm : {"dead", "overloaded"}) {
    const auto count = std::ranges::count(data.loads, alarm, &ExpertsData::Load::alarm);
    if (count > 0) facts.push_back({alarm_words(alarm), Views::tr("{} of {}", count, data.experts())});
  }
  return facts;
}

/// One drawing: where things stand.
struct Picture : TokenMap {
  const ExpertsData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Plot loads;  // beside the map, in its rows; w 0: left out
  Rect bar;    // of colours

  Picture(const ExpertsData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  /// What a lane beside the map takes, and the colour bar behind it.
  static float beside(Rect area, const Frame& frame) {
    return area.w < 300 * frame.scale ? 0 : 8 * frame.scale + lane_width(frame) + bar_room(frame, 60 * frame.scale);
  }
  static float lane_width(const Frame& frame) { return 66 * frame.scale; }
  /// A bar in the row of an expert, a unit high at least.
  Rect bar_of(std::int64_t expert, float x, float width) const {
    const float each = map.all.h / static_cast<float>(data.experts()), height = std::clamp(each > 4 * s ? 0.8f * each : each, s, 14 * s);
    return {x, map.all.y + each * (static_cast<float>(expert) + 0.5f) - height / 2, width, height};
  }
};

Picture::Picture(const ExpertsData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : TokenMap(canvas_, area, canvas_.text_width(std::to_string(data_.experts()), value(frame_, kSmallType, {})) + 12 * frame_.scale,
               beside(area, frame_), frame_),
      data(data_),
      canvas(canvas_),
      frame(frame_),
      s(frame_.scale) {
  if (map.w <= 0 || beside(area, frame) <= 0) return;
  loads = {{map.right() + 8 * s, map.y, lane_width(frame), map.h}, {map.right() + 8 * s, map.all.y, lane_width(frame), map.all.h}};
  bar = {loads.right() + 12 * s, map.y, 12 * s, map.h};
}

/// Returns what goes down, and how many cells had to be gathered.
std::string draw_shares(const Picture& picture) {
  const ExpertsData& data = picture.data;
  if (data.rows.empty()) return Views::tr("experts down");
  const Plot read = left_part(picture.map, static_cast<float>(data.until) / static_cast<float>(data.tokens.count()));
  const float fineness = picture.canvas.fineness();
  const auto& [each, cells] = rows_on(data.rows, picture.map.all.h * fineness);
  Plot gathered = read;  // the last row may stand for fewer
  gathered.all.h *= static_cast<float>(cells.rows() * each) / static_cast<float>(data.experts());
  ColorScale scale = data.coloring->scale();
  scale.blank = true;  // most cells are of experts that are not chosen
  if (read.w > 0) draw_cells(picture.canvas, gathered, cells, scale);
  hit_plot(picture.canvas, read, {{ExpertsSheets::map, 0, 0}, data.experts(), data.until});
  const std::int64_t tokens = cells.level_for(gathered.all.w * fineness, gathered.all.h * fineness).gathered, experts = each * tokens;
  return experts == 1 ? Views::tr("experts down") : Views::tr("experts down, {} × {} in one, the largest", experts, tokens);
}

/// Left of the map, where the cursor's token goes.
void draw_chosen(const Picture& picture) {
  if (!picture.frame.shown.cursor) return;
  const Within inside(picture.canvas, picture.map, {picture.map.x - 6 * picture.s, picture.map.y, 4 * picture.s, picture.map.h});
  for (const ExpertsData::Chosen& chosen : picture.data.chosen)
    picture.canvas.fill_rect(picture.bar_of(chosen.expert, picture.map.x - 6 * picture.s, 4 * picture.s), picture.frame.theme.accent);
}

void draw_map(const Picture& picture) {
  if (picture.map.w <= 0) return;
  std::vector<std::string> notes{draw_shares(picture)};
  if (picture.frame.shown.captions) notes.push_back(Views::tr("blank: not chosen; bright: large w / Σ w"));
  draw_chosen(picture);
  draw_number_side(picture.canvas, picture.map, picture.data.experts(), 9 * picture.s, true, picture.frame);
  picture.draw_edges(picture.canvas, picture.data.tokens, notes, picture.frame);
  if (picture.bar.w > 0 && picture.data.coloring)
    draw_color_bar(picture.canvas, picture.bar, picture.data.coloring->scale(), picture.data.coloring->marks, picture.frame);
}

/// 1, the end of the loads' axis and 0, below them, as far as there is room.
void draw_load_axis(const Picture& picture, const ValueAxis& axis) {
  const TextStyle style = value(picture.frame, kSmallType, picture.frame.theme.faint);
  const Plot& lane = picture.loads;
  TextPlaces places;
  for (const double load : {1.0, axis.high, 0.0}) {
    const std::string text = axis_number(load);
    const float width = picture.canvas.text_width(text, style), middle = lane.x + lane.w * static_cast<float>(axis.share(load));
    const float left = std::clamp(middle - width / 2, lane.x, lane.right() - width);
    if (places.take(left - 2 * picture.s, left + width + 2 * picture.s))
      picture.canvas.text({left, lane.bottom() + 10 * picture.s}, text, style);
  }
}

void draw_load_bars(const Picture& picture, const ValueAxis& axis) {
  const Plot& lane = picture.loads;
  const Within inside(picture.canvas, lane);
  const auto draw_bar = [&](std::int64_t expert, Color color) {
    const double share = axis.share(picture.data.loads[static_cast<std::size_t>(expert)].ratio);
    picture.canvas.fill_rect(picture.bar_of(expert, lane.x, lane.w * static_cast<float>(share)), color);
  };
  const Color plain = over(faded(picture.frame.theme.ink, 0.4f), picture.frame.theme.panel);  // bars of small rows overlap
  const PlaceRange shown = places_down(lane, picture.data.experts());
  for (std::int64_t expert = shown.from; expert < shown.to; ++expert) draw_bar(expert, plain);
  if (!picture.frame.shown.cursor) return;
  for (const ExpertsData::Chosen& chosen : picture.data.chosen) draw_bar(chosen.expert, picture.frame.theme.accent);
}

/// A bar for each expert, a line where loads are fair.
void draw_loads(const Picture& picture) {
  const Plot& lane = picture.loads;
  if (lane.w <= 0) return;
  const Theme& theme = picture.frame.theme;
  const float most = std::ranges::max(picture.data.loads, {}, &ExpertsData::Load::ratio).ratio;
  const ValueAxis axis{0, round_range(std::max(2.0f, most))};
  draw_load_bars(picture, axis);
  for (const auto& [load, color] : {std::pair{0.0, theme.line}, std::pair{1.0, theme.ink}}) {
    const float x = lane.x + lane.w * static_cast<float>(axis.share(load));
    picture.canvas.line({x, lane.y}, {x, lane.bottom()}, color, picture.s);
  }
  fitted_text(picture.canvas, {lane.x, lane.y - 9 * picture.s}, Views::tr("load"), label(picture.frame, kSmallType, theme.faint), lane.w);
  hit_plot(picture.canvas, lane, {{ExpertsSheets::loads, 0}, picture.data.experts(), 1});
  if (picture.names_tokens) draw_load_axis(picture, axis);
}

class ExpertsView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor&) const override {
    if (without_experts(snapshot)) return {};
    return {question_of(snapshot)};
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_experts(snapshot, cursor, findings, range());
  }
  std::optional<Shading> shading() const override { return shading_of(data_.coloring); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : data_.title + "."; }

 private:
  ExpertsData data_;
};

}  // namespace

const ExpertsData::Rows& rows_on(const std::vector<ExpertsData::Rows>& rows, float height) {
  const auto found = std::ranges::find_if(rows, [height](const auto& each) { return static_cast<float>(each.cells.rows()) <= height; });
  return found == rows.end() ? rows.back() : *found;
}

ExpertsData build_experts(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, const RangeChoice& range) {
  ExpertsData data;
  data.message = without_experts(snapshot);
  if (data.message) return data;
  const ExpertsQuestion question = question_of(snapshot);
  data.place = Views::tr("layer {}", snapshot.layer);
  const Experts* known = findings.get(question);
  if (!known) {
    data.message = waiting(findings, question, Views::tr("Which experts tokens go to in {}", data.place));
    return data;
  }
  data.tokens = {snapshot.run, token_range(question.from, question.to), shown_token(snapshot, cursor)};
  data.until = data.tokens.place_of(data.tokens.cursor) + 1;
  const std::vector<float> shares = shares_of(*known);
  fill_map(data, *known, shares, range);
  fill_loads(data, *known);
  fill_chosen(data, *known, shares);
  data.title = summary(data, snapshot.layer);
  return data;
}

void draw(const ExpertsData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, data.title, Experts::accuracy, frame);
  if (picture.loads.w <= 0 || !picture.names_tokens) canvas.left_out();
  draw_map(picture);
  draw_loads(picture);
  if (picture.facts.w > 0) draw_facts(canvas, picture.facts, facts_of(data), frame);
  canvas.pop_clip();
}

std::unique_ptr<View> make_experts() { return std::make_unique<ExpertsView>(); }

}  // namespace statescope
