// The memory itself: the K × V matrix of the chosen slot and head, the other slots beside it, what the last token changed, one exact value
// and who wrote it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "views/chosen.h"
#include "views/history.h"
#include "views/view.h"

namespace statescope {

/// Which matrix is shown of S_t = S_{t−1} + decay + erase + write; here as of the gated delta rule.
enum class StateMode {
  state,       // S_t
  change,      // S_t − S_{t−1}
  decay,       // (α − 1) S_{t−1}
  erase,       // −β kᵀ(k α S_{t−1}), of the delta rule
  write,       // kᵀv, of the delta rule β kᵀv
  difference,  // S_t − S_r, r the token to compare with
  other_model  // S_t − S'_t, S' of the model beside this one
};

/// One slot's matrix of the chosen head, [K, V] row-major.
struct SlotMatrix {
  std::int64_t slot = 0;
  std::int64_t identity = 0;
  std::string name;                             // "shared", "3"
  std::vector<float> values;                    // as shown
  std::shared_ptr<const DeviceRows> on_device;  // where these values are too, in mode `state`: of all slots, [slots, K, V]
  std::vector<float> before;      // S_{t−1}, where the mode is `state`; empty while the token moves (then `values` are these)
  std::vector<float> row_change;  // ‖row of S_t − S_{t−1}‖, [K]; zero while the token moves; in other modes of the rows shown
  float change = 0;               // ‖S_t − S_{t−1}‖; in other modes of what is shown
  float range = 1;                // its colours span −range … range: a large slot must not make the others look empty
  float small_range = 1;          // of its small picture: that of all partitions, so that they can be compared
  bool written = false;           // anything is different from before, be it decayed, erased or written
};

struct StateData {
  std::string headline, detail;  // of the empty state; empty when there is a matrix
  StateMode mode = StateMode::state;
  std::int64_t layer = 0, head = 0, heads = 0;
  std::int64_t token = 0;  // the token whose step is shown
  std::string token_text;
  std::int64_t reference = -1;  // of `difference`
  std::string models;           // of `other_model`: "A − B"
  std::string colors_like;      // the letters of the models beside that have the same ranges: "B, C"
  std::int64_t rows = 0, columns = 0;
  std::string row_name, column_name;  // what they are
  std::string recurrence;             // how a token changes the state, with the source
  std::vector<SlotMatrix> slots;
  std::size_t chosen = 0;              // of slots
  std::int64_t row = -1, column = -1;  // the chosen cell, or −1; of a row as a whole column −1, of the whole matrix row kAllRows
  float progress = 1;
  Accuracy accuracy = kExact;
  HistoryStrip history;  // of what is chosen of S_t

  bool moving() const { return progress < 1; }
  bool has_cell() const { return row >= 0 && column >= 0; }
  /// A cell, a row or the whole matrix.
  bool has_chosen() const { return row >= 0 || row == kAllRows; }
  const SlotMatrix& matrix() const { return slots[chosen]; }
};

StateData build_state(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings = {}, StateMode mode = StateMode::state);
/// The value, the one before and the difference, exactly.
std::vector<std::string> cell_words(const StateData& data, const SlotMatrix& slot, std::int64_t row, std::int64_t column);
/// The same of what is chosen; of a row and of the whole matrix the norms.
std::vector<std::string> chosen_words(const StateData& data);
/// "layer 2, head 0, partition 3"
std::string place_text(const StateData& data, const SlotMatrix& slot);
/// "after token 118 anna", "written by token 118 anna"
std::string time_words(const StateData& data);
void draw(const StateData& data, Canvas& canvas, Rect area, const Frame& frame);

/// Into how many columns to put `count` equal pictures of shape `aspect` (width ÷ height, each with `extra` height for its words) so that
/// they are as large as possible in w × h.
std::int64_t best_columns(std::int64_t count, float w, float h, float aspect, float extra, float gap);

std::unique_ptr<View> make_state();

}  // namespace statescope
