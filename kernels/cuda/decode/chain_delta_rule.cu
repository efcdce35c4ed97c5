// Chains with steps of the gated delta rule.
#include "kernels/cuda/decode/chain_kernel.h"

namespace statescope::cuda::chain {
Kernel delta_rule_kernel(int rows_of_thread) { return kernel_with<true, false>(rows_of_thread); }
}  // namespace statescope::cuda::chain
