// Results of inspections that outlive the process, so that a watch that is started again reads only what is new.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/inspect/arguments.h"
#include "app/inspect/report.h"

namespace statescope {

/// A file for each checkpoint, by what it holds and how it was read. What cannot be read back, or was changed, counts as not there.
class KeptResults {
 public:
  /// `reading`: everything else that a result depends on (reading_of).
  KeptResults(std::filesystem::path folder, std::string reading) : folder_(std::move(folder)), reading_(std::move(reading)) {}

  /// `checkpoint` names its content (name_of_content).
  std::optional<Inspected> find(const std::string& checkpoint) const;
  /// A folder that cannot be written to is no error: the result is worked out again another time.
  void keep(const std::string& checkpoint, const Inspected& inspected) const;
  /// Removes what was not used for a month.
  void forget_old() const;

 private:
  std::filesystem::path file(const std::string& checkpoint) const { return folder_ / (checkpoint + "-" + reading_); }

  std::filesystem::path folder_;
  std::string reading_;
};

/// Of the weights, the config and the tokenizer, and of what it says of its training. Reads every byte of them.
std::string name_of_content(const Checkpoint& checkpoint);
/// Of the prompts, lengths and device asked for, and of this very program. Empty where standard input is read.
std::string reading_of(const InspectArguments& arguments);
/// In the user's cache. Unset where the reading has no name, or settings are not kept either (STATESCOPE_NO_SETTINGS).
std::optional<KeptResults> kept_results(const InspectArguments& arguments);

}  // namespace statescope
