// Runs as commands ask about them: read by this program, or by an engine on another machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/common/checkpoint_facts.h"
#include "engine/findings/findings.h"

namespace statescope {

struct PromptArguments;

/// A prompt that has been read, with what was generated and changed.
class ReadRun {
 public:
  virtual ~ReadRun() = default;
  virtual const RunInfo& info() const = 0;
  /// Null if there is no such layer or token. A head beyond a layer's last is its last.
  virtual std::shared_ptr<const Snapshot> snapshot(std::int64_t layer, std::int64_t head, std::int64_t token) = 0;
  /// Of the question's Answer. Throws Error: in a line, why there is none; Cancelled.
  virtual std::shared_ptr<const void> find_out(const Question& question) = 0;
  /// Of each its answer, or why there is none. Throws Cancelled.
  virtual Findings find_all(const std::vector<Question>& questions);
  virtual NotFinite not_finite() = 0;
  /// The text of tokens together.
  virtual std::string decode(const std::vector<std::int32_t>& ids) = 0;

  template <class Q>
  typename Q::Answer answer(const Q& question) {
    return *static_cast<const typename Q::Answer*>(find_out(question).get());
  }
};

/// What reads them elsewhere. All throw Error.
class RunReader {
 public:
  /// How much has been read, 0 … 1. Returning false ends the work: it throws Cancelled.
  using Progress = std::function<bool(double fraction)>;

  virtual ~RunReader() = default;
  virtual CheckpointFacts facts(const std::string& checkpoint, bool digest) = 0;
  /// What the arguments name (load_prompt).
  virtual PromptInput prompt(const PromptArguments& arguments, const std::string& checkpoint) = 0;
  /// Also generates as much as the prompt says. `interventions`: a line each. The reader outlives the run.
  virtual std::unique_ptr<ReadRun> read(const std::string& checkpoint, const PromptInput& prompt,
                                        const std::vector<std::string>& interventions, const Progress& progress) = 0;
  /// What its models run on, as --device says it; known once it has told facts.
  virtual std::string device() const = 0;
};

}  // namespace statescope
