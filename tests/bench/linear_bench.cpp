// What a weight product costs against reading the weight, and what the matrix product reaches.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "kernels/linear.h"

namespace {

using namespace statescope;

/// Seconds of one call: the median of 15.
template <class Fn>
double median_seconds(const Fn& fn) {
  std::vector<double> seconds;
  for (int i = 0; i < 16; ++i) {
    const auto start = std::chrono::steady_clock::now();
    fn();
    if (i > 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 7, seconds.end());
  return seconds[7];
}

void bench_streaming(DType dtype, int threads) {
  const std::int64_t in = 2048, out = 32768;
  const std::size_t bytes = static_cast<std::size_t>(in * out) * size_of(dtype);
  std::vector<std::uint16_t> weight(bytes / 2, 0x3C00);
  std::vector<float> x(in, 1), y(out);
  std::uint64_t sum = 0;
  omp_set_num_threads(threads);
  const double read = median_seconds([&] { sum += stream_read(weight.data(), bytes); });
  const double product =
      median_seconds([&] { linear({y.data(), DType::f32, {1, out}}, {x.data(), DType::f32, {1, in}}, {weight.data(), dtype, {out, in}}); });
  const double giga = static_cast<double>(bytes) * 1e-9;
  std::printf("%-8s %d threads  %4.0f MB  stream_read %5.1f GB/s  linear, one row %5.1f GB/s  ratio %3.0f %%  (%llx)\n",
              name_of(dtype).data(), threads, giga * 1000, giga / read, giga / product, 100 * read / product,
              static_cast<unsigned long long>(sum) & 0xF);
}

void bench_gemm() {
  const std::int64_t n = 1536;
  std::vector<float> a(n * n, 1), b(n * n, 1), c(n * n);
  const double seconds = median_seconds([&] { gemm({n, n, n, a.data(), n, false, b.data(), n, true, c.data(), n}); });
  std::printf("gemm 1536^3, one thread: %.0f GFLOP/s\n", 2e-9 * n * n * n / seconds);
}

void bench_rows(DType dtype, int threads, std::int64_t rows) {
  const std::int64_t in = 2048, out = 4096;
  std::vector<std::uint16_t> weight(static_cast<std::size_t>(in * out) * size_of(dtype) / 2, 0x3C00);
  std::vector<float> x(static_cast<std::size_t>(rows * in), 1), y(static_cast<std::size_t>(rows * out));
  omp_set_num_threads(threads);
  const double seconds = median_seconds(
      [&] { linear({y.data(), DType::f32, {rows, out}}, {x.data(), DType::f32, {rows, in}}, {weight.data(), dtype, {out, in}}); });
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
      for (std::int64_t rows : {4, 512}) bench_rows(dtype, threads, rows);
    }
  }
}
