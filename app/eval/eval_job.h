// The cells of an evaluation, scored on one checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/common/job_site.h"
#include "app/eval/score.h"

namespace statescope {

/// A cell with what whoever asks has read for it: the program's own texts are where the work is done.
struct AskedCell {
  EvalCell cell;
  std::string text;             // that windows are cut from; empty: the program's prose, or no text's
  std::vector<Prompt> prompts;  // of a file
};

/// What came of a cell elsewhere; of the score all but which checkpoint and which cell it is of.
struct CellOutcome {
  std::optional<std::string> not_finite;  // why the checkpoint has no score
  CellScore score = {};
};

struct EvalJob {
  using Found = std::vector<CellOutcome>;  // of each cell, up to the first for which numbers are not finite
  std::vector<AskedCell> cells;
};
/// Throws Error, OptionsError for a cell that whoever asks has to read a file for.
EvalJob eval_job(const std::vector<PreparedCell>& cells);
/// `site.memory`: as --memory of eval. Throws Error, Cancelled.
std::vector<CellOutcome> do_job(const EvalJob& job, const JobSite& site);

/// Of all its examples together; about, where a file's prompts or needles in real text are read.
std::int64_t planned_tokens(const PreparedCell& cell);

}  // namespace statescope
