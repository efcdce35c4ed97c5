#include "kernels/ops/sparse_state.h"

#include <algorithm>
#include <limits>

#include "kernels/backend.h"
#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::sparse_state_test {
using namespace statescope::testing;

namespace {

using Row = std::vector<double>;

/// The operands of one call, with what it reads and writes.
struct Case {
  std::int64_t H = 2, K = 5, V = 4, N = 4, writers = 2, readers = 2;
  std::vector<std::int32_t> cu_seqlens;
  bool delta_rule = false, gate_q = true, gate_k = true;
  GatePlace place = GatePlace::before_l2;
  float write_scale = 1, scale = 0.5F;
  Numbers q, k, v, log_decay, beta, gate, initial;
  std::vector<std::int32_t> selected;

  Case(std::vector<std::int32_t> cu, bool delta, std::uint64_t seed = 1, std::int64_t N_ = 4, std::int64_t W_w = 2, std::int64_t W_r = 2)
      : N(N_), writers(W_w), readers(W_r), cu_seqlens(std::move(cu)), delta_rule(delta) {
    Random random(seed);
    const std::int64_t T = cu_seqlens.back(), S = static_cast<std::int64_t>(cu_seqlens.size()) - 1;
    q = random.uniform({T, 2, H, K});
    k = random.uniform({T, 2, H, K});
    v = random.uniform({T, H, V});
    log_decay = delta ? random.uniform({T, 2, H}, -0.5, 0) : random.uniform({T, 2, H, K}, -0.5, 0);
    beta = random.uniform({T, 2, H}, 0, 1);
    gate = random.uniform({T, N}, -1, 1);
    softmax(gate.view(), gate.view());
    initial = random.uniform({S * (1 + N), H, K, V});
    select();
  }
  std::int64_t tokens() const { return v.shape[0]; }
  std::int64_t choices() const { return std::max(writers, readers); }
  std::int32_t choice(std::int64_t t, std::int64_t w) const { return selected[static_cast<std::size_t>(t * choices() + w)]; }
  void select() {
    selected.resize(static_cast<std::size_t>(tokens() * choices()));
    top_k(Tensor(selected.data(), DType::i32, {tokens(), choices()}), gate.view());
  }
  SparseState op(Numbers& o, Numbers& final_state) const {
    SparseState op;
    op.q = q.view(), op.k = k.view(), op.v = v.view(), op.log_decay = log_decay.view(), op.gate = gate.view();
    if (delta_rule) op.beta = beta.view();
    op.selected = ConstTensor(selected.data(), DType::i32, {tokens(), choices()});
    op.writers = writers, op.readers = readers, op.gate_q = gate_q, op.gate_k = gate_k, op.gate_place = place;
    op.write_scale = write_scale, op.scale = scale, op.cu_seqlens = cu_seqlens;
    op.initial_state = initial.view(), op.final_state = final_state.view(), op.o = o.view();
    return op;
  }
};

struct Outcome {
  Numbers o, state;
};

Outcome run(const Case& c, std::int64_t chunk_size = 16) {
  static const auto backend = make_cpu_backend(2);
  static Workspace workspace(*backend);
  Outcome outcome{poisoned(c.v.shape), poisoned(c.initial.shape)};
  backend->sparse_state(c.op(outcome.o, outcome.state), chunk_size, workspace);
  return outcome;
}

/// What one token does to one state of one head.
struct Visit {
  Row q, k, v, decay;  // decay: α of each row
  double beta = 1;
  bool delta_rule = false;
};

/// The recurrence (spec §3.4, §3.6) on `state` [K, V]; adds what is read to o.
void visit(const Visit& token, double* state, double scale, double* o) {
  const std::size_t K = token.k.size(), V = token.v.size();
  for (std::size_t r = 0; r < K; ++r) {
    for (std::size_t c = 0; c < V; ++c) state[r * V + c] *= token.decay[r];
  }
  for (std::size_t c = 0; c < V; ++c) {
    double prediction = 0, read = 0;
    for (std::size_t r = 0; r < K; ++r) prediction += token.k[r] * state[r * V + c];
    const double u = token.delta_rule ? token.beta * (token.v[c] - prediction) : token.v[c];
    for (std::size_t r = 0; r < K; ++r) {
      state[r * V + c] += token.k[r] * u;
      read += token.q[r] * state[r * V + c];
    }
    o[c] += scale * read;
  }
}

/// factor · x, normalised where the memory is the delta rule.
Row gated(const float* x, std::int64_t K, double factor, const Case& c) {
  Row y(x, x + K);
  const auto normalise = [&] {
    double squares = 0;
    for (double value : y) squares += value * value;
    for (double& value : y) value /= std::sqrt(squares + 1e-6);
  };
  if (c.delta_rule && c.place == GatePlace::after_l2) normalise();
  for (double& value : y) value *= factor;
  if (c.delta_rule && c.place == GatePlace::before_l2) normalise();
  return y;
}

Visit visit_of(const Case& c, std::int64_t t, std::int64_t h, bool sparse, double read, double write, bool writes) {
  const std::int64_t at = ((t * 2 + sparse) * c.H + h);
  Visit token{gated(&c.q.values[static_cast<std::size_t>(at * c.K)], c.K, read, c),
              gated(&c.k.values[static_cast<std::size_t>(at * c.K)], c.K, write, c),
              Row(c.v.row(t) + h * c.V, c.v.row(t) + (h + 1) * c.V),
              {},
              writes ? static_cast<double>(c.beta[at]) : 0,
              c.delta_rule};
  for (std::int64_t r = 0; r < c.K; ++r) {
    token.decay.push_back(writes ? std::exp(static_cast<double>(c.delta_rule ? c.log_decay[at] : c.log_decay[at * c.K + r])) : 1);
  }
  return token;
}

/// A dense loop over tokens, heads and partitions in double precision.
struct Truth {
  std::vector<double> o, state;
  explicit Truth(const Case& c) : o(c.v.values.size(), 0), state(c.initial.values.begin(), c.initial.values.end()) {
    for (std::size_t a = 0; a + 1 < c.cu_seqlens.size(); ++a) {
      for (std::int64_t t = c.cu_seqlens[a]; t < c.cu_seqlens[a + 1]; ++t) {
        for (std::int64_t h = 0; h < c.H; ++h) token(c, static_cast<std::int64_t>(a), t, h);
      }
    }
  }
  void token(const Case& c, std::int64_t a, std::int64_t t, std::int64_t h) {
    double* o_th = &o[static_cast<std::size_t>((t * c.H + h) * c.V)];
    const auto state_of = [&](std::int64_t slot) {
      return &state[static_cast<std::size_t>(((a * (1 + c.N) + slot) * c.H + h) * c.K * c.V)];
    };
    visit(visit_of(c, t, h, false, 1, 1, true), state_of(0), c.scale, o_th);
    for (std::int64_t w = 0; w < c.choices(); ++w) {
      const std::int32_t n = c.choice(t, w);
      const bool writes = w < c.writers, reads = w < c.readers;
      const double e = c.gate.row(t)[n], write = writes ? c.write_scale * (c.gate_k ? e : 1) : 0, read = reads ? (c.gate_q ? e : 1) : 0;
      visit(visit_of(c, t, h, true, read, write, writes), state_of(1 + n), c.scale, o_th);
    }
  }
};

void check_against_dense_loop(const Case& c, std::int64_t chunk_size = 16) {
  const Truth truth(c);
  const Outcome outcome = run(c, chunk_size);
  CHECK(relative_error(outcome.o.values, truth.o) < 1e-5);
  CHECK(relative_error(outcome.state.values, truth.state) < 1e-5);
}

const float* state_row(const Numbers& states, std::int64_t slot) { return states.row(slot); }

bool same_state(const Numbers& a, const Numbers& b, std::int64_t slot) {
  return std::equal(state_row(a, slot), state_row(a, slot) + a.shape.row_size(), state_row(b, slot));
}

}  // namespace

TEST_CASE("sparse state by hand: one token, one head of one channel") {
  // S⁰ = ½ · 2 + 3 · 5 = 16, o⁰ = 7 · 16; chosen is partition 1 with e = ½: S¹ = 1 · 4 + ½ · 2 · 5 = 9, o¹ = ½ · 10 · 9.
  Case c({0, 1}, false, 1, 2, 1, 1);
  c.H = c.K = c.V = 1;
  c.scale = 1;
  c.q = Numbers({1, 2, 1, 1}, {7, 10}), c.k = Numbers({1, 2, 1, 1}, {3, 2}), c.v = Numbers({1, 1, 1}, {5});
  c.log_decay = Numbers({1, 2, 1, 1}, {std::log(0.5F), 0});
  c.gate = Numbers({1, 2}, {0.25F, 0.5F}), c.initial = Numbers({3, 1, 1, 1}, {2, 100, 4});
  c.select();
  const Outcome outcome = run(c, GENERATE(0, 1, 16));
  CHECK(outcome.state[0] == Approx(16));
  CHECK(outcome.state[1] == 100);
  CHECK(outcome.state[2] == Approx(9));
  CHECK(outcome.o[0] == Approx(112 + 45));
}

TEST_CASE("sparse state agrees with a dense loop over partitions") {
  const bool delta_rule = GENERATE(false, true);
  const std::int64_t T = GENERATE(1, 3, 63);
  // A sequence of T tokens, an empty one, and one of 5.
  Case c({0, static_cast<std::int32_t>(T), static_cast<std::int32_t>(T), static_cast<std::int32_t>(T + 5)}, delta_rule,
         static_cast<std::uint64_t>(T));
  c.place = GENERATE(GatePlace::before_l2, GatePlace::after_l2);
  check_against_dense_loop(c);
}

TEST_CASE("writers and readers may differ in number, gates and write scale be switched") {
  const bool delta_rule = GENERATE(false, true);
  const auto [W_w, W_r] = GENERATE(table<std::int64_t, std::int64_t>({{1, 3}, {3, 1}, {1, 1}, {0, 2}, {2, 0}}));
  Case c({0, 30, 41}, delta_rule, 7, 5, W_w, W_r);
  c.gate_q = GENERATE(false, true);
  c.gate_k = GENERATE(false, true);
  c.write_scale = 0.5F;
  c.place = GatePlace::after_l2;
  check_against_dense_loop(c);
  c.place = GatePlace::before_l2;
  check_against_dense_loop(c, 5);
}

TEST_CASE("a partition that is only read keeps its state, however strongly it would decay") {
  Case c({0, 30, 41}, GENERATE(false, true), 7, 5, 1, 3);
  std::fill(c.log_decay.values.begin(), c.log_decay.values.end(), -std::numeric_limits<float>::infinity());
  check_against_dense_loop(c, GENERATE(5, 16));
}

TEST_CASE("token by token in place equals all at once") {
  const bool delta_rule = GENERATE(false, true);
  const std::int64_t T = 20;
  const Case whole({0, T}, delta_rule, 3);
  const Outcome expected = run(whole);

  const auto backend = make_cpu_backend(1);
  Workspace workspace(*backend);
  Numbers state = whole.initial, o = poisoned(whole.v.shape);
  const std::int32_t one[] = {0, 1};
  SparseState op = whole.op(o, state);
  const SparseState all = op;
  op.cu_seqlens = one;
  op.initial_state = state.view();
  for (std::int64_t t = 0; t < T; ++t) {
    op.q = all.q.slice(t, 1), op.k = all.k.slice(t, 1), op.v = all.v.slice(t, 1), op.log_decay = all.log_decay.slice(t, 1);
    if (delta_rule) op.beta = all.beta.slice(t, 1);
    op.gate = all.gate.slice(t, 1), op.selected = all.selected.slice(t, 1), op.o = all.o.slice(t, 1);
    backend->sparse_state(op, 0, workspace);
  }
  CHECK(relative_error(o.values, expected.o.values) < 1e-5);
  CHECK(relative_error(state.values, expected.state.values) < 1e-5);
}

TEST_CASE("operands and gates may be columns of wider matrices") {
  const Case c({0, 11}, false, 4);
  const Outcome expected = run(c);
  const auto widened = [](const Numbers& x) {
    Numbers wide = poisoned({x.shape[0], x.shape.row_size() + 5});
    copy(wide.view().columns(2, {x.shape.row_size()}), x.view());
    return wide;
  };
  const Numbers q = widened(c.q), v = widened(c.v), gate = widened(c.gate);
  Numbers o = widened(c.v), state = c.initial;
  std::vector<std::int32_t> ids(11 * 3, -1);
  for (std::size_t t = 0; t < 11; ++t) std::copy_n(&c.selected[2 * t], 2, &ids[3 * t]);
  SparseState op = c.op(o, state);
  op.q = q.view().columns(2, {2, c.H, c.K});
  op.v = v.view().columns(2, {c.H, c.V});
  op.gate = gate.view().columns(2, {c.N});
  op.selected = ConstTensor(ids.data(), DType::i32, {11, 2}, 3);
  op.o = o.view().columns(2, {c.H, c.V});
  const auto backend = make_cpu_backend();
  Workspace workspace(*backend);
  backend->sparse_state(op, 16, workspace);
  Numbers part = poisoned(c.v.shape);
  copy(part.view(), op.o);
  CHECK(part.values == expected.o.values);
  CHECK(state.values == expected.state.values);
}

TEST_CASE("the mask layout gives the same: all partitions as heads of one memory (spec §4.5)") {
  const std::int64_t T = 37;
  const Case c({0, T}, false, 5);
  const Outcome expected = run(c);

  const std::int64_t heads = (c.N + 1) * c.H;
  Numbers q(Shape{T, heads, c.K}), k(Shape{T, heads, c.K}), v(Shape{T, heads, c.V}), log_decay(Shape{T, heads, c.K});
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t n = 0; n <= c.N; ++n) {
      bool chosen = n == 0;
      for (std::int64_t w = 0; w < c.choices(); ++w) chosen = chosen || c.choice(t, w) == n - 1;
      if (!chosen) continue;
      const float e = n == 0 ? 1 : c.gate.row(t)[n - 1];
      for (std::int64_t i = 0; i < c.H * c.K; ++i) {
        const std::int64_t from = (n > 0 ? c.H * c.K : 0) + i, to = n * c.H * c.K + i;
        q.row(t)[to] = e * c.q.row(t)[from];
        k.row(t)[to] = e * c.k.row(t)[from];
        log_decay.row(t)[to] = c.log_decay.row(t)[from];
      }
      std::copy_n(c.v.row(t), c.H * c.V, v.row(t) + n * c.H * c.V);
    }
  }
  Numbers state({1, heads, c.K, c.V}, c.initial.values), o = poisoned({T, heads, c.V});
  DecayedOuterProduct op;
  op.q = q.view(), op.k = k.view(), op.v = v.view(), op.log_decay = log_decay.view(), op.scale = c.scale;
  op.segments = {c.cu_seqlens, {}}, op.initial_state = state.view(), op.final_state = state.view(), op.o = o.view();
  decayed_outer_product_chunk(op, 16);

  Numbers sum(c.v.shape);
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t i = 0; i < heads * c.V; ++i) sum.row(t)[i % (c.H * c.V)] += o.row(t)[i];
  }
  CHECK(relative_error(expected.o.values, sum.values) < 1e-5);
  CHECK(relative_error(expected.state.values, state.values) < 1e-5);
}

TEST_CASE("the names of the partitions do not matter") {
  const bool delta_rule = GENERATE(false, true);
  const Case c({0, 40}, delta_rule, 6);
  const std::int32_t renamed[] = {2, 0, 3, 1};
  Case other = c;
  for (std::int64_t t = 0; t < 40; ++t) {
    for (std::int64_t n = 0; n < c.N; ++n) other.gate.row(t)[renamed[n]] = c.gate.row(t)[n];
  }
  for (std::int64_t n = 0; n < c.N; ++n) std::copy_n(c.initial.row(1 + n), c.initial.shape.row_size(), other.initial.row(1 + renamed[n]));
  for (auto& n : other.selected) n = renamed[n];
  const Outcome before = run(c), after = run(other);
  CHECK(relative_error(after.o.values, before.o.values) < 1e-6);
  for (std::int64_t n = 0; n < c.N; ++n) {
    CHECK(std::equal(before.state.row(1 + n), before.state.row(1 + n) + before.state.shape.row_size(), after.state.row(1 + renamed[n])));
  }
}

TEST_CASE("states that no token chose stay bitwise as they were") {
  const bool delta_rule = GENERATE(false, true);
  const auto [W_w, W_r] = GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {1, 2}}));
  Case c({0, 21, 22}, delta_rule, 8, 6, W_w, W_r);
  for (std::int64_t t = 0; t < 22; ++t) {
    for (std::int64_t w = 0; w < c.choices(); ++w)
      c.selected[static_cast<std::size_t>(t * c.choices() + w)] = static_cast<std::int32_t>(t == 21 ? 3 + w : w);
  }
  const Outcome outcome = run(c, GENERATE(1, 16));
  // The first sequence writes to partition 0 (slot 1), the second, one token, to partition 3 (slot 7 + 4); the others are only read, or not
  // even that.
  for (std::int64_t slot = 0; slot < 14; ++slot) {
    const bool written = slot == 0 || slot == 1 || slot == 7 || slot == 11;
    CHECK(same_state(outcome.state, c.initial, slot) != written);
  }
}

TEST_CASE("a token outside a partition between two inside leaves no trace there") {
  Case with({0, 3}, false, 9, 3, 1, 1), without({0, 2}, false, 9, 3, 1, 1);
  with.selected = {1, 2, 1};
  const std::int32_t kept[] = {0, 2};
  without.selected = {1, 1};
  gather_rows(without.q.view(), with.q.view(), kept);
  gather_rows(without.k.view(), with.k.view(), kept);
  gather_rows(without.v.view(), with.v.view(), kept);
  gather_rows(without.log_decay.view(), with.log_decay.view(), kept);
  gather_rows(without.gate.view(), with.gate.view(), kept);
  without.initial = with.initial;
  CHECK(same_state(run(with).state, run(without).state, 2));
}

TEST_CASE("with every partition chosen and no gates all sparse states are the same") {
  const bool delta_rule = GENERATE(false, true);
  Case c({0, 33}, delta_rule, 10, 4, 4, 4);
  c.gate_q = c.gate_k = false;
  for (std::int64_t n = 1; n < c.N; ++n) std::copy_n(c.initial.row(1), c.initial.shape.row_size(), c.initial.row(1 + n));
  const Outcome outcome = run(c);
  for (std::int64_t n = 1; n < c.N; ++n) CHECK(std::equal(outcome.state.row(1), outcome.state.row(2), outcome.state.row(1 + n)));
}

TEST_CASE("before the L2 norm the gate cancels (spec §4.3, [A7])") {
  Case c({0, 50}, true, 11);
  const Outcome gated_run = run(c);
  c.gate_q = c.gate_k = false;
  const Outcome plain = run(c);
  CHECK(relative_error(gated_run.o.values, plain.o.values) < 1e-5);
  c.gate_q = c.gate_k = true;
  c.place = GatePlace::after_l2;
  CHECK(relative_error(run(c).o.values, plain.o.values) > 1e-2);
}

TEST_CASE("no tokens: the states are carried over") {
  const Case c({0, 0}, false, 12);
  const Outcome outcome = run(c);
  CHECK(outcome.state.values == c.initial.values);
}

TEST_CASE("a sparse state of another type is refused") {
  const Case c({0, 4}, true, 13);
  Numbers o = poisoned(c.v.shape), state = poisoned(c.initial.shape);
  CHECK_NOTHROW(check_sparse_state(c.op(o, state)));
  for (ConstTensor SparseState::*operand :
       {&SparseState::q, &SparseState::v, &SparseState::beta, &SparseState::gate, &SparseState::selected}) {
    SparseState op = c.op(o, state);
    (op.*operand).dtype = DType::bf16;
    CHECK_THROWS_AS(check_sparse_state(op), std::invalid_argument);
  }
}

TEST_CASE("a sparse state that does not fit is refused") {
  Case c({0, 4}, false, 13);
  c.selected[1] = 4;
  CHECK_THROWS_AS(run(c), std::out_of_range);
  c.selected[1] = 0;
  c.readers = 3;
  c.selected.resize(12);
  c.initial = Numbers({4, c.H, c.K, c.V});
  CHECK_THROWS_AS(run(c), std::invalid_argument);
}

}  // namespace statescope::sparse_state_test
