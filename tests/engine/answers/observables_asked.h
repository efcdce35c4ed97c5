// What the tests of observables share: the quantities of some tokens by name, in every layer of every family.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/answers/answers.h"
#include "engine/answers/observables.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::observables_of_runs {

inline constexpr std::int64_t kTokens = 33;

/// The quantities of some tokens of a layer, by name.
class Asked {
 public:
  Asked(Evidence& evidence, std::int64_t layer, std::int64_t from, std::int64_t to)
      : all_(answer(ObservablesQuestion{layer, from, to, {}, 3}, evidence)), from_(from), to_(to) {
    for (const Observables::Quantity& quantity : all_.quantities) by_name_[quantity.name] = &quantity;
  }
  const Observables& all() const { return all_; }
  bool has(const std::string& name) const { return by_name_.contains(name); }
  const Observables::Quantity& operator[](const std::string& name) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) throw std::logic_error("no quantity " + name);
    return *found->second;
  }
  /// A token's numbers.
  std::span<const float> at(const std::string& name, std::int64_t token) const {
    const std::vector<float>& values = (*this)[name].values;
    const std::size_t each = values.size() / static_cast<std::size_t>(to_ - from_);
    return std::span(values).subspan(static_cast<std::size_t>(token - from_) * each, each);
  }
  double number(const std::string& name, std::int64_t token, std::size_t i = 0) const { return at(name, token)[i]; }

 private:
  Observables all_;
  std::int64_t from_, to_;
  std::map<std::string, const Observables::Quantity*> by_name_;
};

inline bool same(double found, double expected, double tolerance = 1e-5) {
  if (std::isnan(expected) || std::isinf(expected)) return std::isnan(expected) ? std::isnan(found) : found == expected;
  return std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

inline double norm_of(const double* x, std::int64_t n) { return std::sqrt(std::inner_product(x, x + n, x, 0.0)); }

/// check(evidence, asked about all tokens, layer) of every layer of every family.
template <class Check>
inline void in_every_layer(const Check& check) {
  for (const SmallModel& small : small_models()) {
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t l = 0; l < run.model->layers(); ++l) {
      INFO(small.name << ", layer " << l);
      check(run.evidence, Asked(run.evidence, l, 0, kTokens), l);
    }
  }
}

/// S q, o = q S in double precision.
inline std::vector<double> read(const float* q, const float* S, std::int64_t K, std::int64_t V) {
  std::vector<double> o(static_cast<std::size_t>(V));
  for (std::int64_t r = 0; r < K; ++r) {
    for (std::int64_t c = 0; c < V; ++c) o[static_cast<std::size_t>(c)] += double{q[r]} * S[r * V + c];
  }
  return o;
}

/// A mixer's channel, one row a token.
inline std::span<const float> row_of(const ChannelRows& rows, std::int64_t token) {
  const std::size_t each = rows.values.size() / static_cast<std::size_t>(kTokens);
  return std::span(rows.values).subspan(static_cast<std::size_t>(token) * each, each);
}

}  // namespace statescope::test::observables_of_runs
