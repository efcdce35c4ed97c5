// Where playing stops: predicates over a run and its routing, without a window.
#pragma once

#include <QString>
#include <optional>
#include <span>
#include <string>

#include "engine/snapshot.h"

namespace statescope {

struct Breakpoint {
  enum class Kind { token, needle, question, answer, text, partition, survival };
  Kind kind = Kind::token;
  std::int64_t number = 0;  // of the token or partition; percent of the needle
  std::string text;         // that begins there, in large or small letters
  bool enabled = true;

  bool operator==(const Breakpoint&) const = default;
};

/// "token 118", "partition 3 is chosen", "a needle begins", in the reader's language.
QString words_of(const Breakpoint& breakpoint);

/// Whether `text` begins within `token`, whatever its white space and its letters' case in ASCII; it may go on in the tokens that follow.
bool text_begins_at(const RunInfo& run, std::int64_t token, std::string_view text);

/// What the predicates may look at.
struct Known {
  const RunInfo& run;
  const Routing* routing = nullptr;  // of the layer that is shown; without it no partition is chosen
  std::int64_t kept_from = 0;
  std::span<const float> kept = {};  // of what the needle wrote, after token kept_from and those that follow; empty: not known
};

/// Where a needle, a question or an answer begins, and where a needle falls below a part, is one place each.
bool stops_at(const Breakpoint& breakpoint, const Known& known, std::int64_t token);

/// The first enabled one that stops there; null: none.
const Breakpoint* breakpoint_at(std::span<const Breakpoint> breakpoints, const Known& known, std::int64_t token);

/// The nearest token after (direction +1) or before (−1) `from` where a needle, question or answer begins, or a breakpoint stops.
std::optional<std::int64_t> next_stop(std::span<const Breakpoint> breakpoints, const Known& known, std::int64_t from, int direction);

}  // namespace statescope
