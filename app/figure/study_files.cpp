// Studies of what was measured before: scores and times.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "app/bench/sse.h"
#include "app/eval/scores_file.h"
#include "app/figure/studies.h"
#include "app/figure/study_makers.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "views/parts.h"

namespace statescope {
namespace {

std::string stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::int64_t length_of(const EvalCell& cell) { return cell.task.length; }
std::int64_t load_of(const EvalCell& cell) { return cell.task.name == "mqar" ? cell.task.pairs : cell.task.needles; }

/// The scores that the panel means, of all its files.
std::vector<CellScore> wanted_scores(const FigurePanel& panel, FigureRuns& runs) {
  std::vector<CellScore> wanted;
  for (const std::string& file : panel.data) {
    for (CellScore& score : load_scores(runs.file(file, "scores"))) {
      if (!score.task || score.cell.task.depth_percent) continue;
      if (panel.length && score.cell.task.length != *panel.length) continue;
      if (panel.load && load_of(score.cell) != *panel.load) continue;
      wanted.push_back(std::move(score));
    }
  }
  for (const CellScore& score : wanted) {
    if (score.cell.task.name != wanted.front().cell.task.name)
      throw Error(fmt::format("recall shows one task, and the data have {} and {}", wanted.front().cell.task.name, score.cell.task.name));
  }
  return wanted;
}

/// As named, else all that have scores.
std::vector<std::string> checkpoints_of(const FigurePanel& panel, const std::vector<CellScore>& scores) {
  std::vector<std::string> all = panel.checkpoints;
  for (const CellScore& score : scores) {
    if (panel.checkpoints.empty() && std::ranges::find(all, score.checkpoint) == all.end()) all.push_back(score.checkpoint);
  }
  return all;
}

/// What all scores have in common, or a line that says how to choose.
std::int64_t only(const std::vector<CellScore>& scores, std::int64_t (*number)(const EvalCell&), std::string_view key) {
  std::set<std::int64_t> numbers;
  for (const CellScore& score : scores) numbers.insert(number(score.cell));
  if (numbers.size() == 1) return *numbers.begin();
  throw Error(fmt::format("the scores are of several: choose one with \"{}\": {}", key, fmt::join(numbers, ", ")));
}

struct Measured {
  double x = 0;
  Estimate exact;
};
/// Ascending in x, in percent.
ChartSeries series_of(const std::string& name, std::vector<Measured> points) {
  std::ranges::stable_sort(points, {}, &Measured::x);
  ChartSeries series{name, {}, {}, {}, {}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0 && points[i].x == points[i - 1].x) throw Error(fmt::format("the data have two scores of {} at {}", name, points[i].x));
    series.x.push_back(points[i].x);
    series.y.push_back(100 * points[i].exact.mean);
    series.low.push_back(100 * points[i].exact.low);
    series.high.push_back(100 * points[i].exact.high);
  }
  return series;
}

std::vector<Measured> points_of(const std::vector<CellScore>& scores, const std::string& checkpoint, std::int64_t (*x)(const EvalCell&)) {
  std::vector<Measured> points;
  for (const CellScore& score : scores) {
    if (stem(score.checkpoint) == stem(checkpoint)) points.push_back({static_cast<double>(x(score.cell)), score.task->exact});
  }
  if (points.empty()) throw Error(fmt::format("the data have no score of {} there", stem(checkpoint)));
  return points;
}

std::vector<ChartSeries> by_checkpoint(const FigurePanel& panel, const std::vector<CellScore>& scores, std::int64_t (*x)(const EvalCell&)) {
  const std::vector<std::string> checkpoints = checkpoints_of(panel, scores), names = series_names(checkpoints);
  std::vector<ChartSeries> all;
  for (std::size_t i = 0; i < names.size(); ++i) all.push_back(series_of(names[i], points_of(scores, checkpoints[i], x)));
  return all;
}

/// One series for each number of partitions that a token chooses.
std::vector<ChartSeries> by_partitions(const FigurePanel& panel, FigureRuns& runs, const std::vector<CellScore>& scores) {
  std::map<std::int64_t, std::vector<Measured>> by_chosen;
  for (const std::string& checkpoint : checkpoints_of(panel, scores)) {
    const Model& model = *runs.model(checkpoint);
    for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
      const MixerLayout& layout = model.layout(layer);
      if (layout.partitions == 0) continue;
      for (Measured point : points_of(scores, checkpoint, load_of)) {
        point.x = static_cast<double>(layout.partitions);
        by_chosen[layout.writers].push_back(point);
      }
      break;
    }
  }
  if (by_chosen.empty()) throw Error("none of these models has partitions");
  std::vector<ChartSeries> all;
  for (const auto& [chosen, points] : by_chosen) all.push_back(series_of(fmt::format("k = {}", chosen), points));
  return all;
}

/// The value of one number at which most of another were measured.
std::int64_t most_measured(const std::vector<SseTiming>& timings, std::int64_t SseTiming::* number, std::int64_t SseTiming::* other) {
  std::map<std::int64_t, std::set<std::int64_t>> measured;
  for (const SseTiming& timing : timings) measured[timing.*number].insert(timing.*other);
  return std::ranges::max_element(measured, {}, [](const auto& each) { return each.second.size(); })->first;
}

SseTimings timings_of(const FigurePanel& panel, FigureRuns& runs, bool over_length) {
  if (panel.data.size() > 1) throw Error("speed reads one file of statescope bench sse");
  if (!panel.data.empty()) return load_sse_timings(runs.file(panel.data.front(), "scores"));
  const std::vector<std::int64_t> lengths{256, 512, 1024, 2048}, partitions{2, 4, 8, 16};
  const auto places = over_length ? sse_places(lengths, {}, false) : sse_places({}, partitions, false);
  double measured = 0;
  const double all = 3 * static_cast<double>(places.size());
  return measure_sse(runs.device(), places, [&](const std::string&) { runs.tell(++measured / all, "measuring SSE"); });
}

}  // namespace

Chart recall(const FigurePanel& panel, FigureRuns& runs) {
  const std::vector<CellScore> scores = wanted_scores(panel, runs);
  if (scores.empty()) throw Error("the data have no score of such a length and load");
  const EvalCell& cell = scores.front().cell;
  const std::string load = cell.task.name == "mqar" ? "pairs" : "needles";
  const auto at_load = [&] { return fmt::format("with {} {}", only(scores, load_of, "load"), load); };
  const auto at_length = [&] { return fmt::format("in {} tokens", only(scores, length_of, "length")); };
  Chart chart{.x = {.logarithmic = true}, .y = {.name = "answers right", .unit = "%", .low = 0, .high = 100}};
  std::string place;
  if (panel.mode == "over length") {
    chart.x.name = "length";
    chart.x.unit = "tokens";
    place = at_load();
    chart.series = by_checkpoint(panel, scores, length_of);
  } else if (panel.mode == "over partitions") {
    chart.x.name = "partitions N, of which a token chooses k";
    place = at_load() + " " + at_length();
    chart.series = by_partitions(panel, runs, scores);
  } else {
    chart.x.name = load;
    place = at_length();
    chart.series = by_checkpoint(panel, scores, load_of);
  }
  chart.title = fmt::format("Answers of {} right in every token, {}, {} examples each", cell.task.name, place, cell.samples);
  chart.interval = "95 % confidence over the examples";
  return chart;
}

Chart speed(const FigurePanel& panel, FigureRuns& runs) {
  const bool over_length = panel.mode != "over partitions";
  const SseTimings all = timings_of(panel, runs, over_length);
  const auto x = over_length ? &SseTiming::length : &SseTiming::partitions,
             fixed = over_length ? &SseTiming::partitions : &SseTiming::length;
  const std::int64_t at = most_measured(all.timings, fixed, x);
  std::map<std::string, std::map<std::int64_t, SseTiming>> by_form;
  for (const SseTiming& timing : all.timings) {
    if (timing.*fixed == at) by_form[timing.form][timing.*x] = timing;
  }
  Chart chart{.x = {.name = over_length ? "length" : "partitions N", .unit = over_length ? "tokens" : "", .logarithmic = true},
              .y = {.name = "time", .unit = "ms", .logarithmic = true}};
  for (const auto& [form, points] : by_form) {
    ChartSeries series{form, {}, {}, {}, {}};
    for (const auto& [place, timing] : points) {
      series.x.push_back(static_cast<double>(place));
      series.y.push_back(1e3 * timing.seconds);
      series.low.push_back(1e3 * timing.least);
      series.high.push_back(1e3 * timing.most);
    }
    chart.series.push_back(std::move(series));
  }
  chart.title = fmt::format("Time of one SSE memory, {} heads of {}, {} partition a token, {}; {}", all.heads, all.head_dim, all.chosen,
                            over_length ? fmt::format("{} partitions", at) : fmt::format("{} tokens", at), all.device);
  chart.interval = "fastest and slowest of the repeats";
  chart.equation =
      "Sequential: one partition after the other on its own tokens; masking: every partition on all tokens, what it was not chosen for "
      "zeroed; varlen: tokens ordered by partition, all in one call (SSE Fig. 6)";
  return chart;
}

}  // namespace statescope
