// Many figures at once: specs × checkpoints × prompts, each by a process of its own.
#pragma once

#include <filesystem>
#include <functional>
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
/// looked for first and its output lies. Throws Error where a file is missing or two figures would have one name.
std::vector<BatchJob> jobs_of(const Batch& batch, const std::filesystem::path& folder);

struct BatchResult {
  std::size_t made = 0, there = 0;  // there: already, and left alone
  std::vector<std::string> failed;  // "figure.pdf: why", in the order of the jobs
  bool cancelled = false;           // some were not begun
};

/// Runs `program figure --spec - --output … OPTIONS` for each job, `processes` at a time. What is there already is left alone unless
/// `replace`: a batch that was broken off goes on. `progress` hears how many are done, on any thread; false: no more are begun.
BatchResult run_batch(const std::vector<BatchJob>& jobs, const std::string& program, const std::vector<std::string>& options, int processes,
                      bool replace, const std::function<bool(std::size_t done)>& progress);

}  // namespace statescope
