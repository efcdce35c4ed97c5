// Gates over heads (parts.h).
#include <fmt/format.h>

#include "engine/error.h"
#include "engine/mixers/parts.h"

namespace statescope {

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
