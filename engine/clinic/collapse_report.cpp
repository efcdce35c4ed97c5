#include "engine/clinic/collapse_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "engine/analysis/decay_analysis.h"
#include "engine/analysis/head_gate_analysis.h"
#include "engine/analysis/parts.h"
#include "engine/analysis/predictions.h"
#include "engine/analysis/write_analysis.h"
#include "engine/config/host_floats.h"

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
    std::vector<float> gate, log_decay, head_gate_q, head_gate_k;
    std::vector<std::int32_t> selected;
    std::int64_t chosen = 0, decays = 0, keys = 0, values = 0, gates = 0;  // numbers a token
    std::vector<double> norms;                                             // of the residual stream, a token each
  };
  std::vector<Layer> layers;

  explicit Collected(Model& model) : layers(static_cast<std::size_t>(model.layers() + 1)), backend_(model.backend()) {}

  void residual(std::int64_t layer, ConstTensor x) override {
    const Buffer memory = backend_.allocate(static_cast<std::size_t>(x.rows()) * sizeof(float));
    const Tensor norms(memory.get(), DType::f32, {x.rows()});
    backend_.row_norms(norms, x);
    const std::vector<float> host = host_floats(backend_, norms);
    std::vector<double>& all = layers[static_cast<std::size_t>(layer)].norms;
    all.insert(all.end(), host.begin(), host.end());
    has_sizes_ = has_sizes_ || layer + 1 == std::ssize(layers);
  }
  bool wants(std::string_view name) const override {
    if (name == "k" || name == "v") return !has_sizes_;
    return std::ranges::find(kRead, name) != kRead.end();
  }
  void channel(std::int64_t index, std::string_view name, ConstTensor values) override {
    Layer& layer = layers[static_cast<std::size_t>(index)];
    if (name == "partition_gate") append(layer.gate, values);
    if (name == "head_gate_q") append(layer.head_gate_q, values);
    if (name == "head_gate_k") append(layer.head_gate_k, values);
    if (name == "head_gate_k") layer.gates = values.row_size();
    if (name == "k") layer.keys = values.row_size();
    if (name == "v") layer.values = values.row_size();
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
  static constexpr std::array<std::string_view, 5> kRead{"partition_gate", "partition_selected", "head_gate_q", "head_gate_k", "log_decay"};

  void append(std::vector<float>& to, ConstTensor values) {
    const std::vector<float> rows = host_floats(backend_, values);
    to.insert(to.end(), rows.begin(), rows.end());
  }
  Backend& backend_;
  bool has_sizes_ = false;  // of k and v, which the first pass tells
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

/// Which of a token's decays are a slot's.
struct DecayChannels {
  std::int64_t first = 0, count = 0;
};

/// As Layout::decays_by_slot says: of each slot, or the shared slot's first and those of all partitions behind them, or all.
DecayChannels decay_channels(const MixerLayout& layout, std::int64_t slot, std::int64_t decays) {
  const bool halves = layout.has_shared_slot && layout.partitions > 0;
  const std::int64_t parts = layout.decays_by_slot ? std::ssize(layout.slot_names) : halves ? 2 : 1;
  const std::int64_t count = decays / parts, part = layout.decays_by_slot ? slot : halves && slot > 0 ? 1 : 0;
  return {part * count, count};
}

/// Half-life and receptive field of a slot.
void add_decay(SlotReport& slot, const Collected::Layer& layer, std::int64_t tokens, DecayChannels channels,
               std::span<const std::int32_t> written) {
  std::vector<float> rows;
  for (const std::int32_t t : written) {
    const auto row = layer.log_decay.begin() + static_cast<std::ptrdiff_t>(t) * layer.decays;
    rows.insert(rows.end(), row, row + layer.decays);
  }
  SlotDecay decay;
  decay.log_decay = rows;
  decay.stride = layer.decays;
  decay.first = channels.first;
  decay.channels = channels.count;
  decay.written = written;
  decay.tokens = tokens;
  const std::vector<double> lives = half_life(decay);
  slot.half_life = median_of(lives);
  slot.longest = std::ranges::max(lives);
  slot.shortest = std::ranges::min(lives);
  const ReceptiveField field = receptive_field(decay);
  slot.receptive_field = field.mean;
  double censored = 0;
  for (const std::int64_t count : field.censored) censored += static_cast<double>(count);
  slot.censored = censored / static_cast<double>(field.measured * channels.count);
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
      add_decay(slot, layer, tokens, decay_channels(layout, s, layer.decays), own);
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

constexpr std::size_t kEighths = 8, kLeastTokens = 16;

/// Of a layer's first memory.
Moments moments_of(Model& model, const ModelState& state, std::size_t layer) {
  const ConstTensor memory = state.layers[layer].memory[0];
  const std::vector<float> numbers = host_floats(model.backend(), memory);
  Moments moments{.tokens = state.position, .norm = mean_of(frobenius_norms(numbers, memory.shape[2], memory.shape[3]))};
  double squares = 0;
  for (const double x : numbers) {
    moments.mean += x / static_cast<double>(numbers.size());
    squares += x * x / static_cast<double>(numbers.size());
    moments.largest = std::max(moments.largest, std::abs(x));
  }
  moments.variance = squares - moments.mean * moments.mean;
  return moments;
}

/// What one reading of the whole sequence tells.
struct WholeReading {
  std::vector<double> nll;                    // of every token but the first
  std::vector<double> asked;                  // of the tokens that were asked for
  std::vector<std::vector<Moments>> moments;  // [layers] after each eighth
  std::optional<Bookmark> before_ablation;
};

/// Reads all of it; with a bookmark on the way where the ablation begins.
WholeReading read(Model& model, ModelState& state, std::span<const std::int32_t> ids, std::span<const Target> asked, Collected& collected,
                  ReadingProgress& progress) {
  WholeReading reading;
  reading.moments.resize(static_cast<std::size_t>(model.layers()));
  const ForwardOptions options{.prompt_length = std::ssize(ids), .rules = {}};
  const auto read_until = [&](std::size_t end) {
    const auto begin = static_cast<std::size_t>(state.position);
    read_passes(model, state, ids.subspan(begin, end - begin), options, &collected, progress, [&](std::size_t first, const Tensor& hidden) {
      const Logits logits(model, hidden);
      const std::size_t from = begin + first, rows = static_cast<std::size_t>(hidden.rows());
      const std::vector<double> nll = logits.nll(ids.subspan(from + 1, std::min(rows, ids.size() - from - 1)));
      reading.nll.insert(reading.nll.end(), nll.begin(), nll.end());
      for (const Target& target : asked) {
        const std::size_t row = static_cast<std::size_t>(target.position) - from;  // of another pass: wraps to a large number
        if (row < rows) reading.asked.push_back(logits.nll(static_cast<std::int64_t>(row), target.id));
      }
    });
  };
  const std::size_t parts = ids.size() < kLeastTokens ? 1 : kEighths;
  const std::size_t bookmark = ids.size() - static_cast<std::size_t>(compared_predictions(model, std::ssize(ids)));
  for (std::size_t i = 1; i <= parts; ++i) {
    const std::size_t end = i * ids.size() / parts;
    if (!reading.before_ablation && bookmark <= end) {
      read_until(bookmark);
      reading.before_ablation.emplace(model, state);
    }
    read_until(end);
    for (std::size_t l = 0; l < state.layers.size() && parts > 1; ++l) {
      if (!state.layers[l].memory.empty()) reading.moments[l].push_back(moments_of(model, state, l));
    }
  }
  return reading;
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

/// −Σ f log f of the frequencies f of ids, nat
double unigram_entropy(std::span<const std::int32_t> ids) {
  std::map<std::int32_t, double> frequency;
  for (const std::int32_t id : ids) frequency[id] += 1 / static_cast<double>(ids.size());
  double sum = 0;
  for (const auto& [id, f] : frequency) sum -= f * std::log(f);
  return sum;
}

Predicting predicting(const Model& model, std::span<const std::int32_t> ids, const WholeReading& reading) {
  return {.nll = mean_of(reading.nll),
          .unigram = unigram_entropy(ids),
          .asked = mean_of(reading.asked),
          .entropy = kNaN,
          .uniform = std::log(static_cast<double>(model.vocab()))};
}

Competition competition(std::span<const float> gates, std::int64_t heads) {
  Competition found;
  std::vector<double> mean(static_cast<std::size_t>(heads)), entropies;
  for (const HeadGate& gate : head_gates(gates, heads)) entropies.push_back(gate.entropy);
  for (std::size_t i = 0; i < gates.size(); ++i)
    mean[i % mean.size()] += static_cast<double>(gates[i]) / static_cast<double>(entropies.size());
  found.mean_entropy = mean_of(entropies);
  found.entropy_of_mean = normalised_entropy(std::span<const double>(mean));
  found.winner = std::ranges::max_element(mean) - mean.begin();
  return found;
}

void add_half_lives(LayerReport& layer, bool has_shared_slot) {
  const auto widen = [](std::optional<double>& shortest, std::optional<double>& longest, double from, double to) {
    shortest = std::min(shortest.value_or(from), from);
    longest = std::max(longest.value_or(to), to);
  };
  for (std::size_t s = 0; s < layer.slots.size(); ++s) {
    const SlotReport& slot = layer.slots[s];
    if (!slot.half_life || slot.norm == 0) continue;
    widen(layer.shortest_half_life, layer.longest_half_life, *slot.shortest, *slot.longest);
    const bool is_partition = layer.routing && (s > 0 || !has_shared_slot);
    const double written = is_partition ? layer.routing->balance.frequency[s - (has_shared_slot ? 1 : 0)] : 1;
    widen(layer.shortest_median, layer.longest_median, *slot.half_life * written, *slot.half_life * written);
  }
}

/// Whether two heads' keys and values are the same by design: grouped heads.
bool share_by_design(std::int64_t a, std::int64_t b, const Shape& shape, const Collected::Layer& seen) {
  const std::int64_t heads = shape[1];
  const auto same = [&](std::int64_t numbers, std::int64_t size) {
    const std::int64_t own = numbers / size;  // heads that have some of their own
    return own > 0 && own < heads && a * own / heads == b * own / heads;
  };
  return same(seen.keys, shape[2]) && same(seen.values, shape[3]);
}

/// Σ over slots and rows of SᵀS of each head [H][V · V]; memory [P, H, K, V].
std::vector<std::vector<double>> gram_matrices(std::span<const float> memory, const Shape& shape) {
  const auto H = static_cast<std::size_t>(shape[1]), K = static_cast<std::size_t>(shape[2]), V = static_cast<std::size_t>(shape[3]);
  std::vector<std::vector<double>> grams(H, std::vector<double>(V * V));
  for (std::size_t row = 0; row < memory.size() / V; ++row) {
    const auto values = memory.subspan(row * V, V);
    std::vector<double>& gram = grams[row / K % H];
    for (std::size_t i = 0; i < V; ++i) {
      for (std::size_t j = 0; j < V; ++j) gram[i * V + j] += static_cast<double>(values[i]) * static_cast<double>(values[j]);
    }
  }
  return grams;
}

/// Norms of the heads' states, and how alike they are; memory [P, H, K, V].
void add_heads(LayerReport& layer, std::span<const float> memory, const Shape& shape, const Collected::Layer& seen) {
  const std::int64_t H = shape[1];
  const auto size = static_cast<std::size_t>(shape[2] * shape[3]);
  const auto product = [&](std::int64_t a, std::int64_t b) {  // Σ S_a S_b over all slots
    double sum = 0;
    for (std::int64_t p = 0; p < shape[0]; ++p) {
      const auto of = [&](std::int64_t head) { return memory.subspan(static_cast<std::size_t>(p * H + head) * size, size); };
      sum = std::inner_product(of(a).begin(), of(a).end(), of(b).begin(), sum, std::plus<>(), [](double x, double y) { return x * y; });
    }
    return sum;
  };
  layer.heads_likeness.assign(static_cast<std::size_t>(H), kNaN);
  layer.heads_same_reads.assign(static_cast<std::size_t>(H), kNaN);
  const auto keep_larger = [](std::vector<double>& of_heads, std::int64_t head, double cosine) {
    double& most = of_heads[static_cast<std::size_t>(head)];
    most = std::fmax(most, cosine);
  };
  const std::vector<std::vector<double>> grams = gram_matrices(memory, shape);
  const auto gram_product = [&](std::int64_t a, std::int64_t b) {
    const std::vector<double>&of_a = grams[static_cast<std::size_t>(a)], &of_b = grams[static_cast<std::size_t>(b)];
    return std::inner_product(of_a.begin(), of_a.end(), of_b.begin(), 0.0);
  };
  for (std::int64_t a = 0; a < H; ++a) layer.heads_norm.push_back(std::sqrt(product(a, a)));
  for (std::int64_t a = 0; a < H; ++a) {
    for (std::int64_t b = a + 1; b < H; ++b) {
      const double norms = layer.heads_norm[static_cast<std::size_t>(a)] * layer.heads_norm[static_cast<std::size_t>(b)];
      const double cosine = std::abs(product(a, b)) / norms;
      if (std::isnan(cosine) || share_by_design(a, b, shape, seen)) continue;
      const double reads = gram_product(a, b) / std::sqrt(gram_product(a, a) * gram_product(b, b));
      for (const std::int64_t head : {a, b}) {
        keep_larger(layer.heads_likeness, head, cosine);
        keep_larger(layer.heads_same_reads, head, reads);
      }
      if (cosine <= layer.likest_heads) continue;
      layer.likest_heads = cosine;
      layer.likest = {a, b};
    }
  }
}

/// Of a layer's states after the last token, and of what was seen of it on the way; without what is taken away of it.
LayerReport layer_report(Model& model, const ModelState& state, std::int64_t index, const Collected::Layer& seen, std::int64_t tokens) {
  const MixerLayout& layout = model.layout(index);
  const LayerInfo info = model.info().layers[static_cast<std::size_t>(index)];
  LayerReport layer{.mixer = info.mixer, .memory = info.memory, .residual_norm = mean_of(seen.norms)};
  layer.read_effect = layer.outlier = layer.likest_heads = kNaN;
  if (seen.gates > 0) {
    layer.writing = competition(seen.head_gate_k, seen.gates);
    layer.reading = competition(seen.head_gate_q, seen.gates);
  }
  if (!seen.gate.empty()) layer.routing = routing_report(routed_tokens(seen, layout), kLoadThresholds);
  if (layout.memory.empty()) return layer;
  Workspace workspace(model.backend());
  const Shape& shape = layout.memory[0].shape;
  const std::vector<float> memory = host_floats(model.backend(), state.layers[static_cast<std::size_t>(index)].memory[0]);
  layer.outlier = row_outlier(memory, shape[2], shape[3]);
  layer.full_rank = std::min(shape[0] * shape[2], shape[3]);
  layer.heads = state_similarity(model.backend(), workspace, memory, shape[0], shape[1], shape[2], shape[3]);
  layer.heads_read_effect.assign(layer.heads.size(), kNaN);
  layer.slots = slot_reports(layout, seen, memory, layer.routing, tokens);
  add_heads(layer, memory, shape, seen);
  add_half_lives(layer, layout.has_shared_slot);
  return layer;
}

void add(SequenceReport& report, const Ablation& ablation) {
  report.remembrance = ablation.remembrance;
  report.predicting.entropy = ablation.entropy;
  report.all_reads_effect = ablation.all;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    report.layers[l].read_effect = ablation.layers[l];
    report.layers[l].heads_read_effect = ablation.heads[l];
  }
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
  Predicting& predicting = report.predicting;
  for (double* x : {&predicting.nll, &predicting.unigram, &predicting.asked, &predicting.entropy, &report.all_reads_effect}) each(*x);
  for (LayerReport& layer : report.layers) {
    each(layer.residual_norm);
    for (double* x : {&layer.outlier, &layer.read_effect, &layer.likest_heads}) each(*x);
    for (std::vector<double>* of_heads : {&layer.heads_read_effect, &layer.heads_norm, &layer.heads_likeness, &layer.heads_same_reads})
      for (double& x : *of_heads) each(x);
    for (double& norm : layer.norm_by_eighth) each(norm);
    for (Moments& moments : layer.moments) {
      for (double* x : {&moments.norm, &moments.mean, &moments.variance, &moments.largest}) each(*x);
    }
    for (std::optional<double>* x : {&layer.longest_half_life, &layer.shortest_half_life, &layer.longest_median, &layer.shortest_median}) {
      if (*x) each(**x);
    }
    for (std::optional<Competition>* gates : {&layer.writing, &layer.reading}) {
      if (*gates) each((*gates)->entropy_of_mean), each((*gates)->mean_entropy);
    }
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

SequenceReport inspect_sequence(Model& model, std::span<const std::int32_t> ids, std::span<const Target> asked,
                                const ReadingProgress::Tell& tell) {
  model.check_ids(ids);
  SequenceReport report;
  report.tokens = static_cast<std::int64_t>(ids.size());
  ReadingProgress progress(tell, report.tokens + tokens_of_ablation(model, report.tokens));
  Collected collected(model);
  ModelState state = model.start();
  const WholeReading reading = read(model, state, ids, asked, collected, progress);
  report.nll_by_eighth = by_eighth(reading.nll);
  report.predicting = predicting(model, ids, reading);
  for (std::size_t l = 0; l < state.layers.size(); ++l) {
    report.layers.push_back(layer_report(model, state, static_cast<std::int64_t>(l), collected.layers[l], report.tokens));
    report.layers.back().moments = reading.moments[l];
    for (const Moments& moments : reading.moments[l]) report.layers.back().norm_by_eighth.push_back(moments.norm);
  }
  report.all_reads_effect = kNaN;
  if (ids.size() > 1) add(report, ablate(model, ids, state, *reading.before_ablation, progress));
  return report;
}

std::optional<SequenceReport> mean_report(std::span<const SequenceReport> reports) {
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
    if (layer.routing) layer.routing->uneven = uneven_loads(layer.routing->balance.load, kLoadThresholds);
  }
  return mean;
}

}  // namespace statescope
