#include "kernels/ops/gated_delta_rule.h"

#include <algorithm>
#include <string>

#include "kernels/ops/decayed_outer_product.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::gated_delta_rule_test {
using namespace statescope::testing;

namespace {

/// Decays are drawn from [low, high]; where it is `broken` every fifth is −1100 and every eleventh −∞.
struct Decay {
  const char* name;
  bool present;
  float low, high;
  bool broken, channels = false;  // channels: of each key channel
};
constexpr Decay absent{"absent", false, 0, 0, false}, mild{"mild", true, -0.2F, 0, false}, strong{"strong", true, -6, -4, false},
    broken{"broken", true, -0.2F, 0, true}, channels{"channels", true, -0.2F, 0, false, true},
    strong_channels{"strong channels", true, -6, -4, false, true}, broken_channels{"broken channels", true, -0.2F, 0, true, true};

struct Heads {
  std::int64_t state = 2, qk = 2, v = 2, decay = 2, beta = 2;
};

struct Problem {
  Packed segments;
  Heads heads;
  std::int64_t K, V;
  bool has_decay, has_beta = true;
  float scale = 0.5F;
  Numbers q, k, v, log_decay, beta, initial;

  Problem(Packed segments_, Heads heads_, std::int64_t K_, std::int64_t V_, Decay decay, std::uint64_t seed = 1)
      : segments(std::move(segments_)), heads(heads_), K(K_), V(V_), has_decay(decay.present) {
    Random random(seed);
    const std::int64_t rows = segments.rows();
    q = random.uniform({rows, heads.qk, K});
    k = l2_normalized(random.uniform({rows, heads.qk, K}), K);
    v = random.uniform({rows, heads.v, V});
    beta = random.uniform({rows, heads.beta}, 0, 2);
    initial = random.uniform({segments.slots, heads.state, K, V});
    Shape shape{rows, heads.decay};
    if (decay.channels) shape.push_back(K);
    log_decay = random.uniform(shape, decay.low, decay.high);
    for (std::size_t i = 0; decay.broken && i < log_decay.values.size(); ++i) {
      if (i % 5 == 2) log_decay.values[i] = -1100;
      if (i % 11 == 7) log_decay.values[i] = -std::numeric_limits<float>::infinity();
    }
  }

  GatedDeltaRule op(Numbers& final_state, Numbers& o) const {
    GatedDeltaRule op;
    op.q = q.view();
    op.k = k.view();
    op.v = v.view();
    if (has_decay) op.log_decay = log_decay.view();
    if (has_beta) op.beta = beta.view();
    op.scale = scale;
    op.segments = segments.view();
    op.initial_state = initial.view();
    op.final_state = final_state.view();
    op.o = o.view();
    return op;
  }

  static void apply(const GatedDeltaRule& op, std::int64_t chunk_size) {
    if (chunk_size == 0) {
      gated_delta_rule_step(op);
    } else {
      gated_delta_rule_chunk(op, chunk_size);
    }
  }

  static GatedDeltaRule part(GatedDeltaRule op, std::int64_t begin, std::int64_t count) {
    op.q = op.q.slice(begin, count);
    op.k = op.k.slice(begin, count);
    op.v = op.v.slice(begin, count);
    if (op.log_decay) op.log_decay = op.log_decay.slice(begin, count);
    if (op.beta) op.beta = op.beta.slice(begin, count);
    op.o = op.o.slice(begin, count);
    return op;
  }
};

/// The recurrence, as it stands, in double precision. Slots of no segment keep the initial state.
Result<double> truth(const Problem& p) {
  const std::int64_t H = p.heads.state, K = p.K, V = p.V;
  Result<double> result{std::vector<double>(static_cast<std::size_t>(p.segments.rows() * H * V)),
                        {p.initial.values.begin(), p.initial.values.end()}};
  for (std::int64_t s = 0; s < p.segments.view().count(); ++s) {
    const auto index = static_cast<std::size_t>(s);
    for (std::int64_t t = p.segments.cu_seqlens[index]; t < p.segments.cu_seqlens[index + 1]; ++t) {
      for (std::int64_t h = 0; h < H; ++h) {
        double* S = result.state.data() + (p.segments.view().slot_of(s) * H + h) * K * V;
        const float* q = p.q.row(t) + producer_head(h, p.heads.qk, H) * K;
        const float* k = p.k.row(t) + producer_head(h, p.heads.qk, H) * K;
        const float* v = p.v.row(t) + producer_head(h, p.heads.v, H) * V;
        const std::int64_t decay_head = producer_head(h, p.heads.decay, H), width = p.log_decay.shape.rank() == 3 ? K : 1;
        const auto alpha = [&](std::int64_t r) {
          return p.has_decay ? std::exp(static_cast<double>(p.log_decay.row(t)[decay_head * width + (width == 1 ? 0 : r)])) : 1;
        };
        const double beta = p.has_beta ? p.beta.row(t)[producer_head(h, p.heads.beta, H)] : 1;
        for (std::int64_t c = 0; c < V; ++c) {
          double prediction = 0, o = 0;
          for (std::int64_t r = 0; r < K; ++r) prediction += k[r] * (S[r * V + c] *= alpha(r));
          for (std::int64_t r = 0; r < K; ++r) o += q[r] * (S[r * V + c] += k[r] * beta * (v[c] - prediction));
          result.o[static_cast<std::size_t>((t * H + h) * V + c)] = static_cast<double>(p.scale) * o;
        }
      }
    }
  }
  return result;
}

const Packed mixed_lengths({5, 0, 1, 70, 17}, {6, 2, 0, 3, 5}, 7);
const Packed single_rows({1, 0, 1, 1}, {2, 0, 4, 1}, 5);

}  // namespace

TEST_CASE("gated delta rule: chunks equal the recurrence for any chunk size, shape and decay", "[memory]") {
  const auto decay = GENERATE(absent, mild, strong, broken, channels, strong_channels, broken_channels);
  const std::int64_t T = GENERATE(1, 63, 130);
  const auto [K, V] = GENERATE(std::pair{60, 60}, std::pair{16, 32});
  const Problem p(Packed(T), {}, K, V, decay);
  const Result<double> expected = truth(p);
  for (const std::int64_t C : {std::int64_t{1}, std::int64_t{7}, std::int64_t{16}, std::int64_t{64}, T}) {
    CAPTURE(decay.name, T, K, V, C);
    check_close(run(p, C), expected);
  }
}

TEST_CASE("gated delta rule: steps equal the recurrence", "[memory]") {
  const auto decay = GENERATE(absent, mild, strong, broken, channels, strong_channels, broken_channels);
  const auto [K, V] = GENERATE(std::pair{60, 60}, std::pair{16, 32});
  const Problem p(Packed(63), {}, K, V, decay);
  CAPTURE(decay.name, K, V);
  check_close(run_in_parts(p, std::vector<std::int64_t>(63, 1), 0), truth(p));
}

TEST_CASE("gated delta rule: segments, slots and grouped heads", "[memory]") {
  const auto decay = GENERATE(absent, mild, channels);
  const Heads heads = GENERATE(Heads{4, 2, 4, 4, 4}, Heads{4, 4, 1, 2, 1}, Heads{6, 3, 6, 2, 3});
  CAPTURE(decay.name, heads.qk, heads.v, heads.decay, heads.beta);
  const Problem packed(mixed_lengths, heads, 12, 20, decay), rows(single_rows, heads, 60, 60, decay);
  for (const auto& [problem, chunk_size] : {std::pair{&packed, 16}, std::pair{&rows, 16}, std::pair{&rows, 0}}) {
    CAPTURE(chunk_size);
    const Result<float> found = run(*problem, chunk_size), in_place = run_in_place(*problem, chunk_size);
    check_close(found, truth(*problem));
    CHECK(same_bits(in_place.o, found.o));
    CHECK(same_bits(in_place.state, found.state));
  }
}

TEST_CASE("gated delta rule: a span in two calls equals one call", "[memory]") {
  const Problem p(Packed(100), {}, 16, 32, GENERATE(mild, channels));
  const std::int64_t cut = GENERATE(1, 37, 64, 99);
  check_close(run_in_parts(p, {cut, 100 - cut}, 16), run(p, 16));
}

TEST_CASE("gated delta rule: the second value of a repeated key replaces the first", "[memory]") {
  // Key (0.6, 0.8) gets (1, 2), then (5, −3): reading it back gives (5, −3), and nothing is left of (1, 2).
  Problem p(Packed(2), {1, 1, 1, 1, 1}, 2, 2, absent);
  p.has_beta = false;
  p.k.values = {0.6F, 0.8F, 0.6F, 0.8F};
  p.q.values = p.k.values;
  p.v.values = {1, 2, 5, -3};
  p.initial.values.assign(4, 0.0F);
  p.scale = 1;
  const Result<float> found = run(p, GENERATE(1, 2));
  CHECK(relative_error(found.o, std::vector{1.0F, 2.0F, 5.0F, -3.0F}) < 1e-6);
  CHECK(relative_error(found.state, std::vector{3.0F, -1.8F, 4.0F, -2.4F}) < 1e-6);
}

TEST_CASE("gated delta rule: one-hot keys erase their row, half of it, or mirror it", "[memory]") {
  // Row 0 holds 8; writing 2 to it with β = 1, ½, 2 leaves 2, 5, −4. Row 1 keeps 7.
  const auto [beta, left] = GENERATE(std::pair{1.0F, 2.0F}, std::pair{0.5F, 5.0F}, std::pair{2.0F, -4.0F});
  Problem p(Packed(1), {1, 1, 1, 1, 1}, 2, 1, absent);
  p.k.values = {1, 0};
  p.q.values = {1, 10};
  p.v.values = {2};
  p.beta.values = {beta};
  p.initial.values = {8, 7};
  p.scale = 1;
  const Result<float> found = run(p, GENERATE(0, 1));
  CHECK(found.state == std::vector{left, 7.0F});
  CHECK(found.o == std::vector{left + 70});
}

TEST_CASE("gated delta rule: with orthonormal keys and β = 1 it is linear attention", "[memory]") {
  Problem p(Packed(16), {}, 16, 32, absent);
  p.has_beta = false;
  std::fill(p.initial.values.begin(), p.initial.values.end(), 0.0F);
  std::fill(p.k.values.begin(), p.k.values.end(), 0.0F);
  for (std::int64_t t = 0; t < 16; ++t) p.k.row(t)[5 * t % 16] = p.k.row(t)[16 + 3 * t % 16] = 1;
  Numbers o = poisoned({16, 2, 32}), final_state = poisoned(p.initial.shape);
  const GatedDeltaRule delta = p.op(final_state, o);
  DecayedOuterProduct linear{delta.q,           delta.k, delta.v, {}, DecayAxis::rows, delta.scale, delta.segments, delta.initial_state,
                             delta.final_state, delta.o};
  decayed_outer_product_chunk(linear, 16);
  check_close(run(p, GENERATE(1, 7, 16)), Result<float>{o.values, final_state.values}, 1e-6);
}

TEST_CASE("gated delta rule: channels that decay alike are a head that decays", "[memory]") {
  const Problem whole(Packed(70), {}, 12, 20, mild);
  Problem each = whole;
  each.log_decay = Numbers({70, 2, 12});
  for (std::size_t i = 0; i < each.log_decay.values.size(); ++i) each.log_decay.values[i] = whole.log_decay.values[i / 12];
  const std::int64_t C = GENERATE(1, 7, 64);
  check_close(run(each, C), run(whole, C));
}

TEST_CASE("gated delta rule: each channel forgets by itself, and before the key reads", "[memory]") {
  // Rows 8 and 6 decay to 4 and 6; the key (1, 0) reads 4 and, with β = 1, replaces it by 2.
  Problem p(Packed(1), {1, 1, 1, 1, 1}, 2, 1, channels);
  p.k.values = {1, 0};
  p.q.values = {1, 10};
  p.v.values = {2};
  p.beta.values = {GENERATE(1.0F, 0.0F)};
  p.log_decay.values = {std::log(0.5F), 0};
  p.initial.values = {8, 6};
  p.scale = 1;
  const Result<float> found = run(p, GENERATE(0, 1));
  CHECK(relative_error(found.state, std::vector{p.beta.values[0] == 0 ? 4.0F : 2.0F, 6.0F}) < 1e-6);
}

TEST_CASE("gated delta rule: β = 0 leaves only decay", "[memory]") {
  Problem p(Packed(3), {1, 1, 1, 1, 1}, 60, 60, mild);
  p.beta.values.assign(3, 0.0F);
  p.log_decay.values.assign(3, std::log(0.5F));
  std::vector<float> expected = p.initial.values;
  for (float& x : expected) x /= 8;
  CHECK(relative_error(run(p, GENERATE(1, 2, 3)).state, expected) < 1e-6);
}

TEST_CASE("gated delta rule: a zero key or β = 0 without decay leaves the state's bits alone", "[memory]") {
  Problem p(single_rows, {}, 60, 60, GENERATE(absent, mild));
  Numbers& zeroed = GENERATE(true, false) ? p.k : p.beta;
  std::fill(zeroed.values.begin(), zeroed.values.end(), 0.0F);
  std::fill(p.log_decay.values.begin(), p.log_decay.values.end(), 0.0F);
  CHECK(same_bits(run(p, 0).state, p.initial.values));
}

TEST_CASE("gated delta rule: complaints name the operand, what was found and what was expected", "[memory]") {
  const Problem p(mixed_lengths, {}, 16, 32, mild);
  Numbers o = poisoned({93, 2, 32}), final_state = poisoned(p.initial.shape);
  const GatedDeltaRule good = p.op(final_state, o);
  const auto complaint = [&](auto&& spoil) {
    GatedDeltaRule op = good;
    spoil(op);
    return complaint_of([&] { gated_delta_rule_chunk(op, 16); });
  };
  CHECK(complaint([](auto&) {}).empty());
  CHECK(complaint([&](auto& op) { op.beta = op.beta.slice(0, 92); }) ==
        "gated_delta_rule_chunk: beta: found float32 [92, 2], expected float32 [93, 2]");
  CHECK(complaint([&](auto& op) { op.log_decay = op.v; }).find("log_decay: found float32 [93, 2, 32]") != std::string::npos);
  CHECK(complaint([&](auto& op) { op.o.shape[2] = 31; }).find("o: found float32 [93, 2, 31]") != std::string::npos);
  CHECK(complaint_of([&] { gated_delta_rule_chunk(good, -1); }).find("chunk_size: found -1") != std::string::npos);
  CHECK(complaint_of([&] { gated_delta_rule_step(good); }).find("segment 0 has 5 rows") != std::string::npos);
}

}  // namespace statescope::gated_delta_rule_test
