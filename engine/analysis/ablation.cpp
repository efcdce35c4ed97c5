#include "engine/analysis/ablation.h"

#include <algorithm>

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
std::vector<float> read_on(Model& model, ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options,
                           ReadingProgress& progress) {
  std::vector<float> logits;
  read_passes(model, state, ids, options, nullptr, progress, [&](std::size_t, const Tensor& hidden) {
    const std::vector<float> rows = host_logits(model, hidden);
    logits.insert(logits.end(), rows.begin(), rows.end());
  });
  return logits;
}

void read_quietly(Model& model, ModelState& state, std::span<const std::int32_t> ids, std::int64_t prompt_length,
                  ReadingProgress& progress) {
  read_passes(model, state, ids, {.prompt_length = prompt_length, .outputs = 0, .rules = {}}, nullptr, progress,
              [](std::size_t, const Tensor&) {});
}

/// The last kRememberedAt logits, where the first tokens are left out.
std::vector<float> logits_without(Model& model, std::span<const std::int32_t> ids, std::int64_t dropped, ReadingProgress& progress) {
  const auto left = ids.subspan(static_cast<std::size_t>(dropped));
  const auto until = left.first(left.size() - static_cast<std::size_t>(kRememberedAt));
  ModelState state = model.start();
  read_quietly(model, state, until, std::ssize(left), progress);
  return read_on(model, state, left.subspan(until.size()), {.prompt_length = std::ssize(left), .rules = {}}, progress);
}

/// How many of the first tokens are left out, one after the other.
std::vector<std::int64_t> dropped_tokens(std::int64_t tokens) {
  constexpr std::int64_t parts = 8;
  if (tokens < parts * kRememberedAt) return {};
  std::vector<std::int64_t> dropped;
  for (std::int64_t i = 1; i < parts; ++i) {
    if (tokens <= kRemembersInEighths || i == 4 || i >= 6) dropped.push_back(i * tokens / parts);
  }
  return dropped;
}

}  // namespace

std::int64_t tokens_of_ablation(const Model& model, std::int64_t tokens) {
  const std::int64_t compared = compared_predictions(model, tokens);
  std::int64_t read = tokens + (model.layers() + 1) * compared;
  for (const std::int64_t dropped : dropped_tokens(tokens)) read += tokens - dropped;
  return read;
}

Ablation ablate(Model& model, std::span<const std::int32_t> ids, ReadingProgress& progress) {
  const std::int64_t tokens = std::ssize(ids), compared = compared_predictions(model, tokens);
  const auto last = ids.last(static_cast<std::size_t>(compared));
  const auto vocab = static_cast<std::size_t>(model.vocab());
  ModelState state = model.start();
  read_quietly(model, state, ids.first(static_cast<std::size_t>(tokens - compared)), tokens, progress);
  const Bookmark before(model, state);
  const std::vector<float> whole = read_on(model, state, last, {.prompt_length = tokens, .rules = {}}, progress);
  const auto change = [&](std::span<const Rules> rules) {
    before.restore(state);
    return total_variation(whole, read_on(model, state, last, {.prompt_length = tokens, .rules = rules}, progress), vocab);
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
  for (const std::int64_t dropped : dropped_tokens(tokens)) {
    const auto remembering = std::span(whole).last(static_cast<std::size_t>(kRememberedAt) * vocab);
    ablation.remembrance.push_back({dropped, total_variation(remembering, logits_without(model, ids, dropped, progress), vocab)});
  }
  return ablation;
}

}  // namespace statescope
