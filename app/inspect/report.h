// What `statescope inspect` says: as text, as JSON, as one HTML page that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "engine/clinic/clinic.h"

namespace statescope {

/// One checkpoint and what it read.
struct Inspected {
  std::string checkpoint;
  std::string engine = {};              // options of the window that name the engine that has it; empty: this machine does
  std::int64_t trained = 0;             // the longest sequence of its training; 0: unknown
  std::int64_t steps = 0;               // of its training; 0: unknown
  std::vector<std::string> names = {};  // of the sequences; those of one kind follow one another and have the same
  std::vector<SequenceReport> sequences = {};
  /// Likewise: options of the window that read the sequence again, "--example 256 --number 2"; empty: nothing does. Of a checkpoint that is
  /// not finite, one: that of the sequence on which it showed.
  std::vector<std::string> reread = {};
  std::vector<std::string> notes = {};  // the model's
  Judgement judgement = {};
  std::string read_on = {};  // what the judgement holds for: "niah, 256, 1024, 2048 words"

  bool is_ill() const { return !judgement.diagnoses.empty(); }
};

/// "layers 1 and 2", "layer 0, head 3", "layer 0 (head 3), layer 2 (heads 0 and 1)"; empty where it is in no layer.
std::string place_text(const Diagnosis& found);
/// "routing collapse, layers 1 and 2; dead partition, layer 0"; empty without an illness.
std::string illnesses_text(const Inspected& inspected);
/// "ill: " and those, "healthy", "cannot say"
std::string verdict_in_short(const Inspected& inspected);

/// The verdict, then what tells most of each layer on one kind of sequence, the longest within the training length; `whole`: every figure
/// of every kind. Sequences of one name as their mean.
std::string inspection_text(const Inspected& inspected, bool whole);
/// Two checkpoints that have read the same sequences: both verdicts, then figures of both side by side, as above. Empty if they have not:
/// other names, or other numbers of layers.
std::string comparison_text(const Inspected& a, const Inspected& b, bool whole);
/// Many checkpoints, a line each: the course of a training where they are of one. Half-life and receptive field are the shortest of a
/// layer, |cos| of rows and the growth of a state's norm in a sequence's second half are of the layer that has most.
std::string overview_text(const std::vector<Inspected>& all);
/// Long format, a number a line: checkpoint, steps, sequence, tokens, layer, head or slot, quantity, value, and whether it is that ("=") or
/// at least that (">="); "inf" where nothing decays.
std::string inspection_csv(const std::vector<Inspected>& all);
/// Every sequence for itself; app/schemas/inspection.schema.json says what each number is.
std::string inspection_json(const std::vector<Inspected>& all);
/// All checkpoints side by side, then each in full. Light and dark as the reader prefers.
std::string inspection_html(const std::vector<Inspected>& all);

}  // namespace statescope
