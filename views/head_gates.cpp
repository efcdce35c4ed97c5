#include "views/head_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

TokenWindow window_of(const Snapshot& snapshot, const Cursor& cursor) {
  const auto tokens = static_cast<std::int64_t>(snapshot.run->tokens.size());
  return window_around(std::clamp<std::int64_t>(cursor.token, 0, tokens - 1), tokens);
}

SharpenedGatesQuestion sharpened_of(const Snapshot& snapshot, const Cursor& cursor, double lambda) {
  const TokenWindow window = window_of(snapshot, cursor);
  return {snapshot.layer, window.from, window.to, lambda};
}

std::vector<float> part(const std::vector<float>& values, std::int64_t from, std::int64_t to) {
  return {values.begin() + from, values.begin() + to};
}

/// [H, n] of gates [T, H] at the tokens [from, to)
std::vector<float> by_head(const std::vector<float>& gates, std::int64_t heads, TokenWindow window) {
  std::vector<float> result;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = window.from; t < window.to; ++t) result.push_back(gates[static_cast<std::size_t>(t * heads + h)]);
  }
  return result;
}

GateNow gate_at(const std::vector<float>& gates, const std::vector<float>& entropy, const std::vector<std::int32_t>& winner,
                const std::vector<float>& margin, std::int64_t heads, std::int64_t token) {
  const auto t = static_cast<std::size_t>(token);
  return {part(gates, token * heads, (token + 1) * heads), {}, entropy[t], margin[t], winner[t]};
}

/// C_{t,s} of the window, NaN above the diagonal: a token reads nothing from later ones.
std::vector<float> causal(const std::vector<float>& flow, std::int64_t n) {
  std::vector<float> map = flow;
  for (std::int64_t t = 0; t < n; ++t) {
    for (std::int64_t s = t + 1; s < n; ++s) map[static_cast<std::size_t>(t * n + s)] = std::numeric_limits<float>::quiet_NaN();
  }
  return map;
}

void fill_map(HeadGatesData& data, const std::vector<float>& flow, const RangeChoice& range) {
  const float high = static_cast<float>(axis_over(flow).high);
  std::vector<float> map = causal(flow, data.tokens.count());
  data.coloring = colored(map, {0, high}, {{0, "0"}, {high / 2, number(high / 2, 2)}, {high, number(high, 2)}}, range);
  data.map = Pyramid(std::move(map), data.tokens.count(), data.tokens.count());
}

void fill_probe(HeadGatesData& data, const SharpenedGates& sharp) {
  const std::int64_t m = std::ssize(sharp.lambda), place = data.place();
  if (place < 0) return;
  if (data.lambda != 1) {
    data.q.probe = part(sharp.gate_q, place * data.heads, (place + 1) * data.heads);
    data.k.probe = part(sharp.gate_k, place * data.heads, (place + 1) * data.heads);
  }
  data.lambdas = sharp.lambda;
  data.curve_q = part(sharp.curve_q, place * m, (place + 1) * m);
  data.curve_k = part(sharp.curve_k, place * m, (place + 1) * m);
  data.curve_flow = part(sharp.curve_flow, place * m, (place + 1) * m);
}

class HeadGatesView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (!layer_of(snapshot)) return {};
    return {HeadGatesQuestion{snapshot.layer}, sharpened_of(snapshot, cursor, lambda_)};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 4> names = {QT_TRANSLATE_NOOP("Views", "Contest"),
                                                              QT_TRANSLATE_NOOP("Views", "Over time"), QT_TRANSLATE_NOOP("Views", "Flow"),
                                                              QT_TRANSLATE_NOOP("Views", "Sharpness")};
    return names;
  }
  std::optional<Knob> knob() const override {
    return Knob{
        "λ",
        QT_TRANSLATE_NOOP("Views", "Multiplies the logits of both gates (SLA Thm 4.2, 4.3): a probe, which changes nothing in the run."),
        0.25,
        16,
        lambda_,
        true};
  }
  /// A slider has places around 1 but none at it.
  void turn(double value) override { lambda_ = std::abs(std::log2(value)) < 0.02 ? 1 : value; }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_head_gates(snapshot, cursor, findings, static_cast<GateMode>(mode()), lambda_, range());
  }
  std::optional<Shading> shading() const override { return shading_of(data_.coloring); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : summary(data_) + "."; }

 private:
  HeadGatesData data_;
  double lambda_ = 1;
};

}  // namespace

std::string summary(const HeadGatesData& data) {
  const std::string place = Views::tr("layer {}", data.layer);
  if (data.token < 0) return sentence_at(Views::tr("no token has been read yet"), place);
  return sentence_at(Views::tr("head {} wins the write, head {} the read; C(t,t) = {}", data.k.winner, data.q.winner, number(data.flow, 3)),
                     fmt::format("{}, {}", token_words(*data.tokens.run, data.token), place));
}

std::string lambda_words(double lambda) { return Views::tr("λ = {:.3g}, a probe that changes nothing in the run", lambda); }

HeadGatesData build_head_gates(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, GateMode mode, double lambda,
                               const RangeChoice& range) {
  HeadGatesData data;
  data.mode = mode;
  data.lambda = lambda;
  const LayerInfo* layer = layer_of(snapshot);
  if (!layer) {
    data.message = without_memory(snapshot);
    return data;
  }
  data.layer = snapshot.layer;
  const HeadContest* contest = findings.get(HeadGatesQuestion{snapshot.layer});
  if (!contest) {
    data.message = waiting(findings, HeadGatesQuestion{snapshot.layer}, Views::tr("The contest of the heads of layer {}", snapshot.layer));
    return data;
  }
  if (contest->heads == 0) {
    data.message = {Views::tr("The heads of layer {} ({}) do not compete", snapshot.layer, layer->mixer),
                    Views::tr("Every head writes and reads every token in full. SLA models have gates over their heads.")};
    return data;
  }
  const TokenWindow window = window_of(snapshot, cursor);
  const auto tokens = static_cast<std::int64_t>(snapshot.run->tokens.size());
  data.heads = contest->heads;
  data.chosen = std::clamp<std::int64_t>(cursor.head, 0, data.heads - 1);
  data.token = std::clamp<std::int64_t>(cursor.token, 0, tokens - 1) - (cursor.progress < 1 ? 1 : 0);
  data.tokens = {snapshot.run, token_range(window.from, window.to), data.token};
  data.gate_q = by_head(contest->gate_q, data.heads, window);
  data.gate_k = by_head(contest->gate_k, data.heads, window);
  data.entropy_q = part(contest->entropy_q, window.from, window.to);
  data.entropy_k = part(contest->entropy_k, window.from, window.to);
  data.own_flow = part(contest->flow, window.from, window.to);
  data.winner_q = {contest->winner_q.begin() + window.from, contest->winner_q.begin() + window.to};
  data.winner_k = {contest->winner_k.begin() + window.from, contest->winner_k.begin() + window.to};
  if (data.token >= 0) {
    data.q = gate_at(contest->gate_q, contest->entropy_q, contest->winner_q, contest->margin_q, data.heads, data.token);
    data.k = gate_at(contest->gate_k, contest->entropy_k, contest->winner_k, contest->margin_k, data.heads, data.token);
    data.flow = contest->flow[static_cast<std::size_t>(data.token)];
    if (!contest->read_gate_effective.empty()) data.effective = contest->read_gate_effective[static_cast<std::size_t>(data.token)];
  }
  const SharpenedGatesQuestion probe = sharpened_of(snapshot, cursor, lambda);
  if (const SharpenedGates* sharp = findings.get(probe)) {
    fill_probe(data, *sharp);
    if (mode == GateMode::flow) fill_map(data, sharp->flow, range);
  } else if (mode == GateMode::flow || mode == GateMode::sharpness) {
    data.message = waiting(findings, probe, Views::tr("What passes between the tokens of layer {}", snapshot.layer));
  }
  return data;
}

std::unique_ptr<View> make_head_gates() { return std::make_unique<HeadGatesView>(); }

}  // namespace statescope
