// What a lesson may say of a run: a closed set of named quantities, each computed from the checkpoint, with the place where it is read.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "views/view.h"

namespace statescope {

/// A token by what it is to the prompt: "needle.last + 1".
struct TokenPlace {
  enum class Anchor { first, last, needle_first, needle_last, question_first, question_last, answer_first, answer_last };
  Anchor anchor = Anchor::first;
  std::int64_t offset = 0;

  bool operator==(const TokenPlace&) const = default;
};

/// Throws Error where the text is not one.
TokenPlace parse_token_place(std::string_view text);
/// Nothing where the run has no such part, or ends before.
std::optional<std::int64_t> token_of(const TokenPlace& place, const RunInfo& run);

struct QuantityRow;

/// "norm layer=2 slot=shared token=needle.last": a row of the table, and where it is read. What is not said is that of the cursor.
struct Quantity {
  const QuantityRow* row = nullptr;
  std::optional<std::int64_t> layer, head;
  std::optional<std::string> slot;
  std::optional<TokenPlace> token, from;
  double lambda = 1;
  bool of_beside = false;  // of the model beside the run shown, "of=beside"
};

/// Throws Error, naming what is wrong and what there is.
Quantity parse_quantity(std::string_view text);

/// A quantity's place in one run.
struct QuantityPlace {
  std::int64_t layer = 0, head = 0, slot = 0, token = 0;
  std::int64_t from = 0;  // where a stretch of tokens begins
  double lambda = 1;      // of the head gates' logits
};

struct Measured {
  double number = std::numeric_limits<double>::quiet_NaN();
  std::string text;   // as a reader sees it; where nothing could be measured, why
  bool known = true;  // it could be
};

struct QuantitySource {
  const RunInfo& run;
  const Snapshot* snapshot;  // of the quantity's layer, at its token or later; null where it needs none
  const Findings& findings;
  const QuantityPlace& at;
};

struct QuantityRow {
  std::string_view name;
  std::string_view meaning;  // for the list of them: "share of the tokens so far that went to the partition"
  std::string_view takes;    // which of layer, head, slot, token, from and lambda it is read at
  /// What it asks of the run; null: it is known from the run or its snapshot.
  std::optional<Question> (*question)(const RunInfo& run, const QuantityPlace& at) = nullptr;
  Measured (*measure)(const QuantitySource& source) = nullptr;
  bool from_snapshot = false;  // of the layer that is shown
};

/// All of them, in the order of the list in assets/lessons/README.md.
std::span<const QuantityRow> quantities();

/// Nothing where the run has no such layer, head, slot or token.
std::optional<QuantityPlace> place_of(const Quantity& quantity, const RunInfo& run, const Cursor& cursor);

/// From the findings, where its question has been answered or refused, or from the snapshot.
Measured measure(const Quantity& quantity, const QuantitySource& source);

}  // namespace statescope
