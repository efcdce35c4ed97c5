// The arrays (array.h) of each view's data; none of data that has only a message.
#pragma once

#include <string>
#include <vector>

#include "views/array.h"
#include "views/plot.h"

namespace statescope {

/// Places that have only their number.
ArrayAxis counted_axis(std::string name, std::int64_t count);
ArrayAxis named_axis(std::string name, std::vector<std::string> labels);
/// Each place has its token's number and text.
ArrayAxis token_axis(const TokenAxis& tokens);
/// How many values the axes have room for.
std::int64_t room(const std::vector<ArrayAxis>& axes);

struct AttentionData;
struct BranchesData;
struct CrossSimilarityData;
struct DecayData;
struct DeltaRuleData;
struct DifferenceData;
struct HeadGatesData;
struct ModelMapData;
struct NeedleData;
struct NeedleGridData;
struct PredictionsBesideData;
struct PredictionsData;
struct RoutingData;
struct SimilarityData;
struct SpectrumData;
struct StateData;
struct TimelineData;
struct TokenStripData;
struct WritesData;

std::vector<Array> arrays(const AttentionData& data);
std::vector<Array> arrays(const BranchesData& data);
std::vector<Array> arrays(const CrossSimilarityData& data);
std::vector<Array> arrays(const DecayData& data);
std::vector<Array> arrays(const DeltaRuleData& data);
std::vector<Array> arrays(const DifferenceData& data);
std::vector<Array> arrays(const HeadGatesData& data);
std::vector<Array> arrays(const ModelMapData& data);
std::vector<Array> arrays(const NeedleData& data);
std::vector<Array> arrays(const NeedleGridData& data);
std::vector<Array> arrays(const PredictionsBesideData& data);
std::vector<Array> arrays(const PredictionsData& data);
std::vector<Array> arrays(const RoutingData& data);
std::vector<Array> arrays(const SimilarityData& data);
std::vector<Array> arrays(const SpectrumData& data);
std::vector<Array> arrays(const StateData& data);
std::vector<Array> arrays(const TimelineData& data);
std::vector<Array> arrays(const TokenStripData& data);
std::vector<Array> arrays(const WritesData& data);

}  // namespace statescope
