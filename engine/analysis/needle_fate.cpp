#include "engine/analysis/needle_fate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace statescope {
namespace {

constexpr std::array kLosses{Loss::decay, Loss::erase, Loss::overwrite, Loss::misroute};

double part(const NeedleFate& fate, Loss loss) {
  switch (loss) {
    case Loss::decay:
      return fate.decayed;
    case Loss::erase:
      return fate.erased;
    case Loss::overwrite:
      return fate.overwritten;
    case Loss::misroute:
      return fate.misrouted;
  }
  return 0;
}

template <class Events>
void largest_first(Events& events) {
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.lost > b.lost; });
}

/// Adds the `most` largest losses by one cause, lost[i] at token[i].
void add_events(std::vector<LossEvent>& events, Loss cause, std::span<const std::int32_t> token, std::span<const double> lost,
                std::size_t most) {
  std::vector<LossEvent> found;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (lost[i] > 0) found.push_back({token[i], cause, lost[i]});
  }
  largest_first(found);
  if (found.size() > most) found.resize(most);
  events.insert(events.end(), found.begin(), found.end());
}

/// The last visit that is not after a token; −1: none.
std::ptrdiff_t last_until(const Survival& survival, std::int64_t token) {
  return std::upper_bound(survival.token.begin(), survival.token.end(), token) - survival.token.begin() - 1;
}

/// What the visits (from, to] took, over `written`.
std::vector<double> taken(const std::vector<double>& lost, std::size_t from, std::size_t to, double written) {
  std::vector<double> parts;
  for (std::size_t j = from + 1; j <= to; ++j) parts.push_back(lost[j] / written);
  return parts;
}

double sum(const std::vector<double>& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

}  // namespace

NeedleFate fate_of(const Survival& survival, std::optional<PlaceRead> read, TokenRange needle, std::int64_t question, std::size_t events) {
  const auto from = static_cast<std::size_t>(last_until(survival, needle.end - 1));
  const auto to = static_cast<std::size_t>(last_until(survival, question));
  const std::span<const std::int32_t> later = std::span(survival.token).subspan(from + 1, to - from);
  NeedleFate fate{.written = survival.kept[from], .events = {}};
  fate.kept = survival.kept[to] / fate.written;

  const std::vector<double> decayed = taken(survival.decayed, from, to, fate.written);
  const std::vector<double> erased = taken(survival.erased, from, to, fate.written);
  fate.decayed = sum(decayed);
  fate.erased = sum(erased);
  add_events(fate.events, Loss::decay, later, decayed, events);
  add_events(fate.events, Loss::erase, later, erased, events);

  fate.read = read.has_value();
  if (fate.read) {
    fate.read_share = read->share;
    Interference& over = read->over;
    fate.overwritten = fate.kept * over.masked();
    if (const double all = sum(over.added); all > 0) {
      for (double& added : over.added) added *= fate.overwritten / all;
    }
    add_events(fate.events, Loss::overwrite, over.token, over.added, events);
  } else {
    fate.misrouted = fate.kept;
    const std::array token{static_cast<std::int32_t>(question)};
    add_events(fate.events, Loss::misroute, token, std::array{fate.misrouted}, events);
  }
  largest_first(fate.events);
  return fate;
}

std::string_view name_of(Loss loss) {
  constexpr std::array<std::string_view, kLosses.size()> names{"decay", "erasure", "overwriting", "misrouting"};
  return names[static_cast<std::size_t>(loss)];
}

std::vector<NeedlePlace> needle_places(const MemoryTrace& trace, TokenRange needle, std::int64_t question, std::size_t events,
                                       const std::function<void(double fraction)>& tell, const MemoryTrace* as_read) {
  if (needle.begin < 0 || needle.end <= needle.begin || question < needle.end)
    throw std::invalid_argument("needle_places: the question must come after the needle");
  const MemoryTrace& asked = as_read ? *as_read : trace;
  std::vector<NeedlePlace> places;
  const auto slots = static_cast<std::int64_t>(trace.slots.size());
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
    if (visits.until(needle.begin - 1) == visits.until(needle.end - 1)) continue;  // the needle did not come here
    for (std::int64_t head = 0; head < trace.H; ++head) {
      if (tell) tell(static_cast<double>(slot * trace.H + head) / static_cast<double>(slots * trace.H));
      Survival left = survival(trace, slot, head, needle.begin, needle.end);
      const std::ptrdiff_t last = last_until(left, needle.end - 1);
      if (last < 0 || !(left.kept[static_cast<std::size_t>(last)] > 0)) continue;
      std::optional<PlaceRead> read;
      if (reads(asked, slot, head, question))
        read = {read_share(asked, slot, head, question, needle.begin, needle.end),
                interference(asked, slot, head, question, needle.begin, needle.end)};
      NeedleFate fate = fate_of(left, std::move(read), needle, question, events);
      fate.slot = slot;
      fate.head = head;
      places.push_back({std::move(fate), std::move(left)});
    }
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const NeedlePlace& a, const NeedlePlace& b) { return a.fate.written > b.fate.written; });
  return places;
}

std::vector<NeedleFate> fates_of(std::span<const NeedlePlace> places) {
  std::vector<NeedleFate> fates;
  for (const NeedlePlace& place : places) fates.push_back(place.fate);
  return fates;
}

double NeedleSummary::lost(Loss loss) const {
  const std::array parts{decayed, erased, overwritten, misrouted};
  return parts[static_cast<std::size_t>(loss)];
}

std::string NeedleSummary::text() const {
  constexpr double least = 0.005;
  std::array causes = kLosses;
  std::stable_sort(causes.begin(), causes.end(), [this](Loss a, Loss b) { return lost(a) > lost(b); });
  std::string line = fmt::format("{:.2f} is still clear", std::abs(readable) < least ? 0 : readable);
  std::string_view before = ": ", took = " took";
  for (const Loss cause : causes) {
    if (lost(cause) < least) continue;
    line += fmt::format("{}{}{} {:.2f}", before, name_of(cause), took, lost(cause));
    before = ", ", took = "";
  }
  return line;
}

NeedleSummary summary(const std::vector<NeedleFate>& fates) {
  NeedleSummary all;
  double weight = 0;
  for (const NeedleFate& fate : fates) {
    const double square = fate.written * fate.written;
    weight += square;
    all.readable += square * fate.readable();
    all.decayed += square * fate.decayed;
    all.erased += square * fate.erased;
    all.overwritten += square * fate.overwritten;
    all.misrouted += square * fate.misrouted;
  }
  if (weight == 0) return {};
  for (double* sum : {&all.readable, &all.decayed, &all.erased, &all.overwritten, &all.misrouted}) *sum /= weight;
  return all;
}

NeedleVerdict verdict(std::span<const std::vector<NeedleFate>> fates) {
  const auto layers = static_cast<double>(std::count_if(fates.begin(), fates.end(), [](const auto& layer) { return !layer.empty(); }));
  NeedleVerdict verdict;
  for (std::size_t l = 0; l < fates.size(); ++l) {
    if (fates[l].empty()) continue;
    const NeedleSummary of_layer = summary(fates[l]);
    verdict.summary.readable += of_layer.readable / layers;
    verdict.summary.decayed += of_layer.decayed / layers;
    verdict.summary.erased += of_layer.erased / layers;
    verdict.summary.overwritten += of_layer.overwritten / layers;
    verdict.summary.misrouted += of_layer.misrouted / layers;
    double weight = 0;
    for (const NeedleFate& fate : fates[l]) weight += fate.written * fate.written;
    for (const NeedleFate& fate : fates[l]) {
      if (fate.read && (!verdict.read || fate.read_share > verdict.read->share))
        verdict.read = {static_cast<std::int64_t>(l), fate.slot, fate.head, fate.read_share};
      const double share = fate.written * fate.written / weight / layers;
      for (const Loss cause : kLosses) {
        const auto worst =
            std::find_if(fate.events.begin(), fate.events.end(), [=](const LossEvent& event) { return event.cause == cause; });
        if (worst == fate.events.end()) continue;
        verdict.losses.push_back({static_cast<std::int64_t>(l), fate.slot, fate.head, cause, share * part(fate, cause), worst->token});
      }
    }
  }
  largest_first(verdict.losses);
  return verdict;
}

}  // namespace statescope
