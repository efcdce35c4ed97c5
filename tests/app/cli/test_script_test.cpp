// tests/run: what it says before it installs or builds anything.
#include <QProcess>

#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::test_script_test {
namespace {

struct Said {
  int status = -1;
  QString out, errors;
};

Said run(const QStringList& arguments) {
  QProcess process;
  process.start(QString::fromStdString(from_source("tests/run")), arguments);
  process.waitForFinished(10'000);
  return {process.exitCode(), QString::fromUtf8(process.readAllStandardOutput()), QString::fromUtf8(process.readAllStandardError())};
}

}  // namespace

TEST_CASE("tests/run: help is printed, nothing else is done") {
  for (const char* flag : {"--help", "-h"}) {
    const Said said = run({flag});
    CHECK(said.status == 0);
    CHECK(said.out.startsWith("usage: tests/run [PRESET [FOLDER …]]\n"));
    CHECK(said.out.contains("app datasets engine fuzz kernels mixers views parsers"));
    CHECK(said.errors.isEmpty());
  }
}

TEST_CASE("tests/run: an unknown preset or folder is refused in a line that says which there are") {
  const Said preset = run({"relase"}), folder = run({"asan", "viwes"});
  CHECK((preset.status == 2 && folder.status == 2));
  CHECK(preset.errors == "tests/run: there is no preset \"relase\": there are release dev asan tsan\n");
  CHECK(folder.errors ==
        "tests/run: there is no folder of tests \"viwes\": there are app datasets engine fuzz kernels mixers views parsers\n");
}

}  // namespace statescope::test_script_test
