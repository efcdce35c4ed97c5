#include "engine/mixers/described.h"

#include <algorithm>

#include "kernels/program/run.h"

namespace statescope {

std::optional<Program> DescribedMixer::program() const { return described(); }

const Program& DescribedMixer::described() const {
  std::call_once(once_, [this] {
    describe(described_);
    folds_norm_ = program::norm_folds_into_products(described_);
  });
  return described_;
}

bool DescribedMixer::folds_norm() const {
  described();
  return folds_norm_;
}

std::shared_ptr<const Program> DescribedMixer::compiled(const Use& use) const {
  constexpr std::size_t most = 16;  // purposes and interventions by turns
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(compiled_, use, &std::pair<Use, std::shared_ptr<const Program>>::first);
  if (known != compiled_.end()) {
    compiled_.splice(compiled_.begin(), compiled_, known);
  } else {
    Program edited = described();
    program::apply_rules(edited, use.rules);
    compiled_.emplace_front(use, std::make_shared<const Program>(program::compiled(std::move(edited), use.purpose)));
    if (compiled_.size() > most) compiled_.pop_back();
  }
  return compiled_.front().second;
}

void DescribedMixer::forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const {
  Use use{.purpose = {.wanted = {}, .state_only = ctx.state_only, .one_token = ctx.tokens == 1}, .rules = ctx.rules ? *ctx.rules : Rules{}};
  for (const program::Channel& channel : described().channels)
    use.purpose.wanted.push_back(ctx.wants(channel.name) && (!channel.costs || ctx.wants_all()));
  const program::Pass pass{.backend = ctx.backend,
                           .workspace = ctx.workspace,
                           .tokens = ctx.tokens,
                           .position = ctx.position,
                           .chunk_size = ctx.chunk_size,
                           .prompt_length = ctx.prompt_length,
                           .cu_seqlens = ctx.cu_seqlens(),
                           .x = x,
                           .norm = ctx.norm,
                           .residual = ctx.residual,
                           .y = y,
                           .shows_result = ctx.wants("mixer_out") || ctx.wants_all(),
                           .memory = state.memory,
                           .conv_caches = state.conv_caches,
                           .kv = &state.kv};
  program::run(*compiled(use), pass, [&](std::string_view name, ConstTensor values) { ctx.emit(name, values); });
}

}  // namespace statescope
