// The persistent kernel for models whose memory is the decayed outer product.
#include "kernels/cuda/decode/persistent_kernel.h"

namespace statescope::cuda::decode {
Kernel outer_product_kernel(int rows_per_thread, int normed_vectors) { return kernel_with<false, false>(rows_per_thread, normed_vectors); }
}  // namespace statescope::cuda::decode
