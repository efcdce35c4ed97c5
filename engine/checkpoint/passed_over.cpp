#include "engine/checkpoint/passed_over.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "engine/checkpoint/file.h"

namespace statescope {
namespace {

constexpr std::array<std::string_view, 16> kTowers{"visual",           "vision_tower",          "vision_model",         "vision_encoder",
                                                   "vision_projector", "multi_modal_projector", "multimodal_projector", "mm_projector",
                                                   "image_newline",    "audio_tower",           "audio_model",          "audio_encoder",
                                                   "sound_encoder",    "sound_projection",      "vision_embedder",      "mlp1"};
/// Tables and masks that older classes saved with their weights.
constexpr std::array<std::string_view, 9> kBuffers{".inv_freq",   ".masked_bias", ".num_batches_tracked", ".position_ids",    ".cos_cached",
                                                   ".sin_cached", ".causal_mask", ".attention_mask",      ".rotary_emb.scale"};
constexpr std::array<std::string_view, 9> kActivationScales{".input_scale", ".activation_scale", ".output_scale",
                                                            ".k_scale",     ".v_scale",          ".q_scale",
                                                            ".kv_scale",    ".weight_shape",     ".input_global_scale"};

template <std::size_t n>
bool ends_as(std::string_view name, const std::array<std::string_view, n>& ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

std::string_view passed_over_as(std::string_view tensor_name) {
  if (ends_as(tensor_name, kBuffers)) return "buffers";
  // A tower is a part of the whole model, under whatever wrappers: it stands before the layers.
  constexpr int depth = 4;
  std::string_view rest = tensor_name;
  for (int i = 0; i < depth; ++i) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    if (part == "layers" || part.size() == rest.size()) break;
    if (part == "mtp") return "heads that predict several tokens at once";
    if (std::ranges::find(kTowers, part) != kTowers.end()) return "a vision or sound tower";
    rest.remove_prefix(part.size() + 1);
  }
  return {};
}

bool is_activation_scale(std::string_view tensor_name) { return ends_as(tensor_name, kActivationScales); }

std::string passed_over_note(std::string_view what, const std::vector<std::string>& tensor_names) {
  constexpr std::size_t named = 2;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(named, tensor_names.size()); ++i) first.push_back(one_line(tensor_names[i], 100));
  return fmt::format("{} {} of {} passed over: {}{}", tensor_names.size(), tensor_names.size() == 1 ? "tensor" : "tensors", what,
                     fmt::join(first, ", "), tensor_names.size() > named ? ", …" : "");
}

}  // namespace statescope
