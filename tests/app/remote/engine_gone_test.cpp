// Commands that are told to end, and engines that end, while they have to do with each other.
#include <fmt/format.h>

#include <QProcess>
#include <csignal>
#include <utility>

#include "tests/app/remote/engine_rig.h"
#include "tests/app/window/place.h"

namespace statescope::engine_gone_test {
namespace {

using namespace test::place;
using Catch::Matchers::ContainsSubstring;

constexpr int kSoonMs = 10'000;

/// A command that takes minutes.
QStringList long_run(const std::string& engine) {
  return {"run", "niah-gla.h5", "--text", "the glass was", "--generate", "200000", "--engine", QString::fromStdString(engine)};
}

bool ends(const QProcess& process, int ms = kSoonMs) {
  return QTest::qWaitFor([&] { return process.state() == QProcess::NotRunning; }, ms);
}

/// `statescope serve` as a program of its own.
class Program {
 public:
  explicit Program(const Place& place) {
    process.start(QString::fromStdString(program_path()),
                  {"serve", "--listen", "127.0.0.1:0", "--root", QString::fromStdString(place.folder.path().string())});
    REQUIRE(process.waitForReadyRead(kLongMs));
    address = "127.0.0.1:" + QString(process.readLine()).section("127.0.0.1:", 1).section(',', 0, 0).toStdString();
  }
  ~Program() {
    process.kill();
    process.waitForFinished();
  }
  std::string address;
  QProcess process;
};

}  // namespace

TEST_CASE("engine: a command that is told to end leaves its engine at once") {
  const Place place;
  const EngineServer server(serve_setup(place.folder.path()));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    INFO("signal " << signal);
    QProcess command;
    command.start(QString::fromStdString(program_path()), long_run(place_of(server).address));
    REQUIRE(QTest::qWaitFor([&] { return server.sessions() == 1; }, kLongMs));
    ::kill(static_cast<pid_t>(command.processId()), signal);
    REQUIRE(ends(command));
    CHECK(command.exitStatus() == QProcess::NormalExit);
    CHECK(command.exitCode() == 128 + signal);
    CHECK(command.readAllStandardError() == "statescope: cancelled\n");
    CHECK(QTest::qWaitFor([&] { return server.sessions() == 0; }, kSoonMs));
  }
}

TEST_CASE("engine: a command under nohup does not hear that its terminal has gone") {
  const Place place;
  const EngineServer server(serve_setup(place.folder.path()));
  QProcess command;
  command.setChildProcessModifier([] { std::signal(SIGHUP, SIG_IGN); });
  command.start(QString::fromStdString(program_path()), long_run(place_of(server).address));
  REQUIRE(QTest::qWaitFor([&] { return server.sessions() == 1; }, kLongMs));
  ::kill(static_cast<pid_t>(command.processId()), SIGHUP);
  CHECK_FALSE(ends(command, 1000));
  ::kill(static_cast<pid_t>(command.processId()), SIGTERM);
  CHECK(ends(command));
}

TEST_CASE("engine: a command whose reader has gone leaves its engine at once, and says nothing") {
  const Place place;
  const EngineServer server(serve_setup(place.folder.path()));
  const std::string run = fmt::format("'{}' observe niah-sse-gla-n4k1.h5 --text 'the glass was' --layer 1 --json - --engine {}",
                                      program_path(), place_of(server).address);
  QProcess shell;
  shell.start("bash", {"-c", QString::fromStdString(run + " | true; exit ${PIPESTATUS[0]}")});
  REQUIRE(ends(shell, kLongMs));
  CHECK(shell.exitCode() == 128 + SIGPIPE);
  CHECK(shell.readAllStandardError() == "");
  CHECK(QTest::qWaitFor([&] { return server.sessions() == 0; }, kSoonMs));
}

TEST_CASE("engine: a command says soon that its engine has ended") {
  test_application();
  const Place place;
  for (const int signal : {SIGINT, SIGKILL}) {
    INFO("signal " << signal);
    Program engine(place);
    QProcess command;
    command.start(QString::fromStdString(program_path()), long_run(engine.address));
    QTest::qWait(2000);
    REQUIRE(command.state() == QProcess::Running);
    ::kill(static_cast<pid_t>(engine.process.processId()), signal);
    REQUIRE(ends(command));
    CHECK(command.exitCode() == 1);
    CHECK(command.readAllStandardError().toStdString() ==
          fmt::format("statescope: {}: the engine ended before the command was done\n", engine.address));
  }
}

}  // namespace statescope::engine_gone_test
