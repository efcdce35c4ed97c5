// The persistent kernel for models with sparse states with the decayed outer product.
#include "kernels/cuda/decode/persistent_kernel.h"

namespace statescope::cuda::decode {
Kernel sparse_outer_product_kernel(int rows_per_thread, int normed_vectors) {
  return kernel_with<false, true>(rows_per_thread, normed_vectors);
}
}  // namespace statescope::cuda::decode
