// Where the numbers of a state come from: who wrote them, what the last token did to them, what they were at another token.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/analysis/memory_reading.h"
#include "engine/analysis/parts.h"
#include "engine/answers/answers.h"
#include "engine/answers/levels.h"
#include "engine/answers/state_space.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// One visit's numbers of one head.
struct HeadVisit {
  const float *k, *v, *log_decay;
  const float *erase_key, *erase_along;  // of two keys, or null
  double beta;

  HeadVisit(const MemoryTrace& trace, std::int64_t slot, std::int64_t head_, std::int64_t j)
      : head(head_), index(j), visits(trace.slots[static_cast<std::size_t>(slot)]) {
    const std::int64_t at = j * trace.H + head;
    k = visits.k.data() + at * trace.K;
    v = visits.v.data() + at * trace.V;
    log_decay = visits.log_decay.data() + at * trace.decay_width;
    const bool two_keys = trace.rule == MemoryRule::two_keys;
    erase_key = two_keys ? visits.erase_key.data() + at * trace.K : nullptr;
    erase_along = two_keys ? visits.erase_along.data() + at * trace.K : nullptr;
    beta = trace.rule == MemoryRule::delta ? visits.beta[static_cast<std::size_t>(at)] : 1;
  }
  /// α of a cell.
  double decay(const MemoryTrace& trace, std::int64_t row, std::int64_t column) const {
    const double of_row = trace.decay_width == 0 ? 0 : double{log_decay[trace.decay_width == 1 ? 0 : row]};
    return std::exp(of_row + trace.log_decay_of_cell(visits, index, head, row, column));
  }

 private:
  std::int64_t head, index;
  const SlotVisits& visits;
};

/// What a question of history is about: rows [first, last) of a state, in a single column or whole.
struct Part {
  std::int64_t first = 0, last = 0, column = -1;
  double shown = 0;  // the state's own number: the cell, or the norm of the rows

  Part(const HistoryQuestion& question, const float* state, const MemoryTrace& trace)
      : first(std::max<std::int64_t>(question.row, 0)), last(question.row < 0 ? trace.K : question.row + 1), column(question.column) {
    shown = column >= 0 ? double{state[first * trace.V + column]}
                        : norm({state + first * trace.V, static_cast<std::size_t>((last - first) * trace.V)});
  }
  /// d [V] with contribution = coefficient · d·v, of one row: the unit vector of the column, or of all rows as one vector this row's part.
  std::vector<double> direction(const float* row, std::int64_t V) const {
    std::vector<double> d(static_cast<std::size_t>(V));
    if (column >= 0) {
      d[static_cast<std::size_t>(column)] = 1;
    } else if (shown > 0) {
      std::transform(row, row + V, d.begin(), [this](float z) { return z / shown; });
    }
    return d;
  }
};

/// S ← S + (α − 1) S − β kᵀπ + β kᵀv, π = k diag(α) S (of the delta rule; else 0), each part added to the update's. With two keys − eᵀ(p S)
/// instead of − β kᵀπ.
void add_visit(Update& update, std::int64_t slot, const MemoryTrace& trace, const HeadVisit& visit, std::vector<double>& S) {
  const std::int64_t K = trace.K, V = trace.V;
  std::vector<double> prediction(static_cast<std::size_t>(V));
  for (std::int64_t r = 0; r < K && trace.rule != MemoryRule::outer_product; ++r) {
    // the delta rule has no decays of cells
    const double k = visit.erase_key ? double{visit.erase_key[r]} : visit.k[r] * visit.decay(trace, r, 0);
    for (std::int64_t c = 0; c < V; ++c) prediction[static_cast<std::size_t>(c)] += k * S[static_cast<std::size_t>(r * V + c)];
  }
  for (std::int64_t r = 0; r < K; ++r) {
    const double weight = visit.beta * visit.k[r], along = visit.erase_along ? double{visit.erase_along[r]} : weight,
                 of_row = visit.decay(trace, r, 0) - 1;
    for (std::int64_t c = 0; c < V; ++c) {
      const double lost = trace.of_cells() ? visit.decay(trace, r, c) - 1 : of_row;
      double& cell = S[static_cast<std::size_t>(r * V + c)];
      const double decayed = lost * cell, erased = -along * prediction[static_cast<std::size_t>(c)], written = weight * visit.v[c];
      const auto i = static_cast<std::size_t>((slot * K + r) * V + c);
      update.decayed[i] += static_cast<float>(decayed);
      update.erased[i] += static_cast<float>(erased);
      update.written[i] += static_cast<float>(written);
      cell += decayed + erased + written;
    }
  }
}

}  // namespace

HeadState answer(const StateQuestion& question, Evidence& evidence) {
  check_index("head", question.head, evidence.layer_with_state(question.layer).heads);
  check_index("token", question.token, evidence.tokens());
  return evidence.head_state(question.layer, question.head, question.token);
}

LayerState answer(const LayerStateQuestion& question, Evidence& evidence) {
  evidence.layer_with_state(question.layer).heads;
  check_index("token", question.token, evidence.tokens());
  return evidence.state(question.layer, question.token);
}

/// Where every cell decays on its own, a token's part of several cells is the sum of its parts of each.
History cell_history(const HistoryQuestion& question, const MemoryTrace& trace, const float* S, const Part& part, Evidence& evidence) {
  const SlotVisits& visits = trace.slots[static_cast<std::size_t>(question.slot)];
  const std::int64_t n = visits.until(question.token), first = std::max<std::int64_t>(part.column, 0),
                     last = part.column < 0 ? trace.V : part.column + 1;
  std::vector<double> coefficient(static_cast<std::size_t>(n)), written = coefficient, contribution = coefficient;
  const bool one_row = part.last - part.first == 1, one_cell = one_row && last - first == 1;
  for (std::int64_t row = part.first; row < part.last; ++row) {
    const std::vector<double> d = part.direction(S + row * trace.V, trace.V);
    for (std::int64_t column = first; column < last; ++column) {
      const std::vector<double> c = cell_provenance(trace, question.slot, question.head, row, column, n);
      for (std::int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const HeadVisit visit(trace, question.slot, question.head, j);
        contribution[at] += c[at] * d[static_cast<std::size_t>(column)] * visit.v[column];
        coefficient[at] = one_cell ? c[at] : std::hypot(coefficient[at], c[at]);
        if (column == first) written[at] = one_row ? visit.k[row] : std::hypot(written[at], double{visit.k[row]});
      }
    }
    evidence.tell(static_cast<double>(row + 1 - part.first) / static_cast<double>(part.last - part.first));
  }
  return {.token = {visits.token.begin(), visits.token.begin() + n},
          .coefficient = {coefficient.begin(), coefficient.end()},
          .written = {written.begin(), written.end()},
          .contribution = {contribution.begin(), contribution.end()},
          .sum = std::accumulate(contribution.begin(), contribution.end(), 0.0),
          .shown = part.shown};
}

/// What the token read of a selective scan: o[c] = Σ_s A^c_{t,s} v_s[c], A of every channel its own.
History channel_history(const HistoryQuestion& question, const MemoryTrace& trace, std::span<const float> o, Evidence& evidence) {
  const SlotVisits& visits = trace.slots[static_cast<std::size_t>(question.slot)];
  History history;
  history.shown = norm(o);
  std::vector<double> coefficient, contribution;
  for (std::int64_t column = 0; column < trace.V; ++column) {
    const std::vector<double> a = channel_attention(trace, question.slot, question.head, column, question.token);
    coefficient.resize(a.size());
    contribution.resize(a.size());
    for (std::size_t j = 0; j < a.size(); ++j) {
      const HeadVisit visit(trace, question.slot, question.head, static_cast<std::int64_t>(j));
      coefficient[j] += std::abs(a[j]) / static_cast<double>(trace.V);
      if (history.shown > 0) contribution[j] += a[j] * visit.v[column] * o[static_cast<std::size_t>(column)] / history.shown;
    }
    evidence.tell(static_cast<double>(column + 1) / static_cast<double>(trace.V));
  }
  for (std::size_t j = 0; j < coefficient.size(); ++j) {
    const HeadVisit visit(trace, question.slot, question.head, static_cast<std::int64_t>(j));
    history.written.push_back(static_cast<float>(norm({visit.k, static_cast<std::size_t>(trace.K)})));
  }
  history.token.assign(visits.token.begin(), visits.token.begin() + std::ssize(coefficient));
  history.coefficient.assign(coefficient.begin(), coefficient.end());
  history.contribution.assign(contribution.begin(), contribution.end());
  history.sum = std::accumulate(contribution.begin(), contribution.end(), 0.0);
  return history;
}

/// What the token read of a slot: o = Σ_s A_{t,s} v_s. Nothing where it did not come.
History read_history(const HistoryQuestion& question, const MemoryTrace& trace, Evidence& evidence) {
  History history;
  const std::int64_t visit = trace.slots[static_cast<std::size_t>(question.slot)].reading(question.token);
  if (visit < 0) return history;
  const std::span o(trace.slots[static_cast<std::size_t>(question.slot)].o.data() + (visit * trace.H + question.head) * trace.V,
                    static_cast<std::size_t>(trace.V));
  if (trace.of_cells()) return channel_history(question, trace, o, evidence);
  const Contributions parts = implicit_attention(trace, question.slot, question.head, question.token);
  history.token = parts.token;
  history.shown = norm(o);
  for (std::size_t j = 0; j < parts.token.size(); ++j) {
    const HeadVisit one(trace, question.slot, question.head, static_cast<std::int64_t>(j));
    const double along = std::inner_product(o.begin(), o.end(), one.v, 0.0);
    const double contribution = history.shown > 0 ? parts.coefficient[j] * along / history.shown : 0;
    history.coefficient.push_back(static_cast<float>(parts.coefficient[j]));
    history.written.push_back(static_cast<float>(one.beta * norm({one.k, static_cast<std::size_t>(trace.K)})));
    history.contribution.push_back(static_cast<float>(contribution));
    history.sum += contribution;
  }
  return history;
}

/// What a model's memory tokens have written, in the trace row by row, is of one writer: contributions add up, of the others the norm.
History with_memory_tokens_as_one(History history) {
  const auto others = std::ranges::find_if(history.token, [](std::int32_t token) { return token != kMemoryTokens; });
  const std::ptrdiff_t rows = others - history.token.begin();
  for (std::ptrdiff_t j = 1; j < rows; ++j) {
    const auto at = static_cast<std::size_t>(j);
    history.contribution[0] += history.contribution[at];
    history.coefficient[0] = std::hypot(history.coefficient[0], history.coefficient[at]);
    history.written[0] = std::hypot(history.written[0], history.written[at]);
  }
  if (rows > 1) {
    history.token.erase(history.token.begin() + 1, others);
    for (std::vector<float>* all : {&history.contribution, &history.coefficient, &history.written})
      all->erase(all->begin() + 1, all->begin() + rows);
  }
  return history;
}

/// Who wrote S [K, V], the state of the question's slot and head.
History written_history(const HistoryQuestion& question, const MemoryTrace& trace, const float* S, Evidence& evidence) {
  if (question.row >= 0) check_index("row", question.row, trace.K);
  if (question.column >= 0) check_index("column", question.column, trace.V);
  if (question.row < 0 && question.column >= 0) throw Error("a column without a row has no history");
  const Part part(question, S, trace);
  if (trace.of_cells()) return cell_history(question, trace, S, part, evidence);
  History history;
  std::vector<double> coefficient, written, contribution;  // the first two: squares, of all rows
  for (std::int64_t row = part.first; row < part.last; ++row) {
    Contributions of_row = row_provenance(trace, question.slot, question.head, row, question.token);
    const std::vector<double> d = part.direction(S + row * trace.V, trace.V);
    for (std::vector<double>* all : {&coefficient, &written, &contribution}) all->resize(of_row.token.size());
    for (std::size_t j = 0; j < of_row.token.size(); ++j) {
      const HeadVisit visit(trace, question.slot, question.head, static_cast<std::int64_t>(j));
      const double c = of_row.coefficient[j], w = visit.beta * visit.k[row];
      contribution[j] += c * std::inner_product(d.begin(), d.end(), visit.v, 0.0);
      coefficient[j] = part.last - part.first == 1 ? c : std::hypot(coefficient[j], c);
      written[j] = part.last - part.first == 1 ? w : std::hypot(written[j], w);
    }
    history.token = std::move(of_row.token);
    evidence.tell(static_cast<double>(row + 1 - part.first) / static_cast<double>(part.last - part.first));
  }
  history.shown = part.shown;
  history.sum = std::accumulate(contribution.begin(), contribution.end(), 0.0);
  history.coefficient.assign(coefficient.begin(), coefficient.end());
  history.written.assign(written.begin(), written.end());
  history.contribution.assign(contribution.begin(), contribution.end());
  return history;
}

/// Of the tokens that the level holds.
History history_of_level(const HistoryQuestion& question, Evidence& evidence) {
  check_index("slot", question.slot, std::ssize(evidence.layer(question.layer).slot_names));
  check_index("head", question.head, evidence.layer(question.layer).heads);
  check_index("token", question.token, evidence.tokens());
  const HeadState state = evidence.head_state(question.layer, question.head, question.token);
  const float* const S = state.matrix(question.slot);
  const LevelsTrace levels = trace_of_level(question.layer, question.slot, question.head, question.token, S, evidence);
  HistoryQuestion alone = question;
  alone.slot = alone.head = 0;
  const History all = question.read ? read_history(alone, levels.trace, evidence) : written_history(alone, levels.trace, S, evidence);
  History history{.sum = all.sum, .shown = all.shown};
  for (std::size_t j = 0; j < all.token.size(); ++j) {
    if (!levels.is_in(static_cast<std::int64_t>(j), question.slot, question.token)) continue;
    history.token.push_back(all.token[j]);
    history.coefficient.push_back(all.coefficient[j]);
    history.written.push_back(all.written[j]);
    history.contribution.push_back(all.contribution[j]);
  }
  return history;
}

/// Which of its token's writes each visit is, the first `count`; empty where a token writes once.
std::vector<std::int32_t> steps_of(const MemoryTrace& trace, std::int64_t slot, std::size_t count) {
  std::vector<std::int32_t> steps;
  const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
  for (std::size_t j = 0; trace.steps > 1 && j < count; ++j) {
    const bool goes_on = j > 0 && visits.token[j] == visits.token[j - 1];
    steps.push_back(visits.is_edit(static_cast<std::int64_t>(j)) ? -1 : goes_on ? steps.back() + 1 : 0);
  }
  return steps;
}

History history_of(const HistoryQuestion& question, Evidence& evidence) {
  if (has_levels(evidence.layer(question.layer))) return history_of_level(question, evidence);
  if (is_state_space(evidence.layer(question.layer))) return history_of_state_space(question, evidence);
  const MemoryTrace& trace = evidence.trace_of_state(question.layer);
  check_index("slot", question.slot, std::ssize(trace.slots));
  check_index("head", question.head, trace.H);
  check_index("token", question.token, evidence.tokens());
  History history;
  if (question.read) {
    history = read_history(question, trace, evidence);
  } else {
    const HeadState state = evidence.head_state(question.layer, question.head, question.token);
    history = written_history(question, trace, state.matrix(question.slot), evidence);
  }
  history.step = steps_of(trace, question.slot, history.token.size());
  return history;
}

History answer(const HistoryQuestion& question, Evidence& evidence) { return with_memory_tokens_as_one(history_of(question, evidence)); }

Update answer(const UpdateQuestion& question, Evidence& evidence) {
  if (has_levels(evidence.layer(question.layer))) return update_of_levels(question, evidence);
  if (is_state_space(evidence.layer(question.layer))) return update_of_state_space(question, evidence);
  const MemoryTrace& trace = evidence.trace_of_state(question.layer);
  check_index("head", question.head, trace.H);
  check_index("token", question.token, evidence.tokens());
  const HeadState before = evidence.head_state(question.layer, question.head, question.token - 1);
  const std::int64_t K = trace.K, V = trace.V;
  const auto cells = trace.slots.size() * static_cast<std::size_t>(K * V);
  Update update{std::ssize(trace.slots), K, V, {}, {}, {}, {}};
  for (std::vector<float>* layer : {&update.decayed, &update.erased, &update.written}) layer->resize(cells);
  update.write_weight.resize(trace.slots.size() * static_cast<std::size_t>(K));

  for (std::int64_t slot = 0; slot < update.slots; ++slot) {
    const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
    const float* first = before.matrix(slot);
    std::vector<double> S(first, first + K * V);
    // The token's own visit, and those of interventions behind it.
    for (std::int64_t j = visits.until(question.token - 1); j < visits.until(question.token); ++j) {
      const HeadVisit visit(trace, slot, question.head, j);
      add_visit(update, slot, trace, visit, S);
      for (std::int64_t r = 0; r < K && !visits.is_edit(j); ++r) {
        float& weight = update.write_weight[static_cast<std::size_t>(slot * K + r)];
        const auto of_step = static_cast<float>(visit.beta * visit.k[r]);
        if (std::abs(of_step) > std::abs(weight)) weight = of_step;
      }
    }
  }
  return update;
}

}  // namespace statescope
