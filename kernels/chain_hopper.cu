// Chains of a token's decoding in one launch (cuda_chain.h): products of one row with bf16 weights and memories' steps, level by level. A
// block a multiprocessor. Its warps fetch the weights of all levels through a ring and do not wait for a level to begin. What a level makes
// it hands on by mail: a place in memory for each number, which says that nothing has come yet until the number is there. So who needs it
// looks at it alone; no block waits for all others, and no number needs a fence. One warp besides looks ahead: what a block's rows of the
// next levels are.
//
// Products are made by tensor cores, which take a tenth of the instructions: what paces a token is instructions between one level's results
// and the next one's. x stands in shared memory as three bf16 parts whose sum it is exactly. A product of tensor cores takes 8 rows of
// weights by 32 columns: a lane's 16 bytes of one row are its A as they are, so that row g of A has the numbers 0, 1, 4, 5 of every eight
// of weight row g, and row g + 8 of A the numbers 2, 3, 6, 7 of the same. Columns 0 to 2 of B are the parts of x at the first numbers,
// columns 3 to 5 those at the others. Of C, rows 0 to 7 count in the former columns, rows 8 to 15 in the latter.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "kernels/cuda_chain.h"
#include "kernels/cuda_chunk.h"
#include "kernels/cuda_memory_step.h"
#include "kernels/cuda_one_row.h"

#ifndef WINDOW  // stages under way
#define WINDOW 2
#endif
namespace statescope::cuda {
namespace {

using namespace one_row;
using memory_step::Step;

constexpr int warps = 16, threads = warps * warp_size;             // that multiply
constexpr int halves = 2, warps_of_half = warps / halves;          // of a tile: which have a stage each
constexpr int tile_rows = 16, stage_rows = 8;                      // of weights; gated: eight of each
constexpr int block_columns = 32, block_bytes = 64;                // of one product of tensor cores, which has the rows of a stage
constexpr int most_blocks = 72, own_blocks = most_blocks / warps_of_half;  // of a stage; of a warp
constexpr int blocks_at_once = 3;                                  // on their way to a warp's registers
constexpr int row_bytes = most_blocks * block_bytes + 64;  // in shared memory: lanes that read at once read from different banks
constexpr int stages = 4, stage_bytes = stage_rows * row_bytes, ring_bytes = stages * stage_bytes;
constexpr int piece_numbers = 8;   // bf16 numbers of 16 bytes
constexpr int tiles_together = 8;  // by rows: whose outputs are finished together, one by a thread
constexpr int sums_together = tiles_together * tile_rows;
// A block's warps: those that multiply, the one that fetches for them, and the planner, which looks ahead.
constexpr int fetcher = warps, planner = fetcher + 1, block_threads = (planner + 1) * warp_size;
constexpr int most_parts = 2;  // pieces of x that a thread reads together; of one that passes a norm it has one
constexpr int parts_of_x = 3;
constexpr int slots = 4;                                       // levels that a block knows at once
constexpr int listed_rows = 8 * tile_rows;                     // of a level, where products share it
constexpr int most_made_numbers = 512, lanes_of_made_row = 8;  // of x that a level makes itself
constexpr int line = 32;                                       // numbers of one in the second cache
constexpr int most_levels = 1024;

/// Products of one row as this kernel sees them. Those that others wait for come first, then the others of x, then those that wait.
struct Tiles {
  Input input;
  int announced_products, products_of_x, product_count;
  int announced_outputs, outputs_of_x;
  int outputs_of_tile;          // 16; gated: 8
  int blocks, blocks_of_piece;  // of a row; of a piece of it, which a stage has of its rows
  int part_bytes;               // from one part of x to the next in shared memory
  int first_output[most_products];
  Product products[most_products];

  __device__ int pieces() const { return (blocks + blocks_of_piece - 1) / blocks_of_piece; }
  __device__ bool one_product() const { return product_count == 1; }
};

enum class Kind : int { products, outer_product, delta_rule };

/// What is read of it and made in the same launch is read from mail, and points there. `mail`: where what it makes goes besides, of each
/// product, or of a memory's o.
struct Level {
  Kind kind;
  Tiles tiles;
  Step step;
  float* mail[most_products];
};

/// Of a launch, two of its kind: one is in use, the other one is emptied for the next launch, whose turn it is then.
struct alignas(256) Mailbox {
  unsigned turn, ended;  // 0 or 1; blocks that have ended
  char* begin;           // of the first
  unsigned bytes;        // of each; the second one is right behind the first
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

__device__ unsigned address_of(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

/// What a thread computes of its number is computed again in each level: registers are few, and what does not fit them waits for memory.
__device__ int own_thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

/// Those that multiply. A warp is together before it arrives.
__device__ void sync_warps() {
  __syncwarp();
  asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
}

/// What the fetcher fills and gets back empty from all that multiply.
struct Stage {
  unsigned long long full, empty;
  __device__ void make() {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address_of(&full)) : "memory");
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address_of(&empty)), "n"(warps_of_half) : "memory");
  }
  __device__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address_of(&full)), "r"(bytes) : "memory");
  }
  /// A multiple of 16 bytes, which leave the second cache before all else.
  __device__ void fetch(unsigned to, const char* from, int bytes, std::uint64_t policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(address_of(&full)), "l"(policy)
                 : "memory");
  }
  __device__ void give_back() { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address_of(&empty)) : "memory"); }
};
__device__ void wait_for(unsigned long long& barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@done bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(
          address_of(&barrier)),
      "r"(parity)
      : "memory");
}

__device__ std::uint64_t read_once() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

constexpr unsigned nothing_yet = ~0U;  // a NaN that no number handed on is
/// A block's view of the mailbox in use: what a level reads, be it there or in memory that was written before the launch.
struct Mail {
  std::uintptr_t begin = 0;
  unsigned bytes = 0;
  std::uintptr_t turn = 0;  // bytes from the first box to the one in use

  /// What has been asked for, and perhaps not come yet.
  struct Asked {
    float x;
    const float* from;
    bool mailed;
  };
  struct AskedFour {
    float4 x;
    const float* from;
    bool mailed;
  };

  __device__ bool has(const float* p) const { return reinterpret_cast<std::uintptr_t>(p) - begin < bytes; }
  template <class Number>
  __device__ Number* in_turn(Number* p) const {
    return has(p) ? reinterpret_cast<Number*>(reinterpret_cast<std::uintptr_t>(p) + turn) : p;
  }
  __device__ void put(float* to, float x) const {
    const unsigned bits = __float_as_uint(x) == nothing_yet ? nothing_yet >> 1 : __float_as_uint(x);
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(in_turn(to)), "r"(bits) : "memory");
  }
  static __device__ float one(const float* from) {
    float x;
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(from) : "memory");
    return x;
  }
  static __device__ float4 four(const float* from) {
    float4 x;
    asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
  }
  static __device__ bool came(float x) { return __float_as_uint(x) != nothing_yet; }
  static __device__ bool came(float4 x) { return came(x.x) && came(x.y) && came(x.z) && came(x.w); }

  __device__ Asked ask(const float* p) const { return {one(in_turn(p)), in_turn(p), has(p)}; }
  __device__ AskedFour ask_four(const float* p) const { return {four(in_turn(p)), in_turn(p), has(p)}; }
  __device__ float get(Asked a) const {
    while (a.mailed && !came(a.x)) a.x = one(a.from);
    return a.x;
  }
  __device__ float4 get(AskedFour a) const {
    while (a.mailed && !came(a.x)) a.x = four(a.from);
    return a.x;
  }
};

/// A number in shared memory that one thread raises and others wait for.
__device__ int seen(const int* number) {
  int x;
  asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(x) : "r"(address_of(number)) : "memory");
  return x;
}
__device__ void raise(int* number, int x) {
  asm volatile("st.release.cta.shared.s32 [%0], %1;" ::"r"(address_of(number)), "r"(x) : "memory");
}

/// What a block has of n: block b of all begins at n b / all.
struct Share {
  int begin, count;
};
__device__ __noinline__ Share share_of(int n) {
  const auto before = [n](unsigned block) { return static_cast<int>(static_cast<unsigned>(n) * block / gridDim.x); };
  return {before(blockIdx.x), before(blockIdx.x + 1) - before(blockIdx.x)};
}

/// An output of the block: those that others wait for come first.
struct Place {
  int product, o;
};
__device__ __noinline__ Place place_of(const Tiles& op, const Share& announced, const Share& of_x, int i) {
  if (i >= announced.count + of_x.count) return {-1, 0};
  const bool first = i < announced.count;
  const int output = first ? announced.begin + i : of_x.begin + i - announced.count, end = first ? op.announced_products : op.products_of_x;
  int n = first ? 0 : op.announced_products;
#pragma unroll 1
  while (n + 1 < end && output >= op.first_output[n + 1]) ++n;
  return {n, output - op.first_output[n]};
}

__device__ uint2 load_half(unsigned from) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
  return x;
}
__device__ uint4 load_shared(unsigned from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
  return x;
}

/// (Σ x² / group + eps)^{−1/2}
__device__ float norm_factor_of(const Input& input, float squares) {
  return rsqrtf(squares * (1 / static_cast<float>(input.group)) + input.eps);
}

/// Of a number of each warp.
template <int count>
__device__ float sum_of_warps(const float* of_row) {
  float4 sum{0, 0, 0, 0};
#pragma unroll
  for (int w = 0; w < count; w += 4) {
    const float4 x = *reinterpret_cast<const float4*>(of_row + w);
    sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

/// Where part p of x begins: so that lanes that read at once read from different banks.
__device__ int place_of_part(const Tiles& op, int p) { return p * op.part_bytes + (p > 0 ? 64 : 0); }

/// Eight numbers of x at piece c, as three parts: numbers 0, 1, 4, 5 before the others, but in the last part behind them (banks again).
__device__ __noinline__ void store_parts(char* x, int part_bytes, int c, float4 a, float4 b) {
  char* to = x + c * piece;
#pragma unroll 1
  for (int p = 0; p < parts_of_x; ++p) {
    const uint4 part{packed(a.x, a.y), packed(b.x, b.y), packed(a.z, a.w), packed(b.z, b.w)};
    *reinterpret_cast<uint4*>(to) = p < 2 ? part : uint4{part.z, part.w, part.x, part.y};
    a = {a.x - first_of(part.x), a.y - second_of(part.x), a.z - first_of(part.z), a.w - second_of(part.z)};
    b = {b.x - first_of(part.y), b.y - second_of(part.y), b.z - first_of(part.w), b.w - second_of(part.w)};
    to += p == 0 ? part_bytes + 64 : part_bytes;
  }
}
/// Where a lane's numbers of the first piece of B stand.
__device__ int place_in_parts(const Tiles& op, int lane) {
  constexpr int both = 6, half = 8;
  const int column = lane / 4 < both ? lane / 4 : 3 * (lane / 4 - both), p = column % parts_of_x, others = column / parts_of_x;
  return place_of_part(op, p) + lane % 4 * piece + (p < 2 ? others : 1 - others) * half;
}

struct Eight {
  float4 a, b;
  __device__ void load(const float* from) { a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 4); }
};
__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ float4 operator*(float4 a, float4 b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
__device__ float4 operator*(float s, float4 a) { return {s * a.x, s * a.y, s * a.z, s * a.w}; }
__device__ float square(float4 a) { return a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w; }

/// Pieces of a thread of a row of so many, as they come: asked for together, and again until all are there.
template <int n>
struct Arriving {
  Eight in[n] = {};
  const float* from;
  int pieces;
  bool mailed;
  unsigned missing = 0;  // a bit for each

  __device__ Arriving(const float* row, int pieces_, const Mail& mail) : from(mail.in_turn(row)), pieces(pieces_), mailed(mail.has(row)) {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if (row != nullptr && piece_of(t) < pieces) missing |= 1U << t;
    }
  }
  __device__ int piece_of(int t) const { return own_thread() + t * threads; }
  __device__ void ask() {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if ((missing >> t & 1) != 0)
        in[t] = {Mail::four(from + piece_numbers * piece_of(t)), Mail::four(from + piece_numbers * piece_of(t) + 4)};
    }
  }
  __device__ bool there() {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if (!mailed || (Mail::came(in[t].a) && Mail::came(in[t].b))) missing &= ~(1U << t);
    }
    return missing == 0;
  }
};

__device__ void load_plain(char* x, const Tiles& op, const Mail& mail) {
  Arriving<most_parts> row(op.input.x, op.input.n / piece_numbers, mail);
  do {
    row.ask();
  } while (!row.there());
  __syncwarp();
#pragma unroll
  for (int t = 0; t < most_parts; ++t) {
    const int c = row.piece_of(t);
    if (c < row.pieces) store_parts(x, op.part_bytes, c, row.in[t].a, row.in[t].b);
  }
}

/// A norm's weights for a thread's piece, without their offset.
__device__ Eight norm_of_piece(const Input& input) {
  const int first = piece_numbers * own_thread();
  const float all = 1 - input.offset;
  Eight weight{{all, all, all, all}, {all, all, all, all}};
  if (input.weight != nullptr && first < input.n)
    weight.load(input.weight + first - input.group_of(first / numbers_of_sum) * input.group);
  return weight;
}

__device__ float4 gated(float4 x, float4 gate, bool silu) {
  return x * float4{sigmoid(gate.x), sigmoid(gate.y), sigmoid(gate.z), sigmoid(gate.w)} * (silu ? gate : float4{1, 1, 1, 1});
}

/// The same for an x that passes a norm: over the whole row as yet without its factor, of which `squares` keeps a sum for each warp.
__device__ void load_normed(char* x, float* squares, const Tiles& op, const Eight& weight, const Mail& mail) {
  constexpr int pieces_of_sum = numbers_of_sum / piece_numbers;
  const Input& input = op.input;
  const int pieces = input.n / piece_numbers, c = own_thread();
  Arriving<1> row(input.x, pieces, mail), gates(input.gate, pieces, mail);
  bool there = false;
  while (!there) {
    row.ask();
    gates.ask();
    there = row.there();
    there = gates.there() && there;
  }
  __syncwarp();
  Eight in = row.in[0];
  const Eight& gate = gates.in[0];
  const float4 offset{input.offset, input.offset, input.offset, input.offset};
  float sum = square(in.a) + square(in.b), factor = 1;
  in = {in.a * (weight.a + offset), in.b * (weight.b + offset)};
  const bool silu = input.act == Activation::silu;
  if (input.gate != nullptr && c < pieces) in = {gated(in.a, gate.a, silu), gated(in.b, gate.b, silu)};
  if (input.one_group()) {
    sum = combined(sum, [](float a, float b) { return a + b; });
    if (c % warp_size == 0) squares[c / warp_size] = sum;
  } else {
#pragma unroll 1
    for (int distance = pieces_of_sum / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0U, sum, distance);
    if (c % pieces_of_sum == 0 && c < pieces) squares[c / pieces_of_sum] = sum;
    sync_warps();
    float of_group = 0;
#pragma unroll 1
    for (int j = 0; j < input.sums; ++j) of_group += squares[input.group_of(c / pieces_of_sum) * input.sums + j];
    factor = norm_factor_of(input, of_group);
  }
  if (c < pieces) store_parts(x, op.part_bytes, c, factor * in.a, factor * in.b);
}

/// An output that a thread will finish: what it needs for that of memory.
struct Output {
  int product = -1, o = 0;
  float bias = 0, added = 0;
  __device__ Output() = default;
  __device__ Output(const Tiles& op, const Place& place) : product(place.product), o(place.o) {
    if (product >= 0 && op.products[product].bias != nullptr) bias = op.products[product].bias[o];
  }
  __device__ void load_addend(const Tiles& op, const Mail& mail) {
    if (product >= 0 && op.products[product].addend != nullptr) added = mail.get(mail.ask(op.products[product].addend + o));
  }
};

/// y[o] from the product, its bias and what is added; gated: times the product with the other weight.
__device__ float finished(const Product& p, int o, float x, float added, float other) {
  if (p.z != nullptr) p.z[o] = x;
  if (p.end == End::forget_gate || p.end == End::delta_decay) {
    // max(logσ(z) · scale, clamp_min), logσ(z) = −softplus(−z);   −exp(A_log) · softplus(z + dt_bias)
    const bool forgets = p.end == End::forget_gate;
    const float plus = softplus(forgets ? -x : x + p.dt_bias[o]), decay = -(forgets ? p.scale : expf(p.A_log[o])) * plus;
    return forgets && decay < p.clamp_min ? p.clamp_min : decay;
  }
  if (p.end == End::convolve) x = convolved(p, o, x);
  return activated_by_one(x + added, p.act) * (p.end == End::gated ? other : 1);
}
/// Where it belongs, and to `mailed`, who may wait for it.
__device__ __noinline__ void finish(const Product& p, int o, float x, float added, float other, float* mailed, const Mail& mail) {
  const float y = finished(p, o, x, added, other);
  if (mailed != nullptr) mail.put(mailed + o, y);
  p.y[o] = y;
}

/// A level as its block knows it, in shared memory.
struct Slot {
  Level level;
  const char* rows[listed_rows];  // of weights, in the order of tiles, where products share the level; null: there is none
  Place places[listed_rows];      // of the same
  int tiles;                      // of rows; 0: a memory's step, or nothing for this block
  Share announced, of_x;          // of the block, of the outputs
  int made_rows;                  // of the block, of products whose x the level makes
  unsigned first_stage, made_stage;  // of the level's weights, and of those of made rows

  __device__ int outputs() const { return announced.count + of_x.count; }
  /// The block's output i; none behind the last one.
  __device__ Place place(int i) const {
    if (i >= outputs()) return {-1, 0};
    return level.tiles.one_product() ? Place{0, of_x.begin + i} : places[i];
  }
  /// Rows of weights in a half of a tile.
  __device__ int rows_of(int tile, int half) const {
    const int of_tile = level.tiles.outputs_of_tile, left = outputs() - tile * of_tile;
    return min(of_tile == tile_rows ? left - half * stage_rows : left, stage_rows);
  }
};
/// What the threads of a block share.
struct Levels {
  Slot slots[cuda::slots];
  Mail mail;
  int planned;  // levels that stand in slots
  int fetched;  // whose weights have been asked for
  int ended;    // by each of the warps that multiply, all together
  int level_of_warp[warps];
  __device__ Slot& at(int level) { return slots[level % cuda::slots]; }
};

/// Where somebody is in the ring.
struct PlaceInRing {
  unsigned passed = 0;  // stages
  __device__ unsigned stage() const { return passed % stages; }
  __device__ unsigned parity() const { return passed / stages % 2; }
  __device__ void next(unsigned count = 1) { passed += count; }
};

/// Weights of the block's rows of products whose x the level makes, one product's behind another's, as one stage; by one warp.
__device__ void fetch_made_weights(const Tiles& op, Stage& stage, unsigned to, std::uint64_t policy) {
  const int lane = threadIdx.x % warp_size, own = op.products_of_x + lane;
  int before = 0, bytes = 0;
#pragma unroll 1
  for (int n = op.products_of_x; n < op.product_count; ++n) {
    if (n == own) before = bytes;
    bytes += share_of(op.products[n].out).count * static_cast<int>(op.products[n].weight_bytes);
  }
  if (lane == 0) stage.expect(bytes);
  __syncwarp();
  if (own >= op.product_count) return;
  const Product& p = op.products[own];
  const Share share = share_of(p.out);
  if (share.count > 0)
    stage.fetch(to + before, p.weight + share.begin * p.weight_bytes, share.count * static_cast<int>(p.weight_bytes), policy);
}

/// What the fetcher does: the weights of all levels. Its first lanes have a row each.
__device__ __noinline__ void fetch_weights(Levels& levels, int count, unsigned ring, Stage* stages_of_ring) {
  const int lane = threadIdx.x % warp_size;
  const std::uint64_t policy = read_once();
  PlaceInRing at, arriving;  // the first stage that may not have come
  int asked = 0;
#pragma unroll 1
  for (int level = 0; level < count; ++level) {
    while (seen(&levels.planned) <= level) {
    }
    __syncwarp();
    const Slot& slot = levels.at(level);
    const Tiles& op = slot.level.tiles;
    const Product& p = op.products[0];
    const bool gated = op.outputs_of_tile < tile_rows, arithmetic = op.one_product();
#pragma unroll 1
    for (int half = 0; half < 2 * slot.tiles; ++half) {
      const int tile = half / 2, rows = slot.rows_of(tile, half % 2);
      if (rows <= 0) continue;
      const char* from = nullptr;
      if (lane < rows) {
        const int row = gated ? tile * stage_rows + lane : half * stage_rows + lane;
        from = arithmetic ? (gated && half % 2 == 1 ? p.up : p.weight) + (slot.of_x.begin + row) * p.weight_bytes : slot.rows[row];
      }
#pragma unroll 1
      for (int first = 0; first < op.blocks; first += op.blocks_of_piece) {
        const int bytes = min(op.blocks_of_piece, op.blocks - first) * block_bytes;
        Stage& stage = stages_of_ring[at.stage()];
        wait_for(stage.empty, at.parity() ^ 1);
        if (asked == WINDOW) wait_for(stages_of_ring[arriving.stage()].full, arriving.parity()), arriving.next(); else ++asked;
        if (lane == 0) stage.expect(rows * bytes);
        __syncwarp();
        if (lane < rows) stage.fetch(ring + at.stage() * stage_bytes + lane * row_bytes, from + first * block_bytes, bytes, policy);
        at.next();
      }
    }
    if (slot.made_rows > 0) {
      Stage& stage = stages_of_ring[at.stage()];
      wait_for(stage.empty, at.parity() ^ 1);
      if (asked == WINDOW) wait_for(stages_of_ring[arriving.stage()].full, arriving.parity()), arriving.next(); else ++asked;
      fetch_made_weights(op, stage, ring + at.stage() * stage_bytes, policy);
      at.next();
    }
    __syncwarp();
    if (lane == 0) raise(&levels.fetched, level + 1);
  }
}

/// Puts a level into its slot; by one warp. Returns the first stage of the level behind it.
__device__ unsigned plan(Slot& slot, const Level& from, unsigned stage) {
  const int lane = threadIdx.x % warp_size;
  const auto* source = reinterpret_cast<const uint4*>(&from);
  auto* to = reinterpret_cast<uint4*>(&slot.level);
#pragma unroll 1
  for (int i = lane; i < static_cast<int>(sizeof(Level) / sizeof(uint4)); i += warp_size) to[i] = source[i];
  __syncwarp();
  if (slot.level.kind != Kind::products) {
    if (lane == 0) slot.tiles = slot.made_rows = 0;
    return stage;
  }
  const Tiles& op = slot.level.tiles;
  int made_rows = 0;
#pragma unroll 1
  for (int n = op.products_of_x; n < op.product_count; ++n) made_rows += share_of(op.products[n].out).count;
  const Share announced = share_of(op.announced_outputs), of_x = share_of(op.outputs_of_x);
  const int of_tile = op.outputs_of_tile, tiles = (announced.count + of_x.count + of_tile - 1) / of_tile;
  if (lane == 0) {
    slot.tiles = tiles, slot.announced = announced, slot.of_x = of_x, slot.made_rows = made_rows;
    slot.first_stage = stage;
  }
  __syncwarp();
  const int stages_of_rows = tiles == 0 ? 0 : 2 * tiles - (slot.rows_of(tiles - 1, 1) > 0 ? 0 : 1);
  const unsigned made_stage = stage + static_cast<unsigned>(stages_of_rows * op.pieces()), next = made_stage + (made_rows > 0 ? 1 : 0);
  if (lane == 0) slot.made_stage = made_stage;
  if (op.one_product()) return next;
#pragma unroll 1
  for (int i = lane; i < tiles * tile_rows; i += warp_size) {
    const Place place = place_of(op, announced, of_x, i);
    slot.places[i] = place;
    slot.rows[i] = place.product < 0 ? nullptr : op.products[place.product].weight + place.o * op.products[place.product].weight_bytes;
  }
  return next;
}

/// Brings into the second cache what a level reads besides weights: with as much of those on its way as rings hold, memory answers after
/// microseconds. By one warp.
__device__ void prefetch_level(const Slot& slot) {
  const int lane = threadIdx.x % warp_size;
  if (slot.level.kind != Kind::products) {
    const Step& step = slot.level.step;
#pragma unroll 1
    for (int task = static_cast<int>(blockIdx.x); task < step.tasks(); task += static_cast<int>(gridDim.x)) {
      memory_step::prefetch_task(step, task, lane, warp_size);
    }
    return;
  }
  const Tiles& op = slot.level.tiles;
  if (op.input.weight != nullptr) {
#pragma unroll 1
    for (int i = lane * line; i < op.input.group; i += warp_size * line) prefetch(op.input.weight + i);
  }
#pragma unroll 1
  for (int i = lane; i < slot.outputs(); i += warp_size) {
    const Place place = slot.place(i);
    const Product& p = op.products[place.product];
    if (p.bias != nullptr) prefetch(p.bias + place.o);
    if (p.end != End::convolve) continue;
    prefetch(p.taps + static_cast<std::int64_t>(place.o) * p.width);
#pragma unroll 1
    for (int j = 0; j < p.width - 1; ++j) prefetch(p.cache + j * p.out + place.o);
  }
}

/// The block's share of the box that is not in use: nothing has come yet.
__device__ void empty_other_box(const Mailbox& box) {
  char* const other = box.begin + (box.turn == 0 ? box.bytes : 0);
  const auto pieces = static_cast<int>(box.bytes / piece);
  const Share own = share_of(pieces);
#pragma unroll 1
  for (int i = threadIdx.x % warp_size; i < own.count; i += warp_size)
    reinterpret_cast<uint4*>(other)[own.begin + i] = {nothing_yet, nothing_yet, nothing_yet, nothing_yet};
}

/// What the planner does.
__device__ __noinline__ void look_ahead(Levels& levels, const Level* all, int count, const Mailbox* box) {
  int planned = 0;
  unsigned stage = 0;
  const auto plan_next = [&] {
    // A slot is free again when nobody needs the level that had it.
    const int free = planned - slots + 1;
    while (min(seen(&levels.ended) / warps, seen(&levels.fetched)) < free) {
    }
    stage = plan(levels.at(planned), all[planned], stage);
    __syncwarp();
    ++planned;
    if (threadIdx.x % warp_size == 0) raise(&levels.planned, planned);
  };
  while (planned < min(count, slots - 1)) plan_next();
  if (box != nullptr) empty_other_box(*box);
#pragma unroll 1
  for (int level = 0; level < count; ++level) {
    while (planned < count && planned < level + slots) plan_next();
    if (level + 2 < count) prefetch_level(levels.at(level + 2));
    constexpr int ahead = slots + 2;
    const auto* later = reinterpret_cast<const float*>(all + level + ahead) + threadIdx.x % warp_size * line;
    if (level + ahead < count && later < reinterpret_cast<const float*>(all + level + ahead + 1)) prefetch(later);
  }
}

/// Of the sums that four lanes hold of C, what counts, in the first of them.
__device__ float sum_of_row(const float (&c)[4], int lane) {
  const int t = lane % 4;
  const float own = (t < 2 ? c[0] : c[2]) + (t == 0 ? c[1] : c[3]);
  const float second = __shfl_down_sync(~0U, own, 1), third = __shfl_down_sync(~0U, own, 2);
  return own + (second + third);
}

/// What products need of shared memory besides the rings, and a memory's step in its place.
struct Work {
  float sums[sums_together * warps_of_half];  // [row of tiles, warp of the half]
  float squares[threads * piece_numbers / numbers_of_sum];
  float made[most_made_numbers];  // x that the level makes, one product's behind another's
  alignas(128) char x[1];         // as long as the longest x
};

/// Adds the products of a stage's rows with a warp's columns of x: every `warps_of_half`-th block from the warp's own on. Few are added by
/// tensor cores: they round towards zero.
__device__ void multiply_stage(float (&sums)[4], unsigned weights, unsigned in, int blocks) {
  float c[blocks_at_once][4] = {};
#pragma unroll
  for (int first = 0; first < own_blocks; first += blocks_at_once) {
    uint4 w[blocks_at_once];
    uint2 x[blocks_at_once];
    const auto there = [=](int i) { return (first + i) * warps_of_half < blocks; };
#pragma unroll
    for (int i = 0; i < blocks_at_once; ++i) {
      const int at = there(i) ? (first + i) * warps_of_half * block_bytes : 0;
      w[i] = load_shared(weights + at), x[i] = load_half(in + at);
    }
#pragma unroll
    for (int i = 0; i < blocks_at_once; ++i) {
      if (there(i)) multiply(c[i], w[i], x[i].x, x[i].y);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] += (c[0][i] + c[1][i]) + c[2][i];
}

/// The block's share of a level's outputs, tile of rows by tile of rows; a warp has a share of the columns of one half of a tile.
__device__ void make_products(const Slot& slot, Work& work, Stage* stages_of_ring, unsigned ring, const Mail& mail) {
  const int thread = own_thread(), warp = thread / warp_size, lane = thread % warp_size;
  const Tiles& op = slot.level.tiles;
  const Input& input = op.input;
  const Share announced = slot.announced;
  PlaceInRing at{slot.first_stage};
  const int of_tile = op.outputs_of_tile, tiles = slot.tiles;
  // The outputs up to `last` are finished when the tiles up to it are; those that others wait for first. Sums of `kept` tiles are kept.
  int first = 0, last = announced.count > 0 ? (announced.count + of_tile - 1) / of_tile : tiles_together, kept = 0;
  const auto output_of = [&](int begin, int end) {
    const int i = begin * of_tile + thread;
    return Output(op, i < end * of_tile ? slot.place(i) : Place{-1, 0});
  };
  Output output = output_of(0, last), following = announced.count > 0 ? output_of(last, tiles_together) : Output();
  if (input.group > 0) {
    load_normed(work.x, work.squares, op, norm_of_piece(input), mail);
  } else {
    load_plain(work.x, op, mail);
  }
  output.load_addend(op, mail);
  following.load_addend(op, mail);
  sync_warps();

  const int half = warp / warps_of_half, in_half = warp % warps_of_half;
  const unsigned in = address_of(work.x + place_in_parts(op, lane)) + in_half * block_bytes,
                 weights = ring + lane / 4 * row_bytes + lane % 4 * piece + in_half * block_bytes;
  const int all_blocks = op.blocks, of_piece = op.blocks_of_piece, pieces = op.pieces(), outputs = slot.outputs();
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const bool whole = of_tile < tile_rows || tile * of_tile + stage_rows < outputs;
    if (half == 1) at.next(pieces);
    if (half == 0 || whole) {
      float sums[4] = {};
#pragma unroll 1
      for (int before = 0; before < all_blocks; before += of_piece) {
        Stage& stage = stages_of_ring[at.stage()];
        wait_for(stage.full, at.parity());
        multiply_stage(sums, weights + at.stage() * stage_bytes, in + before * block_bytes, min(of_piece, all_blocks - before) - in_half);
        __syncwarp();
        if (lane == 0) stage.give_back();
        at.next();
      }
      const float sum = sum_of_row(sums, lane);
      if (lane % 4 == 0) work.sums[((tile - kept) * tile_rows + half * stage_rows + lane / 4) * warps_of_half + in_half] = sum;
    }
    if (half == 0 && whole) at.next(pieces);
    if (tile + 1 < last && tile + 1 < tiles) continue;

    sync_warps();
    const float factor = input.group > 0 && input.one_group() ? norm_factor_of(input, sum_of_warps<warps>(work.squares)) : 1;
    const int row = (first - kept + thread / of_tile) * tile_rows + thread % of_tile;
    if (output.product >= 0) {
      finish(op.products[output.product], output.o, factor * sum_of_warps<warps_of_half>(work.sums + row * warps_of_half) + output.bias, output.added,
             of_tile < tile_rows ? factor * sum_of_warps<warps_of_half>(work.sums + (row + of_tile) * warps_of_half) : 1, slot.level.mail[output.product], mail);
    }
    if (tile + 1 == tiles) break;
    first = last;
    if (first < kept + tiles_together) {
      output = following, last = kept + tiles_together;
      continue;
    }
    kept = first, last += tiles_together;
    output = output_of(first, last);
    output.load_addend(op, mail);
    sync_warps();
  }
}

/// A row of a product whose x the level makes, the block's r-th: its weights and its x behind those of the products before.
struct MadeRow {
  int product = -1, o = 0, weights = 0, x = 0;

  __device__ MadeRow(const Tiles& op, int r) {
#pragma unroll 1
    for (int n = op.products_of_x; n < op.product_count; ++n) {
      const Product& p = op.products[n];
      const Share own = share_of(p.out);
      if (r < own.count) {
        product = n, o = own.begin + r, weights += r * static_cast<int>(p.weight_bytes);
        return;
      }
      r -= own.count, weights += own.count * static_cast<int>(p.weight_bytes), x += p.in;
    }
  }
};

/// The i-th number of x that the level makes.
__device__ const float* made_number(const Tiles& op, int i) {
#pragma unroll 1
  for (int n = op.products_of_x; n < op.product_count; ++n) {
    if (i < op.products[n].in) return op.products[n].made + i;
    i -= op.products[n].in;
  }
  return nullptr;
}

/// The block's rows of products whose x the level makes.
__device__ void make_rows(const Slot& slot, Work& work, Stage* stages_of_ring, const char* ring, const Mail& mail) {
  const PlaceInRing at{slot.made_stage};
  Stage& stage = stages_of_ring[at.stage()];
  const char* const weights = ring + at.stage() * stage_bytes;
  static_assert(most_made_numbers <= threads);
  const Tiles& op = slot.level.tiles;
  const int thread = own_thread(), own = thread % lanes_of_made_row;
  const float* const from = made_number(op, thread);
  Mail::Asked asked{};
  if (from != nullptr) asked = mail.ask(from);
  int r = thread / lanes_of_made_row;
  MadeRow row(op, r);
  Output output(op, {own == 0 ? row.product : -1, row.o});
  if (from != nullptr) work.made[thread] = mail.get(asked);
  sync_warps();
  wait_for(stage.full, at.parity());
  // By whole warps.
  constexpr int of_warp = warp_size / lanes_of_made_row, of_block = threads / lanes_of_made_row;
#pragma unroll 1
  while (r / of_warp * of_warp < slot.made_rows) {
    const int pieces = row.product >= 0 ? op.products[row.product].in / piece_numbers : 0;
    output.load_addend(op, mail);
    float sum = 0;
#pragma unroll 1
    for (int c = own; c < pieces; c += lanes_of_made_row) {
      const uint4 raw = *reinterpret_cast<const uint4*>(weights + row.weights + c * piece);
      const float* in = work.made + row.x + c * piece_numbers;
      const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
      for (int k = 0; k < 4; ++k) sum = fmaf(in[2 * k], first_of(words[k]), fmaf(in[2 * k + 1], second_of(words[k]), sum));
    }
    __syncwarp();
#pragma unroll
    for (int distance = 1; distance < lanes_of_made_row; distance *= 2) sum += __shfl_xor_sync(~0U, sum, distance);
    if (output.product >= 0)
      finish(op.products[row.product], row.o, sum + output.bias, output.added, 1, slot.level.mail[row.product], mail);
    r += of_block;
    row = MadeRow(op, r);
    output = Output(op, {own == 0 ? row.product : -1, row.o});
  }
  sync_warps();
  if (thread < warps_of_half * warp_size && thread % warp_size == 0) stage.give_back();
}

/// A memory's step of a level: the block's tasks.
__device__ __noinline__ void take_steps(const Level& level, void* work, const Mail& mail) {
  const Step& p = level.step;
  auto& shared = *static_cast<memory_step::Shared*>(work);
  const auto hand_on = [&](int i, float4 o) {
    float* const to = level.mail[0] + i;
    mail.put(to, o.x), mail.put(to + 1, o.y), mail.put(to + 2, o.z), mail.put(to + 3, o.w);
  };
#pragma unroll 1
  for (int task = static_cast<int>(blockIdx.x); task < p.tasks(); task += static_cast<int>(gridDim.x)) {
    const int rows = p.rows_of_thread();
    const bool delta_rule = level.kind == Kind::delta_rule;
    const auto take = [&]<int RowsPerThread>() {
      delta_rule ? memory_step::take_step<true, RowsPerThread>(p, task, shared, mail, hand_on)
                 : memory_step::take_step<false, RowsPerThread>(p, task, shared, mail, hand_on);
    };
    rows == 1   ? take.template operator()<1>()
    : rows == 2 ? take.template operator()<2>()
                : take.template operator()<4>();
  }
}

/// Where a warp is, is kept in shared memory: in its registers it would be in the way of all that a level needs.
__device__ int own_level(const Levels& levels) { return seen(&levels.level_of_warp[own_thread() / warp_size]); }
/// By one warp: the level has ended.
__device__ void end_level(Levels& levels) {
  __syncwarp();
  const int thread = own_thread();
  if (thread % warp_size == 0) {
    raise(&levels.level_of_warp[thread / warp_size], own_level(levels) + 1);
    asm volatile("red.release.cta.shared.add.s32 [%0], 1;" ::"r"(address_of(&levels.ended)) : "memory");
  }
  __syncwarp();
}

/// `all`: the levels, or null where there is only `one`.
__global__ void __launch_bounds__(block_threads, 1)
    chain_kernel(const Level* all, int count, Mailbox* box, const __grid_constant__ Level one) {
  extern __shared__ __align__(128) char ring[];
  __shared__ __align__(64) unsigned char room_for_levels[sizeof(Levels)];
  __shared__ Stage stages_of_ring[stages];
  auto& levels = *reinterpret_cast<Levels*>(room_for_levels);
  auto& work = *reinterpret_cast<Work*>(ring + ring_bytes);
  const int thread = own_thread(), warp = thread / warp_size;
  if (thread == 0) {
    levels.planned = levels.fetched = levels.ended = 0;
    for (int& level : levels.level_of_warp) level = 0;
    levels.mail =
        box == nullptr ? Mail{} : Mail{reinterpret_cast<std::uintptr_t>(box->begin), box->bytes, box->turn * std::uintptr_t{box->bytes}};
  }
  if (thread < stages) stages_of_ring[thread].make();
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (warp == fetcher) {
    fetch_weights(levels, count, address_of(ring), stages_of_ring);
  } else if (warp == planner) {
    look_ahead(levels, all != nullptr ? all : &one, count, box);
  } else {
    const Mail& mail = levels.mail;
#pragma unroll 1
    while (own_level(levels) < count) {
      while (seen(&levels.planned) <= own_level(levels)) {
      }
      sync_warps();
      const Slot& slot = levels.at(own_level(levels));
      if (slot.level.kind == Kind::products) {
        make_products(slot, work, stages_of_ring, address_of(ring), mail);
        if (slot.made_rows > 0) make_rows(slot, work, stages_of_ring, ring, mail);
      } else {
        take_steps(slot.level, &work, mail);
      }
      end_level(levels);
    }
  }
  if (box == nullptr) return;
  // The last block gives the turn to the other box, which nobody has looked into.
  __syncthreads();
  if (threadIdx.x == 0 && atomicInc(&box->ended, gridDim.x - 1) == gridDim.x - 1) box->turn ^= 1;
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

/// The most that a block has of n.
int most_of(int n) {
  const auto blocks = static_cast<int>(multiprocessors());
  return (n + blocks - 1) / blocks;
}

/// As the kernel sees them. False where they do not fit it.
bool as_tiles(Tiles& tiles, const OneRow& op) {
  const Input& input = op.inputs[0];
  const int most = threads * piece_numbers * (input.group > 0 ? 1 : most_parts);
  const bool activates = input.gate == nullptr || input.act == Activation::silu || input.act == Activation::sigmoid;
  const bool aligned_norm = reinterpret_cast<std::uintptr_t>(input.weight) % piece == 0 && input.group % 4 == 0;
  if (op.input_count != 1 || input.n % block_columns != 0 || input.n > most || !activates || !aligned_norm) return false;
  tiles.input = input;
  tiles.outputs_of_tile = op.products[0].end == End::gated ? tile_rows / 2 : tile_rows;
  tiles.blocks = input.n / block_columns;
  const int pieces = (tiles.blocks + most_blocks - 1) / most_blocks;
  tiles.blocks_of_piece = (tiles.blocks + pieces - 1) / pieces;
  constexpr int line = 128;
  tiles.part_bytes = (2 * input.n + line - 1) / line * line;
  const auto take = [&](const auto& wanted) {
    int outputs = 0;
    for (int n = 0; n < op.product_count; ++n) {
      const Product& p = op.products[n];
      if (!wanted(p)) continue;
      tiles.first_output[tiles.product_count] = outputs;
      tiles.products[tiles.product_count++] = p;
      outputs += p.out;
    }
    return outputs;
  };
  tiles.announced_outputs = take([](const Product& p) { return p.announced; });
  tiles.announced_products = tiles.product_count;
  tiles.outputs_of_x = take([](const Product& p) { return !p.announced && p.made == nullptr; });
  tiles.products_of_x = tiles.product_count;
  take([](const Product& p) { return p.made != nullptr; });
  int numbers = 0, bytes = 0;
  bool fits = true;
  for (int n = 0; n < tiles.product_count; ++n) {
    const Product& p = tiles.products[n];
    fits &= p.weight_bytes % piece == 0 && (p.made == nullptr ? p.in == input.n : p.weight_bytes == 2 * p.in && !p.announced);
    if (p.made != nullptr) numbers += p.in, bytes += most_of(p.out) * p.in * 2;
  }
  const bool listed = tiles.product_count == 1 || most_of(tiles.announced_outputs) + most_of(tiles.outputs_of_x) <= listed_rows;
  return fits && listed && numbers <= most_made_numbers && bytes <= stage_bytes;
}

/// Of a launch whose levels' x take so much, beside what the kernel declares.
std::size_t shared_memory_of(std::size_t x_bytes) {
  return static_cast<std::size_t>(ring_bytes) + std::max(offsetof(Work, x) + x_bytes, sizeof(memory_step::Shared));
}
/// What of a level's memory comes by mail: the numbers that levels before it have made.
class Addresses {
 public:
  /// Numbers made at p have their place at `mail`.
  void made(const float* p, std::int64_t count, float* mail) {
    written(p, count);
    ranges_[p] = {p + count, mail};
  }
  /// They have none.
  void written(const float* p, std::int64_t count) {
    if (p == nullptr) return;
    for (auto i = ranges_.begin(); i != ranges_.end();) i = i->first < p + count && p < i->second.end ? ranges_.erase(i) : std::next(i);
  }
  void look_up(const float*& p) const {
    const auto next = ranges_.upper_bound(p);
    if (p == nullptr || next == ranges_.begin()) return;
    const auto& [begin, range] = *std::prev(next);
    if (p < range.end) p = range.mail + (p - begin);
  }

 private:
  struct Range {
    const float* end;
    float* mail;
  };
  std::map<const float*, Range> ranges_;
};

/// visit(p) for each p that a level reads numbers at which levels before it may have made.
template <class Level, class Visit>
void for_what_is_read(Level& level, const Visit& visit) {
  if (level.kind == Kind::products) {
    visit(level.tiles.input.x), visit(level.tiles.input.gate);
    for (int n = 0; n < level.tiles.product_count; ++n) visit(level.tiles.products[n].addend);
    return;
  }
  auto& step = level.step;
  for (auto* x : {&step.q, &step.k, &step.v, &step.log_decay, &step.beta}) visit(x->x);
  for (auto* x : {&step.q_source, &step.k_source}) visit(x->shared), visit(x->sparse), visit(x->more);
  visit(step.routing.logits);
}

/// Gives all that levels make a place from `begin` on, and lets those behind read it there. Returns the bytes of these places; null: only
/// that.
std::size_t address_mail(std::vector<Level>& levels, float* begin) {
  Addresses addresses;
  std::size_t numbers = 0;
  const auto place = [&](std::int64_t count, bool right_behind) {
    constexpr std::size_t line = 32;  // numbers
    if (!right_behind) numbers = (numbers + line - 1) / line * line;
    float* const mail = begin + numbers;
    numbers += static_cast<std::size_t>(count);
    return mail;
  };
  for (Level& level : levels) {
    if (begin != nullptr) for_what_is_read(level, [&](const float*& p) { addresses.look_up(p); });
    if (level.kind != Kind::products) {
      const Step& step = level.step;
      level.mail[0] = place(std::int64_t{step.H} * step.V, false);
      for (const float* pair : {step.q_source.pair, step.k_source.pair}) addresses.written(pair, std::int64_t{2} * step.H * step.K);
      addresses.written(step.routing.gate, step.routing.N);
      addresses.made(step.o, std::int64_t{step.H} * step.V, level.mail[0]);
      continue;
    }
    // What lies side by side does so in the mail: a reader may take several products' numbers as one row.
    std::vector<int> order(static_cast<std::size_t>(level.tiles.product_count));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int n) { return level.tiles.products[n].y; });
    const float* end = nullptr;
    for (const int n : order) {
      const Product& p = level.tiles.products[n];
      level.mail[n] = place(p.out, p.y == end);
      end = p.y + p.out;
    }
    for (const int n : order) {
      const Product& p = level.tiles.products[n];
      addresses.written(p.z, p.out);
      addresses.made(p.y, p.out, level.mail[n]);
    }
    for (int n = 0; begin != nullptr && n < level.tiles.product_count; ++n) addresses.look_up(level.tiles.products[n].made);
  }
  constexpr std::size_t line = 128;
  return (numbers * sizeof(float) + line - 1) / line * line;
}

}  // namespace

struct Chain::Collected {
  int device = 0;
  std::vector<Level> levels;
  std::size_t x_bytes = 0;  // the most of a level
  std::mutex mutex;         // buffers are given back by any thread

  /// Whether the level reads what a product has made on its way: that is not handed on.
  bool knows_z_that_reads(const Level& level) const {
    bool reads = false;
    for_what_is_read(level, [&](const float* p) {
      for (const Level& before : levels) {
        for (int n = 0; n < before.tiles.product_count; ++n) {
          const Product& made = before.tiles.products[n];
          reads |= p != nullptr && made.z != nullptr && p >= made.z && p < made.z + made.out;
        }
      }
    });
    return reads;
  }
};

Chain::Chain() : collected_(std::make_unique<Collected>()) {
  check(cudaGetDevice(&collected_->device), "the device");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
}
Chain::~Chain() { cudaStreamDestroy(stream_); }

cudaStream_t Chain::stream() {
  const std::lock_guard lock(collected_->mutex);
  launch();
  return stream_;
}
void Chain::drop() {
  const std::lock_guard lock(collected_->mutex);
  collected_->levels.clear();
}
std::vector<Chain::Memory> Chain::captured() { return std::exchange(captured_, {}); }

bool Chain::add(const OneRow& op, DType type) {
  Level level{.kind = Kind::products, .tiles = {}, .step = {}, .mail = {}};
  if (type != DType::bf16 || !as_tiles(level.tiles, op)) return false;
  const std::size_t x_bytes = static_cast<std::size_t>(parts_of_x * level.tiles.part_bytes) + 128;
  constexpr std::size_t besides = sizeof(Levels) + sizeof(Stage) * stages;
  if (besides + shared_memory_of(x_bytes) > static_cast<std::size_t>(attribute_of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin)))
    return false;
  const std::lock_guard lock(collected_->mutex);
  if (collected_->levels.size() == most_levels || collected_->knows_z_that_reads(level)) launch();
  collected_->x_bytes = std::max(collected_->x_bytes, x_bytes);
  collected_->levels.push_back(level);
  return true;
}
bool Chain::add(const Step& step, bool delta_rule) {
  const std::lock_guard lock(collected_->mutex);
  Level level{.kind = delta_rule ? Kind::delta_rule : Kind::outer_product, .tiles = {}, .step = step, .mail = {}};
  // Where not all tasks would run at once, wider ones.
  const auto wider = [&] {
    Step p = step;
    p.columns = memory_step::most_columns;
    return p.K <= 4 * p.rows_at_once() ? p : step;
  };
  if (step.tasks() > static_cast<int>(multiprocessors())) level.step = wider();
  if (collected_->levels.empty() || collected_->levels.size() == most_levels || collected_->knows_z_that_reads(level)) return false;
  collected_->levels.push_back(level);
  return true;
}

void Chain::launch() {
  std::vector<Level> levels = std::exchange(collected_->levels, {});
  if (levels.empty()) return;
  check(cudaSetDevice(collected_->device), "the device");
  const std::size_t shared = shared_memory_of(std::exchange(collected_->x_bytes, 0)), mail_bytes = address_mail(levels, nullptr),
                    level_bytes = levels.size() * sizeof(Level), mail_begin = (sizeof(Mailbox) + level_bytes + 255) / 256 * 256;
  cudaStreamCaptureStatus capture{};
  check(cudaStreamIsCapturing(stream_, &capture), "a graph");
  const Tiles& first = levels[0].tiles;
  const bool alone = levels.size() == 1 && first.products_of_x == first.product_count,
             kept = !alone && capture == cudaStreamCaptureStatusActive;
  // A mailbox, the levels, both boxes. What a graph finds there is no part of it.
  char* sent = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  if (kept) {
    check(cudaThreadExchangeStreamCaptureMode(&mode), "a graph");
    check(cudaMalloc(&sent, mail_begin + 2 * mail_bytes), "device memory");
    captured_.emplace_back(sent, [](void* p) { cudaFree(p); });
  } else if (!alone) {
    check(cudaMallocAsync(&sent, mail_begin + 2 * mail_bytes, stream_), "device memory");
  }
  const auto* all = reinterpret_cast<const Level*>(sent + sizeof(Mailbox));
  if (alone) {
    all = nullptr;
    std::ranges::fill(levels[0].mail, nullptr);
  } else {
    address_mail(levels, reinterpret_cast<float*>(sent + mail_begin));
    const Mailbox box{0, 0, sent + mail_begin, static_cast<unsigned>(mail_bytes)};
    std::vector<char> bytes(sizeof(Mailbox) + level_bytes);
    std::memcpy(bytes.data(), &box, sizeof box);
    std::memcpy(bytes.data() + sizeof box, levels.data(), level_bytes);
    const auto send = [&](cudaStream_t stream) {
      check(cudaMemcpyAsync(sent, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream), "a chain");
      check(cudaMemsetAsync(sent + mail_begin, 0xFF, 2 * mail_bytes, stream), "a chain");
    };
    if (kept) {
      cudaStream_t aside{};
      check(cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking), "a stream");
      send(aside);
      check(cudaStreamSynchronize(aside), "a chain");
      check(cudaStreamDestroy(aside), "a stream");
      check(cudaThreadExchangeStreamCaptureMode(&mode), "a graph");
    } else {
      send(stream_);  // pageable memory: copied before the call returns
    }
  }
  allow_shared_memory("a chain", reinterpret_cast<const void*>(chain_kernel), shared);
  // Blocks wait for one another: all of them have to be there.
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = multiprocessors();
  config.blockDim = block_threads;
  config.dynamicSmemBytes = shared;
  config.stream = stream_;
  config.attrs = &together;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, chain_kernel, all, static_cast<int>(levels.size()), reinterpret_cast<Mailbox*>(sent), levels[0]),
        "a chain");
  if (sent != nullptr && !kept) check(cudaFreeAsync(sent, stream_), "device memory");
}

}  // namespace statescope::cuda
