// Block inputs: what was appended is read back, wherever it lies by then, within the budget.
#include "engine/run/block_inputs.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "engine/error.h"
#include "kernels/cpu/host_memory.h"
#include "tests/catch.h"
#include "tests/engine/model/small_device.h"

namespace statescope::test::block_inputs_test {
namespace {

constexpr std::int64_t kStreams = 3, kWidth = 5;
constexpr std::size_t kBlockBytes = BlockInputs::kBlock * kStreams * kWidth * sizeof(float);

float number(std::int64_t stream, std::int64_t row, std::int64_t column) {
  return static_cast<float>((stream * 10007 + row) * kWidth + column);
}

/// Appends to all streams until they have `rows` rows, `step` at a time.
void fill(BlockInputs& inputs, std::int64_t from, std::int64_t rows, std::int64_t step) {
  for (std::int64_t first = from; first < rows; first += step) {
    for (std::int64_t stream = 0; stream < kStreams; ++stream) {
      std::vector<float> appended;
      for (std::int64_t row = first; row < std::min(first + step, rows); ++row) {
        for (std::int64_t column = 0; column < kWidth; ++column) appended.push_back(number(stream, row, column));
      }
      const std::int64_t count = std::min(step, rows - first);
      inputs.append(stream, ConstTensor(appended.data(), DType::f32, {count, kWidth}));
    }
  }
}

bool reads_back(const BlockInputs& inputs, std::int64_t stream, std::int64_t from, std::int64_t to) {
  std::vector<float> rows(static_cast<std::size_t>((to - from) * kWidth), -1.0F);
  inputs.read(Tensor(rows.data(), DType::f32, {to - from, kWidth}), stream, from);
  for (std::int64_t row = from; row < to; ++row) {
    for (std::int64_t column = 0; column < kWidth; ++column) {
      if (rows[static_cast<std::size_t>((row - from) * kWidth + column)] != number(stream, row, column)) return false;
    }
  }
  return true;
}

/// A variable of the environment for the length of a test.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

}  // namespace

TEST_CASE("block inputs: read back from the device, the host and the file, across their borders") {
  struct Case {
    std::size_t on_device, on_host;  // blocks
  };
  constexpr std::size_t blocks = 8;  // that 2000 rows take
  for (const bool own_memory : {false, true}) {
    const std::unique_ptr<Backend> backend = own_memory ? std::make_unique<SmallDevice>(std::size_t{1} << 30) : make_cpu_backend(1);
    for (const std::int64_t step : {1, 100, 256, 700}) {
      for (const auto& [on_device, on_host] : {Case{0, 0}, {2, 0}, {8, 0}, {0, 8}, {0, 3}, {1, 2}, {5, 1}, {4, 4}}) {
        INFO("own memory " << own_memory << ", step " << step << ", blocks on the device " << on_device << ", on the host " << on_host);
        BlockInputs inputs(*backend, kStreams, kWidth);
        for (std::int64_t rows = 0; rows < 2000; rows += 500) {
          fill(inputs, rows, rows + 500, step);
          inputs.keep_within(on_device * kBlockBytes, on_host * kBlockBytes);
          // At least the block that is not complete stays on the device.
          CHECK(inputs.bytes_on_device() <= std::max<std::size_t>(on_device, 1) * kBlockBytes);
          CHECK(inputs.bytes_on_host() <= on_host * kBlockBytes);
        }
        CHECK(inputs.bytes_on_device() + inputs.bytes_on_host() + inputs.bytes_in_file() == blocks * kBlockBytes);
        CHECK((inputs.bytes_in_file() == 0) == (std::max<std::size_t>(on_device, 1) + on_host >= blocks));
        CHECK_FALSE(inputs.device_was_full());
        for (std::int64_t stream = 0; stream < kStreams; ++stream) {
          for (const auto& [from, to] :
               {std::pair<std::int64_t, std::int64_t>{0, 2000}, {0, 1}, {255, 257}, {1700, 2000}, {1999, 2000}, {300, 300}})
            CHECK(reads_back(inputs, stream, from, to));
        }
      }
    }
  }
}

TEST_CASE("block inputs: what a full device has no room for goes to the host") {
  SmallDevice device(3 * kBlockBytes);
  BlockInputs inputs(device, kStreams, kWidth);
  fill(inputs, 0, 1500, 100);
  CHECK(inputs.device_was_full());
  CHECK(inputs.bytes_on_device() == 3 * kBlockBytes);
  CHECK(inputs.bytes_on_host() == 3 * kBlockBytes);
  for (const std::size_t on_device : {3, 1}) {
    inputs.keep_within(on_device * kBlockBytes, 2 * kBlockBytes);
    CHECK(inputs.bytes_on_device() <= on_device * kBlockBytes);
    for (std::int64_t stream = 0; stream < kStreams; ++stream) CHECK(reads_back(inputs, stream, 0, 1500));
  }
  CHECK(inputs.bytes_in_file() > 0);
}

TEST_CASE("block inputs: the file has no name, and goes with its owner") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "statescope-block-inputs-test";
  std::filesystem::create_directory(folder);
  const Environment here("TMPDIR", folder.string());
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  {
    BlockInputs inputs(*backend, kStreams, kWidth);
    fill(inputs, 0, 600, 100);
    inputs.keep_within(0, 0);
    CHECK(inputs.bytes_in_file() > 0);
    CHECK(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove(folder);
}

TEST_CASE("block inputs: nothing is lost where the file cannot be written") {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  BlockInputs inputs(*backend, kStreams, kWidth);
  fill(inputs, 0, 600, 100);
  {
    // A file may not grow: as on a full disk.
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto old = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_THROWS_AS(inputs.keep_within(0, 0), Error);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old);
  }
  fill(inputs, 600, 700, 100);
  for (std::int64_t stream = 0; stream < kStreams; ++stream) CHECK(reads_back(inputs, stream, 0, 700));
}

TEST_CASE("available memory is more than nothing") { CHECK(available_memory() > (std::size_t{1} << 24)); }

}  // namespace statescope::test::block_inputs_test
