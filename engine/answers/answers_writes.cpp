// Which rows tokens write, and how long ago the rows were written (spec §12.2).
#include <fmt/format.h>

#include <limits>
#include <numbers>
#include <optional>

#include "engine/analysis/memory_reading.h"
#include "engine/analysis/parts.h"
#include "engine/analysis/write_analysis.h"
#include "engine/answers/answers.h"
#include "engine/answers/levels.h"
#include "engine/error.h"

namespace statescope {
namespace {

const MemoryTrace& memory_of(std::int64_t layer, std::int64_t head, Evidence& evidence) {
  const MemoryTrace& trace = evidence.trace_of_state(layer);
  check_index("head", head, trace.H);
  return trace;
}

/// [K] the least n with Σ log α ≤ −ln 2 over the visits of the last n tokens up to `token`; of a selective scan the mean over its channels.
std::vector<std::int32_t> half_ages(const MemoryTrace& trace, const SlotVisits& visits, std::int64_t head, std::int64_t token) {
  std::vector<std::int32_t> ages(static_cast<std::size_t>(trace.K), static_cast<std::int32_t>(kNeverWritten));
  std::vector<double> sum(ages.size());
  for (std::int64_t j = visits.until(token) - 1; j >= 0 && (trace.decay_width > 0 || trace.of_cells()); --j) {
    const float* log_decay = visits.log_decay.data() + (j * trace.H + head) * trace.decay_width;
    for (std::size_t r = 0; r < ages.size(); ++r) {
      if (trace.decay_width > 0) sum[r] += log_decay[trace.decay_width == 1 ? 0 : r];
      for (std::int64_t c = 0; trace.of_cells() && c < trace.V; ++c)
        sum[r] += trace.log_decay_of_cell(visits, j, head, static_cast<std::int64_t>(r), c) / static_cast<double>(trace.V);
      if (ages[r] < 0 && sum[r] <= -std::numbers::ln2)
        ages[r] = static_cast<std::int32_t>(token - visits.token[static_cast<std::size_t>(j)] + 1);
    }
  }
  return ages;
}

/// Of every level the rows that its tokens have written; all of them decay alike.
RowAges ages_of_levels(const RowAgesQuestion& question, Evidence& evidence) {
  check_index("head", question.head, evidence.layer(question.layer).heads);
  check_index("token", question.token, evidence.tokens());
  const MemoryTrace levels = levels_after(question.layer, question.head, question.token, evidence),
                    decays = decays_of_levels(question.layer, evidence);
  RowAges ages{.slots = std::ssize(levels.slots), .rows = levels.K, .written = {}, .halved = {}};
  const std::vector<std::int32_t> halved = half_ages(decays, decays.slots.front(), question.head, question.token);
  for (const SlotVisits& level : levels.slots) {
    for (const std::int64_t age : row_ages(level.k, level.token, levels.K, question.token))
      ages.written.push_back(static_cast<std::int32_t>(age));
    ages.halved.insert(ages.halved.end(), halved.begin(), halved.end());
  }
  return ages;
}

}  // namespace

RowAges answer(const RowAgesQuestion& question, Evidence& evidence) {
  if (has_levels(evidence.layer(question.layer))) return ages_of_levels(question, evidence);
  const MemoryTrace& trace = memory_of(question.layer, question.head, evidence);
  RowAges ages{.slots = std::ssize(trace.slots), .rows = trace.K, .written = {}, .halved = {}};
  for (std::int64_t slot = 0; slot < ages.slots; ++slot) {
    const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
    const std::int64_t count = visits.until(question.token);
    const std::vector<float> omega = write_weights(trace, slot, question.head, 0, count);
    const std::span tokens(visits.token.data(), static_cast<std::size_t>(count));
    for (const std::int64_t age : row_ages(omega, tokens, trace.K, question.token)) ages.written.push_back(static_cast<std::int32_t>(age));
    const std::vector<std::int32_t> halved = half_ages(trace, visits, question.head, question.token);
    ages.halved.insert(ages.halved.end(), halved.begin(), halved.end());
    evidence.tell(static_cast<double>(std::ssize(ages.halved)) / static_cast<double>(ages.slots * ages.rows));
  }
  return ages;
}

WriteSpreads answer(const WriteSpreadQuestion& question, Evidence& evidence) {
  std::optional<MemoryTrace> levels;
  if (has_levels(evidence.layer(question.layer))) levels = writes_of_levels(question.layer, evidence);
  if (levels) check_index("head", question.head, levels->H);
  const MemoryTrace& trace = levels ? *levels : memory_of(question.layer, question.head, evidence);
  const std::int64_t n = question.to - question.from;
  if (n < 1 || n > 512 || question.from < 0 || question.to > evidence.tokens())
    throw Error(fmt::format("no window of tokens {} to {}", question.from, question.to));
  if (trace.steps > 1)
    throw Error(fmt::format("a token writes {} times in layer {}: there is no one spread of its write", trace.steps, question.layer));
  WriteSpreads spreads{.slots = std::ssize(trace.slots), .rows = trace.K, .effective = {}, .counted = {}};
  spreads.effective.assign(static_cast<std::size_t>(spreads.slots * n), std::numeric_limits<float>::quiet_NaN());
  spreads.counted = spreads.effective;
  for (std::int64_t slot = 0; slot < spreads.slots; ++slot) {
    const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
    const std::int64_t first = visits.until(question.from - 1), last = visits.until(question.to - 1);
    const std::vector<WriteSpread> each = write_spread(write_weights(trace, slot, question.head, first, last), trace.K);
    for (std::int64_t j = first; j < last; ++j) {
      if (visits.is_edit(j)) continue;  // the token itself wrote before it
      const auto at = static_cast<std::size_t>(slot * n + visits.token[static_cast<std::size_t>(j)] - question.from);
      const WriteSpread& spread = each[static_cast<std::size_t>(j - first)];
      spreads.effective[at] = static_cast<float>(static_cast<double>(trace.K) * spread.participation);
      spreads.counted[at] = static_cast<float>(static_cast<double>(trace.K) * spread.ratio);
    }
  }
  return spreads;
}

}  // namespace statescope
