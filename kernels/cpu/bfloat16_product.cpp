#include "kernels/cpu/bfloat16_product.h"

#include <stdexcept>

#ifdef STATESCOPE_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

namespace statescope {

#ifdef STATESCOPE_ONEDNN
namespace {

using dnnl::memory;

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// The stream of the calling thread. oneDNN runs products on that thread alone: work is divided by TBB (parallel.h).
dnnl::stream& stream() {
  static thread_local dnnl::stream own = [] {
    omp_set_num_threads(1);
    return dnnl::stream(engine());
  }();
  return own;
}

/// rows × columns numbers that lie `row_stride` and `column_stride` apart
memory view(const void* data, memory::data_type type, memory::dim rows, memory::dim columns, memory::dim row_stride,
            memory::dim column_stride) {
  return memory({{rows, columns}, type, memory::dims{row_stride, column_stride}}, engine(), const_cast<void*>(data));
}

dnnl::matmul matmul(const memory::desc& x, const memory::desc& weight, const memory::desc& y) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul({engine(), x, weight, y});
#else
  return dnnl::matmul({{x, weight, y}, engine()});
#endif
}

bool has(dnnl::cpu_isa isa) {
  const auto wanted = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

}  // namespace

const char* bfloat16_instructions() {
  static const bool amx = has(dnnl::cpu_isa::avx512_core_amx), vectors = has(dnnl::cpu_isa::avx512_core_bf16);
  return amx ? "AMX" : vectors ? "AVX512-BF16" : nullptr;
}

void multiply_bfloat16(Tensor y, ConstTensor x, ConstTensor weight) {
  dnnl::stream& thread = stream();
  const memory of_x = view(x.data, memory::data_type::bf16, x.rows(), x.row_size(), x.stride, 1);
  const memory of_weight = view(weight.data, memory::data_type::bf16, weight.row_size(), weight.rows(), 1, weight.stride);
  const memory of_y = view(y.data, memory::data_type::f32, y.rows(), y.row_size(), y.stride, 1);
  // oneDNN caches what it generates for these shapes.
  matmul(of_x.get_desc(), of_weight.get_desc(), of_y.get_desc())
      .execute(thread, {{DNNL_ARG_SRC, of_x}, {DNNL_ARG_WEIGHTS, of_weight}, {DNNL_ARG_DST, of_y}});
}

#else

const char* bfloat16_instructions() { return nullptr; }

void multiply_bfloat16(Tensor, ConstTensor, ConstTensor) { throw std::logic_error("multiply_bfloat16: built without oneDNN"); }

#endif

}  // namespace statescope
