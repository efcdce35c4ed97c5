#include "engine/clinic/layer_report.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <numeric>

#include "engine/analysis/decay_analysis.h"
#include "engine/analysis/head_gate_analysis.h"
#include "engine/analysis/parts.h"
#include "engine/analysis/state_space_parameters.h"
#include "engine/analysis/write_analysis.h"
#include "engine/clinic/means.h"
#include "engine/config/host_floats.h"

namespace statescope {
namespace {

/// Channels of which every row is kept.
constexpr std::array<std::string_view, 6> kRead{"partition_gate", "partition_selected", "head_gate_q", "head_gate_k", "log_decay", "dt"};

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

double row_outlier(std::span<const float> state, std::int64_t rows, std::int64_t columns) {
  std::vector<double> norms = row_norms(state, rows, columns);
  std::erase(norms, 0.0);
  return norms.empty() ? kNaN : *std::max_element(norms.begin(), norms.end()) / median_of(norms);
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

/// Of a state space that is the same for every token: of its eigenvalues, over all channels.
void add_eigenvalues(std::vector<SlotReport>& slots, std::int64_t index, const LayerInfo& info, const Checkpoint& checkpoint) {
  std::vector<double> lives;
  for (const std::complex<double>& held : held_eigenvalues(state_space_parameters(index, info, checkpoint))) {
    if (!std::isnan(held.real())) lives.push_back(half_life(held));
  }
  if (lives.empty()) return;
  for (SlotReport& slot : slots) {
    slot.half_life = median_of(lives);
    slot.longest = std::ranges::max(lives);
    slot.shortest = std::ranges::min(lives);
  }
}

/// `gated`: a gate says how long a median channel remembers; where the weights do, some channels are made to forget at once.
void add_half_lives(LayerReport& layer, bool has_shared_slot, bool gated) {
  const auto widen = [](std::optional<double>& shortest, std::optional<double>& longest, double from, double to) {
    shortest = std::min(shortest.value_or(from), from);
    longest = std::max(longest.value_or(to), to);
  };
  for (std::size_t s = 0; s < layer.slots.size(); ++s) {
    const SlotReport& slot = layer.slots[s];
    if (!slot.half_life || slot.norm == 0) continue;
    widen(layer.shortest_half_life, layer.longest_half_life, *slot.shortest, *slot.longest);
    if (!gated) continue;
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

}  // namespace

namespace {

/// A [H, N, P] of the layer's selective scan; empty: it has none.
std::vector<float> rates_of_scan(Model& model, std::int64_t layer) {
  const Mixer* const mixer = model.mixer(layer);
  if (!mixer) return {};
  for (const program::Operation& operation : mixer->program().operations) {
    if (const auto* scan = std::get_if<program::SelectiveScan>(&operation)) return host_floats(model.backend(layer), scan->A);
  }
  return {};
}

}  // namespace

Collected::Collected(Model& model) : layers(static_cast<std::size_t>(model.layers() + 1)), model_(model) {
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) layers[static_cast<std::size_t>(layer)].rates = rates_of_scan(model, layer);
}

void Collected::residual(std::int64_t layer, ConstTensor x) {
  Backend& backend = model_.backend(layer);
  const Buffer memory = backend.allocate(static_cast<std::size_t>(x.rows()) * sizeof(float));
  const Tensor norms(memory.get(), DType::f32, {x.rows()});
  backend.row_norms(norms, x);
  const std::vector<float> host = host_floats(backend, norms);
  std::vector<double>& all = layers[static_cast<std::size_t>(layer)].norms;
  all.insert(all.end(), host.begin(), host.end());
  has_sizes_ = has_sizes_ || layer + 1 == std::ssize(layers);
}

bool Collected::wants(std::string_view name) const {
  if (name == "k" || name == "v") return !has_sizes_;
  return std::ranges::find(kRead, name) != kRead.end();
}

void Collected::channel(std::int64_t index, std::string_view name, ConstTensor values) {
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
  if (name == "dt" && !layer.rates.empty()) append_scan(layer, index, values);
  if (name == "partition_selected") {
    const std::size_t before = layer.selected.size();
    layer.selected.resize(before + static_cast<std::size_t>(values.shape.size()));
    model_.backend(index).download(Tensor(layer.selected.data() + before, DType::i32, values.shape), values);
    layer.chosen = values.row_size();
  }
}

void Collected::append_scan(Layer& layer, std::int64_t index, ConstTensor dt) {
  const std::vector<float> steps = host_floats(model_.backend(index), dt);
  const Shape& shape = model_.layout(index).memory[0].shape;
  const auto H = static_cast<std::size_t>(shape[1]), N = static_cast<std::size_t>(shape[2]), P = static_cast<std::size_t>(shape[3]);
  layer.decays = shape[1] * shape[2];
  for (std::size_t t = 0; t < steps.size() / (H * P); ++t) {
    for (std::size_t row = 0; row < H * N; ++row) {
      const auto step = steps.begin() + static_cast<std::ptrdiff_t>((t * H + row / N) * P);
      const auto rate = layer.rates.begin() + static_cast<std::ptrdiff_t>(row * P);
      layer.log_decay.push_back(std::inner_product(step, step + shape[3], rate, 0.0F) / static_cast<float>(P));
    }
  }
}

void Collected::append(std::vector<float>& to, ConstTensor values) {
  const std::vector<float> rows = host_floats(model_.backend(), values);
  to.insert(to.end(), rows.begin(), rows.end());
}

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
  if (is_state_space(info)) add_eigenvalues(layer.slots, index, info, model.checkpoint());
  add_half_lives(layer, layout.has_shared_slot, seen.rates.empty() && !is_state_space(info));
  return layer;
}

}  // namespace statescope
