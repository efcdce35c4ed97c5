// The needle: how much of what it wrote is left along the tokens, what took the rest and where, and what the question reads of it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "views/plot.h"
#include "views/view.h"

namespace statescope {

enum class NeedleMode { layers, places };  // whose curves are drawn: all layers', or the chosen layer's slots and heads

struct NeedleCurve {
  std::string name;           // "layer 2"; "partition 3, head 0"
  std::string group;          // which its colour stands for: "layer 2"; "partition 3"; of a layer with one memory "head 0"
  std::int64_t identity = 0;  // of its colour
  bool chosen = false;
  std::vector<float> kept;  // [tokens]
};

struct NeedleColor {
  std::int64_t identity = 0;
  std::string name;
};

/// What there is of it: clear, then the losses. In English; Views::tr makes the reader's of them.
extern const std::array<const char*, 5> kNeedleParts;

/// Parts of what the needle wrote to a layer; they add up to 1.
struct NeedleParts {
  std::string name;         // "layer 2"; "all layers"
  std::int64_t layer = -1;  // −1: all
  bool chosen = false;
  double clear = 0, decayed = 0, erased = 0, overwritten = 0, misrouted = 0;
  double read_share = 0;
  std::string read_where;  // of a layer: "partition 3, head 0"

  std::array<double, 5> values() const;  // in the order of kNeedleParts
};

struct NeedleCause {
  std::string what, where, token_text;  // "decay", in English; "layer 2, partition 3, head 0"; "the"
  double lost = 0;                      // of all that the needle wrote
  CursorMove go;
};

struct NeedleData {
  Message message;   // instead of all else
  std::string text;  // of the needle, as it reads
  std::int64_t begin = 0, end = 0, question = 0;
  TokenAxis tokens;  // end − 1 … question
  NeedleMode mode = NeedleMode::layers;
  std::int64_t layer = 0;           // the cursor's
  std::vector<NeedleCurve> curves;  // the chosen one last, so that it lies on top
  std::vector<NeedleColor> colors;  // of the curves, the chosen one's first
  std::int64_t hidden_curves = 0;   // of the layer's slots and heads
  std::vector<float> mean;          // [tokens] over the layers
  std::vector<NeedleParts> parts;   // all layers first
  std::vector<NeedleCause> causes;  // largest first
  std::vector<NeedleStory::Fall> falls;
};

/// The needle under the cursor, else the first one; the question is asked after the last token before the answer.
NeedleQuestion needle_question(const RunInfo& run, std::int64_t cursor_token);

NeedleData build_needle(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, NeedleMode mode);
/// "decay took 0.31, misrouting 0.2": without those below 0.005
std::string losses(const NeedleData& data);
/// The answer in a sentence.
std::string summary(const NeedleData& data);
void draw(const NeedleData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_needle();

}  // namespace statescope
