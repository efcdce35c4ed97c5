#include "views/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "views/chart.h"
#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr double kLeastSigma = 1e-6;           // of the largest: the foot of the axis
constexpr std::string_view kTwoDigits = "00";  // what a column of names has room for

Color head_color(std::int64_t head, const Theme& theme) { return identity_color(head + 1, theme); }

void fill_spectra(SpectrumData& data, const Spectra& answer) {
  double most = 0;
  for (std::int64_t h = 0; h < answer.heads; ++h) {
    const auto at = static_cast<std::size_t>(h);
    const auto first = answer.sigma.begin() + h * answer.count;
    data.spectra.push_back({h, {first, first + answer.count}, answer.entropy[at], answer.rank[at], answer.rank_of_squares[at]});
    if (answer.count > 0 && std::isfinite(*first)) most = std::max(most, static_cast<double>(*first));
  }
  if (data.mode == SpectrumMode::by_rank) std::ranges::stable_sort(data.spectra, std::ranges::greater{}, &HeadSpectrum::rank);
  // Whole powers of ten around what is above the foot.
  double least = most;
  for (const float sigma : answer.sigma) {
    if (sigma > kLeastSigma * most)
      least = std::min(least, static_cast<double>(sigma));
    else
      ++data.below;
  }
  const auto power = [](double value) { return std::pow(10.0, value); };
  data.sigma_axis =
      most > 0 ? ValueAxis{power(std::floor(std::log10(least))), power(std::ceil(std::log10(most) + 1e-9)), true} : ValueAxis{0.1, 1, true};
  if (data.sigma_axis.high <= data.sigma_axis.low) data.sigma_axis.high = 10 * data.sigma_axis.low;
  data.partitions = answer.partitions;
  data.partition_rank = answer.partition_rank;
  data.partition_entropy = answer.partition_entropy;
}

std::string partition_sentence(const SpectrumData& data) {
  const auto name = [&](std::ptrdiff_t cell) {
    return Views::tr("head {}, {}", cell / data.partitions, data.partition_names[static_cast<std::size_t>(cell % data.partitions)]);
  };
  const auto [least, most] = std::ranges::minmax_element(data.partition_rank);
  const std::ptrdiff_t low = least - data.partition_rank.begin(), high = most - data.partition_rank.begin();
  return Views::tr("{} uses {:.1f} of {} directions, {} only {:.1f}", name(high), *most, data.count, name(low), *least);
}

std::string rank_sentence(const SpectrumData& data) {
  const auto [least, most] = std::ranges::minmax_element(data.spectra, {}, &HeadSpectrum::rank);
  const std::string text = Views::tr("head {} uses {:.1f} of {} directions", most->head, most->rank, data.count);
  return data.spectra.size() == 1 ? text : Views::tr("{}, head {} only {:.1f}", text, least->head, least->rank);
}

void fill_series(SpectrumData& data, const RankSeries& answer, const Snapshot& snapshot) {
  const std::vector<float>& values = data.mode == SpectrumMode::rank_series      ? answer.rank
                                     : data.mode == SpectrumMode::entropy_series ? answer.entropy
                                                                                 : answer.norm;
  data.series_name = data.mode == SpectrumMode::rank_series      ? Views::tr("effective rank")
                     : data.mode == SpectrumMode::entropy_series ? Views::tr("singular value entropy")
                                                                 : "‖S‖";
  data.heads = answer.heads;
  data.series.assign(static_cast<std::size_t>(answer.heads), {});
  for (std::size_t i = 0; i < values.size(); ++i) data.series[i % data.series.size()].push_back(values[i]);
  data.series_axis = data.mode == SpectrumMode::entropy_series ? ValueAxis{0, 1} : axis_over(values);
  data.tokens = {snapshot.run, {answer.token.begin(), answer.token.end()}, snapshot.token};
  data.run = std::ssize(snapshot.run->tokens);
}

/// The head's number before the last token at or before the cursor's.
std::string series_sentence(const SpectrumData& data) {
  const std::int64_t place = std::max<std::int64_t>(0, data.tokens.place_of(data.tokens.cursor));
  const std::string text = Views::tr("{} of head {} is {} after token {}", data.series_name, data.chosen,
                                     number(data.series[static_cast<std::size_t>(data.chosen)][static_cast<std::size_t>(place)], 3),
                                     data.tokens.tokens[static_cast<std::size_t>(place)]);
  return data.tokens.count() < data.run ? Views::tr("{}; {} of {} tokens, evenly", text, data.tokens.count(), data.run) : text;
}

/// One drawing: where things stand.
struct Picture {
  const SpectrumData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, list;  // w 0: left out
  Plot plot;

  Picture(const SpectrumData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  float line() const { return 1.7f * kBodyType * s; }
};

Picture::Picture(const SpectrumData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  title = {inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
  const float name = 17 * s, below = data.along_the_run() ? token_axis_height(frame) : 34 * s;
  const Rect body{inner.x, title.bottom() + name, inner.w, inner.bottom() - title.bottom() - name};
  if (body.h < line() || body.w < 100 * s) return;
  if (data.mode == SpectrumMode::partitions) {
    plot = body;
    return;
  }
  const float legend = data.along_the_run() ? 40 * s : std::clamp(0.42f * body.w, 0.0f, 360 * s);
  const float left = value_axis_width(frame), gap = 16 * s;
  const bool curves = body.h - below > 40 * s && body.w - left - legend > 120 * s;
  if (data.along_the_run()) {
    if (curves) plot = zoomed(canvas, {body.x + left, body.y, body.w - left - legend, body.h - below}, true, false, frame);
    return;
  }
  if (curves) plot = zoomed(canvas, {body.x + left, body.y, body.w - left - legend - gap, body.h - below}, true, false, frame);
  list = curves ? Rect{body.right() - legend, title.bottom(), legend, inner.bottom() - title.bottom()}
                : Rect{body.x, title.bottom(), std::min(body.w, 420 * s), inner.bottom() - title.bottom()};
}

/// On paper every head has its number, near the end of its curve.
void draw_all_ends(const Picture& picture, const std::function<float(std::int64_t)>& end, const TextStyle& style) {
  std::vector<std::pair<float, std::int64_t>> ends;
  for (std::int64_t head = 0; head < picture.data.heads; ++head)
    if (!std::isnan(end(head))) ends.emplace_back(end(head), head);
  std::ranges::sort(ends);
  std::vector<float> wanted;
  for (const auto& [y, head] : ends) wanted.push_back(y);
  const float line = 1.1f * style.size, top = picture.plot.y, bottom = picture.plot.bottom();
  if (line * static_cast<float>(ends.size()) > bottom - top + line) picture.canvas.left_out();
  const std::vector<float> places = spread_out(wanted, line, top, bottom);
  for (std::size_t i = 0; i < ends.size(); ++i)
    picture.canvas.text({picture.plot.right() + 5 * picture.s, places[i]}, std::to_string(ends[i].second), style);
}

/// The numbers of heads at the right ends of their curves, where they do not touch.
void draw_ends(const Picture& picture, const std::function<float(std::int64_t)>& end) {
  const TextStyle style = value(picture.frame, kSmallType, picture.frame.theme.ink);
  const float half = 0.6f * style.size, x = picture.plot.right() + 5 * picture.s;
  std::vector<float> taken;
  const auto place = [&](std::int64_t head) {
    if (std::isnan(end(head))) return;
    const float y = std::clamp(end(head), picture.plot.y + half, picture.plot.bottom() - half);
    if (std::ranges::any_of(taken, [&](float other) { return std::abs(other - y) < 2 * half; })) return;
    taken.push_back(y);
    TextStyle own = style;
    own.bold = head == picture.data.chosen && picture.frame.shown.cursor;
    picture.canvas.text({x, y}, std::to_string(head), own);
  };
  if (!picture.frame.shown.cursor) return draw_all_ends(picture, end, style);
  place(picture.data.chosen);
  for (std::int64_t head = 0; head < picture.data.heads; ++head) place(head);
}

void draw_sigma_axis(const Picture& picture) {
  const SpectrumData& data = picture.data;
  const Plot& plot = picture.plot;
  const float s = picture.s, each = plot.all.w / static_cast<float>(data.count);
  const std::string name =
      data.below > 0 ? Views::tr("σ_i, singular values; {} nearly 0 at the foot", data.below) : Views::tr("σ_i, singular values");
  draw_value_axis(picture.canvas, plot, data.sigma_axis, name, picture.frame);
  const TextStyle tick = value(picture.frame, kSmallType, picture.frame.theme.faint, Align::center);
  const float room = picture.canvas.text_width(std::to_string(data.count), tick) + 12 * s;
  const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(plot.w / room));
  for (const std::int64_t i : axis_ticks(places_across(plot, data.count), most)) {
    const float x = plot.all.x + each * (static_cast<float>(i) + 0.5f);
    if (x >= plot.x && x <= plot.right()) picture.canvas.text({x, plot.bottom() + 9 * s}, std::to_string(i + 1), tick);
  }
  fitted_text(picture.canvas, {plot.x + plot.w / 2, plot.bottom() + 25 * s}, Views::tr("i, largest first"),
              label(picture.frame, kSmallType, picture.frame.theme.faint, Align::center), plot.w);
}

void draw_spectrum_curve(const Picture& picture, const HeadSpectrum& head) {
  const SpectrumData& data = picture.data;
  const bool chosen = head.head == data.chosen && picture.frame.shown.cursor;
  const Plot& plot = picture.plot;
  const float s = picture.s, each = plot.all.w / static_cast<float>(data.count), dot = chosen ? 3 * s : 2 * s;
  const Color color = head_color(head.head, picture.frame.theme);
  draw_curve(picture.canvas, picture.plot, data.sigma_axis, head.sigma, {color, head.head}, (chosen ? 2.5f : 1.2f) * s, picture.frame);
  if (each < 3 * dot || !picture.frame.shown.cursor) return;
  const Within inside(picture.canvas, plot, inset(plot, -dot));
  for (std::size_t i = 0; i < head.sigma.size(); ++i) {
    if (std::isnan(head.sigma[i])) continue;
    const float x = plot.all.x + each * (static_cast<float>(i) + 0.5f), y = height_of(plot, data.sigma_axis, head.sigma[i]);
    picture.canvas.fill_rect({x - dot, y - dot, 2 * dot, 2 * dot}, color, dot);
  }
}

void draw_spectra(const Picture& picture) {
  const SpectrumData& data = picture.data;
  if (picture.plot.w <= 0) return picture.canvas.left_out();
  draw_sigma_axis(picture);
  for (const HeadSpectrum& head : data.spectra) {
    if (head.head != data.chosen) draw_spectrum_curve(picture, head);
  }
  for (const HeadSpectrum& head : data.spectra) {
    if (head.head == data.chosen) draw_spectrum_curve(picture, head);
  }
  hit_plot(picture.canvas, picture.plot, {{SpectrumSheets::heads, Hit::all, 0}, 1, data.count});
}

/// Number, effective rank as a bar over n and as a number, entropy: one line a head.
void draw_head_row(const Picture& picture, const HeadSpectrum& head, Rect row) {
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, y = row.y + row.h / 2;
  const bool chosen = head.head == picture.data.chosen && picture.frame.shown.cursor;
  const TextStyle name = label(picture.frame, kBodyType, theme.ink, Align::left, chosen);
  const TextStyle exact = value(picture.frame, kBodyType, theme.ink, Align::right, chosen);
  const float name_width = picture.canvas.text_width(Views::tr("head {}", kTwoDigits), name) + 18 * s,
              number_width = picture.canvas.text_width("000.0", exact) + 6 * s;
  if (chosen) picture.canvas.fill_rect(row, theme.panel, 3 * s);
  if (picture.frame.shown.cursor)
    picture.canvas.fill_rect({row.x + 2 * s, y - 4 * s, 8 * s, 8 * s}, head_color(head.head, theme));
  else
    draw_marker(picture.canvas, {row.x + 6 * s, y}, {head_color(head.head, theme), head.head}, 3.5f, picture.frame);
  fitted_text(picture.canvas, {row.x + 15 * s, y}, Views::tr("head {}", head.head), name, name_width - 15 * s);
  picture.canvas.text({row.right(), y}, fmt::format("{:.2f}", head.entropy), exact);
  picture.canvas.text({row.right() - number_width, y}, fmt::format("{:.1f}", head.rank), exact);
  const Rect track{row.x + name_width, y - 4 * s, row.w - name_width - 2 * number_width - 4 * s, 8 * s};
  if (track.w < 20 * s) return;
  picture.canvas.fill_rect(track, faded(theme.line, 0.5f));
  const float share = std::clamp(head.rank / static_cast<float>(std::max<std::int64_t>(1, picture.data.count)), 0.0f, 1.0f);
  picture.canvas.fill_rect({track.x, track.y, track.w * share, track.h}, head_color(head.head, theme));
}

void draw_list(const Picture& picture) {
  const SpectrumData& data = picture.data;
  const Rect& list = picture.list;
  if (list.w < 150 * picture.s || list.h < 2 * picture.line()) return picture.canvas.left_out();
  const TextStyle head = label(picture.frame, kSmallType, picture.frame.theme.faint, Align::right);
  const float number_width = picture.canvas.text_width("000.0", value(picture.frame, kBodyType, {}, Align::right, true)) + 6 * picture.s;
  const float y = list.y + 8 * picture.s;
  fitted_text(picture.canvas, {list.right(), y}, Views::tr("entropy"), head, number_width);
  fitted_text(picture.canvas, {list.right() - number_width - 2 * picture.s, y}, Views::tr("effective rank, of {}", data.count), head,
              list.w - number_width - 2 * picture.s);
  const auto all = std::ssize(data.spectra);
  const float top = list.y + 17 * picture.s, room = list.bottom() - top;
  const bool fit = static_cast<float>(all) * picture.line() <= room;
  const auto capacity = static_cast<std::int64_t>((fit ? room : room - 15 * picture.s) / picture.line());
  std::vector<bool> important;
  for (const HeadSpectrum& spectrum : data.spectra) important.push_back(spectrum.head == data.chosen);
  if (!fit) picture.canvas.left_out();
  float at = top;
  for (const std::int64_t i : choose_shown(all, capacity, important)) {
    const Rect row{list.x, at, list.w, picture.line()};
    draw_head_row(picture, data.spectra[static_cast<std::size_t>(i)], row);
    picture.canvas.hit(row, {{SpectrumSheets::heads, i}});
    at += picture.line();
  }
  if (!fit)
    fitted_text(picture.canvas, {list.x, at + 8 * picture.s}, Views::tr("{} of {} shown", std::min(all, capacity), all),
                label(picture.frame, kSmallType, picture.frame.theme.faint), list.w);
}

/// Heads downwards, partitions across: effective rank as colour and number.
void draw_partitions(const Picture& picture) {
  const SpectrumData& data = picture.data;
  const float s = picture.s;
  const TextStyle head = value(picture.frame, kSmallType, picture.frame.theme.ink, Align::right);
  const TextStyle foot = label(picture.frame, kSmallType, picture.frame.theme.ink, Align::center);
  const float left = picture.canvas.text_width(Views::tr("head {}", kTwoDigits), head) + 8 * s, below = 20 * s,
              right = bar_room(picture.frame, 60 * s);
  Rect plot{picture.plot.x + left, picture.plot.y, picture.plot.w - left - right, picture.plot.h - below};
  if (plot.w < 40 * s || plot.h < 20 * s) return picture.canvas.left_out();
  plot.w = std::min(plot.w, 110 * s * static_cast<float>(data.partitions));
  plot.h = std::min(plot.h, 90 * s * static_cast<float>(data.heads));
  const ColorScale scale = data.coloring->scale();
  picture.canvas.heatmap(plot, {data.heads, data.partitions, data.partition_rank, scale});
  picture.canvas.hit(plot, {{SpectrumSheets::partitions, 0, 0}, data.heads, data.partitions});
  const float w = plot.w / static_cast<float>(data.partitions), h = plot.h / static_cast<float>(data.heads);
  const auto fit = [](float length, float each) { return std::max<std::int64_t>(1, static_cast<std::int64_t>(length / each)); };
  for (const std::int64_t i : axis_ticks(data.heads, fit(plot.h, 16 * s)))
    fitted_text(picture.canvas, {plot.x - 6 * s, plot.y + h * (static_cast<float>(i) + 0.5f)}, Views::tr("head {}", i), head, left - 6 * s);
  float free = plot.x - left;
  for (std::int64_t p = 0; p < data.partitions; ++p) {
    const std::string& name = data.partition_names[static_cast<std::size_t>(p)];
    const float x = plot.x + w * (static_cast<float>(p) + 0.5f), half = picture.canvas.text_width(name, foot) / 2;
    if (x - half < free || x + half > picture.plot.right()) continue;
    picture.canvas.text({x, plot.bottom() + 10 * s}, name, foot);
    free = x + half + 6 * s;
  }
  fitted_text(picture.canvas, {picture.plot.x, picture.plot.y - 8 * s},
              Views::tr("effective rank of each partition's state alone, of {}", data.count),
              label(picture.frame, kSmallType, picture.frame.theme.faint), picture.plot.w);
  draw_color_bar(picture.canvas, {plot.right() + 10 * s, plot.y, 12 * s, plot.h}, scale, data.coloring->marks, picture.frame);
  const TextStyle cell = value(picture.frame, kSmallType, {}, Align::center);
  if (w < picture.canvas.text_width("000.0", cell) || h < 1.3f * cell.size) return;
  for (std::int64_t i = 0; i < data.heads * data.partitions; ++i) {
    const float rank = data.partition_rank[static_cast<std::size_t>(i)];
    TextStyle style = cell;
    style.color = readable_on(color_table(scale.map)[static_cast<std::size_t>(color_index(scale, rank))]);
    picture.canvas.text(
        {plot.x + w * (static_cast<float>(i % data.partitions) + 0.5f), plot.y + h * (static_cast<float>(i / data.partitions) + 0.5f)},
        fmt::format("{:.1f}", rank), style);
  }
}

void draw_series(const Picture& picture) {
  const SpectrumData& data = picture.data;
  if (picture.plot.w <= 0) return picture.canvas.left_out();
  draw_value_axis(picture.canvas, picture.plot, data.series_axis, Views::tr("{} of each head, numbered at the right", data.series_name),
                  picture.frame);
  draw_token_axis(picture.canvas, picture.plot, data.tokens, picture.frame);
  for (std::int64_t head = 0; head < data.heads; ++head) {
    draw_curve(picture.canvas, picture.plot, data.series_axis, data.series[static_cast<std::size_t>(head)],
               {head_color(head, picture.frame.theme), head}, (head == data.chosen && picture.frame.shown.cursor ? 2.5f : 1.2f) * picture.s,
               picture.frame);
  }
  const auto last = static_cast<std::size_t>(places_across(picture.plot, data.tokens.count()).to - 1);  // in sight
  draw_ends(picture, [&](std::int64_t head) {
    return height_of(picture.plot, data.series_axis, data.series[static_cast<std::size_t>(head)][last]);
  });
  hit_plot(picture.canvas, picture.plot, {{SpectrumSheets::series, Hit::here, 0}, 1, data.tokens.count()});
}

class SpectrumView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (without_memory(snapshot, cursor.head)) return {};
    if (shown() >= SpectrumMode::rank_series) return {RankSeriesQuestion{snapshot.layer}};
    return {SpectraQuestion{snapshot.layer, shown_token(snapshot, cursor)}};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 6> names = {
        QT_TRANSLATE_NOOP("Views", "Singular values"),       QT_TRANSLATE_NOOP("Views", "Singular values, heads by rank"),
        QT_TRANSLATE_NOOP("Views", "Rank of partitions"),    QT_TRANSLATE_NOOP("Views", "Rank along the run"),
        QT_TRANSLATE_NOOP("Views", "Entropy along the run"), QT_TRANSLATE_NOOP("Views", "Norm along the run")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_spectrum(snapshot, cursor, findings, shown(), range());
  }
  std::optional<Shading> shading() const override { return shading_of(data_.coloring); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : data_.title + "."; }

 private:
  SpectrumMode shown() const { return static_cast<SpectrumMode>(mode()); }

  SpectrumData data_;
};

}  // namespace

SpectrumData build_spectrum(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, SpectrumMode mode,
                            const RangeChoice& range) {
  SpectrumData data;
  data.mode = mode;
  data.message = without_memory(snapshot, cursor.head);
  if (data.message) return data;
  const LayerInfo& layer = *layer_of(snapshot);
  data.chosen = cursor.head;
  data.heads = layer.heads;
  if (data.along_the_run()) {
    const RankSeriesQuestion question{snapshot.layer};
    const RankSeries* answer = findings.get(question);
    if (answer)
      fill_series(data, *answer, snapshot);
    else
      data.message = waiting(findings, question, Views::tr("The rank of layer {} along the run", snapshot.layer));
    if (answer) data.title = sentence_at(series_sentence(data), Views::tr("layer {}", snapshot.layer));
    return data;
  }
  const std::int64_t token = shown_token(snapshot, cursor);
  const SpectraQuestion question{snapshot.layer, token};
  const Spectra* answer = findings.get(question);
  if (!answer) {
    data.message = waiting(findings, question, Views::tr("The spectrum of layer {}", snapshot.layer));
    return data;
  }
  data.count = mode == SpectrumMode::partitions ? std::min(layer.rows, layer.columns) : answer->count;
  fill_spectra(data, *answer);
  if (mode == SpectrumMode::partitions) {
    const auto most = static_cast<float>(data.count);
    data.coloring = colored(data.partition_rank, {0, most}, {{0, "0"}, {most / 2, number(most / 2, 3)}, {most, number(most, 4)}}, range);
  }
  for (std::int64_t slot = 0; slot < layer.slots(); ++slot)
    data.partition_names.push_back(slot_title(slot_identity(layer, slot), slot_name(layer, slot)));
  const std::string sentence = mode == SpectrumMode::partitions && data.partitions > 1 ? partition_sentence(data) : rank_sentence(data);
  data.title = sentence_at(fmt::format("{} {}", sentence, after_words(*snapshot.run, token)), Views::tr("layer {}", snapshot.layer));
  return data;
}

void draw(const SpectrumData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, data.title, Spectra::accuracy, frame);
  if (data.along_the_run()) {
    draw_series(picture);
  } else if (data.mode == SpectrumMode::partitions) {
    draw_partitions(picture);
  } else {
    draw_spectra(picture);
    draw_list(picture);
  }
  canvas.pop_clip();
}

std::unique_ptr<View> make_spectrum() { return std::make_unique<SpectrumView>(); }

}  // namespace statescope
