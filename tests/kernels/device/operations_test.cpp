// The operations of kernels/backend.h on a CUDA device against the CPU, over awkward shapes; memories: device_memory_test.cpp.
#include <functional>

#include "tests/kernels/device_shapes.h"

namespace statescope::device_test {
using namespace statescope::testing;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

const std::vector<Activation> activations = {Activation::identity,      Activation::silu,         Activation::relu,
                                             Activation::sigmoid,       Activation::elu_plus_one, Activation::exp,
                                             Activation::log_one_minus, Activation::tanh,         Activation::gelu};

/// visit([T, H, K]); one without rows at the end.
void for_each_shape(const std::function<void(const Shape&)>& visit) {
  for (const std::int64_t T : token_counts) {
    for (const std::int64_t H : head_counts) {
      for (const std::int64_t K : widths) visit({T, H, K});
    }
  }
  visit({0, 3, 16});
}

std::string named(const std::string& name, const Shape& shape) { return name + " " + shape.to_string(); }
/// y from x; then the same with y in x's place.
using Step = std::function<void(Side&, Tensor y, ConstTensor x)>;
void compare_step(const Comparison& both, const std::string& name, const Numbers& x, const Step& step) {
  both(named(name, x.shape), [&](Side& s) { step(s, s.out(x.shape), s.in(x)); });
  both(named(name, x.shape) + ", in place", [&](Side& s) {
    const Tensor y = s.inout(x);
    step(s, y, y);
  });
}

/// Rows for the products: few and many.
const std::vector<std::int64_t> product_rows = {1, 2, 3, 5, 8, 9, 63, 64, 65, 300};
/// Inputs and outputs.
const std::vector<std::pair<std::int64_t, std::int64_t>> product_sizes = {
    {16, 60}, {60, 128}, {64, 1}, {128, 97}, {1, 64}, {192, 64}, {2048, 33}, {5632, 18}, {2051, 7}, {96, 2200}, {520, 12}};
std::string product_name(const Numbers& x, const StoredWeight& weight) {
  return x.shape.to_string() + " " + std::string(name_of(weight.dtype)) + " " + weight.shape.to_string();
}

/// Of [T] or [T, ...] the indices of `count` rows, some of them more than once.
std::vector<std::int32_t> some_rows(Random& random, std::int64_t rows, std::int64_t count) {
  std::vector<std::int32_t> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(static_cast<std::int32_t>(random.below(rows)));
  return result;
}

/// Few different values, so that many are equal.
Numbers quantised(Numbers x, float steps) {
  for (float& value : x.values) value = std::round(value * steps) / steps;
  return x;
}

}  // namespace

TEST_CASE("device: memory, and what is sent there and back", "[device]") {
  const std::shared_ptr<Backend> device = cuda_backend();
  if (!device) return;
  CHECK(!device->description().empty());
  Random random(1);
  for (const Shape& shape : {Shape{1}, Shape{300, 3, 60}, Shape{0, 16}}) {
    INFO(shape.to_string());
    const Numbers x = random.uniform(shape);
    Numbers back = poisoned(shape);
    const Buffer memory = device->allocate(static_cast<std::size_t>(shape.size()) * sizeof(float));
    CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0);
    const Tensor there(memory.get(), DType::f32, shape);
    device->upload(there, x.view());
    device->download(back.view(), there);
    CHECK(back.values == x.values);
    CHECK_THROWS_AS(device->upload(there, Numbers(Shape{7, 7}).view()), std::invalid_argument);
  }
}

TEST_CASE("device: fill, copy, gather and scatter", "[device]") {
  const Comparison both;
  if (!both) return;
  for_each_shape([&](const Shape& shape) {
    Random random(1);
    const Numbers x = random.uniform(shape);
    both(named("fill", shape), [&](Side& s) { s->fill(s.out(shape), 0.5F); });
    both(named("copy", shape), [&](Side& s) { s->copy(s.out(shape), s.in(x)); });
    const std::vector<std::int32_t> integers = some_rows(random, 1000, shape.size());
    both(named("copy of integers", shape), [&](Side& s) { s->copy(s.out_i32(shape), s.in(integers, shape)); });

    if (shape[0] == 0) return;
    Shape more = shape;
    more[0] += 3;
    const Numbers src = random.uniform(more), weight = random.uniform({more[0]});
    const std::vector<std::int32_t> rows = some_rows(random, shape[0], more[0]);
    both(named("gather_rows", shape), [&](Side& s) { s->gather_rows(s.out(more), s.in(x), rows.data()); });
    both(named("scatter_add_rows", shape), [&](Side& s) { s->scatter_add_rows(s.inout(x), s.in(src), rows.data()); });
    both(named("scatter_add_rows, weighted", shape),
         [&](Side& s) { s->scatter_add_rows(s.inout(x), s.in(src), rows.data(), s.in(weight)); });
  });
  Random random(1);
  const Numbers large = random.uniform({700, 512});
  both(named("copy", large.shape), [&](Side& s) { s->copy(s.out(large.shape), s.in(large)); });
}

TEST_CASE("device: a copy of more than L2 holds", "[device]") {
  const std::shared_ptr<Backend> device = cuda_backend();
  if (!device) return;
  const Shape shape{1 << 14, 1 << 12};  // 256 MiB
  const Buffer memory = device->allocate(2 * static_cast<std::size_t>(shape.size()) * sizeof(float));
  auto* const numbers = static_cast<float*>(memory.get());
  const Tensor from(numbers, DType::f32, shape), to(numbers + shape.size(), DType::f32, shape);
  device->fill(from, 1);
  device->fill(from.slice(shape[0] - 1, 1), 2);
  device->fill(to, std::nanf(""));
  device->copy(to, from);
  for (const std::int64_t row : {std::int64_t{0}, shape[0] / 2, shape[0] - 1}) {
    Numbers found = poisoned({1, shape[1]});
    device->download(found.view(), to.slice(row, 1));
    CHECK(std::ranges::all_of(found.values, [&](float x) { return x == (row == shape[0] - 1 ? 2 : 1); }));
  }
}

TEST_CASE("device: embeddings and matrix products of every float type", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const DType dtype : weight_types) {
    for (const std::int64_t T : product_rows) {
      for (const auto& [in, out] : product_sizes) {
        Random random(1);
        const StoredWeight weight(random, dtype, {out, in});
        const Numbers x = random.uniform({T, in}), bias = random.uniform({out});
        const std::vector<std::int32_t> ids = some_rows(random, out, T);
        const std::string shapes = product_name(x, weight);
        both("embed " + shapes, [&](Side& s) { s->embed(s.out({T, in}), s.weight(weight.view()), ids.data()); });
        both("linear " + shapes, [&](Side& s) { s->linear(s.out({T, out}), s.in(x), s.weight(weight.view())); });
        both("linear with bias " + shapes, [&](Side& s) { s->linear(s.out({T, out}), s.in(x), s.weight(weight.view()), s.in(bias)); });
        both("linear of some outputs " + shapes, [&](Side& s) {
          s->linear(s.out({T, (out + 1) / 2}), s.in(x), s.weight(weight.view()).slice(out / 2, (out + 1) / 2));
        });
      }
    }
  }
  Random random(1);
  // A weight that is widened in two tiles.
  const Numbers x = random.uniform({9, 2048}), bias = random.uniform({4100});
  const StoredWeight large(random, DType::f16, {4100, 2048});
  both("linear with bias " + product_name(x, large), [&](Side& s) {
    s->linear(s.out({9, 4100}), s.in(x), s.weight(large.view()), s.in(bias));
  });

  const StoredWeight table(random, DType::f32, {5, 16});
  const std::shared_ptr<Backend> device = cuda_backend();
  Side side(*device, 0);
  for (const std::int32_t id : {-1, 5}) {
    CHECK_THROWS_AS(device->embed(side.out({1, 16}), side.weight(table.view()), &id), std::out_of_range);
  }
}

TEST_CASE("device: matrix products with operands rounded to bfloat16", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  constexpr double rounding = 2e-2;
  for (const DType dtype : weight_types) {
    for (const std::int64_t T : product_rows) {
      for (const auto& [in, out] : product_sizes) {
        Random random(1);
        const StoredWeight weight(random, dtype, {out, in});
        const Numbers x = random.uniform({T, in}), bias = random.uniform({out});
        both(
            "linear " + product_name(x, weight),
            [&](Side& s) {
              s->linear(s.out({T, out}), s.in(x), s.weight(weight.view()));
            },
            rounding);
        // Of numbers that bfloat16 holds nothing is lost.
        if (dtype != DType::bf16) continue;
        both("linear of whole numbers, with bias " + product_name(x, weight), [&](Side& s) {
          s->linear(s.out({T, out}), s.in(quantised(x, 8)), s.weight(weight.view()), s.in(bias));
        });
      }
      for (const auto& [D, I] : {std::pair{60, 37}, {64, 128}}) {
        Random random(1);
        const Numbers x = random.uniform({T, D});
        const StoredWeight gate(random, dtype, {I, D}), up(random, dtype, {I, D}), down(random, dtype, {D, I});
        both(
            "swiglu " + product_name(x, gate),
            [&](Side& s) {
              s->swiglu(s.out(x.shape), s.in(x), s.weight(gate.view()), s.weight(up.view()), s.weight(down.view()), s.workspace());
            },
            2 * rounding);
      }
    }
  }
}

TEST_CASE("device: an algorithm chosen for one number of rows serves others", "[device]") {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const Comparison both(precision);
    if (!both) return;
    for (const auto& [in, out] : {std::pair{256, 520}, {1000, 264}, {2304, 24}}) {
      Random random(1);
      const StoredWeight weight(random, DType::bf16, {out, in});
      const Numbers bias = random.uniform({out});
      for (const std::int64_t T : {2048, 2047, 1025, 1500, 33, 40, 63, 64, 4097, 4096, 9}) {
        const Numbers x = quantised(random.uniform({T, in}), 8);  // bfloat16 holds it
        both("linear with bias " + product_name(x, weight), [&](Side& s) {
          s->linear(s.out({T, out}), s.in(x), s.weight(weight.view()), s.in(bias));
        });
      }
    }
  }
}

TEST_CASE("device: norms", "[device]") {
  const Comparison both;
  if (!both) return;
  for_each_shape([&](const Shape& shape) {
    Random random(1);
    const Numbers x = random.uniform(shape, -3, 5), positive = random.uniform(shape, 0, 1);
    for (const std::int64_t group : {shape[2], shape.row_size()}) {
      const Numbers weight = random.uniform({group});
      for (const float offset : {0.0F, 1.0F}) {
        compare_step(both, with("rms_norm", {{"group", group}, {"offset", offset}}), x,
                     [&](Side& s, Tensor y, ConstTensor in) { s->rms_norm(y, in, s.in(weight), 1e-5F, offset); });
      }
      compare_step(both, with("rms_norm_plain", {{"group", group}}), x,
                   [&](Side& s, Tensor y, ConstTensor in) { s->rms_norm_plain(y, in, group, 1e-5F); });
    }
    compare_step(both, "l2_norm", x, [](Side& s, Tensor y, ConstTensor in) { s->l2_norm(y, in); });
    compare_step(both, "l2_norm of zeros", Numbers(shape), [](Side& s, Tensor y, ConstTensor in) { s->l2_norm(y, in); });
    compare_step(both, "sum_norm", positive, [](Side& s, Tensor y, ConstTensor in) { s->sum_norm(y, in, 1e-4F); });
  });
}

TEST_CASE("device: softmax, with nothing allowed and with NaN", "[device]") {
  const Comparison both;
  if (!both) return;
  const auto compare = [&](const Numbers& x) {
    for (const float temperature : {1.0F, 0.0F, 3.0F}) {
      compare_step(both, with("softmax", {{"temperature", temperature}}), x,
                   [&](Side& s, Tensor y, ConstTensor in) { s->softmax(y, in, temperature); });
    }
  };
  for_each_shape([&](const Shape& shape) { compare(Random(1).uniform(shape, -20, 20)); });
  for (const std::int64_t n : {1, 3, 33, 1000, 5000}) {
    Numbers x = Random(1).uniform({4, n}, -20, 20);
    std::fill_n(x.row(1), n, -infinity);
    x.row(2)[n / 2] = -infinity;
    x.row(3)[n / 2] = std::nanf("");
    both(with("softmax of rows of −∞ and NaN", {{"n", n}}), [&](Side& s) { s->softmax(s.out(x.shape), s.in(x)); });
  }
}

TEST_CASE("device: activations, gates and sums", "[device]") {
  const Comparison both;
  if (!both) return;
  for_each_shape([&](const Shape& shape) {
    Random random(1);
    const Numbers a = random.uniform(shape, -3, 3), b = random.uniform(shape, -30, 30), small = random.uniform(shape, -1e-3F, 1e-3F);
    for (const Activation act : activations) {
      const double number = static_cast<double>(act);
      const auto activate = [&](Side& s, Tensor y, ConstTensor x) { s->activate(y, x, act); };
      compare_step(both, with("activate", {{"act", number}}), b, activate);
      compare_step(both, with("activate, small", {{"act", number}}), small, activate);
      compare_step(both, with("gate", {{"act", number}}), a, [&](Side& s, Tensor y, ConstTensor x) { s->gate(y, x, s.in(b), act); });
      compare_step(both, with("gate, second operand", {{"act", number}}), b,
                   [&](Side& s, Tensor y, ConstTensor x) { s->gate(y, s.in(a), x, act); });
    }
    for (const float factor : {1.0F, -0.3F}) {
      compare_step(both, with("add", {{"factor", factor}}), a, [&](Side& s, Tensor y, ConstTensor x) { s->add(y, x, s.in(b), factor); });
      compare_step(both, with("add, second operand", {{"factor", factor}}), b,
                   [&](Side& s, Tensor y, ConstTensor x) { s->add(y, s.in(a), x, factor); });
    }
  });
  Numbers extremes(Shape{1, 9}, {0, -0.0F, 88, -88, 1000, -1000, infinity, -infinity, std::nanf("")});
  for (const Activation act : {Activation::relu, Activation::sigmoid, Activation::elu_plus_one, Activation::exp}) {
    both(with("activate, extremes", {{"act", static_cast<double>(act)}}),
         [&](Side& s) { s->activate(s.out(extremes.shape), s.in(extremes), act); });
  }
}

TEST_CASE("device: heads scaled and divided, gates from logits, rotations", "[device]") {
  const Comparison both;
  if (!both) return;
  for_each_shape([&](const Shape& shape) {
    Random random(1);
    const std::int64_t T = shape[0], H = shape[1], K = shape[2];
    const Numbers x = random.uniform(shape), per_head = random.uniform({T, H}), per_token = random.uniform({T, 1}),
                  divisor = random.uniform({T, H}, 0.5F, 2), logits = random.uniform(shape, -40, 40), log_f = random.uniform(shape, -8, 0);
    compare_step(both, "scale_heads, per head", x, [&](Side& s, Tensor y, ConstTensor in) { s->scale_heads(y, in, s.in(per_head), 0.3F); });
    compare_step(both, "scale_heads, per token", x, [&](Side& s, Tensor y, ConstTensor in) { s->scale_heads(y, in, s.in(per_token)); });
    compare_step(both, "divide_heads", x, [&](Side& s, Tensor y, ConstTensor in) { s->divide_heads(y, in, s.in(divisor), 1e-4F); });
    for (const float clamp_min : {-infinity, -0.05F}) {
      compare_step(both, with("log_sigmoid_decay", {{"clamp_min", clamp_min}}), logits,
                   [&](Side& s, Tensor y, ConstTensor in) { s->log_sigmoid_decay(y, in, 16, clamp_min); });
    }
    compare_step(both, "one_minus_exp", log_f, [](Side& s, Tensor y, ConstTensor in) { s->one_minus_exp(y, in); });
    const std::vector<std::int64_t> firsts = {0, 1000, (std::int64_t{1} << 20) - 2};
    for (const std::int64_t first : firsts) {
      for (const std::int64_t rotary : {K, K / 2}) {
        compare_step(both, with("rope", {{"first", first}, {"rotary", rotary}}), x,
                     [&](Side& s, Tensor y, ConstTensor in) { s->rope(y, in, first, 1e4, rotary); });
        std::vector<float> omega;
        for (std::int64_t j = 0; j < rotary / 2; ++j) omega.push_back(j % 3 == 2 ? 0.0F : 1 / static_cast<float>(1 + j));
        compare_step(both, with("rope with listed frequencies", {{"first", first}, {"rotary", rotary}}), x,
                     [&](Side& s, Tensor y, ConstTensor in) {
                       s->rope(y, in, first, Rotation{omega, 1.25F});
                     });
      }
    }

    const Numbers dt = random.uniform({T, K}, -40, 40), A_log = random.uniform({K}, 0, 2), bias = random.uniform({K}, -5, 5);
    compare_step(both, "gated_delta_decay", dt,
                 [&](Side& s, Tensor y, ConstTensor in) { s->gated_delta_decay(y, in, s.in(A_log), s.in(bias)); });
    const Numbers rate = random.uniform({K / 2}, 0, 2);
    for (const float bound : {0.0F, -5.0F}) {
      if (K % 2 != 0) break;
      compare_step(both, with("gated_delta_decay of two channels a head", {{"bounded", bound < 0}}), dt,
                   [&](Side& s, Tensor y, ConstTensor in) { s->gated_delta_decay(y, in, s.in(rate), s.in(bias), bound); });
    }
    compare_step(both, "softplus_clamp", dt, [&](Side& s, Tensor y, ConstTensor in) { s->softplus_clamp(y, in, s.in(bias), 0.2F, 20); });
    compare_step(both, "softplus_clamp, open", dt,
                 [&](Side& s, Tensor y, ConstTensor in) { s->softplus_clamp(y, in, s.in(bias), 0, infinity); });
  });
}

TEST_CASE("device: choices, renormalised weights and row-sparse keys", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : token_counts) {
    for (const auto& [N, W] : {std::pair{1, 1}, {4, 2}, {4, 4}, {9, 3}, {33, 8}, {300, 5}}) {
      Random random(1);
      Numbers scores = random.uniform({T, N}), gate = random.uniform({T, N}, 0.1F, 1);
      Numbers spoilt = scores;
      for (std::size_t i = 0; i < spoilt.values.size(); i += 3) spoilt.values[i] = i % 2 == 0 ? std::nanf("") : -infinity;
      const std::string name = with("", {{"N", N}, {"W", W}});
      for (const auto& [kind, x] : {std::pair{"", scores}, {" with ties", quantised(scores, 2)}, {" with NaN", spoilt}}) {
        both(named("top_k" + std::string(kind) + name, x.shape), [&, &given = x](Side& s) { s->top_k(s.out_i32({T, W}), s.in(given)); });
      }
      std::vector<std::int32_t> ids(static_cast<std::size_t>(T * W));
      make_cpu_backend()->top_k(Tensor(ids.data(), DType::i32, {T, W}), scores.view());
      compare_step(both, "renormalise" + name, gate, [&](Side& s, Tensor y, ConstTensor x) {
        s->renormalise(y, x, s.in(ids, Shape{T, W}));
      });
    }
  }
  for_each_shape([&](const Shape& shape) {
    Random random(1);
    const Numbers z = random.uniform(shape, -5, 5), log_decay = random.uniform(shape, -1, 0);
    for (const std::int64_t topk : {std::int64_t{1}, std::int64_t{4}, shape[2]}) {
      for (const bool skip : {false, true}) {
        const std::string name = with("row_sparse", {{"topk", topk}, {"skip_decay", skip}});
        const Step step = [&](Side& s, Tensor k, ConstTensor x) { s->row_sparse(k, s.inout(log_decay), x, topk, skip); };
        compare_step(both, name, z, step);
        compare_step(both, name + " with ties", quantised(z, 1), step);
      }
    }
  });
}

TEST_CASE("device: short convolutions over segments", "[device]") {
  const Comparison both;
  if (!both) return;
  std::vector<Packed> all = {mixed_segments, single_row_segments, empty_segments};
  for (const std::int64_t T : token_counts) all.emplace_back(T);
  for (const Packed& segments : all) {
    for (const std::int64_t C : {1, 16, 60, 192}) {
      for (const std::int64_t w : {2, 4, 1}) {
        for (const bool silu : {false, true}) {
          Random random(1);
          const std::int64_t T = segments.rows();
          const Numbers x = random.uniform({T, C}), weight = random.uniform({C, w}), bias = random.uniform({C}),
                        cache = random.uniform({segments.slots, w - 1, C});
          const auto convolve = [&](Side& s, ConstTensor before, Tensor after) {
            s->short_convolution({s.in(x), s.whole(weight), silu ? ConstTensor() : s.in(bias),
                                  silu ? Activation::silu : Activation::identity, segments.view(), before, after, s.out({T, C})});
          };
          const std::string name =
              with("short_convolution " + x.shape.to_string(), {{"segments", segments.view().count()}, {"w", w}, {"silu", silu}});
          both(name, [&](Side& s) {
            const ConstTensor before = s.whole(cache);
            convolve(s, before, s.out_whole(cache.shape));
          });
          both(name + ", in place", [&](Side& s) {
            const Tensor state = s.inout_whole(cache);
            convolve(s, state, state);
          });
        }
      }
    }
  }
}

TEST_CASE("device: swiglu", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const DType dtype : weight_types) {
    for (const std::int64_t T : product_rows) {
      for (const auto& [D, I] : {std::pair{60, 37}, {64, 128}}) {
        Random random(1);
        const Numbers x = random.uniform({T, D});
        const StoredWeight gate(random, dtype, {I, D}), up(random, dtype, {I, D}), down(random, dtype, {D, I});
        both(with("swiglu " + x.shape.to_string() + " " + std::string(name_of(dtype)), {{"inner", I}}), [&](Side& s) {
          s->swiglu(s.out(x.shape), s.in(x), s.weight(gate.view()), s.weight(up.view()), s.weight(down.view()), s.workspace());
        });
      }
    }
  }
}

}  // namespace statescope::device_test
