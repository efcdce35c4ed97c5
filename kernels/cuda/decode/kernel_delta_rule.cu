// The persistent kernel for models whose memory is the gated delta rule.
#include "kernels/cuda/decode/persistent_kernel.h"

namespace statescope::cuda::decode {
Kernel delta_rule_kernel(int rows_per_thread, int normed_vectors) { return kernel_with<true, false>(rows_per_thread, normed_vectors); }
}  // namespace statescope::cuda::decode
