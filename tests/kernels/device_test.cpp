// Every operation of kernels/backend.h on a CUDA device against the CPU, over awkward shapes.
#include <functional>
#include <sstream>

#include "tests/kernels/device_cases.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::device_test {
using namespace statescope::testing;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr double memory_tolerance = 1e-4;

const std::vector<std::int64_t> token_counts = {1, 2, 63, 64, 65, 300}, widths = {16, 60, 64, 128}, head_counts = {1, 3};
const std::vector<Activation> activations = {Activation::identity, Activation::silu, Activation::relu, Activation::sigmoid,
                                             Activation::elu_plus_one};

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
std::string with(const std::string& name, std::initializer_list<std::pair<const char*, double>> settings) {
  std::ostringstream text;
  text << name;
  for (const auto& [key, value] : settings) text << ", " << key << ' ' << value;
  return text.str();
}

/// y from x; then the same with y in x's place.
using Step = std::function<void(Side&, Tensor y, ConstTensor x)>;
void compare_step(const Comparison& both, const std::string& name, const Numbers& x, const Step& step) {
  both(named(name, x.shape), [&](Side& s) { step(s, s.out(x.shape), s.in(x)); });
  both(named(name, x.shape) + ", in place", [&](Side& s) {
    const Tensor y = s.inout(x);
    step(s, y, y);
  });
}

/// Bits of plausible weights, of any float type.
struct StoredWeight {
  DType dtype;
  Shape shape;
  std::vector<float> floats;
  std::vector<std::uint16_t> halves;

  StoredWeight(Random& random, DType dtype_, const Shape& shape_) : dtype(dtype_), shape(shape_) {
    if (dtype == DType::f32) floats = random.uniform(shape).values;
    for (std::int64_t i = 0; dtype != DType::f32 && i < shape.size(); ++i) {
      const std::int64_t one = dtype == DType::f16 ? 0x3C00 : 0x3F80, sign = random.below(2) << 15;
      halves.push_back(static_cast<std::uint16_t>(sign | (one - random.below(dtype == DType::f16 ? 0x1000 : 0x200))));
    }
  }
  ConstTensor view() const { return {floats.empty() ? static_cast<const void*>(halves.data()) : floats.data(), dtype, shape}; }
};
const std::vector<DType> weight_types = {DType::f32, DType::f16, DType::bf16};

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

/// How strong a decay is: drawn from [low, high]; in a `broken` one every fifth entry is −1100, and every eleventh −∞.
struct Strength {
  const char* name;
  float low, high;
  bool broken;
};
constexpr Strength mild{"mild", -0.2F, 0, false}, strong{"strong", -6, -4, false}, broken{"broken", -0.2F, 0, true};

Numbers decays(Random& random, const Shape& shape, Strength strength) {
  Numbers x = random.uniform(shape, strength.low, strength.high);
  for (std::size_t i = 0; strength.broken && i < x.values.size(); ++i) {
    if (i % 5 == 2) x.values[i] = -1100;
    if (i % 11 == 7) x.values[i] = -infinity;
  }
  return x;
}

const Packed mixed_lengths({5, 0, 1, 70, 17}, {6, 2, 0, 3, 5}, 7);
const Packed single_rows({1, 0, 1, 1}, {2, 0, 4, 1}, 5);
const Packed no_rows({0, 0}, {1, 0}, 3);

/// The step form where it is possible, for it is what the CPU takes for a token.
std::int64_t chunk_size(const Packed& segments) { return segments.rows() <= 3 && segments.cu_seqlens.size() > 2 ? 0 : 64; }

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
        both("linear of some outputs " + shapes,
             [&](Side& s) { s->linear(s.out({T, (out + 1) / 2}), s.in(x), s.weight(weight.view()).slice(out / 2, (out + 1) / 2)); });
      }
    }
  }
  Random random(1);
  // A weight that is widened in two tiles.
  const Numbers x = random.uniform({9, 2048}), bias = random.uniform({4100});
  const StoredWeight large(random, DType::f16, {4100, 2048});
  both("linear with bias " + product_name(x, large),
       [&](Side& s) { s->linear(s.out({9, 4100}), s.in(x), s.weight(large.view()), s.in(bias)); });

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
        both("linear " + product_name(x, weight), [&](Side& s) { s->linear(s.out({T, out}), s.in(x), s.weight(weight.view())); }, rounding);
        // Of numbers that bfloat16 holds nothing is lost.
        if (dtype != DType::bf16) continue;
        both("linear of whole numbers, with bias " + product_name(x, weight),
             [&](Side& s) { s->linear(s.out({T, out}), s.in(quantised(x, 8)), s.weight(weight.view()), s.in(bias)); });
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
        both("linear with bias " + product_name(x, weight),
             [&](Side& s) { s->linear(s.out({T, out}), s.in(x), s.weight(weight.view()), s.in(bias)); });
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
  for (const Activation act : {Activation::relu, Activation::sigmoid, Activation::elu_plus_one}) {
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
      }
    }

    const Numbers dt = random.uniform({T, K}, -40, 40), A_log = random.uniform({K}, 0, 2), bias = random.uniform({K}, -5, 5);
    compare_step(both, "gated_delta_decay", dt,
                 [&](Side& s, Tensor y, ConstTensor in) { s->gated_delta_decay(y, in, s.in(A_log), s.in(bias)); });
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
      compare_step(both, "renormalise" + name, gate,
                   [&](Side& s, Tensor y, ConstTensor x) { s->renormalise(y, x, s.in(ids, Shape{T, W})); });
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
  std::vector<Packed> all = {mixed_lengths, single_rows, no_rows};
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

namespace {

/// run(Side&, initial, final): with a state of its own for the result, then in place.
template <class Run>
void compare_memory(const Comparison& both, const std::string& name, const Numbers& initial, const Run& run) {
  both(
      name,
      [&](Side& s) {
        const ConstTensor before = s.whole(initial);
        run(s, before, s.out_whole(initial.shape));
      },
      memory_tolerance);
  both(
      name + ", in place",
      [&](Side& s) {
        const Tensor state = s.inout_whole(initial);
        run(s, state, state);
      },
      memory_tolerance);
}

enum class Kind { absent, per_head, per_channel, per_column };
constexpr const char* kind_names[] = {"absent", "per head", "per channel", "per column"};

struct Heads {
  std::int64_t state, q, k, v, decay;
};
Heads same(std::int64_t H) { return {H, H, H, H, H}; }

std::string memory_name(const char* memory, const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V) {
  return with(memory, {{"rows", segments.rows()},
                       {"segments", segments.view().count()},
                       {"H", heads.state},
                       {"Hq", heads.q},
                       {"Hk", heads.k},
                       {"Hv", heads.v},
                       {"Hd", heads.decay},
                       {"K", K},
                       {"V", V}});
}

void compare_outer_product(const Comparison& both, const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V, Kind kind,
                           Strength strength) {
  Random random(1);
  const std::int64_t T = segments.rows();
  const Numbers q = random.uniform({T, heads.q, K}), k = random.uniform({T, heads.k, K}), v = random.uniform({T, heads.v, V}),
                initial = random.uniform({segments.slots, heads.state, K, V});
  Shape shape{T, heads.decay};
  if (kind == Kind::per_channel) shape.push_back(K);
  if (kind == Kind::per_column) shape.push_back(V);
  const Numbers log_decay = decays(random, shape, strength);
  const std::string name = memory_name("decayed_outer_product", segments, heads, K, V) + ", decay " +
                           kind_names[static_cast<std::size_t>(kind)] + ", " + strength.name;
  compare_memory(both, name, initial, [&](Side& s, ConstTensor before, Tensor after) {
    DecayedOuterProduct op;
    op.q = s.in(q), op.k = s.in(k), op.v = s.in(v);
    if (kind != Kind::absent) op.log_decay = s.in(log_decay);
    if (kind == Kind::per_column) op.decay_axis = DecayAxis::columns;
    op.scale = 0.5F, op.segments = segments.view();
    op.initial_state = before, op.final_state = after, op.o = s.out({T, heads.state, V});
    s->decayed_outer_product(op, chunk_size(segments));
  });
}

void compare_delta_rule(const Comparison& both, const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V,
                        const Strength* strength, bool has_beta = true, bool unit = false) {
  Random random(1);
  const std::int64_t T = segments.rows();
  const Numbers q = random.uniform({T, heads.q, K}), k = l2_normalized(random.uniform({T, heads.k, K}), K),
                v = random.uniform({T, heads.v, V}), beta = random.uniform({T, heads.v}, 0, 2),
                initial = random.uniform({segments.slots, heads.state, K, V}),
                log_decay = decays(random, {T, heads.decay}, strength ? *strength : mild);
  const std::string name = memory_name("gated_delta_rule", segments, heads, K, V) + ", decay " + (strength ? strength->name : "absent") +
                           (has_beta ? "" : ", without beta") + (unit ? ", of unit length" : "");
  compare_memory(both, name, initial, [&](Side& s, ConstTensor before, Tensor after) {
    GatedDeltaRule op;
    op.q = s.in(q), op.k = s.in(k), op.v = s.in(v);
    if (strength) op.log_decay = s.in(log_decay);
    if (has_beta) op.beta = s.in(beta);
    op.scale = 0.5F, op.segments = segments.view();
    op.initial_state = before, op.final_state = after, op.o = s.out({T, heads.state, V});
    unit ? s->unit_delta_rule(op, chunk_size(segments), s.workspace()) : s->gated_delta_rule(op, chunk_size(segments));
  });
}

}  // namespace

TEST_CASE("device: decayed outer product", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const Kind kind : {Kind::absent, Kind::per_head, Kind::per_channel, Kind::per_column}) {
    for (const std::int64_t T : token_counts) {
      for (const std::int64_t K : widths) {
        for (const std::int64_t H : head_counts) compare_outer_product(both, Packed(T), same(H), K, K, kind, mild);
      }
      for (const Strength& strength : {strong, broken}) {
        if (kind != Kind::absent) compare_outer_product(both, Packed(T), same(3), 60, 60, kind, strength);
      }
    }
    for (const auto& [K, V] : {std::pair{60, 1}, {1, 60}, {16, 128}, {128, 20}, {100, 256}, {256, 256}, {300, 36}}) {
      for (const std::int64_t T : {1, 65}) compare_outer_product(both, Packed(T), same(3), K, V, kind, mild);
    }
    for (const Heads& heads : {Heads{4, 2, 4, 1, 2}, Heads{6, 3, 2, 6, 1}})
      compare_outer_product(both, Packed(1), heads, 60, 20, kind, mild);
    for (const Heads& heads : {Heads{4, 2, 4, 1, 2}, Heads{4, 4, 1, 2, 4}, Heads{6, 3, 2, 6, 1}}) {
      for (const Packed* segments : {&mixed_lengths, &single_rows, &no_rows}) {
        for (const Strength& strength : {mild, strong, broken}) compare_outer_product(both, *segments, heads, 60, 20, kind, strength);
      }
    }
  }
}

TEST_CASE("device: decayed outer product with one decay for all rows", "[device]") {
  const Comparison both;
  if (!both) return;
  Random random(1);
  const std::int64_t T = 65, H = 3, K = 16, V = 60;
  const Numbers q = random.uniform({T, H, K}), k = random.uniform({T, H, K}), v = random.uniform({T, H, V}),
                log_decay = random.uniform({1, H}, -0.2F, 0), initial = random.uniform({1, H, K, V});
  const Packed segments(T);
  compare_memory(both, "decayed_outer_product, decay repeated", initial, [&](Side& s, ConstTensor before, Tensor after) {
    DecayedOuterProduct op;
    op.q = s.in(q), op.k = s.in(k), op.v = s.in(v), op.log_decay = s.repeated(log_decay, T);
    op.segments = segments.view(), op.initial_state = before, op.final_state = after, op.o = s.out({T, H, V});
    s->decayed_outer_product(op, 64);
  });
}

TEST_CASE("device: gated delta rule", "[device]") {
  const Comparison both;
  if (!both) return;
  const std::vector<const Strength*> strengths = {nullptr, &mild, &strong, &broken};
  for (const Strength* strength : strengths) {
    for (const std::int64_t T : token_counts) {
      for (const std::int64_t K : widths) {
        for (const std::int64_t H : head_counts) compare_delta_rule(both, Packed(T), same(H), K, K, strength);
      }
    }
    for (const auto& [K, V] : {std::pair{60, 1}, {1, 60}, {16, 128}, {128, 20}, {100, 256}, {256, 256}, {300, 36}}) {
      for (const std::int64_t T : {1, 65}) compare_delta_rule(both, Packed(T), same(3), K, V, strength);
      compare_delta_rule(both, Packed(1), same(3), K, V, strength, true, true);
    }
    compare_delta_rule(both, Packed(1), Heads{6, 3, 3, 2, 6}, 60, 20, strength);
    for (const Heads& heads : {Heads{4, 2, 2, 4, 4}, Heads{4, 4, 4, 2, 1}, Heads{6, 3, 3, 2, 6}}) {
      for (const Packed* segments : {&mixed_lengths, &single_rows, &no_rows}) {
        compare_delta_rule(both, *segments, heads, 60, 20, strength);
        compare_delta_rule(both, *segments, heads, 60, 20, strength, false);
        compare_delta_rule(both, *segments, heads, 60, 20, strength, true, true);
      }
    }
  }
}

namespace {

struct Attention {
  std::vector<std::int32_t> queries, keys;  // of each segment
  std::int64_t H, Hkv, d, V;
  std::int64_t window = 0;
  BlockTopK blocks = {};
};

/// With and without the choice of blocks as a result.
void compare_attention(const Comparison& both, const Attention& a) {
  Random random(1);
  const Packed queries(a.queries, {}, 0), keys(a.keys, {}, 0);
  const Numbers q = random.uniform({queries.rows(), a.H, a.d}), k = random.uniform({keys.rows(), a.Hkv, a.d}),
                v = random.uniform({keys.rows(), a.Hkv, a.V});
  const bool step = *std::max_element(a.queries.begin(), a.queries.end()) <= 1;
  const std::string name = with("softmax_attention", {{"queries", queries.rows()},
                                                      {"keys", keys.rows()},
                                                      {"segments", queries.view().count()},
                                                      {"H", a.H},
                                                      {"Hkv", a.Hkv},
                                                      {"d", a.d},
                                                      {"V", a.V},
                                                      {"window", a.window},
                                                      {"block size", a.blocks.block_size},
                                                      {"topk", a.blocks.topk},
                                                      {"until", a.blocks.until}});
  for (const bool selected : {false, true}) {
    if (selected && a.blocks.topk <= 1) continue;
    both(name + (selected ? ", selected blocks" : ""), [&](Side& s) {
      SoftmaxAttention op;
      op.q = s.in(q), op.k = s.in(k), op.v = s.in(v);
      op.scale = 0.4F, op.window = a.window, op.blocks = a.blocks;
      op.segments = queries.view(), op.cu_seqlens_k = keys.cu_seqlens;
      op.o = s.out({queries.rows(), a.H, a.V});
      if (selected) op.selected_blocks = s.out_i32({queries.rows(), a.H, a.blocks.topk - 1});
      s->softmax_attention(op, step ? 0 : 64);
    });
  }
}

}  // namespace

TEST_CASE("device: softmax attention, full and with a window", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : token_counts) {
    const auto n = static_cast<std::int32_t>(T);
    for (const std::int64_t d : widths) {
      for (const std::int64_t H : head_counts) compare_attention(both, {{n}, {n}, H, 1, d, d});
    }
    for (const std::int64_t window : {1, 5, 64, 1000}) compare_attention(both, {{n}, {n}, 3, 3, 60, 60, window});
    for (const auto& [d, V] : {std::pair{60, 1}, {1, 60}, {16, 128}, {256, 256}, {20, 300}}) {
      compare_attention(both, {{n}, {n + 100}, 4, 2, d, V});
    }
  }
  for (const std::int64_t Hkv : {1, 3, 6}) {
    for (const std::int64_t window : {0, 30}) {
      compare_attention(both, {{5, 0, 1, 70, 0, 17}, {5, 9, 200, 70, 0, 150}, 6, Hkv, 20, 12, window});
      compare_attention(both, {{1, 0, 1, 1, 1}, {300, 9, 1, 64, 1025}, 6, Hkv, 60, 60, window});
      compare_attention(both, {{8, 3, 0}, {300, 3, 0}, 6, Hkv, 128, 257, window});
      compare_attention(both, {{0, 0}, {3, 0}, 6, Hkv, 16, 16, window});
    }
  }
}

TEST_CASE("device: softmax attention over chosen blocks", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const BlockTopK& blocks : {BlockTopK{16, 3, 1000}, BlockTopK{16, 3, 100}, BlockTopK{7, 5, 133}, BlockTopK{150, 2, 299},
                                  BlockTopK{1, 4, 1000}, BlockTopK{16, 100, 1000}, BlockTopK{1, 290, 1000}, BlockTopK{64, 2, 64},
                                  BlockTopK{4, 1, 1000}, BlockTopK{0, 3, 1000}, BlockTopK{4, 3, 0}, BlockTopK{512, 3, 1000}}) {
    compare_attention(both, {{300, 0, 1, 47}, {300, 9, 200, 150}, 4, 2, 16, 12, 0, blocks});
    compare_attention(both, {{65}, {333}, 3, 1, 60, 130, 0, blocks});
    compare_attention(both, {{1, 0, 1, 1}, {300, 9, 1, 64}, 4, 2, 60, 60, 0, blocks});
    compare_attention(both, {{7}, {290}, 3, 3, 128, 257, 0, blocks});
  }
}

TEST_CASE("device: equal scores choose the same blocks", "[device]") {
  const Comparison both;
  if (!both) return;
  const std::vector<std::int32_t> cu_seqlens{0, 100};
  for (const std::int32_t queries : {100, 5}) {
    const std::vector<std::int32_t> cu_seqlens_q{0, queries};
    const Numbers q({queries, 2, 16}), k = Random(1).uniform({100, 1, 16}), v = Random(2).uniform({100, 1, 16});
    both(with("softmax_attention, ties", {{"queries", queries}}), [&](Side& s) {
      SoftmaxAttention op;
      op.q = s.in(q), op.k = s.in(k), op.v = s.in(v), op.blocks = {8, 4, 1000};
      op.segments = {cu_seqlens_q, {}}, op.cu_seqlens_k = cu_seqlens;
      op.o = s.out({queries, 2, 16}), op.selected_blocks = s.out_i32({queries, 2, 3});
      s->softmax_attention(op, 64);
    });
  }
}

namespace {

struct Sparse {
  std::vector<std::int32_t> cu_seqlens;
  bool delta_rule;
  std::int64_t N, writers, readers;
  GatePlace place = GatePlace::before_l2;
  bool gate_q = true, gate_k = true;
};

void compare_sparse_state(const Comparison& both, const Sparse& c, std::int64_t H, std::int64_t K, std::int64_t V) {
  Random random(1);
  const std::int64_t T = c.cu_seqlens.back(), S = static_cast<std::int64_t>(c.cu_seqlens.size()) - 1, W = std::max(c.writers, c.readers);
  const Numbers q = random.uniform({T, 2, H, K}), k = random.uniform({T, 2, H, K}), v = random.uniform({T, H, V}),
                log_decay = c.delta_rule ? random.uniform({T, 2, H}, -0.5F, 0) : random.uniform({T, 2, H, K}, -0.5F, 0),
                beta = random.uniform({T, 2, H}, 0, 1), gate = random.uniform({T, c.N}, 0.05F, 1),
                initial = random.uniform({S * (1 + c.N), H, K, V});
  std::vector<std::int32_t> selected(static_cast<std::size_t>(T * W));
  make_cpu_backend()->top_k(Tensor(selected.data(), DType::i32, {T, W}), gate.view());
  const std::string name = with("sparse_state", {{"T", T},
                                                 {"sequences", S},
                                                 {"delta rule", c.delta_rule},
                                                 {"N", c.N},
                                                 {"writers", c.writers},
                                                 {"readers", c.readers},
                                                 {"after L2", c.place == GatePlace::after_l2},
                                                 {"gates", c.gate_q},
                                                 {"H", H},
                                                 {"K", K},
                                                 {"V", V}});
  compare_memory(both, name, initial, [&](Side& s, ConstTensor before, Tensor after) {
    SparseState op;
    op.q = s.in(q), op.k = s.in(k), op.v = s.in(v), op.log_decay = s.in(log_decay), op.gate = s.in(gate);
    if (c.delta_rule) op.beta = s.in(beta);
    op.selected = s.in(selected, Shape{T, W});
    op.writers = c.writers, op.readers = c.readers, op.gate_q = c.gate_q, op.gate_k = c.gate_k, op.gate_place = c.place;
    op.write_scale = 0.5F, op.scale = 0.5F, op.cu_seqlens = c.cu_seqlens;
    op.initial_state = before, op.final_state = after, op.o = s.out({T, H, V});
    s->sparse_state(op, T == S ? 0 : 64, s.workspace());
  });
}

/// Pairs and routing made on the way into the states.
void compare_routed_state(const Comparison& both, std::int64_t T, bool delta_rule, bool softmax, bool by_logits, std::int64_t N) {
  Random random(1);
  constexpr std::int64_t H = 3, K = 40, V = 36, writers = 2, readers = 3;
  const Numbers v = random.uniform({T, H, V}), beta = random.uniform({T, 2, H}, 0, 1), logits = random.uniform({T, N}, -3, 3),
                log_decay = delta_rule ? random.uniform({T, 2, H}, -0.5F, 0) : random.uniform({T, 2, H, K}, -0.5F, 0),
                initial = random.uniform({1 + N, H, K, V});
  const std::vector<Numbers> rows{random.uniform({T, H * K}, -2, 2), random.uniform({T, H * K}, -2, 2), random.uniform({T, H * K}, -2, 2)};
  const std::string name = with("sparse state and its sources",
                                {{"T", T}, {"delta rule", delta_rule}, {"softmax", softmax}, {"by logits", by_logits}, {"N", N}});
  compare_memory(both, name, initial, [&](Side& s, ConstTensor before, Tensor after) {
    const auto pair = [&](int first, bool softmax_too) {
      return SparsePair{s.out_whole({T, 2, H, K}), s.in(rows[0]), s.in(rows[static_cast<std::size_t>(first)]), s.in(rows[2]),
                        Activation::silu,          softmax_too};
    };
    const SparseSources from{pair(1, false), pair(0, softmax), s.in(logits), s.out_whole({T, N}), s.out_i32({T, 3}), by_logits};
    const std::vector<std::int32_t> all{0, static_cast<std::int32_t>(T)};
    SparseState op;
    op.q = from.q.pair, op.k = from.k.pair, op.v = s.in(v), op.log_decay = s.in(log_decay), op.gate = from.gate;
    if (delta_rule) op.beta = s.in(beta);
    op.selected = from.selected, op.writers = writers, op.readers = readers, op.cu_seqlens = all;
    op.initial_state = before, op.final_state = after, op.o = s.out({T, H, V});
    s->sparse_state(op, from, T == 1 ? 0 : 64, s.workspace());
  });
}

}  // namespace

TEST_CASE("device: sparse state and what it is made of", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : {1, 7}) {
    for (const bool delta_rule : {false, true}) {
      for (const bool softmax : {false, true}) {
        for (const bool by_logits : {false, true}) {
          for (const std::int64_t N : {4, 70, 300}) compare_routed_state(both, T, delta_rule, softmax, by_logits, N);
        }
      }
    }
  }
}

TEST_CASE("device: sparse state", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const bool delta_rule : {false, true}) {
    for (const std::int64_t T : token_counts) {
      const auto n = static_cast<std::int32_t>(T);
      for (const GatePlace place : {GatePlace::before_l2, GatePlace::after_l2}) {
        compare_sparse_state(both, {{0, n}, delta_rule, 4, 1, 1, place}, 3, 60, 60);
        compare_sparse_state(both, {{0, n, n, n + 5}, delta_rule, 4, 2, 2, place}, 1, 16, 64);
      }
    }
    for (const auto& [writers, readers] : {std::pair{1, 3}, {3, 1}, {0, 2}, {2, 0}}) {
      compare_sparse_state(both, {{0, 1}, delta_rule, 9, writers, readers}, 2, 64, 128);
      compare_sparse_state(both, {{0, 1}, delta_rule, 9, writers, readers, GatePlace::after_l2, false, false}, 2, 150, 36);
      compare_sparse_state(both, {{0, 30, 41}, delta_rule, 9, writers, readers}, 2, 64, 128);
      compare_sparse_state(both, {{0, 30, 41}, delta_rule, 9, writers, readers, GatePlace::after_l2, false, false}, 2, 64, 128);
    }
    compare_sparse_state(both, {{0, 1, 2, 3}, delta_rule, 4, 2, 2}, 3, 60, 60);
    compare_sparse_state(both, {{0, 1300, 2500}, delta_rule, 4, 2, 3}, 1, 16, 16);
    // More runs than a block has threads, and more than the device sorts.
    for (const std::int32_t sequences : {300, 1000}) {
      std::vector<std::int32_t> cu_seqlens{0};
      for (std::int32_t a = 0; a < sequences; ++a) cu_seqlens.push_back(cu_seqlens.back() + a % 4);
      compare_sparse_state(both, {cu_seqlens, delta_rule, 9, 2, 2}, 1, 16, 16);
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
