#include "engine/model/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <list>
#include <utility>

#include "engine/error.h"
#include "engine/model/channel_mix.h"
#include "kernels/checked/checked_device.h"

namespace statescope {
namespace {

/// Hands a mixer's channels on with the number of its layer.
class LayerSink final : public ChannelSink {
 public:
  LayerSink(Observer& observer, std::int64_t layer) : observer_(observer), layer_(layer) {}
  void channel(std::string_view name, ConstTensor values) override { observer_.channel(layer_, name, values); }
  bool wants(std::string_view name) const override { return observer_.wants(name); }
  bool wants_all() const override { return observer_.wants_all(); }

 private:
  Observer& observer_;
  std::int64_t layer_;
};

/// Takes the values of layer 0 on their way to others.
class FirstValues final : public ChannelSink {
 public:
  FirstValues(Backend& backend, Tensor to, ChannelSink* next) : backend_(backend), to_(to), next_(next) {}
  void channel(std::string_view name, ConstTensor values) override {
    if (name == "v" && to_.row_size() > values.row_size()) backend_.fill(to_, 0);
    if (name == "v") backend_.copy(to_.columns(0, {values.row_size()}), values.with_row({values.row_size()}));
    if (next_ && next_->wants(name)) next_->channel(name, values);
  }
  bool wants(std::string_view name) const override { return name == "v" || (next_ && next_->wants(name)); }
  bool wants_all() const override { return next_ && next_->wants_all(); }

 private:
  Backend& backend_;
  Tensor to_;
  ChannelSink* next_;
};

}  // namespace

Stack::Stack(const Plan& plan, Weights& weights) {
  embeddings = weights.matrix(plan.embeddings, {plan.vocab, plan.hidden});
  const bool shared_head = plan.tied && !weights.has(plan.head);
  const auto norm_named = [&](const std::string& name) -> Block::Norm {
    if (name.empty()) return {};
    Block::Norm loaded{.weight = weights.floats(name, {plan.hidden}), .bias = {}};
    if (plan.norm_biases) loaded.bias = weights.floats(name.substr(0, name.rfind('.')) + ".bias", {plan.hidden});
    return loaded;
  };
  embedding_norm = norm_named(plan.embedding_norm);
  norm = norm_named(plan.norm);
  head = shared_head ? embeddings : weights.matrix(plan.head, {plan.vocab, plan.hidden});
  if (!plan.memory_tokens.empty()) memory_tokens = weights.floats(plan.memory_tokens, {plan.memory_token_count, plan.hidden});
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const LayerPlan& layer = plan.layers[i];
    weights.enter(static_cast<std::int64_t>(i));
    Block block;
    if (!layer.mixer.empty()) {
      block.mixer_norms = {norm_named(layer.mixer_norm), norm_named(layer.mixer_post_norm), layer.mixer_residual};
      block.mixer = mixer_row(layer.mixer).build({layer.config, WeightScope(weights, layer.mixer_prefix), static_cast<std::int64_t>(i)});
      block.layout = block.mixer->layout();
      block.reads_companion = layer.reads_companion;
      block.companion_layer = layer.companion_layer;
      if (layer.companion_layer >= 0) blocks[static_cast<std::size_t>(layer.companion_layer)].is_companion = true;
    }
    const WeightScope ffn(weights, layer.ffn_prefix);
    if (layer.ffn == FfnKind::mlp) block.ffn = make_mlp(ffn, plan.hidden, layer.mlp);
    if (layer.ffn == FfnKind::experts) block.ffn = make_experts(ffn, plan.hidden, *layer.experts);
    if (layer.ffn == FfnKind::channel_mix) block.ffn = make_channel_mix(ffn, plan.hidden, layer.channel_mix);
    if (block.ffn) block.ffn_norms = {norm_named(layer.ffn_norm), norm_named(layer.ffn_post_norm), layer.ffn_residual};
    if (block.ffn) std::ranges::copy(block.ffn->cache_shapes(), std::back_inserter(block.layout.conv_caches));
    blocks.push_back(std::move(block));
  }
}

std::vector<TensorSpec> model_tensors(const Config& config) {
  DescribedWeights weights;
  const Stack described(plan_model(config), weights);  // only asks
  return weights.specs;
}

namespace {

void describe_memory(LayerInfo& layer, const MixerLayout& layout) {
  const MixerRow& row = mixer_row(layer.mixer);
  layer.memory = layout.memory_kind.empty() ? row.memory : layout.memory_kind;
  layer.recurrence = layout.recurrence.empty() ? row.recurrence : layout.recurrence;
}

}  // namespace

ModelInfo Model::info() const {
  ModelInfo info;
  info.name = checkpoint().name;
  info.family = plan_.family;
  info.device = backend_->description();
  if (places_.size() > 1 || loaded_->placement.first_on_host >= 0) info.placement = loaded_->placement.reasons;
  info.parameters = checkpoint().parameters();
  info.weight_bytes = checkpoint().bytes();
  info.trained_length = trained_length(checkpoint());
  info.notes = notes();
  for (std::size_t i = 0; i < stack_.blocks.size(); ++i) {
    const MixerLayout& layout = stack_.blocks[i].layout;
    LayerInfo layer;
    layer.mixer = plan_.layers[i].mixer.empty() ? (plan_.layers[i].ffn == FfnKind::experts ? "experts" : "mlp") : plan_.layers[i].mixer;
    layer.memory = "no memory";
    if (mixer(static_cast<std::int64_t>(i)) != nullptr) describe_memory(layer, layout);
    layer.row_name = layout.row_name;
    layer.column_name = layout.column_name;
    layer.slot_names = layout.slot_names;
    layer.partitions = layout.partitions;
    layer.has_shared_slot = layout.has_shared_slot;
    layer.head_gates = layout.head_gates;
    if (const auto& ffn = stack_.blocks[i].ffn) layer.experts = ffn->experts(), layer.chosen_experts = ffn->chosen_experts();
    layer.attention_heads = layout.attention_heads;
    if (Devices* const devices = backend_->devices()) layer.device = devices->all()[place_of(static_cast<std::int64_t>(i)).number].name;
    if (!layout.memory.empty()) {
      layer.heads = layout.memory[0].shape[1];
      layer.rows = layout.memory[0].shape[2];
      layer.columns = layout.memory[0].shape[3];
    }
    info.layers.push_back(std::move(layer));
  }
  if (std::ranges::any_of(info.layers, &LayerInfo::head_gates)) info.family = "sla-" + info.family;
  return info;
}

std::int64_t Model::bytes_per_token() const {
  const auto table = stack_.embeddings.shape.size() * static_cast<std::int64_t>(size_of(stack_.embeddings.dtype));
  return stack_.head.data == stack_.embeddings.data ? checkpoint().bytes() : checkpoint().bytes() - table;
}

ModelState Model::start() {
  ModelState state;
  for (std::int64_t layer = 0; layer < layers(); ++layer) state.layers.push_back(start(layer));
  return state;
}

MixerState Model::start(std::int64_t layer) {
  MixerState state = make_state(layout(layer), backend(layer));
  if (plan_.memory_token_count == 0) return state;
  if (begun_.empty()) read_memory_tokens();
  const MixerState& begun = begun_[static_cast<std::size_t>(layer)];
  if (state.everything) backend(layer).copy(state.everything, begun.everything);
  state.kv = begun.kv;
  return state;
}

/// Through all blocks, at the positions before that of the first token; what they put out is not wanted.
void Model::read_memory_tokens() {
  const Workspace::Mark mark(home().workspace);
  ModelState state;
  for (std::int64_t layer = 0; layer < layers(); ++layer) state.layers.push_back(make_state(layout(layer), backend(layer)));
  const Tensor x = home().workspace.tensor(stack_.memory_tokens.shape);
  home().backend.copy(x, stack_.memory_tokens);
  const std::vector<Tensor> entered = room_for_entered(x.shape, 0, {});
  go(0, {.rules = {}, .entered = entered}, x, x.rows(), [&](const Stretch& stretch, std::int64_t, const ForwardOptions& here, Tensor rows) {
    blocks(stretch, state, -x.rows(), here, rows, nullptr);
  });
  // Full, so that what is appended goes elsewhere.
  for (MixerState& layer : state.layers) layer.kv = layer.kv.first(layer.kv.length);
  begun_ = std::move(state.layers);
}

/// Room for what enters the blocks from `first` on that later ones read of; what entered those before it is known.
std::vector<Tensor> Model::room_for_entered(const Shape& rows, std::int64_t first, std::span<const Tensor> known) {
  std::vector<Tensor> entered(stack_.blocks.size());
  for (std::size_t i = 0; i < entered.size(); ++i) {
    if (!stack_.blocks[i].is_companion) continue;
    const auto layer = static_cast<std::int64_t>(i);
    entered[i] = layer < first && !known.empty() ? known[i] : place_of(layer).workspace.tensor(rows);
  }
  return entered;
}

/// What a block reads beside its own input.
Tensor Model::companion_of(const Stack::Block& block, const ForwardOptions& options) {
  if (!block.reads_companion || block.companion_layer < 0) return options.companion;
  return options.entered.empty() ? Tensor{} : options.entered[static_cast<std::size_t>(block.companion_layer)];
}

void Model::norm(Place& at, Tensor y, ConstTensor x, const Stack::Block::Norm& by, float eps) {
  plan_.layer_norms ? at.backend.layer_norm(y, x, by.weight, by.bias, plan_.hidden, eps)
                    : at.backend.rms_norm(y, x, by.weight, eps, plan_.norm_offset);
}

/// [x | companion]
ConstTensor Model::beside(Place& at, ConstTensor x, ConstTensor companion) {
  if (!companion) throw std::logic_error("this layer reads a companion, and none is given");
  const Tensor both = at.workspace.tensor({x.rows(), plan_.hidden + companion.row_size()}, x.dtype);
  at.backend.copy(both.columns(0, {plan_.hidden}), x);
  at.backend.copy(both.columns(plan_.hidden, {companion.row_size()}), companion);
  return both;
}

void Model::check_ids(std::span<const std::int32_t> ids) const {
  for (std::int32_t id : ids) {
    if (id < 0 || id >= plan_.vocab) throw Error(fmt::format("token id {} is outside the vocabulary of {}", id, plan_.vocab));
  }
}

namespace {

Steps::Key step_key(std::int64_t first, const ModelState& state, const ForwardOptions& options, ConstTensor x, const Observer* observer) {
  Steps::Key key{first, {x.data, options.logits.data}, {options.rules.begin(), options.rules.end()}, observer != nullptr};
  for (const MixerState& layer : state.layers) key.memory.push_back(layer.everything.data);
  return key;
}

}  // namespace

void Model::forward(ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options, Tensor hidden,
                    Observer* observer) {
  check_ids(ids);
  if (ids.empty()) return;
  if (plan_.most_tokens > 0 && state.position + std::ssize(ids) > plan_.most_tokens)
    throw Error(fmt::format("a {} model reads at most {} tokens", plan_.family, plan_.most_tokens));
  // x = embedding_factor · embeddings[token]
  home().backend.embed(hidden, stack_.embeddings, ids.data());
  multiply(home().backend, home().workspace, hidden, plan_.embedding_factor);
  if (stack_.embedding_norm) norm(home(), hidden, hidden, stack_.embedding_norm, plan_.norm_eps);
  std::list<Workspace::Mark> marks;
  for (const std::unique_ptr<Place>& place : places_) marks.emplace_back(place->workspace);
  ForwardOptions whole = options;
  if (has_companion()) {
    Place& maker = plan_.companion == Companion::first_values ? place_of(0) : home();
    whole.companion = maker.workspace.tensor({hidden.rows(), companion_parts() * plan_.hidden});
  }
  if (plan_.companion == Companion::embedding) {
    home().backend.copy(whole.companion, hidden);
    if (observer) observer->companion(whole.companion);
  }
  const std::vector<Tensor> entered = room_for_entered(hidden.shape, 0, {});
  whole.entered = entered;
  const auto tokens = static_cast<std::int64_t>(ids.size());
  const std::int64_t unwanted = observer ? 0 : tokens - std::min(options.outputs.value_or(tokens), tokens);
  const bool is_step = tokens == 1 && options.chunk_size == 0 && !(observer && observer->wants_all());
  const auto work = [&](const Stretch& stretch, std::int64_t begin, const ForwardOptions& here, Tensor x) {
    const std::int64_t unwanted_here = std::clamp<std::int64_t>(unwanted - begin, 0, x.rows()), position = state.position + begin;
    const auto read = [&](Observer* shown) {
      if (unwanted_here > 1 && stretch.first < layers() && stretch.end == layers()) {  // one is not worth a pass of its own
        blocks_without_outputs(stretch, state, position, here, x, unwanted_here);
      } else {
        blocks(stretch, state, position, here, x, shown);
      }
      if (stretch.place != Devices::home || stretch.end < layers()) return;
      if (shown) shown->residual(layers(), x);
      const bool is_last = begin + x.rows() == tokens;
      if (options.logits && is_last) logits(options.logits, hidden.slice(tokens - options.logits.rows(), options.logits.rows()));
    };
    if (!is_step || !places_[stretch.place]->steps.run(step_key(stretch.first, state, here, x, observer), observer, read)) read(observer);
  };
  go(0, whole, hidden, piece_of(tokens, options, observer), work);
  state.position += tokens;
  require_whole_files();
}

void Model::forward_from(std::int64_t layer, ModelState& state, const ForwardOptions& options, Tensor x) {
  std::list<Workspace::Mark> marks;
  for (const std::unique_ptr<Place>& place : places_) marks.emplace_back(place->workspace);
  const std::vector<Tensor> entered = room_for_entered(x.shape, layer, options.entered);
  ForwardOptions rest = options;
  rest.entered = entered;
  // What layer 0 makes it makes anew.
  if (layer == 0 && plan_.companion == Companion::first_values)
    rest.companion = place_of(0).workspace.tensor({x.rows(), companion_parts() * plan_.hidden});
  go(layer, rest, x, x.rows(), [&](const Stretch& stretch, std::int64_t begin, const ForwardOptions& here, Tensor rows) {
    blocks(stretch, state, state.position + begin, here, rows, nullptr);
  });
}

/// x [T, D] through the last blocks; of the first rows, whose outputs nobody wants, the last block reads what its memory needs
void Model::blocks_without_outputs(const Stretch& stretch, ModelState& state, std::int64_t position, const ForwardOptions& options,
                                   Tensor x, std::int64_t unwanted) {
  const std::int64_t last = layers() - 1, wanted = x.rows() - unwanted;
  blocks({stretch.place, stretch.first, last}, state, position, options, x, nullptr);
  ForwardOptions first = options, rest = options;
  const Tensor companion = companion_of(stack_.blocks.back(), options);
  std::vector<Tensor> entered(options.entered.begin(), options.entered.end());
  if (companion) {
    first.companion = companion.slice(0, unwanted);
    if (options.companion) rest.companion = options.companion.slice(unwanted, wanted);
    for (Tensor& rows : entered) {
      if (rows) rows = rows.slice(unwanted, wanted);
    }
    rest.entered = entered;
  }
  replay(last, state.layers.back(), x.slice(0, unwanted), position, first);
  if (wanted == 0) return;
  if (wanted == 1) rest.chunk_size = 0;
  blocks({stretch.place, last, layers()}, state, position + unwanted, rest, x.slice(unwanted, wanted), nullptr);
}

/// Whether a part with these norms may add to the residual stream what it puts out, as it is.
bool Model::adds_itself(const Stack::Block::Norms& norms) const {
  return norms.before && !norms.after && !plan_.layer_norms && !norms.residual.keeps_norm && norms.residual.part_factor == 1;
}

/// y, what a part has put out, becomes what it adds to the residual stream: factor · y, or factor · RMSNorm(y).
void Model::finish_part(Place& at, Tensor y, const Stack::Block::Norms& norms, float eps) {
  if (norms.after) norm(at, y, y, norms.after, eps);
  multiply(at.backend, at.workspace, y, norms.residual.part_factor);
}

/// x [T, D], of the tokens from `position` on, through the blocks of a stretch
void Model::blocks(const Stretch& stretch, ModelState& state, std::int64_t position, const ForwardOptions& options, Tensor x,
                   Observer* observer) {
  Place& at = *places_[stretch.place];
  Backend& backend = at.backend;
  const Workspace::Mark mark(at.workspace);
  const std::int64_t tokens = x.rows();
  const DType type = backend.activation_type(tokens);
  const Tensor normed = at.workspace.tensor(x.shape, type), y = at.workspace.tensor(x.shape, type);
  const bool folds = backend.folds_norms(tokens);
  bool added = true;  // what the part before has written is in x
  // x += y where it is not there yet;   what a part reads: x, or n = RMSNorm(x), or x itself and, in its context, the norm that it applies
  // `show`: once x is whole
  const auto enter = [&](Context& ctx, const Stack::Block::Norms& norms, float eps, bool part_folds, const auto& show) -> ConstTensor {
    const bool folded = folds && part_folds && adds_itself(norms);
    ctx.norm = {};
    ctx.residual = {};
    if (folded) {
      if (!added) backend.add(x, x, y);
      ctx.norm = {.group = plan_.hidden, .weight = norms.before.weight, .eps = eps, .offset = plan_.norm_offset, .gate = {}};
      ctx.residual = x;
    } else if (norms.residual.keeps_norm) {
      // x = norm_factor · n
      if (!added) backend.add(x, x, y);
      show();
      norm(at, x, x, norms.before, eps);
      backend.copy(normed, x);
      multiply(backend, at.workspace, x, norms.residual.norm_factor);
    } else if (norms.before && !added && !plan_.layer_norms) {
      backend.add_rms_norm(normed, x, y, norms.before.weight, eps, plan_.norm_offset);
    } else {
      if (!added) backend.add(x, x, y);
      norms.before ? norm(at, normed, x, norms.before, eps) : backend.copy(normed, x);
    }
    if (!norms.residual.keeps_norm) show();
    added = folded;
    return folded ? ConstTensor(x) : normed;
  };
  const auto through = [&](std::int64_t layer) {
    const Workspace::Mark of_block(at.workspace);
    const auto i = static_cast<std::size_t>(layer);
    const Stack::Block& block = stack_.blocks[i];
    Context ctx(backend, at.workspace, tokens);
    ctx.position = plan_.memory_token_count + position;
    ctx.prompt_length = plan_.memory_token_count + options.prompt_length;
    ctx.chunk_size = options.chunk_size;
    if (!options.rules.empty()) ctx.rules = &options.rules[i];
    std::optional<LayerSink> sink;
    bool entered = false;
    const auto show_layer = [&] {
      if (std::exchange(entered, true)) return;
      if (block.is_companion) backend.copy(options.entered[i], x);
      if (!observer) return;
      observer->residual(layer, x);
      ctx.channels = &sink.emplace(*observer, layer);
    };
    if (block.mixer) {
      // x += mixer_i( RMSNorm(x; attn_norm_i) )
      ConstTensor mixer_in = enter(ctx, block.mixer_norms, plan_.norm_eps, block.mixer->folds_norm(), show_layer);
      if (block.reads_companion) mixer_in = beside(at, mixer_in, companion_of(block, options));
      FirstValues first_values(backend, options.companion, ctx.channels);
      const bool makes_companion = layer == 0 && plan_.companion == Companion::first_values;
      if (makes_companion) ctx.channels = &first_values;
      block.mixer->forward(ctx, mixer_in, state.layers[i], y);
      if (makes_companion) ctx.channels = sink ? &*sink : nullptr;
      if (makes_companion && observer) observer->companion(options.companion);
      finish_part(at, y, block.mixer_norms, plan_.norm_eps);
      ctx.emit("mixer_out", y);
    }
    if (!block.ffn) return;
    // x += mlp_i( RMSNorm(x; mlp_norm_i) )
    const ConstTensor ffn_in = enter(ctx, block.ffn_norms, plan_.ffn_norm_eps, block.ffn->folds_norm(), show_layer);
    block.ffn->forward(ctx, ffn_in, y, block.ffn_caches(state.layers[i]));
    finish_part(at, y, block.ffn_norms, plan_.ffn_norm_eps);
  };
  for (std::int64_t layer = stretch.first; layer < stretch.end; ++layer) in_layer(layer, [&] { through(layer); });
  if (!added) backend.add(x, x, y);
}

void Model::logits(Tensor logits, ConstTensor hidden) {
  const Workspace::Mark mark(home().workspace);
  const InputNorm last{.group = plan_.hidden, .weight = stack_.norm.weight, .eps = plan_.norm_eps, .offset = plan_.norm_offset, .gate = {}};
  if (home().backend.folds_norms(hidden.rows()) && !plan_.layer_norms) {
    const Projection head{hidden, last, stack_.head, {}, logits, {}, {}};
    home().backend.project(std::span(&head, 1), home().workspace);
  } else {
    Tensor normed = home().workspace.tensor({hidden.rows(), plan_.hidden}, home().backend.activation_type(hidden.rows()));
    norm(home(), normed, hidden, stack_.norm, plan_.norm_eps);
    home().backend.linear(logits, normed, stack_.head);
  }
  multiply(home().backend, home().workspace, logits, plan_.logits_factor);
  require_whole_files();
}

/// A device with memory of its own has copies of the weights.
void Model::require_whole_files() const {
  if (std::ranges::any_of(places_, [](const auto& place) { return !place->backend.has_own_memory(); })) checkpoint().require_whole_files();
}

}  // namespace statescope
