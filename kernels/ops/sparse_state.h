// Sparse state expansion (SSE): one shared state and N sparse ones per sequence; a token is written to, and read from, the shared state and
// the partitions that its routing chose; all others neither decay nor are written (SSE eq. 9–12 and the ICLR update; spec §4.3, §10).
#pragma once

#include <vector>

#include "kernels/ops/decayed_outer_product.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/gated_delta_rule.h"
#include "kernels/ops/projection.h"
#include "kernels/ops/routing.h"

namespace statescope {

class Backend;
class Workspace;

/// Where the gate e multiplies the sparse q and k when the memory is the delta rule (spec §4.3, [A7]).
enum class GatePlace { before_l2, after_l2 };

/// Row axis 1 of q, k, log_decay and beta: 0 = shared state, 1 = sparse partitions. A token writes to its first `writers` choices and reads
/// from its first `readers`. All float32; `selected` i32.
struct SparseState {
  ConstTensor q, k;       // [T, 2, H, K]; for the delta rule before their L2 norm
  ConstTensor v;          // [T, H, V]
  ConstTensor log_decay;  // decayed outer product: [T, 2, H, K]; delta rule: [T, 2, H]
  ConstTensor beta;       // [T, 2, H]: present = gated delta rule, absent = decayed outer product
  ConstTensor gate;       // [T, N]: e, over all partitions
  ConstTensor selected;   // [T, max(writers, readers)]: chosen partitions, largest e first
  std::int64_t writers = 1, readers = 1;
  bool gate_q = true, gate_k = true;  // emulq, emulk: false leaves e out of the read, of the write
  GatePlace gate_place = GatePlace::before_l2;
  float write_scale = 1;                     // multiplies the sparse k (SSE v1: 1/W)
  float scale = 1;                           // multiplies o
  std::span<const std::int32_t> cu_seqlens;  // [S + 1]
  ConstTensor initial_state;                 // [S · (1 + N), H, K, V]: of each sequence the shared state first
  Tensor final_state;                        // the same; may be the same memory
  Tensor o;                                  // [T, H, V]: the sum over the shared and the selected partitions
};

/// How q or k of a sparse state is computed from products: pair[:, 0] = f(shared), pair[:, 1] = f(sparse + more), f an activation, or a
/// softmax over the K channels of a head (spec §4.3).
struct SparsePair {
  Tensor pair;                       // [T, 2, H, K]
  ConstTensor shared, sparse, more;  // [T, H · K]
  Activation act = Activation::identity;
  bool softmax = false;  // instead of act
};
/// Operands of a sparse state that are not computed yet: both pairs, gate = softmax(logits), in `selected` the largest of it, or of the
/// logits, and perhaps the decays.
struct SparseSources {
  SparsePair q, k;
  ConstTensor logits;     // [T, N] float32
  Tensor gate, selected;  // as in SparseState; `selected` absent: it is there
  bool by_logits = false;
  std::vector<Projection> decays;  // none: they are there; or a ForgetGate for each of log_decay[:, 0] and log_decay[:, 1]
};

/// Throws std::invalid_argument if shapes do not fit, or q, k, v and o are not of the type `operands`.
void check_sparse_state(const SparseState& op, DType operands = DType::f32);

/// The default form: order, gather, one memory over all segments, scatter-add. `chunk_size` 0 takes the step form.
void sparse_state(const SparseState& op, std::int64_t chunk_size, Backend& backend, Workspace& workspace);

}  // namespace statescope
