// A token's levels as one kernel: products of one row and steps of memories, each of which takes the results of those before it. One warp
// of a block brings all the weights of the token, as the host has dealt them out, through a ring in shared memory, and waits for nothing
// but room. The others multiply: a thread has the numbers of x that belong to its columns in registers, a warp some columns of each row. So
// between two levels nothing is moved: a thread looks for its numbers of x among the mail, multiplies, and hands on what it has finished.
#include "kernels/cuda_levels.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/cuda_hopper.h"
#include "kernels/cuda_mail.h"

namespace statescope::cuda {
namespace {

using one_row::convolved;
using one_row::End;
using one_row::OneRow;

constexpr int warp_size = 32, warps = 15, threads = warps * warp_size, all_threads = threads + warp_size;
constexpr int fours = 4, four_apart = 4 * warp_size,
              warp_columns = fours * four_apart;                     // of a lane; columns from one to the next; of a warp
constexpr int ring_stages = 12, slots = 3;                           // of the ring; of levels in shared memory
constexpr int most_inputs = 8, most_products = 16, most_outs = 192;  // of a level; outputs of a block in it
constexpr int shares = 720720;  // a stage is free when all have arrived who read it: up to 15 warps, each with its share
constexpr int rows_of_thread = 4, pairs_at_most = 4;  // of a state; pairs of four columns that a block owns

// What the host has worked out. The same for all blocks: levels; for each block: work.

struct Input {
  const float *x, *weight, *gate;  // [n]; the weights of the norm and the gate that x passes (silu), or null
  int n, group;                    // group 0: no norm
  float eps, offset;
  int lanes_of_group;            // where a group is of one warp: how many of its lanes have each four of it, or 0
  bool x_awaited, gate_awaited;  // comes by mail
};

struct Product : one_row::Product {
  float *y_mail, *z_mail;  // null: nobody waits
  bool addend_awaited;
};

/// Products whose rows are as long, or short ones of several inputs. Rows of a block go through the ring `rows` at a time; one of `teams`
/// of `of_team` warps multiplies them, each warp its columns.
struct Products {
  int of_team, teams, rows, row_bytes, team_inverse, share;  // 2^16 / of_team, rounded up; of a warp in `shares`
  int input_count, product_count;
  Input inputs[most_inputs];
  Product products[most_products];
};

/// A block's tile of a head: `pairs` pairs of four columns.
struct Memory {
  memory_step::Step step;
  float* o_mail;
  bool delta_rule;
  int pairs, tiles, rows_at_once;  // tiles of a head; rows that all its threads have at once
  int row_groups, pairs_inverse;   // warps of a pair; 2^16 / pairs, rounded up
};

/// One of both.
struct Level {
  enum class Kind { products, memory } kind;
  Memory memory;
  Products products;
};

/// An output of a block: where its sums stand, of which product it is.
struct Out {
  std::uint16_t place, product;
  int o;
};
/// Of a level; then follow the outputs, then the number of the input for each stage.
struct alignas(16) Work {
  int stages, outs;
  int pad[2];
  __device__ const Out* out() const { return reinterpret_cast<const Out*>(this + 1); }
  __device__ const unsigned char* inputs() const { return reinterpret_cast<const unsigned char*>(out() + outs); }
};
/// Where a level and a block's work stand.
struct alignas(16) Entry {
  unsigned level, level_bytes, work, work_bytes;
};
struct alignas(16) Stage {
  const char* from;
  unsigned bytes, pad;
};

struct Program {
  const char* base;
  const Entry* entries;  // [blocks, levels]
  const Stage* stages;
  const int* first_stage;  // [blocks + 1]
  int levels, stage_bytes, level_room, slot_bytes, places, sums;
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

struct Team {
  static constexpr int warps = cuda::warps;
  static __device__ void sync() { asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory"); }
};

/// What the warps share beside levels, sums and the ring.
struct Shared {
  std::uint64_t full[ring_stages], empty[ring_stages], loaded[slots];
  float squares[2][warps];
  memory_step::Row row;
  memory_step::Chosen chosen;
  float logits[memory_step::most_partitions];
  memory_step::Four parts[warps];
  alignas(16) float of_rows[2][warps][2][12];
};

/// Where somebody is in the ring.
struct Place {
  int stage = 0, parity = 0;
  __device__ void go(int n) {
    stage += n;
    while (stage >= ring_stages) stage -= ring_stages, parity ^= 1;
  }
};

__device__ inline void arrive(std::uint64_t& barrier, int count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(count) : "memory");
}

/// Starts to copy weights: a token reads them once, so they are the first to leave the second cache again.
__device__ inline void copy_weights(void* to, const char* from, unsigned bytes, std::uint64_t& full, std::uint64_t policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(&full)), "l"(policy)
               : "memory");
}
__device__ inline std::uint64_t leaves_first() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// By one warp: all weights of the block.
__device__ void fetch(const Program& program, Shared& shared, char* ring) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int first = program.first_stage[blockIdx.x], last = program.first_stage[blockIdx.x + 1];
  const std::uint64_t policy = leaves_first();
  const auto stage_of = [&](int i) { return i < last ? program.stages[i] : Stage{}; };
  Place at;
  Stage next = stage_of(first + lane);
#pragma unroll 1
  for (int begin = first; begin < last; begin += warp_size) {
    const Stage own = next;
    next = stage_of(begin + warp_size + lane);
    const int count = min(warp_size, last - begin);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const auto* from = reinterpret_cast<const char*>(__shfl_sync(~0U, reinterpret_cast<unsigned long long>(own.from), i));
      const unsigned bytes = __shfl_sync(~0U, own.bytes, i);
      if (lane == 0) {
        wait(shared.empty[at.stage], at.parity ^ 1);
        arrive_and_expect(shared.full[at.stage], bytes);
        copy_weights(ring + at.stage * program.stage_bytes, from, bytes, shared.full[at.stage], policy);
      }
      at.go(1);
    }
  }
}

/// By one thread: a level and the block's work in it.
__device__ inline void bring(const Program& program, const Entry& entry, int level, char* memory, Shared& shared) {
  char* const slot = memory + level % slots * program.slot_bytes;
  std::uint64_t& loaded = shared.loaded[level % slots];
  arrive_and_expect(loaded, entry.level_bytes + entry.work_bytes);
  copy_bytes(slot, program.base + entry.level, entry.level_bytes, loaded);
  if (entry.work_bytes > 0) copy_bytes(slot + program.level_room, program.base + entry.work, entry.work_bytes, loaded);
}

__device__ inline float4 zeros() { return {0, 0, 0, 0}; }

__device__ inline float sum_over(float x, int lanes) {
#pragma unroll 1
  for (int distance = lanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0U, x, distance);
  return x;
}

/// (Σ x² / group + eps)^{−1/2}
__device__ inline float norm_factor(const Input& input, float square) {
  return rsqrtf(square * (1 / static_cast<float>(input.group)) + input.eps);
}

__device__ inline uint2 two_words(unsigned shared_place) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(shared_place) : "memory");
  return x;
}

/// The numbers of x that belong to a lane's columns.
struct Numbers {
  float at[fours][4];

  static __device__ int column(int of_team, int i) {
    return of_team * warp_columns + i * four_apart + 4 * (static_cast<int>(threadIdx.x) % warp_size);
  }
  /// Where four of them stand in a row of n; beyond its end: any.
  static __device__ int place(int of_team, int i, int n) { return min(column(of_team, i), n - 4); }

  /// With the norm's weights and the gate, and its factor where a group is of this warp. Returns the warp's share of Σ x².
  template <bool plain>
  __device__ float take(const Input& input, int of_team) {
    float4 x[fours], gate[fours], weight[fours];
    const int n = input.n, group = input.group, lanes = input.lanes_of_group;
    const auto four = [&](const float* from, int i) { return reinterpret_cast<const float4*>(from + place(of_team, i, n)); };
    const float *const from = input.x, *const gate_from = plain ? nullptr : input.gate;
#pragma unroll
    for (int i = 0; i < fours; ++i) x[i] = look(four(from, i));
    if (gate_from != nullptr) {
#pragma unroll
      for (int i = 0; i < fours; ++i) gate[i] = look(four(gate_from, i));
    }
    if (!plain) {
      const float* const weights = input.weight;
#pragma unroll
      for (int i = 0; i < fours; ++i) {
        weight[i] = {1, 1, 1, 1};
        if (weights == nullptr) continue;
        const int at = place(of_team, i, n);
        const float4 w = __ldg(reinterpret_cast<const float4*>(weights + (lanes > 0 ? at & (group - 1) : at)));
        weight[i] = {w.x + input.offset, w.y + input.offset, w.z + input.offset, w.w + input.offset};
      }
    }
    float squares = 0, square[fours];
#pragma unroll
    for (int i = 0; i < fours; ++i) {
      wait_together(x[i], four(from, i), input.x_awaited);
      const bool inside = column(of_team, i) < n;
      const float4 z = x[i];
      at[i][0] = inside ? z.x : 0, at[i][1] = inside ? z.y : 0, at[i][2] = inside ? z.z : 0, at[i][3] = inside ? z.w : 0;
      square[i] = at[i][0] * at[i][0] + at[i][1] * at[i][1] + at[i][2] * at[i][2] + at[i][3] * at[i][3];
      squares += square[i];
    }
    if (plain) return 0;
    if (lanes > warp_size) square[0] = square[1] = square[2] = square[3] = squares;
#pragma unroll
    for (int i = 0; i < fours; ++i) {
      const float factor = lanes > 0 ? norm_factor(input, sum_over(square[i], min(lanes, warp_size))) : 1;
      at[i][0] *= weight[i].x * factor, at[i][1] *= weight[i].y * factor;
      at[i][2] *= weight[i].z * factor, at[i][3] *= weight[i].w * factor;
      if (gate_from == nullptr) continue;
      wait_together(gate[i], four(gate_from, i), input.gate_awaited);
      at[i][0] *= silu(gate[i].x), at[i][1] *= silu(gate[i].y), at[i][2] *= silu(gate[i].z), at[i][3] *= silu(gate[i].w);
    }
    return lanes > 0 ? 0 : sum_over(squares, warp_size);
  }
};

/// Sums over the lanes at `distance` and less from one another: half of the numbers stay with the lower lanes, half with the upper ones, as
/// long as there are several.
template <int n, int nearest = 1>
__device__ float sum_apart(float (&x)[n], int distance) {
  const bool upper = (threadIdx.x & static_cast<unsigned>(distance)) != 0;
  if constexpr (n > 1) {
    float half[n / 2];
#pragma unroll
    for (int i = 0; i < n / 2; ++i) {
      half[i] = (upper ? x[i + n / 2] : x[i]) + __shfl_xor_sync(~0U, upper ? x[i] : x[i + n / 2], distance);
    }
    return sum_apart<n / 2, nearest>(half, distance / 2);
  } else {
#pragma unroll
    for (int d = warp_size / 2; d >= nearest; d /= 2) {
      if (d <= distance) x[0] += __shfl_xor_sync(~0U, x[0], d);
    }
    return x[0];
  }
}

/// Sums over the lanes that are as odd: three each in lanes 0 and 1, 8 and 9, 16 and 17, 24 and 25.
__device__ inline void sum_to_three(const float (&x)[12], float (&sum)[3]) {
  const auto halved = [&]<int n>(const float* from, float* to, int distance) {
    const bool upper = (threadIdx.x & static_cast<unsigned>(distance)) != 0;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      to[i] = (upper ? from[i + n] : from[i]) + __shfl_xor_sync(~0U, upper ? from[i] : from[i + n], distance);
    }
  };
  float six[6];
  halved.template operator()<6>(x, six, 16);
  halved.template operator()<3>(six, sum, 8);
#pragma unroll
  for (int d = 4; d > 1; d /= 2) {
#pragma unroll
    for (int i = 0; i < 3; ++i) sum[i] += __shfl_xor_sync(~0U, sum[i], d);
  }
}

/// Where a block multiplies a level.
struct Room {
  const char* ring;
  float *sums, *squares;  // [of_team, places], [of_team]
  int stage_bytes, places;
};

/// The warp's part of the products of its team's stages with x. own_inputs: each stage has its own, and rows are short.
template <int rows, bool own_inputs>
__device__ void multiply(const Room& room, Shared& shared, Place at, const Products& level, const Work& work, int team, int of_team) {
  constexpr int places = rows == 3 ? 4 : rows, of_place = warp_size / places;
  const int lane = static_cast<int>(threadIdx.x) % warp_size, stages = work.stages, teams = level.teams, share = level.share;
  Numbers x;
  if (own_inputs) {
  } else if (level.inputs[0].group > 0) {
    const float square = x.take<false>(level.inputs[0], of_team);
    if (lane == 0 && team == 0) room.squares[of_team] = square;
  } else {
    x.take<true>(level.inputs[0], of_team);
  }
  const unsigned ring = shared_address(room.ring);
  int offset[fours], row_bytes = level.row_bytes;
#pragma unroll
  for (int i = 0; i < fours; ++i) offset[i] = 2 * Numbers::place(of_team, i, row_bytes / 2);
  at.go(team);
#pragma unroll 1
  for (int s = team; s < stages; s += teams) {
    if constexpr (own_inputs) {
      const Input& input = level.inputs[work.inputs()[s]];
      x.take<true>(input, 0);
      row_bytes = 2 * input.n;
#pragma unroll
      for (int i = 0; i < fours; ++i) offset[i] = 2 * Numbers::place(0, i, input.n);
    }
    const unsigned stage = ring + static_cast<unsigned>(at.stage * room.stage_bytes);
    float sum[places]{};
    wait(shared.full[at.stage], at.parity);
#pragma unroll
    for (int i = 0; i < fours; ++i) {
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const uint2 w = two_words(stage + static_cast<unsigned>(r * row_bytes + offset[i]));
        sum[r] = fmaf(x.at[i][0], __uint_as_float(w.x << 16), sum[r]);
        sum[r] = fmaf(x.at[i][1], __uint_as_float(w.x & 0xFFFF0000U), sum[r]);
        sum[r] = fmaf(x.at[i][2], __uint_as_float(w.y << 16), sum[r]);
        sum[r] = fmaf(x.at[i][3], __uint_as_float(w.y & 0xFFFF0000U), sum[r]);
      }
    }
    __syncwarp();
    if (lane == 0) arrive(shared.empty[at.stage], share);
    const float own = sum_apart(sum, warp_size / 2);
    if (lane % of_place == 0 && lane / of_place < rows) room.sums[of_team * room.places + s * rows + lane / of_place] = own;
    at.go(teams);
  }
}

/// The output that a thread will finish, with what it needs for that.
struct Ending {
  const Product* product = nullptr;
  int place = 0, o = 0;
  float added = 0, bias = 0;

  /// Before the products are there.
  __device__ void prepare(const Products& level, const Work& work) {
    if (static_cast<int>(threadIdx.x) >= work.outs) return;
    const Out out = work.out()[threadIdx.x];
    product = level.products + out.product, place = out.place, o = out.o;
    bias = product->bias != nullptr ? product->bias[o] : 0;
    if (product->addend != nullptr) added = look(product->addend + o);
    if (product->end != End::convolve) return;
    memory_step::prefetch(product->taps + static_cast<std::int64_t>(o) * product->width);
#pragma unroll 1
    for (int j = 0; j < product->width - 1; ++j) memory_step::prefetch(product->cache + j * product->out + o);
  }
  static __device__ void write(float* to, float* mail, int o, float x) {
    if (mail != nullptr) post(mail + o, x);
    if (to != nullptr) to[o] = x;
  }

  /// The sum of the warps' parts, times the factor of the norm that all of x passed.
  static __device__ float sum_of(const Products& level, const float* squares, const float* sums, int places) {
    const Input& input = level.inputs[0];
    float sum = 0, square = 0;
#pragma unroll 4
    for (int w = 0; w < level.of_team; ++w) sum += sums[w * places], square += squares[w];
    return input.group > 0 && input.lanes_of_group == 0 ? sum * norm_factor(input, square) : sum;
  }

  __device__ void finish(const Products& level, const float* squares, const float* sums, int places) {
    if (product == nullptr) return;
    const Product& p = *product;
    float x = sum_of(level, squares, sums + place, places) + bias;
    write(p.z, p.z_mail, o, x);
    if (p.end == End::forget_gate || p.end == End::delta_decay) {
      const float y =
          p.end == End::forget_gate ? log_sigmoid_decay(x, p.scale, p.clamp_min) : gated_delta_decay(x, p.A_log[o], p.dt_bias[o]);
      return write(p.y, p.y_mail, o, y);
    }
    if (p.end == End::convolve) x = convolved(p, o, x);
    if (p.addend != nullptr) wait_for(added, p.addend + o, p.addend_awaited);
    const float other = p.end == End::gated ? sum_of(level, squares, sums + place + level.rows, places) : 1;
    write(p.y, p.y_mail, o, activated_by_one(x + added, p.act) * other);
  }
};

/// A number of q or k: lies at one place, or is made of what lies at one or two.
struct Seen {
  const float *at = nullptr, *more = nullptr;
  bool awaited = false, more_awaited = false;
  float x = 0, added = 0;

  __device__ Seen(const memory_step::Operand& operand, const memory_step::Source& source, int half, int h, int H, int r) {
    const int head = operand.heads == H ? h : static_cast<int>(producer_head(h, operand.heads, H)), i = head * operand.width + r;
    if (source.shared == nullptr) {
      at = operand.x + half * operand.heads * operand.width + i, awaited = operand.awaited;
    } else if (half == 0) {
      at = source.shared + i, awaited = source.shared_awaited;
    } else {
      at = source.sparse + i, awaited = source.sparse_awaited, more = source.more + i, more_awaited = source.more_awaited;
    }
    x = look(at);
    if (more != nullptr) added = look(more);
  }
  __device__ float number(const memory_step::Source& source) {
    wait_for(x, at, awaited);
    wait_for(added, more, more_awaited);
    const float z = x + added;
    return source.shared == nullptr || source.softmax ? z : activated_by_one(z, source.act);
  }
};

/// A memory's step in the block's tile `tile` of all heads' tiles.
__device__ void step(const Memory& level, Shared& shared, int tile_of_all) {
  using namespace memory_step;
  const Step& p = level.step;
  const int warp = static_cast<int>(threadIdx.x) / warp_size, lane = static_cast<int>(threadIdx.x) % warp_size;
  const int h = static_cast<int>(static_cast<unsigned>(tile_of_all) / static_cast<unsigned>(level.tiles)),
            tile = tile_of_all - h * level.tiles;
  const int rows = warp * level.pairs_inverse >> 16, pair = warp - rows * level.pairs, row_groups = level.row_groups;
  const int column = (tile * level.pairs + pair) * 2 * own_columns + lane % 2 * own_columns;
  const bool present = column < p.V && rows < row_groups;
  const auto row_at = [&](int i) { return rows * (warp_size / 2) + lane / 2 + i * level.rows_at_once; };
  const auto state_at = [&](int slot) { return p.state + (static_cast<std::int64_t>(slot) * p.H + h) * p.K * p.V + column; };
  float4 S[rows_of_thread];
  const auto read = [&](const float* state) {
#pragma unroll
    for (int i = 0; i < rows_of_thread; ++i) {
      if (row_at(i) < p.K && present) S[i] = *reinterpret_cast<const float4*>(state + static_cast<std::int64_t>(row_at(i)) * p.V);
    }
  };
  read(state_at(0));  // nobody else touches it

  const bool sparse = p.choices.count > 0;
  const auto* const v_at = reinterpret_cast<const float4*>(p.v.at(0, h, p.H) + column);
  float4 v = present ? look(v_at) : zeros();
  const auto beta_at = [&](int half) { return p.beta.at(half, h, p.H); };
  float beta = 1, sparse_beta = 1;
  if (p.beta.x != nullptr) {
    beta = look(beta_at(0));
    if (sparse) sparse_beta = look(beta_at(1));
  }
  const bool routes = p.routing.logits != nullptr;
  load_row<Team>(shared.row, shared.parts, p, h, tile == 0, [&](int half, int r) -> Channel {
    Seen q(p.q, p.q_source, half, h, p.H, r), k(p.k, p.k_source, half, h, p.H, r);
    float log_decay = 0;
    if (p.log_decay.x != nullptr) {
      const float* const at = p.log_decay.at(half, h, p.H) + (p.log_decay.width > 1 ? r : 0);
      log_decay = look(at);
      wait_for(log_decay, at, p.log_decay.awaited);
    }
    return {q.number(p.q_source), k.number(p.k_source), log_decay};
  });
  if (sparse && warp == warps - 1) {
    Routing routing = p.routing;
    if (routes) {
      for (int n = lane; n < routing.N; n += warp_size) {
        shared.logits[n] = look(routing.logits + n);
        wait_for(shared.logits[n], routing.logits + n, routing.awaited);
      }
      __syncwarp();
      routing.logits = shared.logits;
    }
    choose(shared.chosen, p.choices, routing, tile_of_all == 0);
  }
  if (present) wait_for(v, v_at, p.v.awaited);
  if (p.beta.awaited) {
    wait_for(beta, beta_at(0), true);
    if (sparse) wait_for(sparse_beta, beta_at(1), true);
  }
  Team::sync();

  const Row& row = shared.row;
  float4 o = zeros();
#pragma unroll 1
  for (int n = 0; n <= p.choices.count; ++n) {
    const int half = n > 0 ? 1 : 0;
    float* const state = state_at(n > 0 ? 1 + shared.chosen.partition[n - 1] : 0);
    const float gate = n > 0 ? shared.chosen.gate[n - 1] : 1;
    if (n > 0) read(state);
    float q[rows_of_thread], k[rows_of_thread];
#pragma unroll
    for (int i = 0; i < rows_of_thread; ++i) {
      const bool own = row_at(i) < p.K && present;
      q[i] = own ? row.q[half][row_at(i)] : 0, k[i] = own ? row.k[half][row_at(i)] : 0;
      if (!own) S[i] = zeros();
    }
    const auto store = [&] {
#pragma unroll
      for (int i = 0; i < rows_of_thread; ++i) {
        if (row_at(i) < p.K && present) *reinterpret_cast<float4*>(state + static_cast<std::int64_t>(row_at(i)) * p.V) = S[i];
      }
    };
    if (level.delta_rule) {
      // u = β (v − α k S),  S ← α S + kᵀ u,  q S_new = α q S + (q kᵀ) u: one exchange for the sums of k S, q S, k kᵀ, q qᵀ, q kᵀ
      float sum[12]{};
#pragma unroll
      for (int i = 0; i < rows_of_thread; ++i) {
        sum[0] = fmaf(k[i], S[i].x, sum[0]), sum[1] = fmaf(k[i], S[i].y, sum[1]), sum[2] = fmaf(k[i], S[i].z, sum[2]);
        sum[3] = fmaf(k[i], S[i].w, sum[3]);
        sum[4] = fmaf(q[i], S[i].x, sum[4]), sum[5] = fmaf(q[i], S[i].y, sum[5]), sum[6] = fmaf(q[i], S[i].z, sum[6]);
        sum[7] = fmaf(q[i], S[i].w, sum[7]);
        sum[8] = fmaf(k[i], k[i], sum[8]), sum[9] = fmaf(q[i], q[i], sum[9]), sum[10] = fmaf(q[i], k[i], sum[10]);
      }
      float three[3];  // of twelve, those of a lane's place
      sum_to_three(sum, three);
      float(*const of_rows)[2][12] = shared.of_rows[n % 2];
      if ((lane & 6) == 0) {
#pragma unroll
        for (int j = 0; j < 3; ++j) of_rows[warp][lane % 2][3 * (lane / 8) + j] = three[j];
      }
      Team::sync();
#pragma unroll
      for (int j = 0; j < 12; ++j) sum[j] = 0;
#pragma unroll 1
      for (int g = 0; g < row_groups; ++g) {
        const auto* part = reinterpret_cast<const float4*>(of_rows[g * level.pairs + pair][lane % 2]);
#pragma unroll
        for (int j = 0; j < 3; ++j) {
          const float4 x = part[j];
          sum[4 * j] += x.x, sum[4 * j + 1] += x.y, sum[4 * j + 2] += x.z, sum[4 * j + 3] += x.w;
        }
      }
      Four squares{};
      squares.set(half, sum[9], sum[8]);
      const Use use(p, n, gate, squares);
      const float alpha = use.writes ? row.alpha[half][0] : 1, rate = !use.writes ? 0 : n > 0 ? sparse_beta : beta;
      const float erased = alpha * use.write, both = use.read * use.write * sum[10], read_before = use.read * alpha;
      const float4 u{rate * fmaf(-erased, sum[0], v.x), rate * fmaf(-erased, sum[1], v.y), rate * fmaf(-erased, sum[2], v.z),
                     rate * fmaf(-erased, sum[3], v.w)};
      o.x += fmaf(both, u.x, read_before * sum[4]), o.y += fmaf(both, u.y, read_before * sum[5]);
      o.z += fmaf(both, u.z, read_before * sum[6]), o.w += fmaf(both, u.w, read_before * sum[7]);
#pragma unroll
      for (int i = 0; i < rows_of_thread; ++i) S[i] = alpha * S[i] + use.write * k[i] * u;
    } else {
      // S ← α S + kᵀ v,  o = o + q S
      const Use use(p, n, gate, Four{});
#pragma unroll
      for (int i = 0; i < rows_of_thread; ++i) {
        const float alpha = use.writes && row_at(i) < p.K ? row.alpha[half][row_at(i)] : 1;
        S[i] = alpha * S[i] + use.write * k[i] * v;
        o = o + use.read * q[i] * S[i];
      }
    }
    store();
  }
  if (!level.delta_rule) {
    float4(*const of_rows)[2][3] = reinterpret_cast<float4(*)[2][3]>(shared.of_rows[0]);
#pragma unroll
    for (int d = 2; d < warp_size; d *= 2) {
      o = o +
          float4{__shfl_xor_sync(~0U, o.x, d), __shfl_xor_sync(~0U, o.y, d), __shfl_xor_sync(~0U, o.z, d), __shfl_xor_sync(~0U, o.w, d)};
    }
    if (lane < 2) of_rows[warp][lane][0] = o;
    Team::sync();
    if (rows == 0 && lane < 2) {
#pragma unroll 4
      for (int g = 1; g < row_groups; ++g) o = o + of_rows[g * level.pairs + pair][lane][0];
    }
  }
  if (rows != 0 || lane >= 2 || !present) return;
  o = p.scale * o;
  const int place = h * p.V + column;
  if (level.o_mail != nullptr) {
    float* const mail = level.o_mail + place;
    post(mail, o.x), post(mail + 1, o.y), post(mail + 2, o.z), post(mail + 3, o.w);
  }
  if (p.o != nullptr) *reinterpret_cast<float4*>(p.o + place) = o;
}

/// All levels, by blocks that all run at once.
__global__ void __launch_bounds__(all_threads, 1) levels_kernel(const Program program) {
  extern __shared__ __align__(128) char memory[];
  __shared__ Shared shared;
  float* const all_sums = reinterpret_cast<float*>(memory + slots * program.slot_bytes);
  char* const ring = memory + slots * program.slot_bytes + 2 * program.sums * static_cast<int>(sizeof(float));
  const Entry* const entries = program.entries + static_cast<std::int64_t>(blockIdx.x) * program.levels;
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int s = 0; s < ring_stages; ++s) init_barrier(shared.full[s], 1), init_barrier(shared.empty[s], shares);
#pragma unroll 1
    for (int s = 0; s < slots; ++s) init_barrier(shared.loaded[s], 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x >= threads) return fetch(program, shared, ring);

  const bool brings = threadIdx.x == threads - warp_size;
  Entry next{};
  if (brings) {
    for (int l = 0; l < min(2, program.levels); ++l) bring(program, entries[l], l, memory, shared);
    if (program.levels > 2) next = entries[2];
  }
  int turn = 0;  // of sums and squares, which are read while the next ones are made
  Place at;
#pragma unroll 1
  for (int l = 0; l < program.levels; ++l) {
    wait(shared.loaded[l % slots], l / slots & 1);
    char* const slot = memory + l % slots * program.slot_bytes;
    const Level& level = *reinterpret_cast<const Level*>(slot);
    // Once all have met in it, nobody needs the level before any more.
    const auto all_have_begun = [&] {
      if (!brings) return;
      if (l + 2 < program.levels) bring(program, next, l + 2, memory, shared);
      if (l + 3 < program.levels) next = entries[l + 3];
    };
    if (level.kind == Level::Kind::memory) {
      const int tiles = level.memory.tiles * level.memory.step.H;
#pragma unroll 1
      for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
        step(level.memory, shared, tile);
        if (tile + static_cast<int>(gridDim.x) < tiles) Team::sync();
      }
      if (static_cast<int>(blockIdx.x) >= tiles) Team::sync();
      all_have_begun();
      continue;
    }
    const Products& products = level.products;
    const Work& work = *reinterpret_cast<const Work*>(slot + program.level_room);
    const Room room{ring, all_sums + turn * program.sums, shared.squares[turn], program.stage_bytes, program.places};
    turn ^= 1;
    Ending ending;
    ending.prepare(products, work);
    const int warp = static_cast<int>(threadIdx.x) / warp_size, team = warp * products.team_inverse >> 16;
    if (team < products.teams && team < work.stages) {
      const int of_team = warp - team * products.of_team;
      const auto with_rows = [&]<int rows, bool own_inputs>() {
        multiply<rows, own_inputs>(room, shared, at, products, work, team, of_team);
      };
      if (products.input_count > 1) {
        with_rows.template operator()<4, true>();
      } else {
        if (products.rows == 4) with_rows.template operator()<4, false>();
        if (products.rows == 3) with_rows.template operator()<3, false>();
        if (products.rows == 2) with_rows.template operator()<2, false>();
        if (products.rows == 1) with_rows.template operator()<1, false>();
      }
    }
    at.go(work.stages);
    Team::sync();
    all_have_begun();
    ending.finish(products, room.squares, room.sums, program.places);
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

constexpr int alignment = 128, most_stage_bytes = 16 << 10;

int over(int a, int b) { return (a + b - 1) / b; }
int aligned_places(int n) { return over(n, warp_size) * warp_size; }
std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
unsigned multiprocessors() { return static_cast<unsigned>(attribute_of_device(cudaDevAttrMultiProcessorCount)); }

template <class Number>
bool whole_fours(const Number* x) {
  return reinterpret_cast<std::uintptr_t>(x) % sizeof(float4) == 0;
}

/// visit(pointer, awaited, numbers) for what a level takes.
template <class Visit>
void for_inputs(Level& level, const Visit& visit) {
  if (level.kind == Level::Kind::products) {
    for (int n = 0; n < level.products.input_count; ++n) {
      Input& input = level.products.inputs[n];
      visit(input.x, input.x_awaited, input.n);
      if (input.gate != nullptr) visit(input.gate, input.gate_awaited, input.n);
    }
    for (int n = 0; n < level.products.product_count; ++n) {
      Product& p = level.products.products[n];
      if (p.addend != nullptr) visit(p.addend, p.addend_awaited, p.out);
    }
    return;
  }
  memory_step::Step& op = level.memory.step;
  const int halves = op.choices.count > 0 ? 2 : 1;
  const auto operand = [&](memory_step::Operand& x, int parts) {
    if (x.x != nullptr) visit(x.x, x.awaited, parts * x.heads * x.width);
  };
  const auto pair = [&](memory_step::Operand& x, memory_step::Source& from) {
    if (from.shared == nullptr) return operand(x, halves);
    visit(from.shared, from.shared_awaited, x.heads * x.width);
    visit(from.sparse, from.sparse_awaited, x.heads * x.width);
    visit(from.more, from.more_awaited, x.heads * x.width);
  };
  pair(op.q, op.q_source);
  pair(op.k, op.k_source);
  operand(op.v, 1);
  operand(op.log_decay, halves);
  operand(op.beta, halves);
  if (op.routing.logits != nullptr) visit(op.routing.logits, op.routing.awaited, op.routing.N);
}

/// visit(pointer, mail, numbers) for what a level makes; mail null: it is not sent.
template <class Visit>
void for_outputs(Level& level, const Visit& visit) {
  const auto output = [&](auto*& plain, float** mail, std::int64_t numbers) {
    if (plain != nullptr) visit(reinterpret_cast<float*&>(plain), mail, numbers);
  };
  if (level.kind == Level::Kind::products) {
    for (int n = 0; n < level.products.product_count; ++n) {
      Product& p = level.products.products[n];
      output(p.y, &p.y_mail, p.out);
      output(p.z, &p.z_mail, p.out);
    }
    return;
  }
  memory_step::Step& op = level.memory.step;
  output(op.o, &level.memory.o_mail, op.H * op.V);
  for (memory_step::Source* source : {&op.q_source, &op.k_source}) output(source->pair, nullptr, 2 * op.H * op.K);
  output(op.routing.gate, nullptr, op.routing.N);
  output(op.routing.selected, nullptr, op.choices.count);
}

/// Levels that become one kernel, as they come.
class Run {
 public:
  explicit Run(int blocks) : blocks_(blocks) {}

  /// Adds what a launch does, or nothing: false where it does not fit into this run.
  bool add(const OneRow& op) {
    std::vector<Level> levels;
    return levels_of(op, levels) && add(std::move(levels));
  }
  bool add(const memory_step::Captured& captured) {
    std::vector<Level> levels;
    return level_of(captured, levels) && add(std::move(levels));
  }
  /// The nodes of the run, behind `before`: the last one of them.
  cudaGraphNode_t finish(cudaGraph_t graph, const cudaGraphNode_t* before, std::vector<LevelMemory>& memory);

 private:
  /// Neighbouring numbers that one level makes: what later ones read of them comes by mail.
  struct Made {
    const float *begin, *end;
    std::int64_t place;  // of the first one among the mail
    bool by_mail, read;
  };
  /// A pointer in a level that is still to be set: `offset` bytes into it.
  struct Pointer {
    std::size_t level, offset;
    std::size_t made, first;  // to number `first` of this one's mail
  };

  bool add(std::vector<Level> levels) {
    const std::size_t levels_before = levels_.size(), made_before = made_.size(), inputs_before = inputs_.size(),
                      outputs_before = outputs_.size();
    for (const Level& level : levels) {
      levels_.push_back(level);
      first_made_.push_back(made_.size());
      if (!receive(levels_.back())) {
        levels_.resize(levels_before), first_made_.resize(levels_before), made_.resize(made_before), inputs_.resize(inputs_before);
        outputs_.resize(outputs_before);
        return false;
      }
      send(levels_.back());
    }
    for (const Pointer& input : inputs_) made_[input.made].read = true;
    return true;
  }

  bool levels_of(const OneRow& op, std::vector<Level>& levels);
  bool level_of(const memory_step::Captured& captured, std::vector<Level>& levels) const;
  bool shape(Products& level) const;
  bool receive(Level& level);
  void send(Level& level);
  int deal_out(const Level& level, unsigned block, std::vector<char>& work, std::vector<Stage>& stages) const;

  int blocks_;
  std::vector<Level> levels_;
  std::vector<std::size_t> first_made_;  // of each level
  std::vector<Made> made_;
  std::vector<Pointer> inputs_, outputs_;
};

/// How warps share the columns and rows of a level. False where they cannot.
bool Run::shape(Products& level) const {
  int longest = 0, rows = 0;
  for (int n = 0; n < level.input_count; ++n) longest = std::max(longest, level.inputs[n].n);
  for (int n = 0; n < level.product_count; ++n) rows += level.products[n].out;
  level.row_bytes = 2 * longest;
  level.rows = std::min(most_stage_bytes / level.row_bytes, 4);
  level.of_team = over(longest, warp_columns);
  if (level.of_team > warps || over(rows, blocks_) > most_outs || (level.input_count > 1 && (level.of_team > 1 || level.rows < 4)))
    return false;
  level.teams = warps / level.of_team;
  while (ring_stages % level.teams != 0) --level.teams;  // so who waits for a stage has seen what stood at its place before
  level.team_inverse = over(1 << 16, level.of_team);
  level.share = shares / level.of_team;
  return true;
}

bool Run::levels_of(const OneRow& op, std::vector<Level>& levels) {
  const auto begin = [&]() -> Products& {
    Level level{};
    level.kind = Level::Kind::products;
    levels.push_back(level);
    return levels.back().products;
  };
  const auto add_product = [](Products& level, const one_row::Product& product, int input) {
    Product& p = level.products[level.product_count++];
    static_cast<one_row::Product&>(p) = product;
    p.input = input;
  };
  for (int n = 0; n < op.product_count; ++n) {
    const one_row::Product& p = op.products[n];
    if (p.weight_bytes != 2 * p.in || !whole_fours(p.weight) || p.in % 8 != 0) return false;
  }
  for (int n = 0; n < op.input_count; ++n) {
    const one_row::Input& from = op.inputs[n];
    Input input{from.x, from.weight, from.gate, from.n, from.group, from.eps, from.offset};
    const int lanes = from.group / 4;
    const bool of_warp = lanes > 0 && from.group % 4 == 0 && warp_columns % from.group == 0 && from.n % from.group == 0;
    if (of_warp && (lanes <= warp_size || from.group == warp_columns)) input.lanes_of_group = lanes;
    if (from.group == 0 ? from.gate != nullptr : input.lanes_of_group == 0 && from.group != from.n) return false;
    if (from.gate != nullptr && from.act != Activation::silu) return false;
    if (!whole_fours(input.x) || !whole_fours(input.weight) || !whole_fours(input.gate)) return false;
    // What another product waits for comes first.
    for (const bool announced : {true, false}) {
      Products* level = nullptr;
      for (int i = 0; i < op.product_count; ++i) {
        const one_row::Product& p = op.products[i];
        if (p.made != nullptr || p.input != n || p.announced != announced) continue;
        if (level == nullptr) {
          level = &begin();
          level->inputs[0] = input, level->input_count = 1;
        }
        add_product(*level, p, 0);
      }
      if (level != nullptr && !shape(*level)) return false;
    }
  }
  Products* level = nullptr;
  for (int i = 0; i < op.product_count; ++i) {
    const one_row::Product& p = op.products[i];
    if (p.made == nullptr) continue;
    if (p.in > warp_columns || !whole_fours(p.made)) return false;
    if (level == nullptr) level = &begin();
    int input = 0;
    while (input < level->input_count && level->inputs[input].x != p.made) ++input;
    if (input == most_inputs) return false;
    if (input == level->input_count) level->inputs[level->input_count++] = {p.made, nullptr, nullptr, p.in};
    add_product(*level, p, input);
  }
  return level == nullptr || shape(*level);
}

bool Run::level_of(const memory_step::Captured& captured, std::vector<Level>& levels) const {
  Level level{};
  level.kind = Level::Kind::memory;
  level.memory.step = captured.step;
  level.memory.delta_rule = captured.delta_rule;
  const memory_step::Step& op = level.memory.step;
  for (int pairs = pairs_at_most; pairs > 0; --pairs) {
    const int tiles = over(op.V, pairs * 2 * memory_step::own_columns), rows_at_once = warps / pairs * (warp_size / 2);
    const bool fits = rows_at_once * rows_of_thread >= op.K, fewer = op.H * tiles <= blocks_;
    if (fits && (fewer || level.memory.pairs == 0))
      level.memory.pairs = pairs, level.memory.tiles = tiles, level.memory.rows_at_once = rows_at_once;
  }
  if (level.memory.pairs == 0) return false;
  level.memory.row_groups = warps / level.memory.pairs;
  level.memory.pairs_inverse = over(1 << 16, level.memory.pairs);
  levels.push_back(level);
  return true;
}

/// Finds what the last level takes among what those before it make. False where it is there only in part, or does not come by mail.
bool Run::receive(Level& level) {
  bool found = true;
  for_inputs(level, [&](const float*& at, bool& awaited, std::int64_t n) {
    const auto made = std::find_if(made_.rbegin(), made_.rend(), [&](const Made& m) { return m.begin < at + n && at < m.end; });
    if (made == made_.rend()) return;
    found = found && made->by_mail && made->begin <= at && at + n <= made->end;
    awaited = true;
    const auto offset = static_cast<std::size_t>(reinterpret_cast<const char*>(&at) - reinterpret_cast<const char*>(&level));
    inputs_.push_back(
        {levels_.size() - 1, offset, static_cast<std::size_t>(made_.rend() - made) - 1, static_cast<std::size_t>(at - made->begin)});
  });
  return found;
}

/// Notes what the last level makes.
void Run::send(Level& level) {
  const auto first = static_cast<std::ptrdiff_t>(made_.size());
  for_outputs(level, [&](float*& plain, float** mail, std::int64_t n) { made_.push_back({plain, plain + n, 0, mail != nullptr, false}); });
  std::sort(made_.begin() + first, made_.end(), [](const Made& a, const Made& b) { return a.begin < b.begin; });
  // Neighbours may be read as one.
  auto last = made_.begin() + first;
  for (auto next = last; next != made_.end(); ++next) {
    if (next == last) continue;
    const bool one = next->begin <= last->end && next->by_mail == last->by_mail;
    one ? void(last->end = std::max(last->end, next->end)) : void(*++last = *next);
  }
  if (last != made_.end()) made_.erase(last + 1, made_.end());
  for_outputs(level, [&](float*& plain, float** mail, std::int64_t) {
    if (mail == nullptr) return;
    const auto made = std::find_if(made_.begin() + first, made_.end(), [&](const Made& m) { return m.begin <= plain && plain < m.end; });
    const auto offset = static_cast<std::size_t>(reinterpret_cast<const char*>(mail) - reinterpret_cast<const char*>(&level));
    outputs_.push_back(
        {levels_.size() - 1, offset, static_cast<std::size_t>(made - made_.begin()), static_cast<std::size_t>(plain - made->begin)});
  });
}

/// A block's rows of a level: a run of the rows of all its products. Returns how many sums a warp has of them.
int Run::deal_out(const Level& level, unsigned block, std::vector<char>& work, std::vector<Stage>& stages) const {
  work.clear();
  if (level.kind != Level::Kind::products) return 0;
  const Products& all = level.products;
  std::int64_t rows = 0;
  for (int n = 0; n < all.product_count; ++n) rows += all.products[n].out;
  const std::int64_t begin = rows * block / blocks_, end = rows * (block + 1) / blocks_;
  std::vector<Out> outs;
  std::vector<unsigned char> inputs;
  std::int64_t first = 0;
  for (int n = 0; n < all.product_count; ++n) {
    const Product& p = all.products[n];
    const bool gated = p.end == End::gated;
    for (std::int64_t o = std::max(begin - first, std::int64_t{0}); o < std::min<std::int64_t>(end - first, p.out); o += all.rows) {
      const auto count = std::min<std::int64_t>({all.rows, end - first - o, p.out - o});
      for (std::int64_t i = 0; i < count; ++i) {
        outs.push_back({static_cast<std::uint16_t>(inputs.size() * static_cast<std::size_t>(all.rows) + static_cast<std::size_t>(i)),
                        static_cast<std::uint16_t>(n), static_cast<int>(o + i)});
      }
      const auto bytes = static_cast<unsigned>(count * p.weight_bytes);
      for (const char* weight : {p.weight, gated ? p.up : nullptr}) {
        if (weight == nullptr) continue;
        stages.push_back({weight + o * p.weight_bytes, bytes, 0});
        inputs.push_back(static_cast<unsigned char>(p.input));
      }
    }
    first += p.out;
  }
  const Work head{static_cast<int>(inputs.size()), static_cast<int>(outs.size())};
  const auto append = [&](const void* from, std::size_t bytes) {
    const auto* at = static_cast<const char*>(from);
    work.insert(work.end(), at, at + bytes);
  };
  append(&head, sizeof head);
  append(outs.data(), outs.size() * sizeof(Out));
  append(inputs.data(), inputs.size());
  work.resize((work.size() + 15) / 16 * 16);
  return static_cast<int>(inputs.size()) * all.rows;
}

cudaGraphNode_t Run::finish(cudaGraph_t graph, const cudaGraphNode_t* before, std::vector<LevelMemory>& memory) {
  // What a later level writes over, nobody reads where it lies. So no two levels write to one place, in whatever order blocks come to them.
  for (std::size_t l = 0; l + 1 < levels_.size(); ++l) {
    for_outputs(levels_[l], [&](float*& plain, float**, std::int64_t n) {
      const bool written_over = std::any_of(made_.begin() + static_cast<std::ptrdiff_t>(first_made_[l + 1]), made_.end(),
                                            [&](const Made& m) { return m.begin < plain + n && plain < m.end; });
      if (written_over) plain = nullptr;
    });
  }
  std::int64_t mailed = 0;  // numbers
  for (Made& made : made_) {
    if (!made.read) continue;
    constexpr std::int64_t together = 4;  // numbers that are read at once: they lie as they do in `made`
    const auto shift = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(made.begin) / sizeof(float) % together);
    made.place = mailed + shift;
    mailed += (shift + (made.end - made.begin) + together - 1) / together * together;
  }

  Program program{};
  program.levels = static_cast<int>(levels_.size());
  std::vector<char> blob, work;
  std::vector<Stage> stages;
  std::vector<Entry> entries;
  std::vector<int> first_stage;
  std::vector<unsigned> level_at, level_bytes;
  std::size_t work_room = 0;
  int of_team = 1;
  const auto append = [&](const void* from, std::size_t bytes) {
    const std::size_t at = blob.size();
    blob.resize(at + (bytes + 15) / 16 * 16);
    if (bytes > 0) std::memcpy(blob.data() + at, from, bytes);
    return static_cast<unsigned>(at);
  };
  for (const Level& level : levels_) {
    const Products& products = level.products;
    const void* const end = level.kind == Level::Kind::memory ? static_cast<const void*>(&products)
                                                              : static_cast<const void*>(products.products + products.product_count);
    const auto bytes = static_cast<std::size_t>(static_cast<const char*>(end) - reinterpret_cast<const char*>(&level));
    level_bytes.push_back(static_cast<unsigned>((bytes + 15) / 16 * 16));
    level_at.push_back(append(&level, level_bytes.back()));
    program.level_room = std::max(program.level_room, static_cast<int>(aligned(level_bytes.back())));
  }
  for (int block = 0; block < blocks_; ++block) {
    first_stage.push_back(static_cast<int>(stages.size()));
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const int places = deal_out(levels_[l], static_cast<unsigned>(block), work, stages);
      program.places = std::max(program.places, aligned_places(places));
      of_team = std::max(of_team, levels_[l].products.of_team);
      work_room = std::max(work_room, work.size());
      entries.push_back({level_at[l], level_bytes[l], append(work.data(), work.size()), static_cast<unsigned>(work.size())});
    }
  }
  first_stage.push_back(static_cast<int>(stages.size()));
  program.slot_bytes = program.level_room + static_cast<int>(aligned(work_room));
  program.sums = program.places * of_team;
  program.stage_bytes = 0;
  for (const Stage& stage : stages) program.stage_bytes = std::max(program.stage_bytes, static_cast<int>(aligned(stage.bytes)));

  const std::size_t entries_at = aligned(blob.size()), stages_at = aligned(entries_at + entries.size() * sizeof(Entry)),
                    first_at = aligned(stages_at + stages.size() * sizeof(Stage)),
                    mail_at = aligned(first_at + first_stage.size() * sizeof(int)),
                    mail_bytes = static_cast<std::size_t>(mailed) * sizeof(float);
  char* base = nullptr;
  check(cudaMalloc(&base, mail_at + mail_bytes), "device memory");
  memory.emplace_back(base, [](void* p) { cudaFree(p); });
  auto* const mail = reinterpret_cast<float*>(base + mail_at);
  for (const std::vector<Pointer>* pointers : {&inputs_, &outputs_}) {
    for (const Pointer& p : *pointers) {
      if (!made_[p.made].read) continue;
      const float* const to = mail + made_[p.made].place + p.first;
      std::memcpy(blob.data() + level_at[p.level] + p.offset, &to, sizeof to);
    }
  }
  blob.resize(mail_at);
  std::memcpy(blob.data() + entries_at, entries.data(), entries.size() * sizeof(Entry));
  std::memcpy(blob.data() + stages_at, stages.data(), stages.size() * sizeof(Stage));
  std::memcpy(blob.data() + first_at, first_stage.data(), first_stage.size() * sizeof(int));
  check(cudaMemcpy(base, blob.data(), blob.size(), cudaMemcpyHostToDevice), "a token's levels");
  program.base = base;
  program.entries = reinterpret_cast<const Entry*>(base + entries_at);
  program.stages = reinterpret_cast<const Stage*>(base + stages_at);
  program.first_stage = reinterpret_cast<const int*>(base + first_at);

  const std::size_t beside =
      static_cast<std::size_t>(slots * program.slot_bytes) + 2 * static_cast<std::size_t>(program.sums) * sizeof(float);
  const std::size_t shared = beside + static_cast<std::size_t>(ring_stages) * static_cast<std::size_t>(program.stage_bytes);
  allow_shared_memory("a token's levels", reinterpret_cast<const void*>(levels_kernel), shared);

  cudaGraphNode_t last = nullptr;
  if (mail_bytes > 0) {
    cudaMemsetParams absent_mail{};
    absent_mail.dst = mail;
    absent_mail.value = absent;
    absent_mail.elementSize = sizeof(unsigned);
    absent_mail.width = static_cast<std::size_t>(mailed);
    absent_mail.height = 1;
    check(cudaGraphAddMemsetNode(&last, graph, before, before != nullptr ? 1 : 0, &absent_mail), "a graph");
    before = &last;
  }
  cudaKernelNodeParams launch{};
  void* arguments[] = {&program};
  launch.func = reinterpret_cast<void*>(levels_kernel);
  launch.gridDim = static_cast<unsigned>(blocks_);
  launch.blockDim = all_threads;
  launch.sharedMemBytes = static_cast<unsigned>(shared);
  launch.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  check(cudaGraphAddKernelNode(&node, graph, before, before != nullptr ? 1 : 0, &launch), "a graph");
  cudaKernelNodeAttrValue together{};
  together.cooperative = 1;
  check(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeCooperative, &together), "a graph");
  return node;
}

/// The graph's nodes one behind the other; nothing where they are no chain.
std::vector<cudaGraphNode_t> chain_of(cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> chain;
  std::size_t count = 0, all = 0;
  check(cudaGraphGetRootNodes(graph, nullptr, &count), "a graph");
  check(cudaGraphGetNodes(graph, nullptr, &all), "a graph");
  if (count != 1) return {};
  cudaGraphNode_t node = nullptr;
  check(cudaGraphGetRootNodes(graph, &node, &count), "a graph");
  while (true) {
    chain.push_back(node);
    check(cudaGraphNodeGetDependentNodes(node, nullptr, nullptr, &count), "a graph");
    if (count != 1) return count == 0 && chain.size() == all ? chain : std::vector<cudaGraphNode_t>{};
    cudaGraphEdgeData edge{};
    check(cudaGraphNodeGetDependentNodes(node, &node, &edge, &count), "a graph");
  }
}

}  // namespace

std::vector<LevelMemory> put_levels_together(cudaGraph_t graph) {
  std::vector<LevelMemory> memory;
  if (attribute_of_device(cudaDevAttrComputeCapabilityMajor) != 9) return memory;
  const auto blocks = static_cast<int>(multiprocessors());
  const std::vector<cudaGraphNode_t> chain = chain_of(graph);
  std::vector<cudaGraphNode_t> replaced;
  std::unique_ptr<Run> run;
  cudaGraphNode_t before = nullptr;  // the run, or the last node that stays
  const auto finish = [&] {
    if (run) before = run->finish(graph, before != nullptr ? &before : nullptr, memory);
    run.reset();
  };
  for (const cudaGraphNode_t node : chain) {
    cudaGraphNodeType type{};
    check(cudaGraphNodeGetType(node, &type), "a graph");
    cudaKernelNodeParams launch{};
    if (type == cudaGraphNodeTypeKernel && cudaGraphKernelNodeGetParams(node, &launch) != cudaSuccess) {
      cudaGetLastError();  // a kernel of a library
      launch.func = nullptr;
    }
    const auto add = [&](const auto& op) {
      if (run && run->add(op)) return true;
      auto next = std::make_unique<Run>(blocks);
      if (!next->add(op)) return false;
      finish();
      run = std::move(next);
      return true;
    };
    bool added = false;
    if (launch.func != nullptr && launch.kernelParams != nullptr) {
      if (const auto products = one_row::captured(launch)) added = add(*products);
      if (const auto step = memory_step::captured(launch)) added = add(*step);
    }
    if (added) {
      replaced.push_back(node);
      continue;
    }
    const bool follows = run != nullptr;
    finish();
    if (follows) {
      // its edge came from a launch that goes away
      check(cudaGraphAddDependencies(graph, &before, &node, nullptr, 1), "a graph");
    }
    before = node;
  }
  finish();
  for (const cudaGraphNode_t node : replaced) check(cudaGraphDestroyNode(node), "a graph");
  return memory;
}

}  // namespace statescope::cuda
