// The memories on a device, for sequences of several lengths: one JSON object a line, which compare_fla.py sets beside another library's.
// Every length has several sets of operands, together larger than any cache, which are used in turn.
//   ms         one call of many that wait for each other: host-timed over all sets, with one wait at the end; the median of 21
//   alone_ms   one call and the wait for it, the host's part included; the median of 21
//   call_ms    until that call returned: the host's part alone

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "kernels/device.h"

namespace {

using namespace statescope;

constexpr std::int64_t H = 8, D = 128, C = 64;
constexpr int kRepeats = 21;

struct Options {
  std::string device = "cuda", only;
  Precision precision = Precision::bfloat16;
  DType operands = DType::f32;
  std::vector<std::int64_t> lengths{512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
};

double median_ms(std::vector<double> seconds) {
  std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
  return 1e3 * seconds[kRepeats / 2];
}

/// Random numbers in host memory, made once for each kind.
class Blocks {
 public:
  static constexpr std::int64_t size = D << 13;

  /// In [low, high); `unit`: heads of length 1.
  const std::vector<char>& of(DType dtype, float low, float high, bool unit) {
    std::vector<char>& block = blocks_[{dtype, low, high, unit}];
    if (block.empty()) block = made(dtype, low, high, unit);
    return block;
  }

 private:
  static std::vector<char> made(DType dtype, float low, float high, bool unit) {
    std::vector<float> numbers(size);
    std::uint32_t state = 1;
    for (float& x : numbers) {
      state = state * 1664525u + 1013904223u;
      x = low + (high - low) * static_cast<float>(state >> 8) * 0x1p-24F;
    }
    if (unit) normalise(numbers);
    std::vector<char> block(size * size_of(dtype));
    for (std::size_t i = 0; i < size; ++i) {
      const auto bits = std::bit_cast<std::array<char, sizeof(float)>>(numbers[i]);
      std::copy_n(bits.end() - static_cast<std::ptrdiff_t>(size_of(dtype)), size_of(dtype),
                  &block[i * size_of(dtype)]);  // bf16: the upper half
    }
    return block;
  }
  static void normalise(std::vector<float>& numbers) {
    for (std::size_t begin = 0; begin < size; begin += D) {
      float squares = 0;
      for (std::size_t i = begin; i < begin + D; ++i) squares += numbers[i] * numbers[i];
      for (std::size_t i = begin; i < begin + D; ++i) numbers[i] /= std::sqrt(squares);
    }
  }

  std::map<std::tuple<DType, float, float, bool>, std::vector<char>> blocks_;
};

/// Device memory of one set.
class Operands {
 public:
  Operands(Backend& backend, Blocks& blocks) : backend_(backend), blocks_(blocks), workspace_(backend) {}

  Tensor empty(Shape shape, DType dtype = DType::f32) {
    const std::size_t bytes = static_cast<std::size_t>(shape.size()) * size_of(dtype);
    bytes_ += bytes;
    return {memory_.emplace_back(backend_.allocate(bytes)).get(), dtype, shape};
  }
  /// The size of a row divides that of a block.
  Tensor uniform(Shape shape, DType dtype, float low, float high, bool unit = false) {
    const Tensor tensor = empty(shape, dtype);
    const std::int64_t most = Blocks::size / shape.row_size();
    for (std::int64_t begin = 0; begin < shape[0]; begin += most) {
      const Tensor part = tensor.slice(begin, std::min(most, shape[0] - begin));
      backend_.upload(part, ConstTensor(blocks_.of(dtype, low, high, unit).data(), dtype, part.shape));
    }
    return tensor;
  }
  std::span<const std::int32_t> sequence(std::int64_t T) { return indices_.emplace_back(std::array{0, static_cast<std::int32_t>(T)}); }
  Workspace& workspace() { return workspace_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Backend& backend_;
  Blocks& blocks_;
  Workspace workspace_;
  std::list<Buffer> memory_;
  std::list<std::array<std::int32_t, 2>> indices_;
  std::size_t bytes_ = 0;
};

using Work = std::function<void()>;
using Prepare = Work (*)(Backend&, Operands&, std::int64_t T, DType operands);

template <std::int64_t H, std::int64_t K, std::int64_t V>
Work decayed_outer_product_work(Backend& backend, Operands& operands, std::int64_t T, DType type) {
  DecayedOuterProduct op;
  op.q = operands.uniform({T, H, K}, type, -1, 1);
  op.k = operands.uniform({T, H, K}, type, -1, 1, true);
  op.v = operands.uniform({T, H, V}, type, -1, 1);
  op.log_decay = operands.uniform({T, H, K}, DType::f32, -0.1F, 0);
  op.scale = 1 / std::sqrt(static_cast<float>(K));
  op.segments.cu_seqlens = operands.sequence(T);
  op.initial_state = operands.uniform({1, H, K, V}, DType::f32, 0, 0);
  op.final_state = operands.empty({1, H, K, V});
  op.o = operands.empty({T, H, V}, type);
  return [&backend, op] { backend.decayed_outer_product(op, C); };
}

enum class Decay { per_head, per_channel };

template <std::int64_t H, std::int64_t K, std::int64_t V, Decay decay = Decay::per_head>
Work gated_delta_rule_work(Backend& backend, Operands& operands, std::int64_t T, DType type) {
  GatedDeltaRule op;
  op.q = operands.uniform({T, H, K}, type, -1, 1, true);
  op.k = operands.uniform({T, H, K}, type, -1, 1, true);
  op.v = operands.uniform({T, H, V}, type, -1, 1);
  op.log_decay = operands.uniform(decay == Decay::per_head ? Shape{T, H} : Shape{T, H, K}, DType::f32, -0.1F, 0);
  op.beta = operands.uniform({T, H}, DType::f32, 0, 1);
  op.scale = 1 / std::sqrt(static_cast<float>(K));
  op.segments.cu_seqlens = operands.sequence(T);
  op.initial_state = operands.uniform({1, H, K, V}, DType::f32, 0, 0);
  op.final_state = operands.empty({1, H, K, V});
  op.o = operands.empty({T, H, V}, type);
  return [&backend, op] { backend.gated_delta_rule(op, C); };
}

/// `channels` of Mamba, each with N states.
template <std::int64_t channels, std::int64_t N>
Work selective_scan_work(Backend& backend, Operands& operands, std::int64_t T, DType type) {
  SelectiveScan op;
  op.x = operands.uniform({T, 1, channels}, type, -1, 1);
  op.dt = operands.uniform({T, 1, channels}, DType::f32, 0, 0.1F);
  op.A = operands.uniform({1, N, channels}, DType::f32, -1, 0);
  op.B = operands.uniform({T, 1, N}, DType::f32, -1, 1);
  op.C = operands.uniform({T, 1, N}, DType::f32, -1, 1);
  op.segments.cu_seqlens = operands.sequence(T);
  op.initial_state = operands.uniform({1, 1, N, channels}, DType::f32, 0, 0);
  op.final_state = operands.empty({1, 1, N, channels});
  op.o = operands.empty({T, 1, channels}, type);
  return [&backend, op] { backend.selective_scan(op); };
}

/// The shared state and one partition of N a token; on the delta rule, or on the decayed outer product.
template <std::int64_t N, bool delta_rule>
Work sparse_state_work(Backend& backend, Operands& operands, std::int64_t T, DType type) {
  SparseState op;
  op.q = operands.uniform({T, 2, H, D}, type, -1, 1);
  op.k = operands.uniform({T, 2, H, D}, type, -1, 1, true);
  op.v = operands.uniform({T, H, D}, type, -1, 1);
  op.log_decay = operands.uniform(delta_rule ? Shape{T, 2, H} : Shape{T, 2, H, D}, DType::f32, -0.1F, 0);
  if (delta_rule) op.beta = operands.uniform({T, 2, H}, DType::f32, 0, 1);
  const Tensor gate = operands.uniform({T, N}, DType::f32, 0, 1), selected = operands.empty({T, 1}, DType::i32);
  backend.top_k(selected, gate);
  op.gate = gate;
  op.selected = selected;
  op.scale = 1 / std::sqrt(static_cast<float>(D));
  op.cu_seqlens = operands.sequence(T);
  op.initial_state = operands.uniform({1 + N, H, D, D}, DType::f32, 0, 0);
  op.final_state = operands.empty({1 + N, H, D, D});
  op.o = operands.empty({T, H, D}, type);
  return [&backend, &operands, op] { backend.sparse_state(op, C, operands.workspace()); };
}

const std::map<std::string, Prepare> kKernels{{"decayed_outer_product", decayed_outer_product_work<H, D, D>},
                                              {"decayed_outer_product_gla_1.3b", decayed_outer_product_work<4, 256, 512>},
                                              {"gated_delta_rule", gated_delta_rule_work<H, D, D>},
                                              {"gated_delta_rule_gdn_1.3b", gated_delta_rule_work<6, 256, 512>},
                                              {"gated_delta_rule_by_channel", gated_delta_rule_work<H, D, D, Decay::per_channel>},
                                              {"selective_scan_mamba_1.4b", selective_scan_work<4096, 16>},
                                              {"sparse_state_n4k1", sparse_state_work<4, false>},
                                              {"sparse_state_n64k1", sparse_state_work<64, false>},
                                              {"sparse_delta_rule_n4k1", sparse_state_work<4, true>}};

class DeviceBench {
 public:
  explicit DeviceBench(Backend& backend) : backend_(backend), number_(backend.allocate(sizeof(float))) {
    backend.fill({number_.get(), DType::f32, {1, 1}}, 0);
  }

  void measure(const std::string& name, Prepare prepare, std::int64_t T, DType type) {
    constexpr std::size_t larger_than_caches = std::size_t{256} << 20;
    constexpr std::size_t most_sets = 64;
    std::list<Operands> sets;
    std::vector<Work> works;
    for (std::size_t bytes = 0; bytes < larger_than_caches && works.size() < most_sets; bytes += sets.back().bytes())
      works.push_back(prepare(backend_, sets.emplace_back(backend_, blocks_), T, type));
    for (int warm_up = 0; warm_up < 2; ++warm_up) measured(works);

    std::vector<double> all, alone, call;
    for (int i = 0; i < kRepeats; ++i) all.push_back(measured(works).waited / static_cast<double>(works.size()));
    for (std::size_t i = 0; i < kRepeats; ++i) {
      const Seconds one = measured(std::span(works).subspan(i % works.size(), 1));
      alone.push_back(one.waited);
      call.push_back(one.called);
    }
    std::printf(
        "{\"kernel\": \"%s\", \"length\": %lld, \"ms\": %.5f, \"alone_ms\": %.5f, \"call_ms\": %.5f, \"sets\": %zu, \"set_MB\": %.2f}\n",
        name.c_str(), static_cast<long long>(T), median_ms(all), median_ms(alone), median_ms(call), works.size(),
        static_cast<double>(sets.back().bytes()) / 1e6);
    std::fflush(stdout);
  }

 private:
  /// Until all calls had returned, and until what they asked for was done.
  struct Seconds {
    double called, waited;
  };
  Seconds measured(std::span<const Work> works) const {
    const auto start = std::chrono::steady_clock::now();
    const auto since_start = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    for (const Work& work : works) work();
    const double called = since_start();
    float number = 0;
    backend_.download({&number, DType::f32, {1, 1}}, ConstTensor(number_.get(), DType::f32, {1, 1}));
    return {called, since_start()};
  }

  Backend& backend_;
  Blocks blocks_;
  Buffer number_;  // read back to wait for what was asked for before it
};

void run(const Options& options) {
  const std::unique_ptr<Backend> backend = make_backend(options.device, 0, options.precision);
  std::printf("{\"device\": \"%s\", \"operands\": \"%s\"}\n", backend->description().c_str(), name_of(options.operands).data());
  DeviceBench bench(*backend);
  for (const auto& [name, prepare] : kKernels) {
    if (name.find(options.only) == name.npos) continue;
    try {
      for (const std::int64_t T : options.lengths) bench.measure(name, prepare, T, options.operands);
    } catch (const std::logic_error& error) {  // operands of a type that this kernel does not take
      std::fprintf(stderr, "%s is left out: %s\n", name.c_str(), error.what());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const std::map<std::string, Precision> precisions{{"float32", Precision::float32}, {"bfloat16", Precision::bfloat16}};
  const std::map<std::string, DType> types{{"float32", DType::f32}, {"bfloat16", DType::bf16}};
  CLI::App app("The memories on a device, one JSON object a line");
  app.add_option("--device", options.device, "cuda, cuda:1, …; cpu (default: cuda)");
  app.add_option("--precision", options.precision, "of products (default: bfloat16)")->transform(CLI::CheckedTransformer(precisions));
  app.add_option("--operands", options.operands, "q, k and v in memory (default: float32)")->transform(CLI::CheckedTransformer(types));
  app.add_option("--lengths", options.lengths, "512,1024,…")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "kernels with this in their name");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
    return 0;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "device_bench: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_bench: %s\n", error.what());
  }
  return 1;
}
