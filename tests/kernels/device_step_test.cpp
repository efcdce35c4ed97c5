// Chains of operations on one row, which a device may put together (step_program.h), against the same chains on the CPU.
#include <bit>
#include <cmath>
#include <functional>

#include "tests/kernels/device_cases.h"

namespace statescope {
namespace {

using testing::Numbers;
using testing::Random;

constexpr std::int64_t vectors = 8, heads = 10, head = 64, width = heads * head;
constexpr double tolerance = 1e-3;  // of chains that are tens of operations long

std::uint16_t half_bits(float x, DType dtype) {
  if (dtype == DType::bf16) return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
}

/// A weight of a checkpoint, [rows, columns] of any float type.
struct Stored {
  std::vector<std::uint32_t> words;
  ConstTensor view;

  Stored(Random& random, DType dtype, std::int64_t rows, std::int64_t columns) : words(static_cast<std::size_t>(rows * columns)) {
    const float size = 1 / std::sqrt(static_cast<float>(columns));
    for (std::size_t i = 0; i < words.size(); ++i) {
      const float x = random.uniform(-size, size);
      if (dtype == DType::f32) {
        words[i] = std::bit_cast<std::uint32_t>(x);
      } else {
        reinterpret_cast<std::uint16_t*>(words.data())[i] = half_bits(x, dtype);
      }
    }
    view = ConstTensor(words.data(), dtype, {rows, columns});
  }
};

/// Vectors, weights, a state and a convolution's cache on one backend, all writable ones in one piece of memory.
class Place {
 public:
  Place(Backend& backend, const Numbers& start, const std::vector<Stored>& weights)
      : backend_(backend),
        workspace_(backend),
        memory_(backend.allocate(start.values.size() * sizeof(float))),
        all_(memory_.get(), DType::f32, start.shape) {
    backend_.upload(all_, start.view());
    for (const Stored& weight : weights) weights_.push_back(backend_.adopt(weight.view, owners_.emplace_back()));
  }

  Backend& operator*() { return backend_; }
  Workspace& workspace() { return workspace_; }
  float* numbers(std::int64_t at) { return all_.f32() + at; }
  Tensor vector(std::int64_t i, std::int64_t begin = 0, std::int64_t n = width) { return {numbers(i * width + begin), DType::f32, {1, n}}; }
  Tensor in_heads(std::int64_t i) { return vector(i).with_row({heads, head}); }
  Tensor state() { return {numbers(vectors * width), DType::f32, {1, heads, head, head}}; }
  ConstTensor weight(std::size_t i) const { return weights_[i]; }
  Numbers now() {
    Numbers numbers(all_.shape);
    backend_.download(numbers.view(), all_);
    return numbers;
  }
  static Shape shape() { return {1, vectors * width + heads * head * head}; }

 private:
  Backend& backend_;
  Workspace workspace_;
  Buffer memory_;
  Tensor all_;
  std::vector<Buffer> owners_;
  std::vector<ConstTensor> weights_;
};

/// A random operation, to be done on any backend.
std::function<void(Place&)> operation(Random& random, std::size_t weights) {
  const std::int64_t x = random.below(vectors), y = random.below(2) == 0 ? x : random.below(vectors), z = random.below(vectors);
  const std::int64_t half = random.below(3), begin = half == 2 ? width / 2 : 0, n = half == 0 ? width : width / 2;
  const std::int64_t out = (x + 1 + random.below(vectors - 1)) % vectors;  // not x
  const auto weight = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(weights)));
  constexpr float eps = 1e-2F;
  switch (random.below(16)) {
    case 0:
      return [=](Place& p) { (*p).rms_norm_plain(p.vector(y, begin, n), p.vector(x, begin, n), n, eps); };
    case 1:
      return [=](Place& p) { (*p).rms_norm_plain(p.vector(y), p.vector(x), head, eps); };
    case 2:
      return [=](Place& p) { (*p).softmax(p.in_heads(y), p.in_heads(x)); };
    case 3:
      return [=](Place& p) { (*p).gate(p.vector(y, begin, n), p.vector(x, begin, n), p.vector(z, begin, n), Activation::silu); };
    case 4:
      return [=](Place& p) { (*p).add(p.vector(y, begin, n), p.vector(x, begin, n), p.vector(z, begin, n), -0.5F); };
    case 5:
      return [=](Place& p) { (*p).activate(p.vector(y), p.vector(x), Activation::sigmoid); };
    case 6:
      return [=](Place& p) { (*p).copy(p.vector(y, begin, n), p.vector(z, begin, n)); };
    case 7:
      return [=](Place& p) { (*p).log_sigmoid_decay(p.vector(y), p.vector(x), 16, -1); };
    case 8:
      return [=](Place& p) { (*p).scale_heads(p.in_heads(out), p.in_heads(out), p.vector(x, 0, heads), 0.7F); };
    case 9:
      return [=](Place& p) {
        (*p).linear(p.vector(out, 0, 60), p.vector(x, 3, 7), ConstTensor(p.weight(0).data, p.weight(0).dtype, {60, 7}));
      };
    case 10:
      return [=](Place& p) {
        const std::int32_t token[] = {0, 1};
        const Tensor q = p.in_heads(x), k = p.in_heads((out + 1) % vectors), v = p.in_heads((out + 2) % vectors), state = p.state();
        (*p).l2_norm(q, q);
        (*p).l2_norm(k, k);
        (*p).gated_delta_rule({.q = q,
                               .k = k,
                               .v = v,
                               .log_decay = {},
                               .beta = {},
                               .scale = 1,
                               .segments = {token, {}},
                               .initial_state = state,
                               .final_state = state,
                               .o = p.in_heads(out)},
                              0);
      };
    case 11:
      return [=](Place& p) {
        const std::int32_t token[] = {0, 1};
        constexpr std::int64_t rank = 16;
        const std::int64_t decay = (out + 3) % vectors;
        (*p).linear(p.vector(decay), p.vector(out, 0, rank), ConstTensor(p.weight(weight).data, p.weight(weight).dtype, {width, rank}));
        (*p).log_sigmoid_decay(p.vector(decay), p.vector(decay), 16, -std::numeric_limits<float>::infinity());
        const Tensor q = p.in_heads((out + 1) % vectors), k = p.in_heads((out + 2) % vectors), state = p.state();
        (*p).softmax(k, k);
        (*p).decayed_outer_product({.q = q,
                                    .k = k,
                                    .v = q,
                                    .log_decay = p.in_heads(decay),
                                    .decay_axis = DecayAxis::rows,
                                    .scale = 0.1F,
                                    .segments = {token, {}},
                                    .initial_state = state,
                                    .final_state = state,
                                    .o = p.in_heads(out)},
                                   0);
      };
    default:
      return [=](Place& p) { (*p).linear(p.vector(out), p.vector(x), p.weight(weight)); };
  }
}

void compare(const Numbers& found, const Numbers& wanted) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    const double a = found.values[i], b = wanted.values[i];
    const bool same = std::isnan(b) ? std::isnan(a) : a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b));
    if (!same && wrong++ == 0) WARN("number " << i << ": " << a << ", expected " << b);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("device: chains of operations on one row", "[device]") {
  const auto cuda = testing::cuda_backend();
  if (!cuda) return;
  const auto cpu = make_cpu_backend();
  Random random(11);
  std::vector<Stored> weights;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) weights.emplace_back(random, dtype, width, width);
  for (int round = 0; round < 60; ++round) {
    INFO("round " << round);
    const Numbers start = random.uniform(Place::shape());
    Place here(*cpu, start, weights), there(*cuda, start, weights);
    for (int i = 0; i < 1 + round; ++i) {
      const auto next = operation(random, weights.size());
      next(here);
      next(there);
    }
    compare(there.now(), here.now());
  }
}

TEST_CASE("device: a NaN goes through a chain as on the CPU", "[device]") {
  const auto cuda = testing::cuda_backend();
  if (!cuda) return;
  const auto cpu = make_cpu_backend();
  Random random(12);
  std::vector<Stored> weights;
  weights.emplace_back(random, DType::bf16, width, width);
  Numbers start = random.uniform(Place::shape());
  start[3] = std::numeric_limits<float>::quiet_NaN();
  start[width + 5] = std::numeric_limits<float>::infinity();
  const auto chain = [](Place& p) {
    (*p).rms_norm_plain(p.vector(2), p.vector(0), head, 1e-2F);  // of one head
    (*p).gate(p.vector(2), p.vector(2), p.vector(3), Activation::silu);
    (*p).linear(p.vector(4), p.vector(3), p.weight(0));
    (*p).add(p.vector(4), p.vector(4), p.vector(2));
    (*p).linear(p.vector(5), p.vector(4), p.weight(0));
    (*p).activate(p.vector(6), p.vector(0), Activation::relu);
  };
  Place here(*cpu, start, weights), there(*cuda, start, weights);
  chain(here);
  chain(there);
  compare(there.now(), here.now());
}

TEST_CASE("device: a token like the one before, with another id", "[device]") {
  const auto cuda = testing::cuda_backend();
  if (!cuda) return;
  Random random(13);
  const Stored table(random, DType::f32, 9, width);
  Buffer owner, memory = cuda->allocate(width * sizeof(float));
  const ConstTensor there = cuda->adopt(table.view, owner);
  const Tensor row(memory.get(), DType::f32, {1, width});
  for (const std::int32_t id : {4, 0, 8, 4}) {
    cuda->embed(row, there, &id);
    Numbers found({1, width});
    cuda->download(found.view(), row);
    CHECK(std::equal(found.values.begin(), found.values.end(), table.view.slice(id, 1).f32()));
  }
}

}  // namespace statescope
