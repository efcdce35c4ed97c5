// One copy of Eigen's product, for the instruction set STATESCOPE_ISA. The build renames the namespace Eigen in each copy, and nothing
// else here may be a template of std:: that the linker could merge with a copy for a lesser machine.
#if defined(__GNUC__) && !defined(__clang__)  // false alarms of g++ 12 in its own AVX-512 header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>

#include "kernels/ops/isa/gemm_isa.h"
#include "kernels/ops/linear.h"

namespace statescope {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
using Operand = Eigen::Map<const Matrix, Eigen::Unaligned, Stride>;
using Result = Eigen::Map<Matrix, Eigen::Unaligned, Stride>;

// C = alpha · A B + beta · C
template <class A, class B>
void multiply(const Gemm& product, const A& a, const B& b) {
  Result c(product.c, product.m, product.n, Stride(product.ldc));
  if (product.beta == 0) {
    c.noalias() = product.alpha * a * b;
    return;
  }
  if (product.beta != 1) c *= product.beta;
  c.noalias() += product.alpha * a * b;
}

template <class A>
void multiply(const Gemm& product, const A& a) {
  const Operand b(product.b, product.transpose_b ? product.n : product.k, product.transpose_b ? product.k : product.n, Stride(product.ldb));
  if (product.transpose_b) {
    multiply(product, a, b.transpose());
  } else {
    multiply(product, a, b);
  }
}

}  // namespace

#define STATESCOPE_JOIN_(name, isa) name##isa
#define STATESCOPE_JOIN(name, isa) STATESCOPE_JOIN_(name, isa)

void STATESCOPE_JOIN(gemm_, STATESCOPE_ISA)(const Gemm& product) {
  const Operand a(product.a, product.transpose_a ? product.k : product.m, product.transpose_a ? product.m : product.k, Stride(product.lda));
  if (product.transpose_a) {
    multiply(product, a.transpose());
  } else {
    multiply(product, a);
  }
}

}  // namespace statescope
