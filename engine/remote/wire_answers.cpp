// What comes of questions, on the wire.
#include "engine/remote/wire_fields.h"

namespace statescope {

// Its halvings are made again.
template <class Archive>
void serialize(Archive& archive, Pyramid& x) {
  std::int64_t rows = x.rows(), columns = x.columns();
  if constexpr (Archive::is_loading::value) {
    std::vector<float> values;
    archive(rows, columns, values);
    remote::check_sizes(values.size(), {rows, columns});
    x = Pyramid(std::move(values), rows, columns);
  } else {
    archive(rows, columns, x.values());
  }
}

template <class Archive>
void serialize(Archive& archive, Decay& x) {
  auto& [axis, channels, token, log_decay, log_sum, half_life, width, censored, measured] = x;
  remote::Choice known{axis, Decay::Axis::columns};
  archive(known, channels, token, log_decay, log_sum, half_life, width, censored, measured);
}

STATESCOPE_FIELDS(CosineBlock, cosine, mean, most, same, gaps)
STATESCOPE_FIELDS(CrossSimilarity, of_rows, of_heads)
STATESCOPE_FIELDS(ModelMap::TensorRow, name, shape, dtype, bytes)
STATESCOPE_FIELDS(ModelMap::LayerRow, tensors, parameters, weight_bytes, state_bytes, state_bytes_per_token, program)
STATESCOPE_FIELDS(ModelMap, layers, rest)
STATESCOPE_FIELDS(LayerSeries, from, to, slots, residual_norm, state_norm, update_norm, routing_entropy, gate_entropy_q, gate_entropy_k,
                  gate_winner_q, gate_winner_k)
STATESCOPE_FIELDS(LossSeries, from, to, loss, entropy)
STATESCOPE_FIELDS(Predictions, from, to, top, next_probability, next_rank, entropy, logits, probabilities)
STATESCOPE_FIELDS(HeadContest, heads, gate_q, gate_k, entropy_q, entropy_k, winner_q, winner_k, margin_q, margin_k, flow,
                  read_gate_effective)
STATESCOPE_FIELDS(SharpenedGates, gate_q, gate_k, entropy_q, entropy_k, flow, lambda, curve_q, curve_k, curve_flow)
STATESCOPE_FIELDS(DeltaRule, two_keys, steps, token, prediction, value, error, erase, write, update, cosine, beta, alpha, mended, put,
                  along_key)
STATESCOPE_FIELDS(Update, slots, rows, columns, decayed, erased, written, write_weight)
STATESCOPE_FIELDS(History, token, coefficient, written, contribution, sum, shown, step)
STATESCOPE_FIELDS(Similarity, partitions, rows, heads, order, cosine, row_norm, mean_abs, within, between, min_cosine, zero_rows,
                  partition_cosine, head_cosine)
STATESCOPE_FIELDS(TokenSimilarity, cosine)
STATESCOPE_FIELDS(Spectra, heads, count, partitions, sigma, entropy, rank, rank_of_squares, partition_entropy, partition_rank)
STATESCOPE_FIELDS(RankSeries, heads, token, entropy, rank, norm)
STATESCOPE_FIELDS(AttentionMap, heads, weight, before, all)
STATESCOPE_FIELDS(NeedleStory::Curve, slot, head, written, read_share, token, kept)
STATESCOPE_FIELDS(NeedleStory::Cause, layer, slot, head, what, lost, token)
STATESCOPE_FIELDS(NeedleStory::LayerFate, has_memory, clear, decayed, erased, overwritten, misrouted, read_share, read_slot, read_head,
                  kept, curves, places)
STATESCOPE_FIELDS(NeedleStory::Fall, token, by)
STATESCOPE_FIELDS(NeedleStory, layers, all, causes, falls)
STATESCOPE_FIELDS(BranchPredictions, from, kl, logits, changed, parted)
STATESCOPE_FIELDS(BranchStates, left, here, difference)
STATESCOPE_FIELDS(RowAges, slots, rows, written, halved)
STATESCOPE_FIELDS(WriteSpreads, slots, rows, effective, counted)
STATESCOPE_FIELDS(Remembered, entered, remembered, step)
STATESCOPE_FIELDS(Choices, heads, head, size, begin, chosen, score)
STATESCOPE_FIELDS(Experts, experts, chosen, expert, weight, load)
STATESCOPE_FIELDS(Observables::Quantity, name, axes, unit, equation, accuracy, shape, values)
STATESCOPE_FIELDS(Observables, quantities)
STATESCOPE_FIELDS(NeedleGrid::Failure, index, place)
STATESCOPE_FIELDS(NeedleGrid::Cell, right, read, failures, impossible)
STATESCOPE_FIELDS(NeedleGrid, unit, haystack, by_reply, cells)

namespace remote {

std::string pack_finding(const Question& question, const Finding& finding) {
  const auto& [answer, refused, progress] = finding;
  Writer writer;
  writer(refused, progress);
  std::visit([&]<class Q>(const Q&) { writer(std::static_pointer_cast<const typename Q::Answer>(answer)); }, question);
  return writer.take();
}

Finding unpack_finding(const Question& question, std::string_view bytes) {
  return read_whole(bytes, [&](Reader& reader) {
    Finding finding;
    reader(finding.refused, finding.progress);
    std::visit(
        [&]<class Q>(const Q&) {
          std::shared_ptr<const typename Q::Answer> answer;
          reader(answer);
          finding.answer = std::move(answer);
        },
        question);
    return finding;
  });
}

}  // namespace remote
}  // namespace statescope
