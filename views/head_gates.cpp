#include "views/head_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "views/arrays.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kTableRows = 256;

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

  std::vector<Array> arrays() const override { return statescope::arrays(data_); }
  Table table() const override {
    if (data_.message) return {};
    return data_.mode == GateMode::over_time ? series_table() : data_.mode == GateMode::sharpness ? sharpness_table() : head_table();
  }
  std::string describe() const override { return data_.message ? data_.message.sentence() : summary(data_) + "."; }

  std::string tooltip(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0) return {};
    if (hit_id >= kGateCurveIds) return hit_id - kGateCurveIds <= std::ssize(data_.lambdas) ? curve_tooltip(hit_id - kGateCurveIds) : "";
    if (hit_id >= kGateLaneIds) return hit_id - kGateLaneIds < data_.tokens.count() ? series_tooltip(hit_id - kGateLaneIds) : "";
    if (hit_id >= kGateHeadIds) return hit_id - kGateHeadIds < data_.heads ? head_tooltip(hit_id - kGateHeadIds) : "";
    const std::int64_t n = data_.map.columns();
    return hit_id < n * n ? flow_tooltip(hit_id / n, hit_id % n) : "";
  }
  CursorMove on_hit(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0 || hit_id >= kGateCurveIds) return {};
    if (hit_id >= kGateLaneIds)
      return hit_id - kGateLaneIds < data_.tokens.count() ? CursorMove{.token = token_at(hit_id - kGateLaneIds)} : CursorMove{};
    if (hit_id >= kGateHeadIds) return hit_id - kGateHeadIds < data_.heads ? CursorMove{.head = hit_id - kGateHeadIds} : CursorMove{};
    const std::int64_t n = data_.map.columns();
    return hit_id < n * n ? CursorMove{.token = token_at(hit_id / n)} : CursorMove{};
  }

 private:
  std::int64_t token_at(std::int64_t place) const { return data_.tokens.tokens[static_cast<std::size_t>(place)]; }

  std::string head_tooltip(std::int64_t head) const {
    const auto h = static_cast<std::size_t>(head);
    std::string text =
        Views::tr("head {} at {}\nG^Q = {}, reads\nG^K = {}, writes\nsoftmax over {} heads (SLA eq. 4)", head,
                  token_words(*data_.tokens.run, data_.token), number(data_.q.gate[h], 9), number(data_.k.gate[h], 9), data_.heads);
    if (!data_.q.probe.empty())
      text += "\n" + Views::tr("at λ = {:.3g}: G^Q = {}, G^K = {}, a probe that changes nothing in the run", data_.lambda,
                               number(data_.q.probe[h], 9), number(data_.k.probe[h], 9));
    if (data_.effective)
      text += "\n" +
              Views::tr("read_gate_effective = {}: relative change of the layer's output if G^Q were 1 (A13)", number(*data_.effective, 9));
    return fmt::format("{}\n{}", text, accuracy_words(HeadContest::accuracy));
  }
  std::string series_tooltip(std::int64_t place) const {
    const auto i = static_cast<std::size_t>(place);
    return Views::tr(
        "{}\nwins the write: head {}, entropy of G^K {}\nwins the read: head {}, entropy of G^Q {}\nC(t,t) = {} = Σ_h G^Q G^K\n{}",
        token_words(*data_.tokens.run, token_at(place)), data_.winner_k[i], number(data_.entropy_k[i], 9), data_.winner_q[i],
        number(data_.entropy_q[i], 9), number(data_.own_flow[i], 9), accuracy_words(HeadContest::accuracy));
  }
  std::string flow_tooltip(std::int64_t row, std::int64_t column) const {
    const std::string reader = token_words(*data_.tokens.run, token_at(row)), source = token_words(*data_.tokens.run, token_at(column));
    if (column > row) return Views::tr("{} reads from {}: nothing, it comes later", reader, source);
    std::string text =
        Views::tr("{} reads from {}\nC = {} = Σ_h G^Q_h,t G^K_h,s (SLA Thm 4.3)", reader, source, number(data_.map.at(row, column), 9));
    if (data_.lambda != 1) text += "\n" + Views::tr("at {}", lambda_words(data_.lambda));
    return fmt::format("{}\n{}", text, accuracy_words(SharpenedGates::accuracy));
  }
  std::string curve_tooltip(std::int64_t index) const {
    if (index >= std::ssize(data_.lambdas)) return Views::tr("The curves have not been worked out yet");
    const auto i = static_cast<std::size_t>(index);
    const std::string entropies = Views::tr("λ = {:g}\nentropy of G^Q {} (SLA eq. 8: never grows with λ)\nentropy of G^K {}",
                                            data_.lambdas[i], number(data_.curve_q[i], 9), number(data_.curve_k[i], 9));
    const std::string own = number(data_.curve_flow[i], 9);
    const std::string flow = data_.q.winner == data_.k.winner
                                 ? Views::tr("C(t,t) = {} (SLA eq. 9: tends to 1, for one head wins both)", own)
                                 : Views::tr("C(t,t) = {} (SLA eq. 9: tends to 0, for two heads win)", own);
    return joined({entropies, flow, accuracy_words(SharpenedGates::accuracy)}, "\n");
  }
  Table head_table() const {
    Table table{{Views::tr("head"), Views::tr("G^Q, reads"), Views::tr("G^K, writes"), Views::tr("at λ: G^Q"), Views::tr("at λ: G^K")}, {}};
    for (std::size_t h = 0; data_.token >= 0 && h < static_cast<std::size_t>(data_.heads); ++h) {
      table.rows.push_back({std::to_string(h), number(data_.q.gate[h], 9), number(data_.k.gate[h], 9),
                            data_.q.probe.empty() ? "" : number(data_.q.probe[h], 9),
                            data_.k.probe.empty() ? "" : number(data_.k.probe[h], 9)});
    }
    return table;
  }
  Table series_table() const {
    Table table{{Views::tr("token"), Views::tr("text"), Views::tr("wins the write"), Views::tr("wins the read"),
                 Views::tr("entropy of G^K"), Views::tr("entropy of G^Q"), "C(t,t)"},
                {}};
    const std::int64_t first = std::max<std::int64_t>(0, data_.place() - kTableRows / 2);
    for (std::int64_t place = first; place < std::min(data_.tokens.count(), first + kTableRows); ++place) {
      const auto i = static_cast<std::size_t>(place);
      table.rows.push_back({std::to_string(token_at(place)), visible_token(*data_.tokens.run, token_at(place)),
                            std::to_string(data_.winner_k[i]), std::to_string(data_.winner_q[i]), number(data_.entropy_k[i], 9),
                            number(data_.entropy_q[i], 9), number(data_.own_flow[i], 9)});
    }
    return table;
  }
  Table sharpness_table() const {
    Table table{{"λ", Views::tr("entropy of G^Q"), Views::tr("entropy of G^K"), "C(t,t)"}, {}};
    for (std::size_t i = 0; i < data_.lambdas.size(); ++i) {
      table.rows.push_back(
          {number(data_.lambdas[i], 4), number(data_.curve_q[i], 9), number(data_.curve_k[i], 9), number(data_.curve_flow[i], 9)});
    }
    return table;
  }

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
