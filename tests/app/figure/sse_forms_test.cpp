// The forms of SSE that are measured beside the product's own compute the same.
#include "app/bench/sse_forms.h"

#include <cmath>
#include <stdexcept>

#include "kernels/backend.h"
#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::sse_forms_test {
namespace {

using namespace testing;

struct Operands {
  std::int64_t H = 2, K = 5, V = 4, N = 4, writers = 2;
  std::vector<std::int32_t> cu_seqlens{0, 1, 1, 70};  // one of them empty
  Numbers q, k, v, log_decay, gate, initial;
  std::vector<std::int32_t> selected;

  Operands() {
    Random random(7);
    const std::int64_t T = cu_seqlens.back();
    q = random.uniform({T, 2, H, K});
    k = random.uniform({T, 2, H, K});
    v = random.uniform({T, H, V});
    log_decay = random.uniform({T, 2, H, K}, -0.5, 0);
    gate = random.uniform({T, N}, 0, 1);
    initial = random.uniform({3 * (1 + N), H, K, V});
    selected.resize(static_cast<std::size_t>(T * writers));
    top_k(Tensor(selected.data(), DType::i32, {T, writers}), gate.view());
  }
  SparseState op(Numbers& o, Numbers& state) const {
    SparseState op{.q = q.view(), .k = k.view(), .v = v.view(), .log_decay = log_decay.view(), .gate = gate.view()};
    op.selected = ConstTensor(selected.data(), DType::i32, {v.shape[0], writers});
    op.writers = op.readers = writers;
    op.scale = 0.5F;
    op.cu_seqlens = cu_seqlens;
    op.initial_state = initial.view();
    op.final_state = state.view();
    op.o = o.view();
    return op;
  }
};

double largest_difference(const Numbers& a, const Numbers& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double difference = std::abs(a.values[i] - b.values[i]);
    most = difference <= most ? most : difference;  // NaN counts
  }
  return most;
}

}  // namespace

TEST_CASE("sequential and masking forms of SSE give the outputs and states of the varlen form", "[sse]") {
  const auto backend = make_cpu_backend(2);
  Workspace workspace(*backend);
  const Operands operands;
  Numbers o = poisoned(operands.v.shape), state = poisoned(operands.initial.shape);
  backend->sparse_state(operands.op(o, state), 16, workspace);
  for (const auto form : {&sse_sequential, &sse_masking}) {
    INFO((form == &sse_masking ? "masking" : "sequential"));
    Numbers other_o = poisoned(operands.v.shape), other_state = poisoned(operands.initial.shape);
    form(operands.op(other_o, other_state), 16, *backend, workspace);
    CHECK(largest_difference(other_o, o) < 1e-5);
    CHECK(largest_difference(other_state, state) < 1e-5);
  }
}

TEST_CASE("the plain forms of SSE refuse what they do not compute", "[sse]") {
  const auto backend = make_cpu_backend(1);
  Workspace workspace(*backend);
  const Operands operands;
  Numbers o(operands.v.shape), state(operands.initial.shape);
  SparseState op = operands.op(o, state);
  op.gate_k = false;
  CHECK_THROWS_AS(sse_sequential(op, 16, *backend, workspace), std::invalid_argument);
  CHECK_THROWS_AS(sse_masking(op, 16, *backend, workspace), std::invalid_argument);
}

}  // namespace statescope::sse_forms_test
