// What distinguishes Hymba, log-linear Mamba-2 and S4 (spec §17.9, §17.14, §17.17).
#include <cmath>
#include <complex>

#include "engine/mixers/recurrent/hold.h"
#include "tests/mixers/mixer_rig.h"

namespace statescope::test::state_space_mixers_test {
namespace {

/// [T, V] of a model that reads the ids at once, or in pieces of so many.
std::vector<float> logits_in_pieces(Model& model, std::span<const std::int32_t> ids, std::int64_t piece) {
  ModelState state = model.start();
  std::vector<float> all;
  while (!ids.empty()) {
    const auto count = std::min(static_cast<std::int64_t>(ids.size()), piece);
    std::vector<float> hidden(static_cast<std::size_t>(count * model.hidden())), logits(static_cast<std::size_t>(count * model.vocab()));
    const Tensor x(hidden.data(), DType::f32, {count, model.hidden()}), y(logits.data(), DType::f32, {count, model.vocab()});
    model.forward(state, ids.first(static_cast<std::size_t>(count)), {.chunk_size = count == 1 ? 0 : 64, .rules = {}}, x);
    model.logits(y, x);
    all.insert(all.end(), logits.begin(), logits.end());
    ids = ids.subspan(static_cast<std::size_t>(count));
  }
  return all;
}

}  // namespace

TEST_CASE("Hymba: memory tokens are what tokens of the same embeddings before the prompt would be") {
  const std::vector<std::int32_t> before{3, 1, 4, 1}, ids = some_ids(20);
  for (const json& changes :
       {json{{"sliding_window", nullptr}}, json{{"sliding_window", 40}, {"rope", false}, {"kq_norm", "perhead-rms"}}}) {
    const Editable without(hymba_config(with(changes, {{"num_memory_tokens", 0}})));
    Editable with_tokens(*without.checkpoint());
    const std::int64_t D = 48;
    std::vector<float> rows;
    const std::span<float> table = with_tokens.floats("model.embed_tokens.weight");
    for (const std::int32_t id : before) rows.insert(rows.end(), table.begin() + id * D, table.begin() + (id + 1) * D);
    with_tokens.set({{"num_memory_tokens", 4}}).add("model.memory_tokens", {4, D}, rows);
    std::vector<std::int32_t> longer = before;
    longer.insert(longer.end(), ids.begin(), ids.end());
    const std::vector<float> all = logits_in_pieces(*without.model(), longer, 64);
    const std::span<const float> expected = std::span(all).subspan(4 * 97);
    for (const std::int64_t piece : {64, 7, 1}) CHECK(difference(logits_in_pieces(*with_tokens.model(), ids, piece), expected) < 1e-5);
  }
}

TEST_CASE("Hymba: a window of w tokens before the own one, and memory tokens beyond it") {
  // One layer that sees a window of 3: what token 9 puts out depends on tokens 6 to 8, on 5 through Mamba alone, which is silenced.
  const auto silent = [](const json& changes) {
    Editable edited(
        hymba_config(with({{"num_hidden_layers", 1}, {"global_attn_idx", json::array()}, {"kv_reuse_group", nullptr}}, changes)));
    return edited.fill("pre_avg_layernorm2.weight", 0).model();
  };
  const auto depends = [](Model& model, std::int64_t on) {
    std::vector<std::int32_t> ids = some_ids(10);
    const std::vector<float> one = logits_in_pieces(model, ids, 64);
    ids[static_cast<std::size_t>(on)] = (ids[static_cast<std::size_t>(on)] + 1) % 97;
    const std::vector<float> other = logits_in_pieces(model, ids, 64);
    return !std::equal(one.end() - 97, one.end(), other.end() - 97);
  };
  for (const std::int64_t memory_tokens : {0, 5}) {
    const auto model = silent({{"sliding_window", 3}, {"num_memory_tokens", memory_tokens}});
    CHECK(depends(*model, 6));
    CHECK_FALSE(depends(*model, 5));
  }
  CHECK(depends(*silent({{"sliding_window", 3}, {"global_attn_idx", {0}}}), 0));
}

TEST_CASE("Hymba: positions of the kind ntk turn by a larger base") {
  const std::vector<std::int32_t> ids = some_ids(9);
  const json ntk{{"rope_type", "ntk"}, {"rope_theta", 500.0}, {"max_position_embeddings", 8192}, {"orig_max_position_embeddings", 2048}};
  // θ (2 · 4 − 1)^{12 / 10}
  const json larger{{"rope_theta", 500 * std::pow(7.0, 1.2)}};
  const auto logits = [&](const json& changes) { return logits_in_pieces(*Editable(hymba_config(changes)).model(), ids, 64); };
  CHECK(difference(logits(ntk), logits(larger)) < 1e-5);
  CHECK(difference(logits(ntk), logits({{"rope_theta", 500.0}})) > 1e-4);
}

TEST_CASE("log-linear Mamba-2: its levels together are the state of Mamba-2") {
  MixerRig rig{Editable(log_linear_config())};
  constexpr std::int64_t T = 27;
  const Pass pass = rig.read(rig.some_input(T));
  const Shape& shape = rig.layout.memory[0].shape;
  const std::int64_t L = shape[0], H = shape[1], K = shape[2], V = shape[3];
  REQUIRE(L == 15);
  std::vector<float> together(static_cast<std::size_t>(H * K * V)), expected;
  for (std::int64_t level = 0; level < L; ++level) {
    const std::vector<float> one = values_of(pass.state.memory[0].slice(level, 1));
    // Token 26 = 11010₂ has the tokens of levels 0, 2, 4 and 5.
    CHECK(std::ranges::any_of(one, [](float x) { return x != 0; }) == (level == 0 || level == 2 || level == 4 || level == 5));
    std::transform(one.begin(), one.end(), together.begin(), together.begin(), std::plus<>());
  }
  for (std::int64_t i = 0; i < H * K * V; ++i) {
    double S = 0;
    for (std::int64_t t = 0; t < T; ++t) {
      const std::int64_t h = i / (K * V), r = i / V % K;
      S = std::exp(double{pass["log_decay"].row(t)[static_cast<std::size_t>(h)]}) * S +
          double{pass["k"].row(t)[static_cast<std::size_t>(r)]} * pass["v"].row(t)[static_cast<std::size_t>(h * V + i % V)];
    }
    expected.push_back(static_cast<float>(S));
  }
  CHECK(difference(together, expected) < 1e-5);
}

TEST_CASE("log-linear Mamba-2: more tokens than its levels hold are refused") {
  const auto model = Editable(log_linear_config()).model();
  ModelState state = model->start();
  std::vector<float> hidden(48);
  const std::int32_t id = 5;
  state.position = (std::int64_t{1} << 14) - 1;
  const Tensor x(hidden.data(), DType::f32, {1, 48});
  model->forward(state, {&id, 1}, {.chunk_size = 0, .rules = {}}, x);
  CHECK_THROWS_WITH(model->forward(state, {&id, 1}, {.chunk_size = 0, .rules = {}}, x),
                    Catch::Matchers::ContainsSubstring("at most 16384 tokens"));
}

TEST_CASE("zero-order hold: exact for a matrix with and without an inverse") {
  const double dt = 0.3;
  // of [−1 0; 2 −3]: e^{−Δ}, e^{−3Δ} on the diagonal, (e^{−Δ} − e^{−3Δ}) below
  const Held held = zero_order_hold({-1, 0, 2, -3}, {1, 0}, dt);
  const double a = std::exp(-dt), b = std::exp(-3 * dt);
  for (const auto& [found, expected] : {std::pair{held.A[0], a}, {held.A[1], 0.0}, {held.A[2], a - b}, {held.A[3], b}, {held.B[0], 1 - a}})
    CHECK(found == Approx(expected).margin(1e-14));
  CHECK(held.B[1] == Approx((1 - a) - (1 - b) / 3).margin(1e-14));
  // of [0 0; 1 0]
  const Held still = zero_order_hold({0, 0, 1, 0}, {1, 0}, dt);
  CHECK(still.A == std::vector<double>{1, 0, dt, 1});
  CHECK(still.B[0] == Approx(dt));
  CHECK(still.B[1] == Approx(dt * dt / 2));
  const Held large = zero_order_hold({-5000}, {1}, 1);
  CHECK(large.A[0] == Approx(0).margin(1e-12));
  CHECK(large.B[0] == Approx(1.0 / 5000));
}

TEST_CASE("S4: with a diagonal A and no imaginary parts both forms are one") {
  constexpr std::int64_t N = 5, D = 40;
  Editable diagonal(s4_config("diag", {{"state_size", 2 * N}})), dense(s4_config("hippo", {{"state_size", N}}));
  for (const char* name : {"kernel.log_dt", "s4.D", "output_linear.0.weight", "output_linear.0.bias"}) {
    const std::string full = "model.layers.0." + std::string(std::string(name).starts_with("s4.") ? "" : "s4.") + name;
    std::ranges::copy(dense.floats(full), diagonal.floats(full).begin());
  }
  diagonal.fill("0.s4.kernel.A_imag", 0);
  const std::span<float> rates = diagonal.floats("model.layers.0.s4.kernel.log_A_real"),
                         pairs = diagonal.floats("model.layers.0.s4.kernel.C");
  const std::span<float> A = dense.floats("model.layers.0.s4.kernel.A"), C = dense.floats("model.layers.0.s4.kernel.C");
  std::ranges::fill(A, 0.0F);
  dense.fill("0.s4.kernel.B", 1);
  for (std::int64_t i = 0; i < D * N; ++i) {
    const auto n = static_cast<std::size_t>(i % N), at = static_cast<std::size_t>(i);
    rates[at] = 0.3F * static_cast<float>(n);
    A[n * N + n] = -std::exp(rates[at]);
    pairs[2 * at] = C[at] / 2;
    pairs[2 * at + 1] = 0.7F;
  }
  MixerRig one(diagonal), other(dense);
  const std::vector<float> x = one.some_input(30);
  const Pass of_pairs = one.read(x), of_states = other.read(x);
  CHECK(difference(of_pairs.y, of_states.y) < 1e-5);
  const std::vector<float> real = values_of(of_pairs.state.memory[0].slice(0, 1)),
                           imaginary = values_of(of_pairs.state.memory[0].slice(1, 1));
  CHECK(difference(real, values_of(of_states.state.memory[0])) < 1e-5);
  CHECK(std::ranges::all_of(imaginary, [](float number) { return number == 0; }));
}

TEST_CASE("S4: the recurrence is the convolution with K_l = C Ā^l B̄") {
  const std::int64_t T = 24;
  Editable edited(s4_config("diag"));
  MixerRig rig(edited);
  const std::vector<float> x = rig.some_input(T);
  const Pass pass = rig.read(x);
  const auto of = [&](const char* name, std::int64_t i) {
    return double{edited.floats("model.layers.0.s4." + std::string(name))[static_cast<std::size_t>(i)]};
  };
  std::vector<float> expected;
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t c = 0; c < 40; ++c) {
      double y = of("D", c) * x[static_cast<std::size_t>(t * 40 + c)];
      for (std::int64_t n = 0; n < 5; ++n) {
        const std::complex<double> A(-std::exp(of("kernel.log_A_real", c * 5 + n)), of("kernel.A_imag", c * 5 + n));
        const std::complex<double> held = std::exp(std::exp(of("kernel.log_dt", c)) * A), B = (held - 1.0) / A;
        const std::complex<double> C(of("kernel.C", 2 * (c * 5 + n)), of("kernel.C", 2 * (c * 5 + n) + 1));
        for (std::int64_t s = 0; s <= t; ++s)
          y += 2 * (C * std::pow(held, static_cast<double>(t - s)) * B).real() * x[static_cast<std::size_t>(s * 40 + c)];
      }
      expected.push_back(static_cast<float>(0.5 * y * std::erfc(-y / std::sqrt(2.0))));
    }
  }
  CHECK(difference(pass["readout"].floats, expected) < 1e-5);
}

}  // namespace statescope::test::state_space_mixers_test
