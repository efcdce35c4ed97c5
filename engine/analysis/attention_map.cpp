#include "engine/analysis/attention_map.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace statescope {
namespace {

AttentionRows empty_rows(std::int64_t n) {
  return {std::vector<double>(static_cast<std::size_t>(n * n)), std::vector<double>(static_cast<std::size_t>(n))};
}

/// The query of a token on its way back through the visits.
struct Sweep {
  std::int64_t row = 0;  // of the result
  double least = 0;      // below this it has decayed away
  std::vector<double> rho;
};

double product(const float* a, const float* b, std::int64_t d) {
  double sum = 0;
  for (std::int64_t r = 0; r < d; ++r) sum += static_cast<double>(a[r]) * b[r];
  return sum;
}

/// Which keys the queries of one head see.
class Sight {
 public:
  Sight(const SoftmaxOperands& operands, std::int64_t head)
      : operands_(operands), key_head_(producer_head(head, operands.kv_heads, operands.heads)) {
    const std::int64_t size = operands.blocks.block_size, d = operands.d;
    if (size == 0) return;
    const std::int64_t tokens = std::ssize(operands.k) / (operands.kv_heads * d);
    means_.resize(static_cast<std::size_t>(tokens / size * d));
    for (std::int64_t s = 0; s < tokens / size * size; ++s) {
      for (std::int64_t r = 0; r < d; ++r) means_[static_cast<std::size_t>(s / size * d + r)] += key(s)[r] / static_cast<float>(size);
    }
  }

  const float* key(std::int64_t s) const { return operands_.k.data() + (s * operands_.kv_heads + key_head_) * operands_.d; }

  /// [t + 1] 1 where the query q of token t sees a key.
  std::vector<std::uint8_t> of(std::int64_t t, const float* q) const {
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(t + 1), 1);
    if (operands_.window > 0) std::fill_n(seen.begin(), std::max<std::int64_t>(0, t + 1 - operands_.window), std::uint8_t{0});
    const BlockTopK& blocks = operands_.blocks;
    if (blocks.block_size == 0 || t >= blocks.until) return seen;
    // Of the blocks before its own those with the largest q·mean key, ties to the earlier one.
    const std::int64_t own = t / blocks.block_size;
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t b = 0; b < own; ++b) order.emplace_back(-product(q, means_.data() + b * operands_.d, operands_.d), b);
    std::ranges::sort(order);
    for (std::size_t place = static_cast<std::size_t>(blocks.topk - 1); place < order.size(); ++place)
      std::fill_n(seen.begin() + order[place].second * blocks.block_size, blocks.block_size, std::uint8_t{0});
    return seen;
  }

 private:
  const SoftmaxOperands& operands_;
  std::int64_t key_head_;
  std::vector<float> means_;  // [blocks, d] of the keys
};

double largest(const std::vector<double>& x) {
  double most = 0;
  for (const double v : x) most = std::max(most, std::abs(v));
  return most;
}

}  // namespace

AttentionRows memory_attention(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t from, std::int64_t to,
                               const Done& done) {
  if (trace.decay_axis == DecayAxis::columns && trace.decay_width > 1)
    throw std::invalid_argument("a memory whose columns decay has no single coefficient a token");
  const SlotVisits& visits = trace.slots.at(static_cast<std::size_t>(slot));
  const std::int64_t n = to - from, K = trace.K, last = visits.until(to - 1);
  const bool delta = trace.rule == MemoryRule::delta;
  AttentionRows result = empty_rows(n);
  std::vector<Sweep> sweeps;
  std::vector<double> alpha(static_cast<std::size_t>(K), 1.0);
  for (std::int64_t j = last - 1; j >= 0; --j) {
    if (done && j % 256 == 0) done(1 - static_cast<double>(j) / static_cast<double>(last));
    const std::int64_t token = visits.token[static_cast<std::size_t>(j)], at = j * trace.H + head;
    const float *q = visits.q.data() + at * K, *k = visits.k.data() + at * K;
    if (token >= from && visits.reading(token) == j) {
      Sweep begun{token - from, 0, {q, q + K}};
      begun.least = 1e-20 * largest(begun.rho);
      sweeps.push_back(std::move(begun));
    }
    for (std::int64_t r = 0; r < (trace.decay_width == 0 ? 0 : K); ++r) {
      const std::int64_t channel = at * trace.decay_width + (trace.decay_width == 1 ? 0 : r);
      alpha[static_cast<std::size_t>(r)] = std::exp(static_cast<double>(visits.log_decay[static_cast<std::size_t>(channel)]));
    }
    const double beta = delta ? visits.beta[static_cast<std::size_t>(at)] : 1;
    for (Sweep& sweep : sweeps) {
      // c = β ρ·k
      double c = 0;
      for (std::int64_t r = 0; r < K; ++r) c += sweep.rho[static_cast<std::size_t>(r)] * k[r];
      c *= beta;
      if (token >= from)
        result.weight[static_cast<std::size_t>(sweep.row * n + token - from)] += c;
      else
        result.before[static_cast<std::size_t>(sweep.row)] += std::abs(c);
      // ρ ← α (ρ − c k) under the delta rule, else α ρ
      const double erased = delta ? c : 0;
      for (std::int64_t r = 0; r < K; ++r) {
        double& x = sweep.rho[static_cast<std::size_t>(r)];
        x = alpha[static_cast<std::size_t>(r)] * (x - erased * k[r]);
      }
    }
    std::erase_if(sweeps, [](const Sweep& sweep) { return largest(sweep.rho) <= sweep.least; });
    if (sweeps.empty() && token < from) break;
  }
  return result;
}

AttentionRows softmax_weights(const SoftmaxOperands& operands, std::int64_t head, std::int64_t from, std::int64_t to, const Done& done) {
  const std::int64_t n = to - from, d = operands.d;
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const Sight sight(operands, head);
  AttentionRows result = empty_rows(n);
  std::vector<double> weight;
  for (std::int64_t t = from; t < to; ++t) {
    if (done) done(static_cast<double>(t - from) / static_cast<double>(n));
    const float* q = operands.q.data() + (t * operands.heads + head) * d;
    const std::vector<std::uint8_t> seen = sight.of(t, q);
    weight.assign(static_cast<std::size_t>(t + 1), -INFINITY);
    for (std::int64_t s = 0; s <= t; ++s) {
      if (seen[static_cast<std::size_t>(s)]) weight[static_cast<std::size_t>(s)] = scale * product(q, sight.key(s), d);
    }
    const double top = *std::max_element(weight.begin(), weight.end());
    double sum = 0;
    for (double& w : weight) sum += w = std::exp(w - top);
    for (std::int64_t s = 0; s <= t; ++s) {
      const double share = weight[static_cast<std::size_t>(s)] / sum;
      if (s >= from)
        result.weight[static_cast<std::size_t>((t - from) * n + s - from)] = share;
      else
        result.before[static_cast<std::size_t>(t - from)] += share;
    }
  }
  return result;
}

}  // namespace statescope
