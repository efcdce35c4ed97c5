// Softmax attention of many queries on a CUDA device with bfloat16 products, against the CPU; compared by the norm of the difference and by
// the largest one.
#include <algorithm>
#include <bit>

#include "kernels/ops/softmax_attention.h"
#include "tests/kernels/device_chunk_cases.h"

namespace statescope::device_attention_test {
using namespace statescope::testing;

namespace {

struct Problem {
  std::vector<std::int32_t> queries, keys;  // of each segment
  std::int64_t H, Hkv, d, V, window = 0;

  std::string name() const {
    return "queries " + std::to_string(queries.front()) + " of " + std::to_string(queries.size()) + " segments, H " + std::to_string(H) +
           ", Hkv " + std::to_string(Hkv) + ", d " + std::to_string(d) + ", V " + std::to_string(V) + ", window " + std::to_string(window);
  }
};

/// Numbers that bfloat16 holds, so that operands are the same in both types.
Numbers short_numbers(Random& random, const Shape& shape) {
  Numbers numbers = random.uniform(shape, -2, 2);
  for (float& x : numbers.values) x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xFFFF0000U);
  return numbers;
}

/// Contiguous numbers of short_numbers on a device, as bfloat16.
ConstTensor upload_bf16(Backend& backend, const Numbers& x, Buffer& owner) {
  std::vector<std::uint16_t> upper;
  for (const float number : x.values) upper.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16));
  owner = backend.allocate(upper.size() * sizeof(std::uint16_t));
  const Tensor device(owner.get(), DType::bf16, x.shape);
  backend.upload(device, ConstTensor(upper.data(), DType::bf16, x.shape));
  return device;
}

void check_output(const Numbers& found, const Numbers& truth) {
  constexpr double largest_rounding = 2e-2;
  CHECK(relative_error(found.values, truth.values) <= bf16_rounding);
  float largest = 0, difference = 0;
  for (std::size_t i = 0; i < truth.values.size(); ++i) {
    largest = std::max(largest, std::abs(truth.values[i]));
    difference = std::max(difference, std::abs(found.values[i] - truth.values[i]));
  }
  CHECK(difference <= largest_rounding * largest);
}

void compare(Backend& backend, const Problem& p) {
  INFO(p.name());
  Random random(1);
  const Packed queries(p.queries, {}, 0), keys(p.keys, {}, 0);
  const Numbers q = short_numbers(random, {queries.rows(), p.H, p.d}), k = short_numbers(random, {keys.rows(), p.Hkv, p.d}),
                v = short_numbers(random, {keys.rows(), p.Hkv, p.V});
  Numbers truth = poisoned({queries.rows(), p.H, p.V});
  SoftmaxAttention op;
  op.q = q.view(), op.k = k.view(), op.v = v.view(), op.o = truth.view();
  op.scale = 0.3F, op.window = p.window, op.segments = queries.view(), op.cu_seqlens_k = keys.cu_seqlens;
  softmax_attention_chunk(op, 64);

  const Numbers unwritten = poisoned(truth.shape);
  for (const std::int64_t gap : {0, 3}) {
    INFO("rows " << gap << " apart");
    DeviceTensors device(backend, gap);
    op.q = device.rows(q.view()), op.k = device.rows(k.view()), op.v = device.rows(v.view());
    const Tensor o = device.rows(unwritten.view());
    op.o = o;
    backend.softmax_attention(op, 64);
    check_output(device.fetch(o), truth);
  }
  INFO("bfloat16 operands");
  DeviceTensors device(backend, 0);
  std::array<Buffer, 3> owners;
  op.q = upload_bf16(backend, q, owners[0]), op.k = upload_bf16(backend, k, owners[1]), op.v = upload_bf16(backend, v, owners[2]);
  const Tensor o = device.rows(unwritten.view());
  op.o = o;
  backend.softmax_attention(op, 64);
  check_output(device.fetch(o), truth);
}

}  // namespace

TEST_CASE("device: softmax attention in tiles, lengths, widths, windows", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int32_t T : {32, 63, 64, 65, 129, 200}) {
    for (const std::int64_t d : {16, 60, 64, 128, 256}) compare(*backend, {{T}, {T}, 3, 3, d, d});
    for (const std::int64_t window : {1, 50, 128, 1000}) {
      compare(*backend, {{T}, {T}, 4, 2, 60, 60, window});
      compare(*backend, {{T}, {T + 300}, 4, 1, 128, 128, window});
    }
    for (const auto& [d, V] : {std::pair{60, 1}, {8, 60}, {16, 128}, {256, 100}}) compare(*backend, {{T}, {T + 100}, 4, 1, d, V});
  }
  for (const std::int64_t d : {60, 128, 256}) compare(*backend, {{300}, {500}, 48, 12, d, d, d});
  compare(*backend, {{2000}, {2000}, 4, 2, 128, 128});
}

TEST_CASE("device: softmax attention in tiles, segments and grouped heads", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int64_t Hkv : {2, 8}) {
    for (const std::int64_t window : {0, 1, 50}) {
      compare(*backend, {{200, 0}, {200, 0}, 8, Hkv, 60, 60, window});
      compare(*backend, {{0, 65, 0, 1, 300, 17}, {9, 65, 200, 1, 301, 150}, 8, Hkv, 128, 128, window});
      compare(*backend, {{1, 33, 1}, {300, 40, 64}, 8, Hkv, 64, 20, window});
    }
  }
}

// Equal scores: o is the mean of the values seen, and small integers need no rounding until then.
TEST_CASE("device: softmax attention in tiles, the mean of what is seen", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  constexpr std::int32_t T = 300, window = 4;
  const std::vector<std::int32_t> cu_seqlens{0, T};
  const Numbers zeros({T, 1, 64});
  Numbers v({T, 1, 64}), unwritten = poisoned({T, 1, 64});
  for (std::int64_t t = 0; t < T; ++t) std::fill_n(v.row(t), 64, static_cast<float>(t % 64));
  DeviceTensors device(*backend, 0);
  SoftmaxAttention op;
  op.q = device.rows(zeros.view()), op.k = op.q, op.v = device.rows(v.view());
  const Tensor o = device.rows(unwritten.view());
  op.o = o, op.window = window, op.segments = {cu_seqlens, {}}, op.cu_seqlens_k = cu_seqlens;
  backend->softmax_attention(op, 64);
  const Numbers found = device.fetch(o);
  for (std::int64_t t = 0; t < T; ++t) {
    const std::int64_t first = std::max<std::int64_t>(0, t + 1 - window);
    float sum = 0;
    for (std::int64_t s = first; s <= t; ++s) sum += v.row(s)[0];
    CHECK(std::abs(found.row(t)[63] - sum / static_cast<float>(t + 1 - first)) <= 1e-5F * sum);
  }
}

}  // namespace statescope::device_attention_test
