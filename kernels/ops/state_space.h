// A state space whose rule is the same for every token: the memory of S4 and S4D.
//
//   diagonal, complex:  X_t = A ⊙ X_{t-1} + B u_t,   o_t = 2 Re Σ_n C_n X_{t,n}        (conjugate pairs implied: S4D; spec §17.17)
//   dense, real:        X_t = A X_{t-1} + B u_t,     o_t = C X_t                        (S4)
//
// in every channel for itself; A and B are discretised already.
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

/// Rows of one sequence. P is 2 (real and imaginary part) for the diagonal form, 1 for the dense one. All float32.
struct StateSpace {
  ConstTensor u;              // [rows, channels]
  ConstTensor A;              // [2, N, channels]; dense [N, N, channels], A[n, m] from state m to state n
  ConstTensor B, C;           // [P, N, channels]
  ConstTensor initial_state;  // [P, 1, N, channels]
  Tensor final_state;         // [P, 1, N, channels]; may be the same memory as initial_state
  Tensor o;                   // [rows, channels]
};

/// Throws std::invalid_argument if shapes do not fit.
void check_state_space(const StateSpace& op);

/// Throws std::invalid_argument if shapes do not fit.
void state_space(const StateSpace& op);

}  // namespace statescope
