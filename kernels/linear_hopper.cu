// Products of many bf16 rows on a device of compute capability 9.0, with what would be a pass of its own behind them: SwiGLU's gate,
// u = silu(x gateᵀ) ⊙ (x upᵀ), and a residual stream, y = y + x weightᵀ in float32. A multiprocessor has one block, which takes tiles of y
// in turn. One of its warpgroups (128 threads) brings x and weights through the bulk copy engine; each other one multiplies 64 rows with
// 256 of weights. For SwiGLU 128 of these are of gate and 128 of up, so that a thread has both sums of its outputs.
#include <algorithm>

#include "kernels/cuda_activation.h"
#include "kernels/cuda_hopper.h"
#include "kernels/cuda_linear.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

/// What becomes of a tile's sums: y in bf16; u in bf16; y in float32, to which they are added.
enum class Form { plain, gated, added };

constexpr int groups = 2, stages = 4;  // warpgroups that multiply, tiles of operands on their way
constexpr int group_rows = 64, warp_rows = 16, tile_rows = groups * group_rows;
constexpr int inputs = swizzled, weights = 256, box_weights = 64;  // of a tile; copied at once
constexpr int warps = groups * warpgroup / 32, threads = (groups + 1) * warpgroup;
constexpr int row_bytes = swizzled * sizeof(Bf16);  // of a box

/// Of y; a tile, and half of it: the last ones, where whole ones would leave most of the device idle.
template <Form form>
constexpr int outputs = form == Form::gated ? weights / 2 : weights;
template <Form form>
constexpr int half = outputs<form> / 2;
constexpr int parts = 8;  // of a warp's outputs, written one after the other

struct Stage {
  Bf16 x[tile_rows][inputs];
  Bf16 weight[weights][inputs];  // gated: gate, then up
};

/// Of y, on its way out of a warp: 64 columns in bf16 or 32 in float32.
struct alignas(1024) Box {
  unsigned char row[warp_rows][row_bytes];
};

struct Memory {
  Stage stage[stages];
  Box box[warps][2];
  std::uint64_t full[stages], empty[stages];
};

struct Product {
  CUtensorMap x, weight, up, y;  // [rows, 1, width]; `weight` is gate and `up` there only if gated
  int row_tiles, column_tiles;
  int whole, halves;  // tiles taken whole; halves of the others, at most one a block
  int steps;          // stages of a tile
};

/// Starts to copy a box to y, or to add it. What lies outside of the matrix is left out.
template <Form form>
__device__ void store_box(const CUtensorMap& y, int column, int row, const Box& box) {
  if constexpr (form == Form::added)
    asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%1, 0, %2}], [%3];" ::"l"(&y), "r"(column),
                 "r"(row), "r"(shared_address(&box))
                 : "memory");
  else
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, 0, %2}], [%3];" ::"l"(&y), "r"(column), "r"(row),
                 "r"(shared_address(&box))
                 : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until no more than `pending` of the boxes that this thread stores are still being read.
template <int pending>
__device__ void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
/// Four 8 × 8 matrices, from where load_matrices (cuda_chunk.h) brings them.
__device__ void store_matrices(void* row, const uint4& x) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(x.x), "r"(x.y), "r"(x.z),
               "r"(x.w)
               : "memory");
}

/// Of a tile in y.
struct Corner {
  int row, column;
};
/// Tiles are taken column by column within bands of 2048 rows, which stay in the second cache meanwhile.
template <Form form>
__device__ Corner corner(const Product& p, int tile) {
  constexpr int band = 2048 / tile_rows;
  const int in_band = band * p.column_tiles, first = tile / in_band * band, height = min(band, p.row_tiles - first), rest = tile % in_band;
  return {(first + rest % height) * tile_rows, rest / height * outputs<form>};
}
template <Form form>
__device__ Corner corner_of_half(const Product& p, int number) {
  const Corner whole = corner<form>(p, p.whole + number / 2);
  return {whole.row, whole.column + number % 2 * half<form>};
}

/// Where a thread is in the ring of stages.
struct Turn {
  int stage = 0, parity = 0;
  __device__ int before() const { return (stage + stages - 1) % stages; }
  __device__ void next() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// One thread: all stages of all tiles, as soon as all warps have read what was there.
template <Form form>
__device__ void produce(Memory& memory, const Product& p) {
  const int own = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  Turn turn;
  const auto bring = [&](Corner at, int rows) {  // of weights
    for (int k = 0; k < p.steps; ++k, turn.next()) {
      Stage& stage = memory.stage[turn.stage];
      std::uint64_t& full = memory.full[turn.stage];
      wait(memory.empty[turn.stage], turn.parity ^ 1);
      arrive_and_expect(full, static_cast<unsigned>(sizeof(stage.x) + rows * sizeof(stage.weight[0])));
      copy_box(stage.x, p.x, k * inputs, 0, at.row, full);
      for (int i = 0; i < rows; i += box_weights) {
        const bool of_up = form == Form::gated && i >= rows / 2;
        copy_box(stage.weight[i], of_up ? p.up : p.weight, k * inputs, 0, at.column + (of_up ? i - rows / 2 : i), full);
      }
    }
  };
  for (int tile = own; tile < p.whole; tile += blocks) bring(corner<form>(p, tile), weights);
  if (own < p.halves) bring(corner_of_half<form>(p, own), weights / 2);
}

/// A warpgroup: C ← its rows of x weightᵀ of a tile; during the first stages meanwhile(stage) for each.
template <int first_stages, int n, class Meanwhile>
__device__ void multiply_tile(float (&c)[n][4], Memory& memory, int steps, Turn& turn, int group, const Meanwhile& meanwhile) {
  const std::uint64_t x = matrix(memory.stage[0].x[group * group_rows]), weight = matrix(memory.stage[0].weight);
  const auto release_one_before = [&] {
    if (threadIdx.x % 32 == 0) arrive(memory.empty[turn.before()]);
  };
  const auto multiply_stage = [&](bool first) {
    const int offset = turn.stage * static_cast<int>(sizeof(Stage) >> 4);  // of a matrix, as of those below, in pieces of 16 bytes
    wait(memory.full[turn.stage], turn.parity);
    begin_products();
#pragma unroll
    for (int i = 0; i < inputs; i += 16) multiply(c, x + (offset + i / 8), weight + (offset + i / 8), !first || i > 0);
    commit_products();
    wait_products<1>();
    if (!first) release_one_before();
    turn.next();
  };
#pragma unroll
  for (int stage = 0; stage < first_stages; ++stage) {
    multiply_stage(stage == 0);
    meanwhile(stage);
  }
  for (int k = first_stages; k < steps; ++k) multiply_stage(false);
  wait_products<0>();
  pin(c);
  release_one_before();
}

/// A warp's sums of a tile in bf16, two neighbours each: rows … and … + 8 of eight columns, then the next eight.
struct Sums {
  unsigned pair[2 * weights / 8];
  Corner at;
};

template <Form form, int n>
__device__ void round_sums(Sums& sums, const float (&c)[n][4]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const int to = form == Form::gated && j >= n / 2 ? j - n / 2 + weights / 16 : j;
    sums.pair[2 * to] = packed(c[j][0], c[j][1]), sums.pair[2 * to + 1] = packed(c[j][2], c[j][3]);
  }
}

/// u = silu(gate) ⊙ up
__device__ unsigned gated(unsigned gate, unsigned up) {
  return packed(silu(first_of(gate)) * first_of(up), silu(second_of(gate)) * second_of(up));
}

/// A box of the warp, once nobody reads it any more.
__device__ Box& free_box(Memory& memory, int number) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (lane == 0) wait_for_stores<1>();
  __syncwarp();
  return memory.box[warp][number % 2];
}
template <Form form>
__device__ void send(const Box& box, const CUtensorMap& y, Corner at) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x % 32 == 0) store_box<form>(y, at.column, at.row, box);
}

/// A warp: a part of its columns goes to its box, from there 64 at once to y.
template <Form form>
__device__ void write_part(Memory& memory, const Product& p, const Sums& sums, int part) {
  constexpr int columns = outputs<form> / parts;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32, first = part * columns,
            number = first / swizzled;
  Box& box = first % swizzled == 0 ? free_box(memory, number) : memory.box[warp][number % 2];
  const auto pair = [&](int i) { return form == Form::gated ? gated(sums.pair[i], sums.pair[weights / 8 + i]) : sums.pair[i]; };
#pragma unroll
  for (int i = 0; i < columns; i += 16) {
    const int j = (first + i) / 4;
    store_matrices(reinterpret_cast<Bf16*>(&box) + place(lane % warp_rows, first % swizzled + i + lane / warp_rows * 8),
                   {pair(j), pair(j + 1), pair(j + 2), pair(j + 3)});
  }
  if ((first + columns) % swizzled == 0) send<form>(box, p.y, {sums.at.row, sums.at.column + number * swizzled});
}

/// A warp: its rows are added to y.
template <int n>
__device__ void add_sums(Memory& memory, const Product& p, const float (&c)[n][4], Corner at) {
  constexpr int together = row_bytes / sizeof(float) / 8;  // eights of columns in a box
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4;
#pragma unroll
  for (int number = 0; number < n / together; ++number) {
    Box& box = free_box(memory, number);
#pragma unroll
    for (int j = 0; j < together; ++j) {
      const float(&sums)[4] = c[number * together + j];
      const int byte = ((2 * j + lane % 4 / 2) ^ row) * 16 + lane % 2 * 8;  // swizzled, as copies want it
      *reinterpret_cast<float2*>(&box.row[row][byte]) = {sums[0], sums[1]};
      *reinterpret_cast<float2*>(&box.row[row + 8][byte]) = {sums[2], sums[3]};
    }
    send<Form::added>(box, p.y, {at.row, at.column + number * 8 * together});
  }
}

/// A warpgroup: its rows of all tiles. What is rounded is written while the first products of the next tile run.
template <Form form>
__device__ void consume(Memory& memory, const Product& p, int group) {
  const int warp = static_cast<int>(threadIdx.x) / 32, own = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  Turn turn;
  Sums sums;
  bool any = false;
  const auto write_last = [&](int part) {
    if (any) write_part<form>(memory, p, sums, part);
  };
  const auto take = [&]<int n>(float(&c)[n][4], Corner at) {
    at.row += warp * warp_rows;
    if constexpr (form == Form::added) {
      multiply_tile<1>(c, memory, p.steps, turn, group, [](int) {});
      add_sums(memory, p, c, at);
    } else {
      multiply_tile<parts>(c, memory, p.steps, turn, group, write_last);
      round_sums<form>(sums, c);
      sums.at = at;
      any = true;
    }
  };
  float c[weights / 8][4];
  for (int tile = own; tile < p.whole; tile += blocks) take(c, corner<form>(p, tile));
  const bool takes_half = own < p.halves;
  if (takes_half) take(reinterpret_cast<float(&)[weights / 16][4]>(c), corner_of_half<form>(p, own));
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    if (part < parts / 2 || !takes_half) write_last(part);
  }
  if (threadIdx.x % 32 == 0) wait_for_stores<0>();
}

template <Form form>
__global__ void __launch_bounds__(threads, 1) product_kernel(const __grid_constant__ Product p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& memory = *reinterpret_cast<Memory*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(memory.full[stage], 1);
      init_barrier(memory.empty[stage], warps);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  wait_for_results();
  // Registers go from the warpgroup that copies to those that multiply.
  const int group = static_cast<int>(threadIdx.x) / warpgroup;
  if (group == groups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x % warpgroup == 0) produce<form>(memory, p);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume<form>(memory, p, group);
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

/// bf16 rows that the bulk copy engine can take.
bool can_be_mapped(ConstTensor x) { return x.dtype == DType::bf16 && in_packs(x, 8); }

CUtensorMap map_of(ConstTensor x, int box_rows) {
  return tensor_map({x.data, x.rows(), 1, x.row_size(), x.stride, x.stride, x.dtype}, box_rows);
}

int tiles_of(std::int64_t n, int tile) { return static_cast<int>((n + tile - 1) / tile); }

/// False, and nothing done, where there are too few inputs, or tiles would leave more than a quarter of the device idle: then cuBLASLt is
/// faster.
template <Form form>
bool multiply(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor up, cudaStream_t stream) {
  const int steps = tiles_of(x.row_size(), inputs), row_tiles = tiles_of(x.rows(), tile_rows),
            column_tiles = tiles_of(weight.rows(), outputs<form>), tiles = row_tiles * column_tiles,
            at_once = attribute_of_device(cudaDevAttrMultiProcessorCount), last = tiles % at_once;
  const bool halve = 2 * last <= at_once;
  const std::int64_t half_turns = tiles / at_once * 2 + (last == 0 ? 0 : halve ? 1 : 2);
  if (steps < parts || 4 * y.shape.size() < 3 * half_turns * at_once * (tile_rows * half<form>)) return false;
  const int whole = halve ? tiles - last : tiles, halves = halve ? 2 * last : 0;
  const Product p{map_of(x, tile_rows),
                  map_of(weight, box_weights),
                  up ? map_of(up, box_weights) : CUtensorMap{},
                  map_of(y, warp_rows),
                  row_tiles,
                  column_tiles,
                  whole,
                  halves,
                  steps};
  const auto blocks = static_cast<unsigned>(std::min(at_once, std::max(whole, halves)));
  launch_overlapped("product", product_kernel<form>, blocks, threads, sizeof(Memory), stream, p);
  return true;
}

}  // namespace

bool linear_hopper(Tensor y, ConstTensor x, ConstTensor weight, cudaStream_t stream) {
  const bool fits = can_be_mapped(y) && can_be_mapped(x) && can_be_mapped(weight) && has_warpgroup_products();
  return fits && multiply<Form::plain>(y, x, weight, {}, stream);
}

bool add_linear_hopper(Tensor y, ConstTensor x, ConstTensor weight, cudaStream_t stream) {
  const bool fits = y.dtype == DType::f32 && in_packs(y, 4) && can_be_mapped(x) && can_be_mapped(weight) && has_warpgroup_products();
  return fits && multiply<Form::added>(y, x, weight, {}, stream);
}

bool gated_linear_hopper(Tensor u, ConstTensor x, ConstTensor gate, ConstTensor up, cudaStream_t stream) {
  const bool fits = can_be_mapped(u) && can_be_mapped(x) && can_be_mapped(gate) && can_be_mapped(up) && has_warpgroup_products();
  return fits && multiply<Form::gated>(u, x, gate, up, stream);
}

}  // namespace statescope::cuda
