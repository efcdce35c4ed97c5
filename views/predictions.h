// Predictions: what the model takes for the next token, how sure it was of what came, and what became of the right answer's tokens.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "views/plot.h"
#include "views/view.h"

namespace statescope {

enum class PredictionsMode { probabilities, logits, other_model };  // the last: predictions_beside.h

struct PredictionBar {
  std::int32_t id = 0;
  std::string text;  // white space made visible
  float probability = 0;
  bool follows = false;  // it is the next token of the run
  bool right = false;    // it is what the right answer says next
};

/// One token's number along the window.
struct TokenCurve {
  std::int32_t id = 0;
  std::string text;
  std::vector<float> values;  // [tokens]: probabilities, or logits
};

/// A token of the right answer where it is due.
struct RightToken {
  std::int64_t place = 0;  // on the token axis: that of the token before it
  std::string text;
  float probability = 0;
};

struct PredictionsData {
  Message message;  // instead of all else
  PredictionsMode mode = PredictionsMode::probabilities;
  std::int64_t token = 0;  // whose predictions the bars are
  std::string token_text;
  std::vector<PredictionBar> bars;         // most probable first
  bool not_finite = false;                 // what the model computes there is NaN or infinite: no bars
  Message curves_message;                  // instead of the curves
  TokenAxis tokens;                        // the window
  bool window = false;                     // the run is longer
  std::vector<float> next, rank, entropy;  // [tokens] probability of the token that follows; 1 + how many are more probable; nat
  std::vector<TokenCurve> curves;          // of the right answer's tokens, or of the most probable ones at the cursor
  bool of_answer = false;                  // the former
  std::vector<RightToken> right;
  double answer = std::numeric_limits<double>::quiet_NaN();  // Π of `right`, where the run says all of the right answer
};

/// Ids of the right answer: what is expected, else what the prompt's maker marked; each once, at most six.
std::vector<TokenInfo> answer_tokens(const RunInfo& run);

/// What the right answer says after `token`; null: nothing is due there.
const TokenInfo* due_after(const RunInfo& run, std::int64_t token);

std::string marks_of(const PredictionBar& bar);

PredictionsData build_predictions(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, PredictionsMode mode);
void draw(const PredictionsData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_predictions();

}  // namespace statescope
