// The sheets (sheet.h) of each view's data: none of data that has only a message. They point into the data. A view's hits name them by
// their places here.
#pragma once

#include <string>
#include <vector>

#include "views/plot.h"
#include "views/sheet.h"

namespace statescope {

/// Each place has its token's number and text, and leads there.
Axis axis_of_tokens(const TokenAxis& tokens);
Axis axis_of_tokens(std::string name, const TokenAxis& tokens);
/// Heads from 0 on, each of which is chosen by its place.
Axis axis_of_heads(std::int64_t heads, std::int64_t chosen);

struct AttentionData;
struct BranchesData;
struct ChoicesData;
struct CrossSimilarityData;
struct DecayData;
struct DeltaRuleData;
struct DifferenceData;
struct ExpertsData;
struct HeadGatesData;
struct ModelMapData;
struct NeedleData;
struct NeedleGridData;
struct PredictionsBesideData;
struct PredictionsData;
struct RememberedData;
struct RoutingData;
struct SimilarityData;
struct SpectrumData;
struct StateData;
struct TimelineData;
struct TokenStripData;
struct WritesData;

struct AttentionSheets {
  static constexpr int map = 0, row = 1, before = 2;
};
struct BranchesSheets {
  static constexpr int tokens = 0, layers = 1;
};
struct ChoicesSheets {
  static constexpr int map = 0, chosen = 1;
};
struct DecaySheets {
  static constexpr int cells = 0, curve = 1, ranks = 2;  // cells and curve: Δ and α, or α and Δ
};
struct DeltaRuleSheets {
  static constexpr int prediction = 0, angle = 1, change = 2, gates = 3;
};
struct ExpertsSheets {
  static constexpr int map = 0, chosen = 1, loads = 2;
};
struct HeadGatesSheets {
  static constexpr int contest = 0, over_time = 1, flow = 2, sharpness = 3;
};
struct ModelMapSheets {
  static constexpr int parts = 0, tensors = 1, program = 2;
};
struct NeedleSheets {
  static constexpr int curves = 0, parts = 1, causes = 2, falls = 3;
};
struct NeedleGridSheets {
  static constexpr int cells = 0, failures = 1;
};
struct PredictionsSheets {
  static constexpr int bars = 0, tokens = 1, right = 2;
};
struct RememberedSheets {
  static constexpr int tokens = 0;
};
struct RoutingSheets {
  static constexpr int tokens = 0, partitions = 1;
};
struct SpectrumSheets {
  static constexpr int heads = 0, partitions = 1, series = 2;
};
struct StateSheets {
  static constexpr int cells = 0, changes = 1, slots = 2, history = 3;
};
struct WritesSheets {
  static constexpr int ages = 0, tokens = 1;
};

std::vector<Sheet> sheets(const AttentionData& data);
std::vector<Sheet> sheets(const BranchesData& data);
std::vector<Sheet> sheets(const ChoicesData& data);
std::vector<Sheet> sheets(const CrossSimilarityData& data);
std::vector<Sheet> sheets(const DecayData& data);
std::vector<Sheet> sheets(const DeltaRuleData& data);
std::vector<Sheet> sheets(const DifferenceData& data);
std::vector<Sheet> sheets(const ExpertsData& data);
std::vector<Sheet> sheets(const HeadGatesData& data);
std::vector<Sheet> sheets(const ModelMapData& data);
std::vector<Sheet> sheets(const NeedleData& data);
std::vector<Sheet> sheets(const NeedleGridData& data);
std::vector<Sheet> sheets(const PredictionsBesideData& data);
std::vector<Sheet> sheets(const PredictionsData& data);
std::vector<Sheet> sheets(const RememberedData& data);
std::vector<Sheet> sheets(const RoutingData& data);
std::vector<Sheet> sheets(const SimilarityData& data);
std::vector<Sheet> sheets(const SpectrumData& data);
std::vector<Sheet> sheets(const StateData& data);
std::vector<Sheet> sheets(const TimelineData& data);
std::vector<Sheet> sheets(const TokenStripData& data);
std::vector<Sheet> sheets(const WritesData& data);

}  // namespace statescope
