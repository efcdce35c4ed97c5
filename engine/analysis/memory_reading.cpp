#include "engine/analysis/memory_reading.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace statescope {
namespace {

/// One visit of a slot as one head sees it.
struct Visit {
  const float *q, *k, *v, *log_decay;
  const float *erase_key, *erase_along;  // of two keys
  double beta;
  std::int64_t index;  // among the slot's visits
};

class Visits {
 public:
  Visits(const MemoryTrace& trace, std::int64_t slot, std::int64_t head)
      : trace_(trace), slot_(trace.slots.at(static_cast<std::size_t>(slot))), head_(head) {
    if (trace.decay_axis == DecayAxis::columns && trace.decay_width > 1)
      throw std::invalid_argument("a memory whose columns decay has no single coefficient a token");
  }
  std::int32_t token(std::int64_t j) const { return slot_.token[static_cast<std::size_t>(j)]; }
  std::int64_t count() const { return slot_.count(); }
  std::int64_t until(std::int64_t token_) const { return slot_.until(token_); }
  std::int64_t reading(std::int64_t token_) const { return slot_.reading(token_); }
  Visit operator[](std::int64_t j) const {
    const std::int64_t row = j * trace_.H + head_;
    const bool delta = trace_.rule == MemoryRule::delta;
    return {slot_.q.data() + row * trace_.K,
            slot_.k.data() + row * trace_.K,
            slot_.v.data() + row * trace_.V,
            slot_.log_decay.data() + row * trace_.decay_width,
            slot_.erase_key.data() + (slot_.erase_key.empty() ? 0 : row * trace_.K),
            slot_.erase_along.data() + (slot_.erase_along.empty() ? 0 : row * trace_.K),
            delta ? slot_.beta[static_cast<std::size_t>(row)] : 1.0,
            j};
  }
  /// α of a cell, without that of its row; 1 where only rows decay
  double decay_of_cell(const Visit& visit, std::int64_t r, std::int64_t c) const {
    return std::exp(trace_.log_decay_of_cell(slot_, visit.index, head_, r, c));
  }
  /// α of a row
  double decay(const Visit& visit, std::int64_t r) const {
    return trace_.decay_width == 0 ? 1 : std::exp(static_cast<double>(visit.log_decay[trace_.decay_width == 1 ? 0 : r]));
  }

 private:
  const MemoryTrace& trace_;
  const SlotVisits& slot_;
  std::int64_t head_;
};

template <class A, class B>
double dot(const A* a, const B* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <class Number>
double norm_of(const Number* x, std::int64_t n) {
  return std::sqrt(dot(x, x, n));
}

/// A K × V matrix that goes through a slot's visits as its state does.
class State {
 public:
  State(const MemoryTrace& trace, const Visits& visits) : trace_(trace), visits_(visits), S_(static_cast<std::size_t>(trace.K * trace.V)) {}

  void decay(const Visit& visit) {
    for (std::int64_t r = 0; r < trace_.K; ++r) {
      const double a = visits_.decay(visit, r);
      for (std::int64_t c = 0; c < trace_.V; ++c) row(r)[c] *= trace_.of_cells() ? a * visits_.decay_of_cell(visit, r, c) : a;
    }
  }
  /// key S
  std::vector<double> read(const float* key) const {
    std::vector<double> prediction(static_cast<std::size_t>(trace_.V));
    for (std::int64_t r = 0; r < trace_.K; ++r) {
      for (std::int64_t c = 0; c < trace_.V; ++c) prediction[static_cast<std::size_t>(c)] += key[r] * row(r)[c];
    }
    return prediction;
  }
  /// S += factor keyᵀ x
  template <class Number>
  void add(const float* key, double factor, const Number* x) {
    for (std::int64_t r = 0; r < trace_.K; ++r) {
      for (std::int64_t c = 0; c < trace_.V; ++c) row(r)[c] += factor * key[r] * static_cast<double>(x[c]);
    }
  }
  /// One visit of the memory, which writes `value` [V].
  void advance(const Visit& visit, const float* value) {
    leave(visit);
    add(visit.k, visit.beta, value);
  }
  /// What the visit leaves of S before it writes. Returns ‖S‖_F once it has decayed.
  double leave(const Visit& visit) {
    const bool two_keys = trace_.rule == MemoryRule::two_keys;
    const std::vector<double> taken = two_keys ? read(visit.erase_key) : std::vector<double>();
    decay(visit);
    const double decayed = size();
    if (two_keys) add(visit.erase_along, -1, taken.data());
    if (trace_.rule == MemoryRule::delta) add(visit.k, -visit.beta, read(visit.k).data());
    return decayed;
  }
  /// S ← Mᵀ S, M what `leave` multiplies with from the left; `c` = β k S.
  void go_back(const Visit& visit, const std::vector<double>& c) {
    const bool two_keys = trace_.rule == MemoryRule::two_keys;
    const std::vector<double> along = two_keys ? read(visit.erase_along) : std::vector<double>();
    if (trace_.rule == MemoryRule::delta) add(visit.k, -1, c.data());
    decay(visit);
    if (two_keys) add(visit.erase_key, -1, along.data());
  }
  State times(double factor) const {
    State result = *this;
    for (double& x : result.S_) x *= factor;
    return result;
  }
  /// ‖S‖_F
  double size() const { return norm_of(S_.data(), static_cast<std::int64_t>(S_.size())); }
  /// ‖SᵀX‖_F, of a selective scan the norm of its diagonal
  double read_size(const State& X) const {
    double squares = 0;
    for (std::int64_t c = 0; trace_.of_cells() && c < trace_.V; ++c) {
      double of_channel = 0;
      for (std::int64_t r = 0; r < trace_.K; ++r) of_channel += row(r)[c] * X.row(r)[c];
      squares += of_channel * of_channel;
    }
    if (trace_.of_cells()) return std::sqrt(squares);
    std::vector<double> column(static_cast<std::size_t>(trace_.V));
    for (std::int64_t i = 0; i < trace_.V; ++i) {
      std::fill(column.begin(), column.end(), 0.0);
      for (std::int64_t r = 0; r < trace_.K; ++r) {
        for (std::int64_t c = 0; c < trace_.V; ++c) column[static_cast<std::size_t>(c)] += row(r)[i] * X.row(r)[c];
      }
      squares += dot(column.data(), column.data(), trace_.V);
    }
    return std::sqrt(squares);
  }

 private:
  double* row(std::int64_t r) { return S_.data() + r * trace_.V; }
  const double* row(std::int64_t r) const { return S_.data() + r * trace_.V; }
  const MemoryTrace& trace_;
  const Visits& visits_;
  std::vector<double> S_;
};

}  // namespace

namespace {

/// Of the first n visits.
Contributions contributions_of(const MemoryTrace& trace, const Visits& visits, std::int64_t n, std::span<const float> rho) {
  if (trace.of_cells()) throw std::invalid_argument("a memory whose cells decay has no single coefficient a token");
  const std::int64_t K = trace.K;
  Contributions result;
  result.coefficient.resize(static_cast<std::size_t>(n));
  for (std::int64_t j = 0; j < n; ++j) result.token.push_back(visits.token(j));
  std::vector<double> p(rho.begin(), rho.end());
  for (std::int64_t j = n - 1; j >= 0; --j) {
    const Visit visit = visits[j];
    // c_j = β_j ρ·k_j
    const double c = visit.beta * dot(p.data(), visit.k, K);
    result.coefficient[static_cast<std::size_t>(j)] = c;
    // ρ ← α_j (ρ − c_j k_j) under the delta rule, α_j ρ − (ρ·e_j) p_j with two keys, else α_j ρ
    const bool two_keys = trace.rule == MemoryRule::two_keys;
    const double along = two_keys ? dot(p.data(), visit.erase_along, K) : 0;
    for (std::int64_t r = 0; r < K; ++r) {
      double& x = p[static_cast<std::size_t>(r)];
      if (trace.rule == MemoryRule::delta) x -= c * visit.k[r];
      x *= visits.decay(visit, r);
      if (two_keys) x -= along * visit.erase_key[r];
    }
  }
  return result;
}

}  // namespace

Contributions contributions(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token,
                            std::span<const float> rho) {
  const Visits visits(trace, slot, head);
  return contributions_of(trace, visits, visits.until(token), rho);
}

Contributions row_provenance(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t row, std::int64_t token) {
  std::vector<float> unit(static_cast<std::size_t>(trace.K));
  unit.at(static_cast<std::size_t>(row)) = 1;
  return contributions(trace, slot, head, token, unit);
}

Contributions implicit_attention(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token) {
  const Visits visits(trace, slot, head);
  const std::int64_t j = visits.reading(token);
  if (j < 0) return {};
  Contributions read = contributions_of(trace, visits, trace.reads_first ? j : j + 1, {visits[j].q, static_cast<std::size_t>(trace.K)});
  if (trace.reads_first) {
    read.token.push_back(visits.token(j));
    read.coefficient.push_back(0);
  }
  return read;
}

std::vector<double> cell_provenance(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t row, std::int64_t column,
                                    std::int64_t n) {
  const Visits visits(trace, slot, head);
  std::vector<double> coefficient(static_cast<std::size_t>(n));
  double left = 1;
  for (std::int64_t j = n - 1; j >= 0; --j) {
    const Visit visit = visits[j];
    coefficient[static_cast<std::size_t>(j)] = left * visit.k[row];
    left *= visits.decay(visit, row) * visits.decay_of_cell(visit, row, column);
  }
  return coefficient;
}

std::vector<double> channel_attention(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t column,
                                      std::int64_t token) {
  const Visits visits(trace, slot, head);
  const std::int64_t visit = visits.reading(token);
  std::vector<double> attention(static_cast<std::size_t>(visit + 1));
  for (std::int64_t row = 0; visit >= 0 && row < trace.K; ++row) {
    const std::vector<double> of_row = cell_provenance(trace, slot, head, row, column, visit + 1);
    for (std::size_t j = 0; j < of_row.size(); ++j) attention[j] += visits[visit].q[row] * of_row[j];
  }
  return attention;
}

double Interference::masked() const { return later == 0 ? 0 : later * later / (needle * needle + later * later); }

Interference interference(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token, std::int64_t begin,
                          std::int64_t end) {
  const Visits visits(trace, slot, head);
  const std::int64_t first = visits.until(begin - 1), behind = visits.until(end - 1), n = visits.until(token);
  State written(trace, visits);  // C₀
  for (std::int64_t j = first; j < behind; ++j) written.advance(visits[j], visits[j].v);
  const double size = written.size();
  if (size == 0) return {};
  // R [K, V] begins as Ĉ and goes backwards through the visits: RᵀX_j stays what ĈᵀX is of a part X_j of the state that far back.
  State R = written.times(1 / size);
  Interference result;
  std::vector<double> later(static_cast<std::size_t>(trace.of_cells() ? trace.V : trace.V * trace.V));
  for (std::int64_t j = n - 1; j >= behind; --j) {
    const Visit visit = visits[j];
    // X_j = β kᵀv:   RᵀX_j = c v with c = β k R
    std::vector<double> c = R.read(visit.k);
    for (double& x : c) x *= visit.beta;
    if (trace.of_cells()) {
      // of every channel: what was added to it alone
      for (std::int64_t i = 0; i < trace.V; ++i) later[static_cast<std::size_t>(i)] += c[static_cast<std::size_t>(i)] *= visit.v[i];
      result.token.push_back(visits.token(j));
      result.added.push_back(norm_of(c.data(), trace.V));
      R.decay(visit);
      continue;
    }
    for (std::int64_t i = 0; i < trace.V; ++i) {
      for (std::int64_t l = 0; l < trace.V; ++l)
        later[static_cast<std::size_t>(i * trace.V + l)] += c[static_cast<std::size_t>(i)] * visit.v[l];
    }
    result.token.push_back(visits.token(j));
    result.added.push_back(norm_of(c.data(), trace.V) * norm_of(visit.v, trace.V));
    // R ← α (I − β kᵀk) R under the delta rule, (α − pᵀe) R with two keys, else α R
    R.go_back(visit, c);
  }
  std::reverse(result.token.begin(), result.token.end());
  std::reverse(result.added.begin(), result.added.end());
  result.later = norm_of(later.data(), std::ssize(later));
  result.needle = R.read_size(written);
  return result;
}

bool reads(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token) {
  const Visits visits(trace, slot, head);
  const std::int64_t j = visits.reading(token);
  return j >= 0 && norm_of(visits[j].q, trace.K) > 0;
}

Survival survival(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t begin, std::int64_t end) {
  const Visits visits(trace, slot, head);
  State C(trace, visits);
  Survival result;
  for (std::int64_t j = visits.until(begin - 1); j < visits.count(); ++j) {
    const Visit visit = visits[j];
    const double before = C.size();
    const double decayed = C.leave(visit);
    const double erased = C.size();
    if (visits.token(j) < end) C.add(visit.k, visit.beta, visit.v);
    const double kept = C.size(), given_back = std::clamp(erased - decayed, 0.0, std::max(0.0, before - decayed));
    if (result.token.empty() || result.token.back() != visits.token(j)) {
      result.token.push_back(visits.token(j));
      for (std::vector<double>* parts : {&result.decayed, &result.erased, &result.written, &result.kept}) parts->push_back(0);
    }
    result.decayed.back() += before - decayed - given_back;
    result.erased.back() += decayed - erased + given_back;
    result.written.back() += kept - erased;
    result.kept.back() = kept;
  }
  return result;
}

namespace {

/// read_share of a selective scan, channel by channel.
double read_share_of_channels(const MemoryTrace& trace, const Visits& visits, std::int64_t slot, std::int64_t head, std::int64_t token,
                              std::int64_t begin, std::int64_t end) {
  double square = 0, shared = 0;
  for (std::int64_t column = 0; column < trace.V; ++column) {
    const std::vector<double> attention = channel_attention(trace, slot, head, column, token);
    double all = 0, part = 0;
    for (std::int64_t j = 0; j < std::ssize(attention); ++j) {
      const double read = attention[static_cast<std::size_t>(j)] * visits[j].v[column];
      all += read;
      if (begin <= visits.token(j) && visits.token(j) < end) part += read;
    }
    square += all * all;
    shared += part * all;
  }
  return square == 0 ? 0 : shared / square;
}

}  // namespace

double read_share(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token, std::int64_t begin,
                  std::int64_t end) {
  const Visits visits(trace, slot, head);
  if (trace.of_cells()) return read_share_of_channels(trace, visits, slot, head, token, begin, end);
  const Contributions read = implicit_attention(trace, slot, head, token);
  std::vector<double> all(static_cast<std::size_t>(trace.V)), part = all;
  for (std::size_t j = 0; j < read.token.size(); ++j) {
    const float* v = visits[static_cast<std::int64_t>(j)].v;
    const bool inside = begin <= read.token[j] && read.token[j] < end;
    for (std::size_t c = 0; c < all.size(); ++c) {
      all[c] += read.coefficient[j] * v[c];
      if (inside) part[c] += read.coefficient[j] * v[c];
    }
  }
  const double square = dot(all.data(), all.data(), trace.V);
  return square == 0 ? 0 : dot(part.data(), all.data(), trace.V) / square;
}

std::vector<float> write_weights(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t first, std::int64_t last) {
  const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
  std::vector<float> omega;
  for (std::int64_t j = first; j < last; ++j) {
    const std::int64_t at = j * trace.H + head;
    const float beta = trace.rule == MemoryRule::delta ? visits.beta[static_cast<std::size_t>(at)] : 1;
    for (std::int64_t r = 0; r < trace.K; ++r) omega.push_back(beta * visits.k[static_cast<std::size_t>(at * trace.K + r)]);
  }
  return omega;
}

namespace {

/// k̂ diag(α) k̂ᵀ, k̂ = k / ‖k‖; 1 for a key of 0
double decay_along(const float* key, const MemoryTrace& trace, const Visits& visits, const Visit& visit) {
  const double norm_of_key = norm_of(key, trace.K);
  if (trace.decay_width <= 1) return visits.decay(visit, 0);
  double sum = 0;
  for (std::int64_t r = 0; r < trace.K && norm_of_key > 0; ++r) {
    const double unit = key[r] / norm_of_key;
    sum += visits.decay(visit, r) * unit * unit;
  }
  return norm_of_key > 0 ? sum : 1;
}

}  // namespace

std::vector<DeltaStep> delta_steps(const MemoryTrace& trace, std::int64_t slot, std::int64_t head,
                                   const std::function<void(double)>& tell) {
  if (trace.rule == MemoryRule::outer_product) throw std::invalid_argument("delta_steps: this memory does not follow the delta rule");
  const bool two_keys = trace.rule == MemoryRule::two_keys;
  const Visits visits(trace, slot, head);
  State S(trace, visits);
  std::vector<DeltaStep> steps;
  for (std::int64_t j = 0; j < visits.count(); ++j) {
    if (tell && j % 64 == 0) tell(static_cast<double>(j) / static_cast<double>(visits.count()));
    const Visit visit = visits[j];
    const float *reads = two_keys ? visit.erase_key : visit.k, *along = two_keys ? visit.erase_along : visit.k;
    if (!two_keys) S.decay(visit);
    const std::vector<double> prediction = S.read(reads);  // S̄, of two keys S
    if (two_keys) S.decay(visit);
    S.add(along, -visit.beta, prediction.data());
    S.add(visit.k, visit.beta, visit.v);
    std::vector<double> error(prediction.size());
    for (std::size_t c = 0; c < error.size(); ++c) error[c] = visit.v[c] - prediction[c];

    DeltaStep step;
    const double k = norm_of(visit.k, trace.K), e = norm_of(along, trace.K);
    step.token = visits.token(j);
    step.prediction = norm_of(prediction.data(), trace.V);
    step.value = norm_of(visit.v, trace.V);
    step.error = norm_of(error.data(), trace.V);
    const double product = step.prediction * step.value, inner = dot(prediction.data(), visit.v, trace.V);
    step.cosine = product == 0 ? 0 : inner / product;
    step.erase = visit.beta * e * step.prediction;
    step.write = visit.beta * k * step.value;
    step.mended = visit.beta * dot(reads, along, trace.K);
    step.put = visit.beta * dot(reads, visit.k, trace.K);
    step.beta = two_keys ? step.mended : visit.beta;
    // ‖kᵀv − eᵀπ‖² = ‖k‖²‖v‖² + ‖e‖²‖π‖² − 2 (k·e)(v·π)
    const double both = step.erase * step.erase + step.write * step.write - 2 * dot(visit.k, along, trace.K) * inner;
    step.update = two_keys ? std::sqrt(std::max(0.0, both)) : visit.beta * k * step.error;
    step.alpha = decay_along(reads, trace, visits, visit);
    step.along_key = two_keys ? step.alpha - step.mended : step.alpha * (1 - step.mended);
    steps.push_back(step);
  }
  return steps;
}

}  // namespace statescope
