#include "engine/analysis/decay_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "engine/analysis/parts.h"
#include "kernels/cpu/parallel.h"

namespace statescope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void check(const SlotDecay& slot) {
  check_that(slot.tokens >= 0 && slot.first >= 0 && slot.channels >= 0, "decay: a negative size");
  const auto unordered = std::adjacent_find(slot.written.begin(), slot.written.end(), std::greater_equal<>());
  check_that(unordered == slot.written.end(), "decay: the written tokens do not ascend");
  check_size("decay: log_decay", slot.log_decay, static_cast<std::int64_t>(slot.written.size()) * slot.stride);
  if (slot.written.empty()) return;
  check_that(slot.written.front() >= 0 && slot.written.back() < slot.tokens, "decay: a written token outside the run");
  check_that(slot.first + slot.channels <= slot.stride, "decay: channels outside the row");
}

/// log α of all channels at token written[i].
const float* row(const SlotDecay& slot, std::size_t i) {
  return slot.log_decay.data() + static_cast<std::int64_t>(i) * slot.stride + slot.first;
}

/// Of w_t for the last tokens, `reaches(t, s)` being Δ_{t,s} ≥ θ. What t reaches, t + 1 does at most: s only moves forwards, after one way
/// back from the first of them.
template <class Reaches>
void measure(ReceptiveField& field, std::size_t index, std::int64_t tokens, const Reaches& reaches) {
  double sum = 0;
  const std::int64_t first = tokens - field.measured;
  std::int64_t s = first;
  while (s > 0 && reaches(first, s - 1)) --s;
  for (std::int64_t t = first; t < tokens; ++t) {
    while (s < t && !reaches(t, s)) ++s;
    sum += static_cast<double>(t - s);
    if (s == 0) ++field.censored[index];
  }
  field.width[index] = sum / static_cast<double>(field.measured);
}

ReceptiveField empty_field(const SlotDecay& slot, std::int64_t results, double theta, std::int64_t last) {
  check(slot);
  check_that(theta > 0 && theta <= 1, "receptive field: the threshold is not in (0, 1]");
  check_that(last > 0, "receptive field: of no tokens");
  const auto n = static_cast<std::size_t>(results);
  return {.width = std::vector<double>(n), .censored = std::vector<std::int64_t>(n), .measured = std::min(last, slot.tokens)};
}

ReceptiveField with_mean(ReceptiveField field) {
  field.mean = std::accumulate(field.width.begin(), field.width.end(), 0.0) / static_cast<double>(field.width.size());
  return field;
}

}  // namespace

std::vector<std::int32_t> all_tokens(std::int64_t tokens) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(tokens));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

CumulativeDecay::CumulativeDecay(const SlotDecay& slot, std::int64_t channel) {
  check(slot);
  check_that(channel >= 0 && channel < slot.channels, "decay: no such channel");
  sum_.resize(static_cast<std::size_t>(slot.tokens));
  cut_.resize(sum_.size());
  double sum = 0;
  std::int32_t cut = -1;
  std::size_t next = 0;
  for (std::int32_t t = 0; t < slot.tokens; ++t) {
    if (next < slot.written.size() && slot.written[next] == t) {
      const double log_alpha = row(slot, next++)[channel];
      if (!(log_alpha <= 0)) decays_ = false;
      if (log_alpha <= kLogZero) {
        cut = t;
      } else {
        sum += log_alpha;
      }
    }
    sum_[static_cast<std::size_t>(t)] = sum;
    cut_[static_cast<std::size_t>(t)] = cut;
  }
}

double CumulativeDecay::log(std::int64_t t, std::int64_t s) const {
  const auto to = static_cast<std::size_t>(t), from = static_cast<std::size_t>(s);
  return cut_[to] > s ? -kInfinity : sum_[to] - sum_[from];
}

double CumulativeDecay::operator()(std::int64_t t, std::int64_t s) const { return std::exp(log(t, s)); }

std::vector<double> half_life(const SlotDecay& slot) {
  check(slot);
  std::vector<double> sum(static_cast<std::size_t>(slot.channels));
  for (std::size_t i = 0; i < slot.written.size(); ++i) {
    for (std::int64_t c = 0; c < slot.channels; ++c) {
      const double log_alpha = row(slot, i)[c];
      sum[static_cast<std::size_t>(c)] += log_alpha <= 0 ? log_alpha : kNaN;
    }
  }
  for (double& value : sum) value = std::numbers::ln2 / std::abs(value / static_cast<double>(slot.tokens));
  return sum;
}

ReceptiveField receptive_field(const SlotDecay& slot, double theta, std::int64_t last) {
  ReceptiveField field = empty_field(slot, slot.channels, theta, last);
  const double log_theta = std::log(theta);
  parallel_for(slot.channels, [&](std::int64_t c) {
    const CumulativeDecay decay(slot, c);
    const auto index = static_cast<std::size_t>(c);
    measure(field, index, slot.tokens, [&](std::int64_t t, std::int64_t s) { return decay.log(t, s) >= log_theta; });
    if (!decay.decays()) field.width[index] = kNaN;
  });
  return with_mean(std::move(field));
}

ReceptiveField receptive_field_summed(const SlotDecay& slot, std::int64_t rows, double theta, std::int64_t last) {
  check_that(rows > 0 && slot.channels % rows == 0, "receptive field: the channels are no whole number of heads");
  ReceptiveField field = empty_field(slot, slot.channels / rows, theta, last);
  for (std::int64_t h = 0; h < slot.channels / rows; ++h) {
    std::vector<CumulativeDecay> decays;
    for (std::int64_t r = 0; r < rows; ++r) decays.emplace_back(slot, h * rows + r);
    const auto index = static_cast<std::size_t>(h);
    measure(field, index, slot.tokens, [&](std::int64_t t, std::int64_t s) {
      double sum = 0;
      for (const CumulativeDecay& decay : decays) sum += decay(t, s);
      return sum >= theta;
    });
    if (!std::all_of(decays.begin(), decays.end(), [](const CumulativeDecay& decay) { return decay.decays(); })) field.width[index] = kNaN;
  }
  return with_mean(std::move(field));
}

}  // namespace statescope
