// How alike states are, and how many directions they fill (spec §12.5).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "engine/analysis/clustering.h"
#include "engine/analysis/parts.h"
#include "engine/analysis/similarity_analysis.h"
#include "engine/answers/answers.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// z [R, V] on the backend and back: cosines [R, R], 0 where a row is zero.
std::vector<float> cosines(Evidence& evidence, std::span<const float> z, std::int64_t R) {
  Backend& backend = evidence.backend();
  const Workspace::Mark mark(evidence.workspace());
  const std::int64_t V = std::ssize(z) / R;
  const Tensor Z = evidence.workspace().tensor({1, R, V}), C = evidence.workspace().tensor({1, R, R});
  backend.upload(Z, ConstTensor(z.data(), DType::f32, Z.shape));
  backend.row_cosine(C, Z);
  std::vector<float> cosine(static_cast<std::size_t>(R * R));
  backend.download(Tensor(cosine.data(), DType::f32, C.shape), C);
  return cosine;
}

/// C_ij becomes NaN where row i or j is zero.
std::vector<float> with_gaps(std::vector<float> cosine, std::int64_t R) {
  std::vector<bool> zero;
  for (std::int64_t i = 0; i < R; ++i) zero.push_back(cosine[static_cast<std::size_t>(i * R + i)] == 0);
  for (std::int64_t i = 0; i < R * R; ++i) {
    if (zero[static_cast<std::size_t>(i / R)] || zero[static_cast<std::size_t>(i % R)]) cosine[static_cast<std::size_t>(i)] = kNaN;
  }
  return cosine;
}

/// Like rows beside each other; zero rows last.
std::vector<std::int64_t> clustered(std::span<const float> cosine, std::int64_t R) {
  const auto C = [&](std::int64_t i, std::int64_t j) { return cosine[static_cast<std::size_t>(i * R + j)]; };
  std::vector<std::int64_t> known, zero;
  for (std::int64_t i = 0; i < R; ++i) (std::isfinite(C(i, i)) ? known : zero).push_back(i);
  std::vector<float> distance;
  distance.reserve(known.size() * known.size());
  for (const std::int64_t i : known) {
    for (const std::int64_t j : known) distance.push_back(1 - std::abs(C(i, j)));
  }
  std::vector<std::int64_t> order;
  for (const std::int64_t leaf : average_linkage_order(std::move(distance), std::ssize(known)))
    order.push_back(known[static_cast<std::size_t>(leaf)]);
  order.insert(order.end(), zero.begin(), zero.end());
  return order;
}

std::vector<std::int64_t> natural_order(std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

std::vector<float> reordered(const std::vector<float>& cosine, const std::vector<std::int64_t>& order) {
  const std::size_t n = order.size();
  std::vector<float> result(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = cosine.data() + static_cast<std::size_t>(order[i]) * n;
    for (std::size_t j = 0; j < n; ++j) result[i * n + j] = row[order[j]];
  }
  return result;
}

/// [slots, H, K, V] → [slots, K, V] of one head
std::vector<float> stacked_head(const LayerState& state, std::int64_t head) {
  std::vector<float> Z;
  for (std::int64_t slot = 0; slot < state.slots; ++slot) {
    const float* S = state.matrix(slot, head);
    Z.insert(Z.end(), S, S + state.rows * state.columns);
  }
  return Z;
}

/// [slots, H, K, V] → [H, K, V] of one slot
std::vector<float> heads_of_slot(const LayerState& state, std::int64_t slot) {
  const float* S = state.matrix(slot, 0);
  return {S, S + state.heads * state.rows * state.columns};
}

void check_place(std::int64_t slots, std::int64_t heads, std::int64_t slot, std::int64_t head) {
  check_index("head", head, heads);
  check_index("slot", slot, slots);
}

/// a [A, V], b [B, V]: [A, B], NaN where one of the two is zero.
std::vector<float> cross_cosines(Evidence& evidence, std::vector<float> a, std::int64_t A, std::span<const float> b, std::int64_t B) {
  a.insert(a.end(), b.begin(), b.end());
  const std::int64_t n = A + B;
  const std::vector<float> all = with_gaps(cosines(evidence, a, n), n);
  std::vector<float> block;
  for (std::int64_t i = 0; i < A; ++i) block.insert(block.end(), all.begin() + i * n + A, all.begin() + (i + 1) * n);
  return block;
}

std::vector<float> sigmas(Evidence& evidence, std::span<const float> z, std::int64_t R, std::int64_t V) {
  Backend& backend = evidence.backend();
  const Workspace::Mark mark(evidence.workspace());
  const std::int64_t B = std::ssize(z) / (R * V), n = std::min(R, V);
  const Tensor Z = evidence.workspace().tensor({B, R, V}), sigma = evidence.workspace().tensor({B, n});
  backend.upload(Z, ConstTensor(z.data(), DType::f32, Z.shape));
  backend.singular_values(sigma, Z, evidence.workspace());
  std::vector<float> values(static_cast<std::size_t>(B * n));
  backend.download(Tensor(values.data(), DType::f32, sigma.shape), sigma);
  return values;
}

/// `most` of [0, count), evenly, both ends included.
std::vector<std::int64_t> evenly(std::int64_t count, std::int64_t most) {
  const std::int64_t n = std::min(count, most);
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < n; ++i) tokens.push_back(n == 1 ? count - 1 : i * (count - 1) / (n - 1));
  return tokens;
}

}  // namespace

Similarity answer(const SimilarityQuestion& question, Evidence& evidence) {
  const LayerState state = evidence.state(question.layer, question.token);
  if (state.values.empty()) return {};
  check_index("head", question.head, state.heads);
  const std::int64_t P = state.slots, K = state.rows, R = P * K;
  Similarity result{.partitions = P, .rows = K, .heads = state.heads};
  const std::vector<float> Z = stacked_head(state, question.head);
  for (std::int64_t i = 0; i < R; ++i)
    result.row_norm.push_back(static_cast<float>(
        norm(std::span(Z).subspan(static_cast<std::size_t>(i * state.columns), static_cast<std::size_t>(state.columns)))));
  evidence.tell(0.1);
  result.partition_cosine = with_gaps(cosines(evidence, Z, P), P);
  std::vector<float> heads;
  for (std::int64_t h = 0; h < state.heads; ++h) {
    const std::vector<float> stacked = stacked_head(state, h);
    heads.insert(heads.end(), stacked.begin(), stacked.end());
  }
  result.head_cosine = with_gaps(cosines(evidence, heads, state.heads), state.heads);
  if (R > Similarity::kMostRows) return result;
  evidence.tell(0.2);
  std::vector<float> cosine = cosines(evidence, Z, R);
  evidence.tell(0.5);
  const RowSimilarity rows = row_similarity(cosine, P, K);
  result.mean_abs = rows.mean_abs;
  result.within = rows.within;
  result.between = rows.between;
  result.min_cosine = rows.min_cosine;
  result.zero_rows = rows.zero_rows;
  cosine = with_gaps(std::move(cosine), R);
  evidence.tell(0.6);
  result.order = question.clustered ? clustered(cosine, R) : natural_order(R);
  result.cosine = Pyramid(question.clustered ? reordered(cosine, result.order) : std::move(cosine), R, R);
  return result;
}

CrossSimilarity answer(const CrossSimilarityQuestion& question, Evidence& evidence) {
  const LayerState state = evidence.state(question.layer, question.token);
  const LayerState& other = *question.other;
  if (state.values.empty() || other.values.empty()) return {};
  check_place(state.slots, state.heads, question.slot, question.head);
  check_place(other.slots, other.heads, question.other_slot, question.other_head);
  CrossSimilarity result;
  if (state.columns != other.columns) return result;
  const auto block = [&](std::vector<float> others, std::int64_t n, const std::vector<float>& own, std::int64_t own_n) {
    return CosineBlock(cross_cosines(evidence, std::move(others), n, own, own_n), n, own_n);
  };
  if (state.rows == other.rows)
    result.of_heads = block(heads_of_slot(other, question.other_slot), other.heads, heads_of_slot(state, question.slot), state.heads);
  evidence.tell(0.2);
  const std::int64_t rows = state.slots * state.rows, other_rows = other.slots * other.rows;
  if (rows + other_rows <= Similarity::kMostRows)
    result.of_rows = block(stacked_head(other, question.other_head), other_rows, stacked_head(state, question.head), rows);
  return result;
}

TokenSimilarity answer(const TokenSimilarityQuestion& question, Evidence& evidence) {
  const LayerInfo& layer = evidence.layer(question.layer);
  if (!layer.has_state()) return {};
  check_place(layer.slots(), layer.heads, question.slot, question.head);
  const std::int64_t all = question.rows.count + question.columns.count;
  std::int64_t done = 0;
  const auto states_after = [&](const TokenSteps& tokens) {
    const std::int64_t last = tokens.from + (tokens.count - 1) * tokens.step;
    if (tokens.count < 1 || tokens.count > TokenSimilarity::kMostTokens || tokens.step < 1 || last >= evidence.tokens())
      throw Error(fmt::format("no tile of {} tokens from {} on", tokens.count, tokens.from));
    std::vector<float> Z;  // [n, K·V]
    for (std::int64_t i = 0; i < tokens.count; ++i) {
      const HeadState state = evidence.head_state(question.layer, question.head, tokens.from + i * tokens.step);
      const float* S = state.matrix(question.slot);
      Z.insert(Z.end(), S, S + state.rows * state.columns);
      evidence.tell(static_cast<double>(++done) / static_cast<double>(all));
    }
    return Z;
  };
  std::vector<float> rows = states_after(question.rows);
  if (question.rows == question.columns) return {with_gaps(cosines(evidence, rows, question.rows.count), question.rows.count)};
  const std::vector<float> columns = states_after(question.columns);
  return {cross_cosines(evidence, std::move(rows), question.rows.count, columns, question.columns.count)};
}

Spectra answer(const SpectraQuestion& question, Evidence& evidence) {
  const LayerState state = evidence.state(question.layer, question.token);
  if (state.values.empty()) return {};
  const std::int64_t P = state.slots, H = state.heads, K = state.rows, V = state.columns, n = std::min(K, V);
  Spectra result{.heads = H, .count = std::min(P * K, V), .partitions = P};
  for (std::int64_t h = 0; h < H; ++h) {
    evidence.tell(static_cast<double>(h) / static_cast<double>(H));
    const std::vector<float> Z = stacked_head(state, h), sigma = sigmas(evidence, Z, P * K, V);
    const Spectrum stacked = spectrum(sigma);
    result.sigma.insert(result.sigma.end(), sigma.begin(), sigma.end());
    result.entropy.push_back(static_cast<float>(stacked.entropy));
    result.rank.push_back(static_cast<float>(stacked.rank));
    result.rank_of_squares.push_back(static_cast<float>(stacked.rank_of_squares));
    const std::vector<float> each = P > 1 ? sigmas(evidence, Z, K, V) : sigma;
    for (std::int64_t p = 0; p < P; ++p) {
      const Spectrum of_partition = spectrum(std::span(each).subspan(static_cast<std::size_t>(p * n), static_cast<std::size_t>(n)));
      result.partition_entropy.push_back(static_cast<float>(of_partition.entropy));
      result.partition_rank.push_back(static_cast<float>(of_partition.rank));
    }
  }
  return result;
}

RankSeries answer(const RankSeriesQuestion& question, Evidence& evidence) {
  const LayerInfo& layer = evidence.layer(question.layer);
  if (!layer.has_state()) return {};
  RankSeries result{.heads = layer.heads, .token = evenly(evidence.tokens(), RankSeries::kMostTokens)};
  for (const std::int64_t token : result.token) {
    const LayerState state = evidence.state(question.layer, token);
    for (std::int64_t h = 0; h < layer.heads; ++h) {
      const std::vector<float> Z = stacked_head(state, h);
      const Spectrum stacked = spectrum(sigmas(evidence, Z, state.slots * state.rows, state.columns));
      result.entropy.push_back(static_cast<float>(stacked.entropy));
      result.rank.push_back(static_cast<float>(stacked.rank));
      result.norm.push_back(static_cast<float>(norm(Z)));
    }
    evidence.tell(static_cast<double>(result.norm.size()) / static_cast<double>(std::ssize(result.token) * layer.heads));
  }
  return result;
}

}  // namespace statescope
