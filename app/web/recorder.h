// Views of runs for a page, recorded token by token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/figure/runs.h"
#include "app/web/recorder_options.h"
#include "app/web/reel.h"

namespace statescope {

/// A view in its place, of a run's tokens from the first to the last.
struct RecordedView {
  std::string question, title, place;  // "What does the memory hold?", "State (Change)", "layer 1, head 0"
  std::string model;                   // the checkpoint's name
  Size size;
  std::int64_t first = 0, tokens = 0;
  std::string packed;  // Reel::packed
};

struct TokenPair {
  std::int64_t first = 0, last = 0;
};

/// Records the views of one page. Throws Error where they have no room in it, saying what would have.
class Recorder {
 public:
  Recorder(FigureRuns& runs, RecorderOptions options) : runs_(runs), options_(std::move(options)) {}

  /// Of so many views this page has, of which it says how far it is.
  void expect(std::size_t views) { expected_ = views; }
  /// Throws Error; Cancelled where the runs' progress says so. `shown`: the first and last token that a lesson shows it at; what takes much
  /// room is recorded around these alone, and it may say at each that there is nothing to show.
  RecordedView record(const FigurePanel& panel, std::optional<TokenPair> shown = {});
  const RecorderOptions& options() const { return options_; }
  FigureRuns& runs() { return runs_; }

 private:
  std::string recorded(FigurePanel panel, TokenPair tokens, bool may_be_empty);
  void check_room(std::size_t bytes, std::int64_t recorded, std::int64_t tokens) const;

  FigureRuns& runs_;
  RecorderOptions options_;
  std::size_t expected_ = 1, done_ = 0, bytes_ = 0;
};

/// As text of a page: four bytes are five letters.
constexpr std::size_t bytes_in_page(std::size_t bytes) { return (bytes + 3) / 4 * 5; }

}  // namespace statescope
