// One layer again, from what entered its block.
#include "engine/model/model.h"
#include "kernels/checked/checked_device.h"

namespace statescope {

/// What the part behind the mixer reads, where x [T, D] entered the block, n is what the mixer read of it, and y what it adds; y absent:
/// there is no mixer.
ConstTensor Model::read_by_ffn(Place& at, const Stack::Block& block, ConstTensor x, ConstTensor n, ConstTensor y) {
  // RMSNorm(x + y), or RMSNorm(norm_factor · n + y)
  const Residual& residual = block.mixer_norms.residual;
  const bool keeps_norm = y && residual.keeps_norm;
  const Tensor sum = at.workspace.tensor(x.shape), read = at.workspace.tensor(x.shape, at.backend.activation_type(x.rows()));
  at.backend.copy(sum, keeps_norm ? n : x);
  if (keeps_norm) multiply(at.backend, at.workspace, sum, residual.norm_factor);
  if (y) at.backend.add(sum, sum, y);
  block.ffn_norms.before ? norm(at, read, sum, block.ffn_norms.before, plan_.ffn_norm_eps) : at.backend.copy(read, sum);
  return read;
}

void Model::replay(std::int64_t layer, MixerState& state, ConstTensor recorded, std::int64_t position, const ForwardOptions& options,
                   ChannelSink* channels) {
  const Stack::Block& block = stack_.blocks[static_cast<std::size_t>(layer)];
  const bool shows_choice = block.ffn && block.ffn->experts() > 0 && channels && channels->wants_all() && channels->wants("moe_selected");
  if (recorded.rows() == 0 || (!block.mixer && !shows_choice)) return;
  Place& at = place_of(layer);
  const Workspace::Mark mark(at.workspace);
  const ConstTensor x = brought(at, recorded);
  Context ctx(at.backend, at.workspace, x.rows());
  ctx.position = plan_.memory_token_count + position;
  ctx.prompt_length = plan_.memory_token_count + options.prompt_length;
  ctx.chunk_size = options.chunk_size;
  if (!options.rules.empty()) ctx.rules = &options.rules[static_cast<std::size_t>(layer)];
  ctx.channels = channels;
  const bool ffn_keeps = !block.ffn_caches(state).empty();  // something of what the mixer puts out
  ctx.state_only = !ffn_keeps && (!channels || !channels->wants_all());
  Tensor normed, y;
  if (block.mixer) {
    normed = ctx.activation({plan_.hidden});
    if (!ctx.state_only) y = ctx.activation({plan_.hidden});
    const Stack::Block::Norm& before = block.mixer_norms.before;
    before ? norm(at, normed, x, before, plan_.norm_eps) : at.backend.copy(normed, x);
    in_layer(layer, [&] {
      block.mixer->forward(ctx, block.reads_companion ? beside(at, normed, brought(at, options.companion)) : normed, state, y);
    });
  }
  if (y) finish_part(at, y, block.mixer_norms, plan_.norm_eps);
  if (y) ctx.emit("mixer_out", y);
  const auto last = [](ConstTensor rows) { return rows.slice(rows.rows() - 1, 1); };
  if (ffn_keeps) block.ffn->keep(ctx, read_by_ffn(at, block, last(x), last(normed), last(y)), block.ffn_caches(state));
  if (shows_choice) block.ffn->show_choice(ctx, read_by_ffn(at, block, x, normed, y));
  require_whole_files();
}

}  // namespace statescope
