// Block inputs: what was appended is read back, wherever it lies by then, within the budget.
#include "engine/run/block_inputs.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "engine/error.h"
#include "tests/catch.h"

namespace statescope::test {
namespace {

constexpr std::int64_t kStreams = 3, kWidth = 5, kRow = kWidth * static_cast<std::int64_t>(sizeof(float));

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
      inputs.append(stream, appended);
    }
  }
}

bool reads_back(const BlockInputs& inputs, std::int64_t stream, std::int64_t from, std::int64_t to) {
  std::vector<float> rows(static_cast<std::size_t>((to - from) * kWidth), -1.0F);
  inputs.read(rows.data(), stream, from, to);
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

TEST_CASE("block inputs: read back from memory and file, across their border") {
  for (const std::int64_t step : {1, 100, 256, 700}) {
    for (const std::size_t budget : {std::size_t{0}, std::size_t{40'000}, std::size_t{1} << 30}) {
      BlockInputs inputs(kStreams, kWidth);
      for (std::int64_t rows = 0; rows < 2000; rows += 500) {
        fill(inputs, rows, rows + 500, step);
        inputs.keep_within(budget);
      }
      INFO("step " << step << ", budget " << budget);
      // At least the block that is not complete stays.
      const std::size_t all = 2000 * kRow * kStreams;
      CHECK(inputs.bytes_in_memory() + inputs.bytes_in_file() == all);
      CHECK(inputs.bytes_in_memory() <= std::max<std::size_t>(budget, BlockInputs::kBlock * kRow * kStreams));
      CHECK((inputs.bytes_in_file() == 0) == (budget >= all));
      for (std::int64_t stream = 0; stream < kStreams; ++stream) {
        for (const auto& [from, to] :
             {std::pair<std::int64_t, std::int64_t>{0, 2000}, {0, 1}, {255, 257}, {1700, 2000}, {1999, 2000}, {300, 300}})
          CHECK(reads_back(inputs, stream, from, to));
      }
    }
  }
}

TEST_CASE("block inputs: the file has no name, and goes with its owner") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "statescope-block-inputs-test";
  std::filesystem::create_directory(folder);
  const Environment here("TMPDIR", folder.string());
  {
    BlockInputs inputs(kStreams, kWidth);
    fill(inputs, 0, 600, 100);
    inputs.keep_within(0);
    CHECK(inputs.bytes_in_file() > 0);
    CHECK(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove(folder);
}

TEST_CASE("block inputs: nothing is lost where the file cannot be written") {
  BlockInputs inputs(kStreams, kWidth);
  fill(inputs, 0, 600, 100);
  {
    // A file may not grow: as on a full disk.
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto old = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_THROWS_AS(inputs.keep_within(0), Error);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old);
  }
  fill(inputs, 600, 700, 100);
  for (std::int64_t stream = 0; stream < kStreams; ++stream) CHECK(reads_back(inputs, stream, 0, 700));
}

TEST_CASE("available memory is more than nothing") { CHECK(available_memory() > (std::size_t{1} << 24)); }

}  // namespace statescope::test
