// Products of one row (cuda_one_row.h) in kernels for compute capability 9.0. A block has eight warps that multiply and one that fetches:
// it brings units of eight rows of weights through a ring in shared memory and never waits for inputs, so that memory is busy while
// results are handed on. A warp takes an eighth of the columns. x as three bf16 parts and weights as one to three are exact, so products
// on tensor cores have the accuracy of float32.
#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda_activation.h"
#include "kernels/cuda_hopper.h"
#include "kernels/cuda_mail.h"
#include "kernels/cuda_one_row.h"
#include "kernels/cuda_order.h"

namespace statescope::cuda::one_row {

/// Of the threads that multiply.
__device__ inline void sync() { asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory"); }

__device__ inline int product_of(const OneRow& op, int unit) {
  int n = 0;
#pragma unroll 1
  while (n + 1 < op.product_count && unit >= op.first_unit[n + 1]) ++n;
  return n;
}

__device__ inline void prefetch(const float* x) { asm volatile("prefetch.global.L2 [%0];" ::"l"(x)); }

__device__ inline unsigned acquired(const unsigned* count) {
  unsigned n;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(count) : "memory");
  return n;
}
/// By one thread, behind a barrier of those who wrote.
__device__ inline void announce(unsigned* count, unsigned n) {
  asm volatile("fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(count), "r"(n) : "memory");
}
/// Until as many have announced; by all that multiply.
__device__ inline void wait_for(const unsigned* count, unsigned enough) {
  if (threadIdx.x == 0) {
    while (acquired(count) < enough) {
    }
  }
  sync();
}

/// Starts to copy weights: a token reads them once, so they are the first to leave the second cache again.
__device__ inline void copy_weights(void* to, const char* from, int bytes, std::uint64_t& full, std::uint64_t policy) {
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

/// Stages in shared memory, each rows of one unit. Who fetches and who multiplies go around in step.
struct Ring {
  char* stages;
  std::uint64_t *full, *empty;
  int count, stage = 0, parity = 0;
  __device__ char* at() const { return stages + stage * stage_bytes; }
  __device__ void next() {
    if (++stage == count) stage = 0, parity ^= 1;
  }
};

/// What the warps share beside x and the ring.
struct Shared {
  std::uint64_t full[most_stages], empty[most_stages];
  float sums[long_at_once + short_at_once][warps * x_parts * unit_rows + unit_rows];  // of a unit: by warp, by part of x, then by row
  float squares[most_numbers / numbers_of_sum];
  float factors[most_inputs];
};

__device__ inline Ring make_ring(Shared& shared, char* stages, int count) {
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int s = 0; s < count; ++s) init_barrier(shared.full[s], 1), init_barrier(shared.empty[s], warps);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  return {stages, shared.full, shared.empty, count};
}

/// Where the rows of a unit lie in memory.
struct Rows {
  const char *first, *up;  // up: of the other weight, or null
  std::int64_t apart;
  int last, bytes;  // the last one's number; of each, of short ones together
  bool short_rows;
};

__device__ inline Rows rows_of(const OneRow& op, int unit, int size) {
  if (unit >= op.units) return {};
  const Product& p = op.products[product_of(op, unit)];
  const int row = (unit - p.first_unit) * rows_of_unit(p), last = min(rows_of_unit(p), p.out - row) - 1;
  return {p.weight + row * p.weight_bytes,
          p.end == End::gated ? p.up + row * p.weight_bytes : nullptr,
          p.weight_bytes,
          last,
          p.in * size * (p.short_rows ? last + 1 : 1),
          p.short_rows};
}

/// By one warp: brings all units of the block through the ring.
template <DType dtype>
__device__ void fetch(const OneRow& op, Ring& ring) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size, step = static_cast<int>(gridDim.x);
  const std::uint64_t policy = leaves_first();
  const auto of_lane = [](auto pointer, int from) {
    return reinterpret_cast<decltype(pointer)>(__shfl_sync(~0U, reinterpret_cast<unsigned long long>(pointer), from));
  };
  const auto take_stage = [&](int bytes) {
    if (lane == 0) {
      wait(ring.empty[ring.stage], ring.parity ^ 1);
      arrive_and_expect(ring.full[ring.stage], static_cast<unsigned>(bytes));
    }
    __syncwarp();
  };
#pragma unroll 1
  for (int begin = static_cast<int>(blockIdx.x); begin < op.units; begin += warp_size * step) {
    const Rows own = rows_of(op, begin + lane * step, static_cast<int>(size_of(dtype)));  // of the lane's unit
    const int count = min(warp_size, (op.units - begin + step - 1) / step);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const char *first = of_lane(own.first, i), *up = of_lane(own.up, i);
      const auto apart = static_cast<std::int64_t>(__shfl_sync(~0U, own.apart, i));
      const int last = __shfl_sync(~0U, own.last, i), bytes = __shfl_sync(~0U, own.bytes, i);
      if (__shfl_sync(~0U, own.short_rows, i)) {
        take_stage(bytes);
        if (lane == 0) copy_weights(ring.at(), first, bytes, ring.full[ring.stage], policy);
        ring.next();
        continue;
      }
      const int row = up != nullptr ? lane % (unit_rows / 2) : lane % unit_rows;
      const char* const from = (up != nullptr && lane >= unit_rows / 2 ? up : first) + min(row, last) * apart;
#pragma unroll 1
      for (int done = 0; done < bytes; done += row_bytes) {
        const int part = min(row_bytes, bytes - done);
        take_stage(unit_rows * part);
        if (lane < unit_rows) copy_weights(ring.at() + lane * row_place, from + done, part, ring.full[ring.stage], policy);
        ring.next();
      }
    }
  }
}

/// Eight numbers as bf16 parts whose sum they are; two bf16 in a word.
template <int parts>
__device__ void split(const float (&x)[eight], uint4 (&part)[parts]) {
  float rest[eight];
#pragma unroll
  for (int i = 0; i < eight; ++i) rest[i] = x[i];
#pragma unroll
  for (int p = 0; p < parts; ++p) {
    unsigned words[eight / 2];
#pragma unroll
    for (int i = 0; i < eight / 2; ++i) {
      words[i] = __byte_perm(__float_as_uint(rest[2 * i]), __float_as_uint(rest[2 * i + 1]), 0x7632);
      // what is infinite or no number has no rest
      const float first = first_of(words[i]), second = second_of(words[i]);
      rest[2 * i] = fabsf(first) < INFINITY ? rest[2 * i] - first : 0;
      rest[2 * i + 1] = fabsf(second) < INFINITY ? rest[2 * i + 1] - second : 0;
    }
    part[p] = {words[0], words[1], words[2], words[3]};
  }
}

/// Eight weights of a row as bf16 parts.
template <DType dtype>
struct Weights {
  static constexpr int parts = dtype == DType::bf16 ? 1 : dtype == DType::f16 ? 2 : 3;
  uint4 part[parts] = {};
  __device__ void load(const char* from) {
    const auto* raw = reinterpret_cast<const uint4*>(from);
    if constexpr (dtype == DType::bf16) {
      part[0] = raw[0];
    } else if constexpr (dtype == DType::f16) {
      const unsigned words[4] = {raw[0].x, raw[0].y, raw[0].z, raw[0].w};
      float x[eight];
#pragma unroll
      for (int i = 0; i < eight / 2; ++i) {
        const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
        x[2 * i] = both.x, x[2 * i + 1] = both.y;
      }
      split(x, part);
    } else {
      const auto as_float = [](unsigned word) { return __uint_as_float(word); };
      const uint4 a = raw[0], b = raw[1];
      const float x[eight] = {as_float(a.x), as_float(a.y), as_float(a.z), as_float(a.w),
                              as_float(b.x), as_float(b.y), as_float(b.z), as_float(b.w)};
      split(x, part);
    }
  }
};

/// All inputs in shared memory: part after part, each with a gap behind so that parts lie in different banks.
struct Inputs {
  char* parts;
  int part_bytes;
  __device__ Inputs(char* parts_, const OneRow& op) : parts(parts_), part_bytes(2 * op.numbers + 64) {}
  __device__ char* at(int part, int number) const { return parts + part * part_bytes + 2 * number; }
  /// A lane multiplies its first and third pair of eight numbers at once, then the second and the fourth (Sums).
  __device__ void put(int number, const float (&x)[eight]) const {
    uint4 part[x_parts];
    split(x, part);
#pragma unroll
    for (int p = 0; p < x_parts; ++p) *reinterpret_cast<uint4*>(at(p, number)) = {part[p].x, part[p].z, part[p].y, part[p].w};
  }
  __device__ void get(int number, float (&x)[eight]) const {
#pragma unroll
    for (int e = 0; e < eight; ++e) x[e] = 0;
#pragma unroll
    for (int p = x_parts - 1; p >= 0; --p) {
      const uint4 part = *reinterpret_cast<const uint4*>(at(p, number));
      const unsigned words[4] = {part.x, part.z, part.y, part.w};
#pragma unroll
      for (int e = 0; e < eight; ++e) x[e] += e % 2 == 0 ? first_of(words[e / 2]) : second_of(words[e / 2]);
    }
  }
};

/// What a warp adds to the products of x with the rows of a unit: of row 2 t of the weight and part g of x in lane 4 g + t, then of row
/// 2 t + 1.
template <DType dtype>
struct Sums {
  // A: row g is part g of x. B: a column is a row of the weight. The order of the numbers that are summed is free, so a lane has eight
  // neighbours: four for a product whose rows 0 to 7 count, four for one whose rows 8 to 15 do. What other rows give is not used.
  float low[2][4]{}, high[2][4]{};

  /// Lanes beyond the parts of x read nothing, which spares shared memory, and hold anything.
  static __device__ uint4 part_of(const char* x) {
    uint4 a;
    asm volatile("{\n.reg .pred p;\nsetp.lt.u32 p, %5, %6;\n@p ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                 : "=r"(a.x), "=r"(a.y), "=r"(a.z), "=r"(a.w)
                 : "r"(shared_address(x)), "r"(threadIdx.x % warp_size), "n"(4 * x_parts)
                 : "memory");
    return a;
  }
  template <int n>
  __device__ void add(const char* weights, const char* x) {
    Weights<dtype> w[n];
    uint4 a[n];
#pragma unroll
    for (int i = 0; i < n; ++i) {
      w[i].load(weights + i * all_columns * static_cast<int>(size_of(dtype)));
      a[i] = part_of(x + i * all_columns * 2);
    }
#pragma unroll
    for (int i = 0; i < n; ++i) add(w[i], a[i], i % 2);
  }
  __device__ void add(const Weights<dtype>& w, const uint4& a, int chain) {
#pragma unroll
    for (int p = 0; p < Weights<dtype>::parts; ++p) {
      multiply(low[chain], a, w.part[p].x, w.part[p].y);
      multiply(high[chain], a, w.part[p].z, w.part[p].w);
    }
  }
  __device__ float2 result() const {
    return {(low[0][0] + low[1][0]) + (high[0][2] + high[1][2]), (low[0][1] + low[1][1]) + (high[0][3] + high[1][3])};
  }
};

template <DType dtype>
__device__ float2 multiply_unit(Ring& ring, const Inputs& x, int place, int in) {
  constexpr int size = static_cast<int>(size_of(dtype)), columns = row_bytes / size, at_once = columns / all_columns;
  const int warp = static_cast<int>(threadIdx.x) / warp_size, lane = static_cast<int>(threadIdx.x) % warp_size, g = lane / 4;
  const int own = warp * warp_columns + lane % 4 * eight;
  const char* from_x = x.at(min(g, x_parts - 1), place + own);
  Sums<dtype> sums;
#pragma unroll 1
  for (int left = in; left > 0; left -= columns, from_x += 2 * columns) {
    wait(ring.full[ring.stage], ring.parity);
    const char* const row = ring.at() + g * row_place + own * size;
    if (left >= columns) {
      sums.template add<at_once>(row, from_x);
    } else {
#pragma unroll 1
      for (int begin = 0; begin < left; begin += all_columns) {
        Weights<dtype> w;
        uint4 a{0, 0, 0, 0};
        if (begin + own < left) w.load(row + begin * size), a = *reinterpret_cast<const uint4*>(from_x + 2 * begin);
        sums.add(w, a, 0);
      }
    }
    __syncwarp();
    if (lane == 0) arrive(ring.empty[ring.stage]);
    ring.next();
  }
  return sums.result();
}

/// The same for a unit of short rows, of which each warp has its own eight.
template <DType dtype>
__device__ float2 multiply_short_unit(Ring& ring, const Inputs& x, int place, int in) {
  constexpr int size = static_cast<int>(size_of(dtype));
  const int warp = static_cast<int>(threadIdx.x) / warp_size, lane = static_cast<int>(threadIdx.x) % warp_size, g = lane / 4;
  const char* const from_x = x.at(min(g, x_parts - 1), place);
  wait(ring.full[ring.stage], ring.parity);
  const char* const row = ring.at() + (warp * unit_rows + g) * in * size;
  Sums<dtype> sums;
#pragma unroll 1
  for (int column = lane % 4 * eight; column - lane % 4 * eight < in; column += warp_columns) {
    Weights<dtype> w;
    uint4 a{0, 0, 0, 0};
    if (column < in) w.load(row + column * size), a = *reinterpret_cast<const uint4*>(from_x + 2 * column);
    sums.add(w, a, 0);
  }
  __syncwarp();
  if (lane == 0) arrive(ring.empty[ring.stage]);
  ring.next();
  return sums.result();
}

/// Eight numbers of an input, of its gate or of its norm's weights.
struct Eight {
  float4 low{0, 0, 0, 0}, high{0, 0, 0, 0};
  __device__ void look_at(const float* x) {
    low = look(reinterpret_cast<const float4*>(x)), high = look(reinterpret_cast<const float4*>(x) + 1);
  }
  __device__ void wait(const float* x, bool awaited) {
    while (awaited && (is_absent(low) || is_absent(high))) look_at(x);
  }
};

/// A norm's weights, without its offset, for numbers 8 i … of the input.
__device__ inline Eight norm_weights(const Input& input, int i) {
  Eight w;
  w.low = w.high = {1, 1, 1, 1};
  if (input.weight == nullptr || i >= input.n / eight) return w;
  const float* at = input.weight + eight * i - input.group_of(eight * i / numbers_of_sum) * input.group;
  w.low = {__ldg(at), __ldg(at + 1), __ldg(at + 2), __ldg(at + 3)};
  w.high = {__ldg(at + 4), __ldg(at + 5), __ldg(at + 6), __ldg(at + 7)};
  return w;
}

/// Numbers of an input on their way to a thread: 8 i … for i = begin, begin + threads, …, or one such eight and its gate.
template <int most>
struct Incoming {
  Eight at[most];
  __device__ static int count(const Input& input) { return input.gate != nullptr ? 1 : most; }
  __device__ void look(const Input& input, int begin) {
    if (input.gate != nullptr && begin < input.n / eight) at[1].look_at(input.gate + eight * begin);
#pragma unroll
    for (int t = 0; t < most; ++t) {
      if (begin + t * threads < input.n / eight && t < count(input)) at[t].look_at(input.x + eight * (begin + t * threads));
    }
  }
};

/// Brings what comes into shared memory, of one that passes a norm as yet without the factors of its groups; 16 lanes sum the squares of
/// their numbers. `weights` are the norm's for the first eight.
template <int most>
__device__ void take(const Inputs& x, float* squares, const Input& input, int begin, Incoming<most>& incoming, const Eight& weights) {
  constexpr int of_sum = numbers_of_sum / eight;
  const int eights = input.n / eight, whole = (input.n + numbers_of_sum - 1) / numbers_of_sum * of_sum;
#pragma unroll
  for (int t = 0; t < most; ++t) {
    const int i = begin + t * threads;
    if (t >= Incoming<most>::count(input) || i - static_cast<int>(threadIdx.x) >= whole) break;
    Eight& own = incoming.at[t];
    if (i < eights) {
      own.wait(input.x + eight * i, input.x_awaited);
    } else {
      own = {};
    }
    float n[eight] = {own.low.x, own.low.y, own.low.z, own.low.w, own.high.x, own.high.y, own.high.z, own.high.w};
    if (input.group > 0) {
      float sum = 0;
#pragma unroll
      for (int e = 0; e < eight; ++e) sum = fmaf(n[e], n[e], sum);
#pragma unroll
      for (int distance = of_sum / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0U, sum, distance);
      if (i % of_sum == 0 && i < whole) squares[input.place / numbers_of_sum + i / of_sum] = sum;
      const Eight w = t == 0 ? weights : norm_weights(input, i);
      const float weight[eight] = {w.low.x, w.low.y, w.low.z, w.low.w, w.high.x, w.high.y, w.high.z, w.high.w};
      const float offset = input.weight != nullptr ? input.offset : 0;
#pragma unroll
      for (int e = 0; e < eight; ++e) n[e] *= weight[e] + offset;
    }
    if (i >= eights) continue;
    if (t == 0 && input.gate != nullptr) {
      Eight& gate = incoming.at[1];
      gate.wait(input.gate + eight * i, input.gate_awaited);
      const float z[eight] = {gate.low.x, gate.low.y, gate.low.z, gate.low.w, gate.high.x, gate.high.y, gate.high.z, gate.high.w};
#pragma unroll
      for (int e = 0; e < eight; ++e) n[e] *= activated_by_one(z[e], input.act);
    }
    x.put(input.place + eight * i, n);
  }
}

/// Brings an input into shared memory; `first` has been looked at.
template <int most>
__device__ void load_input(const Inputs& x, float* squares, const Input& input, Incoming<most>& first, const Eight& weights_of_first) {
  const int whole = (input.n + numbers_of_sum - 1) / numbers_of_sum * (numbers_of_sum / eight);
  const int step = Incoming<most>::count(input) * threads, thread = static_cast<int>(threadIdx.x);
  Eight weights = weights_of_first;
#pragma unroll 1
  for (int begin = thread; begin - thread < whole; begin += step) {
    if (begin > thread) {
      first.look(input, begin);
      if (input.group > 0) weights = norm_weights(input, begin);
    }
    take(x, squares, input, begin, first, weights);
  }
}

/// (Σ x² / group + eps)^{−1/2} from the sum of the group's squares.
__device__ inline float norm_factor(const Input& input, float sum) {
  return rsqrtf(sum * (1 / static_cast<float>(input.group)) + input.eps);
}

/// x ← x · factor where groups have their own; a thread's numbers belong to one group and are those that it brought.
__device__ inline void scale_groups(const Inputs& x, const float* squares, const Input& input) {
  if (input.group == 0 || input.one_group()) return;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < input.n / eight; i += threads) {
    const int group = input.group_of(eight * i / numbers_of_sum);
    const float* const of_group = squares + input.place / numbers_of_sum + group * input.sums;
    float sum = 0;
#pragma unroll 1
    for (int j = 0; j < input.sums; ++j) sum += of_group[j];
    const float factor = norm_factor(input, sum);
    float n[eight];
    x.get(input.place + eight * i, n);
#pragma unroll
    for (int e = 0; e < eight; ++e) n[e] *= factor;
    x.put(input.place + eight * i, n);
  }
}

/// bias + Σ_j taps[j] · input j, the last input is z; the cache moves up by one     (convolution.h)
__device__ inline float convolved(const Product& p, int o, float z) {
  const int past = p.width - 1;
  const float* taps = p.taps + static_cast<std::int64_t>(o) * p.width;
  float kept[most_taps - 1], weight[most_taps - 1], sum = p.tap_bias != nullptr ? p.tap_bias[o] : 0;
#pragma unroll
  for (int j = 0; j < most_taps - 1; ++j) {
    if (j < past) kept[j] = p.cache[j * p.out + o], weight[j] = taps[j];
  }
#pragma unroll
  for (int j = 0; j < most_taps - 1; ++j) {
    if (j >= past) continue;
    sum += weight[j] * kept[j];
    if (j > 0) p.cache[(j - 1) * p.out + o] = kept[j];
  }
  if (past > 0) p.cache[(past - 1) * p.out + o] = z;
  return sum + taps[past] * z;
}

/// The output that a thread will finish, with what it needs for that. Made ready before the products are.
struct Ending {
  int product = -1, o = 0, input = 0;
  End end = End::activate;
  Activation act = Activation::identity;
  float *y = nullptr, *z = nullptr, *y_mail = nullptr, *z_mail = nullptr;
  const float* addend = nullptr;
  bool addend_awaited = false;
  float bias = 0, added = 0;

  /// All that no kernel before this one makes: row `row` of a unit of product n, or n < 0.
  __device__ void prepare(const OneRow& op, int n, int unit, int row) {
    product = -1;
    if (n < 0) return;
    const Product& p = op.products[n];
    o = (unit - p.first_unit) * rows_of_unit(p) + row;
    if (o >= p.out || row >= rows_of_unit(p)) return;
    product = n, input = p.input, end = p.end, act = p.act;
    y = p.y, z = p.z, y_mail = p.y_mail, z_mail = p.z_mail, addend = p.addend, addend_awaited = p.addend_awaited;
    bias = p.bias != nullptr ? p.bias[o] : 0;
    if (end != End::convolve) return;
    // What its end reads may long have been displaced from the second cache.
    prefetch(p.taps + static_cast<std::int64_t>(o) * p.width);
#pragma unroll 1
    for (int j = 0; j < p.width - 1; ++j) prefetch(p.cache + j * p.out + o);
  }
  /// It comes long before the sums.
  __device__ void look_at_addend() { added = product >= 0 && addend != nullptr ? look(addend + o) : 0; }
  __device__ void write(float* to, float* mail, float x) const {
    if (mail != nullptr) post(mail + o, x);
    if (to != nullptr) to[o] = x;
  }

  /// y[o] from the sums of the warps; gated: times the product with the other weight.
  __device__ void finish(const OneRow& op, const Shared& shared, const float* sums, int summed_warps) {
    if (product < 0) return;
    if (addend != nullptr && addend_awaited && is_absent(added)) added = arrived(addend + o, true);
    const float factor = shared.factors[input];
    const auto sum_of = [&](const float* of_row) {
      float sum[x_parts]{};
#pragma unroll 1
      for (int w = 0; w < summed_warps; ++w) {
#pragma unroll
        for (int p = 0; p < x_parts; ++p) sum[p] += of_row[(w * x_parts + p) * unit_rows];
      }
      return factor * (sum[0] + (sum[1] + sum[2]));
    };
    float x = sum_of(sums) + bias;
    write(z, z_mail, x);
    if (end == End::forget_gate || end == End::delta_decay) {
      // max(logσ(z) · scale, clamp_min), logσ(z) = −softplus(−z);   −exp(A_log) · softplus(z + dt_bias)
      const Product& p = op.products[product];
      const bool forgets = end == End::forget_gate;
      const float plus = softplus(forgets ? -x : x + p.dt_bias[o]), decay = -(forgets ? p.scale : expf(p.A_log[o])) * plus;
      return write(y, y_mail, forgets && decay < p.clamp_min ? p.clamp_min : decay);
    }
    if (end == End::convolve) x = convolved(op.products[product], o, x);
    write(y, y_mail, activated_by_one(x + added, act) * (end == End::gated ? sum_of(sums + unit_rows / 2) : 1));
  }
};

/// Units of the block that are finished together: `longs` of long rows, then `shorts` of short ones, from number `begin` of the block's
/// units on; all announced, or none. Lane i knows unit begin + i.
struct Batch {
  int begin, longs, shorts;
  int unit = 0, product = -1, place = 0, in = 0;
  bool announced, waiting = false;

  __device__ Batch(const OneRow& op, int begin_) : begin(begin_) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    unit = static_cast<int>(blockIdx.x) + (begin + lane) * static_cast<int>(gridDim.x);
    bool short_rows = false;
    if (unit < op.units) {
      product = product_of(op, unit);
      const Product& p = op.products[product];
      place = op.inputs[p.input].place, in = p.in, short_rows = p.short_rows, waiting = unit >= op.waiting;
    }
    const unsigned there = __ballot_sync(~0U, product >= 0), first = __ballot_sync(~0U, product >= 0 && unit < op.announced);
    const unsigned brief = __ballot_sync(~0U, short_rows);
    announced = (first & 1) != 0;
    const unsigned alike = announced ? first : there & ~first;
    longs = min(run(alike & ~brief), long_at_once);
    shorts = min(run((alike & brief) >> longs), short_at_once);
  }
  /// How many of the lowest bits are set.
  static __device__ int run(unsigned bits) { return bits == ~0U ? warp_size : __ffs(static_cast<int>(~bits)) - 1; }
  __device__ int count() const { return longs + shorts; }
};

/// Whose output a thread finishes: the unit within the batch (−1: of none), its row, and where the sums of that stand.
struct Share {
  int unit, row, warps_of_sum, sum;
  __device__ explicit Share(const Batch& batch) {
    const int thread = static_cast<int>(threadIdx.x), rest = thread - long_at_once * unit_rows;
    const bool is_long = rest < 0;
    const int i = is_long ? thread / unit_rows : rest / short_unit_rows;
    row = is_long ? thread % unit_rows : rest % short_unit_rows;
    unit = i >= (is_long ? batch.longs : batch.shorts) ? -1 : is_long ? i : batch.longs + i;
    warps_of_sum = is_long ? warps : 1;
    sum = is_long ? row : row / unit_rows * x_parts * unit_rows + row % unit_rows;
  }
};

/// The block's share of all products, by the warps that multiply. `wait_for_inputs` returns when the inputs that do not come by mail are
/// there, and y may be written. by_mail: so do those that are made here.
template <DType dtype, bool by_mail, class Wait>
__device__ void multiply_all(const OneRow& op, Ring& ring, Shared& shared, char* parts, const Wait& wait_for_inputs) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / warp_size, lane = thread % warp_size;
  if (by_mail && static_cast<int>(blockIdx.x) >= op.units) return;
  const Inputs x(parts, op);
  Incoming<by_mail ? 3 : 2> incoming;  // a level by itself leaves room for another kernel
  Ending ending;
  const auto prepare = [&](const Batch& batch) {
    const Share share(batch);
    const int n = __shfl_sync(~0U, batch.product, max(share.unit, 0)), unit = __shfl_sync(~0U, batch.unit, max(share.unit, 0));
    ending.prepare(op, share.unit < 0 ? -1 : n, unit, share.row);
  };
  if (by_mail) incoming.look(op.inputs[0], thread);
  Eight weights;
  if (op.inputs[0].group > 0) weights = norm_weights(op.inputs[0], thread);
  Batch batch(op, 0);
  prepare(batch);
  wait_for_inputs();
  if (!by_mail) incoming.look(op.inputs[0], thread);
  ending.look_at_addend();
  const auto load = [&](bool made) {
#pragma unroll 1
    for (int n = 0; n < op.input_count; ++n) {
      const Input& input = op.inputs[n];
      if (input.made != made) continue;
      if (n > 0) {
        incoming.look(input, thread);
        if (input.group > 0) weights = norm_weights(input, thread);
      }
      load_input(x, shared.squares, input, incoming, weights);
    }
    sync();
  };
  load(false);
  if (op.groups) {
#pragma unroll 1
    for (int n = 0; n < op.input_count; ++n) scale_groups(x, shared.squares, op.inputs[n]);
    sync();
  }
  if (warp < op.input_count) {
    const Input& input = op.inputs[warp];
    float sum = 0;
    if (input.one_group()) {
#pragma unroll 1
      for (int j = lane; j < input.sums; j += warp_size) sum += shared.squares[input.place / numbers_of_sum + j];
      sum = combined(sum, [](float a, float b) { return a + b; });
    }
    if (lane == 0) shared.factors[warp] = input.one_group() ? norm_factor(input, sum) : 1;
  }
  bool waited = false;
#pragma unroll 1
  while (batch.count() > 0) {
#pragma unroll 1
    for (int i = 0; i < batch.count(); ++i) {
      if (__shfl_sync(~0U, batch.waiting, i) && !waited) {
        if (!by_mail) wait_for(op.ready, op.enough);
        load(true);
        waited = true;
      }
      const int place = __shfl_sync(~0U, batch.place, i), in = __shfl_sync(~0U, batch.in, i);
      const float2 z = i < batch.longs ? multiply_unit<dtype>(ring, x, place, in) : multiply_short_unit<dtype>(ring, x, place, in);
      if (lane < 4 * x_parts) *reinterpret_cast<float2*>(&shared.sums[i][warp * x_parts * unit_rows + 2 * lane]) = z;
    }
    sync();
    const Share share(batch);
    ending.finish(op, shared, &shared.sums[max(share.unit, 0)][share.sum], share.warps_of_sum);
    const Batch next(op, batch.begin + batch.count());
    const bool announces = !by_mail && batch.announced;
    if (next.count() > 0 || announces) sync();
    if (announces && thread == 0) announce(op.ready, static_cast<unsigned>(batch.count()));
    if (next.count() > 0) {
      prepare(next);
      ending.look_at_addend();
    }
    batch = next;
  }
}

}  // namespace statescope::cuda::one_row
