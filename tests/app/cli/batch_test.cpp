#include "app/batch/batch.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>

#include "app/assets.h"
#include "engine/error.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"

namespace statescope::batch_test {
namespace {

constexpr std::string_view two_by_two =
    R"({"figures": ["rows.json"], "checkpoints": ["niah-gla.h5", "niah-sse-gla-n4k1.h5"], "prompts": ["needle.json", "needles-512.json"], "format": "svg"})";

std::string why_not(std::string_view text) {
  try {
    parse_batch(text, "batch.json");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void write(const QString& path, const QByteArray& text) {
  QFile file(path);
  REQUIRE(file.open(QIODevice::WriteOnly));
  file.write(text);
}

/// A folder with a spec of one view.
struct Folder {
  Folder() {
    write(folder.filePath("rows.json"), R"({"panels": [{"view": "state", "checkpoint": "niah-gla.h5", "prompt": "needle.json"}]})");
  }
  std::vector<BatchJob> jobs() const { return jobs_of(parse_batch(two_by_two, "batch.json"), folder.path().toStdString()); }
  QTemporaryDir folder;
};

}  // namespace

TEST_CASE("a batch is refused in one line, cut off anywhere or with what does not belong there") {
  CHECK(why_not(two_by_two).empty());
  CHECK(why_not("{}") == "batch.json: has no \"figures\"");
  CHECK(why_not(R"({"figures": "a.json", "colour": 1})").find("'colour' is no key of a batch") != std::string::npos);
  CHECK(why_not(R"({"figures": [1]})") == "batch.json: \"figures\" is not a text, or a list of them");
  CHECK(why_not(R"({"figures": "a.json", "format": "gif"})") == "batch.json: \"format\" is not pdf, svg, png or eps");
  for (std::size_t length = 0; length < two_by_two.size(); ++length) {
    const std::string words = why_not(two_by_two.substr(0, length));
    CHECK_FALSE(words.empty());
    CHECK(words.find('\n') == std::string::npos);
  }
}

TEST_CASE("a batch has a figure of each spec, checkpoint and prompt, named after them") {
  const Folder folder;
  const std::vector<BatchJob> jobs = folder.jobs();
  REQUIRE(jobs.size() == 4);
  CHECK(jobs[0].output.filename() == "rows-niah-gla-needle.svg");
  CHECK(jobs[3].output.filename() == "rows-niah-sse-gla-n4k1-needles-512.svg");
  CHECK(jobs[3].spec.find(shipped_checkpoint("niah-sse-gla-n4k1").string()) != std::string::npos);
  Batch twice = parse_batch(two_by_two, "batch.json");
  twice.prompts = {"needle.json", "needle.json"};
  CHECK_THROWS_AS(jobs_of(twice, folder.folder.path().toStdString()), Error);
  twice.prompts = {"no-such-prompt.json"};
  CHECK_THROWS_AS(jobs_of(twice, folder.folder.path().toStdString()), Error);
}

TEST_CASE("a batch continues where it was interrupted, and says what failed") {
  qt_application();
  const Folder folder;
  std::vector<BatchJob> jobs = folder.jobs();
  const QString program = folder.folder.filePath("figure.sh");
  write(program, "#!/bin/sh\ngrep -q n4k1 && { echo 'no such memory' >&2; exit 1; }\necho made > \"$5\"\n");
  QFile::setPermissions(program, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  REQUIRE(QDir(folder.folder.path()).mkdir("figures"));
  const auto run = [&](bool replace, std::size_t most) {
    return run_batch(jobs, program.toStdString(), {}, 2, replace, [most](std::size_t done) { return done < most; });
  };
  const BatchResult first = run(false, 100);
  CHECK(first.made == 2);
  REQUIRE(first.failed.size() == 2);
  CHECK(first.failed[0] == jobs[2].output.string() + ": no such memory");
  CHECK_FALSE(first.cancelled);
  const BatchResult again = run(false, 100);
  CHECK(again.there == 2);
  CHECK(again.made == 0);
  CHECK(run(true, 100).made == 2);
  CHECK(run(false, 1).cancelled);
}

}  // namespace statescope::batch_test
