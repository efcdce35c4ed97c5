// Jobs and what comes of them, on the wire.
#include "app/eval/eval_wire.h"
#include "app/inspect/inspected_fields.h"
#include "app/jobs/jobs.h"
#include "engine/remote/wire_fields.h"

namespace statescope {
namespace {

void check(bool fits) {
  if (!fits) throw remote::WireError("a message has a report whose parts do not fit together");
}

/// Whether `index` is of a list of `count`.
bool is_of(std::int64_t index, std::size_t count) { return index >= 0 && index < static_cast<std::int64_t>(count); }

/// What is said of a report looks up layers, slots and tokens.
void check_report(const NeedleReport& report) {
  check(report.run != nullptr);
  const std::vector<LayerInfo>& layers = report.run->model.layers;
  const std::vector<TokenInfo>& tokens = report.run->tokens;
  const auto check_place = [&](std::int64_t layer, std::int64_t slot) {
    check(is_of(layer, layers.size()) && is_of(slot, layers[static_cast<std::size_t>(layer)].slot_names.size()));
  };
  check(report.fates.size() == layers.size() && report.survivals.size() == layers.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    check(report.survivals[layer].size() == report.fates[layer].size());
    for (const NeedleFate& fate : report.fates[layer]) {
      check_place(static_cast<std::int64_t>(layer), fate.slot);
      for (const LossEvent& event : fate.events) check(is_of(event.token, tokens.size()));
    }
  }
  for (const NeedleLoss& loss : report.verdict.losses) {
    check_place(loss.layer, loss.slot);
    check(is_of(loss.token, tokens.size()));
  }
  if (report.verdict.read) check_place(report.verdict.read->layer, report.verdict.read->slot);
}

/// Likewise tokens.
void check_report(const BranchReport& report) {
  const RunDifference& difference = report.difference;
  const std::size_t tokens = report.texts.size();
  check(difference.logits.size() == difference.kl.size());
  check(difference.from >= 0 && difference.from <= static_cast<std::int64_t>(tokens) &&
        difference.kl.size() <= tokens - static_cast<std::size_t>(difference.from));
  check(!difference.changed || (is_of(*difference.changed, tokens) && report.changed_before && report.changed_after));
  for (const BranchReport::States& states : report.states) check(is_of(states.token, tokens));
}

}  // namespace

STATESCOPE_FIELDS(TokenRange, begin, end)
template <class Archive>
void serialize(Archive& archive, LossEvent& x) {
  auto& [token, cause, lost] = x;
  remote::Choice known{cause, Loss::misroute};
  archive(token, known, lost);
}
STATESCOPE_FIELDS(NeedleFate, slot, head, written, kept, decayed, erased, overwritten, misrouted, events, read, read_share)
STATESCOPE_FIELDS(Survival, token, kept, decayed, erased, written)
STATESCOPE_FIELDS(NeedleSummary, readable, decayed, erased, overwritten, misrouted)
template <class Archive>
void serialize(Archive& archive, NeedleLoss& x) {
  auto& [layer, slot, head, cause, lost, token] = x;
  remote::Choice known{cause, Loss::misroute};
  archive(layer, slot, head, known, lost, token);
}
STATESCOPE_FIELDS(NeedleRead, layer, slot, head, share)
STATESCOPE_FIELDS(NeedleVerdict, summary, losses, read)
template <class Archive>
void serialize(Archive& archive, NeedleReport& x) {
  auto& [checkpoint, run, needle, text, question, fates, survivals, verdict, notes] = x;
  archive(checkpoint, run, needle, text, question, fates, survivals, verdict, notes);
  if constexpr (Archive::is_loading::value) check_report(x);
}
STATESCOPE_FIELDS(NeedleFound, report, remark)
STATESCOPE_FIELDS(NeedleJob, prompt, prompt_name, events)

STATESCOPE_FIELDS(RunDifference, from, logits, kl, changed, parted)
STATESCOPE_FIELDS(StateDifference, a, b, difference)
STATESCOPE_FIELDS(BranchReport::States, token, layers)
template <class Archive>
void serialize(Archive& archive, BranchReport& x) {
  auto& [before, after, only_before, only_after, answer_before, answer_after, expected, difference, states, stateful, texts, changed_before,
         changed_after] = x;
  archive(before, after, only_before, only_after, answer_before, answer_after, expected, difference, states, stateful, texts,
          changed_before, changed_after);
  if constexpr (Archive::is_loading::value) check_report(x);
}
STATESCOPE_FIELDS(Intervened, report, family, device, notes, remarks, recording, tokens, again_from)
STATESCOPE_FIELDS(InterveneJob, prompt, interventions, others, generate)

STATESCOPE_FIELDS(ModelFound::Program, text, layers)
template <class Archive>
void serialize(Archive& archive, ModelFound& x) {
  auto& [info, details, hidden, vocab, programs] = x;
  archive(info, details, hidden, vocab, programs);
  if constexpr (Archive::is_loading::value) check(details.size() == info.layers.size());
}
STATESCOPE_FIELDS(ModelJob, programs, layer, after_passes, one_token)

STATESCOPE_FIELDS(JobAsked, checkpoint, job)
template <class Archive, class Found>
void serialize(Archive& archive, JobDone<Found>& x) {
  auto& [note, found] = x;
  archive(note, found);
}

namespace remote {

template std::string pack(const JobAsked&);
template std::string pack(const JobDone<Intervened>&);
template std::string pack(const JobDone<NeedleFound>&);
template std::string pack(const JobDone<ModelFound>&);
template std::string pack(const JobDone<Inspected>&);
template std::string pack(const JobDone<FoundCheckpoints>&);
template std::string pack(const JobDone<std::vector<CellOutcome>>&);
template std::string pack(const CellOutcome&);
template JobAsked unpack(std::string_view);
template JobDone<Intervened> unpack(std::string_view);
template JobDone<NeedleFound> unpack(std::string_view);
template JobDone<ModelFound> unpack(std::string_view);
template JobDone<Inspected> unpack(std::string_view);
template JobDone<FoundCheckpoints> unpack(std::string_view);
template JobDone<std::vector<CellOutcome>> unpack(std::string_view);
template CellOutcome unpack(std::string_view);

}  // namespace remote
}  // namespace statescope
