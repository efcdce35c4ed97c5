#include "app/jobs/layer_details.h"

#include <fmt/format.h>

#include "engine/place_words.h"

namespace statescope {
namespace {

std::string blocks_text(std::int64_t size) { return size == 1 ? "tokens" : fmt::format("blocks of {} tokens", size); }

/// What the attention of a layer sees, and what a short convolution does.
class Sight {
 public:
  Sight(const program::Program& program, const MixerLayout& layout) : program_(program), layout_(layout) {
    for (const program::Operation& operation : program.operations) std::visit(*this, operation);
  }

  std::string text;

  template <class Operation>
  void operator()(const Operation&) {}
  void operator()(const program::Attend& op) {
    if (op.pattern.block_size > 0) return add_pattern(op.pattern);
    if (op.window > 0) add(fmt::format("window of {} tokens", op.window));
    if (!op.chosen && op.block_size > 0) add(fmt::format("top-{} {}", op.topk, blocks_text(op.block_size)));
  }
  void operator()(const program::CompressedAttend& op) {
    add(fmt::format("top-{} {}", program_.width(op.selected), blocks_text(op.block_size)));
  }
  void operator()(const program::ChooseTokens& op) { add(fmt::format("top-{} tokens", program_.width(op.selected))); }
  void operator()(const program::LatentAttend& op) {
    const std::int64_t latent = op.W_k.shape[1];
    add(fmt::format("latent width {}", latent));
    if (layout_.key_dim > latent) add(fmt::format("shared key part {}", layout_.key_dim - latent));
  }
  void operator()(const program::Convolution& op) {
    if (layout_.memory.empty() && layout_.kv_heads == 0) add(fmt::format("kernel of {} tokens", op.weight.row_size()));
  }

 private:
  void add(const std::string& more) { text += (text.empty() ? "" : ", ") + more; }
  /// Of blocks, or of tokens one by one.
  void add_pattern(const FixedPattern& pattern) {
    add(pattern.block_size == 1 ? fmt::format("window of {} tokens", pattern.window)
                                : fmt::format("window of {} {}", pattern.window, blocks_text(pattern.block_size)));
    if (pattern.dilation) add("dilated");
    if (pattern.leading > 0) add(pattern.leading == 1 ? "the first" : fmt::format("the first {}", pattern.leading));
    if (pattern.stride > 0) add(fmt::format("one of every {}", pattern.stride));
    if (pattern.globals > 0) add(fmt::format("{} global", pattern.globals));
    if (pattern.listed_rows > 0) add("random ones");
  }

  const program::Program& program_;
  const MixerLayout& layout_;
};

/// Which other layers' weights, keys or values it has.
std::string shared(const Model& model, std::int64_t layer) {
  const std::vector<LayerPlan>& plans = model.plan().layers;
  const LayerPlan& plan = plans[static_cast<std::size_t>(layer)];
  if (plan.companion_layer >= 0) return fmt::format("keys and values of layer {}", plan.companion_layer);
  const auto owner = [](const LayerPlan& one) { return one.config.has("owner") ? one.config.text("owner") : ""; };
  if (owner(plan).empty()) return "";
  std::vector<std::int64_t> users;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (owner(plans[i]) == owner(plan)) users.push_back(static_cast<std::int64_t>(i));
  }
  return users.size() > 1 ? fmt::format("attention and MLP shared by {}", counted("layer", users)) : "";
}

}  // namespace

std::vector<std::string> layer_details(const Model& model) {
  std::vector<std::string> all;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    std::string text;
    if (const Mixer* mixer = model.mixer(layer)) text = Sight(mixer->program(), model.layout(layer)).text;
    const std::string with = shared(model, layer);
    all.push_back(text + (text.empty() || with.empty() ? "" : ", ") + with);
  }
  return all;
}

}  // namespace statescope
