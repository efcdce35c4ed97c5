"""The models, as the specification writes them (../../engine/mixers holds the same mathematics in C++).

Tensor names and config keys are those of flash-linear-attention; `state_dict()` of a Model is what a checkpoint holds.
Letters: B sequences, T tokens, D hidden_size, H heads, K and V the key and value width of a head, N sparse partitions.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention import MoBA, NSA, SoftmaxAttention
from memories import decayed_outer_product, delta_rule_by_channel, gated_delta_rule, scalar_decay
from parts import RMSNorm, ShortConvolution, SwiGLU, delta_decay, delta_gate_parameters, heads, l2_norm, linear, long_gate, low_rank, rope
from recurrent import HGRN2, RWKV7, Mamba, RWKV7Block

# ---- mixers: projection, route, memory, readout -----------------------------------------------------------------------------------------


class LinearMixer(nn.Module):
    """What RetNet, GLA, DeltaNet and GDN share: projections, convolutions with silu, head gates, gated per-head norm."""

    norm_name = "o_norm"

    def __init__(self, config, K, V):
        super().__init__()
        D, H, eps = config["hidden_size"], config["num_heads"], config["norm_eps"]
        self.H, self.K, self.V, self.sla = H, K, V, config.get("sla")
        self.q_proj, self.k_proj, self.v_proj = linear(D, H * K), linear(D, H * K), linear(D, H * V)
        self.q_conv1d, self.k_conv1d, self.v_conv1d = (ShortConvolution(H * d, config["conv_size"]) for d in (K, K, V))
        self.g_proj = linear(D, H * V)
        setattr(self, self.norm_name, RMSNorm(V, eps))
        self.o_proj = linear(H * V, D)
        if self.sla:
            self.sla_q_gate, self.sla_k_gate = linear(D, H), linear(D, H)

    def project(self, x):
        """q, k, v [B, T, H, K or V] after convolution and silu"""
        pairs = (self.q_proj, self.q_conv1d), (self.k_proj, self.k_conv1d), (self.v_proj, self.v_conv1d)
        return (heads(F.silu(conv(proj(x))), self.H).float() for proj, conv in pairs)

    def write_gate(self, x):
        """G^K [B, T, H, 1] = softmax_h(x W_GK), SLA(4); 1 without SLA"""
        return self.sla_k_gate(x).float().softmax(-1)[..., None] if self.sla else 1.0

    def readout(self, x, o):
        """RMSNorm(o) ⊙ silu(g) (⊙ G^Q) → o_proj"""
        G = self.sla_q_gate(x).float().softmax(-1)[..., None] if self.sla else None
        post_norm = self.sla and self.sla["read_gate_position"] == "post_norm"
        if self.sla and not post_norm:
            o = G * o
        y = getattr(self, self.norm_name)(o)
        if post_norm:
            y = G * y
        return self.o_proj((y * F.silu(heads(self.g_proj(x), self.H))).flatten(2))


class RetNet(LinearMixer):
    """§3.3: S = γ_h S + kᵀ v"""

    norm_name = "g_norm_swish_gate"

    def __init__(self, config):
        d, H = config["hidden_size"], config["num_heads"]
        super().__init__(config, int(d * config["expand_k"]) // H, int(d * config["expand_v"]) // H)
        self.register_buffer("log_gamma", torch.log1p(-(2.0 ** (-5 - torch.arange(H)))), persistent=False)

    def forward(self, x):
        q, k, v = self.project(x)
        log_decay = self.log_gamma.expand(q.shape[:3])
        o = scalar_decay(rope(q) / math.sqrt(self.K), rope(k) * self.write_gate(x), v, log_decay)
        return self.readout(x, o)


class GLA(LinearMixer):
    """§3.4: S = diag(α) S + kᵀ v, log α = logσ(gk_proj x) / 16; row-sparse (§5): only the k largest keys' rows are written and decay"""

    norm_name = "g_norm_swish_gate"

    def __init__(self, config):
        d, H = config["hidden_size"], config["num_heads"]
        super().__init__(config, int(d * config["expand_k"]) // H, int(d * config["expand_v"]) // H)
        self.gk_proj = long_gate(low_rank(d, 16, H * self.K, bias=True))
        self.row_sparse = config.get("row_sparse")

    def forward(self, x):
        q, k, v = self.project(x)
        log_decay = F.logsigmoid(heads(self.gk_proj(x), self.H).float()) / 16
        if self.row_sparse:
            # k_r = exp(z_r) / Σ_R exp(z_j) for the rows R of the largest z, α = 1 elsewhere; z: what the convolution leaves   SSE(7),(8)
            chosen = torch.zeros_like(k, dtype=torch.bool).scatter_(-1, k.topk(self.row_sparse["topk"], -1).indices, True)
            k = k.masked_fill(~chosen, float("-inf")).softmax(-1)
            log_decay = log_decay * chosen
        return self.readout(x, decayed_outer_product(q / math.sqrt(self.K), k * self.write_gate(x), v, log_decay))


class DeltaNet(LinearMixer):
    """§3.5: S = (I − β kᵀk) S + β kᵀ v"""

    def __init__(self, config):
        d, H = config["hidden_size"], config["num_heads"]
        super().__init__(config, int(d * config["expand_k"]) // H, int(d * config["expand_v"]) // H)
        self.b_proj = linear(d, H)

    def forward(self, x):
        q, k, v = self.project(x)
        beta = self.b_proj(x).float().sigmoid()
        return self.readout(x, gated_delta_rule(l2_norm(q) / math.sqrt(self.K), l2_norm(k), v, torch.zeros_like(beta), beta))


class GatedDeltaNet(LinearMixer):
    """§3.6: S̄ = α S; S = S̄ + k̂ᵀ β (v − k̂ S̄)"""

    def __init__(self, config):
        super().__init__(config, config["head_dim"], int(config["head_dim"] * config["expand_v"]))
        D, H = config["hidden_size"], config["num_heads"]
        self.a_proj, self.b_proj = linear(D, H), linear(D, H)
        self.A_log, self.dt_bias = delta_gate_parameters(H)

    def forward(self, x):
        q, k, v = self.project(x)
        log_decay = delta_decay(self.a_proj(x), self.A_log, self.dt_bias)
        beta = self.b_proj(x).float().sigmoid()
        # SLA(14): the write gate scales the value, not the erase.
        return self.readout(x, gated_delta_rule(l2_norm(q) / math.sqrt(self.K), l2_norm(k), v * self.write_gate(x), log_decay, beta))


class KDA(LinearMixer):
    """§17.3: S̄ = diag(α) S; S = S̄ + k̂ᵀ β (v − k̂ S̄), a decay for each key channel"""

    def __init__(self, config):
        super().__init__(config, config["head_dim"], int(config["head_dim"] * config["expand_v"]))
        D, H, K, V = config["hidden_size"], config["num_heads"], self.K, self.V
        self.f_proj, self.b_proj, self.g_proj = low_rank(D, V, H * K), linear(D, H), low_rank(D, V, H * V, bias=True)
        self.A_log, self.dt_bias = delta_gate_parameters(H, K)

    def forward(self, x):
        q, k, v = self.project(x)
        log_decay = delta_decay(heads(self.f_proj(x), self.H), self.A_log[:, None], self.dt_bias.view(self.H, self.K))
        beta, k = self.b_proj(x).float().sigmoid()[..., None], l2_norm(k)
        o = delta_rule_by_channel(l2_norm(q) / math.sqrt(self.K), beta * k, v, log_decay, read=k, remove=beta * k)
        return self.o_proj((self.o_norm(o) * heads(self.g_proj(x), self.H).sigmoid()).flatten(2))


class Routed:
    """Tokens brought into order of the partition they are routed to, as the engine does (§10): first all T tokens once (what every token
    passes through, segment 0), then the T·W chosen ones (segment 1 + partition). `weight` [B, T, W] and `partition` [B, T, W]."""

    def __init__(self, weight, partition):
        B, T, self.W = partition.shape
        items = partition.flatten(1)
        order = items.argsort(dim=1, stable=True)
        self.back = order.argsort(dim=1)
        self.token = order // self.W  # of each item
        self.weight = weight.flatten(1).gather(1, order)
        self.segment = torch.cat([torch.zeros_like(items[:, :T]), 1 + items.gather(1, order)], 1)
        self.T = T

    def rows(self, every, chosen, weighted=False):
        """[B, T, …] and [B, T, …] → [B, T + T·W, …]: `every` as it is, `chosen` of each item, times its weight if asked"""
        rows = self.at(chosen, self.token)
        if weighted:
            rows = rows * self.weight.view(self.weight.shape + (1,) * (rows.dim() - 2))
        return torch.cat([every, rows], 1)

    def split(self, o):
        """[B, T + T·W, …] → what every token read [B, T, …], what each item read, in the order of the tokens [B, T, W, …]"""
        return o[:, :self.T], self.at(o[:, self.T:], self.back).unflatten(1, (self.T, self.W))

    @staticmethod
    def at(x, index):
        return x.gather(1, index.view(index.shape + (1,) * (x.dim() - 2)).expand(index.shape + x.shape[2:]))


def balance_loss(e, partition):
    """(N/W) Σ_n f_n p_n: 1 if every partition is chosen as often as the others, up to N/W if it is always the same ones   (§11)"""
    N, W = e.shape[-1], partition.shape[-1]
    chosen = torch.zeros_like(e).scatter_(-1, partition, 1.0)
    return N / W * (chosen.mean((0, 1)) * e.mean((0, 1))).sum()


class MoM(nn.Module):
    """§3.8 (single_kv_proj): tokens are routed to the top-k of M memories, each a GDN over its own tokens; one more memory reads all."""

    def __init__(self, config):
        super().__init__()
        D, H = config["hidden_size"], config["num_heads"]
        self.H, self.K, self.V, self.topk = H, config["head_dim"], int(config["head_dim"] * config["expand_v"]), config["topk"]
        Dk, Dv = H * self.K, H * self.V
        self.gate = linear(D, config["num_memories"])
        self.q_proj = linear(D, Dk)
        self.shared_k, self.shared_v, self.shared_b, self.shared_a = linear(D, Dk), linear(D, Dv), linear(D, H), linear(D, H)
        self.A_log, self.dt_bias = delta_gate_parameters(H)
        self.q_conv1d, self.k_conv1d, self.v_conv1d = (ShortConvolution(c, config["conv_size"]) for c in (Dk, Dk, Dv))
        self.g_proj, self.o_norm, self.o_proj = linear(D, Dv), RMSNorm(self.V, config["norm_eps"]), linear(Dv, D)

    def forward(self, x):
        s = self.gate(x).float().softmax(-1)
        top = s.topk(self.topk, -1)
        self.balance = balance_loss(s, top.indices)
        weight = top.values / top.values.sum(-1, keepdim=True)
        routed = Routed(weight, top.indices)
        q, k, v, b, a = (routed.rows(y, y) for y in (self.q_proj(x), self.shared_k(x), self.shared_v(x), self.shared_b(x), self.shared_a(x)))
        # The convolution's neighbours are the tokens before in the same memory.   [A2]
        q, k, v = (heads(F.silu(conv(y, routed.segment)), self.H).float()
                   for conv, y in ((self.q_conv1d, q), (self.k_conv1d, k), (self.v_conv1d, v)))
        o = gated_delta_rule(l2_norm(q) / math.sqrt(self.K), l2_norm(k), v, delta_decay(a, self.A_log, self.dt_bias), b.float().sigmoid(),
                             routed.segment)
        shared, chosen = routed.split(o)
        o = shared + (weight[..., None, None] * chosen).sum(2)
        return self.o_proj((self.o_norm(o) * F.silu(heads(self.g_proj(x), self.H))).flatten(2))


class SSE(nn.Module):
    """§4.3: the shared partition and the W chosen ones of every token, as segments of one call of the memory"""

    def __init__(self, config):
        super().__init__()
        D, H, K = config["hidden_size"], config["num_heads"], config["head_dim"]
        V = int(K * config["expand_v"])
        self.config, self.H, self.K = config, H, K
        self.q_proj, self.k_proj, self.v_proj = linear(D, H * K), linear(D, H * K), linear(D, H * V)
        self.lora_q_proj, self.lora_k_proj = low_rank(D, V, H * K), low_rank(D, V, H * K)
        self.e_proj = linear(D, config["num_sparse_partition"])
        if config["linear_attn_type"] == "gla":
            self.gk_proj = nn.ModuleList(long_gate(low_rank(D, 16, H * K, bias=True)) for _ in range(2))
        else:
            self.a_proj, self.b_proj = linear(D, 2 * H), linear(D, 2 * H)
            self.A_log, self.dt_bias = delta_gate_parameters(2 * H)
        self.q_conv1d_shared, self.k_conv1d_shared = (ShortConvolution(H * K, config["conv_size"]) for _ in range(2))
        self.g_proj = low_rank(D, V, H * V)
        self.o_norm, self.o_proj = RMSNorm(V, config["norm_eps"]), linear(H * V, D)

    def forward(self, x):
        config, H = self.config, self.H
        q1, k1, v = self.q_proj(x), self.k_proj(x), heads(F.silu(self.v_proj(x)), H).float()
        if config["sparse_branch_after_conv"]:
            q1, k1 = self.q_conv1d_shared(q1), self.k_conv1d_shared(k1)
            q2, k2 = q1 + self.lora_q_proj(x), k1 + self.lora_k_proj(x)
        else:
            q2, k2 = q1 + self.lora_q_proj(x), k1 + self.lora_k_proj(x)
            q1, k1 = self.q_conv1d_shared(q1), self.k_conv1d_shared(k1)
        phi_q, phi_k = ((lambda y: y.softmax(-1)) if config[key] else F.silu for key in ("use_q_softmax", "use_k_softmax"))
        q1, q2 = (phi_q(heads(y, H).float()) for y in (q1, q2))
        k1, k2 = (phi_k(heads(y, H).float()) for y in (k1, k2))

        # e = softmax(e_proj x), T_t = its W largest
        e = self.e_proj(x).float().softmax(-1)
        top = e.topk(config["num_writer"], -1)
        self.balance = balance_loss(e, top.indices)
        routed = Routed(top.values, top.indices)
        scale = self.K ** -0.5
        if config["linear_attn_type"] == "gla":
            # S⁰ = diag(α⁰) S⁰ + k1ᵀ v;  n ∈ T_t: Sⁿ = diag(α^s) Sⁿ + e^n k2ᵀ v;  o = q1 S⁰ + Σ_{n∈T_t} e^n q2 Sⁿ
            g1, g2 = (F.logsigmoid(heads(proj(x), H).float()) / 16 for proj in self.gk_proj)
            q, k = routed.rows(q1, q2, weighted=True) * scale, routed.rows(k1, k2, weighted=True)
            o = decayed_outer_product(q, k, routed.rows(v, v), routed.rows(g1, g2), routed.segment)
        else:
            g1, g2 = delta_decay(self.a_proj(x), self.A_log, self.dt_bias).chunk(2, -1)
            b1, b2 = self.b_proj(x).float().sigmoid().chunk(2, -1)
            # post_l2: the gate scales the normalised q and k; before the norm (pre_l2) it would cancel.   [A7]
            weighted = config["sse_gdn_gate"] == "post_l2"
            q, k = routed.rows(l2_norm(q1), l2_norm(q2), weighted) * scale, routed.rows(l2_norm(k1), l2_norm(k2), weighted)
            o = gated_delta_rule(q, k, routed.rows(v, v), routed.rows(g1, g2), routed.rows(b1, b2), routed.segment)
        shared, chosen = routed.split(o)
        return self.o_proj((self.o_norm(shared + chosen.sum(2)) * F.silu(heads(self.g_proj(x), H))).flatten(2))


class Mamba2(nn.Module):
    """§3.9: S = α S + Bᵀ (dt x), y = C S + D x; no MLP around it"""

    def __init__(self, config):
        super().__init__()
        D, self.P, self.Ns = config["hidden_size"], config["head_dim"], config["state_size"]
        self.inner = config["expand"] * D
        self.H = H = self.inner // self.P
        self.in_proj = linear(D, 2 * self.inner + 2 * self.Ns + H)
        self.conv1d = ShortConvolution(self.inner + 2 * self.Ns, config["conv_kernel"], bias=True)
        self.A_log, self.dt_bias = delta_gate_parameters(H)
        self.D = nn.Parameter(torch.ones(H))
        self.norm, self.out_proj = RMSNorm(self.inner, config["norm_eps"]), linear(self.inner, D)

    def forward(self, x):
        z, xBC, dt = self.in_proj(x).split([self.inner, self.inner + 2 * self.Ns, self.H], -1)
        x, B, C = F.silu(self.conv1d(xBC)).float().split([self.inner, self.Ns, self.Ns], -1)
        x, dt = heads(x, self.H), F.softplus(dt.float() + self.dt_bias)
        B, C = (y[:, :, None].expand(-1, -1, self.H, -1) for y in (B, C))
        y = scalar_decay(C, B, x * dt[..., None], -self.A_log.exp() * dt) + self.D[:, None] * x
        return self.out_proj(self.norm(y.flatten(2) * F.silu(z)))


# ---- the stack --------------------------------------------------------------------------------------------------------------------------

MIXERS = {"transformer": SoftmaxAttention, "moba": MoBA, "nsa": NSA, "retnet": RetNet, "gla": GLA, "delta_net": DeltaNet,
          "gated_deltanet": GatedDeltaNet, "mom": MoM, "sse": SSE, "mamba2": Mamba2, "mamba": Mamba, "kda": KDA, "rwkv7": RWKV7, "hgrn2": HGRN2}


class Block(nn.Module):
    """x += mixer(norm x); x += mlp(norm x)   (§1.1)"""

    def __init__(self, config, softmax, dropout):
        super().__init__()
        D, eps = config["hidden_size"], config["norm_eps"]
        self.attn_norm, self.mlp_norm = RMSNorm(D, eps), RMSNorm(D, eps)
        self.attn = SoftmaxAttention({**config, **config["attn"]}) if softmax else MIXERS[config["model_type"]](config)
        self.mlp = SwiGLU(D, config["intermediate_size"])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, *beside):
        x = x + self.dropout(self.attn(self.attn_norm(x), *beside))
        return x + self.dropout(self.mlp(self.mlp_norm(x)))


class MambaBlock(nn.Module):
    def __init__(self, config, softmax, dropout):
        super().__init__()
        eps = config["norm_eps" if config["model_type"] == "mamba2" else "layer_norm_epsilon"]
        self.norm, self.mixer = RMSNorm(config["hidden_size"], eps), MIXERS[config["model_type"]](config)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.mixer(self.norm(x)))


BLOCKS = {"mamba": MambaBlock, "mamba2": MambaBlock, "rwkv7": RWKV7Block}


class Model(nn.Module):
    """ids [B, T] → logits [B, T, vocab]; the embedding is also the head"""

    def __init__(self, config, dropout=0.0):
        super().__init__()
        self.config = config
        D, L, kind = config["hidden_size"], config["num_hidden_layers"], config["model_type"]
        softmax_layers = (config.get("attn") or {}).get("layers", [])
        self.body, self.norm = ("backbone", "norm_f") if kind in ("mamba", "mamba2") else ("model", "norm")
        embeddings = nn.Embedding(config["vocab_size"], D)
        layers = [BLOCKS.get(kind, Block)({**config, "layer": i}, i in softmax_layers, dropout) for i in range(L)]
        norm = nn.LayerNorm(D, config["norm_eps"]) if kind == "rwkv7" else RMSNorm(D, config.get("norm_eps", config.get("layer_norm_epsilon")))
        stack = nn.ModuleDict({"embeddings": embeddings, "layers": nn.ModuleList(layers), self.norm: norm})
        if kind == "hgrn2":
            stack.register_parameter("lower_bounds", nn.Parameter(torch.zeros(L, D)))
        setattr(self, self.body, stack)
        self.reset()

    def reset(self):
        """Matrices N(0, 1/4 fan_in), embeddings N(0, 1/400); what writes to the residual stream smaller by sqrt(2 L)."""
        depth = 2 * self.config["num_hidden_layers"]
        for name, module in self.named_modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.05)
            if isinstance(module, nn.Linear):
                writes = name.split(".")[-1] in ("o_proj", "down_proj", "out_proj", "value")
                nn.init.normal_(module.weight, std=0.5 * module.in_features ** -0.5 * (depth ** -0.5 if writes else 1.0))

    def beside(self):
        """What each layer's mixer gets beside the stream: HGRN2 its bounds, RWKV-7 a list that layer 0 puts its values into"""
        kind, L = self.config["model_type"], self.config["num_hidden_layers"]
        if kind == "hgrn2":
            # lb = cumsum over layers of softmax_layers(lower_bounds), minus its first row   (§17.11)
            bounds = self.model.lower_bounds.softmax(0).cumsum(0)
            return [(bound,) for bound in bounds - bounds[0]]
        return [([],)] * L if kind == "rwkv7" else [()] * L

    def forward(self, ids):
        stack = getattr(self, self.body)
        x = stack["embeddings"](ids)
        if self.config["model_type"] == "rwkv7":
            x = stack["layers"][0].pre_norm(x)
        for layer, beside in zip(stack["layers"], self.beside()):
            x = layer(x, *beside)
        return F.linear(stack[self.norm](x), stack["embeddings"].weight)

    def balance(self):
        """The balance losses of the layers that route (spec §11), from the last forward pass"""
        return sum(m.balance for m in self.modules() if isinstance(m, (SSE, MoM)))

    def parameters_in_all(self):
        return sum(p.numel() for p in self.parameters())
