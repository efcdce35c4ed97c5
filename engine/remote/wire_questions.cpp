// What is asked of a run, on the wire.
#include "engine/remote/wire_fields.h"

namespace statescope {

STATESCOPE_FIELDS(TokenSteps, from, step, count)
STATESCOPE_FIELDS(LayerSeriesQuestion, layer, from, to)
STATESCOPE_FIELDS(LossSeriesQuestion, from, to)
STATESCOPE_FIELDS(PredictionsQuestion, from, to, ids)
STATESCOPE_FIELDS(DecayQuestion, layer, slot, head, from, to)
STATESCOPE_FIELDS(HeadGatesQuestion, layer)
STATESCOPE_FIELDS(SharpenedGatesQuestion, layer, from, to, lambda)
STATESCOPE_FIELDS(DeltaRuleQuestion, layer, slot, head)
STATESCOPE_FIELDS(UpdateQuestion, layer, head, token)
STATESCOPE_FIELDS(StateQuestion, layer, head, token)
STATESCOPE_FIELDS(LayerStateQuestion, layer, token)
STATESCOPE_FIELDS(HistoryQuestion, layer, slot, head, row, column, token, read)
STATESCOPE_FIELDS(SimilarityQuestion, layer, head, token, clustered)
STATESCOPE_FIELDS(CrossSimilarityQuestion, layer, slot, head, token, other, other_slot, other_head)
STATESCOPE_FIELDS(TokenSimilarityQuestion, layer, slot, head, rows, columns)
STATESCOPE_FIELDS(SpectraQuestion, layer, token)
STATESCOPE_FIELDS(RankSeriesQuestion, layer)
STATESCOPE_FIELDS(AttentionQuestion, layer, head, rows, columns, slot)
STATESCOPE_FIELDS(NeedleQuestion, begin, end, question)
STATESCOPE_FIELDS(BranchStatesQuestion, token)
STATESCOPE_FIELDS(RowAgesQuestion, layer, head, token)
STATESCOPE_FIELDS(WriteSpreadQuestion, layer, head, from, to)
STATESCOPE_FIELDS(RememberedQuestion, layer, channel, token, from, to)
STATESCOPE_FIELDS(ChoicesQuestion, layer, head, from, to)
STATESCOPE_FIELDS(ExpertsQuestion, layer, from, to)
STATESCOPE_FIELDS(ObservablesQuestion, layer, from, to, names, since)
STATESCOPE_FIELDS(NeedleGridQuestion, needles, samples, lengths, depths)

namespace remote {

template std::string pack(const Question&);
template Question unpack(std::string_view);

}  // namespace remote
}  // namespace statescope
