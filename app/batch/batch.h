// Many figures at once: specs × checkpoints × prompts, each by a process of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

struct Batch {
  std::vector<std::string> figures;      // spec files
  std::vector<std::string> checkpoints;  // each takes the place of the first one of every view; empty: the specs' own
  std::vector<std::string> prompts;      // likewise
  std::string output = "figures";        // a folder
  std::string format = "pdf";            // pdf, svg, png or eps
};

/// {"figures": […], "checkpoints": […], "prompts": […], "output": "…", "format": "pdf"}; the first has to be there. Throws Error
/// "name: …" in one line.
Batch parse_batch(std::string_view text, const std::string& name);

/// One figure: the spec as JSON, with all its files found, and where it goes.
struct BatchJob {
  std::string spec;
  std::filesystem::path output;
};

/// All combinations, named "SPEC-CHECKPOINT-PROMPT.FORMAT" after what there are lists of. `folder`: that of the batch, where its files are
/// looked for first and its output lies. `elsewhere`: checkpoints are called as an engine on another machine calls them, not looked for.
/// Throws Error where a file is missing or two figures would have one name.
std::vector<BatchJob> jobs_of(const Batch& batch, const std::filesystem::path& folder, bool elsewhere = false);

/// What became of one.
struct BatchOutcome {
  bool was_there = false;  // already, and left alone
  std::string failed;      // why; empty: it is there
};

struct BatchResult {
  std::size_t made = 0, there = 0;  // there: already, and left alone
  std::vector<std::string> failed;  // "figure.pdf: why", in the order of the jobs
  bool cancelled = false;           // some were not begun
};

/// Runs `program figure --spec - --output … OPTIONS`. What is there already is left alone unless `replace`: a batch that was broken off
/// goes on.
BatchOutcome make_figure(const BatchJob& job, const std::string& program, const std::vector<std::string>& options, bool replace);
/// Of outcomes in the order of the jobs; those that were not begun are unset.
BatchResult sum_of(const std::vector<BatchJob>& jobs, const std::vector<std::optional<BatchOutcome>>& outcomes);
/// Makes all figures, `processes` at a time. `progress` hears how many are done, on any thread; false: no more are begun.
BatchResult run_batch(const std::vector<BatchJob>& jobs, const std::string& program, const std::vector<std::string>& options, int processes,
                      bool replace, const std::function<bool(std::size_t done)>& progress);

}  // namespace statescope
