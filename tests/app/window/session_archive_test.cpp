// A session in one file: given away, unpacked, opened; what is no such file is refused, and nothing is left of it.
#include "app/common/session_archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <fstream>

#include "app/assets.h"
#include "app/window/branch_commands.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::session_archive_test {
namespace {

namespace fs = std::filesystem;

/// A window with its own session.
struct Desk {
  Desk()
      : source((test_application(), make_session_source(nullptr))),
        window(*source,
               {.theme = ThemeChoice::light, .scale = 1, .autoplay = false, .make_source = [] { return make_session_source(nullptr); }}) {
    window.resize(1280, 720);
    window.show();
  }
  bool stands(const std::string& model) {
    const auto there = [&] {
      const auto& run = window.navigator().run();
      return run && run->model.name == model && !window.navigator().is_opening() && window.navigator().is_current();
    };
    return QTest::qWaitFor(there, long_enough_ms);
  }
  bool says(const QString& words) {
    return QTest::qWaitFor([&] { return window.said().contains(words) || window.error_bar().message().contains(words); }, long_enough_ms);
  }

  std::unique_ptr<RunSource> source;
  MainWindow window;
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

struct Entry {
  std::string name, text;
  int type = AE_IFREG;
};

void write_zip(const fs::path& path, const std::vector<Entry>& entries) {
  archive* const zip = archive_write_new();
  archive_write_set_format_zip(zip);
  archive_write_open_filename(zip, path.c_str());
  for (const Entry& each : entries) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, each.name.c_str());
    archive_entry_set_filetype(entry, static_cast<unsigned>(each.type));
    archive_entry_set_perm(entry, 0644);
    if (each.type == AE_IFLNK) archive_entry_set_symlink(entry, each.text.c_str());
    archive_entry_set_size(entry, each.type == AE_IFREG ? static_cast<la_int64_t>(each.text.size()) : 0);
    archive_write_header(zip, entry);
    if (each.type == AE_IFREG) archive_write_data(zip, each.text.data(), each.text.size());
    archive_entry_free(entry);
  }
  archive_write_close(zip);
  archive_write_free(zip);
}

std::string refusal_of(const fs::path& archive, const fs::path& folder) {
  try {
    unpack_session(archive, folder);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("session archive: saved in one window, opened in another that has neither session nor checkpoint") {
  QTemporaryDir here, there;
  const fs::path checkpoint = here.filePath("own.h5").toStdString(), session = here.filePath("lecture.scope").toStdString();
  const fs::path given = there.filePath("lecture.scope.zip").toStdString();
  fs::copy_file(assets_folder() / "checkpoints/niah/niah-gla.h5", checkpoint);
  std::string model;
  {
    Desk desk;
    desk.window.open_shipped(checkpoint);
    REQUIRE(QTest::qWaitFor([&] { return desk.window.navigator().run() != nullptr; }, long_enough_ms));
    model = desk.window.navigator().run()->model.name;
    REQUIRE(desk.stands(model));
    CHECK_FALSE(has_session(desk.window));
    desk.window.navigator().save_session(session);
    REQUIRE(QTest::qWaitFor([&] { return has_session(desk.window); }, long_enough_ms));
    desk.window.go_to_token(33);
    REQUIRE(desk.stands(model));
    share_session(desk.window, given);
    REQUIRE(desk.says("Session, recording and checkpoint are in"));
    share_session(desk.window, given);
    CHECK(desk.says("exists already"));
  }
  fs::remove(checkpoint);
  CHECK(names_in(there.path().toStdString()) == std::vector<std::string>{"lecture.scope.zip"});
  Desk desk;
  desk.window.open_path(given);
  REQUIRE(desk.stands(model));
  const fs::path folder = there.filePath("lecture").toStdString();
  CHECK(names_in(folder) == std::vector<std::string>{"lecture.scope", "lecture.scope.recording", "own.h5"});
  CHECK(desk.window.navigator().checkpoint() == folder / "own.h5");
  CHECK(read_file(folder / "lecture.scope", 10'000'000).find(here.path().toStdString()) == std::string::npos);
}

TEST_CASE("session archive: what is none, damaged or hostile is refused in a line, and nothing is left of it") {
  QTemporaryDir home;
  const fs::path at = home.path().toStdString(), session = at / "a.scope", archive = at / "a.scope.zip", folder = at / "unpacked";
  {
    Desk desk;
    desk.window.open_shipped(assets_folder() / "checkpoints/niah/niah-gla.h5");
    REQUIRE(QTest::qWaitFor([&] { return desk.window.navigator().run() && !desk.window.navigator().is_opening(); }, long_enough_ms));
    desk.window.navigator().save_session(session);
    REQUIRE(QTest::qWaitFor([&] { return has_session(desk.window); }, long_enough_ms));
  }
  const fs::path checkpoint = assets_folder() / "checkpoints/niah/niah-gla.h5";
  CHECK_FALSE(pack_session(session, checkpoint, archive, 1000).has_checkpoint);
  CHECK_THROWS_AS(pack_session(session, assets_folder() / "checkpoints/niah/niah-sse-gla-n4k1.h5", at / "b.scope.zip"), Error);
  const std::string record = read_file(session, 10'000'000), whole = read_file(archive, 100'000'000);
  const fs::path bad = at / "bad.zip";
  const std::vector<std::string> before = [&] {
    std::vector<std::string> names = names_in(at);
    names.emplace_back("bad.zip");
    std::ranges::sort(names);
    return names;
  }();
  const auto check_refused = [&] {
    const std::string said = refusal_of(bad, folder);
    INFO(said);
    CHECK_FALSE(said.empty());
    CHECK(said.find('\n') == std::string::npos);
    CHECK(names_in(at) == before);
  };
  const auto check_text = [&](const std::string& bytes) {
    std::ofstream(bad, std::ios::binary) << bytes;
    check_refused();
  };
  check_text("");
  check_text("no zip at all");
  for (std::size_t size = 1; size < whole.size(); size += whole.size() / 40 + 1) check_text(whole.substr(0, size));
  const std::vector<std::vector<Entry>> hostile = {
      {{"a.scope", record}},
      {{"../a.scope", record}, {"a.scope.recording", ""}},
      {{"/tmp/a.scope", record}, {"a.scope.recording", ""}},
      {{"sub/a.scope", record}, {"a.scope.recording", ""}},
      {{".scope", record}, {".scope.recording", ""}},
      {{"a.scope", record}, {"a.scope.recording", "/etc/passwd", AE_IFLNK}},
      {{"a.scope", record}, {"a.scope.recording", ""}, {"run.sh", "echo"}},
      {{"a.scope", record}, {"a.scope.recording", ""}, {"niah-gla.h5", ""}, {"more", ""}},
      {{"a.scope", record}, {"a.scope", record}, {"a.scope.recording", ""}},
      {{"a.scope", "{}"}, {"a.scope.recording", ""}},
      {{"a.scope", record.substr(0, record.size() / 2)}, {"a.scope.recording", ""}},
  };
  for (const std::vector<Entry>& entries : hostile) {
    fs::remove(bad);
    write_zip(bad, entries);
    INFO(entries.front().name << ", " << entries.size() << " files");
    check_refused();
  }
  CHECK(unpack_session(archive, folder) == folder / "a.scope");
  CHECK_THROWS_AS(unpack_session(archive, folder), Error);
}

TEST_CASE("session: a checkpoint that has gone is asked for, and found where the reader says") {
  QTemporaryDir home;
  const fs::path checkpoint = home.filePath("gone.h5").toStdString(), elsewhere = home.filePath("sub/of another name.h5").toStdString(),
                 session = home.filePath("a.scope").toStdString();
  fs::create_directory(elsewhere.parent_path());
  fs::copy_file(assets_folder() / "checkpoints/niah/niah-gla.h5", checkpoint);
  {
    Desk desk;
    desk.window.open_shipped(checkpoint);
    REQUIRE(QTest::qWaitFor([&] { return desk.window.navigator().run() && !desk.window.navigator().is_opening(); }, long_enough_ms));
    desk.window.navigator().save_session(session);
    REQUIRE(QTest::qWaitFor([&] { return has_session(desk.window); }, long_enough_ms));
  }
  fs::rename(checkpoint, elsewhere);
  Desk desk;
  desk.window.open_path(session);
  REQUIRE(desk.says("is missing"));
  auto* const locate = desk.window.error_bar().findChild<QPushButton*>();
  CHECK(locate->isVisible());
  CHECK(locate->text() == "Locate…");
  desk.window.open_session(session, assets_folder() / "checkpoints/niah/niah-retnet.h5");
  REQUIRE(desk.says("has changed since"));
  CHECK(locate->isVisible());
  desk.window.open_session(session, elsewhere);
  REQUIRE(QTest::qWaitFor([&] { return desk.window.navigator().run() && !desk.window.navigator().is_opening(); }, long_enough_ms));
  CHECK(desk.window.navigator().checkpoint() == elsewhere);
  CHECK_FALSE(desk.window.error_bar().isVisible());
  desk.window.show_error("something else");
  CHECK_FALSE(locate->isVisible());
}

}  // namespace statescope::session_archive_test
