// What `statescope inspect` says: as text, as JSON, as one HTML page that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "engine/analysis/collapse_report.h"

namespace statescope {

/// One checkpoint and what it read.
struct Inspected {
  std::string checkpoint;
  std::int64_t trained = 0;  // the longest sequence of its training; 0: unknown
  std::int64_t steps = 0;    // of its training; 0: unknown
  std::vector<std::string> names;
  std::vector<SequenceReport> sequences;
};

std::string inspection_text(const Inspected& inspected);
/// Two checkpoints that have read the same sequences: every figure of both and its difference, side by side. Empty if they have not: other
/// names, or other numbers of layers.
std::string comparison_text(const Inspected& a, const Inspected& b);
/// {"format": "statescope-inspection", "version": 1, "accuracy": accuracy_json(), "checkpoints": [{"checkpoint", "trained_length", "steps",
/// "sequences": [SequenceReport with its "name"], "verdicts"}]}; see collapse_report.h.
std::string inspection_json(const std::vector<Inspected>& all);
/// All checkpoints side by side, then each in full. Light and dark as the reader prefers.
std::string inspection_html(const std::vector<Inspected>& all);

}  // namespace statescope
