// Damaged HDF5 files: whatever is cut off or flipped, opening one ends, with a checkpoint or with one line.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/isolate.h"
#include "tests/engine/checkpoint/checkpoint_files.h"

namespace statescope::hostile_test {
using namespace statescope::test;

namespace {

std::string small_file(const TemporaryFolder& folder, H5F_libver_t version) {
  {
    const Hdf5File file(folder / "small.h5", version);
    file.head("{}");
    const std::vector<float> numbers{1, 2, 3, 4};
    file.dataset(file.group("tensors"), "w", H5T_IEEE_F32LE, {4}, numbers.data());
  }
  return read_bytes(folder / "small.h5");
}

#ifdef STATESCOPE_SANITIZE
constexpr int kStride = 31;  // damage is read in a process of its own, which the sanitizer makes slow
#else
constexpr int kStride = 1;
#endif

void opens_or_says_why(const std::filesystem::path& path) {
  try {
    touch(*open_checkpoint(path));
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.starts_with(path.string()));
    CHECK(text.find('\n') == text.npos);
  }
}

void put_u32(std::string& bytes, std::size_t at, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

TEST_CASE("what files say of themselves gives a terminal no commands") {
  CHECK(in_quotes("w\x1b[2J\n\x7f") == "'w\\x1b[2J \\x7f'");
  CHECK(in_quotes("w\xc2\x9b[2J") == "'w\\xc2\\x9b[2J'");  // U+009B
  CHECK(in_quotes("größe \xc2\xa0\xc2") == "'größe \xc2\xa0\\xc2'");
  CHECK(in_quotes("caf\xe9 \xf0\x9f\x94\xac \xed\xa0\x80") == "'caf\\xe9 \xf0\x9f\x94\xac \\xed\\xa0\\x80'");  // Latin-1; a surrogate
}

TEST_CASE("an HDF5 file cut off at any byte is refused") {
  const TemporaryFolder folder;
  const std::string whole = small_file(folder, H5F_LIBVER_V110);
  REQUIRE(whole.size() < 4000);
  CHECK(touch(*open_checkpoint(folder / "small.h5")) > 0);
  for (std::size_t length = 0; length < whole.size(); length += kStride) {
    write_bytes(folder / "cut.h5", whole.substr(0, length));
    const std::string error = open_error(folder / "cut.h5");
    CHECK(error.find("the HDF5 library fails") == error.npos);
  }
}

TEST_CASE("a flipped bit in an HDF5 file never hurts") {
  const TemporaryFolder folder;
  std::mt19937 random(3);
  for (const H5F_libver_t version : {H5F_LIBVER_V110, H5F_LIBVER_EARLIEST}) {
    const std::string whole = small_file(folder, version);
    for (int i = 0; i < 300; i += kStride) {
      std::string flipped = whole;
      char& byte = flipped[random() % std::min<std::size_t>(whole.size(), 2500)];
      byte = static_cast<char>(byte ^ 1 << random() % 8);
      write_bytes(folder / "flipped.h5", flipped);
      opens_or_says_why(folder / "flipped.h5");
    }
  }
}

TEST_CASE("a text whose declared length is wrong ends the reader, not the program") {
  const TemporaryFolder folder;
  const std::string config = "{\"k\": \"" + std::string(5000, 'x') + "\"}";
  {
    const Hdf5File file(folder / "small.h5", H5F_LIBVER_EARLIEST);
    file.text(file.file, "format", "statescope-checkpoint");
    file.version(1);
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t attribute = H5Acreate2(file.file, "config", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const char* text = config.c_str();
    H5Awrite(attribute, type, &text);
    const std::vector<float> numbers{1, 2, 3, 4};
    file.dataset(file.group("tensors"), "w", H5T_IEEE_F32LE, {4}, numbers.data());
  }
  const std::string whole = read_bytes(folder / "small.h5");
  std::string length(4, '\0');
  int found = 0;
  for (const auto size : {static_cast<std::uint32_t>(config.size()), static_cast<std::uint32_t>(config.size() + 1)}) {
    put_u32(length, 0, size);
    for (std::size_t at = whole.find(length); at != whole.npos; at = whole.find(length, at + 1), ++found)
      for (const std::uint32_t wrong : {1u, size + 4000, 0x7fffffffu, 0xfffffff0u}) {
        std::string damaged = whole;
        put_u32(damaged, at, wrong);
        write_bytes(folder / "damaged.h5", damaged);
        opens_or_says_why(folder / "damaged.h5");
      }
  }
  CHECK(found > 0);
}

/// What is said of a file whose reader is these words of the shell; its shared memory is descriptor 3.
std::string said_of(const std::string& words) {
  return error_of([&] { run_isolated("file.h5", 100, {"/bin/sh", "-c", words}); });
}

TEST_CASE("a reader that crashes, loops or says nothing comes back as one line") {
  const std::string fails = "file.h5: is damaged: the HDF5 library fails on it",
                    silent = "file.h5: is damaged: it cannot be read to its end";
  CHECK(said_of("kill -ABRT $$") == fails);
  CHECK(said_of("kill -SEGV $$") == fails);
  CHECK(said_of("exit 1") == fails);
  CHECK(said_of("kill -XCPU $$") == "file.h5: is damaged: reading it does not end");
  CHECK(said_of("exit 0") == silent);
  CHECK(said_of("echo this is no answer >&3") == silent);
}

TEST_CASE("a reader has a limit of time and no file of ours") {
  const std::string silent = "file.h5: is damaged: it cannot be read to its end";
  CHECK(said_of("sleep 0.2; [ $(ulimit -t) -ge 4 ] && [ $(ulimit -t) -le 60 ]") == silent);
  CHECK(said_of("[ ! -e /proc/$$/fd/4 ] && [ -e /proc/$$/fd/3 ]") == silent);
}

TEST_CASE("a damaged file is called what it was called by whoever opened it") {
  const TemporaryFolder folder;
  write_bytes(folder / "cut.h5", small_file(folder, H5F_LIBVER_LATEST).substr(0, 300));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path((folder / "cut.h5").parent_path());
  const std::string said = error_of([] { open_checkpoint("cut.h5"); });
  std::filesystem::current_path(before);
  CHECK(said.starts_with("cut.h5: is damaged"));
}

TEST_CASE("a reader that is not there is missed by name") {
  CHECK(error_of([] {
          run_isolated("file.h5", 100, {"/nowhere/statescope-reader", "file.h5"});
        }).starts_with("file.h5: cannot be read in a process of its own"));
}

}  // namespace statescope::hostile_test
