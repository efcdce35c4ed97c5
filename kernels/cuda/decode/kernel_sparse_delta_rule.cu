// The persistent kernel for models with sparse states with the gated delta rule.
#include "kernels/cuda/decode/persistent_kernel.h"

namespace statescope::cuda::decode {
Kernel sparse_delta_rule_kernel(int rows_per_thread, int normed_vectors) {
  return kernel_with<true, true>(rows_per_thread, normed_vectors);
}
}  // namespace statescope::cuda::decode
