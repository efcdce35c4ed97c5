#include "engine/analysis/attention_map.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace statescope {
namespace {

constexpr std::int64_t kVisits = 64;  // between two looks at what has decayed away

AttentionRows empty_rows(const AttentionPart& part) {
  return {std::vector<double>(static_cast<std::size_t>(part.rows.count * part.width())),
          std::vector<double>(static_cast<std::size_t>(part.rows.count))};
}

/// The queries of all rows on their way back through the visits, ρ [K, rows]. Later tokens set out first and decay away first: those on
/// their way are the rows [begin, end).
class Sweep {
 public:
  Sweep(std::int64_t K, std::int64_t rows)
      : K_(K), rows_(rows), begin_(rows), end_(rows), rho_(size(K * rows)), least_(size(rows)), c_(size(rows)), along_(size(rows)) {}

  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }

  /// Rows set out in descending order; between them there may be some that never do.
  void set_out(std::int64_t row, const float* q) {
    begin_ = row;
    for (std::int64_t r = 0; r < K_; ++r) rho(r)[row] = q[r];
    least_[size(row)] = 1e-20 * largest(row);
  }

  /// c = β ρ·k of each row; then ρ ← α (ρ − c k) under the delta rule, else α ρ; with two keys p and e then ρ ← ρ − x p, x = ρ·e before it.
  const double* pass(const float* k, double beta, const double* alpha, bool delta, const float* erase_key, const float* erase_along) {
    product(c_, k);
    if (erase_key) product(along_, erase_along);
    for (std::int64_t i = begin_; i < end_; ++i) c_[size(i)] *= beta;
    for (std::int64_t r = 0; r < K_; ++r) {
      double* x = rho(r);
      const double erased = delta ? k[r] : 0;
      for (std::int64_t i = begin_; i < end_; ++i) x[i] = alpha[r] * (x[i] - erased * c_[size(i)]);
      for (std::int64_t i = begin_; erase_key && i < end_; ++i) x[i] -= along_[size(i)] * erase_key[r];
    }
    return c_.data();
  }

  void leave_decayed() {
    while (end_ > begin_ && largest(end_ - 1) <= least_[size(end_ - 1)]) --end_;
  }

 private:
  /// y = ρ·k of each row
  void product(std::vector<double>& y, const float* k) {
    std::fill(y.begin() + begin_, y.begin() + end_, 0.0);
    for (std::int64_t r = 0; r < K_; ++r) {
      const double* x = rho(r);
      for (std::int64_t i = begin_; i < end_; ++i) y[size(i)] += x[i] * k[r];
    }
  }
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  double* rho(std::int64_t r) { return rho_.data() + r * rows_; }
  double largest(std::int64_t row) {
    double most = 0;
    for (std::int64_t r = 0; r < K_; ++r) most = std::max(most, std::abs(rho(r)[row]));
    return most;
  }

  std::int64_t K_, rows_, begin_, end_;
  std::vector<double> rho_, least_, c_, along_;
};

double product(const float* a, const float* b, std::int64_t d) {
  double sum = 0;
  for (std::int64_t r = 0; r < d; ++r) sum += static_cast<double>(a[r]) * b[r];
  return sum;
}

std::int64_t tokens_of(const SoftmaxOperands& operands) { return std::ssize(operands.k) / (operands.kv_heads * operands.d); }

/// Key s as `head` reads it.
const float* key_of(const SoftmaxOperands& operands, std::int64_t head, std::int64_t s) {
  return operands.k.data() + (s * operands.kv_heads + producer_head(head, operands.kv_heads, operands.heads)) * operands.d;
}

/// [blocks, d] of the keys of complete blocks
std::vector<float> mean_keys(const SoftmaxOperands& operands, std::int64_t head, std::int64_t size) {
  const std::int64_t d = operands.d, blocks = tokens_of(operands) / size;
  std::vector<float> means(static_cast<std::size_t>(blocks * d));
  for (std::int64_t s = 0; s < blocks * size; ++s) {
    for (std::int64_t r = 0; r < d; ++r)
      means[static_cast<std::size_t>(s / size * d + r)] += key_of(operands, head, s)[r] / static_cast<float>(size);
  }
  return means;
}

/// Which keys the queries of one head see.
class Sight {
 public:
  Sight(const SoftmaxOperands& operands, std::int64_t head) : operands_(operands), head_(head) {
    if (operands.blocks.block_size > 0) means_ = mean_keys(operands, head, operands.blocks.block_size);
  }

  /// [t + 1] 1 where the query q of token t sees a key.
  std::vector<std::uint8_t> of(std::int64_t t, const float* q) const {
    if (operands_.pattern.block_size > 0) return by_pattern(t);
    if (!operands_.chosen.empty()) return by_choice(t);
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
  std::vector<std::uint8_t> by_pattern(std::int64_t t) const {
    const FixedPattern& pattern = operands_.pattern;
    std::vector<std::uint8_t> seen;
    for (std::int64_t s = 0; s <= t; ++s) seen.push_back(pattern.sees(head_, t / pattern.block_size, s / pattern.block_size));
    return seen;
  }
  std::vector<std::uint8_t> by_choice(std::int64_t t) const {
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(t + 1), 0);
    const std::int64_t heads = operands_.chosen_heads, size = operands_.chosen_size;
    const std::int64_t n = std::ssize(operands_.chosen) / (tokens_of(operands_) * heads);
    for (const float b : operands_.chosen.subspan(static_cast<std::size_t>((t * heads + producer_head(head_, heads, operands_.heads)) * n),
                                                  static_cast<std::size_t>(n))) {
      const std::int64_t begin = static_cast<std::int64_t>(b) * size;
      if (b >= 0 && begin <= t) std::fill_n(seen.begin() + begin, std::min(size, t + 1 - begin), std::uint8_t{1});
    }
    return seen;
  }

  const SoftmaxOperands& operands_;
  std::int64_t head_;
  std::vector<float> means_;  // [blocks, d] of the keys
};

/// w ← e^w / Σ e^w
void make_shares(std::vector<double>& weight) {
  if (weight.empty()) return;
  const double top = *std::max_element(weight.begin(), weight.end());
  double sum = 0;
  for (double& w : weight) sum += w = std::exp(w - top);
  for (double& w : weight) w /= sum;
}

/// The weight of token s in a row.
void put(AttentionRows& rows, const AttentionPart& part, std::int64_t row, std::int64_t s, double share) {
  if (s >= part.from)
    rows.weight[static_cast<std::size_t>((s - part.from) * part.rows.count + row)] = share;
  else
    rows.before[static_cast<std::size_t>(row)] += share;
}

}  // namespace

AttentionRows memory_attention(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, const AttentionPart& part, const Done& done,
                               std::span<const float> value_gate) {
  if (trace.decay_axis == DecayAxis::columns && trace.decay_width > 1)
    throw std::invalid_argument("a memory whose columns decay has no single coefficient a token");
  const SlotVisits& visits = trace.slots.at(static_cast<std::size_t>(slot));
  const std::int64_t K = trace.K, rows = part.rows.count, last = visits.until(part.token(rows - 1));
  const bool delta = trace.rule == MemoryRule::delta;
  AttentionRows result = empty_rows(part);
  Sweep sweep(K, rows);
  std::vector<double> alpha(static_cast<std::size_t>(K), 1.0);
  std::int64_t next = rows - 1;  // the row that sets out next
  for (std::int64_t j = last - 1; j >= 0; --j) {
    if (done && j % 256 == 0) done(1 - static_cast<double>(j) / static_cast<double>(last));
    const std::int64_t token = visits.token[static_cast<std::size_t>(j)], at = j * trace.H + head;
    while (next >= 0 && part.token(next) > token) --next;
    const bool reads_here = next >= 0 && part.token(next) == token && visits.reading(token) == j;
    if (reads_here && !trace.reads_first) sweep.set_out(next, visits.q.data() + at * K);
    for (std::int64_t r = 0; r < (trace.decay_width == 0 ? 0 : K); ++r) {
      const std::int64_t channel = at * trace.decay_width + (trace.decay_width == 1 ? 0 : r);
      alpha[static_cast<std::size_t>(r)] = std::exp(static_cast<double>(visits.log_decay[static_cast<std::size_t>(channel)]));
    }
    const auto of_two_keys = [&](const std::vector<float>& rows_) { return rows_.empty() ? nullptr : rows_.data() + at * K; };
    const double beta = delta ? visits.beta[static_cast<std::size_t>(at)] : 1;
    const double* c =
        sweep.pass(visits.k.data() + at * K, beta, alpha.data(), delta, of_two_keys(visits.erase_key), of_two_keys(visits.erase_along));
    // What an intervention wrote passed no gate.
    const double gate = value_gate.empty() || visits.is_edit(j) ? 1 : value_gate[static_cast<std::size_t>(token)];
    for (std::int64_t row = sweep.begin(); row < sweep.end(); ++row) {
      if (token >= part.from)
        result.weight[static_cast<std::size_t>((token - part.from) * rows + row)] += gate * c[row];
      else
        result.before[static_cast<std::size_t>(row)] += std::abs(gate * c[row]);
    }
    if (reads_here && trace.reads_first) sweep.set_out(next, visits.q.data() + at * K);
    if (j % kVisits != 0) continue;
    sweep.leave_decayed();
    if (next < 0 && sweep.begin() == sweep.end()) break;
  }
  return result;
}

AttentionRows scan_attention(const MemoryTrace& trace, std::int64_t head, const AttentionPart& part, std::span<const float> dt,
                             std::span<const float> D, const Done& done) {
  const SlotVisits& visits = trace.slots.at(0);
  const std::int64_t K = trace.K, V = trace.V, rows = part.rows.count;
  AttentionRows result = empty_rows(part);
  std::vector<double> alpha(static_cast<std::size_t>(K));
  for (std::int64_t channel = 0; channel < V; ++channel) {
    if (done) done(static_cast<double>(channel) / static_cast<double>(V));
    const float skip = D.empty() ? 0 : D[static_cast<std::size_t>(head * V + channel)];
    Sweep sweep(K, rows);
    std::int64_t next = rows - 1;
    for (std::int64_t j = visits.until(part.token(rows - 1)) - 1; j >= 0; --j) {
      const std::int64_t token = visits.token[static_cast<std::size_t>(j)], at = j * trace.H + head;
      while (next >= 0 && part.token(next) > token) --next;
      const bool reads_here = next >= 0 && part.token(next) == token && visits.reading(token) == j;
      if (reads_here) sweep.set_out(next, visits.q.data() + at * K);
      for (std::int64_t r = 0; r < K; ++r)
        alpha[static_cast<std::size_t>(r)] = std::exp(trace.log_decay_of_cell(visits, j, head, r, channel));
      const double* a = sweep.pass(visits.k.data() + at * K, 1, alpha.data(), false, nullptr, nullptr);
      const double gate = visits.is_edit(j) ? 1 : dt[static_cast<std::size_t>((token * trace.H + head) * V + channel)];
      for (std::int64_t row = sweep.begin(); row < sweep.end(); ++row) {
        const double share = std::abs(gate * a[row] + (reads_here && row == next ? skip : 0)) / static_cast<double>(V);
        if (token >= part.from)
          result.weight[static_cast<std::size_t>((token - part.from) * rows + row)] += share;
        else
          result.before[static_cast<std::size_t>(row)] += share;
      }
      if (j % kVisits != 0) continue;
      sweep.leave_decayed();
      if (next < 0 && sweep.begin() == sweep.end()) break;
    }
  }
  return result;
}

AttentionRows softmax_weights(const SoftmaxOperands& operands, std::int64_t head, const AttentionPart& part, const Done& done) {
  const std::int64_t rows = part.rows.count, d = operands.d;
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const Sight sight(operands, head);
  AttentionRows result = empty_rows(part);
  std::vector<double> weight;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (done) done(static_cast<double>(row) / static_cast<double>(rows));
    const std::int64_t t = part.token(row);
    const float* q = operands.q.data() + (t * operands.heads + head) * d;
    const std::vector<std::uint8_t> seen = sight.of(t, q);
    weight.assign(static_cast<std::size_t>(t + 1), -INFINITY);
    for (std::int64_t s = 0; s <= t; ++s) {
      if (seen[static_cast<std::size_t>(s)]) weight[static_cast<std::size_t>(s)] = scale * product(q, key_of(operands, head, s), d);
    }
    make_shares(weight);
    for (std::int64_t s = 0; s <= t; ++s) put(result, part, row, s, weight[static_cast<std::size_t>(s)]);
  }
  return result;
}

AttentionRows compressed_weights(const SoftmaxOperands& operands, std::int64_t size, std::int64_t head, const AttentionPart& part,
                                 const Done& done) {
  const std::int64_t rows = part.rows.count, d = operands.d;
  const std::vector<float> means = mean_keys(operands, head, size);
  AttentionRows result = empty_rows(part);
  std::vector<double> weight;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (done) done(static_cast<double>(row) / static_cast<double>(rows));
    const std::int64_t t = part.token(row), complete = (t + 1) / size;
    const float* q = operands.q.data() + (t * operands.heads + head) * d;
    weight.clear();
    for (std::int64_t b = 0; b < complete; ++b) weight.push_back(product(q, means.data() + b * d, d) / std::sqrt(static_cast<double>(d)));
    make_shares(weight);
    for (std::int64_t s = 0; s < complete * size; ++s)
      put(result, part, row, s, weight[static_cast<std::size_t>(s / size)] / static_cast<double>(size));
  }
  return result;
}

}  // namespace statescope
