"""The memories in chunk form: a chunk of C tokens inside itself as masked attention, chunks to one another through their states.

Shapes: q, k [B, T, H, K]; v [B, T, H, V]; log decays [B, T, H, K] (per channel), [B, T, H] (per head) or [B, T, H, K, V] (per cell); beta
[B, T, H]. Result [B, T, H, V].
`segment` [B, T]: for rows that hold several sequences, see Segments. States begin at zero; the decay comes first, then the write, then the
read. No scale is applied to q.
"""

import torch
import torch.nn.functional as F


def chunked(x, C):
    """[B, T, H, …] → [B, H, N, C, …], T filled up with zeros to N·C"""
    B, T = x.shape[:2]
    fill = -T % C
    if fill:
        x = F.pad(x, [0, 0] * (x.dim() - 2) + [0, fill])
    return x.unflatten(1, ((T + fill) // C, C)).movedim(3, 1)


def whole(x, T):
    """[B, H, N, C, V] → [B, T, H, V]"""
    return x.movedim(1, 3).flatten(1, 2)[:, :T]


class Segments:
    """Which tokens see which where sequences lie one after another in a row (spec §10): `segment` [B, T] says which sequence a token is of,
    equal ones side by side. Masks of [B, 1, N, …] over chunks; without segments every mask is 1."""

    def __init__(self, segment, C):
        if segment is None:
            self.same = self.reads = self.stays = self.carries = self.reaches = 1
            return
        s = chunked(segment[..., None], C)
        last = s[..., -1]
        before = F.pad(last, [1, -1], value=-1)  # the segment that a chunk begins in the middle of
        self.same = s[..., :, None] == s[..., None, :]  # i and j are of one sequence
        self.reads = (s == before[..., None])[..., None]  # the token is of the sequence whose state enters the chunk
        self.stays = (s == last[..., None])[..., None]  # … whose state leaves it
        self.carries = (last == before)[..., None, None]  # the state that enters is the state that leaves
        self.reaches = (before[..., :, None] == last[..., None, :])[:, :, None]  # what chunk m wrote is there when n begins


def between_chunks(total, written, segments):
    """The state before each chunk: S_n = Σ_{m<n} exp(total_{m+1} + … + total_{n−1}) ⊙ written_m.

    total [B, H, N, K or 1]: the log decay of a whole chunk; written [B, H, N, K, V]."""
    N = total.shape[2]
    if N <= 8:
        decay = total[..., None].exp() * segments.carries
        states = [torch.zeros_like(written[:, :, 0])]
        for n in range(N - 1):
            states.append(decay[:, :, n] * states[-1] + written[:, :, n])
        return torch.stack(states, 2)
    E = total.cumsum(2).transpose(2, 3)  # [B, H, K, N]
    before = F.pad(E, [1, -1])  # Σ of the chunks before n
    exponent = before[..., :, None] - E[..., None, :]
    earlier = torch.ones(N, N, dtype=torch.bool, device=total.device).tril(-1)
    D = exponent.masked_fill(~earlier, float("-inf")).exp() * segments.reaches  # [B, H, K, n, m]
    return (D @ written.transpose(2, 3)).transpose(2, 3)


def decayed_outer_product(q, k, v, log_decay, segment=None, C=32, c=8):
    """S_t = diag(exp(log_decay_t)) S_{t−1} + k_tᵀ v_t,  o_t = q_t S_t   (spec §9.3; GLA, SSE-GLA, row-sparse, HGRN2)

    Inside a chunk in blocks of c: every exponent is ≤ 0, however strong the decay."""
    T = q.shape[1]
    segments = Segments(segment, C)
    q, k, v, g = (chunked(x, C) for x in (q, k, v, log_decay))
    G = g.cumsum(3)
    total = G[:, :, :, -1]
    S = between_chunks(total, (k * (total[:, :, :, None] - G).exp() * segments.stays).transpose(3, 4) @ v, segments)
    o = (q * G.exp() * segments.reads) @ S

    return whole(o + (decayed_scores(q, k, G, c) * segments.same) @ v, T)


def decayed_scores(q, k, G, c):
    """A_ij = Σ_r q_ir k_jr e^{G_ir − G_jr} for j ≤ i, else 0;  q, k, G [..., C, K] → [..., C, C], in blocks of c rows"""
    C = G.shape[-2]
    # Block I reads the blocks before it through its first row: A_IJ = (Q_I e^{G_I − g*}) (K_J e^{g* − G_J})ᵀ
    q_I, k_I, G_I = (x.unflatten(-2, (C // c, c)) for x in (q, k, G))
    first = G_I[..., :1, :]
    block = torch.arange(C, device=q.device) // c
    earlier = block[None] < torch.arange(C // c, device=q.device)[:, None]  # [blocks, C]
    k_before = k[..., None, :, :] * (first - G[..., None, :, :]).clamp(max=0).exp() * earlier[..., None]
    A = (q_I * (G_I - first).exp()) @ k_before.transpose(-1, -2)
    # … and itself directly: A_ij = Σ_r q_ir k_jr e^{G_ir − G_jr}
    decay = (G_I[..., :, None, :] - G_I[..., None, :, :]).clamp(max=0).exp()
    itself = (q_I[..., :, None, :] * k_I[..., None, :, :] * decay).sum(-1).tril()
    A.unflatten(-1, (C // c, c)).diagonal(dim1=-4, dim2=-2).add_(itself.movedim(-3, -1))
    return A.flatten(-3, -2)


def decay_mask(G):
    """Γ_ij = exp(G_i − G_j) for i ≥ j, else 0;  G [..., C] → [..., C, C]   (spec §9.2)"""
    lower = torch.ones(G.shape[-1], G.shape[-1], dtype=torch.bool, device=G.device).tril()
    return (G[..., :, None] - G[..., None, :]).masked_fill(~lower, float("-inf")).exp()


def scalar_decay(q, k, v, log_decay, C=64):
    """The same with one decay a head   (spec §9.2; RetNet, Mamba-2)"""
    T = q.shape[1]
    q, k, v = (chunked(x, C) for x in (q, k, v))
    G = chunked(log_decay, C).cumsum(3)
    total = G[..., -1:]
    A = (q @ k.transpose(3, 4)) * decay_mask(G)
    S = between_chunks(total, (k * (total - G).exp()[..., None]).transpose(3, 4) @ v, Segments(None, C))
    return whole(A @ v + (q * G.exp()[..., None]) @ S, T)


class UnitLowerInverse(torch.autograd.Function):
    """(I + A)⁻¹ for strictly lower triangular A [..., C, C], C = 16·2^i: blocks of 16 by repeated squaring, then merged."""

    @staticmethod
    def forward(ctx, A):
        C = A.shape[-1]
        M = inverse_of_blocks(A, 16)
        size = 16
        while size < C:
            # [[P, 0], [X, Q]]⁻¹ = [[P⁻¹, 0], [−Q⁻¹ X P⁻¹, Q⁻¹]]
            blocks = A.unflatten(-2, (-1, 2, size)).unflatten(-1, (-1, 2, size))
            X = torch.stack([blocks[..., i, 1, :, i, 0, :] for i in range(C // (2 * size))], -3)
            P, Q = M[..., 0::2, :, :], M[..., 1::2, :, :]
            top = torch.cat([P, torch.zeros_like(P)], -1)
            M = torch.cat([top, torch.cat([-Q @ X @ P, Q], -1)], -2)
            size *= 2
        M = M.squeeze(-3)
        ctx.save_for_backward(M)
        return M

    @staticmethod
    def backward(ctx, gradient):
        (M,) = ctx.saved_tensors
        Mt = M.transpose(-1, -2)
        return -(Mt @ gradient @ Mt).tril(-1)


def inverse_of_blocks(A, size):
    """(I + A_ii)⁻¹ of the diagonal blocks [..., C/size, size, size]: (I + L)(I + L²)(I + L⁴)… with L = −A_ii."""
    n = A.shape[-1] // size
    L = -torch.stack([A[..., i * size:(i + 1) * size, i * size:(i + 1) * size] for i in range(n)], -3)
    identity = torch.eye(size, device=A.device, dtype=A.dtype)
    M, power = identity + L, L
    while (size := size // 2) > 1:
        power = power @ power
        M = M @ (identity + power)
    return M


def gated_delta_rule(q, k, v, log_decay, beta, segment=None, C=64):
    """S̄ = exp(log_decay_t) S_{t−1};  S_t = S̄ + k_tᵀ β_t (v_t − k_t S̄);  o_t = q_t S_t   (spec §9.4, §9.5)"""
    T, K = q.shape[1], q.shape[-1]
    segments = Segments(segment, C)
    q, k, v = (chunked(x, C) for x in (q, k, v))
    beta = chunked(beta, C)[..., None]
    G = chunked(log_decay, C).cumsum(3)
    mask = decay_mask(G) * segments.same
    entering = G.exp()[..., None] * segments.reads
    inverse = UnitLowerInverse.apply((beta * (k @ k.transpose(3, 4)) * mask).tril(-1))
    U = inverse @ (beta * v)
    W = inverse @ (beta * entering * k)
    total = G[..., -1:, None]  # [B, H, N, 1, 1]
    k_rest = (k * (total[..., 0] - G).exp()[..., None] * segments.stays).transpose(3, 4)
    # S_{n+1} = (e^total I − k_restᵀ W) S_n + k_restᵀ U
    identity = torch.eye(K, device=q.device, dtype=q.dtype)
    transition, written = total.exp() * segments.carries * identity - k_rest @ W, k_rest @ U
    states = [torch.zeros_like(written[:, :, 0])]
    for n in range(q.shape[2] - 1):
        states.append(written[:, :, n] + transition[:, :, n] @ states[-1])
    S = torch.stack(states, 2)
    A = (q @ k.transpose(3, 4)) * mask
    return whole((q * entering) @ S + A @ (U - W @ S), T)


def delta_rule_by_channel(q, k, v, log_decay, read, remove, C=32, c=8):
    """S̄ = diag(exp(log_decay_t)) S_{t−1};  S_t = S̄ − remove_tᵀ (read_t S̄) + k_tᵀ v_t;  o_t = q_t S_t   (KDA, RWKV-7)

    read, remove [B, T, H, K]. Inside a chunk, with the decays G from its start and the scores A of decayed_scores:
    R = read S̄ = (I + A_read,remove)⁻¹ ((read e^G) S + A_read,k V), both A without their diagonal;  O = (q e^G) S + A_q,k V − A_q,remove R."""
    T, K = q.shape[1], q.shape[-1]
    q, k, v, g, read, remove = (chunked(x, C) for x in (q, k, v, log_decay, read, remove))
    G = g.cumsum(3)
    total = G[..., -1:, :]
    (A_qk, A_qr), (A_rk, A_rr) = decayed_scores(torch.stack([q, read])[:, None], torch.stack([k, remove])[None], G, c)
    inverse = UnitLowerInverse.apply(A_rr.tril(-1))
    own, W = inverse @ (A_rk.tril(-1) @ v), inverse @ (read * G.exp())  # R = own + W S
    rest = (total - G).exp()
    k_rest, remove_rest = (k * rest).transpose(3, 4), (remove * rest).transpose(3, 4)
    # S_{n+1} = (diag(e^total) − remove_restᵀ W) S_n + k_restᵀ V − remove_restᵀ own
    identity = torch.eye(K, device=q.device, dtype=q.dtype)
    transition, written = total.exp() * identity - remove_rest @ W, k_rest @ v - remove_rest @ own
    states = [torch.zeros_like(written[:, :, 0])]
    for n in range(q.shape[2] - 1):
        states.append(written[:, :, n] + transition[:, :, n] @ states[-1])
    S = torch.stack(states, 2)
    return whole((q * G.exp()) @ S + A_qk @ v - A_qr @ (own + W @ S), T)


class LinearScan(torch.autograd.Function):
    """h_t = a_t h_{t−1} + b_t, every element by itself;  a, b [B, T, …]"""

    @staticmethod
    def forward(ctx, a, b):
        h = linear_scan(a, b)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, gradient):
        # ∂b_t = ∂h_t + a_{t+1} ∂b_{t+1},  ∂a_t = ∂b_t h_{t−1}
        a, h = ctx.saved_tensors
        later = torch.cat([a[:, 1:], torch.zeros_like(a[:, :1])], 1)
        on_b = linear_scan(later.flip(1), gradient.flip(1)).flip(1)
        return on_b * torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], 1), on_b


def linear_scan(a, b, C=16):
    """Chunks side by side: first what each leaves, then what enters each, then every token"""
    T, fill = a.shape[1], -a.shape[1] % C
    a, b = (F.pad(x, [0, 0] * (x.dim() - 2) + [0, fill]).unflatten(1, (-1, C)) for x in (a, b))
    left = b[:, :, 0]
    for t in range(1, C):
        left = torch.addcmul(b[:, :, t], a[:, :, t], left)
    total, entering = a.prod(2), [torch.zeros_like(left[:, 0])]
    for n in range(a.shape[1] - 1):
        entering.append(torch.addcmul(left[:, n], total[:, n], entering[-1]))
    state, h = torch.stack(entering, 1), torch.empty_like(b)
    for t in range(C):
        state = torch.addcmul(b[:, :, t], a[:, :, t], state, out=h[:, :, t])
    return h.flatten(1, 2)[:, :T]


def selective_scan(q, k, v, log_decay):
    """S_t = exp(log_decay_t) ⊙ S_{t−1} + k_tᵀ v_t,  o_t = q_t S_t: every cell decays by itself   (spec §17.1; Mamba-1)"""
    S = LinearScan.apply(log_decay.exp(), k[..., :, None] * v[..., None, :])
    return (q[..., None, :] @ S)[..., 0, :]
