// One builder per file of this folder; only table.cpp calls them.
#pragma once

#include "engine/mixers/mixer.h"

namespace statescope {

std::unique_ptr<Mixer> make_softmax_attention(const MixerBuild& build);
std::unique_ptr<Mixer> make_moba(const MixerBuild& build);
std::unique_ptr<Mixer> make_linear_attention(const MixerBuild& build);
std::unique_ptr<Mixer> make_retnet(const MixerBuild& build);
std::unique_ptr<Mixer> make_gla(const MixerBuild& build);
std::unique_ptr<Mixer> make_delta_net(const MixerBuild& build);
std::unique_ptr<Mixer> make_gated_deltanet(const MixerBuild& build);
std::unique_ptr<Mixer> make_gated_deltaproduct(const MixerBuild& build);
std::unique_ptr<Mixer> make_comba(const MixerBuild& build);
std::unique_ptr<Mixer> make_gsa(const MixerBuild& build);
std::unique_ptr<Mixer> make_hgrn2(const MixerBuild& build);
std::unique_ptr<Mixer> make_metala(const MixerBuild& build);
std::unique_ptr<Mixer> make_mom(const MixerBuild& build);
std::unique_ptr<Mixer> make_mamba(const MixerBuild& build);
std::unique_ptr<Mixer> make_mamba2(const MixerBuild& build);
std::unique_ptr<Mixer> make_s4(const MixerBuild& build);
std::unique_ptr<Mixer> make_falcon_h1(const MixerBuild& build);
std::unique_ptr<Mixer> make_gated_convolution(const MixerBuild& build);
std::unique_ptr<Mixer> make_lightning_attention(const MixerBuild& build);
std::unique_ptr<Mixer> make_rwkv6(const MixerBuild& build);
std::unique_ptr<Mixer> make_rwkv7(const MixerBuild& build);
std::unique_ptr<Mixer> make_hymba(const MixerBuild& build);
std::unique_ptr<Mixer> make_zamba_mamba(const MixerBuild& build);
std::unique_ptr<Mixer> make_zamba_hybrid(const MixerBuild& build);
std::unique_ptr<Mixer> make_zamba2_hybrid(const MixerBuild& build);
std::unique_ptr<Mixer> make_sse(const MixerBuild& build);
std::unique_ptr<Mixer> make_sse_swa(const MixerBuild& build);
std::unique_ptr<Mixer> make_latent_attention(const MixerBuild& build);
std::unique_ptr<Mixer> make_sparse_latent_attention(const MixerBuild& build);
std::unique_ptr<Mixer> make_nsa(const MixerBuild& build);
std::unique_ptr<Mixer> make_kda(const MixerBuild& build);
std::unique_ptr<Mixer> make_qwen_gated_deltanet(const MixerBuild& build);
std::unique_ptr<Mixer> make_qwen_attention(const MixerBuild& build);

}  // namespace statescope
