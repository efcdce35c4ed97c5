#include "engine/clinic/collapse_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/analysis/parts.h"
#include "engine/analysis/predictions.h"
#include "engine/analysis/write_analysis.h"
#include "engine/clinic/layer_report.h"
#include "engine/clinic/means.h"
#include "engine/config/host_floats.h"

namespace statescope {
namespace {

constexpr std::size_t kEighths = 8, kLeastTokens = 16;

/// Of a layer's first memory.
Moments moments_of(Model& model, const ModelState& state, std::size_t layer) {
  const ConstTensor memory = state.layers[layer].memory[0];
  const std::vector<float> numbers = host_floats(model.backend(), memory);
  Moments moments{.tokens = state.position, .norm = mean_of(frobenius_norms(numbers, memory.shape[2], memory.shape[3]))};
  double squares = 0;
  for (const double x : numbers) {
    moments.mean += x / static_cast<double>(numbers.size());
    squares += x * x / static_cast<double>(numbers.size());
    moments.largest = std::max(moments.largest, std::abs(x));
  }
  moments.variance = squares - moments.mean * moments.mean;
  return moments;
}

/// What one reading of the whole sequence tells.
struct WholeReading {
  std::vector<double> nll;                    // of every token but the first
  std::vector<double> asked;                  // of the tokens that were asked for
  std::vector<std::vector<Moments>> moments;  // [layers] after each eighth
  std::optional<Bookmark> before_ablation;
};

/// Reads all of it; with a bookmark on the way where the ablation begins.
WholeReading read(Model& model, ModelState& state, std::span<const std::int32_t> ids, std::span<const Target> asked, Collected& collected,
                  ReadingProgress& progress) {
  WholeReading reading;
  reading.moments.resize(static_cast<std::size_t>(model.layers()));
  const ForwardOptions options{.prompt_length = std::ssize(ids), .rules = {}};
  const auto read_until = [&](std::size_t end) {
    const auto begin = static_cast<std::size_t>(state.position);
    read_passes(model, state, ids.subspan(begin, end - begin), options, &collected, progress, [&](std::size_t first, const Tensor& hidden) {
      const Logits logits(model, hidden);
      const std::size_t from = begin + first, rows = static_cast<std::size_t>(hidden.rows());
      const std::vector<double> nll = logits.nll(ids.subspan(from + 1, std::min(rows, ids.size() - from - 1)));
      reading.nll.insert(reading.nll.end(), nll.begin(), nll.end());
      for (const Target& target : asked) {
        const std::size_t row = static_cast<std::size_t>(target.position) - from;  // of another pass: wraps to a large number
        if (row < rows) reading.asked.push_back(logits.nll(static_cast<std::int64_t>(row), target.id));
      }
    });
  };
  const std::size_t parts = ids.size() < kLeastTokens ? 1 : kEighths;
  const std::size_t bookmark = ids.size() - static_cast<std::size_t>(compared_predictions(model, std::ssize(ids)));
  for (std::size_t i = 1; i <= parts; ++i) {
    const std::size_t end = i * ids.size() / parts;
    if (!reading.before_ablation && bookmark <= end) {
      read_until(bookmark);
      reading.before_ablation.emplace(model, state);
    }
    read_until(end);
    for (std::size_t l = 0; l < state.layers.size() && parts > 1; ++l) {
      if (!state.layers[l].memory.empty()) reading.moments[l].push_back(moments_of(model, state, l));
    }
  }
  return reading;
}

std::vector<double> by_eighth(const std::vector<double>& values) {
  std::vector<double> means;
  for (std::size_t i = 0; i < kEighths && values.size() + 1 >= kLeastTokens; ++i) {
    const std::size_t begin = i * values.size() / kEighths, end = (i + 1) * values.size() / kEighths;
    means.push_back(mean_of(std::span(values).subspan(begin, end - begin)));
  }
  return means;
}

/// −Σ f log f of the frequencies f of ids, nat
double unigram_entropy(std::span<const std::int32_t> ids) {
  std::map<std::int32_t, double> frequency;
  for (const std::int32_t id : ids) frequency[id] += 1 / static_cast<double>(ids.size());
  double sum = 0;
  for (const auto& [id, f] : frequency) sum -= f * std::log(f);
  return sum;
}

Predicting predicting(const Model& model, std::span<const std::int32_t> ids, const WholeReading& reading) {
  return {.nll = mean_of(reading.nll),
          .unigram = unigram_entropy(ids),
          .asked = mean_of(reading.asked),
          .entropy = kNaN,
          .uniform = std::log(static_cast<double>(model.vocab()))};
}

void add(SequenceReport& report, const Ablation& ablation) {
  report.remembrance = ablation.remembrance;
  report.predicting.entropy = ablation.entropy;
  report.all_reads_effect = ablation.all;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    report.layers[l].read_effect = ablation.layers[l];
    report.layers[l].heads_read_effect = ablation.heads[l];
  }
}

}  // namespace

HeadClass head_class(double relative_rank) {
  if (relative_rank > kHighRank) return HeadClass::high_rank;
  return relative_rank > kLowRank ? HeadClass::middle : HeadClass::low_rank;
}

std::string_view name_of(HeadClass head) {
  switch (head) {
    case HeadClass::low_rank:
      return "low";
    case HeadClass::middle:
      return "middle";
    case HeadClass::high_rank:
      return "high";
  }
  return "";
}

double LayerReport::relative_rank() const {
  std::vector<double> ranks;
  for (const StateSimilarity& head : heads) ranks.push_back(head.stacked.rank / static_cast<double>(full_rank));
  return mean_of(ranks);
}

SequenceReport inspect_sequence(Model& model, std::span<const std::int32_t> ids, std::span<const Target> asked,
                                const ReadingProgress::Tell& tell) {
  model.check_ids(ids);
  SequenceReport report;
  report.tokens = static_cast<std::int64_t>(ids.size());
  ReadingProgress progress(tell, report.tokens + tokens_of_ablation(model, report.tokens));
  Collected collected(model);
  ModelState state = model.start();
  const WholeReading reading = read(model, state, ids, asked, collected, progress);
  report.nll_by_eighth = by_eighth(reading.nll);
  report.predicting = predicting(model, ids, reading);
  for (std::size_t l = 0; l < state.layers.size(); ++l) {
    report.layers.push_back(layer_report(model, state, static_cast<std::int64_t>(l), collected.layers[l], report.tokens));
    report.layers.back().moments = reading.moments[l];
    for (const Moments& moments : reading.moments[l]) report.layers.back().norm_by_eighth.push_back(moments.norm);
  }
  report.all_reads_effect = kNaN;
  if (ids.size() > 1) add(report, ablate(model, ids, state, *reading.before_ablation, progress));
  return report;
}

}  // namespace statescope
