// Products that are made together (projection.h) on a CUDA device against the CPU.
#include <array>
#include <limits>

#include "tests/kernels/device_cases.h"

namespace statescope::device_project_test {
using namespace statescope::testing;

namespace {

constexpr double tolerance = 2e-5;

/// Bits of plausible weights of any float type.
struct Weights {
  DType dtype;
  Shape shape;
  std::vector<std::uint32_t> words;

  Weights(Random& random, DType dtype_, const Shape& shape_) : dtype(dtype_), shape(shape_) {
    const Numbers numbers = random.uniform(shape);
    words.resize(static_cast<std::size_t>(shape.size()));
    auto* halves = reinterpret_cast<std::uint16_t*>(words.data());
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(numbers.values[i]);
      constexpr std::uint16_t one_half = 0x3800, sign = 0x8000;
      if (dtype == DType::f32) words[i] = bits;
      if (dtype == DType::bf16) halves[i] = static_cast<std::uint16_t>(bits >> 16);
      if (dtype == DType::f16) halves[i] = static_cast<std::uint16_t>(one_half | (bits >> 16 & sign) | (bits >> 10 & 0x3FF));
    }
  }
  ConstTensor view() const { return {words.data(), dtype, shape}; }
};

std::string named(const char* what, std::int64_t T, std::int64_t in, std::int64_t out, DType dtype) {
  return std::string(what) + " [" + std::to_string(T) + ", " + std::to_string(in) + "] to " + std::to_string(out) + ", " +
         std::string(name_of(dtype));
}

/// visit(T, in, dtype): rows of weights that are 16-byte vectors and others, short ones and long ones.
template <class Visit>
void for_each_case(const Visit& visit) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t T : {1, 3}) {
      for (const std::int64_t in : {16, 60, 64, 128, 136, 256, 2051, 2304, 5632}) visit(T, in, dtype);
    }
  }
}

}  // namespace

TEST_CASE("device: several products of one row, and what is made of them", "[device]") {
  const Comparison both;
  if (!both) return;
  for_each_case([&](std::int64_t T, std::int64_t in, DType dtype) {
    for (const std::int64_t out : {1, 5, 64, 77}) {
      Random random(1);
      const Numbers x = random.uniform({T, in}), other_x = random.uniform({T, 64}), bias = random.uniform({out}),
                    addend = random.uniform({T, out}), more = random.uniform({out}), taps = random.uniform({out, 4}),
                    cache = random.uniform({1, 3, out}), long_taps = random.uniform({out, 6}), long_cache = random.uniform({1, 5, out});
      const Weights w(random, dtype, {out, in}), other(random, dtype, {out, 64});
      both(
          named("project", T, in, out, dtype),
          [&](Side& s) {
            const ConstTensor rows = s.in(x), weight = s.weight(w.view());
            const Tensor sum = s.inout(addend);
            const std::vector<Projection> all{
                {rows, {}, weight, {}, s.out({T, out}), {}, {}},
                {rows, {}, weight, s.in(bias), s.out({T, out}), Activate{Activation::silu, s.in(addend)}, s.out({T, out})},
                {rows, {}, weight, {}, sum, Activate{Activation::identity, sum}, {}},
                {s.in(other_x), {}, s.weight(other.view()), s.in(bias), s.out({T, out}), ForgetGate{16, -0.1F}, {}},
                {rows, {}, weight, {}, s.out({T, out}), DeltaDecay{s.in(bias), s.in(more)}, s.out({T, out})},
                {rows,
                 {},
                 weight,
                 {},
                 s.out({T, out}),
                 Convolve{s.whole(taps), s.in(bias), Activation::silu, s.inout_whole(cache)},
                 s.out({T, out})}};
            s->project(all, s.workspace());
          },
          tolerance);
      both(
          named("project and convolve with six taps", T, in, out, dtype),
          [&](Side& s) {
            const Projection one{s.in(x),
                                 {},
                                 s.weight(w.view()),
                                 {},
                                 s.out({T, out}),
                                 Convolve{s.whole(long_taps), {}, Activation::identity, s.inout_whole(long_cache)},
                                 s.out({T, out})};
            s->project(std::span(&one, 1), s.workspace());
          },
          tolerance);
    }
  });
}

TEST_CASE("device: a row's norm and gate on its way into products", "[device]") {
  const Comparison both;
  if (!both) return;
  for_each_case([&](std::int64_t T, std::int64_t in, DType dtype) {
    for (const std::int64_t group : {in, std::int64_t{128}, std::int64_t{16}}) {
      if (in % group != 0) continue;
      Random random(1);
      constexpr std::int64_t out = 37;
      const Numbers x = random.uniform({T, in}), gate = random.uniform({T, in}), norm = random.uniform({group});
      const Weights w(random, dtype, {out, in}), up(random, dtype, {out, in}), down(random, dtype, {in, out});
      for (const bool gated : {false, true}) {
        for (const bool weighted : {false, true}) {
          both(
              named(gated ? "gated norm and product" : "norm and product", T, in, out, dtype) + ", groups of " + std::to_string(group),
              [&](Side& s) {
                const InputNorm of{.group = group,
                                   .weight = weighted ? s.in(norm) : ConstTensor{},
                                   .eps = 1e-5F,
                                   .offset = weighted && !gated ? 1.0F : 0.0F,
                                   .gate = gated ? s.in(gate) : ConstTensor{},
                                   .act = Activation::silu};
                const ConstTensor rows = s.in(x), weight = s.weight(w.view());
                const std::vector<Projection> all{{rows, of, weight, {}, s.out({T, out}), {}, {}},
                                                  {rows, {}, weight, {}, s.out({T, out}), {}, {}}};
                s->project(all, s.workspace());
              },
              tolerance);
        }
      }
      both(
          named("norm and swiglu", T, in, out, dtype) + ", groups of " + std::to_string(group),
          [&](Side& s) {
            const Tensor residual = s.inout(x);
            const InputNorm of{.group = group, .weight = s.in(norm), .eps = 1e-5F, .gate = {}};
            s->swiglu(residual, residual, s.weight(w.view()), s.weight(up.view()), s.weight(down.view()), s.workspace(), of, residual);
          },
          2e-4);
    }
  });
}

TEST_CASE("device: more rows of one product than a warp's lanes keep", "[device]") {
  const Comparison both;
  if (!both) return;
  constexpr std::int64_t in = 256;
  for (const std::int64_t out : {34'000, 70'001}) {
    Random random(1);
    const Numbers x = random.uniform({1, in}), norm = random.uniform({in}), bias = random.uniform({out}), addend = random.uniform({1, out});
    const Weights w(random, DType::bf16, {out, in}), up(random, DType::bf16, {out, in}), down(random, DType::bf16, {in, out});
    const InputNorm plain{};
    both(
        named("project", 1, in, out, DType::bf16),
        [&](Side& s) {
          const InputNorm of{.group = in, .weight = s.in(norm), .eps = 1e-5F, .gate = {}};
          const Projection one{
              s.in(x), of, s.weight(w.view()), s.in(bias), s.out({1, out}), Activate{Activation::silu, s.in(addend)}, s.out({1, out})};
          s->project(std::span(&one, 1), s.workspace());
        },
        tolerance);
    both(
        named("swiglu", 1, in, out, DType::bf16),
        [&](Side& s) {
          s->swiglu(s.out({1, in}), s.in(x), s.weight(w.view()), s.weight(up.view()), s.weight(down.view()), s.workspace(), plain, {});
        },
        2e-4);
  }
}

TEST_CASE("device: several products of many rows, and what is made of them", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  constexpr double rounding = 4e-2;
  for (const std::int64_t T : {33, 300}) {
    for (const std::int64_t in : {60, 64, 136, 2048, 2304, 2568}) {
      if (T > 33 && in > 136) continue;
      constexpr std::int64_t out = 72, few = 6;
      Random random(1);
      const Numbers x = random.uniform({T, in}), residual = random.uniform({T, out}), few_residual = random.uniform({T, few}),
                    norm = random.uniform({in}, 0.5F, 1), bias = random.uniform({few}), per_output = random.uniform({few});
      std::vector<Weights> small;
      for (int i = 0; i < 5; ++i) small.emplace_back(random, DType::bf16, Shape{i == 3 ? 16 : few, in});
      const Weights wide(random, DType::bf16, {out, in}), up(random, DType::bf16, {out, in}), down(random, DType::bf16, {out, out});
      const std::string of = " [" + std::to_string(T) + ", " + std::to_string(in) + "]";
      both(
          "project" + of,
          [&](Side& s) {
            const InputNorm before{.group = in, .weight = s.in(norm), .eps = 1e-5F, .offset = 0, .gate = {}};
            const ConstTensor row = s.in(x);
            const auto product = [&](const Weights& w, Tensor y, Finish finish, ConstTensor b = {}) {
              return Projection{row, before, s.weight(w.view()), b, y, finish, {}};
            };
            const Tensor added = s.inout(residual), added_few = s.inout(few_residual);
            Projection with_z = product(small[1], s.out({T, few}), DeltaDecay{s.in(per_output), s.in(bias)}, s.in(bias));
            with_z.z = s.out({T, few});
            const std::array all{product(small[0], s.out({T, few}), Activate{}, s.in(bias)),
                                 product(small[1], s.out({T, few}), DeltaDecay{s.in(per_output), s.in(per_output)}),
                                 product(wide, s.activation_out({T, out}), Activate{Activation::silu, {}}),
                                 product(small[2], s.out({T, few}), Activate{Activation::sigmoid, {}}),
                                 product(small[3], s.out({T, 16}), Activate{}),
                                 product(small[4], s.activation_out({T, few}), Activate{Activation::silu, {}}),
                                 with_z,
                                 product(small[2], added_few, Activate{Activation::sigmoid, added_few}),
                                 product(up, added, Activate{.addend = added})};
            s->project(all, s.workspace());
          },
          rounding);
      both(
          "side by side" + of,
          [&](Side& s) {
            const InputNorm before{.group = in, .weight = s.in(norm), .eps = 1e-5F, .offset = 0, .gate = {}};
            const ConstTensor row = s.in(x), weight = s.weight(wide.view());
            const Tensor y = s.activation_out({T, out});
            const auto product = [&](std::int64_t first, std::int64_t count, Finish finish) {
              return Projection{row, before, weight.slice(first, count), {}, y.columns(first, {count}), finish, {}};
            };
            const std::array all{product(0, 24, {}), product(24, 40, Activate{Activation::silu, {}}), product(64, 8, {})};
            s->project(all, s.workspace());
          },
          rounding);
      both(
          "side by side but for a gap, and a bias" + of,
          [&](Side& s) {
            const Numbers bias_of_eight = Random(2).uniform({8});
            const ConstTensor rows = s.activation(x), weight = s.weight(wide.view());
            const Tensor y = s.activation_out({T, out}), apart = s.activation_out({T, 8});
            const auto product = [&](std::int64_t first, std::int64_t count, Tensor to, ConstTensor b) {
              return Projection{rows, {}, weight.slice(first, count), b, to, {}, {}};
            };
            const std::array all{product(0, 24, y.columns(0, {24}), {}), product(32, 32, y.columns(24, {32}), {}),
                                 product(64, 8, apart, {}), product(24, 8, y.columns(56, {8}), s.in(bias_of_eight)),
                                 product(56, 8, y.columns(64, {8}), {})};
            s->project(all, s.workspace());
          },
          rounding);
      both(
          "swiglu onto a residual" + of,
          [&](Side& s) {
            const Tensor added = s.inout(residual);
            s->swiglu(added, s.in(x), s.weight(wide.view()), s.weight(up.view()), s.weight(down.view()), s.workspace(),
                      {.group = in, .weight = s.in(norm), .eps = 1e-5F, .offset = 0, .gate = {}}, added);
          },
          rounding);
    }
  }
}

TEST_CASE("device: SwiGLU of many bf16 rows", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  constexpr double rounding = 4e-2;  // three products behind each other
  // Rows, inputs and outputs that end within a tile. On 66 clusters: tiles that are all whole, whole and halves (one of them empty), all at
  // once, halves alone; then too few inputs, too few tiles.
  struct Sizes {
    std::int64_t T, in, inner;
  };
  for (const auto& [T, in, inner] :
       {Sizes{1300, 520, 5600}, {1087, 512, 5560}, {8300, 520, 200}, {250, 1032, 4200}, {1024, 448, 5632}, {1025, 512, 1000}}) {
    Random random(1);
    const Numbers x = random.uniform({T, in}), unwritten({T, inner}, std::nanf(""));
    const Weights gate(random, DType::bf16, {inner, in}), up(random, DType::bf16, {inner, in}), down(random, DType::bf16, {in, inner});
    both(
        named("swiglu", T, in, inner, DType::bf16),
        [&](Side& s) {
          {
            const Workspace::Mark mark(s.workspace());
            s->upload(s.workspace().tensor(unwritten.shape), unwritten.view());
          }
          s->swiglu(s.activation_out({T, in}), s.activation(x), s.weight(gate.view()), s.weight(up.view()), s.weight(down.view()),
                    s.workspace());
        },
        rounding, 8);
  }
}

TEST_CASE("device: products of many bf16 rows with short convolutions behind them", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  constexpr double rounding = 4e-2;
  // On 66 clusters: tiles that are all whole, whole and halves, halves alone; the last 1, 2 or 3 rows in a tile, or half of one, of their
  // own; too few tiles, too few inputs.
  struct Sizes {
    std::int64_t T, in, values;
  };
  for (const auto& [T, in, values] : {Sizes{1500, 1032, 896},
                                      {2307, 2056, 896},
                                      {2305, 1024, 896},
                                      {900, 1032, 640},
                                      {1411, 1024, 896},
                                      {1410, 2048, 896},
                                      {1409, 1024, 896},
                                      {1500, 520, 896},
                                      {300, 1024, 896}}) {
    constexpr std::int64_t keys = 512, gates = 384, few = 6, odd = 72;
    Random random(1);
    const Numbers x = random.uniform({T, in}), bias = random.uniform({odd}), unwritten({T, 4096}, std::nanf(""));
    std::vector<Weights> weights;
    std::vector<Numbers> taps, caches;
    for (const std::int64_t out : {keys, keys, values, gates, few, odd}) {
      weights.emplace_back(random, DType::bf16, Shape{out, in});
      taps.push_back(random.uniform({out, 4}));
      caches.push_back(random.uniform({1, 3, out}));
    }
    const auto run = [&](Side& s, bool with_inputs) {
      {
        const Workspace::Mark mark(s.workspace());
        s->upload(s.workspace().tensor(unwritten.shape), unwritten.view());
      }
      const ConstTensor rows = s.activation(x);
      const auto convolved = [&](std::size_t i, ConstTensor b, Activation act) {
        const std::int64_t out = weights[i].shape[0];
        const Tensor room = s.workspace().tensor({T, out}, s->activation_type(T));
        return Projection{rows,
                          {},
                          s.weight(weights[i].view()),
                          {},
                          s.activation_out({T, out}),
                          Convolve{s.whole(taps[i]), b, act, s.inout_whole(caches[i]), room},
                          with_inputs ? s.activation_out({T, out}) : Tensor{}};
      };
      const std::array all{Projection{rows, {}, s.weight(weights[4].view()), {}, s.out({T, few}), Activate{Activation::sigmoid, {}}, {}},
                           convolved(0, {}, Activation::silu),
                           convolved(1, {}, Activation::identity),
                           convolved(5, s.in(bias), Activation::silu),
                           Projection{rows, {}, s.weight(weights[3].view()), {}, s.activation_out({T, gates}), {}, {}},
                           convolved(2, {}, Activation::silu)};
      s->project(all, s.workspace());
    };
    both(
        named("project and convolve", T, in, values, DType::bf16), [&](Side& s) { run(s, false); }, rounding, 8);
    if (T == 300)
      both(
          named("with what is convolved", T, in, values, DType::bf16), [&](Side& s) { run(s, true); }, rounding, 8);
  }
}

TEST_CASE("device: decays from sixteen features with bf16 weights", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : {33, 64, 300}) {
    for (const std::int64_t n : {8, 60, 64, 136}) {
      Random random(1);
      const Numbers x = random.uniform({T, 16}, -3, 3), bias = random.uniform({n}, -9, 9);
      const Weights weight(random, DType::bf16, {n, 16});
      const std::string name = named("low_rank_decay", T, 16, n, DType::bf16);
      both(name, [&](Side& s) { s->low_rank_decay(s.out({T, n}), s.in(x), s.weight(weight.view()), s.in(bias), 16, -0.5F); });
      both(name + ", without bias", [&](Side& s) {
        s->low_rank_decay(s.out({T, n}), s.in(x), s.weight(weight.view()), {}, 16, -std::numeric_limits<float>::infinity());
      });
    }
  }
}

}  // namespace statescope::device_project_test
