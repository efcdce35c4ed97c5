#include "kernels/ops/decayed_outer_product.h"

#include <algorithm>
#include <string>

#include "tests/kernels/memory_cases.h"

namespace statescope::decayed_outer_product_test {
using namespace statescope::testing;

namespace {

enum class Kind { absent, per_head, per_channel, per_column };

/// How strong a decay is: drawn from [low, high]; in a `broken` one every fifth entry is −1100, and every eleventh −∞.
struct Strength {
  const char* name;
  float low, high;
  bool broken;
};
constexpr Strength mild{"mild", -0.2F, 0, false}, strong{"strong", -6, -4, false}, broken{"broken", -0.2F, 0, true};

struct Heads {
  std::int64_t state = 2, q = 2, k = 2, v = 2, decay = 2;
};

struct Problem {
  Packed segments;
  Heads heads;
  std::int64_t K, V;
  Kind kind;
  float scale = 0.5F;
  Numbers q, k, v, log_decay, initial;

  Problem(Packed segments_, Heads heads_, std::int64_t K_, std::int64_t V_, Kind kind_, Strength strength, std::uint64_t seed = 1)
      : segments(std::move(segments_)), heads(heads_), K(K_), V(V_), kind(kind_) {
    Random random(seed);
    const std::int64_t rows = segments.rows();
    q = random.uniform({rows, heads.q, K});
    k = random.uniform({rows, heads.k, K});
    v = random.uniform({rows, heads.v, V});
    initial = random.uniform({segments.slots, heads.state, K, V});
    Shape shape{rows, heads.decay};
    if (kind == Kind::per_channel) shape.push_back(K);
    if (kind == Kind::per_column) shape.push_back(V);
    log_decay = random.uniform(shape, strength.low, strength.high);
    for (std::size_t i = 0; strength.broken && i < log_decay.values.size(); ++i) {
      if (i % 5 == 2) log_decay.values[i] = -1100;
      if (i % 11 == 7) log_decay.values[i] = -std::numeric_limits<float>::infinity();
    }
  }

  DecayedOuterProduct op(Numbers& final_state, Numbers& o) const {
    DecayedOuterProduct op;
    op.q = q.view();
    op.k = k.view();
    op.v = v.view();
    if (kind != Kind::absent) op.log_decay = log_decay.view();
    if (kind == Kind::per_column) op.decay_axis = DecayAxis::columns;
    op.scale = scale;
    op.segments = segments.view();
    op.initial_state = initial.view();
    op.final_state = final_state.view();
    op.o = o.view();
    return op;
  }

  static void apply(const DecayedOuterProduct& op, std::int64_t chunk_size) {
    if (chunk_size == 0) {
      decayed_outer_product_step(op);
    } else {
      decayed_outer_product_chunk(op, chunk_size);
    }
  }

  static DecayedOuterProduct part(DecayedOuterProduct op, std::int64_t begin, std::int64_t count) {
    op.q = op.q.slice(begin, count);
    op.k = op.k.slice(begin, count);
    op.v = op.v.slice(begin, count);
    if (op.log_decay) op.log_decay = op.log_decay.slice(begin, count);
    op.o = op.o.slice(begin, count);
    return op;
  }

  /// a_t of state entry (r, c).
  double decay(std::int64_t t, std::int64_t h, std::int64_t r, std::int64_t c) const {
    const std::int64_t hd = producer_head(h, heads.decay, heads.state);
    switch (kind) {
      case Kind::absent:
        return 1;
      case Kind::per_head:
        return std::exp(static_cast<double>(log_decay.row(t)[hd]));
      case Kind::per_channel:
        return std::exp(static_cast<double>(log_decay.row(t)[hd * K + r]));
      case Kind::per_column:
        return std::exp(static_cast<double>(log_decay.row(t)[hd * V + c]));
    }
    return 0;
  }
};

/// The recurrence, as it stands, in double precision. Slots of no segment keep the initial state.
Result<double> truth(const Problem& p) {
  const auto [H, Hq, Hk, Hv, Hd] = p.heads;
  Result<double> result{std::vector<double>(static_cast<std::size_t>(p.segments.rows() * H * p.V)),
                        {p.initial.values.begin(), p.initial.values.end()}};
  for (std::int64_t s = 0; s < p.segments.view().count(); ++s) {
    for (std::int64_t h = 0; h < H; ++h) {
      double* S = result.state.data() + (p.segments.view().slot_of(s) * H + h) * p.K * p.V;
      const auto index = static_cast<std::size_t>(s);
      for (std::int64_t t = p.segments.cu_seqlens[index]; t < p.segments.cu_seqlens[index + 1]; ++t) {
        const float* q = p.q.row(t) + producer_head(h, Hq, H) * p.K;
        const float* k = p.k.row(t) + producer_head(h, Hk, H) * p.K;
        const float* v = p.v.row(t) + producer_head(h, Hv, H) * p.V;
        double* o = result.o.data() + (t * H + h) * p.V;
        for (std::int64_t r = 0; r < p.K; ++r) {
          for (std::int64_t c = 0; c < p.V; ++c) {
            double& state = S[r * p.V + c];
            state = p.decay(t, h, r, c) * state + static_cast<double>(k[r]) * v[c];
            o[c] += static_cast<double>(p.scale) * q[r] * state;
          }
        }
      }
    }
  }
  return result;
}

const Packed mixed_lengths({5, 0, 1, 70, 17}, {6, 2, 0, 3, 5}, 7);
const Packed single_rows({1, 0, 1, 1}, {2, 0, 4, 1}, 5);

}  // namespace

TEST_CASE("decayed outer product: chunks equal the recurrence for any chunk size, shape and decay", "[memory]") {
  const auto kind = GENERATE(Kind::absent, Kind::per_head, Kind::per_channel, Kind::per_column);
  const auto strength = GENERATE(mild, strong, broken);
  const std::int64_t T = GENERATE(1, 63, 130);
  const auto [K, V] = GENERATE(std::pair{60, 60}, std::pair{16, 32});
  if (kind == Kind::absent && strength.low != mild.low) return;
  const Problem p(Packed(T), {}, K, V, kind, strength);
  const Result<double> expected = truth(p);
  for (const std::int64_t C : {std::int64_t{1}, std::int64_t{7}, std::int64_t{16}, std::int64_t{64}, T}) {
    CAPTURE(static_cast<int>(kind), strength.name, T, K, V, C);
    check_close(run(p, C), expected);
  }
}

TEST_CASE("decayed outer product: segments, slots and grouped heads", "[memory]") {
  const auto kind = GENERATE(Kind::absent, Kind::per_head, Kind::per_channel, Kind::per_column);
  const Heads heads = GENERATE(Heads{4, 2, 4, 1, 2}, Heads{4, 4, 1, 2, 4}, Heads{6, 3, 2, 6, 1});
  CAPTURE(static_cast<int>(kind), heads.q, heads.k, heads.v, heads.decay);
  const Problem packed(mixed_lengths, heads, 12, 20, kind, mild), rows(single_rows, heads, 60, 60, kind, strong);
  for (const auto& [problem, chunk_size] : {std::pair{&packed, 16}, std::pair{&rows, 16}, std::pair{&rows, 0}}) {
    CAPTURE(chunk_size);
    const Result<float> found = run(*problem, chunk_size);
    check_close(found, truth(*problem));
    const Result<float> in_place = run_in_place(*problem, chunk_size);
    CHECK(same_bits(in_place.o, found.o));
    CHECK(same_bits(in_place.state, found.state));
  }
}

TEST_CASE("decayed outer product: steps equal the recurrence", "[memory]") {
  const auto kind = GENERATE(Kind::absent, Kind::per_head, Kind::per_channel, Kind::per_column);
  const auto strength = GENERATE(mild, strong, broken);
  const auto [K, V] = GENERATE(std::pair{60, 60}, std::pair{16, 32});
  const Problem p(Packed(63), {}, K, V, kind, strength);
  CAPTURE(static_cast<int>(kind), strength.name, K, V);
  check_close(run_in_parts(p, std::vector<std::int64_t>(63, 1), 0), truth(p));
}

TEST_CASE("decayed outer product: a span in two calls equals one call", "[memory]") {
  const Problem p(Packed(100), {}, 16, 32, Kind::per_channel, mild);
  const std::int64_t cut = GENERATE(1, 37, 64, 99);
  check_close(run_in_parts(p, {cut, 100 - cut}, 16), run(p, 16));
}

TEST_CASE("decayed outer product: one-hot keys and halving decay can be read off", "[memory]") {
  // k_t = row t mod 2, v_t = (t + 1, 10 (t + 1)), a = 1/2 per token; q reads row 0, then row 1.
  Problem p(Packed(3), {1, 1, 1, 1, 1}, 2, 2, Kind::per_head, mild);
  p.k.values = {1, 0, 0, 1, 1, 0};
  p.v.values = {1, 10, 2, 20, 3, 30};
  p.q.values = {1, 0, 1, 0, 0, 1};
  p.initial.values = {8, 0, 0, 16};
  p.log_decay.values.assign(3, std::log(0.5F));
  p.scale = 1;
  const Result<float> found = run(p, GENERATE(1, 2, 3));
  const std::vector<float> o{5, 10, 2.5F, 5, 1, 12};
  const std::vector<float> state{4.25F, 32.5F, 1, 12};
  CHECK(relative_error(found.o, o) < 1e-6);
  CHECK(relative_error(found.state, state) < 1e-6);
}

TEST_CASE("decayed outer product: a decay of −∞ forgets everything before it", "[memory]") {
  // After token 1 the state is k_1ᵀ v_1 alone.
  Problem p(Packed(2), {1, 1, 1, 1, 1}, 60, 60, GENERATE(Kind::per_head, Kind::per_channel, Kind::per_column), mild);
  std::fill(p.log_decay.values.begin(), p.log_decay.values.end(), GENERATE(-1100.0F, -std::numeric_limits<float>::infinity()));
  std::vector<float> expected;
  for (std::int64_t r = 0; r < 60; ++r) {
    for (std::int64_t c = 0; c < 60; ++c) expected.push_back(p.k.row(1)[r] * p.v.row(1)[c]);
  }
  CHECK(relative_error(run(p, GENERATE(1, 2)).state, expected) < 1e-6);
}

TEST_CASE("decayed outer product: a zero key without decay leaves the state's bits alone", "[memory]") {
  Problem p(single_rows, {2, 2, 2, 2, 2}, 60, 60, GENERATE(Kind::absent, Kind::per_head, Kind::per_channel, Kind::per_column), mild);
  std::fill(p.k.values.begin(), p.k.values.end(), 0.0F);
  std::fill(p.log_decay.values.begin(), p.log_decay.values.end(), 0.0F);
  CHECK(same_bits(run(p, 0).state, p.initial.values));
}

TEST_CASE("decayed outer product: rows may be columns of a wider row, and one decay may serve all rows", "[memory]") {
  const Problem p(Packed(40), {}, 16, 32, Kind::per_head, mild);
  Problem repeated = p;
  for (std::int64_t t = 0; t < 40; ++t) std::copy_n(p.log_decay.row(0), 2, repeated.log_decay.row(t));

  const std::int64_t width = 2 * (16 + 16 + 32);
  Numbers qkv({40, width});
  for (std::int64_t t = 0; t < 40; ++t) {
    std::copy_n(p.v.row(t), 64, std::copy_n(p.k.row(t), 32, std::copy_n(p.q.row(t), 32, qkv.row(t))));
  }
  Numbers o = poisoned({40, 2, 32}), final_state = poisoned(p.initial.shape);
  DecayedOuterProduct op = p.op(final_state, o);
  op.q = qkv.view().columns(0, {2, 16});
  op.k = qkv.view().columns(32, {2, 16});
  op.v = qkv.view().columns(64, {2, 32});
  op.log_decay = ConstTensor(p.log_decay.values.data(), DType::f32, {40, 2}, 0);
  decayed_outer_product_chunk(op, 16);
  check_close(Result<float>{o.values, final_state.values}, truth(repeated));
}

TEST_CASE("decayed outer product: complaints name the operand, what was found and what was expected", "[memory]") {
  const Problem p(mixed_lengths, {}, 16, 32, Kind::per_channel, mild);
  Numbers o = poisoned({93, 2, 32}), final_state = poisoned(p.initial.shape);
  const DecayedOuterProduct good = p.op(final_state, o);
  const auto complaint = [&](auto&& spoil) {
    DecayedOuterProduct op = good;
    spoil(op);
    return complaint_of([&] { decayed_outer_product_chunk(op, 16); });
  };
  CHECK(complaint([](auto&) {}).empty());
  CHECK(complaint([&](auto& op) { op.k = op.k.slice(0, 92); }) ==
        "decayed_outer_product_chunk: k: found float32 [92, 2, 16], expected float32 [93, 2, 16]");
  CHECK(complaint([&](auto& op) { op.v.shape[1] = 3; }) ==
        "decayed_outer_product_chunk: v: found float32 [93, 3, 32], expected float32 [93, 2, 32]");
  CHECK(complaint([&](auto& op) { op.decay_axis = DecayAxis::columns; }).find("log_decay: found float32 [93, 2, 16]") != std::string::npos);
  CHECK(complaint([&](auto& op) { op.q.dtype = DType::f16; }).find("q: found float16 [93, 2, 16]") != std::string::npos);
  CHECK(complaint([&](auto& op) { op.q.data = nullptr; }).find("q: absent") != std::string::npos);
  CHECK(complaint([&](auto& op) { op.initial_state = {}; }).find("initial_state: found []") != std::string::npos);
  CHECK(complaint([&](auto& op) { op.final_state = op.final_state.slice(0, 6); }).find("final_state:") != std::string::npos);
  for (const std::vector<std::int32_t>& slot : {std::vector{6, 2, 0, 3, 7}, {6, 2, 0, 3, -1}, {6, 2, 0, 6, 5}, {6, 2, 0, 3}}) {
    CHECK(complaint([&](auto& op) { op.segments.slot = slot; }).find("slot:") != std::string::npos);
  }
  for (const std::vector<std::int32_t>& cu_seqlens :
       {std::vector{0, 5, 93}, {0, 5, 5, 6, 76, 92}, {1, 5, 5, 6, 76, 93}, {0, 5, 4, 6, 76, 93}}) {
    CHECK(!complaint([&](auto& op) { op.segments.cu_seqlens = cu_seqlens; }).empty());
  }
  CHECK(complaint_of([&] { decayed_outer_product_chunk(good, 0); }).find("chunk_size: found 0") != std::string::npos);
  CHECK(complaint_of([&] { decayed_outer_product_step(good); }).find("segment 0 has 5 rows") != std::string::npos);
}

}  // namespace statescope::decayed_outer_product_test
