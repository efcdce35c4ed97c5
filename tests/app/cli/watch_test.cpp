// inspect --watch: every checkpoint is read once, when it is whole, whatever its writer does.
#include "app/inspect/watch.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "app/assets.h"
#include "app/inspect/inspecting.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::watch_test {
namespace {

namespace fs = std::filesystem;

fs::path shipped(const std::string& name) { return shipped_checkpoint(name); }

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
  fs::remove(file);  // a trainer keeps only the last ones
  CHECK(w.look().changed);
  REQUIRE(w.names().size() == 1);
  CHECK(w.watch.results()[0].notes == std::vector<std::string>{"the checkpoint is no longer there"});
  CHECK_FALSE(w.look().changed);
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

TEST_CASE("watch: deleted checkpoints keep their place in the course of the training") {
  Watched w;
  for (int step = 100; step <= 300; step += 100)
    write(w.path("m-step" + std::to_string(step) + ".h5"), shipped(step == 100   ? "mqar-gla"
                                                                   : step == 200 ? "mqar-retnet"
                                                                                 : "mqar-delta-net"));
  w.look(), w.look();
  fs::remove(w.path("m-step200.h5"));
  w.look();
  CHECK(w.names() == std::vector<std::string>{"m-step100.h5", "m-step200.h5", "m-step300.h5"});
  CHECK(w.watch.results()[0].notes.empty());
}

TEST_CASE("watch: started again it reads only what is new, and what it kept is what it had read") {
  const test::TemporaryFolder cache, training;
  const InspectArguments arguments{.lengths = {64}, .samples = 1};
  const KeptResults kept(cache.path(), reading_of(arguments));
  int reads = 0;
  const auto inspect = [&](const FoundCheckpoint& found) {
    ++reads;
    return inspect_checkpoint(arguments, found, [](double) { return true; });
  };
  const auto looked = [&](const std::optional<KeptResults>& results) {
    Watch watch(inspect, results);
    watch.look({training.path().string()});
    const Watch::Look look = watch.look({training.path().string()});
    CHECK(look.changed);
    CHECK(look.fresh.size() + look.known.size() == watch.results().size());
    return watch.results();
  };
  write(training / "a-step100.h5", shipped("mqar-sse-gla-n4k1"));
  write(training / "a-step200.h5", shipped("mqar-sla-gdn"));
  const std::vector<Inspected> first = looked(kept);
  CHECK(reads == 2);
  write(training / "a-step300.h5", shipped("mqar-mom"));
  const std::vector<Inspected> second = looked(kept);
  CHECK(reads == 3);
  REQUIRE(second.size() == 3);
  // Every number of the report, its table and its page
  CHECK(inspection_json({second[0], second[1]}) == inspection_json(first));
  CHECK(inspection_csv({second[0], second[1]}) == inspection_csv(first));
  CHECK(inspection_html({second[0], second[1]}) == inspection_html(first));
  // Another reading, or a training that says something else of itself, is another result.
  CHECK(reading_of(arguments) == reading_of(InspectArguments{.lengths = {64}, .samples = 1}));
  CHECK(reading_of(arguments) != reading_of(InspectArguments{.lengths = {64}, .samples = 2}));
  CHECK(reading_of(InspectArguments{.prompts = {"-"}}).empty());
  looked(KeptResults(cache.path(), "another"));
  CHECK(reads == 6);
}

TEST_CASE("watch: kept results that were cut or changed are not there") {
  const test::TemporaryFolder cache;
  const KeptResults kept(cache / "made" / "when needed", "reading");
  CHECK_FALSE(kept.find("x"));
  kept.keep("x", {.checkpoint = "a.h5", .steps = 7, .names = {"niah"}, .sequences = {{}}});
  REQUIRE(kept.find("x"));
  CHECK(kept.find("x")->steps == 7);
  const fs::path file = fs::directory_iterator(cache / "made" / "when needed")->path();
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes.substr(0, size);
    CHECK_FALSE(kept.find("x"));
    std::string changed = bytes;
    changed[size] = static_cast<char>(changed[size] ^ 4);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << changed;
    CHECK_FALSE(kept.find("x"));
  }
  fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(24 * 31));
  kept.forget_old();
  CHECK_FALSE(fs::exists(file));
  KeptResults(cache / "made" / "when needed" / "x" / std::string(300, 'y'), "reading").keep("x", {});  // it cannot be made: no error
}

}  // namespace statescope::watch_test
