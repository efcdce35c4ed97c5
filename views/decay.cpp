#include "views/decay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

/// The one of middling half-life: what is shown before the reader chooses.
std::int64_t middle_channel(const Decay& decay) {
  std::vector<std::size_t> order(decay.half_life.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::size_t c) { return decay.half_life[c]; });
  return static_cast<std::int64_t>(order[order.size() / 2]);
}

std::int64_t chosen_channel(const Cursor& cursor, const Decay& decay) {
  using Axis = Decay::Axis;
  const std::int64_t wanted = decay.axis == Axis::heads ? cursor.head : decay.axis == Axis::columns ? cursor.column : cursor.row;
  return wanted < 0 ? middle_channel(decay) : std::min(wanted, decay.channels - 1);
}

/// Δ_{t,s} = exp(Σ_{j=s+1…t} log α_j) for the visits s so far, t the last of them
std::vector<float> left_after(const Decay& decay, std::int64_t until) {
  std::vector<float> left;
  if (until == 0) return left;
  const auto sum = [&](std::int64_t i, std::int64_t c) { return decay.log_sum[static_cast<std::size_t>(i * decay.channels + c)]; };
  for (std::int64_t c = 0; c < decay.channels; ++c) {
    for (std::int64_t s = 0; s < until; ++s) left.push_back(static_cast<float>(std::exp(sum(until - 1, c) - sum(s, c))));
  }
  return left;
}

std::vector<float> alphas(const Decay& decay) {
  const std::size_t n = decay.token.size(), channels = static_cast<std::size_t>(decay.channels);
  std::vector<float> alpha(n * channels);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < channels; ++c) alpha[c * n + i] = std::exp(decay.log_decay[i * channels + c]);
  }
  return alpha;
}

std::vector<DecayRank> ranked(const Decay& decay, DecayMode mode) {
  std::vector<DecayRank> ranks;
  for (std::int64_t c = 0; c < decay.channels; ++c) {
    const auto i = static_cast<std::size_t>(c);
    ranks.push_back({c, decay.half_life[i], decay.width[i], decay.censored[i]});
  }
  std::ranges::stable_sort(ranks, {}, mode == DecayMode::receptive_field ? &DecayRank::width : &DecayRank::half_life);
  return ranks;
}

DecayQuestion question_of(const Snapshot& snapshot, const Cursor& cursor) {
  const LayerInfo& layer = *layer_of(snapshot);
  const auto tokens = static_cast<std::int64_t>(snapshot.run->tokens.size());
  const TokenWindow window = window_around(std::clamp<std::int64_t>(cursor.token, 0, tokens - 1), tokens);
  return {snapshot.layer, std::clamp<std::int64_t>(cursor.slot, 0, layer.slots() - 1), cursor.head, window.from, window.to};
}

std::string channel_word(Decay::Axis axis, const LayerInfo& layer) {
  if (axis == Decay::Axis::heads) return Views::tr("head");
  return Engine::tr((axis == Decay::Axis::columns ? layer.column_name : layer.row_name).c_str());
}

Message never_forgets(const LayerInfo& layer, std::int64_t index) {
  return {Views::tr("The memory of layer {} ({}) never forgets by decay", index, layer.mixer),
          layer.memory == "gated delta rule"
              ? Views::tr("Its α is 1 at every token: what was written is lost only by being erased (see the delta rule).")
              : Views::tr("Its α is 1 at every token: everything that was written stays, and adds up.")};
}

Message no_visit(const DecayData& data, const DecayQuestion& question) {
  return {Views::tr("No token from {} to {} came to {}", question.from, question.to - 1, data.place),
          Views::tr("Where no token comes nothing decays: what is there stays as it is.")};
}

/// "12 tokens", "over 40 tokens": as far as the window goes back
std::string span_words(const DecayData& data, float share) {
  const std::int64_t tokens = tokens_until(data, data.chosen, share);
  if (tokens < 0) return Views::tr("over {} tokens", data.token - data.tokens.tokens.front());
  return tokens_text(tokens);
}

std::string token_words(const DecayData& data, std::int64_t place) {
  return token_words(*data.tokens.run, data.tokens.tokens[static_cast<std::size_t>(place)]);
}

std::string tokens_number(float tokens) {
  return std::isinf(tokens) ? "∞" : tokens >= 100 ? fmt::format("{:.0f}", tokens) : number(tokens, 2);
}

std::string rank_summary(const DecayData& data) {
  const float least = data.ranked_value(data.ranks.front()), most = data.ranked_value(data.ranks.back());
  const std::size_t count = data.ranks.size();
  const float median = std::midpoint(data.ranked_value(data.ranks[(count - 1) / 2]), data.ranked_value(data.ranks[count / 2]));
  const std::string spread =
      data.ranks.size() == 1 ? Views::tr("{} tokens", tokens_number(least))
                             : Views::tr("{} to {} tokens, median {}", tokens_number(least), tokens_number(most), tokens_number(median));
  if (data.mode == DecayMode::half_life) return Views::tr("half is gone after {}", spread);
  const auto censored = std::ranges::count_if(data.ranks, [](const DecayRank& rank) { return rank.censored > 0; });
  if (censored == 0) return Views::tr("a write is felt for {}", spread);
  return Views::tr("a write is felt for {}; {} of {} reach the run's beginning", spread, censored, data.channels);
}

std::string statement(const DecayData& data) {
  if (data.mode == DecayMode::half_life || data.mode == DecayMode::receptive_field) return rank_summary(data);
  if (data.until == 0) return Views::tr("no token has come here yet");
  const std::string channel = data.channel_name(data.chosen);
  if (data.mode == DecayMode::each_token) {
    const float alpha = data.alpha[static_cast<std::size_t>(data.chosen * data.tokens.count() + data.until - 1)];
    return Views::tr("{} keeps α = {} of itself at {}", channel, number(alpha, 4), token_words(data, data.until - 1));
  }
  return Views::tr("{}: half of a write is gone after {}, 99.9 % after {}", channel, span_words(data, 0.5f), span_words(data, kLeastFelt));
}

/// Δ, or 1 − α: what forgets fast is the strongest.
void fill_cells(DecayData& data, const RangeChoice& range) {
  const bool cumulative = data.mode == DecayMode::cumulative;
  std::vector<float> values = cumulative ? data.left : data.alpha;
  if (!cumulative) std::ranges::transform(values, values.begin(), [](float alpha) { return 1 - alpha; });
  if (cumulative)
    data.coloring = colored(values, {0.001f, 1, true}, {{1, "1"}, {0.1f, "0.1"}, {0.01f, "0.01"}, {0.001f, "≤ 0.001"}}, range);
  else
    data.coloring =
        colored(values, {0.0001f, 1, true}, {{1, "0"}, {0.1f, "0.9"}, {0.01f, "0.99"}, {0.001f, "0.999"}, {0.0001f, "1"}}, range);
  data.names_alpha = is_own(range);
  data.cells = {std::move(values), data.channels, cumulative ? data.until : data.tokens.count()};
}

class DecayView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (without_memory(snapshot, cursor.head)) return {};
    return {question_of(snapshot, cursor)};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 4> names = {
        QT_TRANSLATE_NOOP("Views", "Cumulative"), QT_TRANSLATE_NOOP("Views", "Each token"), QT_TRANSLATE_NOOP("Views", "Half-life"),
        QT_TRANSLATE_NOOP("Views", "Receptive field")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_decay(snapshot, cursor, findings, static_cast<DecayMode>(mode()), range());
  }
  std::optional<Shading> shading() const override { return shading_of(data_.coloring); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : summary(data_) + "."; }

 private:
  DecayData data_;
};

}  // namespace

std::string DecayData::channel_name(std::int64_t channel) const {
  return axis == Decay::Axis::rows      ? Views::tr("row {}", channel)
         : axis == Decay::Axis::columns ? Views::tr("column {}", channel)
                                        : Views::tr("head {}", channel);
}

float DecayData::ranked_value(const DecayRank& rank) const { return mode == DecayMode::receptive_field ? rank.width : rank.half_life; }

std::string summary(const DecayData& data) { return sentence_at(statement(data), data.place); }

std::int64_t tokens_until(const DecayData& data, std::int64_t channel, float share) {
  for (std::int64_t i = data.until - 1; i >= 0; --i) {
    if (data.left[static_cast<std::size_t>(channel * data.until + i)] < share)
      return data.token - data.tokens.tokens[static_cast<std::size_t>(i)];
  }
  return -1;
}

CursorMove to_channel(const DecayData& data, std::int64_t channel) {
  if (data.axis == Decay::Axis::heads) return {.head = channel};
  return data.axis == Decay::Axis::columns ? CursorMove{.column = channel} : CursorMove{.row = channel};
}

DecayData build_decay(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, DecayMode mode, const RangeChoice& range) {
  DecayData data;
  data.mode = mode;
  data.message = without_memory(snapshot, cursor.head);
  if (data.message) return data;
  const LayerInfo& layer = *layer_of(snapshot);
  const DecayQuestion question = question_of(snapshot, cursor);
  const Decay* decay = findings.get(question);
  data.place = decay_place(
      layer, memory_place(layer, question.layer, question.slot, decay && decay->axis == Decay::Axis::heads ? -1 : question.head));
  if (!decay) {
    data.message = waiting(findings, question, Views::tr("The decay of {}", data.place));
    return data;
  }
  if (decay->axis == Decay::Axis::none) {
    data.message = never_forgets(layer, question.layer);
    return data;
  }
  const bool ranking = mode == DecayMode::half_life || mode == DecayMode::receptive_field;
  if (decay->token.empty() && !ranking) {
    data.message = no_visit(data, question);
    return data;
  }
  data.run = static_cast<std::int64_t>(snapshot.run->tokens.size());
  data.token = std::clamp<std::int64_t>(cursor.token, 0, data.run - 1) - (cursor.progress < 1 ? 1 : 0);
  data.axis = decay->axis;
  data.channel_word = channel_word(decay->axis, layer);
  data.recurrence = layer.recurrence;
  data.channels = decay->channels;
  data.chosen = chosen_channel(cursor, *decay);
  data.tokens = {snapshot.run, decay->token, data.token};
  data.until = data.tokens.place_of(data.token) + 1;
  data.measured = decay->measured;
  if (ranking) {
    data.ranks = ranked(*decay, mode);
    return data;
  }
  data.alpha = alphas(*decay);
  data.left = left_after(*decay, data.until);
  fill_cells(data, range);
  return data;
}

std::unique_ptr<View> make_decay() { return std::make_unique<DecayView>(); }

}  // namespace statescope
