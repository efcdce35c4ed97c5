// Every operation over rows on a CUDA device with bf16 activations, against the CPU form on the same numbers in float32.
#include <functional>

#include "tests/kernels/device_cases.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::device_activations_test {
using namespace statescope::testing;

namespace {

constexpr double rounding = 5e-3;         // of a result, and of what it is made of
constexpr double memory_rounding = 5e-2;  // of a number, over the size of all: products are rounded as well

const std::vector<Shape> shapes = {{1, 3, 16}, {2, 1, 60}, {63, 3, 64}, {65, 2, 128}, {40, 1, 5}, {33, 4, 512}, {37, 3, 256}, {0, 3, 16}};

/// y from x, each of them rounded or not, then with y in x's place.
using Step = std::function<void(Side&, Tensor y, ConstTensor x)>;
void compare_step(const Comparison& both, const std::string& name, const Numbers& x, const Step& step) {
  const std::string of = name + " " + x.shape.to_string();
  both(
      of, [&](Side& s) { step(s, s.activation_out(x.shape), s.activation(x)); }, rounding);
  both(
      of + ", from float32", [&](Side& s) { step(s, s.activation_out(x.shape), s.in(x)); }, rounding);
  both(
      of + ", to float32", [&](Side& s) { step(s, s.out(x.shape), s.activation(x)); }, rounding);
  both(
      of + ", in place",
      [&](Side& s) {
        const Tensor y = s.activation_inout(x);
        step(s, y, y);
      },
      rounding);
}

template <class Visit>
void for_each_shape(const Visit& visit) {
  for (const Shape& shape : shapes) {
    Random random(1);
    visit(shape, random);
  }
}

}  // namespace

TEST_CASE("device: norms of bf16 activations", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  for_each_shape([&](const Shape& shape, Random& random) {
    const Numbers x = random.uniform(shape, -3, 5), positive = random.uniform(shape, 0.1F, 1), gate = random.uniform(shape, -9, 9);
    for (const std::int64_t group : {shape[2], shape.row_size()}) {
      const Numbers weight = random.uniform({group});
      compare_step(both, "rms_norm", x, [&](Side& s, Tensor y, ConstTensor in) { s->rms_norm(y, in, s.in(weight), 1e-5F, 1); });
      compare_step(both, "rms_norm_plain", x, [&](Side& s, Tensor y, ConstTensor in) { s->rms_norm_plain(y, in, group, 1e-5F); });
      for (const Activation act : {Activation::silu, Activation::sigmoid}) {
        compare_step(both, "gated_rms_norm", x, [&](Side& s, Tensor y, ConstTensor in) {
          s->gated_rms_norm(y, in, s.in(weight), group, 1e-5F, s.activation(gate), act);
        });
        compare_step(both, "gated_rms_norm without weight", x,
                     [&](Side& s, Tensor y, ConstTensor in) { s->gated_rms_norm(y, in, {}, group, 1e-5F, s.in(gate), act); });
      }
    }
    const Numbers wide = random.uniform({shape.row_size()}), residual = random.uniform(shape);
    both(
        "add_rms_norm " + shape.to_string(),
        [&](Side& s) { s->add_rms_norm(s.activation_out(shape), s.inout(residual), s.activation(x), s.in(wide), 1e-5F); }, rounding);
    compare_step(both, "l2_norm", x, [](Side& s, Tensor y, ConstTensor in) { s->l2_norm(y, in); });
    compare_step(both, "sum_norm", positive, [](Side& s, Tensor y, ConstTensor in) { s->sum_norm(y, in, 1e-4F); });
    compare_step(both, "softmax", x, [](Side& s, Tensor y, ConstTensor in) { s->softmax(y, in, 0.5F); });
    both(
        "softmax_pair " + shape.to_string(),
        [&](Side& s) {
          s->softmax_pair(s.activation_out({shape[0], 2, shape[1], shape[2]}), s.activation(x), s.activation(positive), s.activation(gate));
        },
        10 * rounding);  // where the sum is kept, it is rounded before its exponential
  });
}

TEST_CASE("device: sum and norm, norm and gate together", "[device]") {
  const Comparison both;
  if (!both) return;
  for_each_shape([&](const Shape& shape, Random& random) {
    const Numbers x = random.uniform(shape, -3, 5), gate = random.uniform(shape, -9, 9), weight = random.uniform({shape[2]});
    const Numbers wide = random.uniform({shape.row_size()}), added = random.uniform(shape);
    both("add_rms_norm " + shape.to_string(),
         [&](Side& s) { s->add_rms_norm(s.out(shape), s.inout(x), s.in(added), s.in(wide), 1e-5F, 1); });
    both("add_rms_norm without weight " + shape.to_string(),
         [&](Side& s) { s->add_rms_norm(s.out(shape), s.inout(x), s.in(added), {}, 1e-5F); });
    const Numbers more = random.uniform(shape);
    both("sum_pair " + shape.to_string(), [&](Side& s) {
      s->sum_pair(s.out({shape[0], 2, shape[1], shape[2]}), s.in(x), s.in(gate), s.in(more), Activation::silu);
    });
    for (const Activation act : {Activation::silu, Activation::identity}) {
      both("gated_rms_norm " + shape.to_string(),
           [&](Side& s) { s->gated_rms_norm(s.out(shape), s.in(x), s.in(weight), shape[2], 1e-5F, s.in(gate), act); });
    }
  });
}

TEST_CASE("device: elementwise steps of bf16 activations", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  for_each_shape([&](const Shape& shape, Random& random) {
    const std::int64_t T = shape[0], H = shape[1], K = shape[2];
    const Numbers a = random.uniform(shape, -3, 3), b = random.uniform(shape, -30, 30), per_head = random.uniform({T, H}),
                  divisor = random.uniform({T, H}, 0.5F, 2);
    compare_step(both, "copy", a, [](Side& s, Tensor y, ConstTensor x) { s->copy(y, x); });
    compare_step(both, "activate", b, [](Side& s, Tensor y, ConstTensor x) { s->activate(y, x, Activation::silu); });
    both("sum_pair " + shape.to_string(), [&](Side& s) {
      s->sum_pair(s.out({T, 2, H, K}), s.activation(a), s.activation(a), s.activation(b), Activation::silu);
    });
    compare_step(both, "gate", a, [&](Side& s, Tensor y, ConstTensor x) { s->gate(y, x, s.activation(b), Activation::silu); });
    compare_step(both, "add", a, [&](Side& s, Tensor y, ConstTensor x) { s->add(y, x, s.activation(b), -0.25F); });
    compare_step(both, "scale_heads", a, [&](Side& s, Tensor y, ConstTensor x) { s->scale_heads(y, x, s.in(per_head), 0.25F); });
    compare_step(both, "divide_heads", a, [&](Side& s, Tensor y, ConstTensor x) { s->divide_heads(y, x, s.in(divisor), 1e-4F); });
    for (const std::int64_t rotary : {K / 2 * 2, K / 4 * 2}) {
      compare_step(both, "rope", a, [&](Side& s, Tensor y, ConstTensor x) { s->rope(y, x, 1000, 1e4, rotary); });
    }
    const Numbers log_decay = random.uniform(shape, -1, 0);
    both(
        "row_sparse " + shape.to_string(),
        [&](Side& s) { s->row_sparse(s.activation_out(shape), s.inout(log_decay), s.activation(a), 4, true); }, 2 * rounding);
  });
}

TEST_CASE("device: bf16 rows gathered and scattered", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  for (const std::int64_t n : {1, 60, 64}) {
    Random random(1);
    const Numbers x = random.uniform({40, n}), added = random.uniform({33, n}), weight = random.uniform({33});
    std::vector<std::int32_t> rows;
    for (int i = 0; i < 33; ++i) rows.push_back(static_cast<std::int32_t>(random.below(40)));
    const auto both_types = [&](const std::string& name, const auto& run) { both(name + " " + std::to_string(n), run, rounding); };
    both_types("gather_rows", [&](Side& s) { s->gather_rows(s.activation_out({33, n}), s.activation(x), rows.data()); });
    both_types("gather_rows, to float32", [&](Side& s) { s->gather_rows(s.out({33, n}), s.activation(x), rows.data()); });
    both_types("scatter_add_rows", [&](Side& s) { s->scatter_add_rows(s.inout(x), s.activation(added), rows.data(), s.in(weight)); });
  }
}

TEST_CASE("device: short convolutions of bf16 activations", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  for (const Packed& segments : {Packed(1), Packed(63), Packed(300), Packed({7, 0, 1, 40}, {3, 0, 1, 2}, 5)}) {
    for (const std::int64_t C : {1, 60, 192}) {
      for (const std::int64_t w : {2, 4}) {
        Random random(1);
        const std::int64_t T = segments.rows();
        const Numbers x = random.uniform({T, C}), weight = random.uniform({C, w}), cache = random.uniform({segments.slots, w - 1, C});
        both(
            "short_convolution " + x.shape.to_string(),
            [&](Side& s) {
              const Tensor state = s.inout_whole(cache);
              s->short_convolution(
                  {s.activation(x), s.whole(weight), {}, Activation::silu, segments.view(), state, state, s.activation_out({T, C})});
            },
            rounding);
      }
    }
  }
}

TEST_CASE("device: products of bf16 activations", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  constexpr double product_rounding = 4e-2;  // three products behind each other
  for (const std::int64_t T : {1, 8, 9, 33, 300}) {
    for (const auto& [in, out] : {std::pair{16, 60}, {60, 128}, {64, 1}, {128, 97}, {192, 64}}) {
      Random random(1);
      const Numbers x = random.uniform({T, in}), bias = random.uniform({out}), matrix = random.uniform({out, in});
      const auto compare = [&](const std::string& name, const auto& run) {
        both(name + " [" + std::to_string(T) + ", " + std::to_string(in) + "] to " + std::to_string(out), run, product_rounding);
      };
      const ConstTensor weight = matrix.view();
      compare("linear", [&](Side& s) { s->linear(s.activation_out({T, out}), s.activation(x), s.weight(weight)); });
      compare("linear, bias", [&](Side& s) { s->linear(s.activation_out({T, out}), s.activation(x), s.weight(weight), s.in(bias)); });
      compare("linear, from float32", [&](Side& s) { s->linear(s.activation_out({T, out}), s.in(x), s.weight(weight)); });
      compare("linear, to float32", [&](Side& s) { s->linear(s.out({T, out}), s.activation(x), s.weight(weight), s.in(bias)); });
      const Numbers up = random.uniform({out, in}), down = random.uniform({in, out});
      compare("swiglu", [&](Side& s) {
        s->swiglu(s.activation_out({T, in}), s.activation(x), s.weight(weight), s.weight(up.view()), s.weight(down.view()), s.workspace());
      });
    }
  }
}

TEST_CASE("device: decays from a few features", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : {1, 33, 65, 300}) {
    for (const auto& [rank, n] : {std::pair{16, 128}, {1, 60}, {13, 300}, {32, 64}, {40, 64}}) {
      Random random(1);
      const Numbers x = random.uniform({T, rank}, -3, 3), weight = random.uniform({n, rank}), bias = random.uniform({n}, -9, 9);
      for (const float clamp_min : {-std::numeric_limits<float>::infinity(), -0.05F}) {
        const std::string name = "low_rank_decay " + x.shape.to_string() + " to " + std::to_string(n);
        both(name, [&](Side& s) { s->low_rank_decay(s.out({T, n}), s.in(x), s.weight(weight.view()), s.in(bias), 16, clamp_min); });
        both(name + ", without bias", [&](Side& s) {
          s->low_rank_decay(s.out({T, n}), s.in(x), s.weight(weight.view()), {}, 16, clamp_min);
        });
      }
    }
  }
}

TEST_CASE("device: memories of bf16 activations", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  const auto compare = [&](const std::string& name, const auto& run) { both(name, run, memory_rounding); };
  for (const Packed& segments : {Packed(1), Packed(31), Packed(65), Packed(300)}) {
    for (const auto& [K, V] : {std::pair{64, 64}, {60, 20}, {256, 64}}) {
      Random random(1);
      const std::int64_t T = segments.rows(), H = 2;
      const Numbers q = random.uniform({T, H, K}), k = l2_normalized(random.uniform({T, H, K}), K), v = random.uniform({T, H, V}),
                    beta = random.uniform({T, H}, 0, 1), initial = random.uniform({1, H, K, V}),
                    per_channel = random.uniform({T, H, K}, -0.2F, 0), per_head = random.uniform({T, H}, -0.2F, 0);
      const std::string shape = "of " + q.shape.to_string() + " and " + v.shape.to_string();
      const auto place = [&](Side& s, auto& op, bool rounded_values) {
        op.q = s.activation(q), op.k = s.activation(k), op.v = rounded_values ? s.activation(v) : s.in(v);
        op.scale = 0.5F, op.segments = segments.view();
        const Tensor state = s.inout_whole(initial);
        op.initial_state = op.final_state = state;
      };
      const std::int64_t chunk_size = T == 1 ? 0 : 64;
      for (const bool rounded_values : {true, false}) {
        compare("decayed_outer_product " + shape, [&](Side& s) {
          DecayedOuterProduct op;
          place(s, op, rounded_values);
          op.log_decay = s.in(per_channel), op.o = s.activation_out({T, H, V});
          s->decayed_outer_product(op, chunk_size);
        });
        compare("gated_delta_rule " + shape, [&](Side& s) {
          GatedDeltaRule op;
          place(s, op, rounded_values);
          op.log_decay = s.in(per_head), op.beta = s.in(beta), op.o = rounded_values ? s.out({T, H, V}) : s.activation_out({T, H, V});
          s->gated_delta_rule(op, chunk_size);
        });
      }
    }
  }
}

}  // namespace statescope::device_activations_test
