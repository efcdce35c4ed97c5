// The text, token after token: where the cursor stands, what the prompt's maker marked, and which partition each token was routed to.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "views/view.h"

namespace statescope {

/// Below the text: which partitions one model's tokens were routed to.
struct TokenLane {
  std::string letter;  // of the model, where another one has a lane too
  std::shared_ptr<const Routing> routing;
  std::int64_t layer = 0;
  std::int64_t until = 0;  // the last token whose routing is shown: the one before while the cursor's token still moves

  /// "partition", "partition B"
  std::string name() const;
};

struct TokenStripData {
  std::shared_ptr<const RunInfo> run;  // null: nothing has been read yet
  std::int64_t token = 0;              // the cursor, within the run
  std::vector<TokenLane> lanes;        // of models whose layer routes
  std::int64_t reference = -1;         // the token that is compared with; −1: none

  std::int64_t tokens() const { return run ? static_cast<std::int64_t>(run->tokens.size()) : 0; }
};

/// Tokens [begin, end) in one line of the strip.
struct TokenLine {
  std::int64_t begin = 0, end = 0;
  bool operator==(const TokenLine&) const = default;
};

/// With a lane of each model beside it that routes, as far as it has read the same tokens.
TokenStripData build_token_strip(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings = {});
void draw(const TokenStripData& data, Canvas& canvas, Rect area, const Frame& frame);

/// What is special about a token: the prompt's maker marked it, the model wrote it, or both.
struct Mark {
  std::optional<SpanKind> span = {};
  bool generated = false;

  bool any() const { return span || generated; }
  bool operator==(const Mark&) const = default;
};
Mark mark_of(const RunInfo& run, std::int64_t token);

/// "needle, compared with (D)": all that is special about it.
std::string mark_words(const TokenStripData& data, std::int64_t token);

/// The partitions `token` was routed to: "2", "1 3"; empty where that is not shown.
std::string partitions_text(const TokenLane& lane, std::int64_t token);

/// Up to `count` lines around the cursor's line. Lines break where the width is full and before every 256th token, so where a line breaks
/// does not depend on the cursor, and no more than the neighbourhood is ever measured. A token that `goes_on` stays in the line of the one
/// before it, if that leaves the line something.
std::vector<TokenLine> lines_around(
    std::int64_t tokens, std::int64_t cursor, float width, std::int64_t count, const std::function<float(std::int64_t)>& token_width,
    const std::function<bool(std::int64_t)>& goes_on = [](std::int64_t) { return false; });

std::unique_ptr<View> make_token_strip();

}  // namespace statescope
