#include "app/inspect/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "app/common/page.h"

namespace statescope {
namespace {

template <class Figure>
double mean(const LayerReport& layer, const Figure& figure) {
  double sum = 0;
  for (const StateSimilarity& head : layer.heads) sum += figure(head);
  return sum / static_cast<double>(layer.heads.size());
}

}  // namespace

std::vector<InspectedKind> kinds_of(const Inspected& inspected) {
  std::vector<InspectedKind> kinds;
  for (std::size_t first = 0, end = 0; first < inspected.names.size(); first = end) {
    while (end < inspected.names.size() && inspected.names[end] == inspected.names[first]) ++end;
    const auto same = std::span(inspected.sequences).subspan(first, end - first);
    if (const std::optional<SequenceReport> mean = same.size() > 1 ? mean_report(same) : std::nullopt) {
      kinds.push_back({fmt::format("{}; mean of {}", inspected.names[first], same.size()), *mean, first});
    } else {
      for (std::size_t i = first; i < end; ++i) kinds.push_back({inspected.names[first], inspected.sequences[i], i});
    }
  }
  return kinds;
}

double mean_entropy(const LayerReport& layer) {
  return mean(layer, [](const StateSimilarity& head) { return head.stacked.entropy; });
}
double mean_rank(const LayerReport& layer) {
  return mean(layer, [](const StateSimilarity& head) { return head.stacked.rank; });
}
double mean_cosine(const LayerReport& layer) {
  return mean(layer, [](const StateSimilarity& head) { return head.rows.mean_abs; });
}
double mean_within(const LayerReport& layer) {
  return mean(layer, [](const StateSimilarity& head) { return head.rows.within; });
}
double mean_between(const LayerReport& layer) {
  return mean(layer, [](const StateSimilarity& head) { return head.rows.between; });
}

std::string bounded_cell(const Bounded& number, const char* format) {
  if (std::isinf(number.value)) return "∞";
  const std::string text = format ? number_cell(number.value, format) : short_number(number.value);
  return number.at_least && !std::isnan(number.value) ? "≥ " + text : text;
}

std::string difference_cell(const Bounded& a, const Bounded& b, const char* format) {
  const bool nothing = !std::isfinite(a.value) || !std::isfinite(b.value) || (a.at_least && b.at_least);
  const std::string text = number_cell(nothing ? NAN : b.value - a.value, format);
  return nothing ? text : (b.at_least ? "≥ " : a.at_least ? "≤ " : "") + text;
}

Bounded half_life_of(const LayerReport& layer) { return layer.slots.empty() ? NAN : layer.slots[0].half_life.value_or(NAN); }

Bounded receptive_field_of(const LayerReport& layer) {
  if (layer.slots.empty()) return NAN;
  return {layer.slots[0].receptive_field.value_or(NAN), layer.slots[0].censored.value_or(0) > 0};
}

double largest_norm(const LayerReport& layer) {
  double norm = 0;
  for (const SlotReport& slot : layer.slots) norm = std::max(norm, slot.norm);
  return norm;
}

std::string head_classes(std::span<const LayerReport> layers) {
  std::map<HeadClass, int> count;
  for (const LayerReport& layer : layers)
    for (const StateSimilarity& head : layer.heads) ++count[head_class(head.stacked.rank / static_cast<double>(layer.full_rank))];
  std::string text;
  for (const auto& [head, heads] : count) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", heads, name_of(head));
  return text;
}

std::string partitions_text(const std::vector<std::int64_t>& partitions) {
  std::string text;
  for (const std::int64_t n : partitions) text += fmt::format("{}{}", text.empty() ? "" : ", ", n + 1);
  return text.empty() ? "none" : text;
}

namespace {

/// A file's without ".h5"; a folder's as it is.
std::string name_of_checkpoint(std::filesystem::path path) {
  if (!path.has_filename()) path = path.parent_path();
  return (path.extension() == ".h5" ? path.stem() : path.filename()).string();
}

/// "niah-gla" of "niah-gla-step5000".
std::string series_of(const std::string& name) {
  std::string series = name.substr(0, name.find_last_not_of("0123456789") + 1);
  if (series.size() == name.size()) return name;
  const auto trim = [&] { series.erase(series.find_last_not_of("-_. ") + 1); };
  trim();
  if (series.ends_with("step")) series.erase(series.size() - 4);
  trim();
  return series.empty() ? "training" : series;
}

void keep_shorter(Bounded& shortest, const Bounded& one) {
  if (std::isnan(shortest.value) || one.value < shortest.value) shortest = one;
}

}  // namespace

InspectionOverview::InspectionOverview(const Inspected& inspected)
    : name(name_of_checkpoint(inspected.checkpoint)),
      series(series_of(name)),
      steps(inspected.steps),
      verdict(verdict_in_short(inspected)) {
  const std::vector<InspectedKind> kinds = kinds_of(inspected);
  if (!kinds.empty()) {
    const SequenceReport& last = kinds.back().report;
    for (std::size_t l = 0; l < last.layers.size(); ++l) {
      const std::optional<RoutingReport>& routing = last.layers[l].routing;
      if (routing && !routing->uneven.dead.empty())
        dead += fmt::format("{}layer {}: {}", dead.empty() ? "" : "; ", l, partitions_text(routing->uneven.dead));
    }
    heads = head_classes(last.layers);
  }
  for (const InspectedKind& kind : kinds) {
    const SequenceReport& report = kind.report;
    for (const LayerReport& layer : report.layers) {
      keep_shorter(half_life, half_life_of(layer));
      keep_shorter(width, receptive_field_of(layer));
      if (layer.routing) spread = std::fmin(spread, layer.routing->load_entropy);
      if (!layer.heads.empty()) likeness = std::fmax(likeness, mean_cosine(layer));
      if (!layer.heads.empty()) rank = std::fmin(rank, layer.relative_rank());
      if (!layer.norm_by_eighth.empty()) growth = std::fmax(growth, layer.norm_by_eighth.back() / layer.norm_by_eighth[3]);
    }
    if (!report.nll_by_eighth.empty()) ends.push_back({report.tokens, std::exp(report.nll_by_eighth.back())});
  }
}

}  // namespace statescope
