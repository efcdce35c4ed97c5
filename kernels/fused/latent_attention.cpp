#include "kernels/fused/latent_attention.h"

#include <algorithm>

namespace statescope {
namespace {

struct Sizes {
  explicit Sizes(const LatentAttention& op)
      : T(op.q.rows()),
        H(op.q.shape[1]),
        C(op.W_k.row_size()),
        n(op.W_k.rows() / H),
        r(op.q.shape[2] - n),
        V(op.W_v.rows() / H),
        own(op.shared_first ? r : 0),
        shared(op.shared_first ? 0 : n) {}

  std::int64_t T, H, C, n, r, V;
  std::int64_t own, shared;  // where q_n and q_r, k_n and k_r begin in a head
};

/// x [T, H, width] with a row for each token and head
template <class Any>
Any head_rows(const Any& x) {
  return {x.data, x.dtype, {x.rows() * x.shape[1], x.shape[2]}};
}

SoftmaxAttention attention_of(const LatentAttention& op) {
  SoftmaxAttention attention;
  attention.scale = op.scale;
  attention.chosen = op.chosen;
  attention.segments = op.segments;
  attention.cu_seqlens_k = op.cu_seqlens_k;
  return attention;
}

void attend_to_latents(const LatentAttention& op, std::int64_t chunk_size, Backend& device, Workspace& workspace) {
  const auto [T, H, C, n, r, V, own, shared] = Sizes(op);
  // q' = [W_kᵀ q_n | q_r],   o' = Σ_s softmax_s(scale · q'·[c_s | k_r,s]) c_s,   o = W_v o'
  const Tensor q = workspace.tensor({T, H, C + r}), o = workspace.tensor({T, H, C});
  const ConstTensor q_heads = head_rows(op.q);
  device.linear_by_head(
      {.y = head_rows(q).columns(0, {C}), .x = q_heads.columns(own, {n}), .weight = op.W_k, .heads = H, .transposed = true});
  device.copy(head_rows(q).columns(C, {r}), q_heads.columns(shared, {r}));
  SoftmaxAttention attention = attention_of(op);
  attention.q = q;
  attention.k = op.latents;
  attention.v = op.latents.columns(0, {1, C});
  attention.o = o;
  device.softmax_attention(attention, chunk_size);
  device.linear_by_head({.y = head_rows(op.o), .x = head_rows(o), .weight = op.W_v, .heads = H});
}

void attend_to_heads(const LatentAttention& op, std::int64_t chunk_size, Backend& device, Workspace& workspace) {
  const auto [T, H, C, n, r, V, own, shared] = Sizes(op);
  const std::int64_t keys = op.latents.rows();
  const std::int64_t group = std::clamp<std::int64_t>(op.most_numbers / std::max<std::int64_t>(keys * (n + r + V), 1), 1, H);
  const ConstTensor latents = op.latents.with_row({C + r}), c = latents.columns(0, {C}), k_r = latents.columns(C, {r});
  for (std::int64_t first = 0; first < H; first += group) {
    const Workspace::Mark mark(workspace);
    const std::int64_t heads = std::min(group, H - first);
    const Tensor k = workspace.tensor({keys, heads, n + r}), v = workspace.tensor({keys, heads, V});
    for (std::int64_t h = 0; h < heads; ++h) {
      device.linear(k.columns(h * (n + r) + own, {n}), c, op.W_k.slice((first + h) * n, n));
      device.copy(k.columns(h * (n + r) + shared, {r}), k_r);
    }
    device.linear(v.with_row({heads * V}), c, op.W_v.slice(first * V, heads * V));
    SoftmaxAttention attention = attention_of(op);
    attention.q = op.q.columns(first * (n + r), {heads, n + r});
    attention.k = k;
    attention.v = v;
    attention.o = op.o.columns(first * V, {heads, V});
    device.softmax_attention(attention, chunk_size);
  }
}

/// A key of a head takes C (n + V) multiplications to work out; each query then takes n + r + V of them instead of 2 C + r.
bool worth_working_out(const Sizes& sizes, std::int64_t queries) {
  return queries * (2 * sizes.C - sizes.n - sizes.V) > sizes.C * (sizes.n + sizes.V);
}

}  // namespace

void latent_attention(const LatentAttention& op, std::int64_t chunk_size, Backend& device, Workspace& workspace) {
  const Workspace::Mark mark(workspace);
  std::int64_t longest = 0;
  for (std::size_t s = 1; s < op.segments.cu_seqlens.size(); ++s)
    longest = std::max<std::int64_t>(longest, op.segments.cu_seqlens[s] - op.segments.cu_seqlens[s - 1]);
  worth_working_out(Sizes(op), longest) ? attend_to_heads(op, chunk_size, device, workspace)
                                        : attend_to_latents(op, chunk_size, device, workspace);
}

}  // namespace statescope
