#include "kernels/ops/log_linear_attention.h"

#include <cmath>

#include "kernels/ops/decayed_outer_product.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::log_linear_attention_test {
using namespace statescope::testing;

namespace {

struct Problem {
  std::int64_t T, levels, H, shared, K, V;  // `shared`: heads of q and k
  Numbers q, k, v, log_decay, scale;

  Problem(std::int64_t T_, std::int64_t levels_, std::int64_t H_, std::int64_t shared_, std::int64_t K_, std::int64_t V_)
      : T(T_), levels(levels_), H(H_), shared(shared_), K(K_), V(V_) {
    Random random(1);
    q = random.uniform({T, shared, K});
    k = random.uniform({T, shared, K});
    v = random.uniform({T, H, V});
    log_decay = random.uniform({T, H}, -0.2F, 0);
    scale = random.uniform({T, H, levels}, 0.2F, 1);
  }
  /// Tokens [begin, begin + count), from `state` to itself.
  LogLinearAttention op(Numbers& state, Numbers& o, std::int64_t begin, std::int64_t count) const {
    return {.q = q.view().slice(begin, count),
            .k = k.view().slice(begin, count),
            .v = v.view().slice(begin, count),
            .log_decay = log_decay.view().slice(begin, count),
            .level_scale = scale.view().slice(begin, count),
            .position = begin,
            .initial_state = state.view(),
            .final_state = state.view(),
            .o = o.view().slice(begin, count)};
  }
  Numbers zeros() const { return Numbers({levels, H, K, V}); }
};

/// The tokens of a level as the definition lists them.
std::pair<std::int64_t, std::int64_t> tokens_of(std::int64_t level, std::int64_t t) {
  if (level == 0) return {t, t + 1};
  const std::int64_t size = std::int64_t{1} << (level - 1), end = t - t % size;
  return (t >> (level - 1) & 1) != 0 ? std::pair{end - size, end} : std::pair{end, end};
}

/// Each level summed anew, in double precision.
Result<double> truth(const Problem& p) {
  Result<double> result{std::vector<double>(static_cast<std::size_t>(p.T * p.H * p.V)),
                        std::vector<double>(static_cast<std::size_t>(p.levels * p.H * p.K * p.V))};
  for (std::int64_t t = 0; t < p.T; ++t) {
    std::fill(result.state.begin(), result.state.end(), 0.0);
    for (std::int64_t i = 0; i < p.levels * p.H; ++i) {
      const std::int64_t level = i / p.H, h = i % p.H, group = producer_head(h, p.shared, p.H) * p.K;
      const auto [from, to] = tokens_of(level, t);
      for (std::int64_t s = from; s < to; ++s) {
        double decay = 0;
        for (std::int64_t j = s + 1; j <= t; ++j) decay += p.log_decay.row(j)[h];
        for (std::int64_t cell = 0; cell < p.K * p.V; ++cell) {
          const double written = std::exp(decay) * p.k.row(s)[group + cell / p.V] * p.v.row(s)[h * p.V + cell % p.V];
          result.state[static_cast<std::size_t>(i * p.K * p.V + cell)] += written;
          result.o[static_cast<std::size_t>((t * p.H + h) * p.V + cell % p.V)] +=
              double{p.scale.row(t)[h * p.levels + level]} * p.q.row(t)[group + cell / p.V] * written;
        }
      }
    }
  }
  return result;
}

Result<float> run(const Problem& p, const std::vector<std::int64_t>& lengths) {
  Numbers o = poisoned({p.T, p.H, p.V}), state = p.zeros();
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    log_linear_attention(p.op(state, o, begin, length));
    begin += length;
  }
  REQUIRE(begin == p.T);
  return {o.values, state.values};
}

}  // namespace

TEST_CASE("log-linear attention: every level is the sum of its tokens, over awkward sizes and heads", "[memory]") {
  for (const auto& [T, levels, H, shared, K, V] : {std::array<std::int64_t, 6>{1, 1, 1, 1, 4, 5},
                                                   {2, 2, 1, 1, 1, 1},
                                                   {63, 15, 2, 1, 5, 7},
                                                   {64, 7, 4, 2, 8, 3},
                                                   {100, 8, 1, 1, 3, 40}}) {
    CAPTURE(T, levels, H, shared, K, V);
    const Problem p(T, levels, H, shared, K, V);
    check_close(run(p, {T}), truth(p));
  }
}

TEST_CASE("log-linear attention: a span in several calls equals one call, wherever it is cut", "[memory]") {
  const Problem p(70, 8, 2, 1, 6, 9);
  const Result<float> whole = run(p, {70});
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{1, 69}, {31, 1, 1, 31, 6}, {64, 6}, std::vector<std::int64_t>(70, 1)}) {
    const Result<float> parts = run(p, lengths);
    CHECK(same_bits(whole.o, parts.o));
    CHECK(same_bits(whole.state, parts.state));
  }
}

TEST_CASE("log-linear attention: with all λ = 1 it is the decayed outer product", "[memory]") {
  Problem p(50, 7, 2, 2, 8, 12);
  std::fill(p.scale.values.begin(), p.scale.values.end(), 1.0F);
  Numbers o({50, 2, 12}), state({1, 2, 8, 12});
  const Packed segments(50);
  decayed_outer_product_chunk({.q = p.q.view(),
                               .k = p.k.view(),
                               .v = p.v.view(),
                               .log_decay = p.log_decay.view(),
                               .segments = segments.view(),
                               .initial_state = state.view(),
                               .final_state = state.view(),
                               .o = o.view()},
                              16);
  CHECK(relative_error(run(p, {50}).o, o.values) < 1e-5);
}

TEST_CASE("log-linear attention: complaints name the operand", "[memory]") {
  const Problem p(4, 3, 2, 1, 8, 6);
  Numbers o({4, 2, 6}), state = p.zeros();
  const auto complaint = [&](const auto& change) {
    LogLinearAttention op = p.op(state, o, 0, 4);
    change(op);
    return complaint_of([&] { log_linear_attention(op); });
  };
  CHECK(complaint([](LogLinearAttention&) {}).empty());
  CHECK(complaint([](LogLinearAttention& op) { op.k = op.k.slice(0, 3); }).find("log_linear_attention: k") == 0);
  CHECK(complaint([](LogLinearAttention& op) { op.level_scale = {}; }).find("log_linear_attention: level_scale") == 0);
  CHECK(complaint([](LogLinearAttention& op) { op.position = 1; }).find("log_linear_attention: position") == 0);
}

}  // namespace statescope::log_linear_attention_test
