// Sheets of the views that show what a state holds after a token.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "views/cross_similarity.h"
#include "views/parts.h"
#include "views/remembered.h"
#include "views/sheets.h"
#include "views/similarity.h"
#include "views/spectrum.h"
#include "views/state.h"
#include "views/words.h"
#include "views/writes.h"

namespace statescope {
namespace {

constexpr const char* kCosine = QT_TRANSLATE_NOOP("Views", "cos(a, b) = ⟨a, b⟩ / (‖a‖ ‖b‖) (SSE Def. 1)");
constexpr const char* kRank = QT_TRANSLATE_NOOP("Views", "exp(−Σ p log p), p = σ / Σσ (Roy and Vetterli)");
constexpr const char* kEntropy = QT_TRANSLATE_NOOP("Views", "−Σ p log p / log n, p = σ² / Σσ² (SSE footnote 8)");

/// What the cells of a mode are: every family has its own equation of S_t, and the same three parts.
std::string shown(StateMode mode) {
  switch (mode) {
    case StateMode::state:
      return "S_t";
    case StateMode::change:
      return "S_t − S_{t−1}";
    case StateMode::decay:
      return Views::tr("taken by decay");
    case StateMode::erase:
      return Views::tr("erased");
    case StateMode::write:
      return Views::tr("written");
    case StateMode::difference:
      return "S_t − S_r";
    case StateMode::other_model:
      return "S_t − S′_t";
  }
  return "S_t";
}

Axis rows_axis(const std::string& name, std::int64_t rows, std::int64_t here) {
  Axis axis = axis_of_count(name, rows, here);
  axis.move = [](std::int64_t r) { return CursorMove{.row = r}; };
  return axis;
}

Axis partitions(std::vector<std::string> names, std::int64_t chosen) {
  Axis axis = axis_of_names(Views::tr("partition"), std::move(names), chosen);
  axis.move = [](std::int64_t slot) { return CursorMove{.slot = slot}; };
  return axis;
}

Sheet history_sheet(const StateData& data) {
  Sheet sheet;
  const std::vector<HistoryPart>& parts = data.history.parts;
  const auto part = [&parts](std::int64_t i) -> const HistoryPart& { return parts[static_cast<std::size_t>(i)]; };
  sheet.axes = {{.name = Views::tr("token that wrote"),
                 .count = std::ssize(parts),
                 .coordinate = [part](std::int64_t i) { return static_cast<double>(part(i).token); },
                 .label = [part](std::int64_t i) { return part(i).text; },
                 .move = [part](std::int64_t i) { return CursorMove{.token = part(i).token}; }}};
  if (parts.empty()) return sheet;
  sheet.add({.name = Views::tr("part of {}", data.history.what),
             .equation = data.history.equation(),
             .along = {0},
             .number = [part](std::int64_t i) { return part(i).contribution; }});
  sheet.add(
      {.name = "c", .equation = Views::tr("what is left of what it was written with"), .along = {0}, .number = [part](std::int64_t i) {
         return part(i).coefficient;
       }});
  sheet.add({.name = Views::tr("written with"),
             .equation = Views::tr("the rest was lost to later decay and erasure"),
             .along = {0},
             .number = [part](std::int64_t i) { return part(i).written; }});
  sheet.place = data.history.sentence();
  sheet.accuracy = kRecomputed;
  return sheet;
}

}  // namespace

std::vector<Sheet> sheets(const StateData& data) {
  if (data.slots.empty()) return {};
  std::vector<std::string> names;
  for (const SlotMatrix& slot : data.slots) names.push_back(slot.name);
  const Axis slots = partitions(names, static_cast<std::int64_t>(data.chosen));
  const auto slot_at = [&data](std::int64_t i) -> const SlotMatrix& { return data.slots[static_cast<std::size_t>(i)]; };
  const std::int64_t rows = data.rows, cells = data.rows * data.columns;
  const bool whole = data.mode == StateMode::state;
  const auto sheet = [&](std::vector<Axis> axes, int down, Column column) {
    Sheet made{.axes = std::move(axes), .accuracy = data.accuracy, .rows = down};
    made.place = Views::tr("layer {}, head {}, {}", data.layer, data.head, time_words(data));
    made.add(std::move(column));
    return made;
  };
  Axis columns = axis_of_count(data.column_name, data.columns, data.column);
  columns.move = [](std::int64_t c) { return CursorMove{.column = c}; };
  Sheet matrix = sheet({slots, rows_axis(data.row_name, rows, data.row), columns}, 1,
                       {.name = shown(data.mode),
                        .equation = data.recurrence,
                        .along = {0, 1, 2},
                        .number = [=](std::int64_t i) { return slot_at(i / cells).values[static_cast<std::size_t>(i % cells)]; },
                        .as_colors = true});
  matrix.across = 2;
  matrix.remark = [&data, slot_at](const Hit& hit) -> std::string {
    if (!hit.names(3)) return {};
    std::vector<std::string> words = cell_words(data, slot_at(hit.at[0]), hit.at[1], hit.at[2]);
    return joined({words.begin() + 1, words.end()}, "\n");
  };
  Axis whole_rows = rows_axis(data.row_name, rows, data.row);
  whole_rows.move = [](std::int64_t r) { return CursorMove{.row = r, .column = -1}; };
  Sheet changes = sheet({slots, whole_rows}, 1,
                        {.name = whole ? Views::tr("‖row of S_t − S_{t−1}‖") : Views::tr("‖row‖"),
                         .equation = data.recurrence,
                         .along = {0, 1},
                         .number = [=](std::int64_t i) { return slot_at(i / rows).row_change[static_cast<std::size_t>(i % rows)]; }});
  changes.invitation = Views::tr("Choose it: who wrote the whole row");
  Axis whole_slots = slots;
  whole_slots.move = [](std::int64_t slot) { return CursorMove{.slot = slot, .row = kAllRows, .column = -1}; };
  Sheet states = sheet({whole_slots}, 0,
                       {.name = whole ? "‖S_t − S_{t−1}‖" : Views::tr("‖what is shown‖"),
                        .equation = Views::tr("Frobenius norm"),
                        .along = {0},
                        .number = [=](std::int64_t i) { return slot_at(i).change; }});
  states.invitation = Views::tr("Choose it: who wrote the whole state");
  return {matrix, changes, states, history_sheet(data)};
}

std::vector<Sheet> sheets(const RememberedData& data) {
  if (data.message) return {};
  Sheet tokens{.axes = {axis_of_tokens(data.tokens)}, .place = data.place, .accuracy = Remembered::accuracy};
  tokens.add(Views::tr("input"), "", Views::tr("u, what comes into the channel"), {0}, data.entered);
  tokens.add(Views::tr("remembered input"), "", Views::tr("û = Σ_n X_n √(2n+1) P_n(2 e^{−s} − 1) (S4 eq. 2)"), {0}, data.remembered);
  for (Column& column : tokens.columns) column.none = Views::tr("not read yet");
  return {tokens};
}

std::vector<Sheet> sheets(const WritesData& data) {
  if (data.message) return {};
  const bool halved = data.mode == WritesMode::halved;
  Sheet ages{.axes = {rows_axis(data.row_name, data.rows, data.row), partitions(data.slot_names, data.slot)},
             .accuracy = RowAges::accuracy,
             .across = 1};
  ages.place = Views::tr("{}, after token {}", data.place, data.token);
  ages.add(halved ? Views::tr("time to half") : Views::tr("time since the last write"), Views::tr("tokens"),
           halved ? Views::tr("least n with Π α over the last n tokens ≤ 1/2") : Views::tr("since |ω_r| ≥ 0.001 Σ|ω|"), {0, 1}, data.ages);
  for (Column& column : ages.columns) {
    column.none = halved ? Views::tr("more than half of everything is still there") : Views::tr("not written yet");
    column.as_colors = true;
  }
  Sheet tokens{.axes = {axis_of_tokens(data.tokens)}, .place = data.place, .accuracy = WriteSpreads::accuracy};
  tokens.add(Views::tr("effective rows"), Views::tr("rows"), Views::tr("(Σ|ω|)² / Σω², ω the coefficients of v"), {0}, data.effective);
  tokens.add(Views::tr("rows written"), Views::tr("rows"), Views::tr("rows with |ω_r| ≥ 0.001 Σ|ω|"), {0}, data.counted);
  for (Column& column : tokens.columns) column.none = Views::tr("does not come here");
  return {ages, tokens};
}

namespace {

/// What the rows of the table are where there are too many for a square: those most like the chosen one.
std::vector<std::int64_t> most_alike(const SimilarityData& data, std::int64_t chosen, std::int64_t count) {
  std::vector<std::int64_t> others(static_cast<std::size_t>(data.count()));
  std::iota(others.begin(), others.end(), std::int64_t{0});
  const auto unlike = [&](std::int64_t i) {
    const float cosine = data.cells.at(i, chosen);
    return std::isnan(cosine) ? 1.0f : -std::abs(cosine);
  };
  std::ranges::stable_sort(others, {}, unlike);
  others.resize(static_cast<std::size_t>(count));
  return others;
}

std::function<CursorMove(std::int64_t)> to_similar(const SimilarityData& data, bool other) {
  const std::vector<std::int64_t>& order = other ? data.across : data.order;
  return [&order, mode = data.mode, rows = data.rows, other](std::int64_t place) -> CursorMove {
    const std::int64_t what = order[static_cast<std::size_t>(place)];
    if (mode == SimilarityMode::tokens) return other ? CursorMove{.reference = what} : CursorMove{.token = what};
    if (other) return {};
    if (mode == SimilarityMode::partitions) return {.slot = what};
    return mode == SimilarityMode::heads ? CursorMove{.head = what} : CursorMove{.slot = what / rows, .row = what % rows};
  };
}

constexpr std::int64_t kMostSquare = 64;  // of the table

}  // namespace

std::vector<Sheet> sheets(const SimilarityData& data) {
  if (data.message) return {};
  const auto [what, other] = [&]() -> std::pair<std::string, std::string> {
    switch (data.mode) {
      case SimilarityMode::tokens:
        return {Views::tr("token"), Views::tr("token of the other")};
      case SimilarityMode::heads:
        return {Views::tr("head"), Views::tr("head of the other")};
      case SimilarityMode::partitions:
        return {Views::tr("partition"), Views::tr("partition of the other")};
      default:
        return {data.row_name, Views::tr("{} of the other", data.row_name)};
    }
  }();
  const bool tokens = data.mode == SimilarityMode::tokens;
  const std::int64_t n = data.count(), chosen = std::clamp<std::int64_t>(data.chosen, 0, std::max<std::int64_t>(0, n - 1));
  const auto named = [&data](const std::vector<std::int64_t>& order) {
    return [&data, &order](std::int64_t i) { return data.name(order[static_cast<std::size_t>(i)]); };
  };
  Sheet sheet{.axes = {{.name = what, .count = n, .here = data.chosen, .label = named(data.order), .move = to_similar(data, false)},
                       {.name = other, .count = n, .here = chosen, .label = named(data.across), .move = to_similar(data, true)}},
              .place = fmt::format("{}, {}", data.place, data.when),
              .accuracy = Similarity::accuracy};
  sheet.add(data.is_signed ? Views::tr("cosine") : Views::tr("|cosine|"), "", Views::tr(kCosine), {0, 1}, data.cells.values());
  for (Column& column : sheet.columns) {
    column.none = tokens ? Views::tr("none yet, or none: one of the two is zero") : Views::tr("none: one of the two is zero");
    column.as_colors = true;
  }
  if (n <= kMostSquare)
    sheet.across = 1;
  else
    sheet.order = most_alike(data, chosen, kMostSquare);
  return {sheet};
}

std::vector<Sheet> sheets(const CrossSimilarityData& data) {
  if (data.message) return {};
  const bool heads = data.mode == CrossSimilarityMode::heads;
  const auto axis = [&](const std::string& letter, const std::vector<std::string>& names) {
    return axis_of_names(heads ? Views::tr("head of {}", letter) : Views::tr("key row of {}", letter), names, 0);
  };
  Sheet sheet{.axes = {axis(data.own_letter, data.own_names), axis(data.letter, data.other_names)},
              .place = data.place,
              .accuracy = CrossSimilarity::accuracy,
              .across = 1,
              .most_rows = kMostSquare};
  sheet.axes[0].move = [heads, rows = data.rows](std::int64_t i) {
    return heads ? CursorMove{.head = i} : CursorMove{.slot = i / rows, .row = i % rows};
  };
  sheet.add(Views::tr("cosine"), "", Views::tr(kCosine), {0, 1}, data.cells.values());
  for (Column& column : sheet.columns) {
    column.none = Views::tr("none: one of the two is zero");
    column.as_colors = true;
  }
  return {sheet};
}

namespace {

Sheet spectra_sheet(const SpectrumData& data) {
  const auto of = [&data](std::int64_t i) -> const HeadSpectrum& { return data.spectra[static_cast<std::size_t>(i)]; };
  std::vector<std::string> names;
  std::int64_t here = -1;
  for (const HeadSpectrum& head : data.spectra) {
    if (head.head == data.chosen) here = std::ssize(names);
    names.push_back(std::to_string(head.head));
  }
  Sheet sheet{.axes = {axis_of_names(Views::tr("head"), names, here), axis_of_count(Views::tr("singular value"), data.count)},
              .accuracy = Spectra::accuracy,
              .across = 1};
  sheet.axes[0].move = [of](std::int64_t i) { return CursorMove{.head = of(i).head}; };
  sheet.add({.name = "σ",
             .equation = Views::tr("singular values of each head's state, its partitions stacked"),
             .along = {0, 1},
             .number = [of, n = data.count](std::int64_t i) { return of(i / n).sigma[static_cast<std::size_t>(i % n)]; }});
  sheet.add({.name = Views::tr("entropy"), .equation = Views::tr(kEntropy), .along = {0}, .number = [of](std::int64_t i) {
               return of(i).entropy;
             }});
  sheet.add({.name = Views::tr("effective rank"), .equation = Views::tr(kRank), .along = {0}, .number = [of](std::int64_t i) {
               return of(i).rank;
             }});
  sheet.add({.name = Views::tr("effective rank of σ²"),
             .equation = Views::tr("exp(−Σ p log p), p = σ² / Σσ²"),
             .along = {0},
             .number = [of](std::int64_t i) { return of(i).rank_of_squares; }});
  return sheet;
}

Sheet series_sheet(const SpectrumData& data) {
  const char* equation = data.mode == SpectrumMode::rank_series      ? kRank
                         : data.mode == SpectrumMode::entropy_series ? kEntropy
                                                                     : QT_TRANSLATE_NOOP("Views", "‖S_t‖_F");
  Sheet sheet{.axes = {axis_of_heads(std::ssize(data.series), data.chosen), axis_of_tokens(data.tokens)},
              .accuracy = RankSeries::accuracy,
              .rows = 1,
              .across = 0};
  sheet.add({.name = data.series_name,
             .equation = Views::tr(equation),
             .along = {0, 1},
             .number = [&data, n = data.tokens.count()](std::int64_t i) {
               return data.series[static_cast<std::size_t>(i / n)][static_cast<std::size_t>(i % n)];
             }});
  return sheet;
}

}  // namespace

std::vector<Sheet> sheets(const SpectrumData& data) {
  std::vector<Sheet> all(3);
  if (data.message) return {};
  if (data.along_the_run()) {
    all[SpectrumSheets::series] = series_sheet(data);
  } else if (data.mode == SpectrumMode::partitions) {
    Sheet& sheet = all[SpectrumSheets::partitions];
    sheet = {
        .axes = {axis_of_heads(data.heads, data.chosen), partitions(data.partition_names, -1)}, .accuracy = Spectra::accuracy, .across = 1};
    sheet.add(Views::tr("effective rank"), "", Views::tr(kRank), {0, 1}, data.partition_rank);
    sheet.add(Views::tr("entropy"), "", Views::tr(kEntropy), {0, 1}, data.partition_entropy);
    if (!sheet.columns.empty()) sheet.columns.front().as_colors = true;
  } else {
    all[SpectrumSheets::heads] = spectra_sheet(data);
  }
  return all;
}

}  // namespace statescope
