// Sparse state expansion computed in the two plain ways that the papers compare with its own (SSE Fig. 6): for measuring alone. Models take
// the third, Backend::sparse_state, which orders tokens by partition and runs all of them at once ("varlen").
#pragma once

#include "kernels/ops/sparse_state.h"

namespace statescope {

/// Both are of the decayed outer product, with as many readers as writers and gates on both sides, in float32: others throw
/// std::invalid_argument. They give what Backend::sparse_state gives, up to rounding.

/// One partition after the other: its tokens are gathered, read as a sequence of their own, and added to the output.
void sse_sequential(const SparseState& op, std::int64_t chunk_size, Backend& backend, Workspace& workspace);

/// Every partition reads every token: q, k, v and log α are repeated for each of them, and where a token did not choose it k, v and q are 0
/// and α is 1, which leaves the state as it is (spec §4.5).
void sse_masking(const SparseState& op, std::int64_t chunk_size, Backend& backend, Workspace& workspace);

}  // namespace statescope
