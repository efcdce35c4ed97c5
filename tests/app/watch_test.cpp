// inspect --watch: every checkpoint is read once, when it is whole, whatever its writer does.
#include "app/inspect/watch.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::watch_test {
namespace {

namespace fs = std::filesystem;

fs::path shipped(const std::string& name) { return from_source("assets/checkpoints/") + name + ".h5"; }

/// A folder that is watched, and what was read of it.
struct Watched {
  test::TemporaryFolder folder;
  std::vector<std::string> read;
  Watch watch{[this](const FoundCheckpoint& found) {
    read.push_back(fs::path(found.path).filename().string());
    if (on_read) on_read(found.path);
    return Inspected{.checkpoint = found.path, .steps = found.steps};
  }};
  std::function<void(const std::string&)> on_read;

  fs::path path(const std::string& name) const { return folder / name; }
  Watch::Look look() { return watch.look({folder.path().string()}); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Inspected& one : watch.results()) all.push_back(fs::path(one.checkpoint).filename().string());
    return all;
  }
};

/// Its first `part` bytes; all without.
void write(const fs::path& to, const fs::path& from, std::size_t part = std::string::npos) {
  std::ifstream file(from, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::ofstream(to, std::ios::binary) << bytes.substr(0, part);
}

}  // namespace

TEST_CASE("watch: a checkpoint is read at the second look at which it is the same, and never again") {
  Watched w;
  write(w.path("a-step100.h5"), shipped("mqar-gla"));
  CHECK(w.look().fresh.empty());
  const Watch::Look second = w.look();
  REQUIRE(second.fresh.size() == 1);
  CHECK(second.changed);
  CHECK_FALSE(w.look().changed);
  write(w.path("a-step200.h5"), shipped("mqar-gated-deltanet"));
  w.look();
  w.look();
  w.look();
  CHECK(w.read == std::vector<std::string>{"a-step100.h5", "a-step200.h5"});
  CHECK(w.names() == w.read);
  CHECK(w.watch.results()[1].steps == 200);
}

TEST_CASE("watch: a slow writer is waited for; one that broke off is named once and read when it is whole") {
  Watched w;
  const fs::path to = w.path("slow-step1.h5"), from = shipped("mqar-gla");
  for (const std::size_t part : {1000U, 20000U, 60000U}) {
    write(to, from, part);
    CHECK(w.look().fresh.empty());
  }
  const Watch::Look broken = w.look();  // the same as before: it looks whole
  REQUIRE(broken.skipped.size() == 1);
  CHECK(broken.skipped[0].find("slow-step1.h5") != std::string::npos);
  CHECK(w.look().skipped.empty());
  CHECK(w.read.empty());
  write(to, from);
  w.look();
  CHECK(w.look().fresh.size() == 1);
}

TEST_CASE("watch: what replaces a checkpoint is read, also where it does so while it is read; the same bytes are not") {
  Watched w;
  const fs::path file = w.path("x-step1.h5");
  write(file, shipped("mqar-gla"));
  w.look(), w.look();
  CHECK(w.read.size() == 1);
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(5));  // written anew with the same bytes
  w.look(), w.look();
  CHECK(w.read.size() == 1);
  CHECK(w.names().size() == 1);
  write(file, shipped("mqar-gated-deltanet"));
  w.on_read = [&](const std::string& path) {
    w.on_read = {};
    write(path, shipped("mqar-retnet"));
  };
  w.look();
  CHECK(w.look().fresh.empty());  // replaced meanwhile: that reading counts for nothing
  w.look();
  CHECK(w.look().fresh.size() == 1);
  CHECK(w.read.size() == 3);
  fs::remove(file);
  CHECK(w.look().changed);
  CHECK(w.names().empty());
}

TEST_CASE("watch: two hundred checkpoints cost no more than the new ones") {
  Watched w;
  write(w.path("base"), shipped("mqar-gla"));
  for (int step = 1; step <= 200; ++step) fs::create_hard_link(w.path("base"), w.path("m-step" + std::to_string(step) + ".h5"));
  w.look(), w.look();
  CHECK(w.read.size() == 1);  // all have the same bytes
  CHECK(w.names().size() == 200);
  CHECK(w.watch.results()[199].steps == 200);
  write(w.path("m-step201.h5"), shipped("mqar-retnet"));
  w.look(), w.look();
  CHECK(w.read.size() == 2);
}

TEST_CASE("watch: a trainer's folder that is not whole is named once") {
  Watched w;
  fs::create_directories(w.path("checkpoint-10"));
  CHECK(w.look().skipped.size() == 1);
  CHECK(w.look().skipped.empty());
}

}  // namespace statescope::watch_test
