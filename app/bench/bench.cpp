#include "app/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>

#include "kernels/devices.h"
#include "kernels/ops/linear.h"

namespace statescope {
namespace {

constexpr int kRepeats = 21;
constexpr double kBatch = 5e-3;  // seconds

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The same numbers on every machine.
class Uniform {
 public:
  Uniform(float low, float high) : low_(low), step_((high - low) * 0x1p-24F) {}
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return low_ + step_ * static_cast<float>(state_ >> 8);
  }

 private:
  float low_, step_;
  std::uint32_t state_ = 1;
};

}  // namespace

Tensor Operands::empty(Shape shape, DType dtype) {
  buffers_.push_back(backend_.allocate(static_cast<std::size_t>(shape.size()) * size_of(dtype)));
  return {buffers_.back().get(), dtype, shape};
}

Tensor Operands::uniform(Shape shape, float low, float high) {
  std::vector<float> numbers(static_cast<std::size_t>(shape.size()));
  Uniform random(low, high);
  for (float& x : numbers) x = random.next();
  Tensor tensor = empty(shape);
  backend_.upload(tensor, ConstTensor(numbers.data(), DType::f32, shape));
  return tensor;
}

Tensor Operands::activation(Shape shape, std::int64_t T) {
  const Tensor exact = uniform(shape);
  if (backend_.activation_type(T) == exact.dtype) return exact;
  const Tensor tensor = empty_activation(shape, T);
  backend_.copy(tensor, exact);
  return tensor;
}

ConstTensor Operands::weight(std::int64_t out, std::int64_t in, DType dtype) {
  const std::size_t size = size_of(dtype);
  std::vector<char>& host = host_.emplace_back(static_cast<std::size_t>(out * in) * size);
  const float largest = 1 / std::sqrt(static_cast<float>(in));
  Uniform random(-largest, largest);
  for (auto place = host.begin(); place != host.end(); place += static_cast<std::ptrdiff_t>(size)) {
    const auto bytes = std::bit_cast<std::array<char, sizeof(float)>>(random.next());
    std::copy_n(bytes.end() - static_cast<std::ptrdiff_t>(size), size, place);  // bfloat16: the upper half
  }
  return backend_.adopt({host.data(), dtype, {out, in}}, buffers_.emplace_back());
}

Bench::Bench(const DeviceChoice& device, std::string only)
    : backend_(open_cuda_device(device)), precision_(device.precision), only_(std::move(only)) {
  if (backend_ && backend_->devices()) backend_ = backend_->devices()->all()[Devices::home].backend;
  on_device_ = backend_ != nullptr;
  if (!on_device_) backend_ = make_cpu_backend(device.threads, device.precision);
  number_ = backend_->allocate(sizeof(float));
  backend_->fill({number_.get(), DType::f32, {1, 1}}, 0);
}

void Bench::wait() const {
  float number = 0;
  backend_->download({&number, DType::f32, {1, 1}}, ConstTensor(number_.get(), DType::f32, {1, 1}));
}

double Bench::seconds(const Work& work) const { return repeats(work, kRepeats)[kRepeats / 2]; }

std::vector<double> Bench::repeats(const Work& work, int count) const {
  const auto time = [&](int calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) work();
    wait();
    return seconds_since(start) / calls;
  };
  for (int warm_up = 0; warm_up < 2; ++warm_up) time(1);  // a device captures a token's step the second time, which takes longer
  const int calls = std::max(1, static_cast<int>(std::min(kBatch / time(1), 1000.0)));
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) seconds.push_back(time(calls));
  std::ranges::sort(seconds);
  return seconds;
}

void Bench::measure_limits() {
  Operands operands(*backend_);
  if (on_device_) {
    const Shape shape{1 << 16, 1 << 12};  // 1 GiB
    const Tensor to = operands.empty(shape), source = operands.empty(shape);
    backend_->fill(source, 1);
    bandwidth_ = 2.0 * static_cast<double>(shape.size()) * sizeof(float) / seconds([&] { backend_->copy(to, source); });
    fmt::print("copy {:.2f} TB/s", bandwidth_ / 1e12);
  } else {
    std::vector<std::uint64_t> block(std::size_t{1} << 25, 1);  // 256 MiB, far larger than any cache
    const std::size_t bytes = block.size() * sizeof(block[0]);
    bandwidth_ = static_cast<double>(bytes) / seconds([&] { stream_read(block.data(), bytes); });
    fmt::print("streaming read {:.1f} GB/s", bandwidth_ / 1e9);
  }
  const std::int64_t n = on_device_ ? 8192 : 1024;
  const Tensor x = operands.uniform({n, n}), y = operands.empty({n, n});
  const ConstTensor weight = operands.weight(n, n, precision_ == Precision::bfloat16 ? DType::bf16 : DType::f32);
  rate_ = 2 * std::pow(static_cast<double>(n), 3) / seconds([&] { backend_->linear(y, x, weight); });
  fmt::print(", product of {}³ {:.2f} TFLOP/s\n", n, rate_ / 1e12);
}

double Bench::limit(double bytes, double flops) const { return std::max(bytes / bandwidth_, flops / rate_); }

std::string Bench::share(double seconds, double bytes, double flops) const {
  const double least = limit(bytes, flops);
  return fmt::format("limit {:.4f} ms ({}): {:.0f} %", 1e3 * least, bytes / bandwidth_ > flops / rate_ ? "memory" : "products",
                     100 * least / seconds);
}

void Bench::row(const std::string& name, double bytes, double flops, const std::function<Work(Operands&)>& prepare) const {
  if (!wants(name)) return;
  Operands operands(*backend_);
  const double taken = seconds(prepare(operands));
  fmt::print("  {:<52} {:>10.4f} ms {:>9.2f} MB {:>9.3f} GFLOP  {}\n", name, 1e3 * taken, bytes / 1e6, flops / 1e9,
             share(taken, bytes, flops));
}

}  // namespace statescope
