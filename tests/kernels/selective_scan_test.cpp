#include "kernels/ops/selective_scan.h"

#include <cmath>

#include "kernels/ops/decayed_outer_product.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::selective_scan_test {
using namespace statescope::testing;

namespace {

struct Problem {
  Packed segments;
  std::int64_t H, shared, N, P;  // `shared`: heads of B and C
  float decay_factor = 1;
  Numbers x, dt, A, B, C, initial;

  Problem(Packed segments_, std::int64_t H_, std::int64_t shared_, std::int64_t N_, std::int64_t P_, float strongest = 2)
      : segments(std::move(segments_)), H(H_), shared(shared_), N(N_), P(P_) {
    Random random(1);
    const std::int64_t rows = segments.rows();
    x = random.uniform({rows, H, P});
    dt = random.uniform({rows, H, P}, 0, strongest);
    A = random.uniform({H, N, P}, -2, 0);
    B = random.uniform({rows, shared, N});
    C = random.uniform({rows, shared, N});
    initial = random.uniform({segments.slots, H, N, P});
  }

  SelectiveScan op(Numbers& final_state, Numbers& o) const {
    return {.x = x.view(),
            .dt = dt.view(),
            .A = A.view(),
            .B = B.view(),
            .C = C.view(),
            .decay_factor = decay_factor,
            .segments = segments.view(),
            .initial_state = initial.view(),
            .final_state = final_state.view(),
            .o = o.view()};
  }
  static void apply(const SelectiveScan& op, std::int64_t) { selective_scan(op); }
  static SelectiveScan part(SelectiveScan op, std::int64_t begin, std::int64_t count) {
    for (ConstTensor* rows : {&op.x, &op.dt, &op.B, &op.C}) *rows = rows->slice(begin, count);
    op.o = op.o.slice(begin, count);
    return op;
  }
};

/// The recurrence, as it stands, in double precision. Slots of no segment keep the initial state.
Result<double> truth(const Problem& p) {
  Result<double> result{std::vector<double>(static_cast<std::size_t>(p.segments.rows() * p.H * p.P)),
                        {p.initial.values.begin(), p.initial.values.end()}};
  for (std::int64_t s = 0; s < p.segments.view().count(); ++s) {
    const auto index = static_cast<std::size_t>(s);
    for (std::int64_t t = p.segments.cu_seqlens[index]; t < p.segments.cu_seqlens[index + 1]; ++t) {
      for (std::int64_t i = 0; i < p.H * p.N * p.P; ++i) {
        const std::int64_t h = i / (p.N * p.P), n = i / p.P % p.N, c = h * p.P + i % p.P,
                           shared = producer_head(h, p.shared, p.H) * p.N + n;
        double& S = result.state[static_cast<std::size_t>(p.segments.view().slot_of(s) * p.H * p.N * p.P + i)];
        const double dt = p.dt.row(t)[c];
        S = std::exp(double{p.decay_factor} * dt * p.A[i]) * S + double{p.B.row(t)[shared]} * dt * p.x.row(t)[c];
        result.o[static_cast<std::size_t>(t * p.H * p.P + c)] += double{p.C.row(t)[shared]} * S;
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("selective scan: the recurrence, over awkward sizes, heads and segments", "[memory]") {
  const Packed mixed({5, 0, 1, 70, 17}, {6, 2, 0, 3, 5}, 7);
  for (const Packed& segments : {Packed(1), Packed(63), Packed(130), mixed}) {
    for (const auto& [H, shared, N, P] :
         {std::array<std::int64_t, 4>{1, 1, 16, 64}, {1, 1, 8, 131}, {1, 1, 5, 1}, {4, 2, 3, 20}, {2, 2, 16, 97}}) {
      CAPTURE(segments.rows(), H, shared, N, P);
      const Problem p(segments, H, shared, N, P);
      const Result<double> expected = truth(p);
      check_close(run(p, 0), expected);
      check_close(run_in_place(p, 0), expected);
    }
  }
}

TEST_CASE("selective scan: the decay's factor leaves what is written alone", "[memory]") {
  for (const float factor : {0.0F, 0.5F, 3.0F}) {
    Problem p(Packed(40), 1, 1, 8, 20);
    p.decay_factor = factor;
    check_close(run(p, 0), truth(p));
  }
}

TEST_CASE("selective scan: where the cells of a head decay alike it is the decayed outer product of C, B and Δ x", "[memory]") {
  Problem p(Packed(63), 2, 2, 8, 12);
  Numbers v = p.x, log_decay(Shape{63, 2});
  for (std::int64_t t = 0; t < 63; ++t) {
    for (std::int64_t i = 0; i < 2 * 12; ++i) {
      const std::int64_t h = i / 12;
      const float a = h == 0 ? -0.3F : -1.5F, dt = p.dt.row(t)[h * 12];
      p.dt.row(t)[i] = dt;
      v.row(t)[i] = dt * p.x.row(t)[i];
      log_decay.row(t)[h] = a * dt;
    }
  }
  for (std::int64_t i = 0; i < 2 * 8 * 12; ++i) p.A.values[static_cast<std::size_t>(i)] = i < 8 * 12 ? -0.3F : -1.5F;
  const Result<float> scanned = run(p, 0);
  Numbers o(Shape{63, 2, 12}), state = p.initial;
  decayed_outer_product_chunk({.q = p.C.view(),
                               .k = p.B.view(),
                               .v = v.view(),
                               .log_decay = log_decay.view(),
                               .segments = p.segments.view(),
                               .initial_state = p.initial.view(),
                               .final_state = state.view(),
                               .o = o.view()},
                              16);
  check_close(scanned, Result<double>{{o.values.begin(), o.values.end()}, {state.values.begin(), state.values.end()}});
}

TEST_CASE("selective scan: a span in several calls equals one call", "[memory]") {
  const Problem p(Packed(100), 1, 1, 16, 70);
  const Result<float> whole = run(p, 0), parts = run_in_parts(p, {1, 36, 63}, 0);
  CHECK(same_bits(whole.o, parts.o));
  CHECK(same_bits(whole.state, parts.state));
}

TEST_CASE("selective scan: a decay that underflows forgets, and Δ = 0 leaves the state's bits alone", "[memory]") {
  Problem p(Packed(2), 1, 1, 2, 3);
  for (float& dt : p.dt.values) dt = 0;
  const Result<float> kept = run(p, 0);
  CHECK(same_bits(kept.state, p.initial.values));
  for (float& a : p.A.values) a = -1e6F;
  for (float& dt : p.dt.values) dt = 1;
  const Result<float> forgotten = run(p, 0);
  for (std::int64_t i = 0; i < 6; ++i) CHECK(forgotten.state[static_cast<std::size_t>(i)] == p.B.row(1)[i / 3] * p.x.row(1)[i % 3]);
}

TEST_CASE("selective scan: a number that is none stays one", "[memory]") {
  Problem p(Packed(5), 1, 1, 4, 21);
  p.A.values[7] = std::nanf("");
  CHECK(std::isnan(run(p, 1).state[7]));
}

TEST_CASE("selective scan: complaints name the operand", "[memory]") {
  const Problem p(Packed(4), 2, 1, 8, 6);
  Numbers o({4, 2, 6}), state = p.initial;
  const auto complaint = [&](const auto& change) {
    SelectiveScan op = p.op(state, o);
    change(op);
    return complaint_of([&] { selective_scan(op); });
  };
  CHECK(complaint([](SelectiveScan&) {}).empty());
  CHECK(complaint([](SelectiveScan& op) { op.B = op.B.slice(0, 3); }).find("selective_scan: B") == 0);
  CHECK(complaint([](SelectiveScan& op) { op.A = op.A.slice(0, 1); }).find("selective_scan: A") == 0);
  CHECK(complaint([](SelectiveScan& op) { op.dt = {}; }).find("selective_scan: dt") == 0);
}

}  // namespace statescope::selective_scan_test
