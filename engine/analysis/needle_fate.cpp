#include "engine/analysis/needle_fate.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace statescope {
namespace {

/// The losses of the visits (from, to], largest first.
std::vector<LossEvent> losses(const Survival& survival, std::size_t from, std::size_t to, double written, std::size_t most) {
  std::vector<LossEvent> events;
  for (std::size_t j = from + 1; j <= to; ++j) {
    events.push_back({survival.token[j], Loss::decay, survival.decayed[j] / written});
    events.push_back({survival.token[j], Loss::erase, survival.erased[j] / written});
  }
  std::erase_if(events, [](const LossEvent& event) { return !(event.lost > 0); });
  std::stable_sort(events.begin(), events.end(), [](const LossEvent& a, const LossEvent& b) { return a.lost > b.lost; });
  if (events.size() > most) events.resize(most);
  return events;
}

/// The last visit that is not after a token; −1: none.
std::ptrdiff_t last_until(const Survival& survival, std::int64_t token) {
  return std::upper_bound(survival.token.begin(), survival.token.end(), token) - survival.token.begin() - 1;
}

}  // namespace

std::vector<NeedleFate> needle_fates(const MemoryTrace& trace, TokenRange needle, std::int64_t question, std::size_t events) {
  if (needle.begin < 0 || needle.end <= needle.begin || question < needle.end)
    throw std::invalid_argument("needle_fates: the question must stand behind the needle");
  std::vector<NeedleFate> fates;
  for (std::int64_t slot = 0; slot < static_cast<std::int64_t>(trace.slots.size()); ++slot) {
    for (std::int64_t head = 0; head < trace.H; ++head) {
      const Survival part = survival(trace, slot, head, needle.begin, needle.end);
      const std::ptrdiff_t last = last_until(part, needle.end - 1), now = last_until(part, question);
      if (last < 0 || !(part.kept[static_cast<std::size_t>(last)] > 0)) continue;
      const auto from = static_cast<std::size_t>(last), to = static_cast<std::size_t>(now);
      NeedleFate fate{.slot = slot, .head = head, .written = part.kept[from], .events = {}};
      fate.kept = part.kept[to] / fate.written;
      for (std::size_t j = from + 1; j <= to; ++j) {
        fate.decayed += part.decayed[j] / fate.written;
        fate.erased += part.erased[j] / fate.written;
      }
      fate.events = losses(part, from, to, fate.written, events);
      fate.visited = part.token[to] == question;
      if (fate.visited) fate.read_share = read_share(trace, slot, head, question, needle.begin, needle.end);
      fates.push_back(std::move(fate));
    }
  }
  std::stable_sort(fates.begin(), fates.end(), [](const NeedleFate& a, const NeedleFate& b) { return a.written > b.written; });
  return fates;
}

NeedleSummary summary(const std::vector<NeedleFate>& fates) {
  NeedleSummary all;
  double weight = 0;
  for (const NeedleFate& fate : fates) {
    const double square = fate.written * fate.written;
    weight += square;
    all.kept += square * fate.kept;
    all.decayed += square * fate.decayed;
    all.erased += square * fate.erased;
    if (!fate.visited) all.unvisited += square;
  }
  if (weight == 0) return {};
  for (double* sum : {&all.kept, &all.decayed, &all.erased, &all.unvisited}) *sum /= weight;
  return all;
}

std::string NeedleSummary::text() const {
  std::string line = fmt::format("kept {:.2f}: decay took {:.2f}", kept, decayed);
  if (erased != 0) line += fmt::format(", the delta rule {:.2f}", erased);
  if (unvisited > 0) line += fmt::format("; {:.2f} lies where the question does not look", unvisited);
  return line;
}

}  // namespace statescope
