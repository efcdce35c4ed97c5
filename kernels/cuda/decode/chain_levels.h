// Levels of a chain (cuda_chain_kernel.h): what a block has of each, and the two warps that work ahead of it, which bring the weights into
// a ring in shared memory and find out what the next levels are. Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/compact_weights.h"
#include "kernels/cuda/common/memory_step.h"
#include "kernels/cuda/common/one_row.h"
#include "kernels/cuda/common/parts_of_x.h"
#include "kernels/cuda/decode/chain_mail.h"
#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::chain {

using namespace one_row;
using memory_step::Step;

constexpr int most_levels = 1024;
constexpr int known_levels = 4;                  // by a block at once
constexpr int listed_rows = 128;                 // of a level, where several products share it
constexpr int line = 32, line_bytes = 4 * line;  // numbers of one in the second cache
constexpr int most_made_numbers = 2 * threads;   // of x that a level makes itself

// A block's warps: those that multiply and take a memory's steps, two that work ahead of them, and those that finish products behind them.
static_assert(threads == memory_step::threads);
constexpr int fetcher = warps, planner = fetcher + 1, first_finisher = planner + 1, finishers = 2;
constexpr int finishing_threads = finishers * warp_size, block_threads = (first_finisher + finishers) * warp_size;
constexpr int warps_with_levels = warps + 1 + finishers;  // that the planner hands levels to
constexpr int all_but_fetcher = memory_step::chosen_there + 1, room_for_piece = all_but_fetcher + 1,
              piece_there = room_for_piece + 1;  // numbers of barriers

// The ring. A stage has a piece of the rows of half a tile; where products are gated a tile's second half is of the other weight. The
// halves' warps go through the ring at the same time. Who waits for a stage knows that what it had before has come: the last but one has
// come when a stage is asked for, and a half passes over one at most until it waits for the next or all warps meet.
constexpr int tile_rows_log2 = 4, tile_rows = 1 << tile_rows_log2, stage_rows = tile_rows / 2,
              warps_of_half = warps / 2;                               // which share its columns
constexpr int block_columns = 32, block_bytes = 64, most_blocks = 72;  // of one product of tensor cores; of a piece of a row
constexpr int blocks_at_once = 4;                                      // on their way to a warp's registers
constexpr int rows_together = stage_rows / 2, between_rows = 64;       // bytes: so that lanes that read at once read from different banks
constexpr int least_stages = 4, most_stages = 8, most_stage_bytes = stage_rows * most_blocks * block_bytes + line_bytes;
constexpr int most_tiles_together = 8;  // whose outputs are finished together

/// Of a level's products of x: those that others of the level wait for, those that the next level waits for, and the others.
enum Turn : int { announced, awaited, later, turns };

/// Of so many blocks of a row of weights.
__host__ __device__ inline int piece_bytes(bool is_compact, int count) {
  return is_compact ? count * compact::block_bytes + compact::behind_bytes : count * block_bytes;
}

/// Products of one row as this kernel sees them: those of x, in turn, then those whose x the level makes.
struct Tiles {
  Input input;
  float of_group;                                  // 1 / numbers of a group of the norm
  int products_before[turns + 1], outputs[turns];  // of each turn; the last one: all of x
  int product_count;
  int outputs_of_tile_log2;     // of tile_rows; gated: of half of them
  int whole_tiles;              // of each block; of one product those of all blocks lie side by side
  int tiles_together;           // whose outputs are finished together
  int blocks, blocks_of_piece;  // of a row; a stage has a piece of its rows
  bool compact;                 // weights of x are
  int blocks_at_hand;           // of x, in shared memory: all, or two pieces of it by turns
  int part_bytes;               // from one part of x to the next there
  int first_output[most_products];
  Product products[most_products];

  __host__ __device__ bool one_product() const { return product_count == 1; }
  __host__ __device__ int outputs_of_tile() const { return 1 << outputs_of_tile_log2; }
  __device__ bool gated() const { return outputs_of_tile() < tile_rows; }
  __device__ int blocks_from(int first_block) const { return min(blocks_of_piece, blocks - first_block); }
  /// Of so many blocks of a row.
  __host__ __device__ int piece_bytes(int count) const { return chain::piece_bytes(compact, count); }
  /// Where a piece of row o of a product's weights begins: its number, and its first block.
  __device__ const char* piece_of(const Product& p, const char* weights, int o, int number, int first_block) const {
    return compact ? weights + compact::bytes_before(number, first_block) * p.out + std::int64_t{o} * piece_bytes(blocks_from(first_block))
                   : weights + o * p.weight_bytes + first_block * block_bytes;
  }
  __host__ __device__ int products_of_x() const { return products_before[turns]; }
  /// Whether x is multiplied piece by piece, as they come.
  __device__ bool comes_in_pieces() const { return input.group == 0 && blocks > blocks_of_piece; }
  /// Where the next piece of x stands.
  __device__ int place_behind(int place) const { return place + blocks_of_piece < blocks_at_hand ? place + blocks_of_piece : 0; }
};

enum class Kind : int { products, step };

/// What is read of it and made in the same launch is read from mail, and points there. `mail`: where what it makes goes besides, of each
/// product, or of a memory's o.
struct Level {
  Kind kind;
  Tiles tiles;
  Step step;
  float* mail[most_products];
  Activation mailed[most_products];  // what a product's numbers pass on their way there: gates do, once, where they are made
};

// ---- in kernels ----

/// Barriers of what one warp fills and gets back empty from all that use it.
struct Handed {
  std::uint64_t full, empty;
  __device__ void make(int users) { init_barrier(full, 1), init_barrier(empty, users); }
  /// By one lane for its warp.
  __device__ void hand_over() { arrive(full); }
  __device__ void give_back() { arrive(empty); }
};
/// Sums of tiles that are finished together, by those that multiply for those that finish. Two such groups are under way at once.
struct Groups {
  Handed of_two[2];
  __device__ void make() {
    for (Handed& group : of_two) init_barrier(group.full, warps), init_barrier(group.empty, finishers);
  }
};
/// Where somebody is among them.
struct PlaceInGroups {
  unsigned barriers, passed = 0;
  __device__ explicit PlaceInGroups(const Groups& groups) : barriers(kept(shared_address(&groups))) {}
  __device__ void wait_until_empty() { wait_at(own() + offsetof(Handed, empty), passed / 2 % 2 ^ 1); }
  __device__ void wait_until_full() { wait_at(own() + offsetof(Handed, full), passed / 2 % 2); }
  /// By each warp that fills it, or needs it no more.
  __device__ void hand_over() { arrive_and_pass(own() + offsetof(Handed, full)); }
  __device__ void give_back() { arrive_and_pass(own() + offsetof(Handed, empty)); }

 private:
  __device__ unsigned own() const { return barriers + passed % 2 * static_cast<unsigned>(sizeof(Handed)); }
  __device__ void arrive_and_pass(unsigned barrier) {
    __syncwarp();
    if (threadIdx.x % warp_size == 0) arrive_at(barrier);
    ++passed;
  }
};
/// Of the ring: the fetcher fills it, bytes make it full.
struct Stage : Handed {
  __device__ void expect(int bytes) { arrive_and_expect(full, static_cast<unsigned>(bytes)); }
  /// A multiple of 16 bytes, which leave the second cache before all else.
  __device__ void fetch(unsigned to, const char* from, int bytes, std::uint64_t policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(shared_address(&full)), "l"(policy)
                 : "memory");
  }
};
__device__ inline std::uint64_t read_once() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// What a block has of n: block b of all begins at n b / all.
struct Share {
  int begin, count;
};
__device__ __noinline__ inline Share share_of(int n) {
  const auto before = [n](unsigned block) { return static_cast<int>(static_cast<unsigned>(n) * block / gridDim.x); };
  return {before(blockIdx.x), before(blockIdx.x + 1) - before(blockIdx.x)};
}

/// Where a row begins in its stage, of rows of so many bytes.
__device__ inline int place_in_stage(int row, int row_bytes) { return row * row_bytes + (row >= rows_together ? between_rows : 0); }

/// An output of the block.
struct Place {
  int product : 8, o : 24;
};
constexpr int most_outputs_of_product = 1 << 23;
/// The block's i-th one, in turn.
__device__ __noinline__ inline Place place_of(const Tiles& op, const Share* shares, int i) {
  int turn = 0;
#pragma unroll 1
  while (turn < turns && i >= shares[turn].count) i -= shares[turn++].count;
  if (turn == turns) return {-1, 0};
  const int output = shares[turn].begin + i, end = op.products_before[turn + 1];
  int n = op.products_before[turn];
#pragma unroll 1
  while (n + 1 < end && output >= op.first_output[n + 1]) ++n;
  return {n, output - op.first_output[n]};
}

/// A level as its block knows it, in shared memory.
struct Slot {
  Level level;
  const char* rows[listed_rows];  // first pieces of weights, in the order of tiles, where products share the level; null: there is none
  Place places[listed_rows];      // of the same
  Share shares[turns];            // of the outputs; of one product only those of the last tile are side by side
  int outputs;                    // of all of them
  int tiles[turns];               // up to the last one with a turn's outputs
  int tiles_before;               // of all levels before
  float factor;                   // of all of x: those who multiply find it for those who finish
  Share made[most_products];      // of each product whose x the level makes
  int made_rows;                  // of all of them
  memory_step::Task task;         // the block's first one of a memory's step

  /// Of rows; 0: a memory's step, or nothing for this block.
  __device__ int all_tiles() const { return tiles[turns - 1]; }
  /// Of one product, a tile's first output. Whole tiles of all blocks lie side by side: what comes first is made first.
  __device__ int first_output(int tile) const {
    const auto before = static_cast<int>(static_cast<unsigned>(tile) * gridDim.x + blockIdx.x);
    return tile < level.tiles.whole_tiles ? before << level.tiles.outputs_of_tile_log2 : shares[awaited].begin;
  }
  /// The block's output i; none behind the last one.
  __device__ Place place(int i) const {
    if (i >= outputs) return {-1, 0};
    const int log2 = level.tiles.outputs_of_tile_log2;
    return level.tiles.one_product() ? Place{0, first_output(i >> log2) + (i & ((1 << log2) - 1))} : places[i];
  }
  /// Behind the tiles that are finished together with this one: no turn's outputs wait for later ones.
  __device__ int end_of_group(int first) const {
    if (first < tiles[announced]) return tiles[announced];
    return min(first + level.tiles.tiles_together, tiles[first < tiles[awaited] ? awaited : later]);
  }
  /// Rows of weights in a half of a tile.
  __device__ int rows_of(int tile, int half) const {
    const int left = outputs - (tile << level.tiles.outputs_of_tile_log2);
    return min(level.tiles.gated() ? left : left - half * stage_rows, stage_rows);
  }
};
/// What the threads of a block share. The planner fills slots, the fetcher and all warps that multiply use them.
struct Levels {
  Slot slots[known_levels];
  Handed handed[known_levels];
  Mail mail;

  __device__ Slot& at(int level) { return slots[level % known_levels]; }
  /// When it stands in its slot; by a warp.
  __device__ Slot& wait_for_level(int level) {
    wait(handed[level % known_levels].full, level / known_levels % 2);
    __syncwarp();
    return at(level);
  }
  /// A warp needs it no more.
  __device__ void end_level(int level) {
    __syncwarp();
    if (threadIdx.x % warp_size == 0) handed[level % known_levels].give_back();
  }
};

/// The ring of a launch: as many stages as there is room for.
struct RingSize {
  int stages, stage_bytes;
  __host__ __device__ int bytes() const { return stages * stage_bytes; }
};
struct Ring {
  RingSize size;
  char* begin;
  Stage* stages;
  unsigned barriers;  // where the stages' are, at hand for those that multiply
  __device__ char* stage(unsigned number) const { return begin + static_cast<int>(number) * size.stage_bytes; }
};
/// Where somebody is in it.
struct PlaceInRing {
  static constexpr unsigned second_round = 1U << 16;
  unsigned at = 0;  // the stage, and in every other round this bit: in one register
  __device__ unsigned stage() const { return at % second_round; }
  __device__ int parity() const { return static_cast<int>(at / second_round); }
  /// So many stages further on, of which no ring has fewer.
  __device__ PlaceInRing behind(unsigned count, const Ring& ring) const {
    const unsigned there = stage() + count, stages = static_cast<unsigned>(ring.size.stages);
    return {there < stages ? at + count : (at ^ second_round) + count - stages};
  }
  __device__ void next(const Ring& ring) { *this = behind(1, ring); }
};

/// Weights of the block's rows of products whose x the level makes, one product's behind another's, as one stage; by one warp.
__device__ inline void fetch_made_weights(const Slot& slot, Stage& stage, unsigned to, std::uint64_t policy) {
  const Tiles& op = slot.level.tiles;
  const int lane = threadIdx.x % warp_size, own = op.products_of_x() + lane;
  int before = 0, bytes = 0;
#pragma unroll 1
  for (int n = op.products_of_x(); n < op.product_count; ++n) {
    if (n == own) before = bytes;
    bytes += slot.made[n].count * static_cast<int>(op.products[n].weight_bytes);
  }
  if (lane == 0) stage.expect(bytes);
  __syncwarp();
  if (own >= op.product_count) return;
  const Product& p = op.products[own];
  const Share share = slot.made[own];
  if (share.count > 0)
    stage.fetch(to + before, p.weight + share.begin * p.weight_bytes, share.count * static_cast<int>(p.weight_bytes), policy);
}

/// The fetcher's next stage, when it is empty and not too many are on their way: with more of them what is handed on by mail is late.
struct NextStage {
  static constexpr int most_under_way = 2;
  const Ring& ring;
  PlaceInRing at{}, oldest{};
  int under_way = 0;

  __device__ Stage& wait_until_empty() {
    Stage& stage = ring.stages[at.stage()];
    wait(stage.empty, at.parity() ^ 1);
    if (under_way == most_under_way) {
      wait(ring.stages[oldest.stage()].full, oldest.parity());
      oldest.next(ring);
    } else {
      ++under_way;
    }
    return stage;
  }
  __device__ unsigned place() const { return shared_address(ring.stage(at.stage())); }
  __device__ void next() { at.next(ring); }
};

/// What the fetcher does: the weights of all levels, in the order in which they are multiplied. Its first lanes have a row each.
__device__ inline void fetch_weights(Levels& levels, int count, const Ring& ring) {
  const int lane = threadIdx.x % warp_size;
  const std::uint64_t policy = read_once();
  NextStage next{ring};
  const auto fetch_rows = [&](const Slot& slot, int tile, int half, int number, int first_block) {
    const Tiles& op = slot.level.tiles;
    const bool gated = op.gated();
    const int rows = slot.rows_of(tile, half), row = (gated ? 0 : half * stage_rows) + lane;
    if (rows <= 0) return;
    const char* from = nullptr;
    if (lane < rows && op.one_product()) {
      const Product& p = op.products[0];
      from = op.piece_of(p, gated && half == 1 ? p.up : p.weight, slot.first_output(tile) + row, number, first_block);
    } else if (lane < rows) {
      const int i = tile * tile_rows + row;
      const Place place = slot.places[i];
      const Product& p = op.products[place.product];
      from = first_block == 0 ? slot.rows[i] : op.piece_of(p, p.weight, place.o, number, first_block);
    }
    const int bytes = op.piece_bytes(op.blocks_from(first_block));
    // Rows that follow one another in memory are one copy: each takes the warp some 60 cycles.
    const char* const before = reinterpret_cast<const char*>(__shfl_up_sync(~0U, reinterpret_cast<std::uintptr_t>(from), 1));
    const bool leads = lane < rows && (lane % rows_together == 0 || from != before + bytes);
    const unsigned next_leader = (__ballot_sync(~0U, leads) | 1U << rows) >> lane >> 1;
    const int place = place_in_stage(lane, bytes);
    Stage& stage = next.wait_until_empty();
    if (lane == 0) stage.expect(rows * bytes);
    __syncwarp();
    if (leads) stage.fetch(next.place() + place, from, __ffs(next_leader) * bytes, policy);
    next.next();
  };
#pragma unroll 1
  for (int level = 0; level < count; ++level) {
    const Slot& slot = levels.wait_for_level(level);
    const Tiles& op = slot.level.tiles;
#pragma unroll 1
    for (int first = 0; first < slot.all_tiles(); first = slot.end_of_group(first)) {
#pragma unroll 1
      for (int number = 0, block = 0; block < op.blocks; ++number, block += op.blocks_of_piece) {
#pragma unroll 1
        for (int half = 2 * first; half < 2 * slot.end_of_group(first); ++half) fetch_rows(slot, half / 2, half % 2, number, block);
      }
    }
    if (slot.made_rows > 0) {
      Stage& stage = next.wait_until_empty();
      fetch_made_weights(slot, stage, next.place(), policy);
      next.next();
    }
    levels.end_level(level);
  }
}

__device__ __noinline__ inline void find_task(memory_step::Task& t, const Step& step, int task, const Mail& mail) {
  memory_step::find(t, step, task, [&](const float* x) { return mail.in_turn(x); });
}

/// Puts a level into its slot; by one warp.
__device__ inline void plan(Slot& slot, const Level& from, int tiles_before, const Mail& mail) {
  const int lane = threadIdx.x % warp_size;
  // All of it is on its way at once: one piece behind the other took longer than a level does.
  constexpr int pieces = static_cast<int>(sizeof(Level) / sizeof(uint4)), of_lane = (pieces + warp_size - 1) / warp_size;
  const auto* source = reinterpret_cast<const uint4*>(&from) + lane;
  auto* to = reinterpret_cast<uint4*>(&slot.level) + lane;
  uint4 own[of_lane];
#pragma unroll
  for (int i = 0; i < of_lane; ++i) {
    if (lane + i * warp_size < pieces) own[i] = source[i * warp_size];
  }
#pragma unroll
  for (int i = 0; i < of_lane; ++i) {
    if (lane + i * warp_size < pieces) to[i * warp_size] = own[i];
  }
  __syncwarp();
  if (slot.level.kind != Kind::products) {
    if (lane != 0) return;
    slot.tiles[later] = slot.made_rows = 0;
    find_task(slot.task, slot.level.step, static_cast<int>(blockIdx.x), mail);
    return;
  }
  const Tiles& op = slot.level.tiles;
  int made_rows = 0;
#pragma unroll 1
  for (int n = op.products_of_x(); n < op.product_count; ++n) {
    const Share share = share_of(op.products[n].out);
    made_rows += share.count;
    if (lane == 0) slot.made[n] = share;
  }
  const int whole = op.whole_tiles << op.outputs_of_tile_log2;
  int outputs = 0;
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    // Whole tiles of one product lie between those of the other blocks.
    const int rows = turn == awaited ? whole : 0, side_by_side = rows * static_cast<int>(gridDim.x);
    const Share share = share_of(op.outputs[turn] - side_by_side);
    outputs += rows + share.count;
    if (lane == 0) {
      slot.shares[turn] = {side_by_side + share.begin, rows + share.count};
      slot.tiles[turn] = (outputs + op.outputs_of_tile() - 1) >> op.outputs_of_tile_log2;
    }
  }
  if (lane == 0) slot.made_rows = made_rows, slot.outputs = outputs, slot.tiles_before = tiles_before;
  __syncwarp();
  if (op.one_product()) return;
#pragma unroll 1
  for (int i = lane; i < slot.all_tiles() * tile_rows; i += warp_size) {
    const Place place = place_of(op, slot.shares, i);
    slot.places[i] = place;
    slot.rows[i] = place.product < 0 ? nullptr : op.products[place.product].weight + place.o * op.products[place.product].weight_bytes;
  }
}

/// Brings into the second cache what a level reads besides weights, and its mail, which weights have pushed out since it was emptied: with
/// as much of those on its way as rings hold, memory answers after microseconds. By one warp.
__device__ __noinline__ inline void prefetch_level(const Slot& slot, const Mail& mail) {
  const int lane = threadIdx.x % warp_size;
  if (slot.level.kind != Kind::products) {
    const Step& step = slot.level.step;
#pragma unroll 1
    for (int task = static_cast<int>(blockIdx.x); task < step.tasks(); task += static_cast<int>(gridDim.x)) {
      memory_step::prefetch_task(step, task, lane, warp_size);
      memory_step::prefetch_decays(step, task, lane, warp_size);
      if (lane == 0) prefetch(mail.in_turn(slot.level.mail[0] + task / step.tiles() * step.V + task % step.tiles() * step.columns));
    }
    return;
  }
  const Tiles& op = slot.level.tiles;
  if (op.input.weight != nullptr) {
#pragma unroll 1
    for (int i = lane * line; i < op.input.group; i += warp_size * line) prefetch(op.input.weight + i);
  }
#pragma unroll 1
  for (int i = lane; i < slot.outputs; i += warp_size) {
    const Place place = slot.place(i);
    const Product& p = op.products[place.product];
    if (slot.level.mail[place.product] != nullptr) prefetch(mail.in_turn(slot.level.mail[place.product] + place.o));
    if (p.bias != nullptr) prefetch(p.bias + place.o);
    if (p.end == End::delta_decay) prefetch(p.A_log + place.o), prefetch(p.dt_bias + place.o);
    if (p.end != End::convolve) continue;
    prefetch(p.taps + static_cast<std::int64_t>(place.o) * p.width);
#pragma unroll 1
    for (int j = 0; j < p.width - 1; ++j) prefetch(p.cache + j * p.out + place.o);
  }
}

/// The block's share of the box that is not in use: nothing has come yet.
__device__ inline void empty_other_box(const Mail& mail) {
  auto* const other = reinterpret_cast<uint4*>(mail.begin + (mail.turn == 0 ? mail.bytes : 0));
  const auto pieces = static_cast<int>(mail.bytes / piece);
  const Share own = share_of(pieces);
#pragma unroll 1
  for (int i = threadIdx.x % warp_size; i < own.count; i += warp_size)
    other[own.begin + i] = {nothing_yet, nothing_yet, nothing_yet, nothing_yet};
}

/// What all of a step's threads need, while they wait for q and k: what decays are made of, and the partitions. By one warp.
__device__ __noinline__ inline void prepare_step(Levels& levels, int level, memory_step::Shared& shared) {
  const Slot& slot = levels.at(level);
  const Step& step = slot.level.step;
  if (slot.level.kind == Kind::products || slot.task.number >= step.tasks()) return;
  // The level before needs its memory no more.
  if (level > 0) wait(levels.handed[(level - 1) % known_levels].empty, (level - 1) / known_levels % 2);
  const MailInTurn in_turn{levels.mail};
  if (step.decays[0].out > 0) {
    memory_step::load_features(shared.features, slot.task, in_turn);
    memory_step::bring<memory_step::features_there>();
  }
  memory_step::load_scalars(shared.scalars, step, slot.task, in_turn);
  memory_step::choose(shared.chosen, step, slot.task, in_turn);
  memory_step::bring<memory_step::chosen_there>();
}

/// The warps that look at mail: all but the fetcher. A warp is together before it arrives.
__device__ inline void sync_all_but_fetcher() {
  __syncwarp();
  wait_at_barrier<all_but_fetcher, block_threads - warp_size>();
}

/// What the planner does.
struct Planner {
  Levels& levels;
  const Level* all;
  int count, planned = 0, tiles = 0;

  __device__ void plan_next() {
    Handed& handed = levels.handed[planned % known_levels];
    wait(handed.empty, planned / known_levels % 2 ^ 1);
    plan(levels.at(planned), all[planned], tiles, levels.mail);
    __syncwarp();
    tiles += levels.at(planned).all_tiles();
    if (threadIdx.x % warp_size == 0) handed.hand_over();
    ++planned;
  }
  /// `step`: what a memory's step works with.
  __device__ void look_ahead(memory_step::Shared& step) {
    while (planned < min(count, known_levels - 1)) plan_next();
    empty_other_box(levels.mail);
#pragma unroll 1
    for (int level = 0; level < count; ++level) {
      prepare_step(levels, level, step);
      while (planned < count && planned < level + known_levels) plan_next();
      if (level + 2 < count) prefetch_level(levels.at(level + 2), levels.mail);
      // Behind the last ones the first: the next launch may be the same.
      const int ahead = level + known_levels + 2, later = ahead < count ? ahead : ahead - count;
      const auto* own = reinterpret_cast<const float*>(all + later) + threadIdx.x % warp_size * line;
      if (later < count && own < reinterpret_cast<const float*>(all + later + 1)) prefetch(own);
    }
  }
};

}  // namespace statescope::cuda::chain
