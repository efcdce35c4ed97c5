// x of a level's products (cuda_chain_kernel.h): it comes by mail, passes its norm and stands in shared memory as three bf16 parts.
// Included by .cu files alone.
#pragma once

#include "kernels/cuda/decode/chain_levels.h"

namespace statescope::cuda::chain {

constexpr int piece_numbers = 8;      // bf16 numbers of 16 bytes
constexpr int most_normed_parts = 2;  // pieces that a thread has of an x that passes a norm
constexpr int most_normed_numbers = threads * piece_numbers * most_normed_parts;
constexpr int most_plain_numbers = 8192;  // of x
constexpr int pieces_of_block = block_columns / piece_numbers;

/// Those that multiply. A warp is together before it arrives.
__device__ inline void sync_warps() {
  __syncwarp();
  memory_step::sync_step();
}

/// (Σ x² / group + eps)^{−1/2}
__device__ inline float norm_factor_of(const Tiles& op, float squares) { return rsqrtf(squares * op.of_group + op.input.eps); }

constexpr int between_parts = 64;  // bytes
/// Where part p of x begins: so that lanes that read at once read from different banks.
__device__ inline int place_of_part(const Tiles& op, int p) { return p * op.part_bytes + (p > 0 ? between_parts : 0); }

/// Eight numbers of x at piece c, as three parts: numbers 0, 1, 4, 5 before the others, but in the last part behind them (banks again).
__device__ __noinline__ inline void store_parts(char* x, int part_bytes, int c, float4 a, float4 b) {
  char* to = x + c * piece;
#pragma unroll
  for (int p = 0; p < parts_of_x; ++p) {
    const uint4 part{packed(a.x, a.y), packed(b.x, b.y), packed(a.z, a.w), packed(b.z, b.w)};
    *reinterpret_cast<uint4*>(to) = p < 2 ? part : uint4{part.z, part.w, part.x, part.y};
    a = {a.x - first_of(part.x), a.y - second_of(part.x), a.z - first_of(part.z), a.w - second_of(part.z)};
    b = {b.x - first_of(part.y), b.y - second_of(part.y), b.z - first_of(part.w), b.w - second_of(part.w)};
    to += p == 0 ? part_bytes + between_parts : part_bytes;
  }
}

struct Eight {
  float4 a, b;
  __device__ void load(const float* from) { a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 4); }
};
using memory_step::operator+;
using memory_step::operator*;
__device__ inline float4 operator*(float4 a, float4 b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
__device__ inline float square(float4 a) { return a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w; }

/// Pieces of a thread of those from `begin` to `end` of a row, as they come: asked for together, and again until all are there. The threads
/// are so many from `first_thread` on.
template <int n, int first_thread = 0, int of_row = threads>
struct Arriving {
  static constexpr int count = n;
  Eight in[n] = {};
  const float* from;
  int begin, end;
  bool mailed;
  unsigned missing = 0;  // a bit for each

  __device__ Arriving(const float* row, int begin_, int end_, const Mail& mail)
      : from(mail.in_turn(row)), begin(begin_), end(end_), mailed(mail.has(row)) {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if (row != nullptr && piece_of(t) < end) missing |= 1U << t;
    }
  }
  __device__ int piece_of(int t) const { return begin + static_cast<int>(threadIdx.x) - first_thread + t * of_row; }
  __device__ void ask() {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if ((missing >> t & 1) == 0) continue;
      const float* const own = from + piece_numbers * piece_of(t);
      Mail::load(in[t].a, own), Mail::load(in[t].b, own + 4);
    }
  }
  __device__ bool there() {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if (!mailed || (Mail::came(in[t].a) & Mail::came(in[t].b))) missing &= ~(1U << t);
    }
    return missing == 0;
  }
};

/// A piece of an x that passes no norm, as long as a stage has columns. Who asks for one and then multiplies waits for it before that: the
/// loads of both share what says that they have come.
template <int first_thread, int of_row>
using PieceOfRow = Arriving<(most_blocks * pieces_of_block + of_row - 1) / of_row, first_thread, of_row>;
template <class Piece>
__device__ Piece piece_of_row(const Tiles& op, int first_block, const Mail& mail) {
  const int end = op.input.group == 0 ? first_block + op.blocks_from(first_block) : first_block;
  Piece row(op.input.x, first_block * pieces_of_block, end * pieces_of_block, mail);
  row.ask();
  return row;
}
template <class Piece>
__device__ void wait_for(Piece& row) {
  while (!row.there()) row.ask();
  __syncwarp();
}
/// From block `place` on.
template <class Piece>
__device__ void store(char* x, const Tiles& op, const Piece& row, int place) {
#pragma unroll
  for (int t = 0; t < Piece::count; ++t) {
    const int c = row.piece_of(t);
    if (c < row.end) store_parts(x, op.part_bytes, c - row.begin + place * pieces_of_block, row.in[t].a, row.in[t].b);
  }
}

// Those behind the first piece are brought by the warps that finish, while the others multiply.
using FirstPiece = PieceOfRow<0, threads>;
using LaterPiece = PieceOfRow<first_finisher * warp_size, finishing_threads>;
constexpr int bringing_threads = threads + finishing_threads;
/// By those that multiply: what stands where the next piece will they need no more.
__device__ inline void give_room() {
  __syncwarp();
  arrive_at_barrier<room_for_piece, bringing_threads>();
}
/// By the same: they meet, and the next piece is there.
__device__ inline void wait_for_piece() {
  __syncwarp();
  wait_at_barrier<piece_there, bringing_threads>();
}
/// By those that finish: all pieces behind the first.
__device__ inline void bring_pieces(char* x, const Tiles& op, const Mail& mail) {
  if (!op.comes_in_pieces()) return;
#pragma unroll 1
  for (int block = op.blocks_of_piece, place = op.place_behind(0); block < op.blocks; block += op.blocks_of_piece) {
    LaterPiece row = piece_of_row<LaterPiece>(op, block, mail);
    wait_for(row);
    wait_at_barrier<room_for_piece, bringing_threads>();
    store(x, op, row, place);
    __syncwarp();
    arrive_at_barrier<piece_there, bringing_threads>();
    place = op.place_behind(place);
  }
}

/// A norm over one group, without a gate: known where the code is chosen, so that it is half as long.
__device__ inline bool is_plain(const Input& input) { return input.gate == nullptr && input.one_group(); }

/// A norm's weights for the pieces of a thread, without their offset.
template <int parts, bool plain>
struct NormOfPieces {
  Eight weight[parts];
  __device__ explicit NormOfPieces(const Input& input) {
#pragma unroll
    for (int t = 0; t < parts; ++t) {
      const int first = piece_numbers * (static_cast<int>(threadIdx.x) + t * threads);
      const float one = 1 - input.offset;
      const float4 ones{one, one, one, one};
      weight[t] = {ones, ones};
      if (input.weight != nullptr && first < input.n)
        weight[t].load(input.weight + first - (plain ? 0 : input.group_of(first / numbers_of_sum) * input.group));
    }
  }
};

/// x ⊙ act(gate); identity: as the gate comes.
__device__ inline float4 gated(float4 x, float4 gate, Activation act) {
  if (act != Activation::identity)
    gate = {activated_by_one(gate.x, act), activated_by_one(gate.y, act), activated_by_one(gate.z, act), activated_by_one(gate.w, act)};
  return x * gate;
}

/// All of an x that passes a norm, so many pieces of a thread: over the whole row as yet without its factor, of which `squares` keeps a sum
/// for each warp. `plain`: is_plain(op.input).
template <int parts, bool plain>
__device__ void load_normed(char* x, float* squares, const Tiles& op, const Mail& mail) {
  const NormOfPieces<parts, plain> norm(op.input);
  constexpr int pieces_of_sum = numbers_of_sum / piece_numbers;
  const Input& input = op.input;
  const int pieces = input.n / piece_numbers, thread = static_cast<int>(threadIdx.x), warp = thread / warp_size;
  const auto of_warp = [=](int t) { return warp * warp_size + t * threads < pieces; };
  Arriving<parts> row(input.x, 0, pieces, mail), gates(plain ? nullptr : input.gate, 0, pieces, mail);
  bool there = false;
  while (!there) {
    row.ask();
    if (!plain) gates.ask();
    there = row.there();
    if (!plain) there = gates.there() && there;
  }
  __syncwarp();
  auto& in = row.in;
  const auto& gate = gates.in;
  float sum[parts] = {}, factor[parts];
  const float4 offset{input.offset, input.offset, input.offset, input.offset};
#pragma unroll
  for (int t = 0; t < parts; ++t) {
    factor[t] = 1;
    if (!of_warp(t)) continue;
    sum[t] = square(in[t].a) + square(in[t].b);
    in[t] = {in[t].a * (norm.weight[t].a + offset), in[t].b * (norm.weight[t].b + offset)};
    if (!plain && input.gate != nullptr) in[t] = {gated(in[t].a, gate[t].a, input.act), gated(in[t].b, gate[t].b, input.act)};
  }
  if (plain || input.one_group()) {
    float of_row = sum[0];
    if constexpr (parts > 1) of_row += sum[1];
    of_row = sum_of_warp(of_row);
    if (thread % warp_size == 0) squares[warp] = of_row;
  } else {
#pragma unroll
    for (int t = 0; t < parts; ++t) {
      if (!of_warp(t)) continue;
      const int c = thread + t * threads;
#pragma unroll
      for (int distance = pieces_of_sum / 2; distance > 0; distance /= 2) sum[t] += __shfl_xor_sync(~0U, sum[t], distance);
      if (c % pieces_of_sum == 0 && c < pieces) squares[c / pieces_of_sum] = sum[t];
    }
    sync_warps();
#pragma unroll
    for (int t = 0; t < parts; ++t) {
      if (!of_warp(t)) continue;
      float of_group = 0;
#pragma unroll 4
      for (int j = 0; j < input.sums; ++j) of_group += squares[input.group_of((thread + t * threads) / pieces_of_sum) * input.sums + j];
      factor[t] = norm_factor_of(op, of_group);
    }
  }
#pragma unroll
  for (int t = 0; t < parts; ++t) {
    const int c = thread + t * threads;
    if (c < pieces) store_parts(x, op.part_bytes, c, factor[t] * in[t].a, factor[t] * in[t].b);
  }
}

}  // namespace statescope::cuda::chain
