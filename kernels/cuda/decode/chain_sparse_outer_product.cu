// Chains with steps of sparse states on the decayed outer product.
#include "kernels/cuda/decode/chain_kernel.h"

namespace statescope::cuda::chain {
Kernel sparse_outer_product_kernel(int rows_of_thread) { return kernel_with<false, true>(rows_of_thread); }
}  // namespace statescope::cuda::chain
