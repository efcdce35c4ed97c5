"""Softmax attention to all of the past, and to chosen blocks of it: MoBA and NSA.

Shapes: q [B, T, H, d]; k, v [B, T, H, d]; blocks b of `size` tokens, n of them. Blocks are chosen by masks over everything: as slow as plain
attention, and exact.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from parts import RMSNorm, heads, linear, low_rank, rope


def softmax_attention(q, k, v, reads=None):
    """o_t = softmax(q_t Kᵀ) V over s ≤ t, or over those s that `reads` [B, H, T, T] says; q is scaled by the caller"""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=reads, is_causal=reads is None, scale=1.0).transpose(1, 2)
    if reads is None:
        reads = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).tril()
    return ((q @ k.transpose(2, 3)).masked_fill(~reads, float("-inf")).softmax(-1) @ v).transpose(1, 2)


def block_means(x, size):
    """[B, T, H, d] → [B, n, H, d]; of the last block, where it is not full, nobody asks"""
    return F.pad(x, [0, 0, 0, 0, 0, -x.shape[1] % size]).unflatten(1, (-1, size)).mean(2)


def blocks_of(T, size, device):
    """Of every token its block, [T, 1]; the blocks [n]"""
    return torch.arange(T, device=device)[:, None] // size, torch.arange(-(-T // size), device=device)


def tokens_of(blocks, size):
    """[B, H, T, n], whether t reads a block → [B, H, T, T], whether it reads s, up to itself"""
    token = torch.arange(blocks.shape[2], device=blocks.device)
    return blocks[..., token // size] & (token <= token[:, None])


def best_of(likes, count):
    """[…, n] → bool: the `count` largest, ties to the earlier; −inf is none of them"""
    order = likes.sort(dim=-1, descending=True, stable=True).indices[..., :count]
    return torch.zeros_like(likes, dtype=torch.bool).scatter(-1, order, True) & (likes > float("-inf"))


def liked_blocks(q, k, size, topk):
    """[B, H, T, n]: t's own block, and those topk − 1 past blocks whose mean key q_t likes best   (§18.4)"""
    own, block = blocks_of(q.shape[1], size, q.device)
    likes = torch.einsum("bthd,bnhd->bhtn", q, block_means(k, size))
    return best_of(likes.masked_fill(block >= own, float("-inf")).masked_fill(block == own, float("inf")), topk)


def compressed_attention(q, k, v, size):
    """Softmax over the means of the blocks that are full: o [B, T, H, d], zero before the first is, and the weights [B, H, T, n]   (§18.3)"""
    own, block = blocks_of(q.shape[1] + 1, size, q.device)
    n = -(-q.shape[1] // size)
    full = block[:n] < own[1:]  # (b + 1) size − 1 ≤ t
    scores = torch.einsum("bthd,bnhd->bhtn", q, block_means(k, size))
    weights = scores.masked_fill(~full, -1e30).softmax(-1) * full
    return torch.einsum("bhtn,bnhd->bthd", weights, block_means(v, size)), weights


def important_blocks(importance, size, count):
    """[B, H, T, n] → bool: the first block, t's own and the one before it, then the most important of the full ones, `count` in all   (§18.3)"""
    own, block = blocks_of(importance.shape[2], size, importance.device)
    always = (block == 0) | (block == own) | (block == own - 1)
    return best_of(importance.masked_fill(block >= own, float("-inf")).masked_fill(always, float("inf")), count)


class SoftmaxAttention(nn.Module):
    """§3.1"""

    def __init__(self, config):
        super().__init__()
        D, self.H = config["hidden_size"], config["num_heads"]
        self.theta = config.get("rope_theta", 10000.0)
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (linear(D, D) for _ in range(4))

    def forward(self, x):
        q, k, v = (heads(proj(x), self.H) for proj in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rope(q, self.theta) / math.sqrt(q.shape[-1]), rope(k, self.theta)
        return self.o_proj(softmax_attention(q, k, v).flatten(2))


class MoBA(SoftmaxAttention):
    """§18.4: every head attends to its own block and to those of the past whose mean key its query likes best; a gated norm behind"""

    def __init__(self, config):
        super().__init__(config)
        D, d = config["hidden_size"], config["hidden_size"] // self.H
        self.size, self.topk = config["moba_chunk_size"], config["moba_topk"]
        self.o_norm, self.g_proj = RMSNorm(d, 1e-6), low_rank(D, d, D)

    def forward(self, x):
        q, k, v = (heads(proj(x), self.H).float() for proj in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rope(q, self.theta), rope(k, self.theta)
        # One block is all: the reference takes that for plain attention.
        reads = tokens_of(liked_blocks(q, k, self.size, self.topk), self.size) if self.topk > 1 else None
        o = softmax_attention(q / math.sqrt(q.shape[-1]), k, v, reads)
        return self.o_proj((self.o_norm(o) * heads(self.g_proj(x), self.H).sigmoid()).flatten(2))


class NSA(nn.Module):
    """§18.3: attention to means of blocks, to the blocks that matter most in it, and to a window, each with a gate of its own"""

    def __init__(self, config):
        super().__init__()
        D, d, self.H, self.Hk = (config[key] for key in ("hidden_size", "head_dim", "num_heads", "num_kv_heads"))
        self.size, self.count, self.window, self.theta = (config[key] for key in ("block_size", "block_counts", "window_size", "rope_theta"))
        self.q_proj, self.k_proj, self.v_proj = linear(D, self.H * d), linear(D, self.Hk * d), linear(D, self.Hk * d)
        self.g_proj, self.o_proj = linear(D, 3 * self.H), linear(self.H * d, D)

    def forward(self, x):
        T, group = x.shape[1], self.H // self.Hk
        q, k, v = (heads(proj(x), H).float() for proj, H in ((self.q_proj, self.H), (self.k_proj, self.Hk), (self.v_proj, self.Hk)))
        q = rope(q, self.theta) / math.sqrt(q.shape[-1])
        k, v = (each.repeat_interleave(group, 2) for each in (rope(k, self.theta), v))
        means, weights = compressed_attention(q, k, v, self.size)
        # The query heads of one key head choose together.
        importance = weights.unflatten(1, (self.Hk, group)).mean(2)
        chosen = tokens_of(important_blocks(importance, self.size, self.count), self.size).repeat_interleave(group, 1)
        back = torch.arange(T, device=x.device)[:, None] - torch.arange(T, device=x.device)
        window = ((back >= 0) & (back < self.window)).expand_as(chosen)
        reads = means, softmax_attention(q, k, v, chosen), softmax_attention(q, k, v, window)
        gates = heads(self.g_proj(x), self.H).float().sigmoid().unbind(-1)
        return self.o_proj(sum(gate[..., None] * o for gate, o in zip(gates, reads)).flatten(2))
