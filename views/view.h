// A view: a question about the memory, plain data that answers it, and a drawing of that data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/findings/findings.h"
#include "engine/snapshot.h"
#include "views/canvas.h"
#include "views/sheet.h"

namespace statescope {

/// What the user looks at; the same for all views.
struct Cursor {
  std::int64_t token = 0;
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::int64_t slot = 0;  // of the state: partition
  std::int64_t row = -1;  // the cell under the pointer or chosen by key; −1: none; views/chosen.h: a row, all rows
  std::int64_t column = -1;
  std::int64_t reference = -1;  // the token to compare with; −1: none
  /// Of a played step: 0 … 1 while it moves, 1 at rest. Moves positions and opacity only, never values.
  float progress = 1;
};

/// The colours of one theme, made once per frame.
struct Theme {
  Color ground, panel, ink, faint, line, accent, needle, question, answer;
  bool dark = false;
};
Theme light_theme();
Theme dark_theme();
/// White, yellow and black: every text has a contrast of 7 : 1 or more.
Theme high_contrast_theme();

/// Okabe–Ito colour number `index` for partitions, heads and models: the same everywhere, always beside a letter or number.
Color identity_color(std::int64_t index, const Theme& theme);

/// What paper and pages may have otherwise than the window.
struct Shown {
  bool captions = true;                  // a view's sentences, numbers beside its drawing, the cursor's own lines
  bool marks = true;                     // needle spans, borders of partitions, the training length
  bool color_bars = true;                // their place stays
  bool bar_room = true;                  // false: not even that, for one bar of several drawings stands elsewhere
  bool hints = true;                     // what the pointer and keys of the window would do
  bool fills = false;                    // a picture takes the room there is, though its cells are not square then
  bool cursor = true;                    // what is chosen stands out, and a bar says which part of the text is in sight
  float ticks = 1;                       // how densely they stand, of the usual
  std::vector<std::int64_t> found = {};  // tokens in which a search has found its words, ascending: they stand out in the text
};

/// Plain numbers a drawing needs and every view shares, computed once per frame.
struct Frame {
  Theme theme;
  float scale = 1;  // of type and spacing: 1 … 3
  Shown shown = {};
  Rect in_sight{0, 0, 1, 1};  // which part of their data plots show, of its whole width and height
};

/// A number that the reader may turn above a view, such as λ of the head gates.
struct Knob {
  std::string_view name;  // "λ"
  std::string_view help;  // what it does, in a sentence
  double low = 0, high = 1, value = 0;
  bool logarithmic = false;
};

/// Which numbers the colours of a heatmap span; logarithmic: low > 0, for magnitudes.
struct ColorRange {
  float low = 0, high = 1;
  bool logarithmic = false;
  bool operator==(const ColorRange&) const = default;
};

/// How the reader wants them chosen.
struct RangeChoice {
  enum class Fit {
    own,    // as the view does: round, or the quantity's own bounds
    full,   // from the least to the largest number
    most,   // without the lowest and the highest hundredth
    fixed,  // as given
  };
  Fit fit = Fit::own;
  float low = 0, high = 1;  // of `fixed`
  bool logarithmic = false;
  bool operator==(const RangeChoice&) const = default;
};

/// The numbers that a view gives colours to: what the control of their range shows.
struct Shading {
  ColorRange range;                   // as drawn
  bool is_signed = false;             // the colours are symmetric about 0
  float least = 0, most = 0;          // of the finite numbers
  std::vector<float> numbers;         // ascending: of the finite ones at most 4096, evenly, both ends among them
  std::int64_t count = 0;             // finite ones
  std::int64_t below = 0, above = 0;  // of those: beyond the range, drawn in its first and last colour
};

/// One instance per place on the stage. `build` is pure in its arguments, mode and knob, and may run off the interface thread; `draw` does
/// no arithmetic worth testing. A view keeps only the data it last built.
class View {
 public:
  virtual ~View() = default;

  /// What beyond the snapshot it wants to know there, the most urgent first. It is built without, and again whenever an answer has come.
  virtual std::vector<Question> questions(const Snapshot& /*snapshot*/, const Cursor& /*cursor*/) const { return {}; }
  virtual void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings = {}) = 0;

  /// Whether, looked at in this way, it compares with another model: it is then built with Findings::peer.
  virtual bool compares() const { return false; }
  /// Whether it is built with Findings::beside: it shows something of those models, too, or has its colours in common with them.
  virtual bool looks_beside() const { return compares(); }
  /// What it wants to know of that other model, which is at `peer`. `snapshot` as in `questions`, `own` what is known of those by now: it
  /// is asked again whenever an answer to one has come.
  virtual std::vector<Question> peer_questions(const Snapshot& /*snapshot*/, const Findings& /*own*/, const Snapshot& /*peer*/,
                                               const Cursor& /*cursor*/) const {
    return {};
  }

  /// Ways to look at it, chosen above it; empty: one alone.
  virtual std::span<const std::string_view> modes() const { return {}; }
  std::size_t mode() const { return mode_; }
  void set_mode(std::size_t mode) { mode_ = mode; }
  virtual std::optional<Knob> knob() const { return {}; }
  virtual void turn(double /*value*/) {}

  /// Of its heatmap as last built; empty: it has none.
  virtual std::optional<Shading> shading() const { return {}; }
  const RangeChoice& range() const { return range_; }
  /// Comes into force with the next building.
  void set_range(const RangeChoice& range) { range_ = range; }

  /// Draws the body into `area`; the title is drawn by the caller.
  virtual void draw(Canvas& canvas, Rect area, const Frame& frame) const = 0;
  /// The numbers of the last building as they are drawn; none where it has only a message. They point into this view: not to be kept.
  virtual std::vector<Sheet> sheets() const = 0;
  /// One sentence: what is shown now.
  virtual std::string sentence() const = 0;

  // Of the sheets:
  std::vector<Array> arrays() const;
  Table table() const;
  std::vector<Table> tables() const;
  /// For the screen reader: the sentence, and what stands under the cursor.
  std::string describe() const;
  /// What stands under the pointer, exactly, and where the number comes from; `hit` is of the last drawing. Empty: nothing to say.
  std::string tooltip(const Hit& hit) const;
  /// The number or text there, alone; without `hit` that under the cursor. Empty: there is none.
  std::string value(const std::optional<Hit>& hit) const;
  /// What choosing the place of the last drawing does.
  CursorMove on_hit(const Hit& hit) const;

  /// A prompt that choosing the region opens; empty: none.
  virtual std::optional<NeedleExample> example(const Hit& /*hit*/) const { return {}; }
  /// It has been chosen.
  virtual void set_mark(const Hit& /*hit*/) {}
  /// Moves the mark among cells of the view's own, not those of a state; false: it has none.
  virtual bool step_mark(std::int64_t /*rows*/, std::int64_t /*columns*/) { return false; }
  /// The place under the mark.
  virtual std::optional<Hit> marked() const { return {}; }

 private:
  std::size_t mode_ = 0;
  RangeChoice range_;
};

/// Of what a view's numbers are, or most of them: of the run, of a layer, of a head of it, or of one state of that head.
enum class ShownPlace { run, layer, head, state };

/// A row of the catalogue.
struct ViewRow {
  std::string_view id;        // stable: command line, settings
  std::string_view title;     // "Partition routing"
  std::string_view question;  // "Which partition does each token write to?"
  std::string_view help;      // names the equation and its source
  std::unique_ptr<View> (*make)();
  ShownPlace place;
};

/// All views, in the order of the menu (catalogue.cpp).
std::span<const ViewRow> view_catalogue();

}  // namespace statescope
