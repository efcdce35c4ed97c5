"""Tests of the memories and of attention against plain loops: python3 test_memories.py; test_recipes.py runs them too."""

import itertools
import math
import unittest

import torch
from torch.autograd import gradcheck

import attention
import memories


def step_by_step(q, k, v, log_decay, beta=None, segment=None):
    """The recurrences as they are written; log_decay [B, T, H], [B, T, H, K] or [B, T, H, K, V]. A state is zero where a segment begins."""
    while log_decay.dim() < 5:
        log_decay = log_decay[..., None]
    S, o = torch.zeros_like(k[:, 0, :, :, None] * v[:, 0, :, None]), []
    for t in range(q.shape[1]):
        if segment is not None and t:
            S = S * (segment[:, t] == segment[:, t - 1])[:, None, None, None]
        S, write = log_decay[:, t].exp() * S, v[:, t]
        if beta is not None:
            write = beta[:, t, :, None] * (write - (k[:, t, :, None] @ S)[:, :, 0])
        S = S + k[:, t, ..., None] * write[:, :, None]
        o.append((q[:, t, :, None] @ S)[:, :, 0])
    return torch.stack(o, 1)


def channel_steps(q, k, v, log_decay, read, remove):
    """S̄ = diag(α) S;  S = S̄ − removeᵀ (read S̄) + kᵀ v"""
    S, o = torch.zeros_like(k[:, 0, :, :, None] * v[:, 0, :, None]), []
    for t in range(q.shape[1]):
        S = log_decay[:, t, ..., None].exp() * S
        S = S - remove[:, t, ..., None] * (read[:, t, :, None] @ S) + k[:, t, ..., None] * v[:, t, :, None]
        o.append((q[:, t, :, None] @ S)[:, :, 0])
    return torch.stack(o, 1)


def drawn(T, K, V, decay, channels=False, cells=False, B=2, H=2):
    """q, k (length 1), v, log decays, beta in (0, 1), in float64. decay: "none", "mild", "strong" (−50 a step) or "mixed" (0 … −50)"""
    q, k, v = torch.randn(B, T, H, K), torch.randn(B, T, H, K), torch.randn(B, T, H, V)
    u = torch.rand(B, T, H, *((K, V) if cells else (K,) if channels else ()))
    log_decay = {"none": 0 * u, "mild": -0.2 * u, "strong": 0 * u - 50, "mixed": -50 * u ** 8 * (u > 0.3)}[decay]
    return [x.double() for x in (q, k / k.norm(dim=-1, keepdim=True), v, log_decay, torch.rand(B, T, H))]


DECAYS = ("none", "mild", "strong", "mixed")
LENGTHS = (1, 63, 64, 130)


class NearLoops(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def assert_near(self, got, wanted, tolerance):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLessEqual(float((got - wanted).abs().max() / wanted.abs().max().clamp(min=1e-3)), tolerance)


class Memories(NearLoops):
    def compare(self, memory, inputs, segment=None, loop=step_by_step, **chunks):
        """Outputs and gradients in float64, outputs also in float32, which is what training has."""
        loop_inputs, chunk_inputs = ([x.clone().requires_grad_() for x in inputs] for _ in range(2))
        wanted = loop(*loop_inputs) if segment is None else loop(*loop_inputs, segment=segment)
        got = memory(*chunk_inputs, **chunks)
        self.assert_near(got, wanted, 1e-11)
        weight = torch.randn_like(wanted)
        for mine, loops in zip(torch.autograd.grad((got * weight).sum(), chunk_inputs),
                               torch.autograd.grad((wanted * weight).sum(), loop_inputs)):
            self.assert_near(mine, loops, 1e-10)
        self.assert_near(memory(*[x.float() for x in inputs], **chunks).double(), wanted, 5e-4)

    def test_decayed_outer_product(self):
        for decay in DECAYS:
            for T in LENGTHS:
                for K, V in ((16, 16), (8, 24)):
                    for C, c in ((32, 8), (16, 4), (8, 8), (128, 16)):
                        with self.subTest(f"{decay} T={T} K={K} V={V} C={C} c={c}"):
                            self.compare(memories.decayed_outer_product, drawn(T, K, V, decay, channels=True)[:4], C=C, c=c)

    def test_scalar_decay(self):
        for decay in DECAYS:
            for T in LENGTHS:
                for K, V in ((16, 16), (8, 24)):
                    for C in (8, 50, 64):
                        with self.subTest(f"{decay} T={T} K={K} V={V} C={C}"):
                            self.compare(memories.scalar_decay, drawn(T, K, V, decay)[:4], C=C)

    def test_gated_delta_rule(self):
        for decay in DECAYS:
            for T in LENGTHS:
                for K, V in ((16, 16), (8, 24)):
                    for C in (16, 32, 64):
                        with self.subTest(f"{decay} T={T} K={K} V={V} C={C}"):
                            self.compare(memories.gated_delta_rule, drawn(T, K, V, decay), C=C)

    def test_delta_rule_by_channel(self):
        for decay in DECAYS:
            for T in LENGTHS:
                for K, V in ((16, 16), (8, 24)):
                    q, k, v, log_decay, beta = drawn(T, K, V, decay, channels=True)
                    for C, c in ((32, 8), (16, 4), (64, 16)):
                        with self.subTest(f"{decay} T={T} K={K} V={V} C={C} c={c}"):
                            # What is read, removed and written along are three vectors (RWKV-7) or one (KDA).
                            key, removed = torch.randn_like(k), torch.rand_like(k) * k
                            self.compare(memories.delta_rule_by_channel, [q, key, v, log_decay, k, removed], loop=channel_steps, C=C, c=c)
                            written = beta[..., None] * k
                            got = memories.delta_rule_by_channel(q, written, v, log_decay, k, written, C=C, c=c)
                            self.assert_near(got, step_by_step(q, k, v, log_decay, beta), 1e-11)

    def test_selective_scan(self):
        for decay in DECAYS:
            for T in LENGTHS:
                for K, V in ((16, 8), (4, 24)):
                    with self.subTest(f"{decay} T={T} K={K} V={V}"):
                        self.compare(memories.selective_scan, drawn(T, K, V, decay, cells=True)[:4])

    def test_linear_scan(self):
        for T in (1, 7, 8, 9, 40):
            a, b = torch.rand(2, T, 3, dtype=torch.float64), torch.randn(2, T, 3, dtype=torch.float64)
            h = [b[:, 0]]
            for t in range(1, T):
                h.append(a[:, t] * h[-1] + b[:, t])
            for C in (1, 8, 16):
                self.assert_near(memories.linear_scan(a, b, C), torch.stack(h, 1), 1e-12)

    def test_segments(self):
        """Sequences packed into a row: of one token, within a chunk, over many chunks, ending where a chunk ends; in each row others."""
        T = 200
        lengths = ([1, 31, 32, 1, 100, 3, 32], [150, 16, 1, 1, 32])
        segment = torch.stack([torch.arange(len(row)).repeat_interleave(torch.tensor(row)) for row in lengths])
        for decay in DECAYS:
            for C in (16, 64):
                with self.subTest(f"{decay} C={C}"):
                    def packed(memory):
                        return lambda *inputs, C: memory(*inputs, segment=segment, C=C)

                    self.compare(packed(memories.decayed_outer_product), drawn(T, 8, 8, decay, channels=True)[:4], segment, C=C)
                    self.compare(packed(memories.gated_delta_rule), drawn(T, 8, 8, decay), segment, C=C)

    def test_gradients(self):
        def check(memory, *inputs):
            self.assertTrue(gradcheck(memory, [x.requires_grad_() for x in inputs]))

        small = {"B": 1, "H": 1}
        # Few chunks are looped over, more than eight are one product.
        for T in (5, 19):
            check(lambda *x: memories.decayed_outer_product(*x, C=2, c=2), *drawn(T, 3, 2, "mild", channels=True, **small)[:4])
            check(lambda *x: memories.decayed_outer_product(*x, C=4, c=2), *drawn(T, 3, 2, "strong", channels=True, **small)[:4])
            check(lambda *x: memories.scalar_decay(*x, C=2), *drawn(T, 3, 2, "mild", **small)[:4])
            check(lambda *x: memories.gated_delta_rule(*x, C=16), *drawn(T, 3, 2, "mild", **small))
            check(memories.selective_scan, *drawn(T, 3, 2, "mild", cells=True, **small)[:4])
            q, k, v, log_decay, _ = drawn(T, 3, 2, "mild", channels=True, **small)
            check(lambda *x: memories.delta_rule_by_channel(*x, C=16, c=4), q, k, v, log_decay, k.clone(), 0.5 * k)

    def test_unit_lower_inverse(self):
        for C in (16, 32, 64, 128):
            A = (0.5 * torch.randn(2, 3, C, C, dtype=torch.float64)).tril(-1) / math.sqrt(C)
            identity = torch.eye(C, dtype=torch.float64).expand_as(A)
            self.assert_near(memories.UnitLowerInverse.apply(A) @ (identity + A), identity, 1e-12)
        for C in (16, 32):
            A = 0.1 * torch.randn(1, C, C, dtype=torch.float64)
            self.assertTrue(gradcheck(lambda x: memories.UnitLowerInverse.apply(x.tril(-1)), [A.requires_grad_()]))


class Attention(NearLoops):
    def test_softmax_attention(self):
        for T in LENGTHS:
            q, k, v = drawn(T, 16, 24, "none")[:3]
            weights = [torch.einsum("bhk,bshk->bhs", q[:, t], k[:, :t + 1]).softmax(-1) for t in range(T)]
            wanted = torch.stack([torch.einsum("bhs,bshv->bhv", w, v[:, :t + 1]) for t, w in enumerate(weights)], 1)
            self.assert_near(attention.softmax_attention(q, k, v), wanted, 1e-11)

    def test_chosen_tokens(self):
        q, k, v = drawn(20, 8, 12, "none")[:3]
        reads = (torch.rand(2, 2, 20, 20) < 0.3).tril() | torch.eye(20, dtype=torch.bool)
        weights = torch.einsum("bthk,bshk->bhts", q, k).exp() * reads
        wanted = torch.einsum("bhts,bshv->bthv", weights / weights.sum(-1, keepdim=True), v)
        self.assert_near(attention.softmax_attention(q, k, v, reads), wanted, 1e-11)

    def compare_blocks(self, got, wanted, size):
        """`wanted`: blocks by sequence, head and token. What of them is read goes up to the token itself."""
        B, H, T, n = got.shape
        tokens = attention.tokens_of(got, size)
        for b, h, t in itertools.product(range(B), range(H), range(T)):
            blocks = wanted(b, h, t)
            self.assertEqual(set(got[b, h, t].nonzero()[:, 0].tolist()), blocks)
            self.assertEqual(set(tokens[b, h, t].nonzero()[:, 0].tolist()), {s for s in range(t + 1) if s // size in blocks})

    def test_liked_blocks(self):
        """MoBA: of every query its own block and the best of the full ones before it"""
        for T, size, topk in ((1, 4, 3), (4, 4, 1), (15, 4, 2), (15, 4, 3), (40, 8, 2), (40, 8, 9)):
            q, k = drawn(T, 5, 1, "none")[:2]

            def wanted(b, h, t):
                likes = {i: float(q[b, t, h] @ k[b, i * size:(i + 1) * size, h].mean(0)) for i in range(t // size)}
                return {t // size, *sorted(likes, key=likes.get)[::-1][:topk - 1]}

            self.compare_blocks(attention.liked_blocks(q, k, size, topk), wanted, size)

    def test_important_blocks(self):
        """NSA: the first, a token's own, the one before it, and the most important of the others; of equals the earlier"""
        for T, size, count in ((1, 4, 3), (15, 4, 3), (30, 4, 4), (40, 4, 5), (40, 8, 9)):
            importance = torch.randint(3, (2, 2, T, -(-T // size))).double()

            def wanted(b, h, t):
                own = t // size
                always = {0, own, max(0, own - 1)}
                others = sorted((-float(importance[b, h, t, i]), i) for i in range(own) if i not in always)
                return always | {i for _, i in others[:count - 3]}

            self.compare_blocks(attention.important_blocks(importance, size, count), wanted, size)

    def test_compressed_attention(self):
        for T, size in ((1, 4), (3, 4), (4, 4), (17, 4), (40, 16)):
            q, k, v = drawn(T, 6, 6, "none")[:3]
            got, weights = attention.compressed_attention(q, k, v, size)
            wanted = torch.zeros_like(q)
            for t in range(T):
                full = (t + 1) // size
                self.assertEqual(int((weights[:, :, t] > 0).sum()), full * 4)
                if full:
                    k_mean, v_mean = (x[:, :full * size].unflatten(1, (full, size)).mean(2) for x in (k, v))
                    wanted[:, t] = torch.einsum("bhn,bnhd->bhd", torch.einsum("bhd,bnhd->bhn", q[:, t], k_mean).softmax(-1), v_mean)
            self.assert_near(got, wanted, 1e-11)


if __name__ == "__main__":
    unittest.main()
