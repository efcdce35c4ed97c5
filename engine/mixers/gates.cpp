// Gates over heads and outputs (parts.h), and what those of the heads do to a layer's output.
#include <fmt/format.h>

#include <cmath>
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

std::optional<HeadGates> HeadGates::load(const MixerBuild& build, const QkvProjection& qkv, std::int64_t hidden) {
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
  gates.post_norm = sla.text("read_gate_position", "q", {"q", "post_norm"}) == "post_norm";
  gates.temperature = static_cast<float>(sla.not_negative("temperature", 1.0));
  gates.gdn_decay = sla.boolean("gdn_decay", true);
  return gates;
}

HeadGates::Gates HeadGates::operator()(Program& p, Value x, Value q, Value k) const {
  const auto softmax_over_heads = [&](Value z, ConstTensor w) {
    const Value logits = input == Input::x        ? p.linear(w, {}, x, ValueType::exact)
                         : input == Input::concat ? p.linear(w, {}, p.with_axes(z, {p.width(z)}), ValueType::exact)
                                                  : p.linear_of_heads(w, z);
    // G = softmax_h(λ · logits)                                                                       (SLA eq. 4, theorem 4.2)
    return p.apply(program::Softmax{temperature}, logits);
  };
  return {p.show("head_gate_q", softmax_over_heads(q, w_q)), p.show("head_gate_k", softmax_over_heads(k, w_k))};
}

}  // namespace statescope
