// What `statescope needle` says: as text, as JSON, as one HTML page that needs nothing else.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/analysis/needle_fate.h"
#include "engine/snapshot.h"

namespace statescope {

struct NeedleReport {
  std::string checkpoint;
  std::shared_ptr<const RunInfo> run;
  TokenRange needle;
  std::string text;                              // of the needle
  std::int64_t question = 0;                     // the token after which the answer is predicted
  std::vector<std::vector<NeedleFate>> fates;    // [layers]; empty where nothing was written to a matrix memory
  std::vector<std::vector<Survival>> survivals;  // of each of them
  NeedleVerdict verdict;
  std::vector<std::string> notes = {};  // the model's
};

/// All layers together, then each with `heads`, those that wrote most, and `events` of each.
std::string needle_text(const NeedleReport& report, std::size_t heads, std::size_t events);

/// {"format": "statescope-needle", "version": 1, "accuracy", "checkpoint", "needle": {"begin", "end", "text"}, "question",
///  "asked_by": {"begin", "end"} or null,
///  "verdict": {parts, "read": {"share", "layer", "slot", "head"} or null, "losses": [{"cause", "lost", place, "token", "text"}]},
///  "layers": [{"layer", "mixer", parts or null, "heads": [{place, "written", "kept", parts, "reads", "read_share",
///              "survival": {"tokens", "kept"}, "events": [{"cause", "lost", "token", "text"}]}]}]}
/// with parts "clear", "decay", "erasure", "overwriting", "misrouting" of 1 (needle_fate.h says of what), and place "layer", "slot" (its
/// name), "head". "survival": the part of what was written that is left after each visit from the needle's last one, where it is 1, to the
/// question. "heads" is empty where a layer has no matrix memory that the needle wrote to; the verdict's parts are null where none has.
std::string needle_json(const NeedleReport& report);
/// The verdict, a bar for every layer, then its heads.
std::string needle_html(const NeedleReport& report);

}  // namespace statescope
