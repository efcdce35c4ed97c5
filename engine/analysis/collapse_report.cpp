#include "engine/analysis/collapse_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/analysis/decay_analysis.h"
#include "engine/analysis/parts.h"
#include "engine/analysis/write_analysis.h"
#include "engine/model/host_floats.h"

namespace statescope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double mean_of(std::span<const double> values) {
  return values.empty() ? kNaN : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  if (values.empty()) return kNaN;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What the report needs of a forward pass over a whole sequence, which comes in spans.
class Collected final : public Observer {
 public:
  struct Layer {
    std::vector<float> gate, log_decay;
    std::vector<std::int32_t> selected;
    std::int64_t chosen = 0, decays = 0;  // numbers a token
    std::vector<double> norms;            // of the residual stream, a token each
  };
  std::vector<Layer> layers;

  explicit Collected(Model& model) : layers(static_cast<std::size_t>(model.layers() + 1)), backend_(model.backend()) {}

  void residual(std::int64_t layer, ConstTensor x) override {
    const std::vector<float> rows = host_floats(backend_, x);
    const std::int64_t D = x.row_size();
    for (std::int64_t t = 0; t < x.rows(); ++t)
      layers[static_cast<std::size_t>(layer)].norms.push_back(
          norm(std::span(rows).subspan(static_cast<std::size_t>(t * D), static_cast<std::size_t>(D))));
  }
  void channel(std::int64_t index, std::string_view name, ConstTensor values) override {
    Layer& layer = layers[static_cast<std::size_t>(index)];
    if (name == "partition_gate") append(layer.gate, values);
    if (name == "log_decay") {
      append(layer.log_decay, values);
      layer.decays = values.row_size();
    }
    if (name == "partition_selected") {
      const std::size_t before = layer.selected.size();
      layer.selected.resize(before + static_cast<std::size_t>(values.shape.size()));
      backend_.download(Tensor(layer.selected.data() + before, DType::i32, values.shape), values);
      layer.chosen = values.row_size();
    }
  }

 private:
  void append(std::vector<float>& to, ConstTensor values) {
    const std::vector<float> rows = host_floats(backend_, values);
    to.insert(to.end(), rows.begin(), rows.end());
  }
  Backend& backend_;
};

RoutedTokens routed_tokens(const Collected::Layer& layer, std::int64_t partitions) {
  return {.gate = layer.gate, .selected = layer.selected, .partitions = partitions, .chosen = layer.chosen, .width = layer.chosen};
}

RoutingReport routing_report(const RoutedTokens& routed, LoadThresholds thresholds) {
  RoutingReport report;
  report.balance = balance(routed);
  report.uneven = uneven_loads(report.balance.load, thresholds);
  std::vector<double> share = report.balance.frequency;
  for (double& f : share) f /= static_cast<double>(routed.width);
  report.load_entropy = normalised_entropy(std::span<const double>(share));
  std::vector<double> entropies, margins;
  for (const TokenRouting& token : token_routing(routed)) {
    entropies.push_back(token.entropy);
    margins.push_back(token.margin);
  }
  report.token_entropy = mean_of(entropies);
  report.margin = mean_of(margins);
  return report;
}

/// Half-life and receptive field of a slot. Where a layer has a shared slot its decays come first, those of the partitions behind them.
void add_decay(SlotReport& slot, const Collected::Layer& layer, std::int64_t tokens, bool sparse, bool halves,
               std::span<const std::int32_t> written) {
  const std::int64_t channels = halves ? layer.decays / 2 : layer.decays;
  std::vector<float> rows;
  for (const std::int32_t t : written) {
    const auto row = layer.log_decay.begin() + static_cast<std::ptrdiff_t>(t) * layer.decays;
    rows.insert(rows.end(), row, row + layer.decays);
  }
  SlotDecay decay;
  decay.log_decay = rows;
  decay.stride = layer.decays;
  decay.first = sparse && halves ? channels : 0;
  decay.channels = channels;
  decay.written = written;
  decay.tokens = tokens;
  slot.half_life = median_of(half_life(decay));
  const ReceptiveField field = receptive_field(decay);
  slot.receptive_field = field.mean;
  double censored = 0;
  for (const std::int64_t count : field.censored) censored += static_cast<double>(count);
  slot.censored = censored / static_cast<double>(field.measured * channels);
}

std::vector<SlotReport> slot_reports(const MixerLayout& layout, const Collected::Layer& layer, std::span<const float> state,
                                     const std::optional<RoutingReport>& routing, std::int64_t tokens) {
  const Shape& shape = layout.memory[0].shape;
  const std::vector<double> norms = frobenius_norms(state, shape[2], shape[3]);
  const std::vector<std::int32_t> everything = all_tokens(tokens);
  std::vector<SlotReport> slots;
  for (std::int64_t s = 0; s < shape[0]; ++s) {
    SlotReport slot;
    slot.name = layout.slot_names[static_cast<std::size_t>(s)];
    slot.norm = mean_of(std::span(norms).subspan(static_cast<std::size_t>(s * shape[1]), static_cast<std::size_t>(shape[1])));
    const std::int64_t partition = s - (layout.has_shared_slot ? 1 : 0);
    const bool sparse = routing && partition >= 0;
    if (sparse) slot.load = routing->balance.load[static_cast<std::size_t>(partition)];
    if (!layer.log_decay.empty()) {
      const std::vector<std::int32_t> own = sparse ? tokens_of(routed_tokens(layer, layout.partitions), partition) : everything;
      add_decay(slot, layer, tokens, sparse, layout.has_shared_slot && layout.partitions > 0, own);
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

/// −log softmax(logits[t])[ids[t + 1]] for every token but the last, nat.
std::vector<double> next_token_nll(Model& model, ConstTensor hidden, std::span<const std::int32_t> next) {
  const std::int64_t V = model.vocab();
  Backend& backend = model.backend();
  const Buffer memory = backend.allocate(static_cast<std::size_t>(hidden.rows() * V) * sizeof(float));
  const Tensor device(memory.get(), DType::f32, {hidden.rows(), V});
  model.logits(device, hidden);
  const std::vector<float> logits = host_floats(backend, device);
  std::vector<double> nll;
  for (std::size_t t = 0; t < next.size(); ++t) {
    const std::span<const float> row = std::span(logits).subspan(t * static_cast<std::size_t>(V), static_cast<std::size_t>(V));
    const double largest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float z : row) sum += std::exp(z - largest);
    nll.push_back(largest + std::log(sum) - row[static_cast<std::size_t>(next[t])]);
  }
  return nll;
}

/// Reads the sequence in spans; returns the negative log likelihoods.
std::vector<double> read(Model& model, ModelState& state, std::span<const std::int32_t> ids, Collected& collected) {
  constexpr std::size_t span = 256;
  const auto D = static_cast<std::size_t>(model.hidden());
  const Buffer memory = model.backend().allocate(span * D * sizeof(float));
  std::vector<double> nll;
  for (std::size_t first = 0; first < ids.size(); first += span) {
    const auto part = ids.subspan(first, std::min(span, ids.size() - first));
    const Tensor hidden(memory.get(), DType::f32, {static_cast<std::int64_t>(part.size()), model.hidden()});
    model.forward(state, part, {.prompt_length = static_cast<std::int64_t>(ids.size())}, hidden, &collected);
    const auto next = ids.subspan(first + 1, std::min(part.size(), ids.size() - first - 1));
    const std::vector<double> found = next_token_nll(model, hidden, next);
    nll.insert(nll.end(), found.begin(), found.end());
  }
  return nll;
}

std::vector<double> by_eighth(const std::vector<double>& values) {
  constexpr std::size_t parts = 8, least = 15;
  std::vector<double> means;
  for (std::size_t i = 0; i < parts && values.size() >= least; ++i) {
    const std::size_t begin = i * values.size() / parts, end = (i + 1) * values.size() / parts;
    means.push_back(mean_of(std::span(values).subspan(begin, end - begin)));
  }
  return means;
}

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
          {"effective_rank_of_squares", number(head.stacked.rank_of_squares)}};
}

nlohmann::json to_json(const SlotReport& slot) {
  return {{"name", slot.name},
          {"norm", number(slot.norm)},
          {"load", number(slot.load)},
          {"half_life", number(slot.half_life)},
          {"receptive_field", number(slot.receptive_field)},
          {"censored", number(slot.censored)}};
}

nlohmann::json to_json(const RoutingReport& routing) {
  return {{"load", routing.balance.load},
          {"probability", routing.balance.probability},
          {"loss", number(routing.balance.loss)},
          {"load_entropy", number(routing.load_entropy)},
          {"token_entropy", number(routing.token_entropy)},
          {"margin", number(routing.margin)},
          {"dead", routing.uneven.dead},
          {"overloaded", routing.uneven.overloaded}};
}

nlohmann::json to_json(const LayerReport& layer) {
  nlohmann::json json{{"mixer", layer.mixer}, {"residual_norm", number(layer.residual_norm)}, {"full_rank", layer.full_rank}};
  json["heads"] = nlohmann::json::array();
  for (const StateSimilarity& head : layer.heads) json["heads"].push_back(to_json(head));
  json["slots"] = nlohmann::json::array();
  for (const SlotReport& slot : layer.slots) json["slots"].push_back(to_json(slot));
  json["routing"] = layer.routing ? to_json(*layer.routing) : nlohmann::json(nullptr);
  return json;
}

/// A verdict without its value.
struct JudgedFigure {
  std::string name, healthy, collapsed, why;
  double threshold;
};

/// The smallest of a layer's figure over all sequences and layers that have it; none: no verdict.
template <class Figure>
void judge(std::vector<Verdict>& all, const JudgedFigure& judged, const std::vector<SequenceReport>& sequences, const Figure& figure) {
  Verdict verdict{.name = judged.name, .statement = {}, .threshold = judged.threshold, .why = judged.why};
  bool found = false;
  for (const SequenceReport& sequence : sequences) {
    for (std::size_t l = 0; l < sequence.layers.size(); ++l) {
      const std::optional<double> value = figure(sequence.layers[l]);
      // What is no number is the worst of all, and stays it.
      if (!value || (found && (std::isnan(verdict.value) || *value >= verdict.value))) continue;
      found = true;
      verdict.value = *value;
      verdict.layer = static_cast<std::int64_t>(l);
    }
  }
  verdict.healthy = verdict.value >= verdict.threshold;
  verdict.statement = verdict.healthy ? judged.healthy : judged.collapsed;
  if (found) all.push_back(std::move(verdict));
}

}  // namespace

double LayerReport::relative_rank() const {
  std::vector<double> ranks;
  for (const StateSimilarity& head : heads) ranks.push_back(head.stacked.rank / static_cast<double>(full_rank));
  return mean_of(ranks);
}

SequenceReport inspect_sequence(Model& model, std::span<const std::int32_t> ids, LoadThresholds thresholds) {
  model.check_ids(ids);
  SequenceReport report;
  report.tokens = static_cast<std::int64_t>(ids.size());
  Collected collected(model);
  ModelState state = model.start();
  report.nll_by_eighth = by_eighth(read(model, state, ids, collected));
  Workspace workspace(model.backend());
  const ModelInfo info = model.info();
  for (std::int64_t l = 0; l < model.layers(); ++l) {
    const MixerLayout& layout = model.layout(l);
    const Collected::Layer& seen = collected.layers[static_cast<std::size_t>(l)];
    LayerReport layer;
    layer.mixer = info.layers[static_cast<std::size_t>(l)].mixer;
    layer.residual_norm = mean_of(seen.norms);
    if (!seen.gate.empty()) layer.routing = routing_report(routed_tokens(seen, layout.partitions), thresholds);
    if (!layout.memory.empty()) {
      const Shape& shape = layout.memory[0].shape;
      const std::vector<float> memory = host_floats(model.backend(), state.layers[static_cast<std::size_t>(l)].memory[0]);
      layer.full_rank = std::min(shape[0] * shape[2], shape[3]);
      layer.heads = state_similarity(model.backend(), workspace, memory, shape[0], shape[1], shape[2], shape[3]);
      layer.slots = slot_reports(layout, seen, memory, layer.routing, report.tokens);
    }
    report.layers.push_back(std::move(layer));
  }
  return report;
}

std::vector<Verdict> verdicts(const std::vector<SequenceReport>& sequences) {
  std::vector<Verdict> all;
  const JudgedFigure routing{.name = "routing",
                         .healthy = "tokens are spread over the partitions",
                         .collapsed = "tokens crowd into few partitions",
                         .why = "entropy of the partitions' shares of the tokens over log N, of the worst layer; threshold ours",
                         .threshold = kLeastLoadEntropy};
  const JudgedFigure rank{.name = "rank",
                      .healthy = "states use their directions",
                      .collapsed = "states use few of their directions",
                      .why =
                          "effective rank (Roy and Vetterli 2007) of a head's stacked state over the largest possible, mean over heads, of "
                          "the worst layer; threshold ours",
                      .threshold = kLeastRelativeRank};
  judge(all, routing, sequences, [](const LayerReport& l) { return l.routing ? std::optional(l.routing->load_entropy) : std::nullopt; });
  judge(all, rank, sequences, [](const LayerReport& l) { return l.heads.empty() ? std::nullopt : std::optional(l.relative_rank()); });
  return all;
}

nlohmann::json to_json(const SequenceReport& report) {
  nlohmann::json json{{"tokens", report.tokens}, {"nll_by_eighth", report.nll_by_eighth}, {"layers", nlohmann::json::array()}};
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

nlohmann::json to_json(const Verdict& verdict) {
  return {
      {"name", verdict.name},           {"statement", verdict.statement}, {"healthy", verdict.healthy}, {"value", number(verdict.value)},
      {"threshold", verdict.threshold}, {"layer", verdict.layer},         {"why", verdict.why}};
}

}  // namespace statescope
