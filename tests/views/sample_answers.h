// Made-up answers to what views ask, of the right sizes, with peaks, gaps and extremes: one overload per question.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "engine/findings/findings.h"
#include "engine/snapshot.h"
#include "tests/views/sample_stories.h"
#include "views/view.h"

namespace statescope {

/// In [0, 1), the same for the same index.
inline float sample_noise(std::int64_t index) {
  const double x = std::sin(static_cast<double>(index + 1) * 12.9898) * 43758.5453;
  return static_cast<float>(x - std::floor(x));
}

inline const LayerInfo& sample_layer_of(const Snapshot& snapshot, std::int64_t layer) {
  return snapshot.run->model.layers[static_cast<std::size_t>(layer)];
}

/// Every row of its own speed, the last ones without decay; slot 0 is visited by every token, slot n by every fourth.
inline Decay sample_answer(const DecayQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  Decay decay;
  decay.axis = Decay::Axis::rows;
  decay.channels = layer.rows;
  decay.measured = std::min<std::int64_t>(128, std::ssize(snapshot.run->tokens));
  for (std::int64_t t = question.from; t < question.to; ++t) {
    if (question.slot == 0 || t % 4 == question.slot % 4) decay.token.push_back(static_cast<std::int32_t>(t));
  }
  std::vector<double> sum(static_cast<std::size_t>(layer.rows));
  for (const std::int32_t t : decay.token) {
    for (std::int64_t r = 0; r < layer.rows; ++r) {
      const float speed = 2.0f * static_cast<float>(layer.rows - 1 - r) / static_cast<float>(layer.rows);
      decay.log_decay.push_back(-speed * sample_noise(t * 31 + r) * sample_noise(t));
      decay.log_sum.push_back(sum[static_cast<std::size_t>(r)] += decay.log_decay.back());
    }
  }
  for (std::int64_t r = 0; r < layer.rows; ++r) {
    const bool forever = r == layer.rows - 1;
    decay.half_life.push_back(forever ? std::numeric_limits<float>::infinity() : 1.5f * static_cast<float>(r + 1));
    decay.width.push_back(forever ? static_cast<float>(std::ssize(snapshot.run->tokens)) : 9.5f * static_cast<float>(r));
    decay.censored.push_back(r > layer.rows / 2 ? r : 0);
  }
  return decay;
}

/// A branch that parts at token 3 and says something else from token 8 on.
inline BranchPredictions sample_answer(const BranchPredictionsQuestion&, const Snapshot& snapshot) {
  BranchPredictions found{.from = 3, .kl = {}, .logits = {}, .changed = 8};
  for (std::int64_t t = found.from; t < std::ssize(snapshot.run->tokens); ++t) {
    found.kl.push_back(2.5f * sample_noise(t) * sample_noise(t));
    found.logits.push_back(6 * sample_noise(t));
  }
  return found;
}

inline BranchStates sample_answer(const BranchStatesQuestion&, const Snapshot& snapshot) {
  BranchStates found;
  for (std::size_t l = 0; l < snapshot.run->model.layers.size(); ++l) {
    found.left.push_back(4 + static_cast<double>(l));
    found.here.push_back(3.5);
    found.difference.push_back(0.75 * static_cast<double>(l + 1));
  }
  return found;
}

/// Of any layer: β from 0 to 2, so that some eigenvalues are negative.
inline DeltaRule sample_answer(const DeltaRuleQuestion& question, const Snapshot& snapshot) {
  DeltaRule rule;
  for (std::int32_t t = 0; t < static_cast<std::int32_t>(std::ssize(snapshot.run->tokens)); ++t) {
    if (question.slot != 0 && t % 4 != question.slot % 4) continue;
    const float pi = 1.4f * sample_noise(t), v = 0.4f + sample_noise(7 * t), beta = 2 * sample_noise(3 * t);
    const float cosine = t == 0 ? 0 : 2 * sample_noise(11 * t) - 1, error = std::sqrt(pi * pi + v * v - 2 * pi * v * cosine);
    rule.token.push_back(t);
    rule.prediction.push_back(pi);
    rule.value.push_back(v);
    rule.error.push_back(error);
    rule.cosine.push_back(cosine);
    rule.erase.push_back(beta * pi);
    rule.write.push_back(beta * v);
    rule.update.push_back(beta * error);
    rule.beta.push_back(beta);
    rule.alpha.push_back(0.98f);
    rule.mended.push_back(beta);
    rule.along_key.push_back(0.98f * (1 - beta));
  }
  return rule;
}

/// Rows in pairs of like ones, every seventh zero.
inline Similarity sample_answer(const SimilarityQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  const std::int64_t P = layer.slots(), R = P * layer.rows;
  Similarity answer{.partitions = P, .rows = layer.rows, .heads = layer.heads};
  const auto cosines = [](std::int64_t n, std::int64_t gap) {
    std::vector<float> cosine;
    for (std::int64_t i = 0; i < n * n; ++i) {
      const std::int64_t a = i / n, b = i % n;
      const bool zero = (gap > 0 && a % gap == gap - 1) || (gap > 0 && b % gap == gap - 1);
      const float noise = 2 * sample_noise(std::min(a, b) * n + std::max(a, b)) - 1;
      cosine.push_back(zero ? std::numeric_limits<float>::quiet_NaN() : a == b ? 1 : a / 2 == b / 2 ? 0.9f : noise);
    }
    return cosine;
  };
  answer.cosine = Pyramid(cosines(R, 7), R, R);
  answer.partition_cosine = cosines(P, 5);
  answer.head_cosine = cosines(layer.heads, 0);
  for (std::int64_t i = 0; i < R; ++i) {
    answer.order.push_back(question.clustered ? R - 1 - i : i);
    answer.row_norm.push_back(i % 7 == 6 ? 0 : sample_noise(i));
    answer.zero_rows += i % 7 == 6;
  }
  answer.mean_abs = 0.25;
  answer.within = 0.5;
  answer.between = P > 1 ? 0.125 : std::nan("");
  answer.min_cosine = -0.75;
  return answer;
}

inline TokenSimilarity sample_answer(const TokenSimilarityQuestion& question, const Snapshot&) {
  TokenSimilarity answer;
  for (std::int64_t i = 0; i < question.rows.count; ++i) {
    for (std::int64_t j = 0; j < question.columns.count; ++j) {
      const std::int64_t apart = question.rows.from + i * question.rows.step - question.columns.from - j * question.columns.step;
      answer.cosine.push_back(1 / (1 + 0.1f * static_cast<float>(std::abs(apart))));
    }
  }
  return answer;
}

/// σ fall faster in later heads; the last one is 0.
inline Spectra sample_answer(const SpectraQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  Spectra answer{.heads = layer.heads, .count = std::min(layer.slots() * layer.rows, layer.columns), .partitions = layer.slots()};
  for (std::int64_t h = 0; h < layer.heads; ++h) {
    for (std::int64_t i = 0; i < answer.count; ++i)
      answer.sigma.push_back(i + 1 == answer.count ? 0 : 3 * std::exp(-0.2f * static_cast<float>((h + 1) * i)));
    answer.rank.push_back(5 / static_cast<float>(h + 1));
    answer.rank_of_squares.push_back(3 / static_cast<float>(h + 1));
    answer.entropy.push_back(0.75f / static_cast<float>(h + 1));
    for (std::int64_t p = 0; p < layer.slots(); ++p) {
      answer.partition_rank.push_back(static_cast<float>(std::min(layer.rows, layer.columns)) * sample_noise(h * layer.slots() + p));
      answer.partition_entropy.push_back(sample_noise(p));
    }
  }
  return answer;
}

inline RankSeries sample_answer(const RankSeriesQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  RankSeries answer{.heads = layer.heads};
  const std::int64_t count = std::ssize(snapshot.run->tokens), n = std::min(count, RankSeries::kMostTokens);
  for (std::int64_t i = 0; i < n; ++i) {
    answer.token.push_back(n == 1 ? count - 1 : i * (count - 1) / (n - 1));
    for (std::int64_t h = 0; h < layer.heads; ++h) {
      answer.rank.push_back(static_cast<float>(i + 1) / static_cast<float>(h + 1));
      answer.entropy.push_back(sample_noise(i * 7 + h));
      answer.norm.push_back(2 + sample_noise(i * 5 + h));
    }
  }
  return answer;
}

/// Signed, stronger for near tokens; nothing is read of every fifth.
inline AttentionMap sample_answer(const AttentionQuestion& question, const Snapshot& snapshot) {
  AttentionMap answer{.heads = sample_layer_of(snapshot, question.layer).most_heads(), .weight = {}, .before = {}, .all = {}};
  const std::int64_t first = question.columns.from, step = question.columns.step, n = question.columns.count;
  for (std::int64_t r = 0; r < question.rows.count; ++r) {
    const std::int64_t row = (question.rows.from + r * question.rows.step - first) / step;
    answer.before.push_back(first > 0 ? 0.3f : 0);
    answer.all.push_back(answer.before.back());
    for (std::int64_t s = 0; s < n; ++s) {
      const float size = 1 / (1 + 0.2f * static_cast<float>(row - s));
      answer.weight.push_back(s > row || s % 5 == 4 ? 0 : (2 * sample_noise(row * n + s) - 0.6f) * size);
      answer.all.back() += std::abs(answer.weight.back());
    }
  }
  return answer;
}

/// A curve for every slot, a peak in each; head gates too.
inline LayerSeries sample_answer(const LayerSeriesQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  LayerSeries series;
  series.from = question.from;
  series.to = question.to;
  series.slots = layer.slots();
  for (std::int64_t t = question.from; t < question.to; ++t) {
    series.residual_norm.push_back(10 + sample_noise(t));
    series.routing_entropy.push_back(sample_noise(3 * t));
    series.gate_entropy_q.push_back(sample_noise(5 * t));
    series.gate_entropy_k.push_back(sample_noise(7 * t));
    series.gate_winner_q.push_back(static_cast<std::int32_t>(t % 2));
    series.gate_winner_k.push_back(static_cast<std::int32_t>(t / 3 % 2));
  }
  for (std::int64_t slot = 0; slot < series.slots; ++slot) {
    for (std::int64_t t = question.from; t < question.to; ++t) {
      series.state_norm.push_back(std::sqrt(static_cast<float>((t + 1) * (slot + 1))));
      series.update_norm.push_back(t == 7 ? 40 : sample_noise(t + slot));
    }
  }
  return series;
}

inline LossSeries sample_answer(const LossSeriesQuestion& question, const Snapshot&) {
  LossSeries series{.from = question.from, .to = question.to, .loss = {}, .entropy = {}};
  for (std::int64_t t = question.from; t < question.to; ++t) {
    series.loss.push_back(t == 0 ? std::numeric_limits<float>::quiet_NaN() : 5 * sample_noise(t));
    series.entropy.push_back(sample_noise(2 * t));
  }
  return series;
}

/// H heads, at least two; in layer 1, which has no state, none.
inline HeadContest sample_answer(const HeadGatesQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  HeadContest contest;
  if (!layer.has_state()) return contest;
  contest.heads = std::max<std::int64_t>(2, layer.heads);
  const auto H = static_cast<std::size_t>(contest.heads);
  const auto add = [&](std::int64_t seed, std::vector<float>& gates, std::vector<float>& entropies, std::vector<std::int32_t>& winners,
                       std::vector<float>& margins) {
    std::vector<float> gate;
    float sum = 0;
    for (std::size_t h = 0; h < H; ++h) sum += gate.emplace_back(std::exp(3 * sample_noise(seed + static_cast<std::int64_t>(h))));
    for (float& g : gate) g /= sum;
    gates.insert(gates.end(), gate.begin(), gate.end());
    winners.push_back(static_cast<std::int32_t>(std::max_element(gate.begin(), gate.end()) - gate.begin()));
    entropies.push_back(sample_noise(seed * 5));
    margins.push_back(0.25f);
  };
  for (std::int64_t t = 0; t < std::ssize(snapshot.run->tokens); ++t) {
    add(t * 17, contest.gate_q, contest.entropy_q, contest.winner_q, contest.margin_q);
    add(t * 17 + 9, contest.gate_k, contest.entropy_k, contest.winner_k, contest.margin_k);
    contest.flow.push_back(0.3f);
    contest.read_gate_effective.push_back(0.01f * sample_noise(t));
  }
  return contest;
}

inline SharpenedGates sample_answer(const SharpenedGatesQuestion& question, const Snapshot& snapshot) {
  const HeadContest contest = sample_answer(HeadGatesQuestion{question.layer}, snapshot);
  SharpenedGates gates;
  if (contest.heads == 0) return gates;
  const std::int64_t n = question.to - question.from;
  const auto part = [&](const std::vector<float>& all) {
    return std::vector<float>(all.begin() + question.from * contest.heads, all.begin() + question.to * contest.heads);
  };
  gates.gate_q = part(contest.gate_q);
  gates.gate_k = part(contest.gate_k);
  gates.entropy_q.assign(static_cast<std::size_t>(n), 0.5f);
  gates.entropy_k = gates.entropy_q;
  for (std::int64_t i = 0; i < n * n; ++i) gates.flow.push_back(0.6f * sample_noise(i));
  gates.lambda = {0.25f, 0.5f, 1, 2, 4, 8, 16};
  for (std::int64_t i = 0; i < n; ++i) {
    for (const float lambda : gates.lambda) {
      gates.curve_q.push_back(1 / (1 + lambda));
      gates.curve_k.push_back(1 / (1 + lambda * lambda));
      gates.curve_flow.push_back(lambda / 20);
    }
  }
  return gates;
}

inline CrossSimilarity sample_answer(const CrossSimilarityQuestion& question, const Snapshot& snapshot) {
  const HeadState& own = snapshot.state;
  const LayerState& other = *question.other;
  const auto waves = [](std::int64_t others, std::int64_t owns, std::int64_t stride) {
    std::vector<float> cosine;
    for (std::int64_t j = 0; j < others; ++j)
      for (std::int64_t i = 0; i < owns; ++i)
        cosine.push_back(std::cos(0.3f * static_cast<float>(i) - 0.7f * static_cast<float>(stride * j)));
    return CosineBlock(std::move(cosine), others, owns);
  };
  return {.of_rows = waves(other.slots * other.rows, own.slots * own.rows, 1), .of_heads = waves(other.heads, own.heads, 2)};
}

inline RowAges sample_answer(const RowAgesQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  RowAges ages{.slots = layer.slots(), .rows = layer.rows, .written = {}, .halved = {}};
  for (std::int64_t i = 0; i < ages.slots * ages.rows; ++i) {
    const auto age = static_cast<std::int32_t>(std::min<std::int64_t>(i % 7 * i, question.token));
    ages.written.push_back(i % 5 == 4 ? -1 : age);
    ages.halved.push_back(i % 3 == 2 ? -1 : 2 * age);
  }
  return ages;
}

/// Slot 0 is written by every token, slot n by every fourth.
inline WriteSpreads sample_answer(const WriteSpreadQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  WriteSpreads spreads{.slots = layer.slots(), .rows = layer.rows, .effective = {}, .counted = {}};
  for (std::int64_t slot = 0; slot < spreads.slots; ++slot) {
    for (std::int64_t t = question.from; t < question.to; ++t) {
      const float rows = slot == 0 || t % 4 == slot % 4 ? static_cast<float>(layer.rows) * sample_noise(t + slot) : std::nanf("");
      spreads.effective.push_back(rows);
      spreads.counted.push_back(std::ceil(rows));
    }
  }
  return spreads;
}

/// What is remembered is smoother the longer ago.
inline Remembered sample_answer(const RememberedQuestion& question, const Snapshot&) {
  Remembered all{.entered = {}, .remembered = {}, .step = 0.1};
  for (std::int64_t s = question.from; s < question.to; ++s) {
    all.entered.push_back(2 * sample_noise(s + question.channel) - 1);
    const auto ago = static_cast<float>(question.token - s);
    all.remembered.push_back(ago < 0 ? std::nanf("") : all.entered.back() * std::exp(-0.1F * ago));
  }
  return all;
}

/// Three blocks of 8 tokens: the first one, one that moves, the token's own.
inline Choices sample_answer(const ChoicesQuestion& question, const Snapshot&) {
  Choices all{.heads = 2, .head = std::min<std::int64_t>(question.head, 1), .size = 8, .begin = {0}, .chosen = {}, .score = {}};
  for (std::int64_t t = question.from; t < question.to; ++t) {
    const auto own = static_cast<std::int32_t>(t / 8), far = static_cast<std::int32_t>(t * 7 % (own + 1));
    for (const std::int32_t block : std::set<std::int32_t>{0, far, own}) {
      all.chosen.push_back(block);
      all.score.push_back(sample_noise(t + 31 * block));
    }
    all.begin.push_back(std::ssize(all.chosen));
  }
  return all;
}

/// Of the first three quarters of the experts; the others are dead.
inline Experts sample_answer(const ExpertsQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  Experts all{.experts = layer.experts, .chosen = layer.chosen_experts, .expert = {}, .weight = {}, .load = {}};
  all.load.resize(static_cast<std::size_t>(all.experts));
  for (std::int64_t t = 0; t < question.to; ++t) {
    const auto first = static_cast<std::int64_t>(sample_noise(t) * static_cast<float>(all.experts));
    for (std::int64_t i = 0; i < all.chosen; ++i) {
      const std::int64_t expert = (first * first + 5 * i) % (3 * all.experts / 4);
      if (t < question.from) {
        ++all.load[static_cast<std::size_t>(expert)];
      } else {
        all.expert.push_back(static_cast<std::int32_t>(expert));
        all.weight.push_back(std::pow(0.6f, static_cast<float>(i)) * (1 + 0.2f * sample_noise(t + i)));
      }
    }
  }
  return all;
}

/// The longer and the deeper, the fewer are found; the first cell of the last row cannot be.
inline NeedleGrid sample_answer(const NeedleGridQuestion& question, const Snapshot&) {
  NeedleGrid grid{.unit = "words", .haystack = "filler", .cells = {}};
  const std::int64_t columns = std::ssize(question.lengths), rows = std::ssize(question.depths);
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    NeedleGrid::Cell cell;
    cell.read = question.samples;
    cell.right = question.samples * (columns - i % columns) / columns;
    if (i / columns + 1 == rows && i % columns == 0) cell = {.impossible = "2 needles do not fit into 128 words"};
    for (std::int64_t f = cell.right; f < cell.read; ++f) cell.failures.push_back({f, f % 3});
    grid.cells.push_back(std::move(cell));
  }
  return grid;
}

/// All that can be answered here.
inline Findings sample_findings(const std::vector<Question>& questions, const Snapshot& snapshot) {
  Findings findings;
  for (const Question& question : questions) {
    std::visit(
        [&]<class Q>(const Q& asked) {
          if constexpr (requires { sample_answer(asked, snapshot); }) findings.answer(asked, sample_answer(asked, snapshot));
        },
        question);
  }
  return findings;
}

/// Another model at the same place: the same states, not as large, other gates, and more sure of another token.
inline Snapshot sample_other(Snapshot snapshot) {
  for (std::vector<float>* values : {&snapshot.state.values, &snapshot.before.values})
    for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] *= 0.4f + 0.5f * std::sin(static_cast<float>(i));
  if (snapshot.routing) {
    Routing routing = *snapshot.routing;
    for (std::size_t i = 0; i < routing.gate.size(); ++i) routing.gate[i] *= 0.5f + 0.5f * std::cos(static_cast<float>(i));
    snapshot.routing = std::make_shared<const Routing>(std::move(routing));
  }
  if (!snapshot.predictions.empty()) snapshot.predictions.front() = {99, " house", 0.35f};
  return snapshot;
}

/// What a view that compares asks of its own model and of `other`, B, which reads the same but for its last five tokens.
inline Findings sample_findings_beside(const View& view, const Snapshot& snapshot, const Snapshot& other, const Cursor& cursor) {
  Findings findings = sample_findings(view.questions(snapshot, cursor), snapshot);
  const auto tokens = snapshot.run ? std::ssize(snapshot.run->tokens) : 0;
  findings.peer =
      std::make_shared<const Peer>(Peer{.own_letter = "A",
                                        .letter = "B",
                                        .snapshot = std::make_shared<const Snapshot>(other),
                                        .missing = {},
                                        .same_until = std::max<std::int64_t>(tokens - 5, 0),
                                        .findings = sample_findings(view.peer_questions(snapshot, findings, other, cursor), other)});
  findings.beside = {findings.peer};
  return findings;
}

}  // namespace statescope
