#include "engine/analysis/ablation.h"

#include <algorithm>

#include "engine/analysis/predictions.h"
#include "engine/model/host_floats.h"

namespace statescope {
namespace {

/// How many of the last predictions are compared: fewer where each is a row of very many numbers.
std::int64_t compared_predictions(const Model& model, std::int64_t tokens) {
  constexpr std::int64_t usual = 64, many = 65536;
  return std::clamp<std::int64_t>(tokens / 2, 1, model.vocab() > many ? kRememberedAt : usual);
}

/// A model's state at a token, to come back to.
class Bookmark {
 public:
  Bookmark(Model& model, const ModelState& state) : backend_(model.backend()), position_(state.position) {
    for (const MixerState& layer : state.layers) {
      blocks_.push_back(layer.everything ? host_floats(backend_, layer.everything) : std::vector<float>{});
      cached_.push_back(layer.kv.length);
    }
  }
  void restore(ModelState& state) const {
    state.position = position_;
    for (std::size_t l = 0; l < blocks_.size(); ++l) {
      MixerState& layer = state.layers[l];
      layer.kv.length = cached_[l];
      if (layer.everything) backend_.upload(layer.everything, ConstTensor(blocks_[l].data(), DType::f32, layer.everything.shape));
    }
  }

 private:
  Backend& backend_;
  std::int64_t position_;
  std::vector<std::vector<float>> blocks_;  // [layers] MixerState::everything
  std::vector<std::int64_t> cached_;        // [layers] tokens in the softmax cache
};

/// The logits [n, V] of the tokens that come next.
std::vector<float> read_on(Model& model, ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options) {
  std::vector<float> logits;
  read_passes(model, state, ids, options, nullptr, [&](std::size_t, const Tensor& hidden) {
    const std::vector<float> rows = host_logits(model, hidden);
    logits.insert(logits.end(), rows.begin(), rows.end());
  });
  return logits;
}

void read_quietly(Model& model, ModelState& state, std::span<const std::int32_t> ids, std::int64_t prompt_length) {
  read_passes(model, state, ids, {.prompt_length = prompt_length, .outputs = 0, .rules = {}}, nullptr, [](std::size_t, const Tensor&) {});
}

/// The last kRememberedAt logits, where the first tokens are left out.
std::vector<float> logits_without(Model& model, std::span<const std::int32_t> ids, std::int64_t dropped) {
  const auto left = ids.subspan(static_cast<std::size_t>(dropped));
  const auto until = left.first(left.size() - static_cast<std::size_t>(kRememberedAt));
  ModelState state = model.start();
  read_quietly(model, state, until, std::ssize(left));
  return read_on(model, state, left.subspan(until.size()), {.prompt_length = std::ssize(left), .rules = {}});
}

std::vector<Remembrance> remembrances(Model& model, std::span<const std::int32_t> ids, std::span<const float> whole) {
  std::vector<Remembrance> all;
  const std::int64_t tokens = std::ssize(ids), parts = 8;
  if (tokens < parts * kRememberedAt) return all;
  for (std::int64_t i = 1; i < parts; ++i) {
    if (tokens > kRemembersInEighths && i != 4 && i != 6 && i != 7) continue;
    const std::int64_t dropped = i * tokens / parts;
    all.push_back({dropped, total_variation(whole, logits_without(model, ids, dropped), static_cast<std::size_t>(model.vocab()))});
  }
  return all;
}

}  // namespace

Ablation ablate(Model& model, std::span<const std::int32_t> ids) {
  const std::int64_t tokens = std::ssize(ids), compared = compared_predictions(model, tokens);
  const auto last = ids.last(static_cast<std::size_t>(compared));
  const auto vocab = static_cast<std::size_t>(model.vocab());
  ModelState state = model.start();
  read_quietly(model, state, ids.first(static_cast<std::size_t>(tokens - compared)), tokens);
  const Bookmark before(model, state);
  const std::vector<float> whole = read_on(model, state, last, {.prompt_length = tokens, .rules = {}});
  const auto change = [&](std::span<const Rules> rules) {
    before.restore(state);
    return total_variation(whole, read_on(model, state, last, {.prompt_length = tokens, .rules = rules}), vocab);
  };

  Ablation ablation;
  std::vector<Rules> all(static_cast<std::size_t>(model.layers()));
  for (std::int64_t l = 0; l < model.layers(); ++l) {
    const bool has_memory = !model.layout(l).memory.empty();
    std::vector<Rules> one(all.size());
    one[static_cast<std::size_t>(l)].unread = all[static_cast<std::size_t>(l)].unread = has_memory;
    ablation.layers.push_back(has_memory ? change(one) : std::numeric_limits<double>::quiet_NaN());
  }
  if (std::ranges::any_of(all, &Rules::unread)) ablation.all = change(all);
  ablation.entropy = mean_entropy(whole, vocab);
  const std::size_t remembered = std::min(whole.size(), static_cast<std::size_t>(kRememberedAt) * vocab);
  ablation.remembrance = remembrances(model, ids, std::span(whole).last(remembered));
  return ablation;
}

}  // namespace statescope
