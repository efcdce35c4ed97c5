// A GEMV with any number of weights, each read once, as it is stored, at the speed of memory: a token's step outside decode/. Weights come
// through pipelines in shared memory, and loads start before the kernels before this one have ended. Code is short rather than unrolled: a
// launch runs most of it a few times, and fetching 60 KB of code took longer than the work.
#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/hopper/one_row_pipeline.h"

namespace statescope::cuda {
namespace {

using namespace one_row;

// ---- the kernel ----------------------------------------------------------------------------------------------------------------------

/// One block per multiprocessor. A warp streams the rows of its units through a pipeline of its own; inputs are in shared memory, loaded
/// once a block.
template <DType dtype>
__global__ void __launch_bounds__(threads, 2) one_row_kernel(const __grid_constant__ Gemv op) {
  extern __shared__ __align__(128) float inputs[];
  __shared__ std::uint64_t barriers[warps][most_stages];
  __shared__ float squares[most_input_values / values_per_sum];
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const int own = warp * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x), step = warps * static_cast<int>(gridDim.x);
  const int count = own < op.units ? (op.units - own + step - 1) / step : 0;
  char* const stages = reinterpret_cast<char*>(inputs + op.input_values) + warp * op.stages * row_pair * op.chunk_bytes;
  WarpPipeline<dtype> pipeline{op, stages, barriers[warp], lane, own, step, count, op.stages, op.chunk_bytes};
  // While the kernels before this one still run: everything that they do not write.
  NormWeights of_first{};
  if (op.inputs[0].group > 0) of_first = norm_weights(op.inputs[0], static_cast<int>(threadIdx.x));
  pipeline.begin();
  Epilogue epilogue;
  pipeline.prepare(epilogue, 0);
  grid_dependency_wait();
  launch_dependents();  // not earlier: a second waiting kernel would only take resources

  load_inputs<dtype>(inputs, squares, op, of_first);
  epilogue.load_addend();
  __syncthreads();
  if (op.has_group_norms) {
    scale_groups<dtype>(inputs, squares, op);
    __syncthreads();
  }

  // A lane keeps the sum of a row until all lanes have one to finish, or another block waits for it.
  int factor_of = -1;
  float factor = 1, sum = 0;
#pragma unroll 1
  for (int index = 0; index < count; ++index) {
    const auto info = pipeline.broadcast(index);
    float2 z = pipeline.multiply(info, inputs);
    if (info.input != factor_of) {
      const Input& input = op.inputs[info.input];
      factor_of = info.input;
      factor = input.one_group() ? norm_factor(input, squares + input.shared_begin / values_per_sum) : 1;
    }
    if (!info.reads_intermediate) z = {factor * z.x, factor * z.y};
    const int place = index % half_warp;
    const bool own_row = info.long_rows() && lane % half_warp == place, last = index + 1 == count || place == half_warp - 1;
    if (info.long_rows()) {
      const float both = sum_in_halves(z);
      if (own_row) sum = both;
    } else {
      pipeline.finish_short(info, index, {sum_over(z.x, 1 << info.lanes_log2), sum_over(z.y, 1 << info.lanes_log2)});
    }
    if (last || info.counted) {
      const float other = __shfl_xor_sync(~0U, sum, half_warp);
      if (last || own_row) epilogue.finish(op, sum, other);
    }
    if (info.counted) {
      __threadfence();
      __syncwarp();
      if (lane == 0) atomicInc(op.ready, op.ready_wrap);
    }
    if (last && index + 1 < count) {
      pipeline.prepare(epilogue, index + 1);
      epilogue.load_addend();
    }
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

/// Whether a product fits the kernel: rows begin at 16 bytes and consist of 16-byte vectors; short rows are a power of two of them, and
/// contiguous.
bool streams(ConstTensor x, const InputNorm& norm, ConstTensor weight) {
  const auto size = static_cast<std::int64_t>(size_of(weight.dtype)), row_bytes = weight.row_size() * size,
             pieces = row_bytes / vector_bytes;
  const auto aligned = [](ConstTensor t, std::int64_t bytes) {
    return reinterpret_cast<std::uintptr_t>(t.data) % vector_bytes == 0 && t.stride * bytes % vector_bytes == 0;
  };
  const bool short_rows = pieces < warp_size;
  const bool rows = row_bytes % vector_bytes == 0 && pieces >= row_pair && aligned(weight, size) &&
                    (!short_rows || (warp_size % pieces == 0 && weight.contiguous() && weight.rows() >= warp_size / pieces));
  const bool groups = norm.group == 0 || norm.group == x.row_size() || norm.group % values_per_sum == 0;
  return x.rows() == 1 && x.dtype == DType::f32 && rows && aligned(x, vector_bytes) && groups &&  // of one row the stride does not matter
         (!norm.gate || (norm.gate.dtype == DType::f32 && aligned(norm.gate, vector_bytes)));
}

bool same(const InputNorm& a, const InputNorm& b) {
  return a.group == b.group && a.weight.data == b.weight.data && a.gate.data == b.gate.data;
}

/// What one launch computes, built product by product.
class OneRowLaunch {
 public:
  /// False where it does not fit; then nothing may be launched.
  bool add(const Projection& p) {
    if (!add_product(p.x, p.norm, p.weight)) return false;
    Product& product = op_.products[op_.product_count - 1];
    if (p.y.dtype != DType::f32 || (p.z && p.z.dtype != DType::f32)) return false;
    product.y = p.y.f32();
    product.z = f32(p.z).data;
    product.bias = f32(p.bias).data;
    return std::visit([&](const auto& finish) { return set(product, finish); }, p.finish);
  }
  /// y = silu(x̂ · gateᵀ) ⊙ (x̂ · upᵀ)
  bool add_gated(Tensor y, ConstTensor x, const InputNorm& norm, ConstTensor gate, ConstTensor up) {
    if (gate.dtype != up.dtype || gate.stride != up.stride || !streams(x, norm, up) || !add_product(x, norm, gate)) return false;
    Product& product = op_.products[op_.product_count - 1];
    if (1 << product.lanes_log2 < warp_size) return false;
    product.y = y.f32();
    product.up = static_cast<const char*>(up.data);
    product.epilogue = EpilogueKind::gated;
    product.act = Activation::silu;
    op_.units = product.first_unit + product.out;
    return true;
  }
  /// False, and nothing done, where decode/ does not take it and the inputs are too long for a launch of its own.
  bool start(const Announcements& announcements, DecodeQueue& queue) {
    op_.ready = announcements.count;
    op_.ready_wrap = op_.intermediate_units + waiting_ - 1;
    if (queue.add(op_, type_)) return true;
    if (op_.input_values > most_input_values) return false;
    for (int n = 0; n < op_.product_count; ++n) op_.first_unit[n] = op_.products[n].first_unit;
    const std::size_t input_bytes = static_cast<std::size_t>(op_.input_values) * sizeof(float);
    // Long chunks cost less; two stages keep memory busy.
    constexpr int long_chunk = 2048, short_chunk = 1024;
    constexpr std::size_t enough = 2;
    const auto stage_bytes = [](int chunk) { return std::size_t{warps} * row_pair * static_cast<std::size_t>(chunk); };
    const std::size_t room = shared_bytes - input_bytes;
    op_.chunk_bytes = room / stage_bytes(long_chunk) >= enough ? long_chunk : short_chunk;
    op_.stages = static_cast<int>(std::min<std::size_t>(room / stage_bytes(op_.chunk_bytes), most_stages));
    const auto begin = [&](auto kernel) {
      // The next kernel is resident at the same time only where shared memory is as large as it can be.
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory");
      launch_overlapped("linear of one row", kernel, multiprocessors(), threads,
                        input_bytes + static_cast<std::size_t>(op_.stages) * stage_bytes(op_.chunk_bytes), queue.stream(), op_);
    };
    begin(type_ == DType::f32   ? one_row_kernel<DType::f32>
          : type_ == DType::f16 ? one_row_kernel<DType::f16>
                                : one_row_kernel<DType::bf16>);
    return true;
  }

 private:
  bool add_product(ConstTensor x, const InputNorm& norm, ConstTensor weight) {
    if (op_.product_count == most_products || !streams(x, norm, weight)) return false;
    if (op_.product_count > 0 && weight.dtype != type_) return false;
    type_ = weight.dtype;
    Product* const maker = maker_of(x);
    if (maker != nullptr) {
      // A warp that waits must not keep another product from being computed: all products that others read come before those that wait.
      first_waiting_ = std::min(first_waiting_, op_.product_count);
      if (norm.group > 0 || maker->out != x.row_size() || maker - op_.products >= first_waiting_) return false;
    }
    const int input = maker != nullptr ? 0 : input_of(x, norm);
    if (input < 0) return false;
    if (maker != nullptr && !maker->is_intermediate) {
      maker->is_intermediate = true;
      op_.intermediate_units += static_cast<unsigned>(units_of(*maker));
    }
    const auto size = static_cast<std::int64_t>(size_of(type_));
    Product& product = op_.products[op_.product_count++];
    product.weight = static_cast<const char*>(weight.data);
    product.weight_bytes = weight.stride * size;
    product.out = static_cast<int>(weight.rows());
    product.in = static_cast<int>(weight.row_size());
    product.intermediate = maker != nullptr ? x.f32() : nullptr;
    product.input = input;
    product.lanes_log2 =
        std::countr_zero(static_cast<unsigned>(std::min<std::int64_t>(weight.row_size() * size / vector_bytes, warp_size)));
    product.first_unit = op_.units;
    op_.units += units_of(product);
    if (maker != nullptr) waiting_ += static_cast<unsigned>(units_of(product));
    return true;
  }
  static int units_of(const Product& p) {
    const int rows = row_pair * warp_size >> p.lanes_log2;
    return (p.out + rows - 1) / rows;
  }
  /// The earlier product whose output is x; null: there is none.
  Product* maker_of(ConstTensor x) {
    for (int n = 0; n < op_.product_count; ++n) {
      if (op_.products[n].y == x.data) return op_.products + n;
    }
    return nullptr;
  }
  /// Its index among the inputs; −1 where there is no room.
  int input_of(ConstTensor x, const InputNorm& norm) {
    for (int n = 0; n < op_.input_count; ++n) {
      if (op_.inputs[n].x == x.data && same(norms_[static_cast<std::size_t>(n)], norm)) return n;
    }
    const auto n = static_cast<int>(x.row_size()), places = (n + values_per_sum - 1) / values_per_sum * values_per_sum;
    if (op_.input_count == most_inputs || op_.input_values + places > most_queued_values) return -1;
    const int sums = static_cast<int>((norm.group + values_per_sum - 1) / values_per_sum);
    norms_[static_cast<std::size_t>(op_.input_count)] = norm;
    op_.inputs[op_.input_count] = {x.f32(),
                                   f32(norm.weight).data,
                                   f32(norm.gate).data,
                                   n,
                                   static_cast<int>(norm.group),
                                   op_.input_values,
                                   norm.eps,
                                   norm.offset,
                                   norm.act,
                                   sums,
                                   sums > 0 ? ((1 << 16) + sums - 1) / sums : 0};
    op_.input_values += places;
    op_.has_group_norms |= norm.group > 0 && norm.group < n;
    return op_.input_count++;
  }

  static bool set(Product& product, const Activate& finish) {
    product.epilogue = EpilogueKind::activate;
    product.act = finish.act;
    product.addend = f32(finish.addend).data;
    return true;
  }
  static bool set(Product& product, const ForgetGate& finish) {
    product.epilogue = EpilogueKind::forget_gate;
    product.scale = 1 / finish.normalizer;
    product.clamp_min = finish.clamp_min;
    return true;
  }
  static bool set(Product& product, const DeltaDecay& finish) {
    product.epilogue = EpilogueKind::delta_decay;
    product.A_log = f32(finish.A_log).data;
    product.dt_bias = f32(finish.dt_bias).data;
    return true;
  }
  static bool set(Product& product, const Convolve& finish) {
    product.epilogue = EpilogueKind::convolve;
    product.act = finish.act;
    product.taps = f32(finish.weight).data;
    product.tap_bias = f32(finish.bias).data;
    product.cache = f32(finish.cache).data;
    product.width = static_cast<int>(finish.weight.row_size());
    return product.width <= most_taps;
  }

  Gemv op_{};
  std::array<InputNorm, most_inputs> norms_;
  DType type_ = DType::bf16;
  unsigned waiting_ = 0;  // units that wait for intermediates
  int first_waiting_ = most_products;
};

}  // namespace

Announcements::Announcements() {
  check(cudaMalloc(&count, sizeof *count), "device memory");
  check(cudaMemset(count, 0, sizeof *count), "device memory");
}
Announcements::~Announcements() { cudaFree(count); }

bool Products::project(std::span<const Projection> projections, DecodeQueue& queue) {
  if (!is_hopper()) return false;
  OneRowLaunch all;
  for (const Projection& p : projections) {
    check_linear(p.z ? p.z : p.y, p.x, p.weight, p.bias);
    if (!all.add(p)) return false;
  }
  return projections.empty() || all.start(announcements_, queue);
}

bool Products::gated_linear(Tensor y, ConstTensor x, const InputNorm& norm, ConstTensor gate, ConstTensor up, DecodeQueue& queue) {
  check_linear(y, x, gate, {});
  check_linear(y, x, up, {});
  OneRowLaunch all;
  return is_hopper() && all.add_gated(y, x, norm, gate, up) && all.start(announcements_, queue);
}

}  // namespace statescope::cuda
