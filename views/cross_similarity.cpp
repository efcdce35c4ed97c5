#include "views/cross_similarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/beside.h"
#include "views/colormaps.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

std::int64_t slot_of(const HeadState& state, const Cursor& cursor) { return std::clamp<std::int64_t>(cursor.slot, 0, state.slots - 1); }

std::string slot_words(const Snapshot& snapshot, std::int64_t slot) {
  const LayerInfo& layer = *layer_of(snapshot);
  return slot_title(slot_identity(layer, slot), slot_name(layer, slot));
}

void name_heads(std::int64_t heads, std::vector<AxisGroup>& groups, std::vector<std::string>& names) {
  for (std::int64_t h = 0; h < heads; ++h) {
    names.push_back(Views::tr("head {}", h));
    groups.push_back({h, h + 1, names.back(), h + 1});
  }
}

void name_rows(const Snapshot& snapshot, std::vector<AxisGroup>& groups, std::vector<std::string>& names) {
  const LayerInfo& layer = *layer_of(snapshot);
  const std::int64_t K = snapshot.state.rows;
  for (std::int64_t slot = 0; slot < snapshot.state.slots; ++slot) {
    groups.push_back(
        {slot * K, (slot + 1) * K, layer.slots() > 1 ? slot_name(layer, slot) : Views::tr("rows"), slot_identity(layer, slot)});
    for (std::int64_t r = 0; r < K; ++r)
      names.push_back(layer.slots() > 1 ? Views::tr("row {} of {}", r, slot_words(snapshot, slot)) : Views::tr("row {}", r));
  }
}

std::string cosine_text(double cosine) { return std::isnan(cosine) ? "—" : fmt::format("{:.3f}", cosine); }

std::vector<Fact> facts_of(const CosineBlock& block) {
  const std::int64_t n = block.cosine.rows(), other_n = block.cosine.columns();
  std::vector<Fact> facts;
  if (n == other_n) facts.push_back({Views::tr("mean cos, same number"), cosine_text(block.same)});
  facts.push_back({Views::tr("mean |cos|, all pairs"), cosine_text(block.mean)});
  facts.push_back({Views::tr("largest |cos|"), cosine_text(block.most)});
  if (block.gaps > 0) facts.push_back({Views::tr("no cosine, hatched"), Views::tr("{} of {}", block.gaps, n * other_n)});
  return facts;
}

Message other_shapes(const HeadState& own, const HeadState& other, const Peer& peer, CrossSimilarityMode mode) {
  const auto shape = [](const HeadState& state) {
    return state.values.empty() ? Views::tr("no matrix state") : Views::tr("{} rows of {}", state.slots * state.rows, state.columns);
  };
  const bool fits = !other.values.empty() && own.columns == other.columns && (mode == CrossSimilarityMode::rows || own.rows == other.rows);
  if (fits) return {};
  return {Views::tr("The states of {} and {} have different shapes", peer.own_letter, peer.letter),
          Views::tr("A head of {} has {}, one of {} {}.", peer.own_letter, shape(own), peer.letter, shape(other))};
}

/// One drawing: where things stand.
struct Picture {
  Rect title, bar, facts;
  Plot plot;  // w 0: no room for a picture

  Picture(const CrossSimilarityData& data, Canvas& canvas, Rect area, const Frame& frame) {
    const float s = frame.scale, gap = 8 * s, head = 1.5f * kSmallType * s;
    const Rect inner = inset(area, 8 * s);
    title = {inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
    const float left = group_axis_width(canvas, data.own, frame) + head, below = group_axis_height(frame) + head;
    const float bar_width = bar_room(frame, 12 * s + canvas.text_width("-1.00", value(frame, kSmallType, {})) + 14 * s),
                facts_width = 190 * s;
    const float top = title.bottom() + 4 * s, w = inner.w - left - bar_width - gap, h = inner.bottom() - top - below;
    facts = {inner.x, top, inner.w, inner.bottom() - top};
    const bool beside = w - facts_width - gap >= 120 * s;
    const float room = beside ? w - facts_width - gap : w;
    if (h < 60 * s || room < 60 * s) return;
    const float ratio = static_cast<float>(data.cells.columns()) / static_cast<float>(data.cells.rows());
    const float height = std::min(h, room / std::clamp(ratio, 0.25f, 4.0f));
    plot = zoomed(canvas, {inner.x + left, top, std::min(room, height * std::clamp(ratio, 0.25f, 4.0f)), height}, true, true, frame);
    bar = {plot.right() + gap, plot.y, 12 * s, plot.h};
    const float right = bar.x + bar_width + gap;
    facts = beside ? Rect{right, top, std::min(240 * s, inner.right() - right), h} : Rect{};
  }
};

void draw_letters(const CrossSimilarityData& data, Canvas& canvas, Rect plot, const Frame& frame) {
  const float s = frame.scale;
  const TextStyle style = label(frame, kSmallType, frame.theme.ink, Align::right, true);
  canvas.text({plot.x - group_axis_width(canvas, data.own, frame) - 2 * s, plot.y + plot.h / 2}, data.own_letter, style);
  TextStyle below = style;
  below.align = Align::center;
  canvas.text({plot.x + plot.w / 2, plot.bottom() + group_axis_height(frame) + 0.7f * kSmallType * s}, data.letter, below);
}

void draw_numbers(const CrossSimilarityData& data, Canvas& canvas, const Plot& plot, const ColorScale& scale, const Frame& frame) {
  const float w = plot.all.w / static_cast<float>(data.cells.columns()), h = plot.all.h / static_cast<float>(data.cells.rows());
  TextStyle style = value(frame, kSmallType, {}, Align::center);
  const Size text{canvas.text_width("-0.00", style), style.size};
  if (w < text.w + 4 * frame.scale || h < 2 * text.h) return;
  const Within inside(canvas, plot);
  const PlaceRange rows = places_down(plot, data.cells.rows()), columns = places_across(plot, data.cells.columns());
  for (std::int64_t i = rows.from; i < rows.to; ++i) {
    for (std::int64_t j = columns.from; j < columns.to; ++j) {
      const float cosine = data.cells.at(i, j);
      if (std::isnan(cosine)) continue;
      style.color = readable_on(color_at(scale.map, (cosine - scale.low) / (scale.high - scale.low)));
      const Point middle{plot.all.x + w * (static_cast<float>(j) + 0.5f), plot.all.y + h * (static_cast<float>(i) + 0.5f)};
      if (holds_text(plot, middle, text)) canvas.text(middle, fmt::format("{:.2f}", cosine), style);
    }
  }
}

}  // namespace

std::optional<CrossSimilarityQuestion> cross_similarity_question(const Snapshot& snapshot, const Findings& own, const Snapshot& peer,
                                                                 const Cursor& cursor) {
  std::shared_ptr<const LayerState> states = own.share(LayerStateQuestion{snapshot.layer, snapshot.token});
  if (!states || peer.state.values.empty()) return {};
  return CrossSimilarityQuestion{.layer = peer.layer,
                                 .slot = slot_of(peer.state, cursor),
                                 .head = peer.head,
                                 .token = peer.token,
                                 .other = std::move(states),
                                 .other_slot = slot_of(snapshot.state, cursor),
                                 .other_head = snapshot.head};
}

CrossSimilarityData build_cross_similarity(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings,
                                           CrossSimilarityMode mode) {
  CrossSimilarityData data;
  data.mode = mode;
  data.message = without_memory(snapshot, cursor.head);
  if (!data.message) data.message = without_peer_layer(snapshot, findings);
  if (data.message) return data;
  const Peer& peer = *findings.peer;
  const HeadState &own = snapshot.state, &other = peer.snapshot->state;
  data.message = other_shapes(own, other, peer, mode);
  if (data.message) return data;
  data.own_letter = peer.own_letter;
  data.letter = peer.letter;
  data.rows = own.rows;
  const std::string likeness = Views::tr("The similarity of {} and {}", peer.own_letter, peer.letter);
  const auto question = cross_similarity_question(snapshot, findings, *peer.snapshot, cursor);
  const CrossSimilarity* answer = question ? peer.findings.get(*question) : nullptr;
  if (!answer) {
    data.message = question ? waiting(peer.findings, *question, likeness)
                            : waiting(findings, LayerStateQuestion{snapshot.layer, snapshot.token}, likeness);
    return data;
  }
  const bool of_heads = mode == CrossSimilarityMode::heads;
  if (of_heads) {
    name_heads(own.heads, data.own, data.own_names);
    name_heads(other.heads, data.other, data.other_names);
  } else {
    name_rows(snapshot, data.own, data.own_names);
    name_rows(*peer.snapshot, data.other, data.other_names);
  }
  const CosineBlock& block = of_heads ? answer->of_heads : answer->of_rows;
  if (block.cosine.empty()) {
    data.message = {Views::tr("Both heads together have {} rows", data.own_names.size() + data.other_names.size()),
                    Views::tr("Single rows are compared up to {} of them. Heads can still be compared.", Similarity::kMostRows)};
    return data;
  }
  data.cells = block.cosine;
  data.facts = facts_of(block);
  const auto where = [of_heads](const Snapshot& of, std::int64_t slot, std::int64_t head) {
    return of_heads ? slot_words(of, slot) : Views::tr("head {}", head);
  };
  data.place = Views::tr("layer {}, {} of {} and {} of {}", snapshot.layer, where(snapshot, question->other_slot, question->other_head),
                         peer.own_letter, where(*peer.snapshot, question->slot, question->head), peer.letter);
  data.title = sentence_at(
      Views::tr("{} is {} {}", data.facts.front().name, data.facts.front().value, after_words(*snapshot.run, snapshot.token)), data.place);
  return data;
}

void draw(const CrossSimilarityData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) return draw_message(canvas, area, frame, data.message.headline, data.message.detail);
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, data.title, CrossSimilarity::accuracy, frame);
  if (picture.plot.w <= 0) {
    canvas.left_out();
    draw_fact_lines(canvas, picture.facts, data.facts, frame);
    canvas.pop_clip();
    return;
  }
  const Plot& plot = picture.plot;
  const ColorScale scale{frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging, -1, 1};
  draw_matrix(canvas, plot, data.cells, scale, {0, 0, 0});
  canvas.stroke_rect(plot, frame.theme.line, frame.scale);
  draw_group_side(canvas, plot, data.cells.rows(), data.own, true, frame);
  draw_group_foot(canvas, plot, data.cells.columns(), data.other, true, frame);
  draw_letters(data, canvas, plot, frame);
  draw_numbers(data, canvas, plot, scale, frame);
  const std::array<ScaleMark, 3> marks = {{{1, "1"}, {0, "0"}, {-1, "-1"}}};
  draw_color_bar(canvas, picture.bar, scale, marks, frame);
  std::vector<Fact> facts = data.facts;
  if (const std::string gathered = gathered_text(canvas, data.cells, plot); !gathered.empty()) facts.push_back({gathered, ""});
  if (picture.facts.w > 0) draw_facts(canvas, picture.facts, facts, frame);
  canvas.pop_clip();
}

std::string sentence_of(const CrossSimilarityData& data) {
  if (data.message) return data.message.sentence();
  std::vector<std::string> words;
  for (const Fact& fact : data.facts) words.push_back(fmt::format("{} {}", fact.name, fact.value));
  return fmt::format("{}: {}.", data.title, joined(words, ", "));
}

}  // namespace statescope
