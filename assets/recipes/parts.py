"""What mixers and blocks are made of.

Letters: B sequences, T tokens, D hidden_size, H heads, K and V the key and value width of a head.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


def linear(inputs, outputs, bias=False):
    return nn.Linear(inputs, outputs, bias=bias)


def low_rank(inputs, rank, outputs, bias=False):
    return nn.Sequential(linear(inputs, rank), linear(rank, outputs, bias))


def heads(x, H):
    """[B, T, H·d] → [B, T, H, d], head-major"""
    return x.unflatten(-1, (H, -1))


def l2_norm(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def rope(x, base=10000.0):
    """Rotate-half over all channels of x [B, T, H, d], positions 0 … T − 1   (§1.6)"""
    T, d = x.shape[1], x.shape[-1]
    angle = torch.arange(T, device=x.device)[:, None] * base ** (-torch.arange(0, d, 2, device=x.device) / d)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class ShortConvolution(nn.Module):
    """y[t] = Σ_j weight[j] · x[t − (w−1) + j], per channel, zeros before the start   (§1.5)"""

    def __init__(self, channels, width, bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, width).uniform_(-1, 1) / math.sqrt(width))
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None

    def forward(self, x, segment=None):
        T, w = x.shape[1], self.weight.shape[-1]
        padded = F.pad(x, [0, 0, w - 1, 0])
        taps = [padded[:, j:j + T] * self.weight[:, 0, j] for j in range(w)]
        if segment is not None:
            same = F.pad(segment, [w - 1, 0], value=-1)
            taps = [tap * (same[:, j:j + T] == segment)[..., None] for j, tap in enumerate(taps)]
        return sum(taps) if self.bias is None else sum(taps) + self.bias


class SwiGLU(nn.Module):
    def __init__(self, D, inner):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = linear(D, inner), linear(D, inner), linear(inner, D)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def long_gate(proj, low=0.0, high=6.0):
    """Forget gates begin between short and long: bias ~ U(low, high)."""
    nn.init.uniform_(proj[1].bias, low, high)
    return proj


def delta_decay(a, A_log, dt_bias):
    """log α = −exp(A_log) · softplus(a + dt_bias)"""
    return -A_log.exp() * F.softplus(a.float() + dt_bias)


def time_steps(count):
    """dt_bias with softplus(dt_bias) log-uniform in [0.001, 0.1]"""
    dt = torch.empty(count).uniform_(math.log(0.001), math.log(0.1)).exp()
    return dt + torch.log(-torch.expm1(-dt))


def delta_gate_parameters(H, channels=1):
    """A_log [H], dt_bias [H·channels]: A ~ U(0.01, 1), long memories to begin with"""
    dt_bias = nn.Parameter(time_steps(H * channels))
    return nn.Parameter(torch.empty(H).uniform_(0.01, 1).log()), dt_bias
