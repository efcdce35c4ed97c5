// What answers weigh: their numbers, and of texts and small parts so much that none is taken for nothing.
#include "engine/answers/answers.h"

namespace statescope {
namespace {

constexpr std::size_t kSmallPart = 128;  // a row of names, a curve's head

template <class T>
std::size_t bytes(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

std::size_t bytes(const Pyramid& pyramid) { return pyramid.values().size() * sizeof(float) * 4 / 3; }  // with its halvings
std::size_t bytes(const CosineBlock& block) { return bytes(block.cosine); }

std::size_t bytes(const NeedleStory::LayerFate& fate) {
  std::size_t sum = kSmallPart + bytes(fate.kept);
  for (const NeedleStory::Curve& curve : fate.curves) sum += kSmallPart + bytes(curve.token) + bytes(curve.kept);
  return sum;
}

template <class... Parts>
std::size_t sum(const Parts&... parts) {
  return (std::size_t{0} + ... + bytes(parts));
}

std::size_t bytes(const ModelMap& map) {
  std::size_t tensors = map.rest.tensors.size();
  for (const ModelMap::LayerRow& layer : map.layers) tensors += layer.tensors.size() + layer.program.size();
  return tensors * kSmallPart;
}
std::size_t bytes(const LayerSeries& a) {
  return sum(a.residual_norm, a.state_norm, a.update_norm, a.routing_entropy, a.gate_entropy_q, a.gate_entropy_k, a.gate_winner_q,
             a.gate_winner_k);
}
std::size_t bytes(const LossSeries& a) { return sum(a.loss, a.entropy); }
std::size_t bytes(const Predictions& a) {
  const std::size_t top = a.top.empty() ? 0 : a.top.size() * a.top.front().size() * sizeof(Prediction);
  return top + sum(a.next_probability, a.next_rank, a.entropy, a.logits, a.probabilities);
}
std::size_t bytes(const Decay& a) { return sum(a.token, a.log_decay, a.log_sum, a.half_life, a.width, a.censored); }
std::size_t bytes(const HeadContest& a) {
  return sum(a.gate_q, a.gate_k, a.entropy_q, a.entropy_k, a.winner_q, a.winner_k, a.margin_q, a.margin_k, a.flow, a.read_gate_effective);
}
std::size_t bytes(const SharpenedGates& a) {
  return sum(a.gate_q, a.gate_k, a.entropy_q, a.entropy_k, a.flow, a.lambda, a.curve_q, a.curve_k, a.curve_flow);
}
std::size_t bytes(const DeltaRule& a) {
  return sum(a.token, a.prediction, a.value, a.error, a.erase, a.write, a.update, a.cosine, a.beta, a.alpha, a.mended, a.put, a.along_key);
}
std::size_t bytes(const Update& a) { return sum(a.decayed, a.erased, a.written, a.write_weight); }
std::size_t bytes(const HeadState& a) { return bytes(a.values); }
std::size_t bytes(const LayerState& a) { return bytes(a.values); }
std::size_t bytes(const History& a) { return sum(a.token, a.coefficient, a.written, a.contribution, a.step); }
std::size_t bytes(const Similarity& a) { return sum(a.order, a.cosine, a.row_norm, a.partition_cosine, a.head_cosine); }
std::size_t bytes(const CrossSimilarity& a) { return sum(a.of_rows, a.of_heads); }
std::size_t bytes(const TokenSimilarity& a) { return bytes(a.cosine); }
std::size_t bytes(const Spectra& a) { return sum(a.sigma, a.entropy, a.rank, a.rank_of_squares, a.partition_entropy, a.partition_rank); }
std::size_t bytes(const RankSeries& a) { return sum(a.token, a.entropy, a.rank, a.norm); }
std::size_t bytes(const AttentionMap& a) { return sum(a.weight, a.before, a.all); }
std::size_t bytes(const NeedleStory& a) {
  std::size_t layers = bytes(a.all);
  for (const NeedleStory::LayerFate& layer : a.layers) layers += bytes(layer);
  return layers + sum(a.causes, a.falls);
}
std::size_t bytes(const BranchPredictions& a) { return sum(a.kl, a.logits); }
std::size_t bytes(const BranchStates& a) { return sum(a.left, a.here, a.difference); }
std::size_t bytes(const RowAges& a) { return sum(a.written, a.halved); }
std::size_t bytes(const WriteSpreads& a) { return sum(a.effective, a.counted); }
std::size_t bytes(const Remembered& a) { return sum(a.entered, a.remembered); }
std::size_t bytes(const Choices& a) { return sum(a.begin, a.chosen, a.score); }
std::size_t bytes(const Experts& a) { return sum(a.expert, a.weight, a.load); }
std::size_t bytes(const Observables& a) {
  std::size_t all = 0;
  for (const Observables::Quantity& quantity : a.quantities) all += 2 * kSmallPart + sum(quantity.shape, quantity.values);
  return all;
}
std::size_t bytes(const NeedleGrid& a) { return a.cells.size() * kSmallPart; }

}  // namespace

std::size_t bytes_of(const Question& question, const Finding& finding) {
  const std::size_t numbers = std::visit(
      [&]<class Q>(const Q&) { return finding.answer ? bytes(*static_cast<const typename Q::Answer*>(finding.answer.get())) : 0; },
      question);
  return sizeof(Question) + sizeof(Finding) + finding.refused.size() + numbers;
}

}  // namespace statescope
