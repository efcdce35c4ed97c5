// Chains with steps of sparse states on the gated delta rule.
#include "kernels/cuda/decode/chain_kernel.h"

namespace statescope::cuda::chain {
Kernel sparse_delta_rule_kernel(int rows_of_thread) { return kernel_with<true, true>(rows_of_thread); }
}  // namespace statescope::cuda::chain
