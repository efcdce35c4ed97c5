#include "app/inspect/page_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "app/common/page.h"

namespace statescope {
namespace {

constexpr double kWidth = 220, kHeight = 110, kLeft = 46, kBottom = 18, kTop = 16;

double across(double part) { return kLeft + part * (kWidth - kLeft - 4); }
double down(double part) { return kTop + (1 - part) * (kHeight - kTop - kBottom); }

std::string label(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", kind, x1, y1, x2, y2);
}

/// A panel with its title, the ends of its axes in words, and what is drawn in it.
std::string panel(std::string_view title, std::string_view low, std::string_view high, std::string_view first, std::string_view last,
                  const std::string& marks) {
  return fmt::format("<svg class=\"panel\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}: from {3} to {4}\">", kWidth, kHeight,
                     escaped(title), escaped(low), escaped(high)) +
         label(kLeft, kTop - 6, "start", title) + label(kLeft - 4, down(0), "end", low) + label(kLeft - 4, down(1) + 8, "end", high) +
         label(across(0), kHeight - 5, "start", first) + label(across(1), kHeight - 5, "end", last) +
         line(across(0), down(0), across(1), down(0), "axis") + line(across(0), down(0), across(0), down(1), "axis") + marks + "</svg>\n";
}

std::string figure(std::string_view caption, const std::string& panels) {
  return panels.empty()
             ? ""
             : fmt::format("<figure><div class=\"panels\">{}</div><figcaption>{}</figcaption></figure>\n", panels, escaped(caption));
}

std::string course(const LayerReport& layer, std::size_t index, double Moments::*quantity, double low, double high, double tokens) {
  std::string points;
  for (const Moments& moments : layer.moments)
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", across(static_cast<double>(moments.tokens) / tokens),
                          down((moments.*quantity - low) / (high - low)));
  return fmt::format("<polyline data-place=\"--layer {1}\" points=\"{0}\"><title>layer {1}</title></polyline>", points, index);
}

/// Layers' numbers behind their lines, apart from one another; of many those at the outside.
std::string end_labels(std::vector<std::pair<double, std::size_t>> ends) {
  constexpr std::size_t most = 8;
  constexpr double apart = 9;
  std::ranges::sort(ends);
  if (ends.size() > most) ends.erase(ends.begin() + most / 2, ends.end() - most / 2);
  std::string labels;
  double free = -apart;
  for (const auto& [y, layer] : ends) {
    free = std::max(free + apart, y + 3);
    labels += label(across(1) + 3, free, "start", std::to_string(layer));
  }
  return labels;
}

std::string drift_panel(const SequenceReport& report, std::int64_t trained, std::string_view title, double Moments::*quantity) {
  double low = 0, high = 0;
  for (const LayerReport& layer : report.layers) {
    for (const Moments& moments : layer.moments) low = std::min(low, moments.*quantity), high = std::max(high, moments.*quantity);
  }
  if (!std::isfinite(low) || !std::isfinite(high) || low == high) return "";
  const auto tokens = static_cast<double>(report.tokens);
  std::string marks;
  if (trained > 0 && trained < report.tokens) {
    const double x = across(static_cast<double>(trained) / tokens);
    marks = line(x, down(0), x, down(1), "trained");
  }
  std::vector<std::pair<double, std::size_t>> ends;  // where the lines end, and whose they are
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    const std::vector<Moments>& moments = report.layers[l].moments;
    if (moments.empty()) continue;
    marks += course(report.layers[l], l, quantity, low, high, tokens);
    ends.emplace_back(down((moments.back().*quantity - low) / (high - low)), l);
  }
  marks += end_labels(std::move(ends));
  return panel(title, short_number(low), short_number(high), "0", fmt::format("{} tokens", report.tokens), marks);
}

/// Where a layer stands on the axis.
double place_of(std::size_t layer, std::size_t layers) { return (static_cast<double>(layer) + 0.5) / static_cast<double>(layers); }

}  // namespace

std::string drift_figure(const SequenceReport& report, std::int64_t trained_length) {
  constexpr std::array<std::pair<std::string_view, double Moments::*>, 4> quantities{{
      {"norm", &Moments::norm},
      {"mean", &Moments::mean},
      {"variance", &Moments::variance},
      {"largest channel", &Moments::largest},
  }};
  std::string panels;
  for (const auto& [title, quantity] : quantities) panels += drift_panel(report, trained_length, title, quantity);
  return figure(
      trained_length > 0 && trained_length < report.tokens
          ? fmt::format("The states by position, a line a layer with its number; the upright line: the training length, {} tokens.",
                        trained_length)
          : std::string("The states by position, a line a layer with its number."),
      panels);
}

std::string trend_figure(std::span<const InspectionOverview> all) {
  struct Trend {
    const char* title;
    double (*of)(const InspectionOverview&);
  };
  constexpr std::array<Trend, 4> trends{{
      {"perplexity at the end", [](const InspectionOverview& one) { return one.ends.empty() ? NAN : one.ends.back().perplexity; }},
      {"relative rank, least", [](const InspectionOverview& one) { return one.rank; }},
      {"load entropy, least", [](const InspectionOverview& one) { return one.spread; }},
      {"norm growth, most", [](const InspectionOverview& one) { return one.growth; }},
  }};
  std::vector<const InspectionOverview*> steps;
  for (const InspectionOverview& one : all) {
    if (one.steps > 0) steps.push_back(&one);
  }
  std::ranges::stable_sort(steps, {}, &InspectionOverview::steps);
  if (steps.size() < 2 || steps.front()->steps == steps.back()->steps) return "";
  std::string panels;
  for (const Trend& trend : trends) {
    double high = 0;
    for (const InspectionOverview* one : steps) high = std::isfinite(trend.of(*one)) ? std::max(high, trend.of(*one)) : high;
    if (high == 0) continue;
    std::map<std::string, std::string> lines;  // points by training
    std::string dots;
    for (const InspectionOverview* one : steps) {
      if (!std::isfinite(trend.of(*one))) continue;
      const double x = across(static_cast<double>(one->steps) / static_cast<double>(steps.back()->steps)), y = down(trend.of(*one) / high);
      lines[one->series] += fmt::format("{:.1f},{:.1f} ", x, y);
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"><title>step {}: {}; {}</title></circle>", x, y, one->steps,
                          short_number(trend.of(*one)), escaped(one->verdict));
    }
    std::string marks;
    for (const auto& [series, points] : lines)
      marks += fmt::format("<polyline points=\"{}\"><title>{}</title></polyline>", points, escaped(series));
    panels += panel(trend.title, "0", short_number(high), "step 0", fmt::format("{}", steps.back()->steps), marks + dots);
  }
  return figure("The course of the training, on the longest of what was read. Least and most: of the layer that has it.", panels);
}

std::string rank_figure(const SequenceReport& report) {
  double most = 0;
  for (const LayerReport& layer : report.layers) {
    if (!layer.heads.empty()) most = std::max(most, static_cast<double>(layer.full_rank));
  }
  if (most == 0) return "";
  std::string dots;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    for (std::size_t h = 0; h < report.layers[l].heads.size(); ++h) {
      const double rank = report.layers[l].heads[h].stacked.rank;
      if (std::isfinite(rank))
        dots += fmt::format(
            "<circle data-place=\"--layer {2} --head {3}\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"2\"><title>layer {2}, head {3}: "
            "{4:.1f}</title></circle>",
            across(place_of(l, report.layers.size())), down(rank / most), l, h, rank);
    }
  }
  return figure("Effective ranks of the heads' states, by layer.",
                panel("effective rank", "0", fmt::format("{:.0f}", most), "layer 0", fmt::format("{}", report.layers.size() - 1), dots));
}

std::string half_life_figure(const SequenceReport& report) {
  constexpr double least = 0.1, most = 1e6;  // tokens; beyond is drawn at the edge
  const auto height = [=](double life) { return down(std::log(std::clamp(life, least, most) / least) / std::log(most / least)); };
  std::string bars;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    const LayerReport& layer = report.layers[l];
    if (!layer.longest_half_life || std::isnan(*layer.longest_half_life) || std::isnan(*layer.shortest_half_life)) continue;
    const double x = across(place_of(l, report.layers.size()));
    bars += fmt::format("<g data-place=\"--layer {0}\"><title>layer {0}: {1:.3g} to {2:.3g} tokens</title>{3}</g>", l,
                        *layer.shortest_half_life, *layer.longest_half_life,
                        line(x, height(*layer.shortest_half_life), x, height(*layer.longest_half_life) - 1, "range"));
  }
  return bars.empty() ? ""
                      : figure("Half-lives of the channels, from the shortest to the longest of a layer.",
                               panel("half-life", "≤ 0.1", "≥ 10⁶", "layer 0", fmt::format("{}", report.layers.size() - 1), bars));
}

}  // namespace statescope
