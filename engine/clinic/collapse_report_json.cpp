// A report's figures as JSON, and in words how exact they are.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/clinic/collapse_report.h"

namespace statescope {
namespace {

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }
nlohmann::json number(const std::optional<double>& value) { return value ? number(*value) : nlohmann::json(nullptr); }

nlohmann::json to_json(const StateSimilarity& head) {
  return {{"mean_abs_cosine", number(head.rows.mean_abs)},
          {"within_partitions", number(head.rows.within)},
          {"between_partitions", number(head.rows.between)},
          {"min_cosine", number(head.rows.min_cosine)},
          {"zero_rows", head.rows.zero_rows},
          {"entropy", number(head.stacked.entropy)},
          {"effective_rank", number(head.stacked.rank)},
          {"effective_rank_of_squares", number(head.stacked.rank_of_squares)},
          {"spectral_statistic", number(head.statistic)}};
}

nlohmann::json to_json(const SlotReport& slot) {
  return {{"name", slot.name},
          {"norm", number(slot.norm)},
          {"load", number(slot.load)},
          {"half_life", number(slot.half_life)},
          {"decays", slot.half_life ? nlohmann::json(std::isfinite(*slot.half_life)) : nlohmann::json(nullptr)},
          {"receptive_field", number(slot.receptive_field)},
          {"censored", number(slot.censored)},
          {"receptive_field_bound", !slot.receptive_field ? nlohmann::json(nullptr)
                                    : slot.censored > 0.0 ? nlohmann::json(">=")
                                                          : nlohmann::json("=")}};
}

nlohmann::json to_json(const RoutingReport& routing) {
  return {{"load", routing.balance.load},
          {"probability", routing.balance.probability},
          {"loss", number(routing.balance.loss)},
          {"variation", number(routing.balance.variation)},
          {"load_entropy", number(routing.load_entropy)},
          {"token_entropy", number(routing.token_entropy)},
          {"margin", number(routing.margin)},
          {"dead", routing.uneven.dead},
          {"overloaded", routing.uneven.overloaded}};
}

nlohmann::json to_json(const Moments& moments) {
  return {{"tokens", moments.tokens},
          {"norm", number(moments.norm)},
          {"mean", number(moments.mean)},
          {"variance", number(moments.variance)},
          {"largest", number(moments.largest)}};
}

nlohmann::json to_json(const Competition& gates) {
  return {{"entropy_of_mean", number(gates.entropy_of_mean)}, {"mean_entropy", number(gates.mean_entropy)}, {"winner", gates.winner}};
}

nlohmann::json to_json(const Predicting& predicting) {
  return {{"nll", number(predicting.nll)},
          {"unigram", number(predicting.unigram)},
          {"asked", number(predicting.asked)},
          {"entropy", number(predicting.entropy)},
          {"uniform", number(predicting.uniform)}};
}

nlohmann::json to_json(const LayerReport& layer) {
  nlohmann::json json{{"mixer", layer.mixer},
                      {"memory", layer.memory},
                      {"residual_norm", number(layer.residual_norm)},
                      {"outlier", number(layer.outlier)},
                      {"full_rank", layer.full_rank}};
  json["norm_by_eighth"] = nlohmann::json::array();
  for (const double norm : layer.norm_by_eighth) json["norm_by_eighth"].push_back(number(norm));
  json["heads"] = nlohmann::json::array();
  for (std::size_t h = 0; h < layer.heads.size(); ++h) {
    const StateSimilarity& head = layer.heads[h];
    json["heads"].push_back(to_json(head));
    json["heads"].back()["read_effect"] = number(layer.heads_read_effect[h]);
    json["heads"].back()["norm"] = number(layer.heads_norm[h]);
    json["heads"].back()["likeness"] = number(layer.heads_likeness[h]);
    json["heads"].back()["same_reads"] = number(layer.heads_same_reads[h]);
    json["heads"].back()["class"] = name_of(head_class(head.stacked.rank / static_cast<double>(layer.full_rank)));
  }
  json["slots"] = nlohmann::json::array();
  for (const SlotReport& slot : layer.slots) json["slots"].push_back(to_json(slot));
  json["moments"] = nlohmann::json::array();
  for (const Moments& moments : layer.moments) json["moments"].push_back(to_json(moments));
  json["read_effect"] = number(layer.read_effect);
  json["likest_heads"] =
      std::isnan(layer.likest_heads) ? nlohmann::json(nullptr) : nlohmann::json{{"cosine", layer.likest_heads}, {"heads", layer.likest}};
  json["longest_half_life"] = number(layer.longest_half_life);
  json["shortest_half_life"] = number(layer.shortest_half_life);
  json["longest_median"] = number(layer.longest_median);
  json["shortest_median"] = number(layer.shortest_median);
  json["writing"] = layer.writing ? to_json(*layer.writing) : nlohmann::json(nullptr);
  json["reading"] = layer.reading ? to_json(*layer.reading) : nlohmann::json(nullptr);
  json["routing"] = layer.routing ? to_json(*layer.routing) : nlohmann::json(nullptr);
  return json;
}

}  // namespace

nlohmann::json to_json(const SequenceReport& report) {
  nlohmann::json json{{"tokens", report.tokens},
                      {"nll_by_eighth", report.nll_by_eighth},
                      {"perplexity_by_eighth", nlohmann::json::array()},
                      {"predicting", to_json(report.predicting)},
                      {"all_reads_effect", number(report.all_reads_effect)},
                      {"remembrance", nlohmann::json::array()},
                      {"layers", nlohmann::json::array()}};
  for (const Remembrance& left_out : report.remembrance)
    json["remembrance"].push_back({{"dropped", left_out.dropped}, {"change", number(left_out.change)}});
  for (const double nll : report.nll_by_eighth) json["perplexity_by_eighth"].push_back(number(std::exp(nll)));
  for (const LayerReport& layer : report.layers) json["layers"].push_back(to_json(layer));
  return json;
}

nlohmann::json accuracy_json() {
  return {{"cosine", RowSimilarity::accuracy.text()},
          {"entropy", Spectrum::accuracy.text()},
          {"effective_rank", Spectrum::accuracy.text()},
          {"other", LayerReport::accuracy.text()}};
}

std::string accuracy_text() {
  return fmt::format("cosines are {}, spectral entropy and effective rank {}, all else is {}", RowSimilarity::accuracy.text(),
                     Spectrum::accuracy.text(), LayerReport::accuracy.text());
}

}  // namespace statescope
