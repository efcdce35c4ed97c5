// What becomes of the sums of a level's products (cuda_chain_kernel.h): their bias, activation, decay, short convolution or residual, and
// the mail. Warps of their own do that, while the others multiply on. Included by .cu files alone.
#pragma once

#include "kernels/cuda/decode/chain_input.h"

namespace statescope::cuda::chain {

constexpr int kept_tiles = 2 * most_tiles_together;  // whose sums stand in shared memory: of two groups

/// What those that multiply need of shared memory besides the ring.
struct OfProducts {
  float squares[most_normed_numbers / numbers_of_sum];
  float made[most_made_numbers];  // x that the level makes, one product's behind another's
  alignas(128) char x[1];         // as long as the longest x
};
/// The same with what others need of it, or with a memory's step in its place.
struct Work {
  float sums[kept_tiles * tile_rows * warps_of_half];  // [row of tiles, warp of the half]
  union {
    OfProducts of_x;
    memory_step::Shared step;
  };
};

/// Of a number of each warp.
template <int count>
__device__ float sum_of_warps(const float* of_row) {
  float2 sum{0, 0};
#pragma unroll
  for (int w = 0; w < count; w += 2) {
    const float2 x = *reinterpret_cast<const float2*>(of_row + w);
    sum = {sum.x + x.x, sum.y + x.y};
  }
  return sum.x + sum.y;
}

/// An output that a thread will finish: what it needs for that of memory.
struct Output {
  int product = -1, o = 0;
  float bias = 0, added = 0;
  float* y = nullptr;       // where it is nothing but a sum
  float* mailed = nullptr;  // where it goes besides
  Convolution convolution;  // or A_log and dt_bias as the first taps
  __device__ Output() = default;
  __device__ Output(const Slot& slot, const Place& place, const Mail& mail) : product(place.product), o(place.o) {
    if (product < 0) return;
    const Product& p = slot.level.tiles.products[product];
    if (p.bias != nullptr) bias = p.bias[o];
    if (p.end == End::convolve) convolution.load(p, o);
    if (p.end == End::delta_decay) convolution.taps.x = p.A_log[o], convolution.taps.y = p.dt_bias[o];
    const bool plain = p.end == End::activate && p.act == Activation::identity && slot.level.mailed[product] == Activation::identity;
    if (slot.level.mail[product] == nullptr) return;
    mailed = mail.in_turn(slot.level.mail[product] + o);
    if (plain && p.z == nullptr) y = p.y + o;
  }
  __device__ void load_addend(const Tiles& op, const Mail& mail) {
    if (product >= 0 && op.products[product].addend != nullptr) added = mail.get(mail.ask(op.products[product].addend + o));
  }
};

/// y[o] from the product with its bias, and what is added; gated: times the product with the other weight. The same to `mailed`, who may
/// wait for it.
__device__ __noinline__ inline void finish(const Product& p, int o, float x, float added, float other, float A_log, float dt_bias,
                                           float* mailed, Activation on_its_way) {
  const float y = p.end == End::forget_gate   ? log_sigmoid_decay(x, p.scale, p.clamp_min)
                  : p.end == End::delta_decay ? gated_delta_decay(x, A_log, dt_bias)
                                              : activated_by_one(x + added, p.act) * (p.end == End::gated ? other : 1);
  if (mailed != nullptr) Mail::put_in_turn(mailed, on_its_way == Activation::identity ? y : activated_by_one(y, on_its_way));
  p.y[o] = y;
  if (p.z != nullptr) p.z[o] = x;
}
__device__ __noinline__ inline void finish_convolved(const Product& p, int o, float z, float added, float4 taps, float4 kept,
                                                     float* mailed) {
  const Convolution convolution{taps, kept};
  const float y = activated_by_one(convolution.result(z) + added, p.act);
  if (mailed != nullptr) Mail::put_in_turn(mailed, y);
  p.y[o] = y;
  convolution.keep(p, o, z);
  if (p.z != nullptr) p.z[o] = z;
}
__device__ inline void finish(const Slot& slot, const Output& output, float x, float other) {
  x += output.bias;
  if (output.y != nullptr) {
    const float y = x + output.added;
    Mail::put_in_turn(output.mailed, y);
    *output.y = y;
  } else if (output.product >= 0) {
    const Product& p = slot.level.tiles.products[output.product];
    const auto& [taps, kept] = output.convolution;
    p.end == End::convolve ? finish_convolved(p, output.o, x, output.added, taps, kept, output.mailed)
                           : finish(p, output.o, x, output.added, other, taps.x, taps.y, output.mailed, slot.level.mailed[output.product]);
  }
}

/// What the finishing warps do: pieces of x, then each group's outputs when their sums are there.
__device__ inline void finish_products(Levels& levels, int count, Work& work, Groups& groups) {
  const int own = static_cast<int>(threadIdx.x) - first_finisher * warp_size;
  const Mail& mail = levels.mail;
  PlaceInGroups group(groups);
#pragma unroll 1
  for (int level = 0; level < count; ++level) {
    const Slot& slot = levels.wait_for_level(level);
    if (slot.level.kind == Kind::products && slot.all_tiles() > 0) bring_pieces(work.of_x.x, slot.level.tiles, mail);
    const int of_tile_log2 = slot.level.tiles.outputs_of_tile_log2, of_tile = 1 << of_tile_log2;
#pragma unroll 1
    for (int first = 0; first < slot.all_tiles(); first = slot.end_of_group(first)) {
      const int end = min(slot.end_of_group(first) * of_tile, slot.outputs);
      bool there = false;
#pragma unroll 1
      for (int i = first * of_tile + own; i - own < end; i += finishing_threads) {
        Output output(slot, i < end ? slot.place(i) : Place{-1, 0}, mail);
        output.load_addend(slot.level.tiles, mail);
        const bool halves = slot.level.tiles.gated();
        const unsigned tile = static_cast<unsigned>(slot.tiles_before + (i >> of_tile_log2)) % kept_tiles;
        const int row = i & (of_tile - 1);
        const float* const sums = work.sums + (tile * tile_rows + row) * warps_of_half;
        if (!there) group.wait_until_full();
        there = true;
        if (output.product < 0) continue;
        const float factor = slot.factor;
        finish(slot, output, factor * sum_of_warps<warps_of_half>(sums),
               halves ? factor * sum_of_warps<warps_of_half>(sums + stage_rows * warps_of_half) : 1);
      }
      group.give_back();
    }
    levels.end_level(level);
  }
}

}  // namespace statescope::cuda::chain
