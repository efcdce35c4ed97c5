"""Recurrent families beyond the first set: Mamba-1, RWKV-7 and HGRN2, as the specification writes them (../../engine/models.md §17)."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from memories import decayed_outer_product, delta_rule_by_channel, selective_scan
from parts import RMSNorm, ShortConvolution, heads, l2_norm, linear, time_steps


class Mamba(nn.Module):
    """§17.1: S[n,c] = exp(Δ_c A_cn) S[n,c] + B_n Δ_c x_c, y_c = Σ_n C_n S[n,c] + D_c x_c; no MLP around it"""

    def __init__(self, config):
        super().__init__()
        D, self.N, self.R = config["hidden_size"], config["state_size"], config["time_step_rank"]
        self.inner = inner = config["expand"] * D
        self.in_proj, self.conv1d = linear(D, 2 * inner), ShortConvolution(inner, config["conv_kernel"], bias=True)
        self.x_proj, self.dt_proj = linear(inner, self.R + 2 * self.N), linear(self.R, inner, bias=True)
        with torch.no_grad():
            self.dt_proj.bias.copy_(time_steps(inner))
        # A_cn = −1 … −N: of every channel a bank of time constants
        self.A_log = nn.Parameter(torch.arange(1.0, self.N + 1).log().repeat(inner, 1))
        self.D, self.out_proj = nn.Parameter(torch.ones(inner)), linear(inner, D)

    def forward(self, x):
        x, z = self.in_proj(x).chunk(2, -1)
        x = F.silu(self.conv1d(x)).float()
        r, B, C = self.x_proj(x).float().split([self.R, self.N, self.N], -1)
        dt = F.softplus(self.dt_proj(r).float())
        log_decay = dt[..., None, :] * -self.A_log.exp().t()  # [B, T, N, inner]
        y = selective_scan(*(each[:, :, None] for each in (C, B, dt * x, log_decay)))[:, :, 0]
        return self.out_proj((y + self.D * x) * F.silu(z))


class HGRN2(nn.Module):
    """§17.11: S = diag(α) S + (1 − α)ᵀ v, α = lb + (1 − lb) σ(f), the bound lb rising from layer to layer"""

    def __init__(self, config):
        super().__init__()
        D, K = config["hidden_size"], config["expand_ratio"]
        self.H, self.K, self.first = config["num_heads"], K, config["layer"] == 0
        self.q_proj, self.f_proj, self.i_proj = linear(D, self.H * K), linear(D, self.H * K), linear(D, D)
        self.q_conv1d, self.f_conv1d, self.i_conv1d = (ShortConvolution(c, config["conv_size"]) for c in (self.H * K, self.H * K, D))
        self.g_norm, self.o_proj = RMSNorm(D, 1e-5), linear(D, D)

    def forward(self, x, bound):
        pairs = (self.q_proj, self.q_conv1d), (self.f_proj, self.f_conv1d), (self.i_proj, self.i_conv1d)
        q, f, v = (heads(conv(proj(x)), self.H).float() for proj, conv in pairs)
        # k = 1 − α = (1 − lb) σ(−f);  lb of layer 0 is 0
        k = (1 - heads(bound, self.H)) * (-f).sigmoid()
        log_decay = F.logsigmoid(f) if self.first else torch.log1p(-k)
        o = decayed_outer_product(F.silu(q) / math.sqrt(self.K), k, v, log_decay)
        return self.o_proj(self.g_norm(o.flatten(2)))


def token_shift(x):
    """δ_t = x_{t−1} − x_t with x_{−1} = 0   (§17.10)"""
    return F.pad(x, [0, 0, 1, -1]) - x


class LoRA(nn.Module):
    def __init__(self, D, rank, act, bias=None):
        super().__init__()
        self.lora = nn.Sequential(linear(D, rank), act, linear(rank, D, bias is not None))
        if bias is not None:
            with torch.no_grad():
                self.lora[2].bias.copy_(bias)

    def forward(self, x):
        return self.lora(x)


class RWKV7(nn.Module):
    """§17.10: S = diag(w) S − (κ̂ ⊙ a)ᵀ (κ̂ S) + kᵀ v, κ̂ reading before the decay; values are mixed with those of layer 0"""

    # How much of the token before goes into each: 1 − (i/D)^p over the channels i, p smaller in higher layers
    SHIFTS = {"r": 0.2, "w": 0.9, "k": 0.7, "v": 0.7, "a": 0.9, "g": 0.2}

    def __init__(self, config):
        super().__init__()
        D, self.K = config["hidden_size"], config["head_dim"]
        self.H = D // self.K
        for name, power in self.SHIFTS.items():
            power *= 1 - config["layer"] / config["num_hidden_layers"]
            setattr(self, f"x_{name}", nn.Parameter(1 - (torch.arange(D) / D).view(1, 1, D) ** power))
        self.r_proj, self.k_proj, self.v_proj, self.o_proj = (linear(D, D) for _ in range(4))
        # w between short and long; a and the share of the first values begin at a half
        self.w_lora = LoRA(D, config["decay_low_rank_dim"], nn.Tanh(), torch.empty(D).uniform_(-6, 0))
        self.a_lora = LoRA(D, config["a_low_rank_dim"], nn.Identity(), torch.zeros(D))
        self.v_lora = LoRA(D, config["v_low_rank_dim"], nn.Identity(), torch.zeros(D)) if config["layer"] else None
        self.g_lora = LoRA(D, config["gate_low_rank_dim"], nn.Sigmoid())
        self.k_k, self.k_a, self.r_k = nn.Parameter(torch.ones(D)), nn.Parameter(torch.ones(D)), nn.Parameter(torch.zeros(self.H, self.K))
        self.g_norm = nn.GroupNorm(self.H, D, self.K * config["norm_eps"])

    def forward(self, x, first_values):
        delta = token_shift(x)
        x_r, x_w, x_k, x_v, x_a, x_g = (x + delta * getattr(self, f"x_{name}") for name in self.SHIFTS)
        r, k, v = self.r_proj(x_r), self.k_proj(x_k).float(), self.v_proj(x_v).float()
        log_decay = -math.exp(-0.5) * self.w_lora(x_w).float().sigmoid()
        if self.v_lora is None:
            first_values.append(v)
        else:
            v = v + (first_values[0] - v) * self.v_lora(x_v).float().sigmoid()
        a = self.a_lora(x_a).float().sigmoid()
        erase = l2_norm(heads(k * self.k_k, self.H))  # κ̂
        k = k * (1 + (a - 1) * self.k_a)
        r, k, v, log_decay, a = (heads(each.float(), self.H) for each in (r, k, v, log_decay, a))
        # The memory reads behind the decay: κ̂ S_{t−1} = (κ̂ ⊘ w) diag(w) S_{t−1}, and w > 0.545.
        o = delta_rule_by_channel(r, k, v, log_decay, read=erase * (-log_decay).exp(), remove=erase * a)
        o = self.g_norm(o.flatten(0, 1).flatten(1)).view(x.shape) + ((r * k * self.r_k).sum(-1, keepdim=True) * v).flatten(2)
        return self.o_proj(o * self.g_lora(x_g))


class ChannelMix(nn.Module):
    """value( relu(key(x + δ ⊙ x_k))² )"""

    def __init__(self, config):
        super().__init__()
        D, L, i = config["hidden_size"], config["num_hidden_layers"], config["layer"]
        self.x_k = nn.Parameter(1 - (torch.arange(D) / D) ** ((1 - i / L) ** 4))
        self.key, self.value = linear(D, config["intermediate_size"]), linear(config["intermediate_size"], D)

    def forward(self, x):
        return self.value(F.relu(self.key(x + token_shift(x) * self.x_k)).square())


class RWKV7Block(nn.Module):
    """x += attn(LayerNorm x); x += ffn(LayerNorm x)"""

    def __init__(self, config, softmax, dropout):
        super().__init__()
        D, eps = config["hidden_size"], config["norm_eps"]
        self.pre_norm = nn.LayerNorm(D, eps) if config["layer"] == 0 else None  # of the embedding: the model applies it
        self.attn_norm, self.ffn_norm = nn.LayerNorm(D, eps), nn.LayerNorm(D, eps)
        self.attn, self.ffn = RWKV7(config), ChannelMix(config)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, first_values):
        x = x + self.dropout(self.attn(self.attn_norm(x), first_values))
        return x + self.dropout(self.ffn(self.ffn_norm(x)))
