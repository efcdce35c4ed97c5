// Sheets of the views of what becomes of a token: where it is routed, what is said after it.
#include <fmt/format.h>

#include <limits>

#include "views/choices.h"
#include "views/experts.h"
#include "views/parts.h"
#include "views/predictions.h"
#include "views/predictions_beside.h"
#include "views/routing.h"
#include "views/sheets.h"
#include "views/token_strip.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr const char* kRouting = QT_TRANSLATE_NOOP("Views", "e_t = softmax(x_t W_e); the W largest are written (SSE eq. 9)");
constexpr const char* kExperts = QT_TRANSLATE_NOOP("Views", "y = Σ_e w_e E_e(x) of the chosen experts (Shazeer et al. 2017, eq. 1)");
constexpr const char* kNext = QT_TRANSLATE_NOOP("Views", "p = softmax(z), z = W RMSNorm(x_t)");

}  // namespace

std::vector<Sheet> sheets(const TokenStripData& data) {
  if (data.tokens() == 0) return {};
  const RunInfo& run = *data.run;
  const Axis axis{.name = Views::tr("token"),
                  .count = data.tokens(),
                  .here = data.token,
                  .coordinate = [](std::int64_t t) { return static_cast<double>(t); },
                  .label = [&run](std::int64_t t) { return visible_token(run, t); },
                  .move = [](std::int64_t t) { return CursorMove{.token = t}; }};
  Sheet tokens{.axes = {axis}, .most_rows = data.tokens()};
  tokens.add({.name = Views::tr("id"), .equation = Views::tr("as the tokenizer says"), .along = {0}, .number = [&run](std::int64_t t) {
                return static_cast<float>(run.tokens[static_cast<std::size_t>(t)].id);
              }});
  tokens.add({.name = Views::tr("mark"), .along = {0}, .text = [&data](std::int64_t t) { return mark_words(data, t); }});
  std::vector<Sheet> all{tokens};
  for (const TokenLane& lane : data.lanes) {
    all.front().add({.name = lane.name(), .along = {0}, .text = [&lane](std::int64_t t) { return partitions_text(lane, t); }});
    const std::int64_t n = lane.routing->partitions, known = std::min(lane.until + 1, lane.routing->tokens());
    Sheet routed{.axes = {axis, axis_of_count(Views::tr("partition"), n)}, .rows = -1};
    routed.add({.name = lane.letter.empty() ? Views::tr("routed") : Views::tr("routed {}", lane.letter),
                .equation = Views::tr(kRouting),
                .along = {0, 1},
                .number = [&lane, n, known](std::int64_t i) {
                  return i >= known * n ? kNone : lane.routing->selected_at(i / n, i % n) ? 1.0f : 0.0f;
                }});
    all.push_back(std::move(routed));
  }
  return all;
}

std::vector<Sheet> sheets(const RoutingData& data) {
  if (!data.headline.empty()) return {};
  std::vector<std::string> names;
  for (const PartitionBox& box : data.boxes) names.push_back(box.name);
  Axis slots = axis_of_names(Views::tr("partition"), names, data.chosen_slot);
  const auto box = [&data](std::int64_t i) -> const PartitionBox& { return data.boxes[static_cast<std::size_t>(i)]; };
  slots.move = [box](std::int64_t i) { return CursorMove{.slot = box(i).slot}; };
  const auto token = [&data](std::int64_t i) -> const RoutedToken& { return data.tokens[static_cast<std::size_t>(i)]; };
  const auto now = std::ranges::find(data.tokens, data.shown, &RoutedToken::token);
  Axis tokens{.name = Views::tr("token"),
              .count = std::ssize(data.tokens),
              .here = now == data.tokens.end() ? -1 : now - data.tokens.begin(),
              .coordinate = [token](std::int64_t i) { return static_cast<double>(token(i).token); },
              .label = [token](std::int64_t i) { return token(i).text; },
              .move = [token](std::int64_t i) { return CursorMove{.token = token(i).token}; }};
  Sheet routed{.axes = {tokens, slots}, .place = Views::tr("layer {}", data.layer), .rows = 1};
  routed.add(
      {.name = "e", .equation = Views::tr(kRouting), .along = {0, 1}, .number = [box, token, n = std::ssize(data.boxes)](std::int64_t i) {
         for (const Write& write : token(i / n).writes)
           if (write.slot == box(i % n).slot) return write.gate;
         return kNone;
       }});
  Sheet loads{.axes = {slots}, .place = Views::tr("layer {}", data.layer)};
  const auto add = [&](std::string name, std::string unit, std::string equation, std::function<float(const PartitionBox&)> get) {
    loads.add({.name = std::move(name),
               .unit = std::move(unit),
               .equation = std::move(equation),
               .along = {0},
               .number = [box, get](std::int64_t i) { return get(box(i)); }});
  };
  add(Views::tr("visits"), Views::tr("tokens"), Views::tr("tokens that were routed here"),
      [](const PartitionBox& one) { return static_cast<float>(one.load); });
  add(Views::tr("load"), "", Views::tr("visits · N / Σ visits"),
      [](const PartitionBox& one) { return one.shared ? kNone : one.load_ratio; });
  add(Views::tr("e now, written or not"), "", Views::tr("e_t = softmax(x_t W_e) of the token that is shown"),
      [](const PartitionBox& one) { return one.shared ? kNone : one.gate; });
  loads.add({.name = Views::tr("written now"), .along = {0}, .text = [box](std::int64_t i) {
               return box(i).written ? Views::tr("yes") : Views::tr("no, nor decayed");
             }});
  loads.add({.name = Views::tr("alarm"), .along = {0}, .text = [box](std::int64_t i) { return alarm_words(box(i).alarm); }});
  return {routed, loads};
}

std::vector<Sheet> sheets(const PredictionsData& data) {
  if (data.message) return {};
  const auto of = [&data](std::int64_t i) -> const PredictionBar& { return data.bars[static_cast<std::size_t>(i)]; };
  std::vector<std::string> texts;
  for (const PredictionBar& bar : data.bars) texts.push_back(bar.text);
  Sheet bars{.axes = {axis_of_names(Views::tr("prediction"), texts, 0)}, .place = after_words(*data.tokens.run, data.token)};
  if (!data.bars.empty()) {
    bars.add({.name = Views::tr("p of the next token"), .equation = Views::tr(kNext), .along = {0}, .number = [of](std::int64_t i) {
                return of(i).probability;
              }});
    bars.add({.name = Views::tr("id"), .along = {0}, .text = [of](std::int64_t i) { return std::to_string(of(i).id); }});
    bars.add({.name = Views::tr("mark"), .along = {0}, .text = [of](std::int64_t i) { return marks_of(of(i)); }});
  }
  if (data.curves_message) return {bars};
  Sheet tokens{.axes = {axis_of_tokens(data.tokens)}, .accuracy = Predictions::accuracy};
  tokens.add(Views::tr("p of the token that follows"), "", Views::tr(kNext), {0}, data.next);
  tokens.add(Views::tr("rank of the token that follows"), "", Views::tr("1 + how many are more probable"), {0}, data.rank);
  tokens.add(Views::tr("entropy"), Views::tr("nat"), Views::tr("−Σ p log p"), {0}, data.entropy);
  const bool logits = data.mode == PredictionsMode::logits;
  for (const TokenCurve& curve : data.curves)
    tokens.add(logits ? Views::tr("z of {}", curve.text) : Views::tr("p of {}", curve.text), "", Views::tr(kNext), {0}, curve.values);
  Sheet right{.axes = {{.name = Views::tr("due after token"), .count = std::ssize(data.right)}}};
  right.axes[0].coordinate = [&data](std::int64_t i) {
    return static_cast<double>(data.tokens.tokens[static_cast<std::size_t>(data.right[static_cast<std::size_t>(i)].place)]);
  };
  right.axes[0].label = [&data](std::int64_t i) { return data.right[static_cast<std::size_t>(i)].text; };
  if (!data.right.empty())
    right.add(
        {.name = Views::tr("p of the right answer's token"), .equation = Views::tr(kNext), .along = {0}, .number = [&data](std::int64_t i) {
           return data.right[static_cast<std::size_t>(i)].probability;
         }});
  return {bars, tokens, right};
}

std::vector<Sheet> sheets(const PredictionsBesideData& data) {
  if (data.message) return {};
  const auto of = [&data](std::int64_t i) -> const PairedBar& { return data.bars[static_cast<std::size_t>(i)]; };
  std::vector<std::string> texts;
  for (const PairedBar& bar : data.bars) texts.push_back(bar.text);
  Sheet bars{.axes = {axis_of_names(Views::tr("prediction"), texts, 0), axis_of_names(Views::tr("model"), {data.own_letter, data.letter})},
             .place = Views::tr("after token {} “{}”", data.token, data.token_text),
             .across = 1};
  if (!data.bars.empty()) {
    bars.add({.name = Views::tr("p of the next token"), .equation = Views::tr(kNext), .along = {0, 1}, .number = [of](std::int64_t i) {
                return i % 2 == 0 ? of(i / 2).own : of(i / 2).other;
              }});
    bars.columns.front().none = Views::tr("smaller than any that is known");
    bars.add({.name = Views::tr("mark"), .along = {0}, .text = [of](std::int64_t i) { return of(i).right ? Views::tr("right") : ""; }});
  }
  if (data.curves_message) return {bars};
  Sheet tokens{.axes = {axis_of_tokens(data.tokens)}, .accuracy = Predictions::accuracy};
  tokens.add(Views::tr("p of the token that follows, {}", data.own_letter), "", Views::tr(kNext), {0}, data.own);
  tokens.add(Views::tr("p of the token that follows, {}", data.letter), "", Views::tr(kNext), {0}, data.other);
  tokens.add(data.own_letter + " − " + data.letter, "", Views::tr(kNext), {0}, data.difference);
  return {bars, tokens};
}

std::vector<Sheet> sheets(const ChoicesData& data) {
  if (data.message) return {};
  const std::string equation = data.score.empty() ? Views::tr("the largest q_t · mean(k) (MoBA eq. 5, 6)")
                               : data.size == 1   ? Views::tr("I_{t,s} = Σ_j w_{t,j} ReLU(q_{t,j} · k_s) (DeepSeek-V3.2 eq. 1)")
                                                  : Views::tr("p_t, weight of the block's mean (NSA eq. 9)");
  const std::string what = data.each == 1 ? Views::tr("token to look at") : Views::tr("block to look at");
  Axis looked = {.name = what, .count = data.places(), .label = [&data](std::int64_t place) {
                   return words_of(data, place * data.each, (place + 1) * data.each);
                 }};
  looked.here = data.tokens.cursor < 0 ? -1 : data.tokens.cursor / data.each;
  looked.move = [&data](std::int64_t place) { return CursorMove{.reference = place * data.each}; };
  Sheet map{.axes = {looked, axis_of_tokens(data.tokens)}, .place = data.place, .accuracy = Choices::accuracy, .rows = -1};
  map.add(Views::tr("looked at"), "", equation, {0, 1}, data.cells.values());
  map.add(Views::tr("score"), "", equation, {0, 1}, data.score);
  for (Column& column : map.columns) column.none = Views::tr("not chosen");
  map.remark = [&data](const Hit& hit) -> std::string {
    const bool later = hit.names(1) && hit.at[0] * data.each > data.tokens.tokens[static_cast<std::size_t>(hit.at[1])];
    return later ? Views::tr("a token cannot read what comes after it") : "";
  };
  Axis chosen = {.name = Views::tr("looked at by the token"),
                 .count = std::ssize(data.chosen),
                 .here = data.chosen.empty() ? -1 : 0,
                 .label = [&data](std::int64_t i) {
                   const ChoicesData::Chosen& each = data.chosen[static_cast<std::size_t>(i)];
                   return words_of(data, each.from, each.to);
                 }};
  chosen.move = [&data](std::int64_t i) { return CursorMove{.token = data.chosen[static_cast<std::size_t>(i)].from}; };
  Sheet of_token{.axes = {chosen}, .place = data.place, .accuracy = Choices::accuracy};
  of_token.add({.name = Views::tr("first token"), .equation = equation, .along = {0}, .number = [&data](std::int64_t i) {
                  return static_cast<float>(data.chosen[static_cast<std::size_t>(i)].from);
                }});
  if (!data.score.empty())
    of_token.add({.name = Views::tr("score of it"), .equation = equation, .along = {0}, .number = [&data](std::int64_t i) {
                    return data.chosen[static_cast<std::size_t>(i)].score;
                  }});
  return {map, of_token};
}

namespace {

Sheet chosen_experts_sheet(const ExpertsData& data) {
  const auto of = [&data](std::int64_t i) -> const ExpertsData::Chosen& { return data.chosen[static_cast<std::size_t>(i)]; };
  Axis chosen{.name = Views::tr("chosen expert"), .count = std::ssize(data.chosen), .here = data.chosen.empty() ? -1 : 0};
  chosen.coordinate = [of](std::int64_t i) { return static_cast<double>(of(i).expert); };
  Sheet sheet{.axes = {chosen}, .place = data.place, .accuracy = Experts::accuracy};
  const auto add = [&](std::string name, std::string equation, std::function<float(const ExpertsData::Chosen&)> get) {
    sheet.add({.name = std::move(name), .equation = std::move(equation), .along = {0}, .number = [of, get](std::int64_t i) {
                 return get(of(i));
               }});
  };
  add(Views::tr("weight"), Views::tr(kExperts), [](const ExpertsData::Chosen& one) { return one.weight; });
  add(Views::tr("share of the weights"), Views::tr("w_e / Σ w"), [](const ExpertsData::Chosen& one) { return one.share; });
  return sheet;
}

Sheet expert_loads_sheet(const ExpertsData& data, const Axis& experts) {
  const auto of = [&data](std::int64_t i) -> const ExpertsData::Load& { return data.loads[static_cast<std::size_t>(i)]; };
  Sheet sheet{.axes = {experts}, .place = data.place, .accuracy = Experts::accuracy};
  sheet.add({.name = Views::tr("visits"),
             .unit = Views::tr("tokens"),
             .equation = Views::tr("tokens so far that go to the expert"),
             .along = {0},
             .number = [of](std::int64_t i) { return static_cast<float>(of(i).tokens); }});
  sheet.add({.name = Views::tr("load"),
             .equation = Views::tr("f_e / (k / E), f_e the fraction of the tokens so far (Switch Transformers eq. 5)"),
             .along = {0},
             .number = [of](std::int64_t i) { return of(i).ratio; }});
  sheet.add({.name = Views::tr("alarm"), .along = {0}, .text = [of](std::int64_t i) { return alarm_words(of(i).alarm); }});
  return sheet;
}

}  // namespace

std::vector<Sheet> sheets(const ExpertsData& data) {
  if (data.message) return {};
  const Axis experts = axis_of_count(Views::tr("expert"), data.experts(), data.chosen.empty() ? -1 : data.chosen.front().expert);
  Axis read = axis_of_tokens(data.tokens);
  read.count = data.until;
  Sheet map{.axes = {experts, read}, .place = data.place, .accuracy = Experts::accuracy, .rows = -1};
  map.add(Views::tr("share"), "", Views::tr("w_e / Σ w over the chosen experts"), {0, 1}, data.share);
  for (Column& column : map.columns) {
    column.none = Views::tr("not chosen");
    column.as_colors = true;
  }
  return {map, chosen_experts_sheet(data), expert_loads_sheet(data, experts)};
}

}  // namespace statescope
