#include "engine/clinic/ablation.h"

#include <algorithm>
#include <cmath>

#include "engine/analysis/parts.h"
#include "engine/config/host_floats.h"

namespace statescope {
namespace {

bool has_many_words(const Model& model) { return model.vocab() > 65536; }

std::int64_t heads_of(const MixerLayout& layout) { return layout.memory.empty() ? 0 : layout.memory[0].shape[1]; }

/// The last tokens, read again and again from the state before them on. Only blocks from the first changed one on are worked out anew.
class Rereading final : public Observer {
 public:
  Rereading(Model& model, ModelState& state, const Bookmark& before, std::span<const std::int32_t> last, ReadingProgress& progress)
      : model_(model),
        state_(state),
        before_(before),
        progress_(progress),
        options_{.prompt_length = before.position() + std::ssize(last), .rules = {}},
        hidden_(tensor(model.layers())) {
    for (std::int64_t l = 0; l < model.layers(); ++l) entering_.push_back(tensor(l));
    for (const Memory& memory : entering_) entered_.push_back(memory.numbers);
    options_.entered = entered_;
    if (model.has_companion()) {
      companion_ = tensor(model.layers(), model.companion_parts());
      options_.companion = companion_.numbers;
    }
    before.restore(state);
    model.forward(state, last, options_, hidden_.numbers, this);
    state.position = before.position();
    untouched_.emplace(model, hidden_.numbers);
  }

  const Logits& untouched() const { return *untouched_; }
  /// How the predictions change under the rules [layers], of which `first` is the first that changes anything.
  double change(std::span<const Rules> rules, std::int64_t first) {
    before_.restore(state_, first);
    model_.backend().copy(hidden_.numbers, entering(first));
    ForwardOptions options = options_;
    options.rules = rules;
    model_.forward_from(first, state_, options, hidden_.numbers);
    progress_.add(hidden_.numbers.rows());
    return mean_total_variation(model_.backend(), untouched_->rows(), Logits(model_, hidden_.numbers).rows());
  }
  /// What a layer's mixer puts out [n, D] under the rules [layers].
  std::vector<float> output(std::span<const Rules> rules, std::int64_t layer) {
    before_.restore(state_, layer);
    ForwardOptions options = options_;
    options.rules = rules;
    const std::int64_t companion = model_.companion_stream(layer);
    if (model_.reads_companion(layer) && companion < layer) options.companion = entering(companion);
    Output output(model_.backend());
    model_.replay(layer, state_.layers[static_cast<std::size_t>(layer)], entering(layer), state_.position, options, &output);
    return output.numbers;
  }

 private:
  struct Memory {
    Buffer buffer;
    Tensor numbers;  // [n, D]
  };
  class Output final : public ChannelSink {
   public:
    explicit Output(Backend& backend) : backend_(backend) {}
    void channel(std::string_view, ConstTensor values) override { numbers = host_floats(backend_, values); }
    bool wants(std::string_view name) const override { return name == "mixer_out"; }
    bool wants_all() const override { return true; }
    std::vector<float> numbers;

   private:
    Backend& backend_;
  };

  void residual(std::int64_t layer, ConstTensor x) override {
    if (layer < model_.layers()) model_.backend().copy(entering_[static_cast<std::size_t>(layer)].numbers, x);
  }
  void companion(ConstTensor x) override { model_.backend().copy(companion_.numbers, x); }
  void channel(std::int64_t, std::string_view, ConstTensor) override {}
  bool wants(std::string_view) const override { return false; }  // so that it is worked out as it will be under rules

  Tensor entering(std::int64_t layer) const { return entering_[static_cast<std::size_t>(layer)].numbers; }
  /// Where the layer lives.
  Memory tensor(std::int64_t layer, std::int64_t parts = 1) const {
    const Shape shape{options_.prompt_length - before_.position(), parts * model_.hidden()};
    Memory memory{model_.backend(layer).allocate(static_cast<std::size_t>(shape.size()) * sizeof(float)), {}};
    memory.numbers = Tensor(memory.buffer.get(), DType::f32, shape);
    return memory;
  }

  Model& model_;
  ModelState& state_;
  const Bookmark& before_;
  ReadingProgress& progress_;
  ForwardOptions options_;
  Memory hidden_;                 // what leaves the last block
  Memory companion_;              // of a model that has one
  std::vector<Memory> entering_;  // [layers] the residual stream as it enters each block
  std::vector<Tensor> entered_;   // the same
  std::optional<Logits> untouched_;
};

struct Head {
  std::int64_t layer = 0, head = 0;
  double share = 0;  // ‖y − y'‖ / ‖y‖ of its layer's output y and that without it
};

double share(std::span<const float> whole, std::span<const float> without) {
  double change = 0, size = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const double x = whole[i], y = without[i];
    change += (x - y) * (x - y);
    size += x * x;
  }
  return size > 0 ? std::sqrt(change / size) : 0;
}

/// Rules by which nothing is read from one head.
std::vector<Rules> without(const Model& model, const Head& head) {
  std::vector<Rules> rules(static_cast<std::size_t>(model.layers()));
  rules[static_cast<std::size_t>(head.layer)].unread_head = {head.head, heads_of(model.layout(head.layer))};
  return rules;
}

std::size_t heads_tried(const Model& model) {
  std::size_t heads = 0;
  for (std::int64_t l = 0; l < model.layers(); ++l) heads += static_cast<std::size_t>(heads_of(model.layout(l)));
  return std::min(heads, has_many_words(model) ? kHeadsTriedOfMany : kHeadsTried);
}

/// All heads of memories, the one without which its layer changes least first.
std::vector<Head> heads_by_share(const Model& model, Rereading& rereading) {
  std::vector<Head> heads;
  for (std::int64_t l = 0; l < model.layers(); ++l) {
    const std::int64_t count = heads_of(model.layout(l));
    const std::vector<float> whole = count > 0 ? rereading.output({}, l) : std::vector<float>{};
    for (std::int64_t h = 0; h < count; ++h) {
      Head head{.layer = l, .head = h};
      head.share = share(whole, rereading.output(without(model, head), l));
      heads.push_back(head);
    }
  }
  std::ranges::stable_sort(heads, {}, &Head::share);
  return heads;
}

void ablate_layers(Ablation& ablation, const Model& model, Rereading& rereading) {
  std::vector<Rules> all(static_cast<std::size_t>(model.layers()));
  std::optional<std::int64_t> first;
  for (std::int64_t l = 0; l < model.layers(); ++l) {
    ablation.layers.push_back(kNaN);
    if (model.layout(l).memory.empty()) continue;
    if (!first) first = l;
    std::vector<Rules> one(all.size());
    one[static_cast<std::size_t>(l)].unread = all[static_cast<std::size_t>(l)].unread = true;
    ablation.layers.back() = rereading.change(one, l);
  }
  if (first) ablation.all = rereading.change(all, *first);
}

void ablate_heads(Ablation& ablation, const Model& model, Rereading& rereading) {
  for (std::int64_t l = 0; l < model.layers(); ++l) ablation.heads.emplace_back(static_cast<std::size_t>(heads_of(model.layout(l))), kNaN);
  std::vector<Head> heads = heads_by_share(model, rereading);
  heads.resize(heads_tried(model));
  for (const Head& head : heads)
    ablation.heads[static_cast<std::size_t>(head.layer)][static_cast<std::size_t>(head.head)] =
        rereading.change(without(model, head), head.layer);
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

/// How the last kRememberedAt predictions change where the first tokens are left out.
double change_without(Model& model, std::span<const std::int32_t> ids, std::int64_t dropped, const Logits& untouched,
                      ReadingProgress& progress) {
  const auto left = ids.subspan(static_cast<std::size_t>(dropped));
  const auto until = left.first(left.size() - static_cast<std::size_t>(kRememberedAt));
  const std::int64_t length = std::ssize(left);
  ModelState state = model.start();
  read_passes(model, state, until, {.prompt_length = length, .outputs = 0, .rules = {}}, nullptr, progress,
              [](std::size_t, const Tensor&) {});
  double change = 0;
  read_passes(model, state, left.subspan(until.size()), {.prompt_length = length, .rules = {}}, nullptr, progress,
              [&](std::size_t, const Tensor& hidden) {
                const ConstTensor last = untouched.rows().slice(untouched.rows().rows() - kRememberedAt, kRememberedAt);
                change = mean_total_variation(model.backend(), last, Logits(model, hidden).rows());
              });
  return change;
}

}  // namespace

std::int64_t compared_predictions(const Model& model, std::int64_t tokens) {
  constexpr std::int64_t usual = 64;
  return std::clamp<std::int64_t>(tokens / 2, 1, has_many_words(model) ? kRememberedAt : usual);
}

Bookmark::Bookmark(Model& model, const ModelState& state) : backend_(model.backend()), position_(state.position) {
  for (const MixerState& layer : state.layers) {
    const ConstTensor now = layer.everything;
    memory_.push_back(model.backend(std::ssize(blocks_)).allocate(static_cast<std::size_t>(now.shape.size()) * sizeof(float)));
    blocks_.push_back(now ? Tensor(memory_.back().get(), DType::f32, now.shape) : Tensor{});
    if (now) backend_.copy(blocks_.back(), now);
    cached_.push_back(layer.kv.length);
  }
}

void Bookmark::restore(ModelState& state, std::int64_t first) const {
  state.position = position_;
  for (auto l = static_cast<std::size_t>(first); l < blocks_.size(); ++l) {
    state.layers[l].kv.length = cached_[l];
    if (blocks_[l]) backend_.copy(state.layers[l].everything, blocks_[l]);
  }
}

std::int64_t tokens_of_ablation(const Model& model, std::int64_t tokens) {
  const std::int64_t rereadings = model.layers() + 1 + static_cast<std::int64_t>(heads_tried(model));
  std::int64_t read = rereadings * compared_predictions(model, tokens);
  for (const std::int64_t dropped : dropped_tokens(tokens)) read += tokens - dropped;
  return read;
}

Ablation ablate(Model& model, std::span<const std::int32_t> ids, ModelState& state, const Bookmark& before, ReadingProgress& progress) {
  Ablation ablation;
  Rereading rereading(model, state, before, ids.subspan(static_cast<std::size_t>(before.position())), progress);
  ablate_layers(ablation, model, rereading);
  ablate_heads(ablation, model, rereading);
  ablation.entropy = rereading.untouched().mean_entropy();
  for (const std::int64_t dropped : dropped_tokens(std::ssize(ids)))
    ablation.remembrance.push_back({dropped, change_without(model, ids, dropped, rereading.untouched(), progress)});
  return ablation;
}

}  // namespace statescope
