// What several views share: type sizes, words for numbers and tokens, and the small things they draw alike.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "views/view.h"

namespace statescope {

/// Heights of the em at 1×.
inline constexpr float kSmallType = 11, kBodyType = 13, kTokenType = 16;

TextStyle label(const Frame& frame, float size, Color color, Align align = Align::left, bool bold = false);
TextStyle value(const Frame& frame, float size, Color color, Align align = Align::left, bool bold = false);

/// The layer of the snapshot, or null while there is none.
const LayerInfo* layer_of(const Snapshot& snapshot);

/// "anna", with white space made visible (␣ ⏎ ⇥), control characters and broken UTF-8 as \x1b.
std::string visible_text(std::string_view text);
/// The same with white space as it is: text of models and prompts for a terminal, which takes no command from it.
std::string printable_text(std::string_view text);
std::string visible_token(const RunInfo& run, std::int64_t token);
/// "“␣anna” (29)"
std::string numbered_token(const RunInfo& run, std::int64_t token);
/// Whether the prompt's maker has marked it as part of a needle.
bool is_needle(const RunInfo& run, std::int64_t token);
/// "8 1 5 4": what was generated, as far as an answer is expected; else the first of it.
std::string answer_text(const RunInfo& run);
/// Unset where nothing is expected, or less has been generated.
std::optional<bool> answer_is_right(const RunInfo& run);

/// `digits` significant digits.
std::string number(float value, int digits);
/// Of a probability: "0.91", "0.00022".
std::string chance(float probability);
/// "1 token", "12 tokens"
std::string tokens_text(std::int64_t count);
std::string heads_text(std::int64_t count);
/// Of a model's layers those that are so, ascending.
/// "The nearest layer that does is layer 3."
std::string nearest_layer(const Snapshot& snapshot, const std::function<bool(const LayerInfo&)>& is);
std::vector<std::int64_t> layers_that(const ModelInfo& model, const std::function<bool(const LayerInfo&)>& are);
/// "layers 0, 2 and 5"; `none` when the list is empty.
std::string layer_list(const std::vector<std::int64_t>& layers, std::string_view none);

/// Identity of slot `slot`: 0 for the shared one (or the only one), n for partition n.
std::int64_t slot_identity(const LayerInfo& layer, std::int64_t slot);
/// "shared", "3": as the layer names it.
std::string slot_name(const LayerInfo& layer, std::int64_t slot);
/// "shared", "partition 3".
std::string slot_title(std::int64_t identity, std::string_view name);

std::string joined(const std::vector<std::string>& parts, std::string_view separator);

/// "Layer 2": begins like a sentence where its first letter is one of a to z.
std::string capitalized(std::string text);

/// Accuracy::text and Accuracy::name in the reader's language.
std::string accuracy_words(const Accuracy& accuracy);
std::string accuracy_name(const Accuracy& accuracy);

/// Of `count` things only `capacity` fit: which to show, ascending. The important ones come first, then the lowest numbers.
std::vector<std::int64_t> choose_shown(std::int64_t count, std::int64_t capacity, const std::vector<bool>& important);

/// The text, or as much of it as fits into `width` with an ellipsis, numbers whole or not at all; empty if not even that fits.
std::string elided(const Canvas& canvas, std::string_view text, const TextStyle& style, float width);
/// `text` if it fits, else `shorter`.
std::string_view fitting(const Canvas& canvas, std::string_view text, std::string_view shorter, const TextStyle& style, float width);
/// Draws `text` elided to `width`; `at` as in Canvas::text.
void fitted_text(Canvas& canvas, Point at, std::string_view text, const TextStyle& style, float width);
/// A view's sentence: as many of its clauses as fit, with smaller type where the first of them does not; then elided. `at_commas`: it may
/// end there, too.
void clauses_text(Canvas& canvas, Point at, std::string_view text, TextStyle style, float width, bool at_commas = false);
/// As fitted_text for a token's text, which may be of any length: it is whole enough with an ellipsis.
void token_text(Canvas& canvas, Point at, std::string_view text, const TextStyle& style, float width);
/// Lines of at most `width`, broken at spaces.
std::vector<std::string> wrapped(const Canvas& canvas, std::string_view text, const TextStyle& style, float width);
/// An empty view: what is missing and what would fill it, in the middle of the area.
void draw_message(Canvas& canvas, Rect area, const Frame& frame, std::string_view headline, std::string_view detail);

/// How what the prompt's maker marked is told apart: by a letter, by a word and by colour.
struct MarkStyle {
  std::string_view letter;
  const char* name;  // in English
  Color color;
};
MarkStyle span_style(SpanKind kind, const Theme& theme);

/// Shrinks a rectangle by `margin` on every side.
Rect inset(Rect rect, float margin);

}  // namespace statescope
