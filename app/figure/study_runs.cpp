// Studies of states and gates: what each layer of each checkpoint is like after the same prompt.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "app/figure/studies.h"
#include "app/figure/study_makers.h"
#include "engine/error.h"
#include "views/parts.h"

namespace statescope {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The value below which `share` of the others lie.
double quantile(std::vector<double> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  std::ranges::nth_element(values, values.begin() + at);
  return values[static_cast<std::size_t>(at)];
}

void add_point(ChartSeries& series, double x, double y, double low, double high) {
  series.x.push_back(x);
  series.y.push_back(y);
  series.low.push_back(low);
  series.high.push_back(high);
}

/// "after the 256 tokens of the prompt"
std::string read_words(const FigurePanel& panel, FigureRuns& runs) {
  return fmt::format("the {} tokens of the prompt", runs.run(panel, panel.checkpoints.front()).info().prompt_length);
}

/// One series a checkpoint, one point a layer with a matrix state: what `numbers_of` gives of it, from `low` to `high` of them.
struct Spread {
  double low, high;  // 0: the least, 1: the largest
};
std::vector<ChartSeries> by_layer(const FigurePanel& panel, FigureRuns& runs, Spread spread,
                                  const std::function<std::vector<double>(FigureRun&, std::int64_t)>& numbers_of) {
  const std::vector<std::string> names = series_names(panel.checkpoints);
  std::vector<ChartSeries> all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    FigureRun& run = runs.run(panel, panel.checkpoints[i]);
    ChartSeries series{names[i], {}, {}, {}, {}};
    for (std::int64_t layer = 0; layer < std::ssize(run.info().model.layers); ++layer) {
      const std::vector<double> numbers = numbers_of(run, layer);
      const auto x = static_cast<double>(layer);
      if (numbers.empty()) {
        add_point(series, x, kNone, kNone, kNone);
      } else {
        add_point(series, x, mean(numbers), quantile(numbers, spread.low), quantile(numbers, spread.high));
      }
    }
    all.push_back(std::move(series));
  }
  return all;
}

/// Mean over the measured tokens of each channel's width, of all heads of the slots that tokens are routed to, or of the others.
std::vector<double> widths(FigureRun& run, std::int64_t layer, bool routed) {
  const LayerInfo& info = run.info().model.layers[static_cast<std::size_t>(layer)];
  const std::int64_t tokens = std::ssize(run.info().tokens);
  std::vector<double> all;
  for (std::int64_t slot = 0; slot < info.slots(); ++slot) {
    if (routed != (info.partitions > 0 && !(info.has_shared_slot && slot == 0))) continue;
    for (std::int64_t head = 0; head < info.heads; ++head) {
      const Decay decay = run.answer(DecayQuestion{.layer = layer, .slot = slot, .head = head, .from = tokens - 1, .to = tokens});
      all.insert(all.end(), decay.width.begin(), decay.width.end());
      if (decay.axis == Decay::Axis::heads) break;  // one answer tells all of them
    }
  }
  return all;
}

bool has_numbers(const ChartSeries& series) {
  return std::ranges::any_of(series.y, [](double y) { return std::isfinite(y); });
}

/// Entropies at each λ, of every token in [0, m).
struct GateCurves {
  std::vector<float> lambda;
  std::vector<std::vector<double>> entropies;  // [λ][token]
};
GateCurves gate_curves(FigureRun& run, std::int64_t layer, bool write) {
  constexpr std::int64_t at_once = 512;
  GateCurves curves;
  const std::int64_t tokens = run.info().prompt_length;
  for (std::int64_t from = 0; from < tokens; from += at_once) {
    const SharpenedGates gates = run.answer(SharpenedGatesQuestion{.layer = layer, .from = from, .to = std::min(tokens, from + at_once)});
    if (gates.lambda.empty()) return {};
    curves.lambda = gates.lambda;
    curves.entropies.resize(curves.lambda.size());
    const std::vector<float>& curve = write ? gates.curve_k : gates.curve_q;
    for (std::size_t i = 0; i < curve.size(); ++i) curves.entropies[i % curves.lambda.size()].push_back(curve[i]);
  }
  return curves;
}

}  // namespace

Chart entropy_by_layer(const FigurePanel& panel, FigureRuns& runs) {
  const auto entropies = [](FigureRun& run, std::int64_t layer) {
    const Spectra spectra = run.answer(SpectraQuestion{.layer = layer, .token = run.info().prompt_length - 1});
    return std::vector<double>(spectra.entropy.begin(), spectra.entropy.end());
  };
  Chart chart{.x = {.name = "layer"}, .y = {.name = "singular value entropy", .unit = "of 1", .low = 0, .high = 1}};
  chart.series = by_layer(panel, runs, {0, 1}, entropies);
  chart.title = "Singular value entropy of the states after " + read_words(panel, runs) + ", mean over the heads of each layer";
  chart.interval = "least and largest head";
  chart.equation =
      "Hs = −(1/log n) Σ pᵢ log pᵢ with pᵢ = σᵢ²/Σσ², σ the n singular values of the head's partitions stacked (SSE footnote 8; SSE Fig. "
      "5)";
  return chart;
}

Chart receptive_field_by_layer(const FigurePanel& panel, FigureRuns& runs) {
  Chart chart{.x = {.name = "layer"}, .y = {.name = "receptive field", .unit = "tokens"}};
  const auto of_slots = [&](bool routed) {
    return by_layer(panel, runs, {0.1, 0.9}, [=](FigureRun& run, std::int64_t layer) { return widths(run, layer, routed); });
  };
  std::vector<ChartSeries> plain = of_slots(false), routed = of_slots(true);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const bool both = has_numbers(plain[i]) && has_numbers(routed[i]);
    plain[i].name += both ? ", shared" : "";
    routed[i].name += both ? ", partitions" : "";
    for (ChartSeries* series : {&plain[i], &routed[i]}) {
      if (has_numbers(*series)) chart.series.push_back(std::move(*series));
    }
  }
  chart.title = "Width of the receptive field in " + read_words(panel, runs) +
                ", mean over the channels of all heads; what reaches back to the first token counts as far as that";
  chart.interval = "the 10th and the 90th percentile of channels";
  chart.equation =
      "w = max{t − s : Δ_{t,s} ≥ 0.001}, Δ_{t,s} the product of the decays α from s + 1 to t, mean over the last 128 tokens t (after SSE "
      "Def. 4; SSE Fig. 9)";
  return chart;
}

Chart gate_entropy_by_lambda(const FigurePanel& panel, FigureRuns& runs) {
  const bool write = panel.mode != "read gates";
  const std::vector<std::string> names = series_names(panel.checkpoints);
  Chart chart{.x = {.name = "λ", .logarithmic = true}, .y = {.name = "gate entropy", .unit = "of 1", .low = 0, .high = 1}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    FigureRun& run = runs.run(panel, panel.checkpoints[i]);
    for (std::int64_t layer = 0; layer < std::ssize(run.info().model.layers); ++layer) {
      if (panel.layer && *panel.layer != layer) continue;
      const GateCurves curves = gate_curves(run, layer, write);
      ChartSeries series{names.size() > 1 ? fmt::format("{}, layer {}", names[i], layer) : fmt::format("layer {}", layer), {}, {}, {}, {}};
      for (std::size_t l = 0; l < curves.lambda.size(); ++l) {
        const std::vector<double>& entropies = curves.entropies[l];
        add_point(series, curves.lambda[l], mean(entropies), quantile(entropies, 0.1), quantile(entropies, 0.9));
      }
      if (!series.x.empty()) chart.series.push_back(std::move(series));
    }
  }
  if (chart.series.empty()) throw Error(fmt::format("{}: no layer asked for has head gates", joined(names, ", ")));
  chart.title = fmt::format("Entropy of the {} gates over the heads, their logits times λ, mean over {}", write ? "write" : "read",
                            read_words(panel, runs));
  chart.interval = "the 10th and the 90th percentile of tokens";
  chart.equation = fmt::format("−Σ_h G_h log G_h / log H with G = softmax(λ · logits), G = {} (SLA Theorem 4.2); λ = 1 is the model itself",
                               write ? "G^K" : "G^Q");
  return chart;
}

}  // namespace statescope
