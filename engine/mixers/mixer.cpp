#include "engine/mixers/mixer.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "kernels/passes/passes.h"
#include "kernels/program/run.h"

namespace statescope {
namespace {

/// What two passes have in common that run the same compiled program.
struct Use {
  program::Purpose purpose;
  Rules rules;
  bool operator==(const Use&) const = default;
};

}  // namespace

/// The layer's program as it is described, and what the latest uses have made of it.
struct Mixer::Programs {
  std::once_flag once;
  program::Program described{0};
  bool folds_norm = false;
  std::mutex mutex;
  std::list<std::pair<Use, std::shared_ptr<const program::Program>>> compiled;  // the latest first

  std::shared_ptr<const program::Program> compiled_for(const Use& use) {
    constexpr std::size_t most = 16;  // purposes and interventions by turns
    const std::lock_guard lock(mutex);
    const auto known = std::ranges::find(compiled, use, &std::pair<Use, std::shared_ptr<const program::Program>>::first);
    if (known != compiled.end()) {
      compiled.splice(compiled.begin(), compiled, known);
    } else {
      program::Program edited = described;
      program::apply_rules(edited, use.rules);
      compiled.emplace_front(use, std::make_shared<const program::Program>(program::compiled(std::move(edited), use.purpose)));
      if (compiled.size() > most) compiled.pop_back();
    }
    return compiled.front().second;
  }
};

Mixer::Mixer() : programs_(std::make_unique<Programs>()) {}
Mixer::~Mixer() = default;

const program::Program& Mixer::program() const {
  std::call_once(programs_->once, [this] {
    describe(programs_->described);
    programs_->folds_norm = program::norm_folds_into_products(programs_->described);
  });
  return programs_->described;
}

bool Mixer::folds_norm() const {
  program();
  return programs_->folds_norm;
}

void Mixer::forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const {
  Use use{.purpose = {.wanted = {}, .state_only = ctx.state_only, .one_token = ctx.tokens == 1}, .rules = ctx.rules ? *ctx.rules : Rules{}};
  for (const program::Channel& channel : program().channels)
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
                           .shows_result = ctx.wants("mixer_out"),
                           .memory = state.memory,
                           .conv_caches = state.conv_caches,
                           .kv = &state.kv};
  program::run(*programs_->compiled_for(use), pass, [&](std::string_view name, ConstTensor values) { ctx.emit(name, values); });
}

}  // namespace statescope
