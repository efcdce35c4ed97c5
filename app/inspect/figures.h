// What both forms of an inspection are made of: sequences of one kind as their mean, and figures of a layer and of a checkpoint.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "app/inspect/report.h"

namespace statescope {

/// Sequences of one name, as their mean.
struct InspectedKind {
  std::string name;  // "niah, 256 words; mean of 3"
  SequenceReport report;
  std::size_t first = 0;  // of Inspected::sequences
};
/// In their order; where there is no mean of all of one name, each for itself.
std::vector<InspectedKind> kinds_of(const Inspected& inspected);

/// Means over a layer's heads, of which it has some.
double mean_entropy(const LayerReport& layer);
double mean_rank(const LayerReport& layer);
double mean_cosine(const LayerReport& layer);
double mean_within(const LayerReport& layer);   // one partition's rows
double mean_between(const LayerReport& layer);  // rows of different partitions

/// A number, or what it is at least.
struct Bounded {
  double value = NAN;  // NaN: there is none
  bool at_least = false;
  Bounded(double exact) : value(exact) {}  // NOLINT(google-explicit-constructor): most are exact
  Bounded(double bound, bool is_at_least) : value(bound), at_least(is_at_least) {}
};
/// "149", "≥ 163", "∞", or a dash; `format` null: as short_number.
std::string bounded_cell(const Bounded& number, const char* format = nullptr);
/// Of b − a: "+4", "≥ 4" where b is at least, "≤ 4" where a is; a dash where nothing can be said.
std::string difference_cell(const Bounded& a, const Bounded& b, const char* format);

/// Of a layer's first slot, which is the shared one where there is one.
Bounded half_life_of(const LayerReport& layer);
/// At least that where for some of its channels and tokens it reaches back to the first one.
Bounded receptive_field_of(const LayerReport& layer);

/// Of its slots.
double largest_norm(const LayerReport& layer);
/// "1 low, 3 middle": how many heads are of which class of rank.
std::string head_classes(std::span<const LayerReport> layers);
/// "2, 3"; "none"
std::string partitions_text(const std::vector<std::int64_t>& partitions);

/// A checkpoint in a line, of all its sequences.
struct InspectionOverview {
  struct End {
    std::int64_t tokens = 0;
    double perplexity = 0;  // in the last eighth
  };
  std::string name, series;              // series: the name without the step, the same for all of one training
  std::int64_t steps = 0;                // 0: unknown
  std::vector<End> ends;                 // of each kind that has one
  std::string verdict;                   // verdict_in_short
  double spread = NAN;                   // the least load entropy of a layer
  double rank = NAN;                     // the least relative rank of a layer
  std::string dead, heads;               // dead partitions by layer; heads by class of rank, of all layers
  Bounded half_life = NAN, width = NAN;  // the shortest of a layer: half-life, receptive field
  double likeness = NAN, growth = NAN;   // of the worst layer: mean |cos| of rows; state norm at the end over that in the middle

  explicit InspectionOverview(const Inspected& inspected);
};

}  // namespace statescope
