// Files that another program shortens while they are read: one line of error, no end of the program and no other numbers.
#include "engine/checkpoint/mapped_file.h"

#include <chrono>
#include <fstream>
#include <thread>

#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/file.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::mapped_file_test {
namespace {

namespace fs = std::filesystem;

const std::string kShorter = ": the file became shorter while it was read";

/// A small model's checkpoint as an .h5 file or a folder, whose file of weights can be cut.
struct Stored {
  TemporaryFolder folder;
  fs::path path, weights;

  explicit Stored(const std::string& name) : path(folder / name), weights(path.extension() == ".h5" ? path : path / "model.safetensors") {
    write_checkpoint(*random_checkpoint(Config(small_config("gla")), 1), path);
  }
  void cut(std::uintmax_t size) const { fs::resize_file(weights, size); }
  std::string shorter() const { return weights.string() + kShorter; }
};

}  // namespace

TEST_CASE("mapped file: pages that are gone read as zeros, and are told") {
  const TemporaryFolder folder;
  const fs::path path = folder / "numbers";
  constexpr std::size_t size = 5 << 16;
  write_bytes(path, std::string(size, 'x'));
  const MappedFile cut(path), whole(path);
  CHECK_NOTHROW(cut.require_whole());
  fs::resize_file(path, size - 1);  // within the last page
  CHECK(error_of([&] { cut.require_whole(); }) == path.string() + kShorter);
  fs::resize_file(path, 100);
  CHECK(cut.text()[99] == 'x');
  CHECK(cut.text()[size - 1] == 0);
  CHECK(cut.text()[1 << 16] == 0);
  CHECK(error_of([&] { cut.require_whole(); }) == path.string() + kShorter);
  write_bytes(path, std::string(size, 'y'));  // another file of that name: this one is still cut
  CHECK(error_of([&] { whole.require_whole(); }) == path.string() + kShorter);
  const MappedFile other(path);
  CHECK(other.text().back() == 'y');
  CHECK_NOTHROW(other.require_whole());
}

TEST_CASE("mapped file: one that is as long again as it was has lost what it had") {
  const TemporaryFolder folder;
  const fs::path path = folder / "numbers";
  constexpr std::size_t size = 5 << 16;
  write_bytes(path, std::string(size, 'x'));
  const MappedFile file(path);
  fs::resize_file(path, 0);
  CHECK(file.text()[size / 2] == 0);
  fs::resize_file(path, size);
  CHECK(error_of([&] { file.require_whole(); }) == path.string() + ": a part of it could not be read");
}

TEST_CASE("mapped file: one that is written to in its place is no longer one") {
  const TemporaryFolder folder;
  const fs::path path = folder / "numbers";
  write_bytes(path, std::string(1 << 16, 'x'));
  const MappedFile file(path);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // longer than the clock of file systems takes for a tick
  CHECK_NOTHROW(file.require_whole());
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('y');
  CHECK(error_of([&] { file.require_whole(); }) == path.string() + ": the file was written to while it was read");
}

TEST_CASE("mapped file: a model whose file is cut computes nothing more, and says why") {
  for (const char* name : {"model.h5", "model"}) {
    INFO(name);
    const Stored stored(name);
    const auto model = Model::load(open_checkpoint(stored.path), make_cpu_backend(2));
    const std::vector<std::int32_t> ids = some_ids(20);
    CHECK_NOTHROW(logits_of(*model, ids));
    stored.cut(5000);
    CHECK(error_of([&] { logits_of(*model, ids); }) == stored.shorter());
    CHECK(error_of([&] { logits_of(*model, std::span(ids).first(1), 0); }) == stored.shorter());
  }
}

TEST_CASE("mapped file: what is made of a checkpoint whose file is cut is refused") {
  for (const char* name : {"model.h5", "model"}) {
    INFO(name);
    const Stored stored(name);
    const auto checkpoint = open_checkpoint(stored.path);
    stored.cut(5000);
    CHECK(error_of([&] { Model::load(checkpoint, make_cpu_backend(1)); }) == stored.shorter());
    CHECK(error_of([&] { content_digest(*checkpoint); }) == stored.shorter());
    for (const char* target : {"converted", "converted.h5"}) {
      CHECK(error_of([&] { write_checkpoint(*checkpoint, stored.folder / target); }) == stored.shorter());
      CHECK(!fs::exists(stored.folder / target));
    }
  }
}

}  // namespace statescope::test::mapped_file_test
