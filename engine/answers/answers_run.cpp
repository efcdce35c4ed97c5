// What the model is made of, and what it predicts along the run.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>

#include "engine/analysis/softmax.h"
#include "engine/answers/answers.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostPredicted = 512, kTokensAtOnce = 16;
constexpr std::size_t kTop = 5;

/// i of "model.layers.i.attn.…"; −1: of no layer.
std::int64_t layer_of_tensor(std::string_view name) {
  constexpr std::string_view before = "layers.";
  const std::size_t at = name.find(before);
  std::int64_t layer = -1;
  if (at != name.npos) std::from_chars(name.data() + at + before.size(), name.data() + name.size(), layer);
  return layer;
}

void add(ModelMap::LayerRow& row, const StoredTensor& tensor) {
  row.tensors.push_back({tensor.name, tensor.shape, std::string(name_of(tensor.dtype)), tensor.bytes()});
  row.parameters += tensor.size();
  row.weight_bytes += tensor.bytes();
}

std::vector<std::string> lines_of(const program::Program& program) {
  std::vector<std::string> lines;
  std::istringstream text(program::to_string(program));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

std::int64_t state_bytes(const MixerLayout& layout) {
  std::int64_t numbers = 0;
  for (const MixerLayout::Memory& memory : layout.memory) numbers += memory.shape.size();
  for (const Shape& cache : layout.conv_caches) numbers += cache.size();
  return numbers * kFloat;
}

/// `next`: the id that follows in the run; −1: none.
void add(Predictions& all, const Softmax& softmax, std::int32_t next, std::span<const std::int32_t> ids, const Evidence& evidence) {
  std::vector<Prediction>& top = all.top.emplace_back();
  for (const std::int32_t id : softmax.top(kTop)) top.push_back({id, evidence.text(id), static_cast<float>(softmax.probability(id))});
  all.next_probability.push_back(next < 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(softmax.probability(next)));
  all.next_rank.push_back(next < 0 ? -1 : static_cast<std::int32_t>(softmax.rank(next)));
  all.entropy.push_back(static_cast<float>(softmax.entropy()));
  for (const std::int32_t id : ids) {
    all.logits.push_back(softmax.logit(id));
    all.probabilities.push_back(static_cast<float>(softmax.probability(id)));
  }
}

}  // namespace

ModelMap answer(const ModelMapQuestion&, Evidence& evidence) {
  const Model& model = evidence.model();
  ModelMap map;
  map.layers.resize(static_cast<std::size_t>(model.layers()));
  for (std::int64_t l = 0; l < model.layers(); ++l) {
    const MixerLayout& layout = model.layout(l);
    ModelMap::LayerRow& row = map.layers[static_cast<std::size_t>(l)];
    row.state_bytes = state_bytes(layout);
    if (const Mixer* mixer = model.mixer(l)) row.program = lines_of(mixer->program());
    row.state_bytes_per_token = (layout.kv_heads * (layout.key_dim + layout.value_dim) + layout.index_dim) * kFloat;
  }
  for (const StoredTensor& tensor : evidence.checkpoint().tensors) {
    const std::int64_t layer = layer_of_tensor(tensor.name);
    add(layer >= 0 && layer < model.layers() ? map.layers[static_cast<std::size_t>(layer)] : map.rest, tensor);
  }
  return map;
}

Predictions answer(const PredictionsQuestion& question, Evidence& evidence) {
  const RunInfo& run = evidence.info();
  const std::int64_t vocab = evidence.model().vocab();
  if (std::ranges::any_of(question.ids, [=](std::int32_t id) { return id < 0 || id >= vocab; })) throw Error("there is no such token id");
  Predictions all;
  all.from = std::clamp<std::int64_t>(question.from, 0, evidence.tokens());
  all.to = std::clamp(question.to, all.from, std::min(evidence.tokens(), all.from + kMostPredicted));
  for (std::int64_t from = all.from; from < all.to; from += kTokensAtOnce) {
    const std::int64_t to = std::min(from + kTokensAtOnce, all.to);
    const std::vector<float> logits = evidence.logits(from, to);
    for (std::int64_t t = from; t < to; ++t) {
      const auto row = std::span(logits).subspan(static_cast<std::size_t>((t - from) * vocab), static_cast<std::size_t>(vocab));
      const auto next = static_cast<std::size_t>(t + 1);
      add(all, Softmax(row), next < run.tokens.size() ? run.tokens[next].id : -1, question.ids, evidence);
    }
    evidence.tell(static_cast<double>(to - all.from) / static_cast<double>(all.to - all.from));
  }
  return all;
}

}  // namespace statescope
