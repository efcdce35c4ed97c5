// Head-gate contest (SLA): which head may write a token, which one reads for it, and what passes between two tokens (spec §12.7).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "views/matrix.h"
#include "views/shading.h"

namespace statescope {

enum class GateMode { contest, over_time, flow, sharpness };

/// One of the two gates at the cursor's token.
struct GateNow {
  std::vector<float> gate;   // [H] probability
  std::vector<float> probe;  // [H] the same at λ; empty at λ = 1 and until it is known
  float entropy = 0, margin = 0;
  std::int64_t winner = 0;
};

struct HeadGatesData {
  Message message;  // of the empty state
  GateMode mode = GateMode::contest;
  std::int64_t layer = 0, heads = 0, chosen = 0;
  std::int64_t token = 0;  // whose gates are shown; −1: none yet
  double lambda = 1;
  TokenAxis tokens;                // the window
  GateNow q, k;                    // at `token`
  float flow = 0;                  // C_{t,t}
  std::optional<float> effective;  // relative change of the output if G^Q were 1 (A13); none: not known of this model
  // Along the window, of the run itself: [H, n], [n]
  std::vector<float> gate_q, gate_k, entropy_q, entropy_k, own_flow;
  std::vector<std::int32_t> winner_q, winner_k;
  // At λ: empty until known
  Pyramid map;                                               // C_{t,s}, NaN where s > t
  std::optional<Coloring> coloring;                          // of the map
  std::vector<float> lambdas, curve_q, curve_k, curve_flow;  // [m] of `token`

  std::int64_t place() const { return tokens.place_of(token); }
};

HeadGatesData build_head_gates(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, GateMode mode, double lambda,
                               const RangeChoice& range = {});
/// The answer in a sentence.
std::string summary(const HeadGatesData& data);
/// "λ = 2, a probe that changes nothing in the run"
std::string lambda_words(double lambda);
void draw(const HeadGatesData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_head_gates();

}  // namespace statescope
