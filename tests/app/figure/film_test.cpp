#include "app/film/film.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>

#include "app/assets.h"
#include "app/film/encoder.h"
#include "engine/error.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"

namespace statescope::film_test {
namespace {

constexpr const char* keeps_pictures = "#!/bin/sh\nfor last; do :; done\nexec cat > \"${last#file:}\"\n";
constexpr const char* gives_up = "#!/bin/sh\necho 'no room for the film' >&2\nexit 1\n";

/// A program called ffmpeg before all others, for as long as it lives.
class FakeEncoder {
 public:
  explicit FakeEncoder(const char* script) : path_(qgetenv("PATH")) {
    QFile file(folder_.filePath("ffmpeg"));
    REQUIRE(file.open(QIODevice::WriteOnly));
    file.write(script);
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    qputenv("PATH", folder_.path().toUtf8() + ':' + path_);
  }
  ~FakeEncoder() { qputenv("PATH", path_); }

 private:
  QTemporaryDir folder_;
  QByteArray path_;
};

FigureSpec routing() {
  FigurePanel panel;
  panel.view = "routing";
  panel.checkpoints = {"niah-sse-gla-n4k1.h5"};
  panel.prompt = "needle.json";
  FigureSpec spec;
  spec.type_pt = 12;
  spec.panels = {panel};
  return spec;
}

/// Three tokens of four frames each.
constexpr FilmOptions three_tokens{.first = 10, .last = 12, .width = 320, .height = 180, .frames_per_second = 8, .seconds_per_token = 0.5};

std::string why_not(const FilmOptions& options, const std::filesystem::path& path, const FigureProgress& progress = {}) {
  FigureRuns runs({}, {}, progress);
  try {
    write_film(routing(), options, runs, path, false);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a film has the same number of frames of each token: it moves, then rests") {
  qt_application();
  const FakeEncoder encoder(keeps_pictures);
  const QTemporaryDir folder;
  FigureRuns runs;
  write_film(routing(), three_tokens, runs, folder.filePath("run.mp4").toStdString(), false);

  QFile film(folder.filePath("run.mp4"));
  REQUIRE(film.open(QIODevice::ReadOnly));
  const qsizetype bytes = 320 * 180 * 4;
  REQUIRE(film.size() == 12 * bytes);
  std::vector<QByteArray> frames;
  while (!film.atEnd()) frames.push_back(film.read(bytes));
  CHECK(frames[0] == frames[3]);  // where it begins nothing moves
  for (const std::size_t token : {4, 8}) {
    CHECK(frames[token] != frames[token - 1]);
    CHECK(frames[token] != frames[token + 1]);
  }
  CHECK(frames[7] != frames[11]);
  CHECK(QDir(folder.path()).entryList(QDir::Files | QDir::Hidden) == QStringList{"run.mp4"});
}

TEST_CASE("a film that cannot be made says why and leaves nothing") {
  qt_application();
  const QTemporaryDir folder;
  const std::filesystem::path path = folder.filePath("run.mp4").toStdString();
  FilmOptions beyond = three_tokens;
  beyond.last = 99'999;
  CHECK(why_not(beyond, path) == "there is no token 99999 (tokens are 0 to 255)");
  FilmOptions backwards = three_tokens;
  backwards.last = 9;
  CHECK(why_not(backwards, path) == "a film from token 10 to token 9 has none");
  CHECK(why_not(three_tokens, folder.filePath("no/folder/run.mp4").toStdString()).ends_with("No such file or directory"));
  {
    const FakeEncoder encoder(keeps_pictures);
    CHECK(why_not(three_tokens, folder.filePath("run.avi").toStdString()) == "the name of a film must end in .mp4 or .gif");
    CHECK(why_not(three_tokens, path, [](double, const std::string& what) { return !what.starts_with("token"); }) == "cancelled");
  }
  {
    const FakeEncoder encoder(gives_up);
    CHECK(why_not(three_tokens, path) == "ffmpeg gave up: no room for the film");
  }
  const QByteArray programs = qgetenv("PATH");
  qputenv("PATH", folder.path().toUtf8());
  CHECK(why_not(three_tokens, path) == "a film needs ffmpeg: install the package of that name");
  qputenv("PATH", programs);
  CHECK(QDir(folder.path()).entryList(QDir::Files | QDir::Hidden | QDir::Dirs | QDir::NoDotAndDotDot).isEmpty());
}

TEST_CASE("a film's sides are even, and each token has a frame") {
  CHECK(wrong_film(three_tokens).empty());
  CHECK_FALSE(wrong_film({.width = 1281}).empty());
  CHECK_FALSE(wrong_film({.frames_per_second = 1, .seconds_per_token = 0.1}).empty());
}

}  // namespace statescope::film_test
