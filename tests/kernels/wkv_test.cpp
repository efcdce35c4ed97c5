#include "kernels/ops/wkv.h"

#include <cmath>

#include "kernels/ops/decayed_outer_product.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::wkv_test {
using namespace statescope::testing;

namespace {

struct Problem {
  Packed segments;
  std::int64_t H, shared, K, V;  // `shared`: heads of what is not v
  bool erases, reads_first;
  Numbers q, k, v, log_decay, erase_key, erase_along, initial;

  Problem(Packed segments_, std::int64_t H_, std::int64_t shared_, std::int64_t K_, std::int64_t V_, bool erases_, bool reads_first_)
      : segments(std::move(segments_)), H(H_), shared(shared_), K(K_), V(V_), erases(erases_), reads_first(reads_first_) {
    Random random(1);
    const Shape keys{segments.rows(), shared, K};
    q = random.uniform(keys);
    k = random.uniform(keys);
    v = random.uniform({segments.rows(), H, V});
    log_decay = random.uniform(keys, -1.5F, 0);
    erase_key = random.uniform(keys, -0.3F, 0.3F);
    erase_along = random.uniform(keys, -0.3F, 0.3F);
    initial = random.uniform({segments.slots, H, K, V});
  }

  Wkv op(Numbers& final_state, Numbers& o) const {
    return {.q = q.view(),
            .k = k.view(),
            .v = v.view(),
            .log_decay = log_decay.view(),
            .erase_key = erases ? ConstTensor(erase_key.view()) : ConstTensor(),
            .erase_along = erases ? ConstTensor(erase_along.view()) : ConstTensor(),
            .reads_first = reads_first,
            .scale = 0.7F,
            .segments = segments.view(),
            .initial_state = initial.view(),
            .final_state = final_state.view(),
            .o = o.view()};
  }
  static void apply(const Wkv& op, std::int64_t) { wkv(op); }
  static Wkv part(Wkv op, std::int64_t begin, std::int64_t count) {
    for (ConstTensor* rows : {&op.q, &op.k, &op.v, &op.log_decay, &op.erase_key, &op.erase_along})
      if (*rows) *rows = rows->slice(begin, count);
    op.o = op.o.slice(begin, count);
    return op;
  }
};

/// The recurrence, as it stands, in double precision. Slots of no segment keep the initial state.
Result<double> truth(const Problem& p) {
  Result<double> result{std::vector<double>(static_cast<std::size_t>(p.segments.rows() * p.H * p.V)),
                        {p.initial.values.begin(), p.initial.values.end()}};
  for (std::int64_t s = 0; s < p.segments.view().count(); ++s) {
    const auto index = static_cast<std::size_t>(s);
    for (std::int64_t t = p.segments.cu_seqlens[index]; t < p.segments.cu_seqlens[index + 1]; ++t) {
      for (std::int64_t i = 0; i < p.H * p.V; ++i) {
        const std::int64_t h = i / p.V, shared = producer_head(h, p.shared, p.H) * p.K;
        const auto cell = [&](std::int64_t r) -> double& {
          return result.state[static_cast<std::size_t>(((p.segments.view().slot_of(s) * p.H + h) * p.K + r) * p.V + i % p.V)];
        };
        const auto reading = [&](const Numbers& key) {
          double sum = 0;
          for (std::int64_t r = 0; r < p.K; ++r) sum += double{key.row(t)[shared + r]} * cell(r);
          return sum;
        };
        const double before = reading(p.q), erased = p.erases ? reading(p.erase_key) : 0;
        for (std::int64_t r = 0; r < p.K; ++r) {
          const auto of = [&](const Numbers& key) { return double{key.row(t)[shared + r]}; };
          cell(r) = std::exp(of(p.log_decay)) * cell(r) - of(p.erase_along) * erased + of(p.k) * p.v.row(t)[i];
        }
        result.o[static_cast<std::size_t>(t * p.H * p.V + i)] = double{0.7F} * (p.reads_first ? before : reading(p.q));
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("WKV: the recurrence, over awkward sizes, heads and segments", "[memory]") {
  const Packed mixed({5, 0, 1, 70, 17}, {6, 2, 0, 3, 5}, 7);
  for (const Packed& segments : {Packed(1), Packed(63), mixed}) {
    for (const auto& [H, shared, K, V] : {std::array<std::int64_t, 4>{1, 1, 16, 64}, {1, 1, 5, 131}, {1, 1, 1, 1}, {4, 2, 20, 33}}) {
      for (const bool erases : {false, true}) {
        for (const bool reads_first : {false, true}) {
          CAPTURE(segments.rows(), H, shared, K, V, erases, reads_first);
          const Problem p(segments, H, shared, K, V, erases, reads_first);
          const Result<double> expected = truth(p);
          check_close(run(p, 0), expected);
          check_close(run_in_place(p, 0), expected);
        }
      }
    }
  }
}

TEST_CASE("WKV: that takes nothing away, and is read last, is the decayed outer product", "[memory]") {
  const Problem p(Packed(63), 2, 2, 8, 12, false, false);
  Numbers o(Shape{63, 2, 12}), state = p.initial;
  decayed_outer_product_chunk({.q = p.q.view(),
                               .k = p.k.view(),
                               .v = p.v.view(),
                               .log_decay = p.log_decay.view(),
                               .scale = 0.7F,
                               .segments = p.segments.view(),
                               .initial_state = p.initial.view(),
                               .final_state = state.view(),
                               .o = o.view()},
                              16);
  check_close(run(p, 0), Result<double>{{o.values.begin(), o.values.end()}, {state.values.begin(), state.values.end()}});
}

TEST_CASE("WKV: a span in several calls equals one call", "[memory]") {
  for (const bool reads_first : {false, true}) {
    const Problem p(Packed(100), 2, 1, 16, 70, true, reads_first);
    const Result<float> whole = run(p, 0), parts = run_in_parts(p, {1, 36, 63}, 0);
    CHECK(same_bits(whole.o, parts.o));
    CHECK(same_bits(whole.state, parts.state));
  }
}

TEST_CASE("WKV: complaints name the operand", "[memory]") {
  const Problem p(Packed(4), 2, 1, 8, 6, true, false);
  Numbers o({4, 2, 6}), state = p.initial;
  const auto complaint = [&](const auto& change) {
    Wkv op = p.op(state, o);
    change(op);
    return complaint_of([&] { wkv(op); });
  };
  CHECK(complaint([](Wkv&) {}).empty());
  CHECK(complaint([](Wkv& op) { op.k = op.k.slice(0, 3); }).find("wkv: k") == 0);
  CHECK(complaint([](Wkv& op) { op.log_decay = {}; }).find("wkv: log_decay") == 0);
  CHECK(complaint([](Wkv& op) { op.erase_along = {}; }).find("wkv: erase_along") == 0);
  CHECK(complaint([](Wkv& op) { op.erase_key = op.erase_key.slice(0, 3); }).find("wkv: erase_key") == 0);
}

}  // namespace statescope::wkv_test
