// Where the numbers of a state come from: who wrote them, what the last token did to them, what they were at another token.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/analysis/answers.h"
#include "engine/analysis/memory_reading.h"
#include "engine/analysis/parts.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// The memory that the layer's state is of. Throws Error.
const MemoryTrace& memory_of(std::int64_t layer, Evidence& evidence) {
  const MemoryTrace* trace = evidence.trace(layer);
  if (!trace) throw Error(fmt::format("layer {} keeps no matrix state", layer));
  return *trace;
}

void check_index(const char* what, std::int64_t index, std::int64_t count) {
  if (index < 0 || index >= count) throw Error(fmt::format("there is no {} {}", what, index));
}

/// One visit's numbers of one head.
struct HeadVisit {
  const float *k, *v, *log_decay;
  double beta;

  HeadVisit(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t j) {
    const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
    const std::int64_t at = j * trace.H + head;
    k = visits.k.data() + at * trace.K;
    v = visits.v.data() + at * trace.V;
    log_decay = visits.log_decay.data() + at * trace.decay_width;
    beta = trace.rule == MemoryRule::delta ? visits.beta[static_cast<std::size_t>(at)] : 1;
  }
  /// α of a row.
  double decay(const MemoryTrace& trace, std::int64_t row) const {
    if (trace.decay_width == 0) return 1;
    return std::exp(double{log_decay[trace.decay_width == 1 ? 0 : row]});
  }
};

/// d with contribution = coefficient · d·v: the unit vector of a column, or, for a whole row, of the row itself.
std::vector<double> direction(const HistoryQuestion& question, std::span<const float> row) {
  std::vector<double> d(row.size());
  if (question.column >= 0) {
    d[static_cast<std::size_t>(question.column)] = 1;
  } else if (const double size = norm(row); size > 0) {
    std::ranges::transform(row, d.begin(), [=](float z) { return z / size; });
  }
  return d;
}

}  // namespace

LayerState answer(const StateQuestion& question, Evidence& evidence) {
  check_index("token", question.token, evidence.tokens());
  if (!evidence.layer(question.layer).has_state()) throw Error(fmt::format("layer {} keeps no matrix state", question.layer));
  return evidence.state(question.layer, question.token);
}

History answer(const HistoryQuestion& question, Evidence& evidence) {
  const MemoryTrace& trace = memory_of(question.layer, evidence);
  check_index("slot", question.slot, std::ssize(trace.slots));
  check_index("head", question.head, trace.H);
  check_index("row", question.row, trace.K);
  check_index("token", question.token, evidence.tokens());
  if (question.column >= trace.V) throw Error(fmt::format("there is no column {}", question.column));
  const LayerState state = evidence.state(question.layer, question.token);
  const std::span row(state.matrix(question.slot, question.head) + question.row * trace.V, static_cast<std::size_t>(trace.V));
  const std::vector<double> d = direction(question, row);
  const Contributions parts = row_provenance(trace, question.slot, question.head, question.row, question.token);
  History history;
  history.token = parts.token;
  history.shown = question.column >= 0 ? row[static_cast<std::size_t>(question.column)] : norm(row);
  for (std::size_t j = 0; j < parts.token.size(); ++j) {
    const HeadVisit visit(trace, question.slot, question.head, static_cast<std::int64_t>(j));
    const double contribution = parts.coefficient[j] * std::inner_product(d.begin(), d.end(), visit.v, 0.0);
    history.coefficient.push_back(static_cast<float>(parts.coefficient[j]));
    history.written.push_back(static_cast<float>(visit.beta * visit.k[question.row]));
    history.contribution.push_back(static_cast<float>(contribution));
    history.sum += contribution;
  }
  return history;
}

Update answer(const UpdateQuestion& question, Evidence& evidence) {
  const MemoryTrace& trace = memory_of(question.layer, evidence);
  check_index("head", question.head, trace.H);
  check_index("token", question.token, evidence.tokens());
  const LayerState before = evidence.states_around(question.layer, question.token).first;
  const std::int64_t K = trace.K, V = trace.V;
  const auto cells = trace.slots.size() * static_cast<std::size_t>(K * V);
  Update update{std::ssize(trace.slots), K, V, {}, {}, {}, {}};
  for (std::vector<float>* layer : {&update.decayed, &update.erased, &update.written}) layer->resize(cells);
  update.write_weight.resize(trace.slots.size() * static_cast<std::size_t>(K));

  for (std::int64_t slot = 0; slot < update.slots; ++slot) {
    const std::int64_t j = trace.slots[static_cast<std::size_t>(slot)].reading(question.token);
    if (j < 0) continue;
    const HeadVisit visit(trace, slot, question.head, j);
    const float* S = before.matrix(slot, question.head);
    std::vector<double> prediction(static_cast<std::size_t>(V));  // π = k diag(α) S, of the delta rule
    for (std::int64_t r = 0; r < K && trace.rule == MemoryRule::delta; ++r) {
      const double k = visit.k[r] * visit.decay(trace, r);
      for (std::int64_t c = 0; c < V; ++c) prediction[static_cast<std::size_t>(c)] += k * S[r * V + c];
    }
    for (std::int64_t r = 0; r < K; ++r) {
      const double weight = visit.beta * visit.k[r], lost = visit.decay(trace, r) - 1;
      update.write_weight[static_cast<std::size_t>(slot * K + r)] = static_cast<float>(weight);
      for (std::int64_t c = 0; c < V; ++c) {
        // S_t = S + (α − 1) S − β kᵀπ + β kᵀv
        const auto i = static_cast<std::size_t>((slot * K + r) * V + c);
        update.decayed[i] = static_cast<float>(lost * S[r * V + c]);
        update.erased[i] = static_cast<float>(-weight * prediction[static_cast<std::size_t>(c)]);
        update.written[i] = static_cast<float>(weight * visit.v[c]);
      }
    }
  }
  return update;
}

}  // namespace statescope
