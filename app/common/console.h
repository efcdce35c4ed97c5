// What a command writes: notes, failures, reports, progress.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/file.h"

namespace statescope {

/// "note: …" on standard error, in one line whatever stands in it.
void print_note(const std::string& note);
void print_notes(const std::vector<std::string>& notes);
/// "statescope: …" on standard error, likewise: why a part of what was asked for is not there.
void print_failure(const std::string& why);

/// "standard output: cannot be written: No space left on device", of what has just failed.
[[noreturn]] void fail_standard_output();
/// Throws Error where not all that was printed has been written.
void finish_standard_output();

/// A file that is to be written when all is done, or standard output for "-"; none for an empty path. Throws Error at once where it could
/// not be.
class ReportFile {
 public:
  ReportFile(const std::string& path, bool force);
  void write(const std::string& text);
  /// The same in two steps, for several files that are there together or not at all.
  void prepare(const std::string& text);
  void publish();
  bool is_standard_output() const { return is_standard_output_; }

 private:
  std::optional<Draft> draft_;
  std::string text_;  // for standard output
  bool is_standard_output_ = false;
};

/// A report for people, on standard output where none of the files is that.
void print_report(const std::string& text, std::initializer_list<const ReportFile*> files);

/// A bar on the terminal's standard error; nothing where that is not a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `note` follows the percentage.
  void show(double fraction, const std::string& note = "");

 private:
  std::string what_;
  bool terminal_;
  int shown_ = -1;  // percent
};

}  // namespace statescope
