// Arrays of the views that show what a state holds after a token.
#include <array>

#include "views/arrays.h"
#include "views/cross_similarity.h"
#include "views/similarity.h"
#include "views/spectrum.h"
#include "views/state.h"
#include "views/writes.h"

namespace statescope {
namespace {

constexpr const char* kState =
    "S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3, SSE eq. 9); S_t = α_t (S_{t−1} − β_t k_tᵀ (k_t S_{t−1})) + "
    "β_t k_tᵀ v_t (Gated DeltaNet eq. 10)";
constexpr const char* kCosine = "cos(a, b) = ⟨a, b⟩ / (‖a‖ ‖b‖) (SSE Def. 1)";

struct Quantity {
  const char *name, *equation;
};
/// By StateMode.
constexpr std::array<Quantity, 7> kShown{{{"S_t", kState},
                                          {"S_t − S_{t−1}", kState},
                                          {"(α_t − 1) S_{t−1}", kState},
                                          {"−β_t k_tᵀ (k_t α_t S_{t−1})", kState},
                                          {"k_tᵀ v_t", kState},
                                          {"S_t − S_r", kState},
                                          {"S_t − S′_t", kState}}};

std::vector<std::string> names(const std::vector<std::int64_t>& order, const SimilarityData& data) {
  std::vector<std::string> all;
  for (const std::int64_t what : order) all.push_back(data.name(what));
  return all;
}

/// [H, n]
std::vector<float> stacked(const std::vector<std::vector<float>>& rows) {
  std::vector<float> all;
  for (const std::vector<float>& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

}  // namespace

std::vector<Array> arrays(const StateData& data) {
  if (data.slots.empty()) return {};
  const Quantity& shown = kShown[static_cast<std::size_t>(data.mode)];
  std::vector<std::string> slots;
  Array state{.name = shown.name, .unit = "", .equation = shown.equation, .axes = {}, .values = {}, .as_colors = true};
  Array change{
      .name = data.mode == StateMode::state ? "‖row of S_t − S_{t−1}‖" : "‖row‖", .unit = "", .equation = kState, .axes = {}, .values = {}};
  for (const SlotMatrix& slot : data.slots) {
    slots.push_back(slot.name);
    state.values.insert(state.values.end(), slot.values.begin(), slot.values.end());
    change.values.insert(change.values.end(), slot.row_change.begin(), slot.row_change.end());
  }
  state.axes = {named_axis("partition", slots), counted_axis("key row", data.rows), counted_axis("value column", data.columns)};
  change.axes = {named_axis("partition", slots), counted_axis("key row", data.rows)};
  return {state, change};
}

std::vector<Array> arrays(const WritesData& data) {
  if (data.message) return {};
  if (data.mode == WritesMode::spread) {
    return {{"effective rows",
             "rows",
             "(Σ|ω|)² / Σω², ω the coefficients of v (GLA eq. 3, SSE eq. 9)",
             {token_axis(data.tokens)},
             data.effective},
            {"rows written", "rows", "rows with |ω_r| ≥ 0.001 Σ|ω|", {token_axis(data.tokens)}, data.counted}};
  }
  const bool halved = data.mode == WritesMode::halved;
  return {
      {halved ? "time to half" : "time since the last write",
       "tokens",
       halved ? "least n with Π α over the last n tokens ≤ 1/2 (GLA eq. 3, SSE eq. 9)" : "since |ω_r| ≥ 0.001 Σ|ω| (GLA eq. 3, SSE eq. 9)",
       {counted_axis("key row", data.rows), named_axis("partition", data.slot_names)},
       data.ages,
       true}};
}

std::vector<Array> arrays(const SimilarityData& data) {
  if (data.message) return {};
  const char* what = data.mode == SimilarityMode::tokens       ? "token"
                     : data.mode == SimilarityMode::heads      ? "head"
                     : data.mode == SimilarityMode::partitions ? "partition"
                                                               : "key row";
  return {{data.is_signed ? "cosine" : "|cosine|",
           "",
           kCosine,
           {named_axis(what, names(data.order, data)), named_axis(std::string(what) + ", the other", names(data.across, data))},
           data.cells.values(),
           true}};
}

std::vector<Array> arrays(const CrossSimilarityData& data) {
  if (data.message) return {};
  const char* what = data.mode == CrossSimilarityMode::heads ? "head" : "key row";
  return {{"cosine",
           "",
           kCosine,
           {named_axis(std::string(what) + " of " + data.own_letter, data.own_names),
            named_axis(std::string(what) + " of " + data.letter, data.other_names)},
           data.cells.values(),
           true}};
}

std::vector<Array> arrays(const SpectrumData& data) {
  if (data.message) return {};
  if (data.along_the_run()) {
    const char* equation = data.mode == SpectrumMode::rank_series      ? "exp(−Σ p log p), p = σ / Σσ (Roy and Vetterli)"
                           : data.mode == SpectrumMode::entropy_series ? "−Σ p log p / log n, p = σ² / Σσ² (SSE footnote 8)"
                                                                       : "‖S_t‖_F";
    return {
        {data.series_name, "", equation, {counted_axis("head", std::ssize(data.series)), token_axis(data.tokens)}, stacked(data.series)}};
  }
  if (data.mode == SpectrumMode::partitions) {
    const std::vector<ArrayAxis> axes{counted_axis("head", data.heads), named_axis("partition", data.partition_names)};
    return {{"effective rank", "", "exp(−Σ p log p), p = σ / Σσ (Roy and Vetterli)", axes, data.partition_rank, true},
            {"entropy", "", "−Σ p log p / log n, p = σ² / Σσ² (SSE footnote 8)", axes, data.partition_entropy}};
  }
  std::vector<std::string> heads;
  Array sigma{
      .name = "σ", .unit = "", .equation = "singular values of each head's state, its partitions stacked", .axes = {}, .values = {}};
  Array entropy{.name = "entropy", .unit = "", .equation = "−Σ p log p / log n, p = σ² / Σσ² (SSE footnote 8)", .axes = {}, .values = {}};
  Array rank{.name = "effective rank", .unit = "", .equation = "exp(−Σ p log p), p = σ / Σσ (Roy and Vetterli)", .axes = {}, .values = {}};
  for (const HeadSpectrum& head : data.spectra) {
    heads.push_back(std::to_string(head.head));
    sigma.values.insert(sigma.values.end(), head.sigma.begin(), head.sigma.end());
    entropy.values.push_back(head.entropy);
    rank.values.push_back(head.rank);
  }
  sigma.axes = {named_axis("head", heads), counted_axis("singular value", data.count)};
  entropy.axes = rank.axes = {named_axis("head", heads)};
  return {sigma, entropy, rank};
}

}  // namespace statescope
