// Gates over heads and outputs (parts.h), and what those of the heads do to a layer's output.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "engine/config/host_floats.h"
#include "engine/error.h"
#include "engine/mixers/parts.h"

namespace statescope {
namespace {

/// A copy of rows [T, n] in float32.
Tensor widened(Context& ctx, ConstTensor rows) {
  const Tensor copy = ctx.tensor({rows.row_size()});
  ctx.backend.copy(copy, rows.with_row({rows.row_size()}));
  return copy;
}

void emit_from_host(Context& ctx, std::string_view name, const std::vector<float>& numbers, std::int64_t width) {
  const Tensor channel = ctx.tensor({width});
  ctx.backend.upload(channel, ConstTensor(numbers.data(), DType::f32, channel.shape));
  ctx.emit(name, channel);
}

}  // namespace

void emit_output_gate(Context& ctx, ConstTensor gate, std::int64_t heads, Activation act) {
  if (!ctx.wants_all()) return;
  const Tensor opened = widened(ctx, gate);
  ctx.backend.activate(opened, opened, act);
  const std::vector<float> channels = host_floats(ctx.backend, opened);
  // mean over the head's channels of act(g)
  const std::int64_t n = gate.row_size() / heads;
  std::vector<float> means;
  for (auto first = channels.begin(); first != channels.end(); first += n)
    means.push_back(static_cast<float>(std::accumulate(first, first + n, 0.0) / static_cast<double>(n)));
  emit_from_host(ctx, "output_gate", means, heads);
}

Tensor repeat_heads(Context& ctx, Tensor g, std::int64_t heads) {
  if (g.row_size() == heads) return g;
  Tensor repeated = ctx.tensor({heads});
  for (std::int64_t h = 0; h < heads; ++h) {
    ctx.backend.copy(repeated.columns(h, {1}), g.columns(producer_head(h, g.row_size(), heads), {1}));
  }
  return repeated;
}

std::optional<HeadGates> HeadGates::load(const MixerBuild& build, QkvProjection& qkv, std::int64_t hidden) {
  const Config sla = build.config.object("sla");
  if (!sla.boolean("enabled", false)) return std::nullopt;
  const std::int64_t heads = qkv.q_heads, head_dim = qkv.K;
  if (qkv.k_heads != heads)
    throw Error(fmt::format("config: SLA needs \"num_kv_heads\" ({}) equal to \"num_heads\" ({})", qkv.k_heads, heads));
  HeadGates gates;
  // [A11]: what the logits are made of; by default the weight's own shape tells.
  const std::string named = sla.text("gate_input", "", {"", "q_per_head", "q_concat", "x"});
  const std::int64_t described = named == "x" ? hidden : named == "q_concat" ? heads * head_dim : head_dim;
  const std::int64_t d_in = build.weights.extent("sla_q_gate.weight", 1, described);
  if (named.empty()) {
    gates.input = d_in == hidden ? Input::x : d_in == head_dim ? Input::per_head : Input::concat;
  } else {
    gates.input = named == "x" ? Input::x : named == "q_concat" ? Input::concat : Input::per_head;
  }
  const std::int64_t expected = gates.input == Input::x ? hidden : gates.input == Input::concat ? heads * head_dim : head_dim;
  gates.w_q = build.weights.matrix("sla_q_gate.weight", {heads, expected});
  gates.w_k = build.weights.matrix("sla_k_gate.weight", {heads, expected});
  gates.phi_stage = sla.text("gate_stage", "proj", {"proj", "phi"}) == "phi";
  qkv.keeps_raw = !gates.phi_stage;
  gates.post_norm = sla.text("read_gate_position", "q", {"q", "post_norm"}) == "post_norm";
  gates.temperature = static_cast<float>(sla.not_negative("temperature", 1.0));
  gates.gdn_decay = sla.boolean("gdn_decay", true);
  return gates;
}

HeadGates::Gates HeadGates::operator()(Context& ctx, ConstTensor x, ConstTensor q, ConstTensor k) const {
  const std::int64_t heads = w_q.rows();
  auto softmax_over_heads = [&](ConstTensor z, ConstTensor w) {
    Tensor logits = ctx.tensor({heads});
    if (input == Input::x) {
      ctx.backend.linear(logits, x, w);
    } else if (input == Input::concat) {
      ctx.backend.linear(logits, z.with_row({z.row_size()}), w);
    } else {
      // logit_h = z_h · w_h: row h of the weight sees head h alone
      const std::int64_t d = w.row_size();
      for (std::int64_t h = 0; h < heads; ++h) ctx.backend.linear(logits.columns(h, {1}), z.columns(h * d, {d}), w.slice(h, 1));
    }
    // G = softmax_h(λ · logits)                                                                       (SLA eq. 4, theorem 4.2)
    ctx.backend.softmax(logits, logits, ctx.rules ? temperature * ctx.rules->sharpness : temperature);
    return logits;
  };
  Gates gates{softmax_over_heads(q, w_q), softmax_over_heads(k, w_k)};
  ctx.emit("head_gate_q", gates.q);
  ctx.emit("head_gate_k", gates.k);
  return gates;
}

namespace {

Tensor copy_of(Context& ctx, ConstTensor x) {
  const Tensor copy = ctx.workspace.tensor(x.shape, x.dtype);
  ctx.backend.copy(copy, x);
  return copy;
}

template <class Memory>
void emit_effect_of(Context& ctx, const Ungated& ungated, Memory memory, const Readout& readout, ConstTensor gate, ConstTensor y) {
  if (!ungated.q) return;
  Context silent = ctx;
  silent.channels = nullptr;
  memory.q = ungated.q;
  const Tensor y_1 = ctx.workspace.tensor(y.shape, y.dtype);
  readout(silent, remember(silent, memory, ungated.state), gate, y_1);
  const std::vector<float> own = host_floats(ctx.backend, widened(ctx, y)), other = host_floats(ctx.backend, widened(ctx, y_1));
  std::vector<float> effect;
  for (auto a = own.begin(), b = other.begin(); a != own.end(); a += y.row_size(), b += y.row_size()) {
    // ‖y₁ − y‖ / ‖y‖
    const double change =
        std::transform_reduce(a, a + y.row_size(), b, 0.0, std::plus<>(), [](double p, double q) { return (q - p) * (q - p); });
    const double size = std::transform_reduce(a, a + y.row_size(), 0.0, std::plus<>(), [](double p) { return p * p; });
    effect.push_back(change == 0 ? 0.0F : static_cast<float>(std::sqrt(change / size)));
  }
  emit_from_host(ctx, "read_gate_effective", effect, 1);
}

}  // namespace

Ungated::Ungated(Context& ctx, bool gated, ConstTensor q_, ConstTensor state_) {
  if (!gated || !ctx.wants_all()) return;
  q = copy_of(ctx, q_);
  state = copy_of(ctx, state_);
}

void Ungated::emit_effect(Context& ctx, DecayedOuterProduct memory, const Readout& readout, ConstTensor gate, ConstTensor y) const {
  emit_effect_of(ctx, *this, memory, readout, gate, y);
}

void Ungated::emit_effect(Context& ctx, GatedDeltaRule memory, const Readout& readout, ConstTensor gate, ConstTensor y) const {
  emit_effect_of(ctx, *this, memory, readout, gate, y);
}

}  // namespace statescope
