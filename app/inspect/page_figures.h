// Figures of an inspection's page: small SVGs that need nothing else.
#pragma once

#include <span>
#include <string>

#include "app/inspect/figures.h"
#include "engine/clinic/collapse_report.h"

namespace statescope {

/// Norm, mean, variance and largest number of every layer's state by position, with a line at the training length (0: unknown). Empty
/// where the sequence is too short for eighths.
std::string drift_figure(const SequenceReport& report, std::int64_t trained_length);
/// Perplexity, rank, load entropy and growth by step, a dot a checkpoint. Empty without two checkpoints of different steps.
std::string trend_figure(std::span<const InspectionOverview> all);
/// A dot a head: effective rank of its state, by layer. Empty without states.
std::string rank_figure(const SequenceReport& report);
/// From the shortest to the longest half-life of a layer's channels, on a scale of powers of ten. Empty where nothing decays.
std::string half_life_figure(const SequenceReport& report);

}  // namespace statescope
