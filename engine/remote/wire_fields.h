// How what runs and snapshots are made of travels.
#pragma once

#include <algorithm>
#include <array>

#include "engine/remote/wire_archive.h"
#include "engine/run/not_finite.h"

namespace statescope {

template <class Archive>
void serialize(Archive& archive, Accuracy& x) {
  auto& [kind, how, bound, of] = x;
  remote::Choice known{kind, Accuracy::Kind::approximate};
  std::string how_text(how), of_text(of);
  archive(known, how_text, bound, of_text);
  if constexpr (Archive::is_loading::value) {
    // The texts outlive every message: they are those of this program.
    constexpr std::array texts{std::string_view{}, kReplayed.how, kRecomputed.how, RankSeries::accuracy.of};
    const auto own = [&](const std::string& text) {
      const auto found = std::ranges::find(texts, std::string_view(text));
      if (found == texts.end()) throw remote::WireError("a message has an accuracy that this version does not know");
      return *found;
    };
    how = own(how_text);
    of = own(of_text);
  }
}

STATESCOPE_FIELDS(LayerInfo, mixer, memory, recurrence, row_name, column_name, slot_names, heads, rows, columns, partitions,
                  has_shared_slot, head_gates, attention_heads, experts, chosen_experts, device)
STATESCOPE_FIELDS(ModelInfo, name, family, device, parameters, weight_bytes, trained_length, layers, placement, notes)
STATESCOPE_FIELDS(TokenInfo, id, text)
STATESCOPE_FIELDS(BranchInfo, number, parent, from, interventions)
STATESCOPE_FIELDS(RecordingInfo, keyframe_interval, memory, memory_budget, host, host_budget, file)
STATESCOPE_FIELDS(RunInfo, model, tokens, spans, prompt_length, expected, branch, recording)
STATESCOPE_FIELDS(Prediction, id, text, probability)
STATESCOPE_FIELDS(ChatTurn, role, text, spans)
STATESCOPE_FIELDS(PromptInput, text, spans, ids, expected, generate, in_chat, turns)
STATESCOPE_FIELDS(RunPlace, layer, head, token, views)
STATESCOPE_FIELDS(BranchTree, prompt, checkpoint, session, runs, current, redo)
STATESCOPE_FIELDS(ScaleState, partition, head, row, factor)
STATESCOPE_FIELDS(ImportState, run, token)
STATESCOPE_FIELDS(ReplaceToken, id)
STATESCOPE_FIELDS(ScaleDecay, factor)
STATESCOPE_FIELDS(ChangeTopK, writers, readers)
STATESCOPE_FIELDS(ForceRouting, partitions)
STATESCOPE_FIELDS(SharpenGates, lambda)
STATESCOPE_FIELDS(Intervention, change, at, until, layer)
STATESCOPE_FIELDS(NotFiniteWeight, tensor, element, value)

template <class Archive>
void serialize(Archive& archive, TokenSpan& x) {
  auto& [kind, begin, end] = x;
  remote::Choice known{kind, SpanKind::answer};
  archive(known, begin, end);
}
template <class Archive>
void serialize(Archive& archive, TextSpan& x) {
  auto& [kind, begin, end] = x;
  remote::Choice known{kind, SpanKind::answer};
  archive(known, begin, end);
}

template <class Archive>
void serialize(Archive& archive, Routing& x) {
  auto& [partitions, gate, selected] = x;
  archive(partitions, gate, selected);
  remote::check_sizes(gate.size(), {x.tokens(), partitions});
  remote::check_sizes(selected.size(), {x.tokens(), partitions});
}
template <class Archive>
void serialize(Archive& archive, LayerState& x) {
  auto& [slots, heads, rows, columns, values] = x;
  archive(slots, heads, rows, columns, values);
  remote::check_sizes(values.size(), {slots, heads, rows, columns});
}
template <class Archive>
void serialize(Archive& archive, HeadState& x) {
  auto& [slots, heads, rows, columns, values, on_device] = x;  // the device's own stays there
  archive(slots, heads, rows, columns, values);
  remote::check_sizes(values.size(), {slots, rows, columns});
}
template <class Archive>
void serialize(Archive& archive, Snapshot& x) {
  auto& [run, layer, head, token, state, before, routing, predictions, accuracy] = x;  // run and routing travel by themselves
  archive(layer, head, token, state, before, predictions, accuracy);
}

}  // namespace statescope
