#include "kernels/ops/state_space.h"

#include <cmath>
#include <complex>

#include "tests/kernels/memory_cases.h"

namespace statescope::state_space_test {
using namespace statescope::testing;

namespace {

struct Problem {
  std::int64_t T, parts, N, D;
  Numbers u, A, B, C, initial;

  Problem(std::int64_t T_, bool diagonal, std::int64_t N_, std::int64_t D_) : T(T_), parts(diagonal ? 2 : 1), N(N_), D(D_) {
    Random random(1);
    const float most = diagonal ? 0.7F : 0.9F / static_cast<float>(N);
    u = random.uniform({T, D});
    A = random.uniform({diagonal ? 2 : N, N, D}, -most, most);
    B = random.uniform({parts, N, D});
    C = random.uniform({parts, N, D});
    initial = random.uniform({parts, 1, N, D});
  }
  StateSpace op(Numbers& state, Numbers& o, std::int64_t begin, std::int64_t count) const {
    return {.u = u.view().slice(begin, count),
            .A = A.view(),
            .B = B.view(),
            .C = C.view(),
            .initial_state = state.view(),
            .final_state = state.view(),
            .o = o.view().slice(begin, count)};
  }
};

/// Channel by channel, in double precision; a dense real one is a complex one without imaginary parts.
Result<double> truth(const Problem& p) {
  using Complex = std::complex<double>;
  Result<double> result{std::vector<double>(static_cast<std::size_t>(p.T * p.D)),
                        std::vector<double>(static_cast<std::size_t>(p.parts * p.N * p.D))};
  for (std::int64_t c = 0; c < p.D; ++c) {
    const auto of = [&](const Numbers& x, std::int64_t n) {
      const auto at = [&](std::int64_t part) { return double{x.values[static_cast<std::size_t>((part * p.N + n) * p.D + c)]}; };
      return Complex(at(0), p.parts == 2 ? at(1) : 0);
    };
    std::vector<Complex> X;
    for (std::int64_t n = 0; n < p.N; ++n) X.push_back(of(p.initial, n));
    for (std::int64_t t = 0; t < p.T; ++t) {
      const std::vector<Complex> before = X;
      Complex o = 0;
      for (std::int64_t n = 0; n < p.N; ++n) {
        Complex& x = X[static_cast<std::size_t>(n)];
        x = of(p.B, n) * double{p.u.row(t)[c]};
        if (p.parts == 2) x += of(p.A, n) * before[static_cast<std::size_t>(n)];
        for (std::int64_t m = 0; p.parts == 1 && m < p.N; ++m)
          x += double{p.A.values[static_cast<std::size_t>((n * p.N + m) * p.D + c)]} * before[static_cast<std::size_t>(m)];
        o += of(p.C, n) * x;
      }
      result.o[static_cast<std::size_t>(t * p.D + c)] = p.parts == 2 ? 2 * o.real() : o.real();
    }
    for (std::int64_t n = 0; n < p.N; ++n) {
      result.state[static_cast<std::size_t>(n * p.D + c)] = X[static_cast<std::size_t>(n)].real();
      if (p.parts == 2) result.state[static_cast<std::size_t>((p.N + n) * p.D + c)] = X[static_cast<std::size_t>(n)].imag();
    }
  }
  return result;
}

Result<float> run(const Problem& p, const std::vector<std::int64_t>& lengths) {
  Numbers o = poisoned({p.T, p.D}), state = p.initial;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    state_space(p.op(state, o, begin, length));
    begin += length;
  }
  REQUIRE(begin == p.T);
  return {o.values, state.values};
}

}  // namespace

TEST_CASE("state space: the recurrence, diagonal and dense, over awkward sizes", "[memory]") {
  for (const bool diagonal : {true, false}) {
    for (const auto& [T, N, D] : {std::array<std::int64_t, 3>{1, 1, 1}, {63, 5, 70}, {40, 16, 33}, {9, 2, 200}}) {
      CAPTURE(diagonal, T, N, D);
      const Problem p(T, diagonal, N, D);
      check_close(run(p, {T}), truth(p));
    }
  }
}

TEST_CASE("state space: a span in several calls equals one call", "[memory]") {
  for (const bool diagonal : {true, false}) {
    const Problem p(50, diagonal, 6, 70);
    const Result<float> whole = run(p, {50}), parts = run(p, {1, 17, 32});
    CHECK(same_bits(whole.o, parts.o));
    CHECK(same_bits(whole.state, parts.state));
  }
}

TEST_CASE("state space: complaints name the operand", "[memory]") {
  const Problem p(4, true, 3, 6);
  Numbers o({4, 6}), state = p.initial;
  const auto complaint = [&](const auto& change) {
    StateSpace op = p.op(state, o, 0, 4);
    change(op);
    return complaint_of([&] { state_space(op); });
  };
  CHECK(complaint([](StateSpace&) {}).empty());
  CHECK(complaint([](StateSpace& op) { op.u = op.u.slice(0, 3); }).find("state_space: u") == 0);
  CHECK(complaint([](StateSpace& op) { op.A = op.A.slice(0, 1); }).find("state_space: A") == 0);
  CHECK(complaint([](StateSpace& op) { op.C = {}; }).find("state_space: C") == 0);
}

}  // namespace statescope::state_space_test
