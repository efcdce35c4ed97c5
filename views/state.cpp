#include "views/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/beside.h"
#include "views/parts.h"
#include "views/plot.h"
#include "views/shading.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

std::size_t cell_of(const StateData& data, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(row * data.columns + column);
}

float largest(const std::vector<float>& values) {
  float most = 0;
  for (const float v : values) most = std::isfinite(v) ? std::max(most, std::abs(v)) : most;
  return most;
}

SlotMatrix build_slot(const Snapshot& snapshot, const LayerInfo& layer, std::int64_t slot, const StateData& data) {
  const HeadState& state = snapshot.state;
  const auto cells = static_cast<std::ptrdiff_t>(state.rows * state.columns);
  const bool has_before = snapshot.before.values.size() == state.values.size();
  const float* after = state.matrix(slot);
  const float* before = has_before ? snapshot.before.matrix(slot) : after;

  SlotMatrix matrix;
  matrix.slot = slot;
  matrix.identity = slot_identity(layer, slot);
  matrix.name = slot_name(layer, slot);
  matrix.written = !std::equal(after, after + cells, before);
  matrix.row_change.assign(static_cast<std::size_t>(state.rows), 0.0f);
  if (data.moving()) {
    matrix.values.assign(before, before + cells);
    matrix.on_device = has_before ? snapshot.before.on_device : state.on_device;
    matrix.range = round_range(largest(matrix.values));
    return matrix;
  }
  matrix.values.assign(after, after + cells);
  matrix.on_device = state.on_device;
  matrix.range = round_range(largest(matrix.values));
  if (has_before) matrix.before.assign(before, before + cells);
  double all = 0;
  for (std::int64_t r = 0; r < state.rows; ++r) {
    double sum = 0;  // ‖S_t − S_{t−1}‖² of row r
    for (std::int64_t i = r * state.columns; i < (r + 1) * state.columns; ++i) sum += std::pow(double{after[i]} - before[i], 2);
    matrix.row_change[static_cast<std::size_t>(r)] = static_cast<float>(std::sqrt(sum));
    all += sum;
  }
  matrix.change = static_cast<float>(std::sqrt(all));
  return matrix;
}

/// What a layer keeps that has no matrix state.
std::string instead_of_state(const LayerInfo& layer) {
  if (layer.memory == "softmax attention")
    return Views::tr(
        "Softmax attention keeps something of every token instead, such as its key and its value, and compares the query with those that "
        "it looks at.");
  if (layer.memory == "short convolution")
    return Views::tr("A gated short convolution keeps its last few gated inputs instead; what lies further back is forgotten.");
  if (layer.memory == "no memory") return Views::tr("It works on each token by itself, and keeps nothing from one to the next.");
  return Views::tr("Its memory is: {}.", Engine::tr(layer.memory.c_str()));
}

StateData without_state(const Snapshot& snapshot, const LayerInfo* layer, std::int64_t head) {
  StateData data;
  data.layer = snapshot.layer;
  if (!layer) {
    data.headline = Views::tr("No token has been read yet");
    data.detail = Views::tr("It appears as soon as a model has read its first tokens.");
  } else if (const Message message = without_memory(snapshot, head); layer->has_state() && message) {
    data.headline = message.headline;
    data.detail = message.detail;
  } else if (layer->has_state()) {
    data.headline = Views::tr("The state of layer {} has not been computed yet", snapshot.layer);
    data.detail = Views::tr("It appears as soon as the run has been replayed to this token.");
  } else {
    data.headline = Views::tr("Layer {} ({}) keeps no matrix state", snapshot.layer, layer->mixer);
    data.detail = instead_of_state(*layer);
  }
  return data;
}

UpdateQuestion update_question(const Snapshot& snapshot, std::int64_t head) {
  return {.layer = snapshot.layer, .head = head, .token = snapshot.token};
}

/// Whom to ask who wrote the chosen cell, row or matrix.
HistoryQuestion history_question(const Snapshot& snapshot, const StateData& data) {
  return {.layer = snapshot.layer,
          .slot = static_cast<std::int64_t>(data.chosen),
          .head = data.head,
          .row = std::max<std::int64_t>(data.row, -1),
          .column = data.column,
          .token = snapshot.token};
}

std::string shape_text(const HeadState& state) {
  const std::string memories = state.slots == 1 ? Views::tr("{} memory", state.slots) : Views::tr("{} memories", state.slots);
  return state.heads == 1 ? Views::tr("{}, {} head of {} × {}", memories, state.heads, state.rows, state.columns)
                          : Views::tr("{}, {} heads of {} × {}", memories, state.heads, state.rows, state.columns);
}

/// Why the states of two models cannot be taken from each other.
Message unlike_shapes(const HeadState& own, const HeadState& other, const Peer& peer) {
  const auto shape = [](const HeadState& state) { return std::array{state.slots, state.heads, state.rows, state.columns}; };
  if (shape(own) == shape(other)) return {};
  if (other.values.empty())
    return {Views::tr("{} keeps no matrix state in layer {}", peer.letter, peer.snapshot->layer),
            Views::tr("There is nothing to subtract.")};
  return {Views::tr("The states of {} and {} have different shapes", peer.own_letter, peer.letter),
          Views::tr("{}: {}. {}: {}. Numbers are subtracted only where both have a place.", peer.own_letter, shape_text(own), peer.letter,
                    shape_text(other))};
}

/// The state that is taken away from the cursor's; null: `why` says why there is none.
const HeadState* taken_away(const Snapshot& snapshot, const Findings& findings, const StateData& data, Message& why) {
  if (data.mode == StateMode::change) return &snapshot.before;
  if (data.mode == StateMode::other_model) {
    why = without_peer_layer(snapshot, findings);
    if (why) return nullptr;
    const Snapshot& peer = *findings.peer->snapshot;
    const HeadState& other = data.moving() ? peer.before : peer.state;
    why = unlike_shapes(snapshot.state, other, *findings.peer);
    if (!why && peer.head != snapshot.head)
      why = {Views::tr("Nothing is known about {} here", findings.peer->letter),
             Views::tr("{} is on its way to this token.", findings.peer->letter)};
    return why ? nullptr : &other;
  }
  const StateQuestion question{.layer = snapshot.layer, .head = data.head, .token = data.reference};
  const HeadState* other = data.reference < 0 ? nullptr : findings.get(question);
  if (data.reference < 0)
    why = {Views::tr("There is no token to compare with"),
           Views::tr("Press D at another token: its state is then subtracted from the one at the cursor.")};
  else if (!other)
    why = waiting(findings, question, Views::tr("The state after token {}", data.reference));
  return other;
}

/// Whether tokens take away what a key reads, or levels that merge.
bool erases(const LayerInfo& layer) {
  return layer.memory.find("delta") != std::string::npos || layer.mixer == "rwkv7" || layer.memory == "log-linear attention";
}

/// [slots, K, V] of what the mode shows; empty: it is not known, and `data` says why.
std::vector<float> matrices_of(const Snapshot& snapshot, const Findings& findings, StateData& data) {
  const HeadState& after = data.moving() ? snapshot.before : snapshot.state;
  const std::int64_t cells = data.rows * data.columns;
  std::vector<float> shown(static_cast<std::size_t>(after.slots * cells));
  if (data.mode == StateMode::erase && !erases(*layer_of(snapshot))) {
    data.headline = Views::tr("The memory of layer {} erases nothing", snapshot.layer);
    data.detail = Views::tr(
        "What it holds only fades. The delta rule (DeltaNet, Gated DeltaNet, RWKV-7) takes away what a key reads before it writes.");
    return {};
  }
  if (data.mode == StateMode::decay || data.mode == StateMode::erase || data.mode == StateMode::write) {
    const Update* update = findings.get(update_question(snapshot, data.head));
    if (!update) {
      const Message message = waiting(findings, update_question(snapshot, data.head), Views::tr("What the token did to the memory"));
      data.headline = message.headline;
      data.detail = message.detail;
      return {};
    }
    data.accuracy = Update::accuracy;
    if (data.moving()) return shown;  // it has not happened yet
    return data.mode == StateMode::decay ? update->decayed : data.mode == StateMode::erase ? update->erased : update->written;
  }
  Message why;
  const HeadState* other = taken_away(snapshot, findings, data, why);
  if (!other) {
    data.headline = why.headline;
    data.detail = why.detail;
    return {};
  }
  for (std::int64_t slot = 0; slot < after.slots; ++slot) {
    const float *a = after.matrix(slot), *b = other->matrix(slot);
    std::transform(a, a + cells, b, shown.begin() + slot * cells, std::minus());
  }
  return shown;
}

/// Puts what the mode shows in the place of the states.
void show(std::span<const float> matrices, StateData& data) {
  const auto cells = static_cast<std::size_t>(data.rows * data.columns), columns = static_cast<std::size_t>(data.columns);
  for (SlotMatrix& matrix : data.slots) {
    const std::span<const float> values = matrices.subspan(static_cast<std::size_t>(matrix.slot) * cells, cells);
    matrix.values.assign(values.begin(), values.end());
    matrix.on_device.reset();
    matrix.before.clear();
    matrix.range = round_range(largest(matrix.values));
    double all = 0;
    for (std::size_t r = 0; r < matrix.row_change.size(); ++r) {
      double sum = 0;
      for (const float x : values.subspan(r * columns, columns)) sum += std::pow(double{x}, 2);
      matrix.row_change[r] = static_cast<float>(std::sqrt(sum));
      all += sum;
    }
    matrix.change = static_cast<float>(std::sqrt(all));
  }
}

bool is_partition(const LayerInfo& layer, std::int64_t slot) {
  return layer.slots() > 1 && layer.slot_names[static_cast<std::size_t>(slot)] != "shared";
}

/// What is compared has one range: the small pictures of a layer's partitions, and the same slot of models beside each other.
void share_ranges(const Snapshot& snapshot, const Findings& findings, StateData& data) {
  const LayerInfo& layer = *layer_of(snapshot);
  std::vector<std::string> letters;
  for (const std::shared_ptr<const Peer>& peer : findings.beside) {
    const bool same_place = peer->snapshot && peer->snapshot->layer == snapshot.layer && peer->snapshot->head == snapshot.head;
    if (!same_place || data.mode != StateMode::state) continue;
    const HeadState& state = data.moving() ? peer->snapshot->before : peer->snapshot->state;
    if (state.values.empty() || state.slots != std::ssize(data.slots)) continue;
    const auto cells = static_cast<std::ptrdiff_t>(state.rows * state.columns);
    for (SlotMatrix& slot : data.slots) {
      const float* values = state.matrix(slot.slot);
      slot.range = std::max(slot.range, round_range(largest({values, values + cells})));
    }
    letters.push_back(peer->letter);
  }
  data.colors_like = joined(letters, ", ");
  float most = 0;
  for (const SlotMatrix& slot : data.slots)
    if (is_partition(layer, slot.slot)) most = std::max(most, slot.range);
  for (SlotMatrix& slot : data.slots) slot.small_range = is_partition(layer, slot.slot) ? most : slot.range;
}

std::string symbol(StateMode mode) {
  static constexpr std::array<const char*, 7> symbols = {QT_TRANSLATE_NOOP("Views", "S"),         QT_TRANSLATE_NOOP("Views", "change"),
                                                         QT_TRANSLATE_NOOP("Views", "decay"),     QT_TRANSLATE_NOOP("Views", "erase"),
                                                         QT_TRANSLATE_NOOP("Views", "write"),     QT_TRANSLATE_NOOP("Views", "difference"),
                                                         QT_TRANSLATE_NOOP("Views", "difference")};
  return Views::tr(symbols[static_cast<std::size_t>(mode)]);
}

/// The last token whose step the numbers contain.
std::int64_t shown_token(const StateData& data) { return data.moving() ? data.token - 1 : data.token; }

class StateView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    const StateData data = build_state(snapshot, cursor);
    if (data.slots.empty()) return {};
    std::vector<Question> questions;
    const auto mode = static_cast<StateMode>(View::mode());
    if (mode == StateMode::decay || mode == StateMode::erase || mode == StateMode::write)
      questions.emplace_back(update_question(snapshot, data.head));
    if (mode == StateMode::difference && cursor.reference >= 0)
      questions.emplace_back(StateQuestion{.layer = snapshot.layer, .head = data.head, .token = cursor.reference});
    if (data.has_chosen()) questions.emplace_back(history_question(snapshot, data));
    return questions;
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 7> names = {
        QT_TRANSLATE_NOOP("Views", "Values"),     QT_TRANSLATE_NOOP("Views", "Change"), QT_TRANSLATE_NOOP("Views", "Decay"),
        QT_TRANSLATE_NOOP("Views", "Erase"),      QT_TRANSLATE_NOOP("Views", "Write"),  QT_TRANSLATE_NOOP("Views", "Difference"),
        QT_TRANSLATE_NOOP("Views", "Other model")};
    return names;
  }
  bool compares() const override { return static_cast<StateMode>(mode()) == StateMode::other_model; }
  bool looks_beside() const override { return true; }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_state(snapshot, cursor, findings, static_cast<StateMode>(mode()));
    shading_.reset();
    for (SlotMatrix& slot : data_.slots) {
      const bool chosen = &slot == &data_.matrix();
      if (!chosen && is_own(range())) continue;
      const Shading shading = shade(slot.values, {-slot.range, slot.range}, true, range());
      slot.range = shading.range.high;
      if (!is_own(range())) slot.small_range = slot.range;
      if (chosen) shading_ = shading;
    }
  }
  std::optional<Shading> shading() const override { return shading_; }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    if (!data_.headline.empty()) return data_.headline + ". " + data_.detail;
    std::string text = data_.mode == StateMode::state
                           ? Views::tr("State of {} after token {}", place_text(data_, data_.matrix()), shown_token(data_))
                           : Views::tr("State of {}, {}", place_text(data_, data_.matrix()), time_words(data_));
    text = Views::tr("{}: {} rows, {} columns", text, data_.rows, data_.columns);
    if (data_.has_chosen()) text += fmt::format("; {}", joined(chosen_words(data_), ", "));
    if (!data_.colors_like.empty()) text += ". " + Views::tr("Colours span the same numbers as in {}", data_.colors_like);
    if (!data_.history.parts.empty()) text += ". " + Views::tr("{}; most of it: {}", data_.history.sentence(), data_.history.largest(3));
    return text + ".";
  }

 private:
  StateData data_;
  std::optional<Shading> shading_;  // of the chosen slot
};

}  // namespace

std::vector<std::string> cell_words(const StateData& data, const SlotMatrix& slot, std::int64_t row, std::int64_t column) {
  const std::size_t i = cell_of(data, row, column);
  std::vector<std::string> said = {fmt::format("{}[{}, {}] = {}", symbol(data.mode), row, column, number(slot.values[i], 9))};
  if (slot.before.empty()) return said;
  said.push_back(Views::tr("before {}", number(slot.before[i], 9)));
  said.push_back(Views::tr("change {}", number(slot.values[i] - slot.before[i], 9)));
  return said;
}

std::vector<std::string> chosen_words(const StateData& data) {
  const SlotMatrix& slot = data.matrix();
  if (data.has_cell()) return cell_words(data, slot, data.row, data.column);
  const bool all = data.row == kAllRows;
  const auto norm_in = [&](const std::vector<float>& values) {
    double sum = 0;
    const std::int64_t first = all ? 0 : data.row, last = all ? data.rows : data.row + 1;
    for (std::int64_t i = first * data.columns; i < last * data.columns; ++i)
      sum += std::pow(double{values[static_cast<std::size_t>(i)]}, 2);
    return number(static_cast<float>(std::sqrt(sum)), 9);
  };
  const std::string what = all ? fmt::format("‖{}‖", symbol(data.mode)) : Views::tr("‖row {}‖", data.row);
  std::vector<std::string> said = {fmt::format("{} = {}", what, norm_in(slot.values))};
  if (slot.before.empty()) return said;
  said.push_back(Views::tr("before {}", norm_in(slot.before)));
  said.push_back(Views::tr("‖change‖ {}", number(all ? slot.change : slot.row_change[static_cast<std::size_t>(data.row)], 9)));
  return said;
}

std::string place_text(const StateData& data, const SlotMatrix& slot) {
  const std::string head = Views::tr("layer {}, head {}", data.layer, data.head);
  return data.slots.size() > 1 ? fmt::format("{}, {}", head, slot_title(slot.identity, slot.name)) : head;
}

std::string time_words(const StateData& data) {
  const std::string token = Views::tr("token {}  {}", data.token, data.token_text);
  if (data.moving() && data.mode != StateMode::state && data.mode != StateMode::difference && data.mode != StateMode::other_model)
    return Views::tr("nothing has happened yet at {}", token);
  const std::string when = data.moving() ? Views::tr("before {}", token) : Views::tr("after {}", token);
  switch (data.mode) {
    case StateMode::state:
      return when;
    case StateMode::change:
      return Views::tr("changed by {}", token);
    case StateMode::decay:
      return Views::tr("taken by decay at {}", token);
    case StateMode::erase:
      return Views::tr("erased by {}", token);
    case StateMode::write:
      return Views::tr("written by {}", token);
    case StateMode::difference:
      return Views::tr("{}, minus that after token {}", when, data.reference);
    case StateMode::other_model:
      return fmt::format("{} {}", data.models, when);
  }
  return token;
}

StateData build_state(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, StateMode mode) {
  const LayerInfo* layer = layer_of(snapshot);
  const HeadState& state = snapshot.state;
  if (!layer || !layer->has_state() || state.values.empty()) return without_state(snapshot, layer, cursor.head);

  StateData data;
  data.layer = snapshot.layer;
  data.heads = state.heads;
  data.head = snapshot.head;
  data.token = snapshot.token;
  data.token_text = visible_token(*snapshot.run, snapshot.token);
  data.rows = state.rows;
  data.columns = state.columns;
  data.row_name = Engine::tr(layer->row_name.c_str());
  data.column_name = Engine::tr(layer->column_name.c_str());
  data.recurrence = layer->recurrence;
  data.progress = std::clamp(cursor.progress, 0.0f, 1.0f);
  data.accuracy = snapshot.accuracy;
  for (std::int64_t slot = 0; slot < state.slots; ++slot) data.slots.push_back(build_slot(snapshot, *layer, slot, data));
  data.chosen = static_cast<std::size_t>(std::clamp<std::int64_t>(cursor.slot, 0, state.slots - 1));
  data.row = cursor.row < state.rows ? cursor.row : -1;
  data.column = cursor.column < state.columns ? cursor.column : -1;
  data.mode = mode;
  data.reference = cursor.reference;
  if (findings.peer) data.models = fmt::format("{} − {}", findings.peer->own_letter, findings.peer->letter);
  if (mode != StateMode::state) {
    const std::vector<float> matrices = matrices_of(snapshot, findings, data);
    if (matrices.empty()) {
      data.slots.clear();
      data.rows = data.columns = 0;
      return data;
    }
    show(matrices, data);
  }
  share_ranges(snapshot, findings, data);
  if (!data.moving() && data.has_chosen()) data.history = build_history(*snapshot.run, history_question(snapshot, data), findings);
  return data;
}

std::unique_ptr<View> make_state() { return std::make_unique<StateView>(); }

}  // namespace statescope
