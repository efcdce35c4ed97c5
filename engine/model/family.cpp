#include "engine/model/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>
#include <utility>

#include "engine/checkpoint/passed_over.h"
#include "engine/config/names.h"
#include "engine/error.h"
#include "engine/model/families/families.h"

namespace statescope {
namespace {

struct FamilyRow {
  std::string_view model_type;
  Plan (*plan)(const Config& config, const std::string& model_type);
};

constexpr FamilyRow kFamilies[] = {
    {"transformer", plan_fla},
    {"linear_attn", plan_fla},
    {"retnet", plan_fla},
    {"gla", plan_fla},
    {"delta_net", plan_fla},
    {"gated_deltanet", plan_fla},
    {"gsa", plan_fla},
    {"mom", plan_fla},
    {"sse", plan_fla},
    {"sse_swa_moba", plan_fla},
    {"moba", plan_fla},
    {"nsa", plan_fla},
    {"gated_deltaproduct", plan_fla},
    {"comba", plan_fla},
    {"hgrn2", plan_fla},
    {"metala", plan_fla},
    {"kda", plan_fla},
    {"mamba2", plan_mamba2},
    {"qwen3_next", plan_qwen},
    {"qwen3_5", plan_qwen},
    {"qwen3_5_text", plan_qwen},
    {"qwen3_5_moe", plan_qwen},
    {"qwen3_5_moe_text", plan_qwen},
    {"nemotron_h", plan_nemotron_h},
    {"falcon_h1", plan_falcon_h1},
    {"granitemoehybrid", plan_granite_hybrid},
    {"bamba", plan_bamba},
    {"olmo_hybrid", plan_olmo_hybrid},
    {"lfm2", plan_lfm2},
    {"lfm2_moe", plan_lfm2},
    {"kimi_linear", plan_kimi_linear},
    {"deepseek_v3", plan_deepseek_v3},
    {"deepseek_v32", plan_deepseek_v3},
    {"mamba", plan_mamba},
    {"falcon_mamba", plan_mamba},
    {"jamba", plan_jamba},
    {"hymba", plan_hymba},
    {"log_linear_mamba2", plan_log_linear_mamba2},
    {"s4", plan_s4},
    {"zamba", plan_zamba},
    {"zamba2", plan_zamba},
    {"rwkv6", plan_rwkv},
    {"rwkv7", plan_rwkv},
    {"minimax", plan_minimax},
    {"minimax_text_01", plan_minimax},
    {"minimax_m1", plan_minimax},
};

std::vector<StoredTensor>::iterator named(std::vector<StoredTensor>& tensors, const std::string& name) {
  return std::ranges::find(tensors, name, &StoredTensor::name);
}

/// Gives the tensor `from` the name `to`; false if there is none.
bool rename(std::vector<StoredTensor>& tensors, const std::string& from, const std::string& to) {
  const auto it = named(tensors, from);
  if (it == tensors.end()) return false;
  it->name = to;
  return true;
}

/// Whether the tensor is of a layer behind the last one, where a family's files may hold such.
bool is_of_further_tokens(std::string_view name, const Plan& plan) {
  constexpr std::string_view before = "model.layers.";
  if (!plan.extra_layers || !name.starts_with(before)) return false;
  std::size_t layer = 0;
  const auto [end, error] = std::from_chars(name.data() + before.size(), name.data() + name.size(), layer);
  return error == std::errc() && end != name.data() + name.size() && *end == '.' && layer >= plan.layers.size();
}

/// Drops vision towers, multi-token heads and stray buffers, which play no part in the text model, each kind with a note.
void pass_over(std::vector<StoredTensor>& tensors, Plan& plan) {
  std::map<std::string_view, std::vector<std::string>> dropped;
  std::erase_if(tensors, [&](const StoredTensor& tensor) {
    const bool stray_D = tensor.name.ends_with("attn.D") && plan.family != "comba";
    const bool made_anew = std::ranges::any_of(plan.buffers, [&](std::string_view end) { return tensor.name.ends_with(end); });
    std::string_view part = stray_D || made_anew ? "buffers" : passed_over_as(tensor.name);
    if (is_of_further_tokens(tensor.name, plan)) part = "layers that predict several tokens at once";
    if (!part.empty()) dropped[part].push_back(tensor.name);
    return !part.empty();
  });
  for (const auto& [part, names] : dropped) plan.notes.push_back(passed_over_note(part, names));
}

/// Rows [begin, begin + count) of a matrix, as a tensor of its own over the same bytes.
StoredTensor row_range(const StoredTensor& whole, std::string name, std::int64_t begin, std::int64_t count) {
  StoredTensor part = whole;
  part.name = std::move(name);
  part.data += begin * (whole.bytes() / whole.shape[0]);
  part.shape[0] = count;
  return part;
}

/// RWKV-7's early files hold the six mixing vectors of a layer in one tensor.
void split_mixing(std::vector<StoredTensor>& tensors, Plan& plan) {
  constexpr std::string_view all = ".attn.x_x", names = "rwkvag";
  std::vector<StoredTensor> parts;
  std::erase_if(tensors, [&](const StoredTensor& tensor) {
    if (plan.family != "rwkv7" || !tensor.name.ends_with(all) || tensor.size() != plan.hidden * std::ssize(names)) return false;
    StoredTensor rows = tensor;
    rows.shape = {std::ssize(names), plan.hidden};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string name = tensor.name.substr(0, tensor.name.size() - 1) + names[i];
      parts.push_back(row_range(rows, name, static_cast<std::int64_t>(i), 1));
      parts.back().shape = {1, 1, plan.hidden};
    }
    plan.notes.push_back(fmt::format("{} held six vectors in one", tensor.name));
    return true;
  });
  tensors.insert(tensors.end(), parts.begin(), parts.end());
}

}  // namespace

Plan plan_model(const Config& config) {
  const std::string family = config.text("model_type");
  const auto* row = std::ranges::find(kFamilies, family, &FamilyRow::model_type);
  if (row != std::end(kFamilies)) return row->plan(config, family);
  throw Error(fmt::format("model_type {} is not supported; known are {}", shown(family),
                          fmt::join(kFamilies | std::views::transform(&FamilyRow::model_type), ", ")));
}

std::vector<StoredTensor> regular_tensors(const Checkpoint& checkpoint, Plan& plan) {
  std::vector<StoredTensor> tensors = checkpoint.tensors;
  take_planned_names(tensors, plan.embeddings, plan.head, plan.notes);
  pass_over(tensors, plan);
  split_mixing(tensors, plan);
  if (rename(tensors, "backbone.embedding.weight", "backbone.embeddings.weight")) plan.notes.push_back("legacy name backbone.embedding");
  if (plan.embeddings == "model.embeddings.weight" && rename(tensors, "model.embed_tokens.weight", plan.embeddings)) {
    plan.notes.push_back("legacy name model.embed_tokens");
  }
  for (StoredTensor& tensor : tensors) {
    const auto other = plan.other_names.find(tensor.name);
    if (other != plan.other_names.end()) tensor.name = other->second;
    // Kimi Linear's files hold it as [1, 1, H, 1].
    const bool spread = tensor.name.ends_with(".A_log") && tensor.shape.size() == 4 && tensor.size() == tensor.shape[2];
    if (spread) tensor.shape = {tensor.shape[2]};
  }
  std::set<std::string> there;
  for (const StoredTensor& tensor : tensors) there.insert(tensor.name);
  plan.tied |= plan.tied_where_no_head && !there.contains(plan.head);
  for (const LayerPlan& layer : plan.layers) {
    if (layer.ffn != FfnKind::mlp || plan.norm_offset != 0) continue;
    // Before February 2025 gate and up were one matrix: the first I rows are the gate, the last I rows up.
    const std::string gate = layer.ffn_prefix + "gate_proj.weight", up = layer.ffn_prefix + "up_proj.weight";
    const auto fused = there.contains(gate) && !there.contains(up) ? named(tensors, gate) : tensors.end();
    if (fused != tensors.end() && fused->shape.size() == 2 && fused->shape[0] == 2 * layer.mlp.width && !fused->scales) {
      StoredTensor gate_rows = row_range(*fused, gate, 0, layer.mlp.width);
      StoredTensor up_rows = row_range(*fused, up, layer.mlp.width, layer.mlp.width);
      *fused = std::move(gate_rows);
      tensors.push_back(std::move(up_rows));
      plan.notes.push_back(fmt::format("{} held gate and up in one matrix", gate));
    }
    // norm_first: the pre-norms lay inside the sublayers; linear attention's attn.norm is its output norm and stays.
    const std::string inner = layer.mixer_prefix + "norm.weight";
    if (plan.family != "linear_attn" && there.contains(inner) && !there.contains(layer.mixer_norm) &&
        rename(tensors, inner, layer.mixer_norm)) {
      if (rename(tensors, layer.ffn_prefix + "norm.weight", layer.ffn_norm)) plan.ffn_norm_eps = 1e-5f;
      plan.notes.push_back(fmt::format("{} was stored inside the sublayer", layer.mixer_norm));
    }
  }
  return tensors;
}

}  // namespace statescope
