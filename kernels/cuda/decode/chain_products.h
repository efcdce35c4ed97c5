// A level of products (cuda_chain_kernel.h): x (cuda_chain_input.h) is multiplied with the weights in the ring. Included by .cu files
// alone.
//
// Tensor cores multiply, which takes a tenth of the instructions: what paces a token is instructions between one level's results and the
// next one's. x stands in shared memory as three bf16 parts whose sum it is exactly. A product of tensor cores takes 8 rows of weights by
// 32 columns: a lane's 16 bytes of one row are its A as they are, so that row g of A has the numbers 0, 1, 4, 5 of every eight of weight
// row g, and row g + 8 of A the numbers 2, 3, 6, 7 of the same. Columns 0 to 2 of B are the parts of x at the first numbers, columns 3 to 5
// those at the others. Of C, rows 0 to 7 count in the former columns, rows 8 to 15 in the latter.
#pragma once

#include "kernels/cuda/decode/chain_outputs.h"

namespace statescope::cuda::chain {

constexpr int lanes_of_made_row = 4;

__device__ inline uint2 load_half(unsigned from) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
  return x;
}
__device__ inline unsigned load_word(unsigned from) {
  unsigned x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}
__device__ inline uint4 load_shared(unsigned from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
  return x;
}

/// Where a lane's numbers of the first piece of B stand. Found again in each level: kept from level to level it would not be in a register.
__device__ inline int place_in_parts(const Tiles& op) {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  constexpr int both = 6, half = 8;
  const int column = lane / 4 < both ? lane / 4 : 3 * (lane / 4 - both), p = column % parts_of_x, others = column / parts_of_x;
  return place_of_part(op, p) + lane % 4 * piece + (p < 2 ? others : 1 - others) * half;
}

/// The first piece of x into shared memory when it has come, or all of an x that passes a norm.
__device__ inline void take_first(Work& work, const Tiles& op, FirstPiece& x, const Mail& mail) {
  if (op.input.group == 0) {
    wait_for(x);
    store(work.of_x.x, op, x, 0);
  } else {
    const auto load = [&]<int parts>() {
      is_plain(op.input) ? load_normed<parts, true>(work.of_x.x, work.of_x.squares, op, mail)
                         : load_normed<parts, false>(work.of_x.x, work.of_x.squares, op, mail);
    };
    // One piece of a thread where that is enough: what runs is half as long.
    const int of_all_threads = threads * piece_numbers;
    op.input.n <= of_all_threads ? load.template operator()<1>() : load.template operator()<most_normed_parts>();
  }
}

/// Of the sums that four lanes hold of C, what counts, in the first of them.
__device__ inline float sum_of_row(const float (&c)[4], int lane) {
  const int t = lane % 4;
  const float own = (t < 2 ? c[0] : c[2]) + (t == 0 ? c[1] : c[3]);
  const float second = __shfl_down_sync(~0U, own, 1), third = __shfl_down_sync(~0U, own, 2);
  return own + (second + third);
}

/// Adds the products of a stage's rows with so many of a warp's columns of x: every `warps_of_half`-th block. Few are added by tensor
/// cores: they round towards zero.
__device__ inline void multiply_stage(float (&sums)[4], unsigned weights, unsigned in, int blocks) {
  constexpr int step = warps_of_half * block_bytes;
  float c[blocks_at_once][4] = {};
#pragma unroll 1
  for (; blocks >= blocks_at_once; blocks -= blocks_at_once) {
    uint4 w[blocks_at_once];
    uint2 x[blocks_at_once];
#pragma unroll
    for (int i = 0; i < blocks_at_once; ++i) w[i] = load_shared(weights + i * step), x[i] = load_half(in + i * step);
#pragma unroll
    for (int i = 0; i < blocks_at_once; ++i) multiply(c[i], w[i], x[i].x, x[i].y);
    weights += blocks_at_once * step, in += blocks_at_once * step;
  }
#pragma unroll 1
  for (; blocks > 0; --blocks) {
    const uint2 x = load_half(in);
    multiply(c[0], load_shared(weights), x.x, x.y);
    weights += step, in += step;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] += (c[0][i] + c[1][i]) + (c[2][i] + c[3][i]);
}

/// What a lane needs for four blocks of compact weights.
struct GroupOfBlocks {
  uint4 weights[3];
  uint2 x[blocks_at_once];
  __device__ GroupOfBlocks(unsigned from, unsigned in) {
#pragma unroll
    for (int i = 0; i < 3; ++i) weights[i] = load_shared(from + i * compact::line_of_lanes);
#pragma unroll
    for (int i = 0; i < blocks_at_once; ++i) x[i] = load_half(in + i * warps_of_half * block_bytes);
  }
};
__device__ inline void multiply_compact(float (&c)[4], compact::Eight weights, uint2 x, unsigned common) {
  multiply(c, compact::unpacked_eight(weights, common), x.x, x.y);
}
__device__ inline void multiply_compact(float (&c)[blocks_at_once][4], const GroupOfBlocks& group, unsigned common) {
  const auto& [u, v, w] = group.weights;
  multiply_compact(c[0], {u.x, u.y, u.z}, group.x[0], common);
  multiply_compact(c[1], {u.w, v.x, v.y}, group.x[1], common);
  multiply_compact(c[2], {v.z, v.w, w.x}, group.x[2], common);
  multiply_compact(c[3], {w.y, w.z, w.w}, group.x[3], common);
}

/// The same of rows of compact weights, without their scales.
__device__ inline void multiply_compact_stage(float (&sums)[4], unsigned weights, unsigned in, int blocks, int in_half) {
  static_assert(blocks_at_once * warps_of_half == compact::group_blocks);
  constexpr int weights_of_group = compact::group_blocks * compact::block_bytes, x_of_group = compact::group_blocks * block_bytes;
  const unsigned common = compact::common_bits();
  float c[blocks_at_once][4] = {};
#pragma unroll 1
  do {
    multiply_compact(c, GroupOfBlocks(weights, in), common);
    weights += weights_of_group, in += x_of_group, blocks -= compact::group_blocks;
  } while (blocks >= compact::group_blocks);
  if (blocks > 0) {
    weights -= in_half * (compact::group_blocks - compact::half_group_blocks) * compact::block_bytes / compact::warps_of_row;
    const uint4 u = load_shared(weights);
    const int lane = static_cast<int>(threadIdx.x) % compact::lanes_of_row;
    const uint2 v = load_half(weights + compact::line_of_lanes - lane * (compact::lane_bytes / 2));
    multiply_compact(c[0], {u.x, u.y, u.z}, load_half(in), common);
    multiply_compact(c[1], {u.w, v.x, v.y}, load_half(in + warps_of_half * block_bytes), common);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] = (c[0][i] + c[1][i]) + (c[2][i] + c[3][i]);
}

/// x at a place (place_in_part) of a piece, of whose numbers the first has its parts at `piece_of_x`.
__device__ inline float number_of_x(const char* piece_of_x, const Tiles& op, int place) {
  float x = 0;
#pragma unroll
  for (int p = 0; p < parts_of_x; ++p) {
    const char* const part = piece_of_x + place_of_part(op, p) + (p < 2 ? place : place ^ other_in_last_part);
    x += first_of(*reinterpret_cast<const unsigned short*>(part));
  }
  return x;
}

/// What an exception adds to the sum of its row before its scale: x (w / scale − 2^−15).
__device__ inline float of_exception(unsigned exception, float scale, const char* piece_of_x, const Tiles& op, int blocks) {
  // Rows that are not there have any bits.
  const int place = min(static_cast<int>(exception >> 16) & ~compact::is_exception, blocks * block_bytes - 2);
  const float inverse = __uint_as_float((254U << 23) - __float_as_uint(scale));
  return number_of_x(piece_of_x, op, place) * (__uint_as_float(exception << 16) * inverse - __uint_as_float(compact::first_exponent << 23));
}

/// What is multiplied with one piece of x: the tiles from `first` to `end`, of which the first group ends at `end_of_group`.
struct Pass {
  int first, end, end_of_group, place, blocks;  // of a row, in shared memory from block `place` on
  bool is_first, is_last;                       // of a row's pieces: with the last one groups are handed over
};

/// Where a warp multiplies: a share of the columns of one half of each tile.
struct Multiplier {
  int half, in_half, lane;
  int whole_tiles;      // before the first one that has no second half
  unsigned x, weights;  // the lane's first numbers of x, and its place in the first row of the ring's first stage
  float* sum;           // of the lane's row of the first tile

  __device__ Multiplier(Work& work, const Slot& slot, const Ring& ring)
      : half(static_cast<int>(threadIdx.x) / warp_size / warps_of_half),
        in_half(static_cast<int>(threadIdx.x) / warp_size % warps_of_half),
        lane(threadIdx.x % warp_size),
        whole_tiles(slot.level.tiles.gated() ? slot.all_tiles() : (slot.outputs + stage_rows - 1) / tile_rows),
        x(shared_address(work.of_x.x + place_in_parts(slot.level.tiles)) + in_half * block_bytes),
        weights(shared_address(ring.begin) + place_in_row(slot.level.tiles.compact)),
        sum(work.sums + (half * stage_rows + row()) * warps_of_half + in_half) {}

  /// The lane's row of a stage: those that read at once read from different banks.
  __device__ int row() const { return lane / 4 % 2 * rows_together + lane / 4 / 2; }
  __device__ int place_in_row(bool is_compact) const {
    return lane % 4 * piece + in_half * (is_compact ? 3 * compact::line_of_lanes : block_bytes);
  }

  /// Into the sums of the tiles. A group begins when there is room for it: the first one has it.
  template <bool is_compact>
  __device__ void take(const Slot& slot, const Work& work, const Ring& ring, PlaceInRing& at, PlaceInGroups& group,
                       const Pass& pass) const {
    auto [first, end, end_of_group, place_of_x, blocks, is_first, is_last] = pass;
    const Tiles& op = slot.level.tiles;
    const unsigned of_row = weights + place_in_stage(row(), piece_bytes(is_compact, blocks)), in = x + place_of_x * block_bytes;
    const unsigned behind = of_row - place_in_row(is_compact) + blocks * compact::block_bytes;
    const int own = 4 * (lane % 4) + in_half;  // of the row's exceptions
#pragma unroll 1
    for (int tile = first; tile < end; ++tile) {
      const bool whole = tile < whole_tiles;
      if (half == 0 || whole) {
        const PlaceInRing place = at.behind(static_cast<unsigned>(half), ring);
        const unsigned from = place.stage() * static_cast<unsigned>(ring.size.stage_bytes),
                       barrier = ring.barriers + place.stage() * static_cast<unsigned>(sizeof(Stage));
        wait_at(barrier + offsetof(Stage, full), place.parity());
        float sums[4] = {}, scale = 1;
        if constexpr (is_compact) {
          scale = __uint_as_float(load_word(behind + from));
          const unsigned exception = own < compact::most_exceptions ? load_word(behind + from + 4 * (1 + own)) : 0;
          multiply_compact_stage(sums, of_row + from, in, blocks, in_half);
          if (exception != 0) sums[0] += of_exception(exception, scale, work.of_x.x + place_of_x * block_bytes, op, blocks);
        } else {
          multiply_stage(sums, of_row + from, in, (blocks - in_half + warps_of_half - 1) / warps_of_half);
        }
        __syncwarp();
        if (lane == 0) arrive_at(barrier + offsetof(Stage, empty));
        const float product = scale * sum_of_row(sums, lane);
        float& all = sum[static_cast<unsigned>(slot.tiles_before + tile) % kept_tiles * tile_rows * warps_of_half];
        if (lane % 4 == 0) all = is_first ? product : all + product;
      }
      at = at.behind(whole ? 2 : 1, ring);
      if (tile + 1 == end_of_group && is_last) {
        group.hand_over();
        if (tile + 1 == end) break;
        end_of_group = slot.end_of_group(tile + 1);
        group.wait_until_empty();
      }
    }
  }
};

/// The sums of the block's share of a level's outputs. Of the tiles that are finished together first what takes the first piece of x, and
/// so on: the other pieces come meanwhile.
__device__ inline void make_products(Slot& slot, Work& work, const Ring& ring, PlaceInRing& at, PlaceInGroups& group, const Mail& mail) {
  const int thread = static_cast<int>(threadIdx.x);
  const Tiles& op = slot.level.tiles;
  FirstPiece x = piece_of_row<FirstPiece>(op, 0, mail);
  const Multiplier multiplier(work, slot, ring);
  const int tiles = slot.all_tiles(), all_blocks = op.blocks, of_piece = op.blocks_of_piece;
  const bool in_pieces = all_blocks > of_piece, is_compact = op.compact;
  const bool brought = op.comes_in_pieces();
  int end_of_group = slot.end_of_group(0);
  sync_warps();  // nobody needs the x before
  if (brought && tiles > 0) give_room();
#pragma unroll 1
  for (int first = 0, end = 0; first < tiles; first = end) {
    if (first > 0) end_of_group = slot.end_of_group(first);
    end = in_pieces ? end_of_group : tiles;
    group.wait_until_empty();
#pragma unroll 1
    for (int block = 0, place = 0; block < all_blocks; block += of_piece) {
      const int blocks = min(of_piece, all_blocks - block);
      const bool last = block + blocks == all_blocks;
      if (first == 0 && block == 0) {
        take_first(work, op, x, mail);
        sync_warps();
        if (thread == threads - 1) {
          const bool late = op.input.group > 0 && op.input.one_group();
          slot.factor = late ? norm_factor_of(op, sum_of_warps<warps>(work.of_x.squares)) : 1;
        }
      } else if (first == 0 && brought) {
        wait_for_piece();
        // Where two pieces are at hand, nobody needs the last but one.
        if (!last) give_room();
      } else if (block > 0) {
        sync_warps();  // all stages before have come
      }
      const Pass pass{first, end, end_of_group, place, blocks, block == 0, last};
      is_compact ? multiplier.take<true>(slot, work, ring, at, group, pass) : multiplier.take<false>(slot, work, ring, at, group, pass);
      place = op.place_behind(place);
    }
  }
}

/// A row of a product whose x the level makes, the block's r-th: its weights and its x behind those of the products before.
struct MadeRow {
  int product = -1, o = 0, weights = 0, x = 0;

  __device__ MadeRow() = default;
  __device__ MadeRow(const Slot& slot, int r) {
    const Tiles& op = slot.level.tiles;
#pragma unroll 1
    for (int n = op.products_of_x(); n < op.product_count; ++n) {
      const Product& p = op.products[n];
      const Share own = slot.made[n];
      if (r < own.count) {
        product = n, o = own.begin + r, weights += r * static_cast<int>(p.weight_bytes);
        return;
      }
      r -= own.count, weights += own.count * static_cast<int>(p.weight_bytes), x += p.in;
    }
  }
};

/// The i-th number of x that the level makes.
__device__ inline const float* made_number(const Tiles& op, int i) {
#pragma unroll 1
  for (int n = op.products_of_x(); n < op.product_count; ++n) {
    if (i < op.products[n].in) return op.products[n].made + i;
    i -= op.products[n].in;
  }
  return nullptr;
}

/// The block's rows of products whose x the level makes.
__device__ inline void make_rows(const Slot& slot, Work& work, const Ring& ring, PlaceInRing& at, const Mail& mail) {
  const Tiles& op = slot.level.tiles;
  const int thread = static_cast<int>(threadIdx.x), own = thread % lanes_of_made_row;
  constexpr int asked_together = most_made_numbers / threads;
  const float* from[asked_together];
  Mail::Asked asked[asked_together];
#pragma unroll
  for (int i = 0; i < asked_together; ++i) {
    from[i] = made_number(op, thread + i * threads);
    if (from[i] != nullptr) asked[i] = mail.ask(from[i]);
  }
  // By whole warps.
  constexpr int of_warp = warp_size / lanes_of_made_row, of_block = threads / lanes_of_made_row;
  int r = thread / lanes_of_made_row;
  MadeRow row;
  Output output;
  const auto prepare = [&] {
    if (r / of_warp * of_warp >= slot.made_rows) return;
    row = MadeRow(slot, r);
    output = Output(slot, {own == 0 ? row.product : -1, row.o}, mail);
  };
  prepare();
#pragma unroll
  for (int i = 0; i < asked_together; ++i) {
    if (from[i] != nullptr) work.of_x.made[thread + i * threads] = mail.get(asked[i]);
  }
  sync_warps();
  Stage& stage = ring.stages[at.stage()];
  const char* const weights = ring.stage(at.stage());
  wait(stage.full, at.parity());
#pragma unroll 1
  while (r / of_warp * of_warp < slot.made_rows) {
    const int pieces = row.product >= 0 ? op.products[row.product].in / piece_numbers : 0;
    output.load_addend(op, mail);
    float sum = 0;
#pragma unroll 1
    for (int c = own; c < pieces; c += lanes_of_made_row) {
      const uint4 raw = *reinterpret_cast<const uint4*>(weights + row.weights + c * piece);
      const float* in = work.of_x.made + row.x + c * piece_numbers;
      const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
      for (int k = 0; k < 4; ++k) sum = fmaf(in[2 * k], first_of(words[k]), fmaf(in[2 * k + 1], second_of(words[k]), sum));
    }
    __syncwarp();
#pragma unroll
    for (int distance = 1; distance < lanes_of_made_row; distance *= 2) sum += __shfl_xor_sync(~0U, sum, distance);
    finish(slot, output, sum, 1);
    r += of_block;
    prepare();
  }
  sync_warps();
  if (thread % warp_size == 0 && thread < warps_of_half * warp_size) stage.give_back();
  at.next(ring);
}

}  // namespace statescope::cuda::chain
