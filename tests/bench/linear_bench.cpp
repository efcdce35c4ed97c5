// What a weight product costs against reading the weight, and what the matrix product reaches.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/ops/linear.h"

namespace {

using namespace statescope;

/// Seconds of one call of each: the medians of 15, measured in turn, so that both meet the same machine.
template <class... Fn>
std::array<double, sizeof...(Fn)> median_seconds(const Fn&... fn) {
  constexpr std::size_t repeats = 15;
  std::array<std::vector<double>, sizeof...(Fn)> seconds;
  const auto measure = [](const auto& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  (fn(), ...);
  for (std::size_t i = 0; i < repeats; ++i) {
    std::size_t which = 0;
    (seconds[which++].push_back(measure(fn)), ...);
  }
  std::array<double, sizeof...(Fn)> median{};
  for (std::size_t which = 0; which < median.size(); ++which) {
    std::sort(seconds[which].begin(), seconds[which].end());
    median[which] = seconds[which][repeats / 2];
  }
  return median;
}

void bench_streaming(DType dtype, int threads) {
  const std::int64_t in = 2048, out = 32768;
  const std::size_t bytes = static_cast<std::size_t>(in * out) * size_of(dtype);
  std::vector<std::uint16_t> weight(bytes / 2, 0x3C00);
  std::vector<float> x(in, 1), y(out);
  std::uint64_t sum = 0;
  const ThreadLimit limit(threads);
  const auto [read, product] =
      median_seconds([&] { sum += stream_read(weight.data(), bytes); },
                     [&] {
                       linear({y.data(), DType::f32, {1, out}}, {x.data(), DType::f32, {1, in}}, {weight.data(), dtype, {out, in}});
                     });
  const double giga = static_cast<double>(bytes) * 1e-9;
  std::printf("%-8s %d threads  %4.0f MB  stream_read %5.1f GB/s  linear, one row %5.1f GB/s  ratio %3.0f %%  (%llx)\n",
              name_of(dtype).data(), threads, giga * 1000, giga / read, giga / product, 100 * read / product,
              static_cast<unsigned long long>(sum) & 0xF);
}

void bench_gemm() {
  const std::int64_t n = 1536;
  std::vector<float> a(n * n, 1), b(n * n, 1), c(n * n);
  const auto [seconds] = median_seconds([&] { gemm({n, n, n, a.data(), n, false, b.data(), n, true, c.data(), n}); });
  std::printf("gemm 1536^3, one thread: %.0f GFLOP/s\n", 2e-9 * n * n * n / seconds);
}

void bench_rows(DType dtype, int threads, std::int64_t rows) {
  const std::int64_t in = 2048, out = 4096;
  std::vector<std::uint16_t> weight(static_cast<std::size_t>(in * out) * size_of(dtype) / 2, 0x3C00);
  std::vector<float> x(static_cast<std::size_t>(rows * in), 1), y(static_cast<std::size_t>(rows * out));
  const ThreadLimit limit(threads);
  const auto [seconds] = median_seconds([&] {
    linear({y.data(), DType::f32, {rows, out}}, {x.data(), DType::f32, {rows, in}}, {weight.data(), dtype, {out, in}});
  });
  std::printf("%-8s %d threads  linear [%lld, 2048] x [4096, 2048]: %.0f GFLOP/s, %.3f ms\n", name_of(dtype).data(), threads,
              static_cast<long long>(rows), 2e-9 * static_cast<double>(rows * in * out) / seconds, 1e3 * seconds);
}

}  // namespace

int main() {
  std::printf("%s\n", instruction_set());
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (int threads : {1, 2}) bench_streaming(dtype, threads);
  }
  bench_gemm();
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (int threads : {1, 2}) {
      for (std::int64_t rows : {4, 16, 512}) bench_rows(dtype, threads, rows);
    }
  }
}
