// The answers to the questions of engine/findings/findings.h, worked out from a run's evidence. All throw Error: a line that the view
// shows, or Cancelled.
#pragma once

#include "engine/analysis/evidence.h"
#include "engine/findings/findings.h"

namespace statescope {

Similarity answer(const SimilarityQuestion& question, Evidence& evidence);
CrossSimilarity answer(const CrossSimilarityQuestion& question, Evidence& evidence);
TokenSimilarity answer(const TokenSimilarityQuestion& question, Evidence& evidence);
Spectra answer(const SpectraQuestion& question, Evidence& evidence);
RankSeries answer(const RankSeriesQuestion& question, Evidence& evidence);
AttentionMap answer(const AttentionQuestion& question, Evidence& evidence);

Decay answer(const DecayQuestion& question, Evidence& evidence);
HeadContest answer(const HeadGatesQuestion& question, Evidence& evidence);
SharpenedGates answer(const SharpenedGatesQuestion& question, Evidence& evidence);
DeltaRule answer(const DeltaRuleQuestion& question, Evidence& evidence);

ModelMap answer(const ModelMapQuestion& question, Evidence& evidence);
Predictions answer(const PredictionsQuestion& question, Evidence& evidence);
HeadState answer(const StateQuestion& question, Evidence& evidence);
LayerState answer(const LayerStateQuestion& question, Evidence& evidence);
Update answer(const UpdateQuestion& question, Evidence& evidence);
History answer(const HistoryQuestion& question, Evidence& evidence);
NeedleStory answer(const NeedleQuestion& question, Evidence& evidence);
RowAges answer(const RowAgesQuestion& question, Evidence& evidence);
WriteSpreads answer(const WriteSpreadQuestion& question, Evidence& evidence);
Remembered answer(const RememberedQuestion& question, Evidence& evidence);
Choices answer(const ChoicesQuestion& question, Evidence& evidence);
Experts answer(const ExpertsQuestion& question, Evidence& evidence);
Observables answer(const ObservablesQuestion& question, Evidence& evidence);
/// Throws: this is not of a run but of its checkpoint, and needs the data sets; the program answers it beside the run.
NeedleGrid answer(const NeedleGridQuestion& question, Evidence& evidence);

BranchPredictions answer(const BranchPredictionsQuestion& question, Evidence& evidence);
BranchStates answer(const BranchStatesQuestion& question, Evidence& evidence);

LayerSeries answer(const LayerSeriesQuestion& question, Evidence& evidence);
LossSeries answer(const LossSeriesQuestion& question, Evidence& evidence);

/// The Answer of any of them.
std::shared_ptr<const void> find_out(const Question& question, Evidence& evidence);
/// About the memory that the answer to a question takes.
std::size_t bytes_of(const Question& question, const Finding& finding);

}  // namespace statescope
