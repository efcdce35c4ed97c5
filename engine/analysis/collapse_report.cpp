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
#include "engine/analysis/softmax.h"
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
  return values.size() % 2 == 1 ? *middle : std::midpoint(*std::max_element(values.begin(), middle), *middle);
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

/// Written to; where more partitions are read, those do not count (spec §11).
RoutedTokens routed_tokens(const Collected::Layer& layer, const MixerLayout& layout) {
  return {.gate = layer.gate, .selected = layer.selected, .partitions = layout.partitions, .chosen = layer.chosen, .width = layout.writers};
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
      const std::vector<std::int32_t> own = sparse ? tokens_of(routed_tokens(layer, layout), partition) : everything;
      add_decay(slot, layer, tokens, sparse, layout.has_shared_slot && layout.partitions > 0, own);
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

/// [n, V] of hidden [n, D]
std::vector<float> host_logits(Model& model, ConstTensor hidden) {
  const Buffer memory = model.backend().allocate(static_cast<std::size_t>(hidden.rows() * model.vocab()) * sizeof(float));
  const Tensor device(memory.get(), DType::f32, {hidden.rows(), model.vocab()});
  model.logits(device, hidden);
  return host_floats(model.backend(), device);
}

/// −log softmax(logits[t])[next[t]], nat.
std::vector<double> next_token_nll(Model& model, ConstTensor hidden, std::span<const std::int32_t> next) {
  const std::vector<float> logits = host_logits(model, hidden);
  const auto V = static_cast<std::size_t>(model.vocab());
  std::vector<double> nll;
  for (std::size_t t = 0; t < next.size(); ++t) nll.push_back(-std::log(Softmax(std::span(logits).subspan(t * V, V)).probability(next[t])));
  return nll;
}

constexpr std::size_t kSpan = 256;  // tokens of a pass
constexpr std::size_t kEighths = 8, kLeastTokens = 16;

/// Passes of at most kSpan tokens; `seen` hears of each, with what left the last block.
template <class Seen>
void read_spans(Model& model, ModelState& state, std::span<const std::int32_t> ids, std::int64_t prompt_length, Observer* observer,
                const Seen& seen) {
  const Buffer memory = model.backend().allocate(std::min(kSpan, ids.size()) * static_cast<std::size_t>(model.hidden()) * sizeof(float));
  for (std::size_t first = 0; first < ids.size(); first += kSpan) {
    const auto part = ids.subspan(first, std::min(kSpan, ids.size() - first));
    const Tensor hidden(memory.get(), DType::f32, {static_cast<std::int64_t>(part.size()), model.hidden()});
    model.forward(state, part, {.prompt_length = prompt_length}, hidden, observer);
    seen(first, hidden);
  }
}

/// ‖S‖_F of a layer's first memory, mean over slots and heads.
double mean_state_norm(Model& model, const MixerState& state) {
  const ConstTensor memory = state.memory[0];
  return mean_of(frobenius_norms(host_floats(model.backend(), memory), memory.shape[2], memory.shape[3]));
}

/// What one reading of the whole sequence tells.
struct WholeReading {
  std::vector<double> nll;                          // of every token but the first
  std::vector<std::vector<double>> norm_by_eighth;  // [layers]
};

WholeReading read(Model& model, ModelState& state, std::span<const std::int32_t> ids, Collected& collected) {
  WholeReading reading;
  reading.norm_by_eighth.resize(static_cast<std::size_t>(model.layers()));
  const std::size_t parts = ids.size() < kLeastTokens ? 1 : kEighths;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = i * ids.size() / parts, end = (i + 1) * ids.size() / parts;
    read_spans(model, state, ids.subspan(begin, end - begin), std::ssize(ids), &collected, [&](std::size_t first, const Tensor& hidden) {
      const std::size_t from = begin + first + 1, count = std::min(static_cast<std::size_t>(hidden.rows()), ids.size() - from);
      const std::vector<double> found = next_token_nll(model, hidden, ids.subspan(from, count));
      reading.nll.insert(reading.nll.end(), found.begin(), found.end());
    });
    for (std::size_t l = 0; l < state.layers.size() && parts > 1; ++l) {
      if (!state.layers[l].memory.empty()) reading.norm_by_eighth[l].push_back(mean_state_norm(model, state.layers[l]));
    }
  }
  return reading;
}

/// The logits [kRememberedAt, V] after the last tokens, where the first ones are left out.
std::vector<float> last_logits(Model& model, std::span<const std::int32_t> ids, std::int64_t dropped) {
  const auto left = ids.subspan(static_cast<std::size_t>(dropped));
  ModelState state = model.start();
  const auto until = left.first(left.size() - static_cast<std::size_t>(kRememberedAt));
  read_spans(model, state, until, std::ssize(left), nullptr, [](std::size_t, const Tensor&) {});
  std::vector<float> logits;
  read_spans(model, state, left.subspan(until.size()), std::ssize(left), nullptr,
             [&](std::size_t, const Tensor& hidden) { logits = host_logits(model, hidden); });
  return logits;
}

/// ½ Σ_v |p_v − p'_v|, mean over rows.
double total_variation(std::span<const float> a, std::span<const float> b, std::size_t vocab) {
  std::vector<double> changes;
  for (std::size_t row = 0; row < a.size(); row += vocab) {
    const Softmax p(a.subspan(row, vocab)), q(b.subspan(row, vocab));
    double sum = 0;
    for (std::int32_t v = 0; v < static_cast<std::int32_t>(vocab); ++v) sum += std::abs(p.probability(v) - q.probability(v));
    changes.push_back(sum / 2);
  }
  return mean_of(changes);
}

std::vector<Remembrance> remembrances(Model& model, std::span<const std::int32_t> ids) {
  std::vector<Remembrance> all;
  const std::int64_t tokens = std::ssize(ids), parts = static_cast<std::int64_t>(kEighths);
  if (tokens < parts * kRememberedAt) return all;
  const std::vector<float> whole = last_logits(model, ids, 0);
  for (std::int64_t i = 1; i < parts; ++i) {
    const std::int64_t dropped = i * tokens / parts;
    all.push_back({dropped, total_variation(whole, last_logits(model, ids, dropped), static_cast<std::size_t>(model.vocab()))});
  }
  return all;
}

double row_outlier(std::span<const float> state, std::int64_t rows, std::int64_t columns) {
  std::vector<double> norms = row_norms(state, rows, columns);
  std::erase(norms, 0.0);
  return norms.empty() ? kNaN : *std::max_element(norms.begin(), norms.end()) / median_of(norms);
}

std::vector<double> by_eighth(const std::vector<double>& values) {
  std::vector<double> means;
  for (std::size_t i = 0; i < kEighths && values.size() + 1 >= kLeastTokens; ++i) {
    const std::size_t begin = i * values.size() / kEighths, end = (i + 1) * values.size() / kEighths;
    means.push_back(mean_of(std::span(values).subspan(begin, end - begin)));
  }
  return means;
}

void for_numbers(Spectrum& spectrum, const auto& each) {
  for (double* x : {&spectrum.entropy, &spectrum.rank, &spectrum.rank_of_squares}) each(*x);
}

void for_numbers(StateSimilarity& head, const auto& each) {
  for (double* x : {&head.rows.mean_abs, &head.rows.within, &head.rows.between, &head.rows.min_cosine, &head.statistic}) each(*x);
  for_numbers(head.stacked, each);
  for (Spectrum& partition : head.partitions) for_numbers(partition, each);
}

void for_numbers(SlotReport& slot, const auto& each) {
  each(slot.norm);
  each(slot.load);
  for (std::optional<double>* x : {&slot.half_life, &slot.receptive_field, &slot.censored}) {
    if (*x) each(**x);
  }
}

void for_numbers(RoutingReport& routing, const auto& each) {
  for (std::vector<double>* all : {&routing.balance.frequency, &routing.balance.probability, &routing.balance.load})
    for (double& x : *all) each(x);
  for (double* x : {&routing.balance.variation, &routing.balance.loss, &routing.load_entropy, &routing.token_entropy, &routing.margin})
    each(*x);
}

/// Every number of a report that is a figure of the model, always in the same order.
void for_numbers(SequenceReport& report, const auto& each) {
  for (Remembrance& left_out : report.remembrance) each(left_out.change);
  for (double& nll : report.nll_by_eighth) each(nll);
  for (LayerReport& layer : report.layers) {
    each(layer.residual_norm);
    each(layer.outlier);
    for (double& norm : layer.norm_by_eighth) each(norm);
    for (StateSimilarity& head : layer.heads) for_numbers(head, each);
    for (SlotReport& slot : layer.slots) for_numbers(slot, each);
    if (layer.routing) for_numbers(*layer.routing, each);
  }
}

std::vector<double> numbers_of(SequenceReport report) {
  std::vector<double> numbers;
  for_numbers(report, [&](double x) { numbers.push_back(x); });
  return numbers;
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
          {"effective_rank_of_squares", number(head.stacked.rank_of_squares)},
          {"spectral_statistic", number(head.statistic)}};
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
          {"variation", number(routing.balance.variation)},
          {"load_entropy", number(routing.load_entropy)},
          {"token_entropy", number(routing.token_entropy)},
          {"margin", number(routing.margin)},
          {"dead", routing.uneven.dead},
          {"overloaded", routing.uneven.overloaded}};
}

nlohmann::json to_json(const LayerReport& layer) {
  nlohmann::json json{{"mixer", layer.mixer},
                      {"residual_norm", number(layer.residual_norm)},
                      {"outlier", number(layer.outlier)},
                      {"full_rank", layer.full_rank}};
  json["norm_by_eighth"] = nlohmann::json::array();
  for (const double norm : layer.norm_by_eighth) json["norm_by_eighth"].push_back(number(norm));
  json["heads"] = nlohmann::json::array();
  for (const StateSimilarity& head : layer.heads) {
    json["heads"].push_back(to_json(head));
    json["heads"].back()["class"] = name_of(head_class(head.stacked.rank / static_cast<double>(layer.full_rank)));
  }
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

HeadClass head_class(double relative_rank) {
  if (relative_rank > kHighRank) return HeadClass::high_rank;
  return relative_rank > kLowRank ? HeadClass::middle : HeadClass::low_rank;
}

std::string_view name_of(HeadClass head) {
  switch (head) {
    case HeadClass::low_rank:
      return "low";
    case HeadClass::middle:
      return "middle";
    case HeadClass::high_rank:
      return "high";
  }
  return "";
}

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
  const WholeReading reading = read(model, state, ids, collected);
  report.nll_by_eighth = by_eighth(reading.nll);
  report.remembrance = remembrances(model, ids);
  Workspace workspace(model.backend());
  const ModelInfo info = model.info();
  for (std::int64_t l = 0; l < model.layers(); ++l) {
    const MixerLayout& layout = model.layout(l);
    const Collected::Layer& seen = collected.layers[static_cast<std::size_t>(l)];
    LayerReport layer;
    layer.mixer = info.layers[static_cast<std::size_t>(l)].mixer;
    layer.residual_norm = mean_of(seen.norms);
    layer.norm_by_eighth = reading.norm_by_eighth[static_cast<std::size_t>(l)];
    layer.outlier = kNaN;
    if (!seen.gate.empty()) layer.routing = routing_report(routed_tokens(seen, layout), thresholds);
    if (!layout.memory.empty()) {
      const Shape& shape = layout.memory[0].shape;
      const std::vector<float> memory = host_floats(model.backend(), state.layers[static_cast<std::size_t>(l)].memory[0]);
      layer.outlier = row_outlier(memory, shape[2], shape[3]);
      layer.full_rank = std::min(shape[0] * shape[2], shape[3]);
      layer.heads = state_similarity(model.backend(), workspace, memory, shape[0], shape[1], shape[2], shape[3]);
      layer.slots = slot_reports(layout, seen, memory, layer.routing, report.tokens);
    }
    report.layers.push_back(std::move(layer));
  }
  return report;
}

std::optional<SequenceReport> mean_report(std::span<const SequenceReport> reports, LoadThresholds thresholds) {
  if (reports.empty()) return {};
  std::vector<std::vector<double>> known(numbers_of(reports.front()).size());  // of each number, over the reports
  double tokens = 0;
  for (const SequenceReport& report : reports) {
    const std::vector<double> numbers = numbers_of(report);
    if (numbers.size() != known.size()) return {};
    tokens += static_cast<double>(report.tokens) / static_cast<double>(reports.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (!std::isnan(numbers[i])) known[i].push_back(numbers[i]);
    }
  }
  SequenceReport mean = reports.front();
  mean.tokens = std::llround(tokens);
  auto next = known.begin();
  for_numbers(mean, [&](double& x) { x = mean_of(*next++); });
  for (LayerReport& layer : mean.layers) {
    if (layer.routing) layer.routing->uneven = uneven_loads(layer.routing->balance.load, thresholds);
  }
  return mean;
}

std::vector<Verdict> verdicts(const std::vector<SequenceReport>& sequences) {
  std::vector<Verdict> all;
  const JudgedFigure routing{.name = "routing",
                             .healthy = "tokens are spread over the partitions",
                             .collapsed = "tokens crowd into few partitions",
                             .why =
                                 "entropy of the partitions' shares of the tokens over log N, of the worst layer; threshold ours: shipped "
                                 "models that were trained with a balance loss have 0.72 and more, the one without 0.31 and less",
                             .threshold = kLeastLoadEntropy};
  const JudgedFigure rank{
      .name = "rank",
      .healthy = "states use their directions",
      .collapsed = "states use few of their directions",
      .why =
          "effective rank (Roy and Vetterli 2007) of a head's stacked state over the largest possible, mean over heads, of "
          "the worst layer; threshold ours: shipped models have 0.08 and more",
      .threshold = kLeastRelativeRank};
  judge(all, routing, sequences, [](const LayerReport& l) { return l.routing ? std::optional(l.routing->load_entropy) : std::nullopt; });
  judge(all, rank, sequences, [](const LayerReport& l) { return l.heads.empty() ? std::nullopt : std::optional(l.relative_rank()); });
  return all;
}

nlohmann::json to_json(const SequenceReport& report) {
  nlohmann::json json{{"tokens", report.tokens},
                      {"nll_by_eighth", report.nll_by_eighth},
                      {"perplexity_by_eighth", nlohmann::json::array()},
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

nlohmann::json to_json(const Verdict& verdict) {
  return {
      {"name", verdict.name},           {"statement", verdict.statement}, {"healthy", verdict.healthy}, {"value", number(verdict.value)},
      {"threshold", verdict.threshold}, {"layer", verdict.layer},         {"why", verdict.why}};
}

}  // namespace statescope
