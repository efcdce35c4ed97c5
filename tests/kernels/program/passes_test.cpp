// Passes as text: what becomes of a program. That numbers stay the same: tests/mixers/program_test.cpp.
#include "kernels/passes/passes.h"

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::program {
namespace {

using statescope::testing::Numbers;

/// Weights [out, in] that only their shapes matter of.
struct Weights {
  Numbers square{Shape{8, 8}}, narrow{Shape{2, 8}}, wide{Shape{8, 2}}, taps{Shape{8, 4}}, norm{Shape{4}}, bias{Shape{8}};
};

/// A gated linear attention of 2 heads with 4 key and value channels: q, k convolved, a low-rank forget gate, an output gate.
Program gated_linear_attention(const Weights& w) {
  Program p(8);
  const Value x = p.x();
  const Value decay =
      p.apply(ForgetGate{16, -1}, p.linear(w.wide.view(), {}, p.linear(w.narrow.view(), {}, x, ValueType::exact), ValueType::exact));
  const Value log_decay = p.with_axes(decay, {2, 4});
  const Value q = p.with_axes(p.convolution(p.linear(w.square.view(), {}, x), w.taps.view(), {}, Activation::silu, 0), {2, 4});
  const Value k = p.with_axes(p.linear(w.square.view(), {}, x), {2, 4}), v = p.with_axes(p.linear(w.square.view(), {}, x), {2, 4});
  const Value g = p.linear(w.square.view(), {}, x);
  p.show("q", q);
  p.show("log_decay", log_decay);
  const Value o = p.remember(OuterProduct{.q = q, .k = k, .v = v, .log_decay = log_decay}, 2, 4);
  const Value normed = p.apply(RmsNorm{.weight = w.norm.view(), .group = 4}, o);
  const Value read = p.show("readout", p.combine(Gate{Activation::silu}, p.with_axes(normed, {8}), g));
  p.result = p.linear(w.square.view(), {}, read);
  return p;
}

std::string after(const Program& program, std::vector<bool> wanted, bool one_token = false, bool state_only = false) {
  return to_string(compiled(program, {.wanted = std::move(wanted), .state_only = state_only, .one_token = one_token}));
}

}  // namespace

TEST_CASE("passes: a gated linear attention read by nobody but its memory") {
  const Weights w;
  const Program p = gated_linear_attention(w);
  CHECK(to_string(p) == R"(v1 [2] = x · [2, 8]ᵀ
v2 [8] = v1 · [8, 2]ᵀ
log_decay [8] = logσ(v2) / 16
v5 [8] = x · [8, 8]ᵀ
q [8] = silu(convolution of 4 tokens(v5))
v8 [8] = x · [8, 8]ᵀ
v10 [8] = x · [8, 8]ᵀ
v12 [8] = x · [8, 8]ᵀ
v13 [2, 4] = outer_product(S0; q, v8, v10, log_decay)
v14 [2, 4] = RMSNorm(v13) over 4
readout [8] = v14 ⊙ silu(v12)
y [8] = readout · [8, 8]ᵀ
)");
  CHECK(after(p, {false, false, false}) == R"(together
  v1 [2] = x · [2, 8]ᵀ
  q [8] = silu(convolution of 4 tokens(x · [8, 8]ᵀ))
  v8 [8] = x · [8, 8]ᵀ
  v10 [8] = x · [8, 8]ᵀ
  v12 [8] = x · [8, 8]ᵀ
v13 [2, 4] = outer_product(S0; q, v8, v10, log_decay) with log_decay = logσ(v1 · [8, 2]ᵀ) / 16
y [8] = (RMSNorm(v13) over 4 ⊙ silu(v12)) · [8, 8]ᵀ
)");
}

TEST_CASE("passes: what is watched is made by itself") {
  const Weights w;
  CHECK(after(gated_linear_attention(w), {false, true, true}) == R"(together
  v1 [2] = x · [2, 8]ᵀ
  q [8] = silu(convolution of 4 tokens(x · [8, 8]ᵀ))
  v8 [8] = x · [8, 8]ᵀ
  v10 [8] = x · [8, 8]ᵀ
  v12 [8] = x · [8, 8]ᵀ
  log_decay [8] = logσ(v1 · [8, 2]ᵀ) / 16
v13 [2, 4] = outer_product(S0; q, v8, v10, log_decay)
readout [8] = RMSNorm(v13) over 4 ⊙ silu(v12)
y [8] = readout · [8, 8]ᵀ
)");
}

TEST_CASE("passes: one token's decay is made with all else that is made of the token") {
  const Weights w;
  CHECK(after(gated_linear_attention(w), {false, false, false}, true) == R"(together
  v1 [2] = x · [2, 8]ᵀ
  q [8] = silu(convolution of 4 tokens(x · [8, 8]ᵀ))
  v8 [8] = x · [8, 8]ᵀ
  v10 [8] = x · [8, 8]ᵀ
  v12 [8] = x · [8, 8]ᵀ
  log_decay [8] = logσ(v1 · [8, 2]ᵀ) / 16
v13 [2, 4] = outer_product(S0; q, v8, v10, log_decay)
y [8] = (RMSNorm(v13) over 4 ⊙ silu(v12)) · [8, 8]ᵀ
)");
}

TEST_CASE("passes: a replay makes what the state needs") {
  const Weights w;
  CHECK(after(gated_linear_attention(w), {true, true, true}, false, true) == R"(together
  v1 [2] = x · [2, 8]ᵀ
  q [8] = silu(convolution of 4 tokens(x · [8, 8]ᵀ))
  v8 [8] = x · [8, 8]ᵀ
  v10 [8] = x · [8, 8]ᵀ
  log_decay [8] = logσ(v1 · [8, 2]ᵀ) / 16
v13 [2, 4] = outer_product(S0; q, v8, v10, log_decay)
)");
}

TEST_CASE("passes: parts of one product that are read by themselves are products of one token") {
  const Weights w;
  Program p(8);
  const Value both = p.linear(w.square.view(), w.bias.view(), p.x());
  const Value q = p.convolution(p.columns(both, 0, {6}), w.taps.view().slice(0, 6), {}, Activation::silu, 0);
  p.show("both", both);
  p.result = p.combine(Gate{}, p.linear(w.wide.view(), {}, p.columns(both, 6, {2})),
                       p.linear(w.square.view().slice(0, 8), {}, p.stack(q, p.columns(both, 6, {2}), {8})));
  CHECK(after(p, {false}, true) == R"(together
  v5[6:8] [2] = x · [2, 8]ᵀ + bias
  v5[0:6] [6] = silu(convolution of 4 tokens(x · [6, 8]ᵀ + bias))
  v8 [8] = v5[6:8] · [8, 2]ᵀ
v6 [8] = v5 · [8, 8]ᵀ
y [8] = v8 ⊙ v6
)");
  // Not where the whole is watched, nor of many tokens.
  const std::string as_it_is = R"(both [8] = x · [8, 8]ᵀ + bias
v3 [6] = silu(convolution of 4 tokens(both[0:6]))
v5 [8] = [v3 | both[6:8]]
v6 [8] = v5 · [8, 8]ᵀ
v8 [8] = both[6:8] · [8, 2]ᵀ
y [8] = v8 ⊙ v6
)";
  CHECK(after(p, {true}, true) == as_it_is);
  CHECK(after(p, {false}) == as_it_is);
}

}  // namespace statescope::program
