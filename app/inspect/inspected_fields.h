// How an inspection travels: to another process, to a file, from an engine on another machine.
#pragma once

#include <cereal/types/array.hpp>
#include <cereal/types/utility.hpp>

#include "app/inspect/inspecting.h"
#include "engine/remote/wire_fields.h"

namespace statescope {

/// Whether its parts fit together, as whoever tells of it takes for granted.
bool is_whole(const Inspected& inspected);

STATESCOPE_FIELDS(Remembrance, dropped, change)
STATESCOPE_FIELDS(Predicting, nll, unigram, asked, entropy, uniform)
STATESCOPE_FIELDS(Moments, tokens, norm, mean, variance, largest)
STATESCOPE_FIELDS(Competition, entropy_of_mean, mean_entropy, winner)
STATESCOPE_FIELDS(Balance, frequency, probability, load, variation, loss)
STATESCOPE_FIELDS(UnevenLoads, dead, overloaded)
STATESCOPE_FIELDS(RoutingReport, balance, uneven, load_entropy, token_entropy, margin)
STATESCOPE_FIELDS(SlotReport, name, norm, load, half_life, receptive_field, censored, longest, shortest)
STATESCOPE_FIELDS(RowSimilarity, mean_abs, within, between, min_cosine, zero_rows)
STATESCOPE_FIELDS(Spectrum, entropy, rank, rank_of_squares)
STATESCOPE_FIELDS(StateSimilarity, rows, stacked, partitions, statistic)
STATESCOPE_FIELDS(LayerReport, mixer, memory, residual_norm, norm_by_eighth, moments, outlier, heads, slots, routing, read_effect,
                  heads_read_effect, heads_norm, heads_likeness, heads_same_reads, likest_heads, likest, longest_half_life,
                  shortest_half_life, longest_median, shortest_median, writing, reading, full_rank)
STATESCOPE_FIELDS(SequenceReport, tokens, remembrance, nll_by_eighth, predicting, all_reads_effect, layers)
STATESCOPE_FIELDS(Judgement, diagnoses, cannot_say)

template <class Archive>
void serialize(Archive& archive, Diagnosis& x) {
  auto& [illness, ill, layers, heads, heads_by_layer, evidence, sentence] = x;
  remote::Choice known{illness, Illness::length_drift};
  archive(known, ill, layers, heads, heads_by_layer, evidence, sentence);
}
template <class Archive>
void serialize(Archive& archive, Inspected& x) {
  auto& [checkpoint, engine, trained, steps, names, sequences, reread, notes, judgement, read_on] = x;
  archive(checkpoint, engine, trained, steps, names, sequences, reread, notes, judgement, read_on);
  if constexpr (Archive::is_loading::value) {
    if (!is_whole(x)) throw remote::WireError("a message has an inspection whose parts do not fit together");
  }
}

STATESCOPE_FIELDS(InspectText, name, prompt, reread)
STATESCOPE_FIELDS(InspectJob, steps, texts, lengths, samples, reread_with)
STATESCOPE_FIELDS(FoundCheckpoint, path, steps)
STATESCOPE_FIELDS(FoundCheckpoints, checkpoints, skipped)
template <class Archive>
void serialize(Archive&, FindJob&) {}

}  // namespace statescope
