// Chains with steps of a decayed outer product.
#include "kernels/cuda/decode/chain_kernel.h"

namespace statescope::cuda::chain {
Kernel outer_product_kernel(int rows_of_thread) { return kernel_with<false, false>(rows_of_thread); }
}  // namespace statescope::cuda::chain
