#include "app/lesson/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "engine/error.h"
#include "views/needle.h"
#include "views/parts.h"

namespace statescope {
namespace {

// --------------------------------------------------------------------------------------------------------------------------- how they read

Measured unknown(std::string why) { return {.text = std::move(why), .known = false}; }
Measured words(std::string text) { return {.text = std::move(text)}; }
Measured count(std::int64_t n) { return {static_cast<double>(n), std::to_string(n)}; }

Measured real(double value) {
  if (std::isnan(value)) return unknown("unknown");
  if (std::isinf(value)) return {value, "infinite"};
  const bool is_whole = std::abs(value) >= 1000 && std::abs(value) < 1e6;  // in prose, no 3.29e+03
  return {value, is_whole ? fmt::format("{:.0f}", value) : number(static_cast<float>(value), 3)};
}

Measured share(double part) {
  if (std::isnan(part)) return unknown("unknown");
  const double percent = 100 * part;
  return {part, std::abs(percent) < 0.95 && percent != 0 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent)};
}

Measured token_count(double tokens) {
  constexpr double endless = 1e6;
  if (!(tokens < endless)) return {tokens, "over a million"};
  return {tokens, tokens < 10 ? fmt::format("{:.1f}", tokens) : fmt::format("{:.0f}", tokens)};
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string answer_text(const RunInfo& run, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t t = begin; t < std::min(end, run.tokens.size()); ++t) {
    const std::string& word = run.tokens[t].text;
    if (!text.empty() && !word.starts_with(' ')) text += ' ';
    text += word;
  }
  return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

std::string answered(const RunInfo& run) {
  const auto prompt = static_cast<std::size_t>(run.prompt_length);
  return answer_text(run, prompt, run.expected.empty() ? run.tokens.size() : prompt + run.expected.size());
}

std::string expected(const RunInfo& run) {
  RunInfo wanted;
  wanted.tokens = run.expected;
  return answer_text(wanted, 0, wanted.tokens.size());
}

const LayerInfo& layer_at(const QuantitySource& s) { return s.run.model.layers[static_cast<std::size_t>(s.at.layer)]; }

/// The answer to the quantity's own question.
template <class Q>
const typename Q::Answer& answer(const QuantitySource& s, std::optional<Question> (*question)(const RunInfo&, const QuantityPlace&)) {
  return *s.findings.get(std::get<Q>(*question(s.run, s.at)));
}

// -------------------------------------------------------------------------------------------------------------------- routing, as it stood

using Partitions = std::vector<std::int64_t>;

Partitions partitions_of(const QuantitySource& s, std::int64_t token) {
  Partitions chosen;
  if (const Routing* routing = s.snapshot->routing.get())
    for (std::int64_t n = 0; n < routing->partitions; ++n)
      if (routing->selected_at(token, n)) chosen.push_back(n + 1);
  return chosen;
}

/// How often tokens 0 … at.token went to each partition.
Partitions loads(const QuantitySource& s) {
  Partitions visits(static_cast<std::size_t>(s.snapshot->routing ? s.snapshot->routing->partitions : 0));
  for (std::int64_t t = 0; t <= s.at.token; ++t)
    for (const std::int64_t partition : partitions_of(s, t)) ++visits[static_cast<std::size_t>(partition - 1)];
  return visits;
}

Measured partition_chosen(const QuantitySource& s) {
  const Partitions chosen = partitions_of(s, s.at.token);
  if (chosen.empty()) return unknown("none: this layer does not route");
  std::vector<std::string> names;
  for (const std::int64_t n : chosen) names.push_back(std::to_string(n));
  return {static_cast<double>(chosen.front()), joined(names, " and ")};
}

Measured partition_gate(const QuantitySource& s) {
  const Partitions chosen = partitions_of(s, s.at.token);
  if (chosen.empty()) return unknown("none: this layer does not route");
  return share(static_cast<double>(s.snapshot->routing->gate_at(s.at.token, chosen.front() - 1)));
}

Measured largest_load(const QuantitySource& s) {
  const Partitions visits = loads(s);
  const auto all = std::accumulate(visits.begin(), visits.end(), std::int64_t{0});
  if (all == 0) return unknown("none: this layer does not route");
  return share(static_cast<double>(std::ranges::max(visits)) / static_cast<double>(all));
}

Measured busiest(const QuantitySource& s) {
  const Partitions visits = loads(s);
  return visits.empty() ? unknown("none: this layer does not route") : count(std::ranges::max_element(visits) - visits.begin() + 1);
}

Measured used(const QuantitySource& s) {
  return count(std::ranges::count_if(loads(s), [](std::int64_t visits) { return visits > 0; }));
}

/// Of the needle's tokens, or of the question's, how many went where the other's last token did.
Measured needle_met(const QuantitySource& s) {
  const NeedleQuestion needle = needle_question(s.run, s.at.token);
  if (needle.end == 0 || needle.question > s.at.token) return unknown("unknown: the question has not been read");
  const Partitions asks = partitions_of(s, needle.question);
  std::int64_t met = 0;
  for (std::int64_t t = needle.begin; t < needle.end; ++t) met += partitions_of(s, t) == asks ? 1 : 0;
  return count(met);
}

Measured resting(const QuantitySource& s) {
  const HeadState &after = s.snapshot->state, &before = s.snapshot->before;
  const auto each = after.values.size() / static_cast<std::size_t>(std::max<std::int64_t>(after.slots, 1));
  std::int64_t same = 0;
  for (std::size_t slot = 0; slot < static_cast<std::size_t>(after.slots); ++slot)
    same += std::equal(after.values.begin() + static_cast<std::ptrdiff_t>(slot * each),
                       after.values.begin() + static_cast<std::ptrdiff_t>((slot + 1) * each),
                       before.values.begin() + static_cast<std::ptrdiff_t>(slot * each))
                ? 1
                : 0;
  return count(same);
}

// ----------------------------------------------------------------------------------------------------------- questions to the engine

std::optional<Question> predictions_question(const RunInfo&, const QuantityPlace& at) {
  return PredictionsQuestion{at.token, at.token + 1, {}};
}
Measured next_word(const QuantitySource& s) {
  const auto& top = answer<PredictionsQuestion>(s, predictions_question).top;
  return top.empty() || top[0].empty() ? unknown("unknown") : words(visible_text(top[0][0].text));
}
Measured next_chance(const QuantitySource& s) {
  const auto& top = answer<PredictionsQuestion>(s, predictions_question).top;
  return top.empty() || top[0].empty() ? unknown("unknown") : share(static_cast<double>(top[0][0].probability));
}
Measured true_chance(const QuantitySource& s) {
  return share(static_cast<double>(answer<PredictionsQuestion>(s, predictions_question).next_probability.at(0)));
}

std::optional<Question> loss_question(const RunInfo&, const QuantityPlace& at) { return LossSeriesQuestion{at.token, at.token + 1}; }
Measured loss(const QuantitySource& s) { return real(static_cast<double>(answer<LossSeriesQuestion>(s, loss_question).loss.at(0))); }

std::optional<Question> series_question(const RunInfo&, const QuantityPlace& at) {
  return LayerSeriesQuestion{at.layer, at.token, at.token + 1};
}
Measured slot_norm(const QuantitySource& s) {
  const LayerSeries& series = answer<LayerSeriesQuestion>(s, series_question);
  return series.state_norm.empty() ? unknown("none: this layer keeps no state")
                                   : real(static_cast<double>(series.state_norm.at(static_cast<std::size_t>(s.at.slot))));
}
Measured slot_update(const QuantitySource& s) {
  const LayerSeries& series = answer<LayerSeriesQuestion>(s, series_question);
  return series.update_norm.empty() ? unknown("none: this layer keeps no state")
                                    : real(static_cast<double>(series.update_norm.at(static_cast<std::size_t>(s.at.slot))));
}

std::optional<Question> decay_question(const RunInfo&, const QuantityPlace& at) {
  const std::int64_t from = std::min(at.from, at.token);
  return DecayQuestion{at.layer, at.slot, at.head, std::max(from, at.token - 511), at.token + 1};
}
template <class Values>
std::vector<double> doubles(const Values& values) {
  return {values.begin(), values.end()};
}
Measured half_life(const QuantitySource& s) { return token_count(median(doubles(answer<DecayQuestion>(s, decay_question).half_life))); }
Measured shortest_half_life(const QuantitySource& s) {
  const std::vector<float>& all = answer<DecayQuestion>(s, decay_question).half_life;
  return all.empty() ? token_count(INFINITY) : token_count(static_cast<double>(std::ranges::min(all)));
}
Measured longest_half_life(const QuantitySource& s) {
  const std::vector<float>& all = answer<DecayQuestion>(s, decay_question).half_life;
  return all.empty() ? token_count(INFINITY) : token_count(static_cast<double>(std::ranges::max(all)));
}
/// "at least", where the beginning of the run is still within some channel's reach of that width.
Measured width(const Decay& decay, double tokens) {
  Measured value = token_count(tokens);
  for (std::size_t c = 0; c < decay.width.size(); ++c)
    if (decay.censored[c] > 0 && static_cast<double>(decay.width[c]) <= tokens) {
      value.text = "at least " + value.text;
      break;
    }
  return value;
}
Measured reach(const QuantitySource& s) {
  const Decay& decay = answer<DecayQuestion>(s, decay_question);
  return width(decay, median(doubles(decay.width)));
}
Measured shortest_reach(const QuantitySource& s) {
  const Decay& decay = answer<DecayQuestion>(s, decay_question);
  return decay.width.empty() ? token_count(INFINITY) : width(decay, static_cast<double>(std::ranges::min(decay.width)));
}
Measured longest_reach(const QuantitySource& s) {
  const Decay& decay = answer<DecayQuestion>(s, decay_question);
  return decay.width.empty() ? token_count(INFINITY) : width(decay, static_cast<double>(std::ranges::max(decay.width)));
}
/// Δ_{token, from} of each channel.
std::vector<double> decay_factors(const QuantitySource& s) {
  const Decay& decay = answer<DecayQuestion>(s, decay_question);
  std::vector<double> logs(static_cast<std::size_t>(decay.channels));
  for (std::size_t i = 0; i < decay.token.size(); ++i)
    for (std::size_t c = 0; c < logs.size(); ++c)
      if (decay.token[i] > s.at.from) logs[c] += static_cast<double>(decay.log_decay[i * logs.size() + c]);
  std::ranges::transform(logs, logs.begin(), [](double log) { return std::exp(log); });
  return logs;
}
Measured decay_left(const QuantitySource& s) { return share(median(decay_factors(s))); }
Measured decay_left_most(const QuantitySource& s) {
  const std::vector<double> factors = decay_factors(s);
  return factors.empty() ? share(1) : share(std::ranges::max(factors));
}

std::optional<Question> spectra_question(const RunInfo&, const QuantityPlace& at) { return SpectraQuestion{at.layer, at.token}; }
Measured rank(const QuantitySource& s) {
  const Spectra& spectra = answer<SpectraQuestion>(s, spectra_question);
  return spectra.rank.empty() ? unknown("none: this layer keeps no state")
                              : real(static_cast<double>(spectra.rank.at(static_cast<std::size_t>(s.at.head))));
}

std::optional<Question> similarity_question(const RunInfo&, const QuantityPlace& at) {
  return SimilarityQuestion{at.layer, at.head, at.token};
}
Measured likeness(const QuantitySource& s) { return real(answer<SimilarityQuestion>(s, similarity_question).mean_abs); }

std::optional<Question> gates_question(const RunInfo&, const QuantityPlace& at) { return HeadGatesQuestion{at.layer}; }
/// A number of one token, whose list is empty in layers without head gates.
template <class Values>
Measured gate_number(const QuantitySource& s, Values HeadContest::*values, Measured (*as)(double)) {
  const Values& all = answer<HeadGatesQuestion>(s, gates_question).*values;
  return all.empty() ? unknown("none: this layer has no head gates")
                     : as(static_cast<double>(all.at(static_cast<std::size_t>(s.at.token))));
}
Measured head_number(double head) { return count(static_cast<std::int64_t>(head)); }
Measured write_winner(const QuantitySource& s) { return gate_number(s, &HeadContest::winner_k, head_number); }
Measured read_winner(const QuantitySource& s) { return gate_number(s, &HeadContest::winner_q, head_number); }
Measured write_margin(const QuantitySource& s) { return gate_number(s, &HeadContest::margin_k, share); }
Measured read_margin(const QuantitySource& s) { return gate_number(s, &HeadContest::margin_q, share); }
Measured write_entropy(const QuantitySource& s) { return gate_number(s, &HeadContest::entropy_k, real); }
Measured read_entropy(const QuantitySource& s) { return gate_number(s, &HeadContest::entropy_q, real); }
Measured flow(const QuantitySource& s) { return gate_number(s, &HeadContest::flow, real); }

std::optional<Question> sharpened_question(const RunInfo&, const QuantityPlace& at) {
  return SharpenedGatesQuestion{at.layer, at.token, at.token + 1, at.lambda};
}
/// The largest of the heads' gates at λ.
Measured largest_gate(const QuantitySource& s, std::vector<float> SharpenedGates::*gates) {
  const std::vector<float>& all = answer<SharpenedGatesQuestion>(s, sharpened_question).*gates;
  return all.empty() ? unknown("none: this layer has no head gates") : share(static_cast<double>(std::ranges::max(all)));
}
Measured write_gate(const QuantitySource& s) { return largest_gate(s, &SharpenedGates::gate_k); }
Measured read_gate(const QuantitySource& s) { return largest_gate(s, &SharpenedGates::gate_q); }

/// Gates that go one after another, each written with its head.
Measured write_gates(const QuantitySource& s) {
  const std::vector<float>& all = answer<SharpenedGatesQuestion>(s, sharpened_question).gate_k;
  if (all.empty()) return unknown("none: this layer has no head gates");
  std::vector<std::string> parts;
  for (const float gate : all) parts.push_back(share(static_cast<double>(gate)).text);
  return words(joined(parts, ", "));
}

std::optional<Question> delta_question(const RunInfo&, const QuantityPlace& at) { return DeltaRuleQuestion{at.layer, at.slot, at.head}; }
Measured delta_number(const QuantitySource& s, std::vector<float> DeltaRule::*values, Measured (*as)(double)) {
  const DeltaRule& rule = answer<DeltaRuleQuestion>(s, delta_question);
  if (rule.steps > 1) return unknown(fmt::format("none: a token takes {} steps of the delta rule here", rule.steps));
  const auto visit = std::ranges::find(rule.token, static_cast<std::int32_t>(s.at.token));
  if (visit == rule.token.end()) return unknown("none: this token does not write here by the delta rule");
  return as(static_cast<double>((rule.*values)[static_cast<std::size_t>(visit - rule.token.begin())]));
}
Measured predicted_value(const QuantitySource& s) { return delta_number(s, &DeltaRule::prediction, real); }
Measured true_value(const QuantitySource& s) { return delta_number(s, &DeltaRule::value, real); }
Measured prediction_error(const QuantitySource& s) { return delta_number(s, &DeltaRule::error, real); }
Measured prediction_cosine(const QuantitySource& s) { return delta_number(s, &DeltaRule::cosine, real); }
Measured erased(const QuantitySource& s) { return delta_number(s, &DeltaRule::erase, real); }
Measured written(const QuantitySource& s) { return delta_number(s, &DeltaRule::write, real); }
Measured beta(const QuantitySource& s) { return delta_number(s, &DeltaRule::beta, real); }
Measured alpha(const QuantitySource& s) { return delta_number(s, &DeltaRule::alpha, real); }
Measured mended(const QuantitySource& s) { return delta_number(s, &DeltaRule::mended, share); }
Measured eigenvalue(const QuantitySource& s) { return delta_number(s, &DeltaRule::along_key, real); }

std::optional<Question> story_question(const RunInfo& run, const QuantityPlace& at) {
  const NeedleQuestion question = needle_question(run, at.token);
  return question.end > 0 ? std::optional<Question>(question) : std::nullopt;
}
/// Of all layers, the one that the place names, or none of it.
Measured fate(const QuantitySource& s, double NeedleStory::LayerFate::*part, bool of_layer) {
  if (!story_question(s.run, s.at)) return unknown("unknown: the prompt has no needle");
  const NeedleStory& story = answer<NeedleQuestion>(s, story_question);
  const NeedleStory::LayerFate& one = of_layer ? story.layers.at(static_cast<std::size_t>(s.at.layer)) : story.all;
  return !one.has_memory ? unknown("none: no state holds it") : share(one.*part);
}
using Fate = NeedleStory::LayerFate;
Measured lost_decay(const QuantitySource& s) { return fate(s, &Fate::decayed, false); }
Measured lost_erasure(const QuantitySource& s) { return fate(s, &Fate::erased, false); }
Measured lost_overwriting(const QuantitySource& s) { return fate(s, &Fate::overwritten, false); }
Measured lost_misrouting(const QuantitySource& s) { return fate(s, &Fate::misrouted, false); }
Measured left_clear(const QuantitySource& s) { return fate(s, &Fate::clear, false); }
Measured read_share(const QuantitySource& s) { return fate(s, &Fate::read_share, false); }
Measured layer_lost_decay(const QuantitySource& s) { return fate(s, &Fate::decayed, true); }
Measured layer_lost_erasure(const QuantitySource& s) { return fate(s, &Fate::erased, true); }
Measured layer_lost_overwriting(const QuantitySource& s) { return fate(s, &Fate::overwritten, true); }
Measured layer_lost_misrouting(const QuantitySource& s) { return fate(s, &Fate::misrouted, true); }
Measured layer_read_share(const QuantitySource& s) { return fate(s, &Fate::read_share, true); }

/// Of what the question reads in one head, the needle's part.
Measured head_read_share(const QuantitySource& s) {
  if (!story_question(s.run, s.at)) return unknown("unknown: the prompt has no needle");
  const std::vector<NeedleStory::Curve>& curves =
      answer<NeedleQuestion>(s, story_question).layers.at(static_cast<std::size_t>(s.at.layer)).curves;
  const auto curve = std::ranges::find_if(curves, [&](const auto& one) { return one.slot == s.at.slot && one.head == s.at.head; });
  return curve == curves.end() ? unknown("none: the needle wrote nothing there") : share(curve->read_share);
}

Measured cause(const QuantitySource& s) {
  if (!story_question(s.run, s.at)) return unknown("unknown: the prompt has no needle");
  const Fate& all = answer<NeedleQuestion>(s, story_question).all;
  const std::array<std::pair<double, const char*>, 4> parts = {
      {{all.decayed, "decay"}, {all.erased, "erasure"}, {all.overwritten, "overwriting"}, {all.misrouted, "misrouting"}}};
  return words(std::ranges::max_element(parts)->second);
}

/// ‖C‖ against what was written, of the layer, at the token: what decay and erasure have left.
Measured needle_left(const QuantitySource& s) {
  if (!story_question(s.run, s.at)) return unknown("unknown: the prompt has no needle");
  const std::int64_t since = needle_question(s.run, s.at.token).end - 1;
  const std::vector<float>& kept = answer<NeedleQuestion>(s, story_question).layers.at(static_cast<std::size_t>(s.at.layer)).kept;
  if (s.at.token < since || s.at.token - since >= std::ssize(kept))
    return unknown("unknown: this token is not between needle and question");
  return share(static_cast<double>(kept[static_cast<std::size_t>(s.at.token - since)]));
}

// ----------------------------------------------------------------------------------------------------------------------- about the run
// alone

Measured word(const QuantitySource& s) { return words(visible_token(s.run, s.at.token)); }
Measured token_number(const QuantitySource& s) { return count(s.at.token); }
Measured run_length(const QuantitySource& s) { return count(std::ssize(s.run.tokens)); }
Measured distance(const QuantitySource& s) { return count(s.at.token - s.at.from); }
Measured model_name(const QuantitySource& s) { return words(s.run.model.name); }
Measured layer_number(const QuantitySource& s) { return count(s.at.layer); }
Measured shown_head(const QuantitySource& s) { return count(s.at.head); }
Measured layer_count(const QuantitySource& s) { return count(std::ssize(s.run.model.layers)); }
Measured head_count(const QuantitySource& s) { return count(layer_at(s).heads); }
Measured row_count(const QuantitySource& s) { return count(layer_at(s).rows); }
Measured column_count(const QuantitySource& s) { return count(layer_at(s).columns); }
Measured partition_count(const QuantitySource& s) { return count(layer_at(s).partitions); }
Measured state_numbers(const QuantitySource& s) {
  const LayerInfo& layer = layer_at(s);
  return count(layer.slots() * layer.heads * layer.rows * layer.columns);
}
Measured given_answer(const QuantitySource& s) { return words(answered(s.run)); }
Measured expected_answer(const QuantitySource& s) { return s.run.expected.empty() ? unknown("unknown") : words(expected(s.run)); }
Measured verdict(const QuantitySource& s) {
  return s.run.expected.empty() ? unknown("unknown") : words(answered(s.run) == expected(s.run) ? "right" : "wrong");
}

/// The token before the answer's first words in the prompt: whose code it is that the model says.
Measured owner(const QuantitySource& s) {
  const auto begin = s.run.tokens.begin(), prompt = begin + s.run.prompt_length;
  const auto length = std::min<std::ptrdiff_t>(std::ssize(s.run.expected), s.run.tokens.end() - prompt);
  const auto same = [](const TokenInfo& a, const TokenInfo& b) { return a.id == b.id; };
  const auto found = length > 0 ? std::search(begin, prompt, prompt, prompt + length, same) : prompt;
  return found == begin || found == prompt ? words("nobody") : words(visible_token(s.run, found - begin - 1));
}

constexpr QuantityRow table[] = {
    {"word", "the token's text", "token", nullptr, word},
    {"token", "the token's number", "token", nullptr, token_number},
    {"length", "how many tokens the run has", "", nullptr, run_length},
    {"distance", "tokens between two places", "from token", nullptr, distance},
    {"model", "the checkpoint's name", "", nullptr, model_name},
    {"layer", "the layer's number", "layer", nullptr, layer_number},
    {"head", "the head's number", "head", nullptr, shown_head},
    {"layers", "how many layers the model has", "", nullptr, layer_count},
    {"heads", "heads of the layer's state", "layer", nullptr, head_count},
    {"rows", "key rows of one head's state", "layer", nullptr, row_count},
    {"columns", "value columns of one head's state", "layer", nullptr, column_count},
    {"partitions", "partitions that the layer routes to, the shared one not counted", "layer", nullptr, partition_count},
    {"numbers", "how many numbers the layer's whole memory holds", "layer", nullptr, state_numbers},
    {"answer", "what the model says after the prompt", "", nullptr, given_answer},
    {"expected", "what a right answer says", "", nullptr, expected_answer},
    {"owner", "the word before the answer, where the prompt has the answer's words; else nobody", "", nullptr, owner},
    {"verdict", "right or wrong", "", nullptr, verdict},

    {"partition", "which partition the token is routed to", "token", nullptr, partition_chosen, true},
    {"gate", "how sure the router is of that: its softmax", "token", nullptr, partition_gate, true},
    {"busiest", "the partition that most tokens up to this one went to", "token", nullptr, busiest, true},
    {"load", "share of the visits that the busiest partition had", "token", nullptr, largest_load, true},
    {"used", "how many partitions have been visited", "token", nullptr, used, true},
    {"met", "how many of the needle's tokens went to the partition that the question goes to", "token", nullptr, needle_met, true},
    {"resting", "how many slots of the head shown the token left exactly as they were", "", nullptr, resting, true},

    {"next", "the most probable next token", "token", predictions_question, next_word},
    {"chance", "its probability", "token", predictions_question, next_chance},
    {"truth", "probability of the token that follows in the run", "token", predictions_question, true_chance},
    {"loss", "−ln p of the token, nat", "token", loss_question, loss},

    {"norm", "Frobenius norm of the slot's state after the token, all heads", "layer slot token", series_question, slot_norm},
    {"update", "norm of what the token changed in the slot", "layer slot token", series_question, slot_update},
    {"rank", "effective rank of the head's state", "layer head token", spectra_question, rank},
    {"likeness", "mean |cosine| of the head's rows", "layer head token", similarity_question, likeness},

    {"half_life", "tokens after which half is left: the median channel", "layer slot head", decay_question, half_life},
    {"half_life_shortest", "of the channel that forgets fastest", "layer slot head", decay_question, shortest_half_life},
    {"half_life_longest", "of the channel that forgets slowest", "layer slot head", decay_question, longest_half_life},
    {"reach", "receptive field, tokens until 0.001 is left: the median channel", "layer slot head", decay_question, reach},
    {"reach_shortest", "of the channel that forgets fastest", "layer slot head", decay_question, shortest_reach},
    {"reach_longest", "of the channel that forgets slowest", "layer slot head", decay_question, longest_reach},
    {"decayed_to", "what decay leaves of a write between two tokens: the median channel", "layer slot head from token", decay_question,
     decay_left},
    {"decayed_to_most", "of the channel that forgets slowest", "layer slot head from token", decay_question, decay_left_most},

    {"writer", "the head with the largest write gate", "layer token", gates_question, write_winner},
    {"reader", "the head with the largest read gate", "layer token", gates_question, read_winner},
    {"write_margin", "the largest write gate less the next", "layer token", gates_question, write_margin},
    {"read_margin", "the largest read gate less the next", "layer token", gates_question, read_margin},
    {"write_entropy", "of the write gates, 0 to 1", "layer token", gates_question, write_entropy},
    {"read_entropy", "of the read gates, 0 to 1", "layer token", gates_question, read_entropy},
    {"flow", "sum over the heads of read gate times write gate", "layer token", gates_question, flow},
    {"write_gate", "the largest write gate with logits times lambda", "layer token lambda", sharpened_question, write_gate},
    {"read_gate", "the largest read gate with logits times lambda", "layer token lambda", sharpened_question, read_gate},
    {"write_gates", "all heads' write gates with logits times lambda", "layer token lambda", sharpened_question, write_gates},

    {"prediction", "norm of what the memory predicts for the key", "layer slot head token", delta_question, predicted_value},
    {"value", "norm of the value that is to be stored", "layer slot head token", delta_question, true_value},
    {"error", "norm of value less prediction", "layer slot head token", delta_question, prediction_error},
    {"cosine", "of prediction and value", "layer slot head token", delta_question, prediction_cosine},
    {"erased", "norm of what the token takes out", "layer slot head token", delta_question, erased},
    {"written", "norm of what it puts in", "layer slot head token", delta_question, written},
    {"beta", "the write strength", "layer slot head token", delta_question, beta},
    {"alpha", "what decay leaves in one step", "layer slot head token", delta_question, alpha},
    {"mended", "part of the error that the write corrects", "layer slot head token", delta_question, mended},
    {"eigenvalue", "of the step's transition along the key", "layer slot head token", delta_question, eigenvalue},

    {"needle_left", "what decay and erasure have left of the needle in the layer at the token", "layer token", story_question, needle_left},
    {"needle_clear", "share of the needle that is still clear at the question, mean over layers", "", story_question, left_clear},
    {"needle_cause", "what took most of it: decay, erasure, overwriting or misrouting", "", story_question, cause},
    {"lost_to_decay", "share of the needle that decay took, mean over layers", "", story_question, lost_decay},
    {"lost_to_erasure", "likewise erasure", "", story_question, lost_erasure},
    {"lost_to_overwriting", "likewise overwriting", "", story_question, lost_overwriting},
    {"lost_to_misrouting", "likewise misrouting", "", story_question, lost_misrouting},
    {"read_share", "the needle's largest part of what the question reads of a memory", "", story_question, read_share},
    {"head_read_share", "the needle's part of what the head reads at the question", "layer slot head", story_question, head_read_share},
    {"layer_lost_to_decay", "share of the needle that decay took in the layer", "layer", story_question, layer_lost_decay},
    {"layer_lost_to_erasure", "likewise erasure", "layer", story_question, layer_lost_erasure},
    {"layer_lost_to_overwriting", "likewise overwriting", "layer", story_question, layer_lost_overwriting},
    {"layer_lost_to_misrouting", "likewise misrouting", "layer", story_question, layer_lost_misrouting},
    {"layer_read_share", "the needle's largest part of what a head of the layer reads at the question", "layer", story_question,
     layer_read_share},
};

}  // namespace

std::span<const QuantityRow> quantities() { return table; }

Measured measure(const Quantity& quantity, const QuantitySource& source) {
  if (!quantity.row->question) return quantity.row->measure(source);
  if (const std::optional<Question> question = quantity.row->question(source.run, source.at)) {
    const Finding* finding = source.findings.find(*question);
    if (!finding || !finding->answer) return unknown(finding ? finding->refused : "unknown");
  }
  return quantity.row->measure(source);
}

}  // namespace statescope
