// Sheets of the views that go along the tokens of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "views/attention.h"
#include "views/branches.h"
#include "views/decay.h"
#include "views/delta_rule.h"
#include "views/difference.h"
#include "views/head_gates.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/timeline.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr const char* kRouting = QT_TRANSLATE_NOOP("Views", "e_t = softmax(x_t W_e); the W largest are written (SSE eq. 9)");
constexpr const char* kGates = QT_TRANSLATE_NOOP("Views", "G_t = softmax_h(λ · logits) (SLA eq. 4, Thm 4.2)");
constexpr const char* kGateEntropy = QT_TRANSLATE_NOOP("Views", "−Σ G log G / log H");
constexpr const char* kProbeEntropy = QT_TRANSLATE_NOOP("Views", "−Σ G log G / log H (SLA Thm 4.2)");

/// Its first `count` places.
Axis until(Axis axis, std::int64_t count) {
  axis.count = count;
  return axis;
}

}  // namespace

std::vector<Sheet> sheets(const TimelineData& data) {
  std::vector<Sheet> all;
  for (const Lane& lane : data.lanes) {
    const bool many = lane.curves.size() > 1;
    std::vector<std::string> names;
    for (const LaneCurve& curve : lane.curves) names.push_back(curve.name);
    Sheet sheet{.axes = {axis_of_names(Views::tr("curve"), names), axis_of_tokens(data.tokens)}, .accuracy = lane.accuracy, .rows = 1};
    sheet.place = lane.missing ? lane.missing.headline : lane.title;
    if (many) sheet.across = 0;
    if (!lane.missing)
      sheet.add({.name = lane.name,
                 .unit = lane.name == Views::tr("loss") ? Views::tr("nat") : "",
                 .equation = lane.source,
                 .along = many ? std::vector<int>{0, 1} : std::vector<int>{1},
                 .number = [&lane, n = data.tokens.count()](std::int64_t i) {
                   return lane.curves[static_cast<std::size_t>(i / n)].values[static_cast<std::size_t>(i % n)];
                 }});
    all.push_back(std::move(sheet));
  }
  return all;
}

namespace {

Sheet ranks_sheet(const DecayData& data) {
  const auto of = [&data](std::int64_t i) -> const DecayRank& { return data.ranks[static_cast<std::size_t>(i)]; };
  std::vector<std::string> channels;
  std::int64_t here = -1;
  for (const DecayRank& rank : data.ranks) {
    if (rank.channel == data.chosen) here = std::ssize(channels);
    channels.push_back(data.channel_name(rank.channel));
  }
  Sheet sheet{.axes = {axis_of_names(Views::tr("channel"), channels, here)}, .place = data.place, .accuracy = Decay::accuracy};
  sheet.axes[0].move = [&data, of](std::int64_t i) { return to_channel(data, of(i).channel); };
  const Column half{.name = Views::tr("half-life"),
                    .unit = Views::tr("tokens"),
                    .equation = Views::tr("ln 2 / mean(−log α)"),
                    .along = {0},
                    .number = [of](std::int64_t i) { return of(i).half_life; }};
  const Column width{.name = Views::tr("receptive field"),
                     .unit = Views::tr("tokens"),
                     .equation = Views::tr("how far back Δ stays above 0.001 (SSE Def. 4)"),
                     .along = {0},
                     .number = [of](std::int64_t i) { return of(i).width; }};
  const bool half_first = data.mode == DecayMode::half_life;
  sheet.columns = {half_first ? half : width, half_first ? width : half};
  sheet.add({.name = Views::tr("reach the run's beginning"), .along = {0}, .text = [&data, of](std::int64_t i) {
               return Views::tr("{} of {}", of(i).censored, data.measured);
             }});
  return sheet;
}

}  // namespace

std::vector<Sheet> sheets(const DecayData& data) {
  if (data.message) return {};
  std::vector<Sheet> all(3);
  if (!data.ranks.empty()) {
    all[DecaySheets::ranks] = ranks_sheet(data);
    return all;
  }
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < data.channels; ++c) names.push_back(data.channel_name(c));
  Axis channels = axis_of_names(Views::tr("channel"), names, data.chosen);
  channels.move = [&data](std::int64_t c) { return to_channel(data, c); };
  const bool cumulative = data.mode == DecayMode::cumulative;
  const Axis tokens = axis_of_tokens(data.tokens);
  Axis written = until(tokens, data.until);
  if (cumulative) written.move = {};  // it would change the landscape of Δ: a click there chooses the channel alone
  Sheet left{.axes = {channels, written}, .place = data.place, .accuracy = Decay::accuracy, .rows = 1}, each = left;
  each.axes[1] = tokens;
  left.add(Views::tr("Δ"), "", Views::tr("Δ_{t,s} = α_{s+1} · … · α_t"), {0, 1}, data.left);
  left.remark = [&data](const Hit&) { return Views::tr("Δ of its write is left after token {}", data.token); };
  each.add("α", "", data.recurrence, {0, 1}, data.alpha);
  Sheet& cells = cumulative ? left : each;
  if (!cells.columns.empty()) cells.columns.front().as_colors = true;
  all[DecaySheets::cells] = cells;
  all[DecaySheets::curve] = cumulative ? each : left;
  return all;
}

std::vector<Sheet> sheets(const DeltaRuleData& data) {
  if (data.message) return {};
  const DeltaRule& rule = data.rule;
  Axis visits = axis_of_tokens(data.tokens);
  visits.here = data.visit;
  if (rule.steps > 1)
    visits.label = [&data](std::int64_t i) {
      return fmt::format("{}, {}", visible_token(*data.tokens.run, data.tokens.tokens[static_cast<std::size_t>(i)]), data.step_words(i));
    };
  const bool two = rule.two_keys;
  std::vector<Sheet> all(4, {.axes = {visits}, .place = data.place, .accuracy = DeltaRule::accuracy});
  Sheet& prediction = all[DeltaRuleSheets::prediction];
  prediction.add("‖π‖", "", two ? Views::tr("π = κ̂ S of the state before its decay") : Views::tr("π = k S̄, S̄ = α S"), {0}, rule.prediction);
  prediction.add("‖v‖", "", Views::tr("the value that is put in"), {0}, rule.value);
  prediction.add("‖v − π‖", "", two ? Views::tr("how far the two are apart") : Views::tr("what the token corrects"), {0}, rule.error);
  all[DeltaRuleSheets::angle].add("cos(π, v)", "", Views::tr("⟨π, v⟩ / (‖π‖ ‖v‖)"), {0}, rule.cosine);
  Sheet& change = all[DeltaRuleSheets::change];
  change.add(two ? "‖(κ̂⊙a)ᵀπ‖" : "‖β kᵀπ‖", "", Views::tr("what is taken away"), {0}, rule.erase);
  change.add(two ? "‖kᵀv‖" : "‖β kᵀv‖", "", Views::tr("what is put in"), {0}, rule.write);
  change.add(two ? "‖kᵀv − (κ̂⊙a)ᵀπ‖" : "‖β kᵀ(v − π)‖", "", Views::tr("both together"), {0}, rule.update);
  Sheet& gates = all[DeltaRuleSheets::gates];
  if (two) {
    gates.add("Σκ̂²a", "", Views::tr("the part of π that is taken away"), {0}, rule.beta);
    gates.add("Σκ̂²w", "", Views::tr("the decay along κ̂"), {0}, rule.alpha);
    gates.add("κ̂·k", "", Views::tr("the part of v that κ̂ reads afterwards"), {0}, rule.put);
    gates.add("Σκ̂²(w − a)", "", Views::tr("what the old state is multiplied with along κ̂"), {0}, rule.along_key);
    return all;
  }
  gates.add("β", "", Views::tr("the strength of the correction"), {0}, rule.beta);
  gates.add("α", "", Views::tr("the decay"), {0}, rule.alpha);
  gates.add("β ‖k‖²", "", Views::tr("the part of the error that is corrected"), {0}, rule.mended);
  gates.add("α (1 − β ‖k‖²)", "", Views::tr("what the old state is multiplied with along k"), {0}, rule.along_key);
  return all;
}

namespace {

Sheet contest_sheet(const HeadGatesData& data) {
  Sheet sheet{.axes = {axis_of_heads(data.heads, data.chosen)}, .accuracy = HeadContest::accuracy};
  for (const auto& [name, probe, gate] : {std::tuple<const char*, std::string, const GateNow&>{"G^Q", Views::tr("G^Q at λ"), data.q},
                                          {"G^K", Views::tr("G^K at λ"), data.k}}) {
    sheet.add(name, "", Views::tr(kGates), {0}, gate.gate);
    sheet.add(probe, "", Views::tr(kGates), {0}, gate.probe);
  }
  sheet.place = after_words(*data.tokens.run, data.token);
  sheet.remark = [&data](const Hit&) -> std::string {
    std::vector<std::string> words;
    if (!data.q.probe.empty()) words.push_back(Views::tr("λ = {:.3g}: a probe that changes nothing in the run", data.lambda));
    if (data.effective)
      words.push_back(
          Views::tr("read_gate_effective = {}: relative change of the layer's output if G^Q were 1", value_text(*data.effective)));
    return joined(words, "\n");
  };
  return sheet;
}

Sheet gates_over_time_sheet(const HeadGatesData& data) {
  Sheet sheet{.axes = {axis_of_heads(data.heads, data.chosen), axis_of_tokens(data.tokens)}, .accuracy = HeadContest::accuracy};
  sheet.rows = 1;
  sheet.across = 0;
  sheet.add("G^Q", "", Views::tr(kGates), {0, 1}, data.gate_q);
  sheet.add("G^K", "", Views::tr(kGates), {0, 1}, data.gate_k);
  sheet.add(Views::tr("entropy of G^Q"), "", Views::tr(kGateEntropy), {1}, data.entropy_q);
  sheet.add(Views::tr("entropy of G^K"), "", Views::tr(kGateEntropy), {1}, data.entropy_k);
  const auto winner = [&sheet](std::string name, const std::vector<std::int32_t>& heads) {
    if (heads.empty()) return;
    sheet.add(
        {.name = std::move(name), .equation = Views::tr("argmax of G over the heads"), .along = {1}, .number = [&heads](std::int64_t i) {
           return static_cast<float>(heads[static_cast<std::size_t>(i)]);
         }});
  };
  winner(Views::tr("head that wins the read"), data.winner_q);
  winner(Views::tr("head that wins the write"), data.winner_k);
  sheet.add("C_{t,t}", "", Views::tr("Σ_h G^Q_t G^K_t (SLA Thm 4.3)"), {1}, data.own_flow);
  return sheet;
}

Sheet flow_sheet(const HeadGatesData& data) {
  Axis from = axis_of_tokens(data.tokens);
  from.move = {};
  Sheet sheet{.axes = {axis_of_tokens(data.tokens), from}, .accuracy = SharpenedGates::accuracy, .rows = 1};
  sheet.add("C", "", Views::tr("C(t,s) = Σ_h G^Q_t G^K_s (SLA Thm 4.3)"), {0, 1}, data.map.values());
  for (Column& column : sheet.columns) {
    column.none = Views::tr("nothing, it comes later");
    column.as_colors = true;
  }
  sheet.remark = [&data](const Hit&) -> std::string {
    return data.lambda == 1 ? "" : Views::tr("λ = {:.3g}: a probe that changes nothing in the run", data.lambda);
  };
  return sheet;
}

Sheet sharpness_sheet(const HeadGatesData& data) {
  Axis lambdas{.name = "λ", .count = std::ssize(data.lambdas), .coordinate = [&data](std::int64_t i) {
                 return static_cast<double>(data.lambdas[static_cast<std::size_t>(i)]);
               }};
  for (std::int64_t i = 0; i < lambdas.count; ++i) {
    const auto off = [&](std::int64_t place) { return std::abs(std::log(lambdas.coordinate(place) / data.lambda)); };
    if (lambdas.here < 0 || off(i) < off(lambdas.here)) lambdas.here = i;
  }
  Sheet sheet{.axes = {lambdas}, .place = after_words(*data.tokens.run, data.token), .accuracy = SharpenedGates::accuracy};
  sheet.add(Views::tr("entropy of G^Q"), "", Views::tr(kProbeEntropy), {0}, data.curve_q);
  sheet.add(Views::tr("entropy of G^K"), "", Views::tr(kProbeEntropy), {0}, data.curve_k);
  sheet.add("C_{t,t}", "", Views::tr("Σ_h G^Q_t G^K_t (SLA Thm 4.3)"), {0}, data.curve_flow);
  sheet.remark = [&data](const Hit&) {
    return data.q.winner == data.k.winner ? Views::tr("C tends to 1, because one head wins both (SLA eq. 9)")
                                          : Views::tr("C tends to 0, because two heads win (SLA eq. 9)");
  };
  return sheet;
}

}  // namespace

std::vector<Sheet> sheets(const HeadGatesData& data) {
  if (data.message) return {};
  std::vector<Sheet> all(4);
  switch (data.mode) {
    case GateMode::contest:
      all[HeadGatesSheets::contest] = contest_sheet(data);
      if (!data.lambdas.empty()) all[HeadGatesSheets::sharpness] = sharpness_sheet(data);  // its curves are drawn beside
      break;
    case GateMode::over_time:
      all[HeadGatesSheets::over_time] = gates_over_time_sheet(data);
      break;
    case GateMode::flow:
      all[HeadGatesSheets::flow] = flow_sheet(data);
      break;
    case GateMode::sharpness:
      all[HeadGatesSheets::sharpness] = sharpness_sheet(data);
      break;
  }
  return all;
}

std::vector<Sheet> sheets(const AttentionData& data) {
  if (data.message) return {};
  const std::string equation = data.equation(), name = data.symbol();
  const std::string what = data.step > 1 ? Views::tr("strongest of {} tokens that are read", data.step) : Views::tr("token that is read");
  Axis from = axis_of_tokens(what, data.tokens), source = from;
  from.move = [&data](std::int64_t i) { return CursorMove{.reference = data.token_at(i)}; };
  source.move = [&data](std::int64_t i) { return CursorMove{.token = data.row[static_cast<std::size_t>(i)].token}; };
  Sheet map{.axes = {axis_of_tokens(data.tokens), from}, .place = data.place, .accuracy = AttentionMap::accuracy, .rows = -1};
  map.add(name, "", equation, {0, 1}, data.cells.values());
  for (Column& column : map.columns) {
    column.none = Views::tr("not worked out yet");
    column.as_colors = true;
  }
  map.remark = [](const Hit& hit) -> std::string {
    return hit.at[1] > hit.at[0] ? Views::tr("a token cannot read what comes after it") : "";
  };
  Sheet row{.axes = {source}, .place = data.place, .accuracy = AttentionMap::accuracy};
  row.add({.name = Views::tr("{} of the token", name), .equation = equation, .along = {0}, .number = [&data](std::int64_t i) {
             return data.row[static_cast<std::size_t>(i)].weight;
           }});
  row.remark = [&data](const Hit& hit) -> std::string {
    if (!hit.names(1)) return {};
    const std::string reader = Views::tr("read by {}", token_words(*data.tokens.run, data.tokens.cursor));
    const std::int64_t strongest = data.row[static_cast<std::size_t>(hit.at[0])].token;
    return data.step == 1 ? reader : reader + "\n" + Views::tr("the strongest is {}", token_words(*data.tokens.run, strongest));
  };
  row.order.resize(data.row.size());
  std::iota(row.order.begin(), row.order.end(), std::int64_t{0});
  std::ranges::stable_sort(row.order, std::ranges::greater{},
                           [&](std::int64_t i) { return std::abs(data.row[static_cast<std::size_t>(i)].weight); });
  row.order.resize(std::min(row.order.size(), AttentionData::kMostSources));
  Sheet before{.place = data.place, .accuracy = AttentionMap::accuracy};
  if (data.token_at(0) > 0) {
    before.axes = {axis_of_names(Views::tr("tokens"), {Views::tr("before token {}", data.token_at(0))}, 0)};
    before.add({.name = "Σ|A|", .equation = equation, .along = {0}, .number = [&data](std::int64_t) { return data.before; }});
  }
  return {map, row, before};
}

std::vector<Sheet> sheets(const DifferenceData& data) {
  if (data.message) return {};
  const std::string equation = data.mode == DifferenceMode::routing ? Views::tr(kRouting)
                               : data.mode == DifferenceMode::decay ? data.recurrence
                                                                    : Views::tr(kGates);
  Sheet sheet{.axes = {axis_of_names(Views::tr("channel"), data.names, 0), axis_of_tokens(data.tokens)}, .accuracy = kReplayed};
  sheet.most_rows = 64;
  if (data.of_rows) sheet.axes[0].move = [](std::int64_t c) { return CursorMove{.row = c}; };
  sheet.add(Views::tr("{} of {}", data.models, data.quantity), "", equation, {0, 1}, data.cells.values());
  for (Column& column : sheet.columns) {
    column.none = Views::tr("one or both have none here");
    column.as_colors = true;
  }
  return {sheet};
}

std::vector<Sheet> sheets(const BranchesData& data) {
  if (data.message) return {};
  Sheet tokens{.axes = {axis_of_tokens(data.tokens)}, .accuracy = BranchPredictions::accuracy};
  if (!data.curve_message) {
    tokens.add(Views::tr("KL(p ‖ p′)"), Views::tr("nat"), Views::tr("Σ p ln(p / p′) of the next token"), {0}, data.divergence);
    tokens.add(Views::tr("max |z′ − z|"), "", Views::tr("of the logits of the next token"), {0}, data.logits);
  }
  for (Column& column : tokens.columns) column.none = Views::tr("the same on both branches");
  std::vector<std::string> names;
  for (const LayerChange& layer : data.layers) names.push_back(std::to_string(layer.layer));
  Sheet layers{.axes = {axis_of_names(Views::tr("layer"), names)}, .place = data.states_after, .accuracy = BranchStates::accuracy};
  if (data.layers.empty()) return {tokens, layers};
  const auto of = [&data](std::int64_t i) -> const LayerChange& { return data.layers[static_cast<std::size_t>(i)]; };
  layers.axes[0].move = [of](std::int64_t i) { return CursorMove{.layer = of(i).layer}; };
  const std::string norms = Views::tr("Frobenius norms over all slots and heads");
  const auto add = [&](std::string name, std::function<double(const LayerChange&)> get) {
    layers.add({.name = std::move(name), .equation = norms, .along = {0}, .number = [of, get](std::int64_t i) {
                  return static_cast<float>(get(of(i)));
                }});
  };
  add("‖S′ − S‖ / ‖S‖", [](const LayerChange& layer) { return static_cast<double>(layer.relative); });
  add("‖S′ − S‖", [](const LayerChange& layer) { return layer.difference; });
  add(Views::tr("‖S‖, of the parent branch"), [](const LayerChange& layer) { return layer.left; });
  add(Views::tr("‖S′‖, here"), [](const LayerChange& layer) { return layer.here; });
  return {tokens, layers};
}

}  // namespace statescope
