#include "views/similarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "views/cross_similarity.h"
#include "views/parts.h"
#include "views/shading.h"
#include "views/sheets.h"
#include "views/token_tiles.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostTableRows = 64;
constexpr std::int64_t kFewestTokens = 256, kAllTokens = std::int64_t{1} << 40;  // of the map of tokens

std::int64_t slot_of(const LayerInfo& layer, const Cursor& cursor) { return std::clamp<std::int64_t>(cursor.slot, 0, layer.slots() - 1); }

SimilarityQuestion question_of(const Snapshot& snapshot, const Cursor& cursor, SimilarityMode mode) {
  return SimilarityQuestion{snapshot.layer, cursor.head, shown_token(snapshot, cursor), mode == SimilarityMode::clustered};
}

/// The part of the map of tokens that is looked at: as many down as across.
TokenTile looked_at(const Snapshot& snapshot, const Cursor& cursor, std::int64_t shown) {
  const std::int64_t all = std::ssize(snapshot.run->tokens);
  TokenTile part{steps_around(snapshot.token, all, shown),
                 steps_around(cursor.reference < 0 ? snapshot.token : cursor.reference, all, shown)};
  part.rows.count = part.columns.count = std::min(part.rows.count, part.columns.count);
  return part;
}

TokenSimilarityQuestion tile_question(const Snapshot& snapshot, const Cursor& cursor, const TokenTile& tile) {
  const LayerInfo& layer = *layer_of(snapshot);
  return {snapshot.layer, slot_of(layer, cursor), cursor.head, tile.rows, tile.columns};
}

/// What would be a matrix of one thing.
Message alone(const LayerInfo& layer, std::int64_t index, SimilarityMode mode) {
  if (mode == SimilarityMode::partitions && layer.slots() < 2)
    return {Views::tr("Layer {} ({}) keeps one memory a head", index, layer.mixer),
            Views::tr("There are no partitions to compare. SSE and MoM models have some.")};
  if (mode == SimilarityMode::heads && layer.heads < 2)
    return {Views::tr("Layer {} ({}) has one head", index, layer.mixer), Views::tr("There are no heads to compare.")};
  return {};
}

std::string cosine_text(double cosine) { return std::isnan(cosine) ? "—" : fmt::format("{:.3f}", cosine); }

/// Of a matrix's pairs i ≠ j without zero ones.
std::vector<Fact> pair_facts(const std::vector<float>& cosine, std::int64_t n) {
  double sum = 0, least = NAN;
  std::int64_t pairs = 0, zero = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    zero += std::isnan(cosine[static_cast<std::size_t>(i * n + i)]);
    for (std::int64_t j = 0; j < i; ++j) {
      const double c = cosine[static_cast<std::size_t>(i * n + j)];
      if (std::isnan(c)) continue;
      sum += std::abs(c);
      least = std::isnan(least) ? c : std::min(least, c);
      ++pairs;
    }
  }
  std::vector<Fact> facts{{Views::tr("mean |cos|"), cosine_text(pairs > 0 ? sum / static_cast<double>(pairs) : NAN)},
                          {Views::tr("least cos"), cosine_text(least)}};
  if (zero > 0) facts.push_back({Views::tr("zero, hatched"), Views::tr("{} of {}", zero, n)});
  return facts;
}

std::vector<Fact> row_facts(const Similarity& answer) {
  std::vector<Fact> facts{{Views::tr("mean |cos|"), cosine_text(answer.mean_abs)}};
  if (answer.partitions > 1) {
    facts.push_back({Views::tr("… in a partition"), cosine_text(answer.within)});
    facts.push_back({Views::tr("… between them"), cosine_text(answer.between)});
  }
  facts.push_back({Views::tr("least cos"), cosine_text(answer.min_cosine)});
  if (answer.zero_rows > 0)
    facts.push_back({Views::tr("zero rows, hatched"), Views::tr("{} of {}", answer.zero_rows, answer.partitions * answer.rows)});
  return facts;
}

std::vector<std::int64_t> natural_order(std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

/// Neighbours of the same slot; named where the slots stand in their order.
std::vector<AxisGroup> row_groups(const std::vector<std::int64_t>& order, std::int64_t rows, const LayerInfo& layer, bool named) {
  std::vector<AxisGroup> groups;
  for (std::int64_t i = 0; i < std::ssize(order); ++i) {
    const std::int64_t slot = order[static_cast<std::size_t>(i)] / rows, identity = slot_identity(layer, slot);
    if (groups.empty() || groups.back().identity != identity)
      groups.push_back({i, i, named && layer.slots() > 1 ? slot_name(layer, slot) : "", identity});
    groups.back().end = i + 1;
  }
  return groups;
}

std::vector<AxisGroup> single_groups(std::int64_t n, const std::function<AxisGroup(std::int64_t)>& group) {
  std::vector<AxisGroup> groups;
  for (std::int64_t i = 0; i < n; ++i) {
    groups.push_back(group(i));
    groups.back().begin = i;
    groups.back().end = i + 1;
  }
  return groups;
}

void fill_rows(SimilarityData& data, const Similarity& answer, const LayerInfo& layer, const Cursor& cursor) {
  const std::int64_t n = answer.partitions * answer.rows;
  if (answer.cosine.empty()) {
    data.message = {
        Views::tr("A head of {} has {} rows", data.place, n),
        Views::tr("Single rows are compared up to {} of them. Partitions and heads can still be compared.", Similarity::kMostRows)};
    return;
  }
  const bool clustered = data.mode == SimilarityMode::clustered;
  data.rows = answer.rows;
  data.row_name = Engine::tr(layer.row_name.c_str());
  data.order = answer.order;
  data.cells = answer.cosine;
  data.groups = row_groups(data.order, answer.rows, layer, !clustered);
  for (std::int64_t slot = 0; clustered && layer.slots() > 1 && slot < layer.slots(); ++slot)
    data.legend.push_back({0, 0, data.slot_titles[static_cast<std::size_t>(slot)], slot_identity(layer, slot)});
  data.facts = row_facts(answer);
  if (cursor.row < 0 || cursor.row >= answer.rows) return;
  data.chosen = std::ranges::find(data.order, slot_of(layer, cursor) * answer.rows + cursor.row) - data.order.begin();
}

void fill_partitions(SimilarityData& data, const Similarity& answer, const LayerInfo& layer, const Cursor& cursor) {
  const std::int64_t n = answer.partitions;
  data.order = natural_order(n);
  data.cells = Pyramid(answer.partition_cosine, n, n);
  data.groups = single_groups(n, [&](std::int64_t slot) { return AxisGroup{0, 0, slot_name(layer, slot), slot_identity(layer, slot)}; });
  data.facts = pair_facts(answer.partition_cosine, n);
  data.chosen = slot_of(layer, cursor);
}

void fill_heads(SimilarityData& data, const Similarity& answer, const Cursor& cursor) {
  const std::int64_t n = answer.heads;
  data.order = natural_order(n);
  data.cells = Pyramid(answer.head_cosine, n, n);
  data.groups = single_groups(n, [](std::int64_t head) { return AxisGroup{0, 0, Views::tr("head {}", head), head + 1}; });
  data.facts = pair_facts(answer.head_cosine, n);
  data.chosen = cursor.head;
}

/// A memory that changes slowly stays like itself: where hardly anything turns round, colours begin where 1 in 20 cosines lies below.
float low_end(std::vector<float> cosine) {
  std::erase_if(cosine, [](float c) { return std::isnan(c); });
  if (cosine.empty()) return -1;
  const auto at = cosine.begin() + std::ssize(cosine) / 20;
  std::ranges::nth_element(cosine, at);
  return *at < 0 ? -1 : std::min(0.9f, std::floor(10 * *at) / 10);
}

/// Of the pairs of different tokens that are known.
std::vector<Fact> token_facts(const SimilarityData& data) {
  double sum = 0, least = NAN;
  std::int64_t pairs = 0;
  for (std::size_t i = 0; i < data.order.size(); ++i) {
    for (std::size_t j = 0; j < data.across.size(); ++j) {
      const float c = data.cells.values()[i * data.across.size() + j];
      if (std::isnan(c) || data.order[i] == data.across[j]) continue;
      sum += std::abs(c);
      least = std::isnan(least) ? c : std::min<double>(least, c);
      ++pairs;
    }
  }
  return {{Views::tr("mean |cos|"), cosine_text(pairs > 0 ? sum / static_cast<double>(pairs) : NAN)},
          {Views::tr("least cos"), cosine_text(least)}};
}

void fill_tokens(SimilarityData& data, const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, const TokenTile& part) {
  std::int64_t known = 0, tiles = 0;
  const auto cells_of = [&](const TokenTile& tile) {
    const TokenSimilarity* answer = findings.get(tile_question(snapshot, cursor, tile));
    ++tiles;
    known += answer != nullptr;
    return answer ? &answer->cosine : nullptr;
  };
  std::vector<float> cells = map_of_tiles(part.rows, part.columns, TokenSimilarity::kMostTokens, cells_of);
  data.range.low = low_end(cells);
  data.is_signed = data.range.low < 0;
  data.cells = Pyramid(std::move(cells), part.rows.count, part.columns.count);
  data.order = tokens_of(part.rows);
  data.across = tokens_of(part.columns);
  data.side = {snapshot.run, {data.order.begin(), data.order.end()}, snapshot.token};
  data.tokens = {snapshot.run, {data.across.begin(), data.across.end()}, cursor.reference < 0 ? snapshot.token : cursor.reference};
  data.facts = token_facts(data);
  if (part.rows.step > 1) data.facts.push_back({Views::tr("tokens"), Views::tr("1 of every {}", part.rows.step)});
  if (known < tiles) data.facts.push_back({Views::tr("worked out, rest hatched"), Views::tr("{} of {} tiles", known, tiles)});
  data.chosen = data.side.place_of(snapshot.token);
}

/// "Mean |cos| of two rows is 0.250 after token 41 “␣anna” · layer 2, head 1"
std::string title_of(const SimilarityData& data) {
  const std::string& mean = data.facts.front().value;
  switch (data.mode) {
    case SimilarityMode::partitions:
      return sentence_at(Views::tr("mean |cos| of two partitions is {} {}", mean, data.when), data.place);
    case SimilarityMode::heads:
      return sentence_at(Views::tr("mean |cos| of two heads is {} {}", mean, data.when), data.place);
    case SimilarityMode::tokens:
      return sentence_at(Views::tr("mean |cos| of two states is {} {}", mean, data.when), data.place);
    default:
      return sentence_at(Views::tr("mean |cos| of two rows is {} {}", mean, data.when), data.place);
  }
}

class SimilarityView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (without_memory(snapshot, cursor.head)) return {};
    if (compares()) return {LayerStateQuestion{snapshot.layer, snapshot.token}};
    if (alone(*layer_of(snapshot), snapshot.layer, shown())) return {};
    if (shown() != SimilarityMode::tokens) return {question_of(snapshot, cursor, shown())};
    const TokenTile part = looked_at(snapshot, cursor, tokens_shown_);
    std::vector<Question> tiles;
    for (const TokenTile& tile : map_tiles(part.rows, part.columns, TokenSimilarity::kMostTokens))
      tiles.emplace_back(tile_question(snapshot, cursor, tile));
    return tiles;
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 7> names = {QT_TRANSLATE_NOOP("Views", "Rows"),
                                                              QT_TRANSLATE_NOOP("Views", "Rows, clustered"),
                                                              QT_TRANSLATE_NOOP("Views", "Partitions"),
                                                              QT_TRANSLATE_NOOP("Views", "Heads"),
                                                              QT_TRANSLATE_NOOP("Views", "Tokens"),
                                                              QT_TRANSLATE_NOOP("Views", "Heads, other model"),
                                                              QT_TRANSLATE_NOOP("Views", "Rows, other model")};
    return names;
  }
  bool compares() const override { return shown() == SimilarityMode::other_heads || shown() == SimilarityMode::other_rows; }
  std::vector<Question> peer_questions(const Snapshot& snapshot, const Findings& own, const Snapshot& peer,
                                       const Cursor& cursor) const override {
    const std::optional<CrossSimilarityQuestion> question = cross_similarity_question(snapshot, own, peer, cursor);
    return question ? std::vector<Question>{*question} : std::vector<Question>();
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    cross_.reset();
    if (compares())
      cross_ = build_cross_similarity(snapshot, cursor, findings,
                                      shown() == SimilarityMode::other_heads ? CrossSimilarityMode::heads : CrossSimilarityMode::rows);
    else
      data_ = build_similarity(snapshot, cursor, findings, shown(), tokens_shown_, range());
    tokens_ = snapshot.run ? std::ssize(snapshot.run->tokens) : 0;
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override {
    if (cross_) return statescope::draw(*cross_, canvas, area, frame);
    statescope::draw(data_, canvas, area, frame);
  }
  std::optional<Shading> shading() const override {
    if (cross_ || data_.message) return {};
    return data_.shading;
  }
  std::optional<Knob> knob() const override {
    if (shown() != SimilarityMode::tokens || tokens_ <= kFewestTokens) return {};
    const auto most = static_cast<double>(tokens_);
    return Knob{QT_TRANSLATE_NOOP("Views", "Tokens"),
                QT_TRANSLATE_NOOP("Views", "How many tokens the map shows, around the cursor's and the one it is compared with."),
                kFewestTokens,
                most,
                std::min(most, static_cast<double>(tokens_shown_)),
                true};
  }
  void turn(double value) override { tokens_shown_ = value >= static_cast<double>(tokens_) ? kAllTokens : std::llround(value); }

  std::vector<Sheet> sheets() const override { return cross_ ? statescope::sheets(*cross_) : statescope::sheets(data_); }
  std::string sentence() const override {
    if (cross_) return sentence_of(*cross_);
    if (data_.message) return data_.message.sentence();
    std::vector<std::string> words;
    for (const Fact& fact : data_.facts) words.push_back(fmt::format("{} {}", fact.name, fact.value));
    return fmt::format("{}: {}.", data_.title, joined(words, ", "));
  }

 private:
  SimilarityMode shown() const { return static_cast<SimilarityMode>(mode()); }
  SimilarityData data_;
  std::optional<CrossSimilarityData> cross_;             // instead of it, where models are compared
  std::int64_t tokens_shown_ = kAllTokens, tokens_ = 0;  // of how many
};

}  // namespace

std::string SimilarityData::name(std::int64_t what) const {
  switch (mode) {
    case SimilarityMode::rows:
    case SimilarityMode::clustered:
      return slot_titles.size() > 1 ? Views::tr("row {} of {}", what % rows, slot_titles[static_cast<std::size_t>(what / rows)])
                                    : Views::tr("row {}", what);
    case SimilarityMode::partitions:
      return slot_titles[static_cast<std::size_t>(what)];
    case SimilarityMode::heads:
      return Views::tr("head {}", what);
    case SimilarityMode::tokens:
      return after_words(*tokens.run, what);
    case SimilarityMode::other_heads:
    case SimilarityMode::other_rows:
      break;
  }
  return {};
}

SimilarityData build_similarity(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, SimilarityMode mode,
                                std::int64_t shown, const RangeChoice& range) {
  SimilarityData data;
  data.mode = mode;
  data.message = without_memory(snapshot, cursor.head);
  if (data.message) return data;
  const LayerInfo& layer = *layer_of(snapshot);
  data.message = alone(layer, snapshot.layer, mode);
  if (data.message) return data;
  for (std::int64_t slot = 0; slot < layer.slots(); ++slot)
    data.slot_titles.push_back(slot_title(slot_identity(layer, slot), slot_name(layer, slot)));

  const std::int64_t token = shown_token(snapshot, cursor);
  const bool tokens = mode == SimilarityMode::tokens, heads = mode == SimilarityMode::heads;
  data.place = tokens  ? memory_place(layer, snapshot.layer, slot_of(layer, cursor), cursor.head)
               : heads ? Views::tr("layer {}", snapshot.layer)
                       : Views::tr("layer {}, head {}", snapshot.layer, cursor.head);
  data.when = tokens ? Views::tr("after different tokens") : after_words(*snapshot.run, token);

  if (tokens) {
    const TokenTile part = looked_at(snapshot, cursor, shown);
    fill_tokens(data, snapshot, cursor, findings, part);
    const bool none = std::ranges::all_of(data.cells.values(), [](float c) { return std::isnan(c); });
    const TokenTile first = map_tiles(part.rows, part.columns, TokenSimilarity::kMostTokens).front();
    if (none && !findings.get(tile_question(snapshot, cursor, first)))
      data.message = waiting(findings, tile_question(snapshot, cursor, first), Views::tr("The similarity in {}", data.place));
  } else {
    const SimilarityQuestion question = question_of(snapshot, cursor, mode);
    const Similarity* parts = findings.get(question);
    if (!parts) {
      data.message = waiting(findings, question, Views::tr("The similarity in {}", data.place));
      return data;
    }
    if (mode == SimilarityMode::partitions)
      fill_partitions(data, *parts, layer, cursor);
    else if (heads)
      fill_heads(data, *parts, cursor);
    else
      fill_rows(data, *parts, layer, cursor);
    data.across = data.order;
  }
  if (data.message) return data;
  data.title = title_of(data);
  data.shading = shade(data.cells, data.range, data.is_signed, range);
  const float low = data.range.low, middle = (1 + low) / 2;
  data.marks = is_own(range) ? std::vector<ScaleMark>{{1, "1"}, {middle, number(middle, 2)}, {low, (low > -1 ? "≤ " : "") + number(low, 2)}}
                             : range_marks(data.shading);
  data.range = data.shading.range;
  return data;
}

std::unique_ptr<View> make_similarity() { return std::make_unique<SimilarityView>(); }

}  // namespace statescope
