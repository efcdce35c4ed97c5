#include "engine/answers/own_values.h"

#include <algorithm>
#include <cmath>

#include "engine/analysis/state_space_parameters.h"
#include "engine/mixers/parts.h"

namespace statescope {
namespace {

/// Whose values are dt · x, and past whose memory D · x goes.
bool has_mamba2(std::string_view mixer) {
  return mixer == "mamba2" || mixer == "falcon_h1" || mixer == "zamba2_hybrid" || mixer == "log_linear_mamba2";
}

/// [T] of a channel that has one number for each of its heads.
std::vector<float> numbers_of_head(const ChannelRows& rows, std::int64_t head, std::int64_t H, std::int64_t tokens) {
  const std::int64_t heads = rows.shape.front(), own = producer_head(head, heads, H);
  std::vector<float> numbers;
  for (std::int64_t t = 0; t < tokens; ++t) numbers.push_back(rows.values[static_cast<std::size_t>(t * heads + own)]);
  return numbers;
}

std::vector<float> augmentation(std::int64_t layer, std::int64_t head, const MemoryTrace& trace, Evidence& evidence) {
  const ChannelRows *q = evidence.channel(layer, "q"), *k = evidence.channel(layer, "k");
  const std::vector<float> aug = layer_tensor(layer, ".aug", trace.H * trace.K, evidence.checkpoint());
  if (!q || !k || aug.empty()) return {};
  std::vector<float> weights;
  for (std::int64_t t = 0; t < evidence.tokens(); ++t) {
    double sum = 0;
    for (std::int64_t r = head * trace.K; r < (head + 1) * trace.K; ++r) {
      const auto at = static_cast<std::size_t>(t * trace.H * trace.K + r);
      sum += static_cast<double>(q->values[at]) * aug[static_cast<std::size_t>(r)] * k->values[at];
    }
    weights.push_back(static_cast<float>(sum) * inverse_sqrt(trace.K));
  }
  return weights;
}

}  // namespace

std::vector<float> undecayed_ratio(std::int64_t layer, std::int64_t head, const MemoryTrace& trace, Evidence& evidence) {
  const ChannelRows *erase = evidence.channel(layer, "erase"), *decay = evidence.channel(layer, "log_decay");
  if (evidence.layer(layer).mixer != "comba" || !erase || !decay) return {};
  const std::vector<float> c = numbers_of_head(*erase, head, trace.H, evidence.tokens());
  std::vector<float> ratio = numbers_of_head(*decay, head, trace.H, evidence.tokens());
  constexpr float least = 0x1p-24F;  // as the memory counts α
  for (std::size_t t = 0; t < ratio.size(); ++t) ratio[t] = std::max(std::exp(ratio[t]), least) / c[t];
  return ratio;
}

DeltaStep undecayed(DeltaStep step, double ratio) {
  for (double* size : {&step.prediction, &step.value, &step.error}) *size /= ratio;
  step.beta *= ratio;
  step.mended *= ratio;
  return step;
}

std::vector<float> value_gate(std::int64_t layer, std::int64_t head, const MemoryTrace& trace, Evidence& evidence) {
  const std::string& mixer = evidence.layer(layer).mixer;
  if (mixer == "comba") return undecayed_ratio(layer, head, trace, evidence);
  const ChannelRows* rows = has_mamba2(mixer)           ? evidence.channel(layer, "dt")
                            : mixer == "gated_deltanet" ? evidence.channel(layer, "head_gate_k")
                                                        : nullptr;
  return rows ? numbers_of_head(*rows, head, trace.H, evidence.tokens()) : std::vector<float>();
}

std::vector<float> skip_weights(std::int64_t layer, std::int64_t head, const MemoryTrace& trace, Evidence& evidence) {
  const std::string& mixer = evidence.layer(layer).mixer;
  if (mixer == "metala") return augmentation(layer, head, trace, evidence);
  const std::vector<float> D = has_mamba2(mixer) ? layer_tensor(layer, ".D", trace.H, evidence.checkpoint()) : std::vector<float>();
  if (D.empty()) return {};
  return std::vector<float>(static_cast<std::size_t>(evidence.tokens()), D[static_cast<std::size_t>(head)]);
}

}  // namespace statescope
