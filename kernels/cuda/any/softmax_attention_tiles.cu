// Softmax attention of many queries on tensor cores: products take bf16, everything else is float32. Operands that are not bf16 are rounded
// into scratch first. This is the form for every device; compute capability 9.0 has hopper/softmax_attention.cu.
#include <algorithm>
#include <array>
#include <numbers>

#include "kernels/cuda/common/attention.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int threads = 256, lanes = 32;
constexpr int tile_queries = threads / lanes * 16;
constexpr int vector_values = 8;  // numbers of 16 bytes

extern __shared__ uint4 shared_vectors[];

/// [rows, heads, width] float32 or bf16 → [rows, heads, vectors · 8] bf16
struct Rounding {
  const void* from;
  Bf16* to;  // null: nothing to do
  std::int64_t rows, stride;
  int heads, width, vectors;
  bool bf16;
};

/// A thread has one 16-byte vector of a head of a row, padded with 0. blockIdx.y: the operand.
__global__ void round_kernel(std::array<Rounding, 3> operands) {
  const Rounding& x = operands[blockIdx.y];
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (x.to == nullptr || i >= x.rows * x.heads * x.vectors) return;
  const int first = static_cast<int>(i % x.vectors) * vector_values;
  const std::int64_t head = i / x.vectors, from = head / x.heads * x.stride + head % x.heads * x.width + first;
  float number[vector_values];
#pragma unroll
  for (int n = 0; n < vector_values; ++n) {
    const bool there = first + n < x.width;
    number[n] = !there   ? 0
                : x.bf16 ? static_cast<float>(static_cast<const Bf16*>(x.from)[from + n])
                         : static_cast<const float*>(x.from)[from + n];
  }
  reinterpret_cast<uint4*>(x.to)[i] = {packed(number[0], number[1]), packed(number[2], number[3]), packed(number[4], number[5]),
                                       packed(number[6], number[7])};
}

/// Rows of D values in shared memory, swizzled: the 16-byte vectors of a row are permuted by its number, so that those of 8 rows hit
/// different banks.
template <int D>
__device__ uint4* vector_at(uint4* tile, int row, int column) {
  return tile + row * (D / vector_values) + (column / vector_values ^ row % 8);
}

/// Starts to copy rows first … first + count − 1 of a head; 0 from row `end` and the operand's last column on.
template <int D, int count>
__device__ void copy_rows(uint4* tile, const AttentionOperand& from, int head, std::int64_t first, int end) {
  constexpr int vectors = D / vector_values;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < count * vectors; i += threads) {
    const int row = i / vectors, column = i % vectors * vector_values;
    const bool there = row < end && column < from.width;
    const Bf16* source = there ? from.data + (first + row) * from.stride + head * from.pitch + column : from.data;
    __pipeline_memcpy_async(vector_at<D>(tile, row, column), source, sizeof(uint4), there ? 0 : sizeof(uint4));
  }
}

/// score = Q Kᵀ of the warp's 16 queries, the first of them row `query`, and `keys` keys.
template <int D, int keys>
__device__ void multiply_queries(float (&score)[keys / 8][4], uint4* q, uint4* k, int query) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
#pragma unroll
  for (int c = 0; c < D; c += 16) {
    const uint4 a = ldmatrix(vector_at<D>(q, query + lane % 16, c + lane / 16 * 8));
#pragma unroll
    for (int j = 0; j < keys; j += 16) {
      const uint4 b = ldmatrix(vector_at<D>(k, j + lane % 8 + lane / 16 * 8, c + lane / 8 % 2 * 8));
      multiply(score[j / 8], a, b.x, b.y);
      multiply(score[j / 8 + 1], a, b.z, b.w);
    }
  }
}

/// o += weight V
template <int D, int keys>
__device__ void add_values(float (&o)[D / 8][4], const float (&weight)[keys / 8][4], uint4* v) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
#pragma unroll
  for (int j = 0; j < keys; j += 16) {
    const uint4 a = pack_a(weight[j / 8], weight[j / 8 + 1]);
#pragma unroll
    for (int c = 0; c < D; c += 16) {
      const uint4 b = ldmatrix_trans(vector_at<D>(v, j + lane % 16, c + lane / 16 * 8));
      multiply(o[c / 8], a, b.x, b.y);
      multiply(o[c / 8 + 1], a, b.z, b.w);
    }
  }
}

template <int D>
struct TileMemory {
  static constexpr int keys = D <= 128 ? 64 : 32;
  uint4 q[tile_queries * D / vector_values];
  uint4 k[2][keys * D / vector_values], v[2][keys * D / vector_values];
};

/// A block has 128 queries of one head of one segment; the next tile of keys is loaded while one is used.
template <int D>
__global__ void __launch_bounds__(threads, 1) attend_kernel(AttentionTiles p) {
  const QueryTile x = query_tile(p, tile_queries);
  if (x.count <= 0) return;
  constexpr int keys = TileMemory<D>::keys;
  auto& memory = *reinterpret_cast<TileMemory<D>*>(shared_vectors);
  const int begin = x.begin(p.window) / keys * keys, end = x.end();
  const auto fetch = [&](int first) {
    const int stage = (first - begin) / keys % 2;
    copy_rows<D, keys>(memory.k[stage], p.k, x.kv_head, x.first_key + first, end - first);
    copy_rows<D, keys>(memory.v[stage], p.v, x.kv_head, x.first_key + first, end - first);
    __pipeline_commit();
  };
  copy_rows<D, tile_queries>(memory.q, p.q, x.head, x.row, x.count);
  fetch(begin);

  // o_t = Σ_s softmax_s(scale · q_t·k_s) v_s
  const int query = static_cast<int>(threadIdx.x) / lanes * 16, lane = static_cast<int>(threadIdx.x) % lanes;
  RunningSoftmax running;
  float o[D / 8][4] = {};
  for (int first = begin; first < end; first += keys) {
    fetch(first + keys);
    __pipeline_wait_prior(1);
    __syncthreads();
    const int stage = (first - begin) / keys % 2, ahead = first - x.position - query;
    float score[keys / 8][4] = {}, kept[2];
    multiply_queries<D, keys>(score, memory.q, memory.k[stage], query);
    if (any_unseen(ahead, keys, p.window)) hide_unseen(score, ahead - lane / 4, p.window);
    soften(score, running, p.scale, kept);
    multiply_rows(o, kept);
    add_values<D, keys>(o, score, memory.v[stage]);
    __syncthreads();
  }
  write_output(o, running, p, x, query);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

std::int64_t vectors_of(std::int64_t width) { return (width + vector_values - 1) / vector_values; }

/// Whether the tiles can be copied from where x lies: all heads and rows begin at a multiple of 16 bytes.
bool in_place(ConstTensor x) {
  return x.dtype == DType::bf16 && x.shape[2] % vector_values == 0 && x.stride % vector_values == 0 && x.stride >= x.row_size() &&
         reinterpret_cast<std::uintptr_t>(x.data) % sizeof(uint4) == 0;
}

std::size_t scratch_of(ConstTensor x) {
  return in_place(x) ? 0 : static_cast<std::size_t>(x.rows() * x.shape[1] * vectors_of(x.shape[2])) * sizeof(uint4);
}

/// Takes from `scratch` what the rounded x needs.
AttentionOperand operand_of(ConstTensor x, Rounding& rounding, char*& scratch) {
  const std::int64_t heads = x.shape[1], width = x.shape[2], padded = vectors_of(width) * vector_values;
  if (in_place(x)) return {static_cast<const Bf16*>(x.data), x.rows(), heads, width, x.stride, width};
  auto* const to = reinterpret_cast<Bf16*>(scratch);
  rounding = {x.data,
              to,
              x.rows(),
              x.stride,
              static_cast<int>(heads),
              static_cast<int>(width),
              static_cast<int>(padded / vector_values),
              x.dtype == DType::bf16};
  scratch += scratch_of(x);
  return {to, x.rows(), heads, padded, heads * padded, padded};
}

template <int D>
void attend(const AttentionTiles& p, cudaStream_t stream) {
  launch("softmax_attention", attend_kernel<D>, tiles_of(p, tile_queries), threads, sizeof(TileMemory<D>), stream, p);
}

}  // namespace

bool softmax_attention_tiles_supported(const SoftmaxAttention& op) {
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  const bool has_room = most_shared_bytes() >= sizeof(TileMemory<256>);
  const std::int64_t widest = has_room ? 256 : 128;
  const bool all_blocks = op.blocks.block_size == 0 || op.blocks.topk <= 1;
  const bool all_keys = op.pattern.block_size == 0 && !op.chosen.ids;
  return all_blocks && all_keys && !op.selected_blocks && op.q.shape[2] <= widest && op.v.shape[2] <= widest && op.scale > 0 &&
         op.window < largest;
}

std::size_t softmax_attention_tiles_scratch(const SoftmaxAttention& op) { return scratch_of(op.q) + scratch_of(op.k) + scratch_of(op.v); }

void softmax_attention_tiles(const SoftmaxAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k, void* scratch,
                             cudaStream_t stream) {
  if (op.q.rows() == 0) return;
  std::array<Rounding, 3> roundings{};
  auto* free_scratch = static_cast<char*>(scratch);
  const AttentionTiles p{.q = operand_of(op.q, roundings[0], free_scratch),
                         .k = operand_of(op.k, roundings[1], free_scratch),
                         .v = operand_of(op.v, roundings[2], free_scratch),
                         .o = op.o.data,
                         .o_stride = op.o.stride,
                         .o_bf16 = op.o.dtype == DType::bf16,
                         .H = static_cast<int>(op.q.shape[1]),
                         .Hkv = static_cast<int>(op.k.shape[1]),
                         .V = static_cast<int>(op.v.shape[2]),
                         .scale = op.scale * std::numbers::log2e_v<float>,
                         .window = op.window > 0 ? static_cast<int>(op.window) : std::numeric_limits<int>::max(),
                         .segments = segments,
                         .cu_seqlens_k = cu_seqlens_k};
  std::int64_t most = 0;
  for (const Rounding& x : roundings) most = std::max(most, x.rows * x.heads * x.vectors);
  launch("rounding", round_kernel, {blocks_for(most, threads), 3}, threads, 0, stream, roundings);

  if (has_warpgroup_products()) return attend_hopper(p, stream);
  const std::int64_t widest = std::max(op.q.shape[2], op.v.shape[2]);
  if (widest <= 64) return attend<64>(p, stream);
  if (widest <= 128) return attend<128>(p, stream);
  attend<256>(p, stream);
}

}  // namespace statescope::cuda
