// Every figure's mean over reports of one model.
#include <cmath>
#include <optional>
#include <vector>

#include "engine/clinic/collapse_report.h"
#include "engine/clinic/means.h"

namespace statescope {
namespace {

void for_numbers(Spectrum& spectrum, const auto& each) {
  for (double* x : {&spectrum.entropy, &spectrum.rank, &spectrum.rank_of_squares}) each(*x);
}

void for_numbers(StateSimilarity& head, const auto& each) {
  for (double* x : {&head.rows.mean_abs, &head.rows.within, &head.rows.between, &head.rows.min_cosine, &head.statistic}) each(*x);
  for_numbers(head.stacked, each);
  for (Spectrum& partition : head.partitions) for_numbers(partition, each);
}

void for_numbers(SlotReport& slot, const auto& each) {
  each(slot.norm);
  each(slot.load);
  for (std::optional<double>* x : {&slot.half_life, &slot.receptive_field, &slot.censored}) {
    if (*x) each(**x);
  }
}

void for_numbers(RoutingReport& routing, const auto& each) {
  for (std::vector<double>* all : {&routing.balance.frequency, &routing.balance.probability, &routing.balance.load})
    for (double& x : *all) each(x);
  for (double* x : {&routing.balance.variation, &routing.balance.loss, &routing.load_entropy, &routing.token_entropy, &routing.margin})
    each(*x);
}

/// Every number of a report that is a figure of the model, always in the same order.
void for_numbers(SequenceReport& report, const auto& each) {
  for (Remembrance& left_out : report.remembrance) each(left_out.change);
  for (double& nll : report.nll_by_eighth) each(nll);
  Predicting& predicting = report.predicting;
  for (double* x : {&predicting.nll, &predicting.unigram, &predicting.asked, &predicting.entropy, &report.all_reads_effect}) each(*x);
  for (LayerReport& layer : report.layers) {
    each(layer.residual_norm);
    for (double* x : {&layer.outlier, &layer.read_effect, &layer.likest_heads}) each(*x);
    for (std::vector<double>* of_heads : {&layer.heads_read_effect, &layer.heads_norm, &layer.heads_likeness, &layer.heads_same_reads})
      for (double& x : *of_heads) each(x);
    for (double& norm : layer.norm_by_eighth) each(norm);
    for (Moments& moments : layer.moments) {
      for (double* x : {&moments.norm, &moments.mean, &moments.variance, &moments.largest}) each(*x);
    }
    for (std::optional<double>* x : {&layer.longest_half_life, &layer.shortest_half_life, &layer.longest_median, &layer.shortest_median}) {
      if (*x) each(**x);
    }
    for (std::optional<Competition>* gates : {&layer.writing, &layer.reading}) {
      if (*gates) each((*gates)->entropy_of_mean), each((*gates)->mean_entropy);
    }
    for (StateSimilarity& head : layer.heads) for_numbers(head, each);
    for (SlotReport& slot : layer.slots) for_numbers(slot, each);
    if (layer.routing) for_numbers(*layer.routing, each);
  }
}

std::vector<double> numbers_of(SequenceReport report) {
  std::vector<double> numbers;
  for_numbers(report, [&](double x) { numbers.push_back(x); });
  return numbers;
}

}  // namespace

std::optional<SequenceReport> mean_report(std::span<const SequenceReport> reports) {
  if (reports.empty()) return {};
  std::vector<std::vector<double>> known(numbers_of(reports.front()).size());  // of each number, over the reports
  double tokens = 0;
  for (const SequenceReport& report : reports) {
    const std::vector<double> numbers = numbers_of(report);
    if (numbers.size() != known.size()) return {};
    tokens += static_cast<double>(report.tokens) / static_cast<double>(reports.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (!std::isnan(numbers[i])) known[i].push_back(numbers[i]);
    }
  }
  SequenceReport mean = reports.front();
  mean.tokens = std::llround(tokens);
  auto next = known.begin();
  for_numbers(mean, [&](double& x) { x = mean_of(*next++); });
  for (LayerReport& layer : mean.layers) {
    if (layer.routing) layer.routing->uneven = uneven_loads(layer.routing->balance.load, kLoadThresholds);
  }
  return mean;
}

}  // namespace statescope
