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

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

/// The name without the seed of the training: "mqar-gla-seed3" is a training of "mqar-gla".
std::string without_seed(const std::string& checkpoint) {
  constexpr std::size_t most_digits = 9;
  const std::string name = stem_of(checkpoint), mark = "-seed";
  const std::size_t at = name.rfind(mark), digits = at == std::string::npos ? 0 : name.size() - at - mark.size();
  const bool seeded = digits > 0 && digits <= most_digits && name.find_first_not_of("0123456789", at + mark.size()) == std::string::npos;
  return seeded ? name.substr(0, at) : name;
}

/// "mqar-gla-seed3": 3; of one that names no seed 1.
double seed_of(const std::string& checkpoint) {
  const std::string name = stem_of(checkpoint), model = without_seed(checkpoint);
  return name == model ? 1 : std::stod(name.substr(model.size() + std::string_view("-seed").size()));
}

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

/// As named, else all that have scores, those that differ in their seed once.
std::vector<std::string> checkpoints_of(const FigurePanel& panel, const std::vector<CellScore>& scores) {
  if (!panel.checkpoints.empty()) return panel.checkpoints;
  std::vector<std::string> all;
  for (const CellScore& score : scores) {
    const std::string model = without_seed(score.checkpoint);
    if (std::ranges::find(all, model, without_seed) != all.end()) continue;
    all.push_back(model == stem_of(score.checkpoint) ? score.checkpoint : model);
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
  std::string training;  // the checkpoint's name
  Estimate exact;
};

/// Of one training its score, of several that differ in their seed their median, from the least to the most.
Estimate of_trainings(const std::map<std::string, Estimate>& trainings) {
  std::vector<Estimate> all;
  for (const auto& [name, exact] : trainings) all.push_back(exact);
  if (all.size() == 1) return all.front();
  std::ranges::sort(all, {}, &Estimate::mean);
  const double median = (all[(all.size() - 1) / 2].mean + all[all.size() / 2].mean) / 2;
  return {median, all.front().mean, all.back().mean};
}

/// Ascending in x, in percent.
ChartSeries series_of(const std::string& name, const std::vector<Measured>& points) {
  std::map<double, std::map<std::string, Estimate>> places;
  for (const Measured& point : points) {
    auto& trainings = places[point.x];
    const bool of_others = !trainings.empty() && without_seed(trainings.begin()->first) != without_seed(point.training);
    if (of_others || !trainings.emplace(point.training, point.exact).second)
      throw Error(fmt::format("the data have two scores of {} at {}", name, point.x));
  }
  ChartSeries series{name, {}, {}, {}, {}};
  for (const auto& [x, trainings] : places) {
    const Estimate exact = of_trainings(trainings);
    series.x.push_back(x);
    series.y.push_back(100 * exact.mean);
    series.low.push_back(100 * exact.low);
    series.high.push_back(100 * exact.high);
  }
  return series;
}

/// Of that checkpoint and of its trainings on other seeds, if it is not itself named by one.
std::vector<Measured> points_of(const std::vector<CellScore>& scores, const std::string& checkpoint, std::int64_t (*x)(const EvalCell&)) {
  std::vector<Measured> points;
  for (const CellScore& score : scores) {
    const std::string training = stem_of(score.checkpoint);
    if (training != stem_of(checkpoint) && without_seed(training) != stem_of(checkpoint)) continue;
    points.push_back({static_cast<double>(x(score.cell)), training, score.task->exact});
  }
  if (points.empty()) throw Error(fmt::format("the data have no score of {} there", stem_of(checkpoint)));
  return points;
}

std::size_t trainings_in(const std::vector<Measured>& points) {
  std::set<std::string> names;
  for (const Measured& point : points) names.insert(point.training);
  return names.size();
}

struct Curves {
  std::vector<ChartSeries> series;
  bool of_seeds = false;  // some are of several trainings, and each says of how many
};

/// A point for each training, at the number of its seed.
std::vector<ChartSeries> by_seed(const FigurePanel& panel, const std::vector<CellScore>& scores) {
  const std::vector<std::string> checkpoints = checkpoints_of(panel, scores), names = series_names(checkpoints);
  std::vector<ChartSeries> all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<Measured> points = points_of(scores, checkpoints[i], load_of);
    for (Measured& point : points) point.x = seed_of(point.training);
    all.push_back(series_of(names[i], points));
  }
  return all;
}

Curves by_checkpoint(const FigurePanel& panel, const std::vector<CellScore>& scores, std::int64_t (*x)(const EvalCell&)) {
  const std::vector<std::string> checkpoints = checkpoints_of(panel, scores), names = series_names(checkpoints);
  std::vector<std::size_t> trainings;
  Curves all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<Measured> points = points_of(scores, checkpoints[i], x);
    all.series.push_back(series_of(names[i], points));
    trainings.push_back(trainings_in(points));
  }
  all.of_seeds = std::ranges::any_of(trainings, [](std::size_t n) { return n > 1; });
  for (std::size_t i = 0; all.of_seeds && i < names.size(); ++i)
    all.series[i].name += fmt::format(", {} {}", trainings[i], trainings[i] == 1 ? "seed" : "seeds");
  return all;
}

double most_x(const std::vector<ChartSeries>& series) {
  double most = 1;
  for (const ChartSeries& each : series) most = std::max(most, each.x.back());
  return most;
}

/// One series for each number of partitions that a token chooses.
Curves by_partitions(const FigurePanel& panel, FigureRuns& runs, const std::vector<CellScore>& scores) {
  std::map<std::int64_t, std::vector<Measured>> by_chosen;
  Curves all;
  for (const std::string& checkpoint : checkpoints_of(panel, scores)) {
    const Model& model = *runs.model(checkpoint);
    for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
      const MixerLayout& layout = model.layout(layer);
      if (layout.partitions == 0) continue;
      std::vector<Measured> points = points_of(scores, checkpoint, load_of);
      all.of_seeds |= trainings_in(points) > 1;
      for (Measured& point : points) {
        point.x = static_cast<double>(layout.partitions);
        by_chosen[layout.writers].push_back(std::move(point));
      }
      break;
    }
  }
  if (by_chosen.empty()) throw Error("none of these models has partitions");
  for (const auto& [chosen, points] : by_chosen) all.series.push_back(series_of(fmt::format("k = {}", chosen), points));
  return all;
}

/// The value of one number at which most of another were measured.
std::int64_t most_measured(const std::vector<SseTiming>& timings, std::int64_t SseTiming::*number, std::int64_t SseTiming::*other) {
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
  Curves curves;
  if (panel.mode == "over length") {
    chart.x.name = "length";
    chart.x.unit = "tokens";
    place = at_load();
    curves = by_checkpoint(panel, scores, length_of);
  } else if (panel.mode == "over partitions") {
    chart.x.name = "partitions N, of which a token chooses k";
    place = at_load() + " " + at_length();
    curves = by_partitions(panel, runs, scores);
  } else if (panel.mode == "over seeds") {
    place = at_load() + " " + at_length();
    curves.series = by_seed(panel, scores);
    chart.x = {.name = "seed of the training", .low = 0.5, .high = most_x(curves.series) + 0.5};
    chart.joined = false;
  } else {
    chart.x.name = load;
    place = at_length();
    curves = by_checkpoint(panel, scores, load_of);
  }
  chart.series = std::move(curves.series);
  chart.title = fmt::format("Answers of {} right in every token, {}, {} examples each", cell.task.name, place, cell.samples);
  chart.interval = "95 % confidence over the examples";
  if (panel.mode == "over seeds") chart.title += "; each point is one training";
  if (curves.of_seeds) {
    chart.title += "; where a model was trained on several seeds, the median";
    chart.interval = "the least and the most of the seeds, of one seed " + chart.interval;
  }
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
