// How each group of families plans its stack. Only family.cpp calls these; a new group is one file here and its rows there.
#pragma once

#include "engine/model/family.h"

namespace statescope {

constexpr std::int64_t kMaxLayers = 10'000;  // of num_hidden_layers

/// The families of flash-linear-attention (spec §1, §7).
Plan plan_fla(const Config& config, const std::string& family);
/// Mamba-2 in the layouts of flash-linear-attention and of Transformers (spec §3.9, §19.3).
Plan plan_mamba2(const Config& config, const std::string& family);
/// Mamba-1 as Transformers or flash-linear-attention stores it, and Falcon-Mamba (spec §17.1, §17.2).
Plan plan_mamba(const Config& config, const std::string& family);
/// Jamba: Mamba-1, attention and experts (spec §17.6).
Plan plan_jamba(const Config& config, const std::string& family);
/// Hymba: attention and Mamba-1 in parallel in every layer (spec §17.9).
Plan plan_hymba(const Config& config, const std::string& family);
/// Log-linear Mamba-2 as flash-linear-attention stores it (spec §17.14).
Plan plan_log_linear_mamba2(const Config& config, const std::string& family);
/// S4 and S4D in the layout of spec §17.17.
Plan plan_s4(const Config& config, const std::string& family);
/// Qwen3-Next and Qwen3.5, bare or within the wrapper of a model for pictures too (spec §8.1, §8.2).
Plan plan_qwen(const Config& outer, const std::string& family);

/// Nemotron-H: a layer is Mamba-2, attention, an MLP or experts (spec §19.4).
Plan plan_nemotron_h(const Config& config, const std::string& family);
/// Falcon-H1, whose layers have Mamba-2 and attention side by side (spec §19.5).
Plan plan_falcon_h1(const Config& config, const std::string& family);
/// Granite 4.0-H and Bamba: layers of Mamba-2 or attention, each with an MLP (spec §19.6, §19.7).
Plan plan_granite_hybrid(const Config& config, const std::string& family);
Plan plan_bamba(const Config& config, const std::string& family);
/// Olmo-Hybrid: gated delta rule and softmax attention (spec §19.8).
Plan plan_olmo_hybrid(const Config& config, const std::string& family);
/// LFM2 and LFM2-MoE: gated short convolutions and softmax attention (spec §19.10).
Plan plan_lfm2(const Config& config, const std::string& family);

/// Kimi Linear: three layers of KDA to one of latent attention, dense first, then experts (spec §17.4).
Plan plan_kimi_linear(const Config& config, const std::string& family);

/// Zamba and Zamba2: Mamba, and a block of attention and an MLP that layers share (spec §17.7).
Plan plan_zamba(const Config& config, const std::string& family);

/// RWKV-6 and RWKV-7 as flash-linear-attention stores them (spec §17.10).
Plan plan_rwkv(const Config& config, const std::string& family);

/// MiniMax-Text-01 and M1, in the releases' layout or Transformers': lightning attention, softmax attention, experts (spec §17.5).
Plan plan_minimax(const Config& config, const std::string& family);

/// DeepSeek-V3 and R1, Kimi K2, Moonlight: latent attention, dense layers first, then experts (spec §18.1); DeepSeek-V3.2: the same over
/// tokens that an indexer chooses (spec §18.2).
Plan plan_deepseek_v3(const Config& config, const std::string& family);

}  // namespace statescope
