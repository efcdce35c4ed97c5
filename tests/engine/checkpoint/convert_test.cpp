// Writing checkpoints: what was read comes back, whole or not at all.
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <thread>

#include "engine/checkpoint/blocks.h"
#include "tests/engine/checkpoint/checkpoint_files.h"

namespace statescope::convert_test {
using namespace statescope::test;
namespace fs = std::filesystem;

namespace {

/// A checkpoint in memory; its numbers are `bytes` of every type's bit patterns.
struct Sample : Checkpoint {
  Sample() {
    path = "sample";
    config = "{\"model_type\": \"gla\",\n \"é\": 1e400}";
    tokenizer = {{"tokenizer.json", "{\"a\": 0}"},  {"vocab.txt", std::string("\0\xff", 2)},
                 {"qwen.tiktoken", "AA== 0\r\n"},   {"tokenizer.model", "\n\x02\n\xff"},
                 {"tekken.json", "{}\n"},           {"rwkv_vocab_v20230424.txt", "1 '\\x00' 1\r\n"},
                 {"chat_template.jinja", "{{ 1 }}"}};
    provenance = {{"recipe.txt", ""}, {"eval.json", "{}"}};
    std::mt19937 random(1);
    for (std::uint32_t& word : numbers) word = static_cast<std::uint32_t>(random());
    add("a.bias", DType::f16, {3});
    add("a.conv", DType::f16, {5, 1, 3});
    add("a.weight", DType::f32, {7, 5});
    add("b.bias", DType::f32, {1});
    add("b.scalar", DType::bf16, {});
    add("b.weight", DType::bf16, {9, 1, 1, 1, 3});
    add("c.weight", DType::f16, {1, 64});
  }
  void add(const char* tensor_name, DType dtype, std::vector<std::int64_t> shape) {
    tensors.push_back({tensor_name, dtype, std::move(shape), reinterpret_cast<const std::byte*>(numbers.data())});
  }
  std::vector<std::uint32_t> numbers = std::vector<std::uint32_t>(64);
};

void check_same(const Checkpoint& a, const Checkpoint& b) {
  CHECK(a.config == b.config);
  CHECK(a.tokenizer == b.tokenizer);
  CHECK(a.provenance == b.provenance);
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    INFO(a.tensors[i].name);
    CHECK(a.tensors[i].name == b.tensors[i].name);
    CHECK(a.tensors[i].dtype == b.tensors[i].dtype);
    CHECK(a.tensors[i].shape == b.tensors[i].shape);
    CHECK(raw(a.tensors[i]) == raw(b.tensors[i]));
  }
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

template <class To, class From>
To converted(From value, DType from, DType to) {
  To result;
  convert(reinterpret_cast<const std::byte*>(&value), from, reinterpret_cast<std::byte*>(&result), to, 1);
  return result;
}

std::uint16_t to_f16(float value) { return converted<std::uint16_t>(value, DType::f32, DType::f16); }
std::uint16_t to_bf16(float value) { return converted<std::uint16_t>(value, DType::f32, DType::bf16); }
float from_f16(std::uint16_t bits) { return converted<float>(bits, DType::f16, DType::f32); }
float from_bf16(std::uint16_t bits) { return converted<float>(bits, DType::bf16, DType::f32); }

/// Among all finite values of the 16-bit type and 2^max_exponent (infinity's place), the one nearest to `value`, ties to the even code.
std::uint16_t nearest(float value, float (*decode)(std::uint16_t), std::uint16_t infinity, double beyond) {
  const double magnitude = std::fabs(static_cast<double>(value));
  std::uint16_t best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (std::uint16_t code = 0; code <= infinity; ++code) {
    const double distance = std::fabs((code == infinity ? beyond : static_cast<double>(decode(code))) - magnitude);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code, best_distance = distance;
  }
  return static_cast<std::uint16_t>(best | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

TEST_CASE("every half and every bfloat16 survives float32 and back") {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float half = from_f16(bits), brain = from_bf16(bits);
    if (std::isnan(half))
      CHECK(std::isnan(from_f16(to_f16(half))));
    else if (to_f16(half) != bits)
      FAIL_CHECK("half " << i);
    if (std::isnan(brain))
      CHECK(std::isnan(from_bf16(to_bf16(brain))));
    else if (to_bf16(brain) != bits)
      FAIL_CHECK("bfloat16 " << i);
  }
}

TEST_CASE("rounding is to the nearest, ties to even") {
  CHECK(from_f16(0x3c00) == 1.0f);
  CHECK(from_f16(0x0001) == 0x1p-24f);
  CHECK(from_f16(0x7bff) == 65504.0f);
  CHECK(to_f16(65519.9f) == 0x7bff);
  CHECK(to_f16(65520.0f) == 0x7c00);
  CHECK(to_f16(0x1p-25f) == 0);         // halfway between 0 and the smallest: even
  CHECK(to_f16(0x1.8p-24f) == 0x0002);  // halfway between 1 and 2 smallest
  CHECK(to_f16(0x1.002p0f) == 0x3c00);  // halfway above 1
  CHECK(to_f16(0x1.006p0f) == 0x3c02);
  CHECK(to_f16(-0.0f) == 0x8000);
  CHECK(to_bf16(0x1.01p0f) == 0x3f80);  // halfway above 1
  CHECK(to_bf16(0x1.03p0f) == 0x3f82);
  CHECK(to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(to_bf16(std::bit_cast<float>(0x7f800001u)) == 0x7fc0);  // a NaN whose payload is lost does not become infinite
  CHECK(to_f16(std::bit_cast<float>(0xff800001u)) == 0xfe00);
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const float spread = std::bit_cast<float>(static_cast<std::uint32_t>(random()) % 0x50000000u + 0x2f000000u * (i % 2u));
    const float value = std::isfinite(spread) && i % 3 ? spread : -std::ldexp(static_cast<float>(random() % 4096), i % 40 - 34);
    INFO(value);
    CHECK(to_f16(value) == nearest(value, from_f16, 0x7c00, 65536.0));
    CHECK(to_bf16(value) == nearest(value, from_bf16, 0x7f80, 0x1p128));
  }
}

TEST_CASE("HDF5 to folder to HDF5 gives back every byte, also in another second") {
  const TemporaryFolder folder;
  const Sample sample;
  write_checkpoint(sample, folder / "one.h5");
  const auto one = open_checkpoint(folder / "one.h5");
  check_same(sample, *one);
  for (const StoredTensor& tensor : one->tensors) CHECK(reinterpret_cast<std::uintptr_t>(tensor.data) % size_of(tensor.dtype) == 0);
  write_checkpoint(*one, folder / "two" / "");
  const auto two = open_checkpoint(folder / "two");
  check_same(sample, *two);
  for (const StoredTensor& tensor : two->tensors) CHECK(reinterpret_cast<std::uintptr_t>(tensor.data) % size_of(tensor.dtype) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  write_checkpoint(*two, folder / "three.h5");
  CHECK(read_bytes(folder / "one.h5") == read_bytes(folder / "three.h5"));
  CHECK(entries(folder.path()) == 3);
}

TEST_CASE("large tensors are mapped from a written file, each at a multiple of 64 bytes") {
  const TemporaryFolder folder;
  Sample sample;
  sample.numbers.resize(5'000'000, 0x3f800000);
  sample.tensors.clear();
  sample.add("large", DType::f32, {5000, 1000});  // more than one block
  sample.add("odd", DType::f32, {1, 4'999'999});
  write_checkpoint(sample, folder / "m.h5");
  const auto checkpoint = open_checkpoint(folder / "m.h5");
  check_same(sample, *checkpoint);
  CHECK(checkpoint->files.size() == 2);  // the file and what the reader handed over
  CHECK(checkpoint->storage.empty());    // no copies
  for (const StoredTensor& tensor : checkpoint->tensors) CHECK(reinterpret_cast<std::uintptr_t>(tensor.data) % 64 == 0);
}

TEST_CASE("matrices are rounded to the type that was asked for, vectors keep theirs") {
  const TemporaryFolder folder;
  Sample sample;
  for (std::size_t i = 0; i < sample.numbers.size(); ++i)
    sample.numbers[i] = std::bit_cast<std::uint32_t>(1.0f + static_cast<float>(i) / 512);
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (const char* name : {"rounded.h5", "rounded"}) {
      write_checkpoint(sample, folder / name, {.dtype = &dtype, .overwrite = true, .progress = {}});
      const auto rounded = open_checkpoint(folder / name);
      for (const StoredTensor& tensor : rounded->tensors) {
        const StoredTensor& before = *sample.find(tensor.name);
        CHECK(tensor.dtype == (tensor.shape.size() >= 2 ? dtype : before.dtype));
        std::string expected(static_cast<std::size_t>(tensor.bytes()), '\0');
        convert(before.data, before.dtype, reinterpret_cast<std::byte*>(expected.data()), tensor.dtype,
                static_cast<std::size_t>(tensor.size()));
        CHECK(raw(tensor) == expected);
      }
    }
  }
}

TEST_CASE("progress rises to one; returning false leaves nothing behind") {
  const TemporaryFolder folder;
  const Sample sample;
  for (const char* name : {"m.h5", "m"}) {
    std::vector<double> seen;
    write_checkpoint(sample, folder / name,
                     {.dtype = nullptr, .overwrite = false, .progress = [&](double f) { return seen.push_back(f), true; }});
    CHECK(seen.size() == sample.tensors.size());
    CHECK(std::is_sorted(seen.begin(), seen.end()));
    CHECK(seen.back() == 1.0);
    fs::remove_all(folder / name);
    const WriteOptions cancel{.dtype = nullptr, .overwrite = false, .progress = [](double fraction) { return fraction < 0.5; }};
    CHECK(error_of([&] { write_checkpoint(sample, folder / name, cancel); }).find("cancelled") != std::string::npos);
    CHECK(entries(folder.path()) == 0);
    const WriteOptions thrown{.dtype = nullptr, .overwrite = false, .progress = [](double) -> bool { throw 7; }};
    CHECK_THROWS_AS(write_checkpoint(sample, folder / name, thrown), int);
    CHECK(entries(folder.path()) == 0);
  }
}

TEST_CASE("what is there is replaced only if asked, and only by its like") {
  const TemporaryFolder folder;
  const Sample sample;
  Sample changed;
  changed.config = "{}";
  const WriteOptions overwrite{.dtype = nullptr, .overwrite = true, .progress = {}};
  for (const char* name : {"m.h5", "m"}) {
    write_checkpoint(sample, folder / name);
    CHECK(error_of([&] { write_checkpoint(changed, folder / name); }).find("exists already") != std::string::npos);
    const auto open = open_checkpoint(folder / name);
    write_checkpoint(changed, folder / name, overwrite);
    check_same(sample, *open);  // its pages live on
    check_same(changed, *open_checkpoint(folder / name));
    const auto source = open_checkpoint(folder / name);
    write_checkpoint(*source, folder / name, overwrite);  // onto itself
    check_same(changed, *open_checkpoint(folder / name));
  }
  CHECK(entries(folder.path()) == 2);
  write_bytes(folder / "m/thesis.txt", "mine");
  CHECK(error_of([&] { write_checkpoint(sample, folder / "m", overwrite); }).find("holds other files") != std::string::npos);
  CHECK(read_bytes(folder / "m/thesis.txt") == "mine");
  write_bytes(folder / "file", "mine");
  CHECK(error_of([&] { write_checkpoint(sample, folder / "file", overwrite); }).find("is a file") != std::string::npos);
  fs::create_directory(folder / "folder.h5");
  CHECK(error_of([&] { write_checkpoint(sample, folder / "folder.h5", overwrite); }).find("is a folder") != std::string::npos);
}

TEST_CASE("names that would leave the folder or replace the weights are not written") {
  const TemporaryFolder folder;
  for (const char* name : {"../x", "/etc/x", "config.json", "model.safetensors", "..", ""}) {
    Sample sample;
    sample.tokenizer = {{name, "{}"}};
    error_of([&] { write_checkpoint(sample, folder / "m"); });
  }
  Sample sample;
  sample.provenance = {{"../x", "{}"}};
  for (const char* name : {"m.h5", "m"}) error_of([&] { write_checkpoint(sample, folder / name); });
  sample.provenance.clear();
  sample.tensors[0].name = "a/b";
  for (const char* name : {"m.h5", "m"}) error_of([&] { write_checkpoint(sample, folder / name); });
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a place that cannot be written to is one clear line") {
  const Sample sample;
  for (const std::string name : {"m.h5", "m"}) {
    const std::string error = error_of([&] { write_checkpoint(sample, fs::path("/proc/statescope") / name); });
    CHECK(error == "/proc/statescope/" + name + ": cannot be written: No such file or directory");
  }
}

TEST_CASE("a disk that fills up is one clear line, and nothing is left behind") {
  const TemporaryFolder folder;
  Sample sample;
  sample.numbers.resize(2'000'000);
  sample.tensors.clear();
  sample.add("w", DType::f32, {1000, 2000});
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 20, before.rlim_max};  // write() then fails as it does on a full disk
  for (const char* name : {"m.h5", "m"}) {
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string error = error_of([&] { write_checkpoint(sample, folder / name); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    INFO(error);
    CHECK(error.starts_with((folder / name).string()));
    CHECK(error.find("cannot be written") != error.npos);
    CHECK(error.find("File too large") != error.npos);
    CHECK(entries(folder.path()) == 0);
    write_checkpoint(sample, folder / name);  // and the library has recovered
    check_same(sample, *open_checkpoint(folder / name));
    fs::remove_all(folder / name);
  }
  std::signal(SIGXFSZ, handler);
}

}  // namespace statescope::convert_test
