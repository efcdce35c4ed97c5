// Arrays of the views that go along the tokens of a run.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "views/arrays.h"
#include "views/attention.h"
#include "views/branches.h"
#include "views/decay.h"
#include "views/delta_rule.h"
#include "views/difference.h"
#include "views/head_gates.h"
#include "views/parts.h"
#include "views/predictions.h"
#include "views/predictions_beside.h"
#include "views/routing.h"
#include "views/timeline.h"
#include "views/token_strip.h"

namespace statescope {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr const char* kRouting = "e_t = softmax(x_t W_e); the W largest are written (SSE eq. 9)";
constexpr const char* kNext = "p = softmax(z), z = W RMSNorm(x_t)";
constexpr const char* kGates = "G_t = softmax_h(λ · logits) (SLA eq. 4, Thm 4.2)";

/// Visits of a slot: tokens that came to it.
ArrayAxis visit_axis(const std::vector<std::int32_t>& tokens) {
  ArrayAxis axis{.name = "token", .unit = {}, .count = std::ssize(tokens)};
  axis.coordinates.assign(tokens.begin(), tokens.end());
  return axis;
}

/// The first `count` places.
ArrayAxis until(ArrayAxis axis, std::int64_t count) {
  axis.count = count;
  axis.coordinates.resize(static_cast<std::size_t>(count));
  axis.labels.resize(static_cast<std::size_t>(count));
  return axis;
}

ArrayAxis coordinates(std::string name, const std::vector<float>& values) {
  return {.name = std::move(name), .unit = {}, .coordinates = {values.begin(), values.end()}, .count = std::ssize(values)};
}

void add_if_known(std::vector<Array>& all, Array array) {
  if (!array.values.empty()) all.push_back(std::move(array));
}

}  // namespace

std::vector<Array> arrays(const TokenStripData& data) {
  if (data.tokens() == 0) return {};
  const TokenAxis tokens{data.run, token_range(0, data.tokens()), data.token};
  Array ids{.name = "id", .unit = "", .equation = "as the tokenizer says", .axes = {token_axis(tokens)}, .values = {}};
  for (const TokenInfo& token : data.run->tokens) ids.values.push_back(static_cast<float>(token.id));
  std::vector<Array> all{ids};
  for (const TokenLane& lane : data.lanes) {
    const std::int64_t n = lane.routing->partitions, known = std::min(lane.until + 1, lane.routing->tokens());
    Array routed{.name = lane.letter.empty() ? "routed" : "routed " + lane.letter,
                 .unit = "",
                 .equation = kRouting,
                 .axes = {token_axis(tokens), counted_axis("partition", n)},
                 .values = {}};
    routed.values.assign(static_cast<std::size_t>(data.tokens() * n), kNone);
    for (std::int64_t i = 0; i < known * n; ++i)
      routed.values[static_cast<std::size_t>(i)] = lane.routing->selected_at(i / n, i % n) ? 1 : 0;
    all.push_back(std::move(routed));
  }
  return all;
}

std::vector<Array> arrays(const RoutingData& data) {
  if (!data.headline.empty()) return {};
  ArrayAxis tokens{.name = "token", .unit = {}, .count = std::ssize(data.tokens)};
  std::vector<std::string> slots;
  for (const PartitionBox& box : data.boxes) slots.push_back(box.name);
  Array gate{.name = "e", .unit = "", .equation = kRouting, .axes = {}, .values = {}};
  gate.values.assign(data.tokens.size() * data.boxes.size(), kNone);
  for (std::size_t t = 0; t < data.tokens.size(); ++t) {
    tokens.coordinates.push_back(static_cast<double>(data.tokens[t].token));
    tokens.labels.push_back(data.tokens[t].text);
    for (const Write& write : data.tokens[t].writes) {
      for (std::size_t box = 0; box < data.boxes.size(); ++box)
        if (data.boxes[box].slot == write.slot) gate.values[t * data.boxes.size() + box] = write.gate;
    }
  }
  gate.axes = {tokens, named_axis("partition", slots)};
  Array load{
      .name = "load", .unit = "tokens", .equation = "tokens that were routed here", .axes = {named_axis("partition", slots)}, .values = {}};
  Array ratio{.name = "load ÷ fair share", .unit = "", .equation = "load · N / Σ load", .axes = load.axes, .values = {}};
  for (const PartitionBox& box : data.boxes) {
    load.values.push_back(static_cast<float>(box.load));
    ratio.values.push_back(box.shared ? kNone : box.load_ratio);
  }
  return {gate, load, ratio};
}

std::vector<Array> arrays(const TimelineData& data) {
  std::vector<Array> all;
  for (const Lane& lane : data.lanes) {
    if (lane.missing) continue;
    Array array{.name = lane.name, .unit = lane.name == "loss" ? "nat" : "", .equation = lane.source, .axes = {}, .values = {}};
    std::vector<std::string> curves;
    for (const LaneCurve& curve : lane.curves) {
      curves.push_back(curve.name);
      array.values.insert(array.values.end(), curve.values.begin(), curve.values.end());
    }
    array.axes = {token_axis(data.tokens)};
    if (curves.size() > 1) array.axes.insert(array.axes.begin(), named_axis("curve", curves));
    all.push_back(std::move(array));
  }
  return all;
}

std::vector<Array> arrays(const DecayData& data) {
  if (data.message) return {};
  if (!data.ranks.empty()) {
    std::vector<std::string> channels;
    Array half{.name = "half-life", .unit = "tokens", .equation = "ln 2 / mean(−log α)", .axes = {}, .values = {}};
    Array width{
        .name = "receptive field", .unit = "tokens", .equation = "how far back Δ stays above 0.001 (SSE Def. 4)", .axes = {}, .values = {}};
    for (const DecayRank& rank : data.ranks) {
      channels.push_back(data.channel_name(rank.channel));
      half.values.push_back(rank.half_life);
      width.values.push_back(rank.width);
    }
    half.axes = width.axes = {named_axis("channel", channels)};
    return data.mode == DecayMode::half_life ? std::vector<Array>{half, width} : std::vector<Array>{width, half};
  }
  std::vector<std::string> channels;
  for (std::int64_t c = 0; c < data.channels; ++c) channels.push_back(data.channel_name(c));
  const ArrayAxis tokens = token_axis(data.tokens);
  if (data.mode == DecayMode::cumulative)
    return {{"Δ",
             "",
             "Δ_{t,s} = α_{s+1} · … · α_t (GLA eq. 3, SSE eq. 9)",
             {named_axis("channel", channels), until(tokens, data.until)},
             data.left,
             true}};
  return {
      {"α", "", "S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3, SSE eq. 9)", {named_axis("channel", channels), tokens}, data.alpha, true}};
}

std::vector<Array> arrays(const DeltaRuleData& data) {
  if (data.message) return {};
  const DeltaRule& rule = data.rule;
  const ArrayAxis visits = visit_axis(rule.token);
  return {{"‖π‖", "", "π = k S̄, S̄ = α S (Gated DeltaNet eq. 10)", {visits}, rule.prediction},
          {"‖v‖", "", "the value that is put in", {visits}, rule.value},
          {"‖v − π‖", "", "what the token corrects", {visits}, rule.error},
          {"cos(π, v)", "", "⟨π, v⟩ / (‖π‖ ‖v‖)", {visits}, rule.cosine},
          {"‖β kᵀπ‖", "", "what is taken away", {visits}, rule.erase},
          {"‖β kᵀv‖", "", "what is put in", {visits}, rule.write},
          {"‖β kᵀ(v − π)‖", "", "both together", {visits}, rule.update},
          {"β", "", "the strength of the correction", {visits}, rule.beta},
          {"α", "", "the decay", {visits}, rule.alpha},
          {"β ‖k‖²", "", "the part of the error that is mended", {visits}, rule.mended},
          {"α (1 − β ‖k‖²)", "", "the eigenvalue of the transition along k", {visits}, rule.eigenvalue}};
}

std::vector<Array> arrays(const HeadGatesData& data) {
  if (data.message) return {};
  std::vector<Array> all;
  const ArrayAxis heads = counted_axis("head", data.heads);
  switch (data.mode) {
    case GateMode::contest:
      for (const auto& [name, gate] : {std::pair<std::string, const GateNow&>{"G^Q", data.q}, {"G^K", data.k}}) {
        add_if_known(all, {name, "", kGates, {heads}, gate.gate});
        add_if_known(all, {name + " at λ", "", kGates, {heads}, gate.probe});
      }
      return all;
    case GateMode::over_time:
      add_if_known(all, {"G^Q", "", kGates, {heads, token_axis(data.tokens)}, data.gate_q});
      add_if_known(all, {"G^K", "", kGates, {heads, token_axis(data.tokens)}, data.gate_k});
      add_if_known(all, {"entropy of G^Q", "", "−Σ G log G / log H", {token_axis(data.tokens)}, data.entropy_q});
      add_if_known(all, {"entropy of G^K", "", "−Σ G log G / log H", {token_axis(data.tokens)}, data.entropy_k});
      return all;
    case GateMode::flow: {
      const ArrayAxis tokens = token_axis(data.tokens);
      add_if_known(all, {"C", "", "C(t,s) = Σ_h G^Q_t G^K_s (SLA Thm 4.3)", {tokens, tokens}, data.map.values(), true});
      return all;
    }
    case GateMode::sharpness:
      add_if_known(all, {"entropy of G^Q", "", "−Σ G log G / log H (SLA Thm 4.2)", {coordinates("λ", data.lambdas)}, data.curve_q});
      add_if_known(all, {"entropy of G^K", "", "−Σ G log G / log H (SLA Thm 4.2)", {coordinates("λ", data.lambdas)}, data.curve_k});
      add_if_known(all, {"C_{t,t}", "", "Σ_h G^Q_t G^K_t (SLA Thm 4.3)", {coordinates("λ", data.lambdas)}, data.curve_flow});
      return all;
  }
  return all;
}

std::vector<Array> arrays(const AttentionData& data) {
  if (data.message) return {};
  const char* equation = data.softmax ? "softmax(q kᵀ / √d)" : "o_t = Σ_s A_{t,s} v_s (SSE Def. 3)";
  const ArrayAxis tokens = token_axis(data.tokens);
  ArrayAxis from = tokens;
  from.name = "token that is read";
  if (data.step > 1) from.name = fmt::format("strongest of {} tokens that are read", data.step);
  const std::string name = data.shares ? "|A| / Σ|A|" : "A";
  std::vector<float> row;
  for (const AttentionData::Source& source : data.row) row.push_back(source.weight);
  return {{name, "", equation, {tokens, from}, data.cells.values(), true}, {name + " of the token", "", equation, {from}, row}};
}

std::vector<Array> arrays(const PredictionsData& data) {
  if (data.message) return {};
  std::vector<Array> all;
  Array bars{.name = "p of the next token", .unit = "", .equation = kNext, .axes = {}, .values = {}};
  std::vector<std::string> texts;
  for (const PredictionBar& bar : data.bars) {
    texts.push_back(bar.text);
    bars.values.push_back(bar.probability);
  }
  bars.axes = {named_axis("prediction", texts)};
  add_if_known(all, std::move(bars));
  if (data.curves_message) return all;
  const ArrayAxis tokens = token_axis(data.tokens);
  add_if_known(all, {"p of the token that follows", "", kNext, {tokens}, data.next});
  add_if_known(all, {"rank of the token that follows", "", "1 + how many are more probable", {tokens}, data.rank});
  add_if_known(all, {"entropy", "nat", "−Σ p log p", {tokens}, data.entropy});
  for (const TokenCurve& curve : data.curves)
    add_if_known(all, {(data.mode == PredictionsMode::logits ? "z of " : "p of ") + curve.text, "", kNext, {tokens}, curve.values});
  return all;
}

std::vector<Array> arrays(const PredictionsBesideData& data) {
  if (data.message) return {};
  std::vector<Array> all;
  std::vector<std::string> texts;
  Array bars{.name = "p of the next token", .unit = "", .equation = kNext, .axes = {}, .values = {}};
  for (const PairedBar& bar : data.bars) {
    texts.push_back(bar.text);
    bars.values.insert(bars.values.end(), {bar.own, bar.other});
  }
  bars.axes = {named_axis("prediction", texts), named_axis("model", {data.own_letter, data.letter})};
  add_if_known(all, std::move(bars));
  if (data.curves_message) return all;
  const ArrayAxis tokens = token_axis(data.tokens);
  add_if_known(all, {"p of the token that follows, " + data.own_letter, "", kNext, {tokens}, data.own});
  add_if_known(all, {"p of the token that follows, " + data.letter, "", kNext, {tokens}, data.other});
  add_if_known(all, {data.own_letter + " − " + data.letter, "", kNext, {tokens}, data.difference});
  return all;
}

std::vector<Array> arrays(const DifferenceData& data) {
  if (data.message) return {};
  constexpr std::array<const char*, 4> equations{kRouting, "S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3)", kGates, kGates};
  return {{data.models + " of " + data.quantity,
           "",
           equations[static_cast<std::size_t>(data.mode)],
           {named_axis("channel", data.names), token_axis(data.tokens)},
           data.cells.values(),
           true}};
}

std::vector<Array> arrays(const BranchesData& data) {
  if (data.message) return {};
  std::vector<Array> all;
  if (!data.curve_message) {
    add_if_known(all, {"KL(p ‖ p′)", "nat", "Σ p ln(p / p′) of the next token", {token_axis(data.tokens)}, data.divergence});
    add_if_known(all, {"max |z′ − z|", "", "of the logits of the next token", {token_axis(data.tokens)}, data.logits});
  }
  Array layers{.name = "‖S′ − S‖ / ‖S‖",
               .unit = "",
               .equation = "Frobenius norms over all slots and heads (GLA eq. 3, SSE eq. 9)",
               .axes = {},
               .values = {}};
  std::vector<std::string> names;
  for (const LayerChange& layer : data.layers) {
    names.push_back(std::to_string(layer.layer));
    layers.values.push_back(layer.relative);
  }
  layers.axes = {named_axis("layer", names)};
  add_if_known(all, std::move(layers));
  return all;
}

}  // namespace statescope
