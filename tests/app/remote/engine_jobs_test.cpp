// What commands have an engine do: heard of, ended, and not believed where it makes no sense.
#include <QProcess>
#include <atomic>
#include <csignal>
#include <thread>

#include "app/assets.h"
#include "app/jobs/jobs.h"
#include "app/remote/engine_runs.h"
#include "tests/app/remote/engine_rig.h"
#include "tests/temporary_folder.h"

namespace statescope::engine_jobs_test {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

/// `statescope model` with an engine of this process.
class Client {
 public:
  explicit Client(const EngineServer& server) {
    process_.start(QCoreApplication::applicationDirPath() + "/statescope",
                   {"model", "niah-gla.h5", "--engine", QString::fromStdString(place_of(server).address)});
    REQUIRE(process_.waitForStarted(kLongMs));
  }
  ~Client() {
    process_.kill();
    process_.waitForFinished(kLongMs);
  }
  void signal(int number) const { ::kill(static_cast<pid_t>(process_.processId()), number); }
  bool ends() {
    return QTest::qWaitFor([this] { return process_.state() == QProcess::NotRunning; }, kLongMs);
  }
  int status() const { return process_.exitCode(); }
  std::string errors() { return process_.readAllStandardError().toStdString(); }

 private:
  QProcess process_;
};

/// A job that goes on until it is told to end.
struct Endless {
  std::atomic<bool> begun = false, ended = false;

  DoJob job() {
    return [this](const std::string&, const std::filesystem::path&, const auto& tell) -> std::string {
      begun = true;
      while (tell(0.5, "reading")) std::this_thread::sleep_for(1ms);
      ended = true;
      throw Cancelled();
    };
  }
};

}  // namespace

TEST_CASE("engine: Ctrl+C ends what a command has it do") {
  const test::TemporaryFolder folder;
  Endless endless;
  ServeSetup setup = serve_setup(folder.path());
  setup.do_job = endless.job();
  const EngineServer server(setup);
  Client client(server);
  REQUIRE(QTest::qWaitFor([&] { return endless.begun.load(); }, kLongMs));
  client.signal(SIGINT);
  REQUIRE(client.ends());
  CHECK(client.status() == 130);
  CHECK(client.errors() == "statescope: cancelled\n");
  CHECK(QTest::qWaitFor([&] { return endless.ended.load() && server.sessions() == 0; }, kLongMs));
}

TEST_CASE("engine: what it does for a command that has gone without a word ends too") {
  const test::TemporaryFolder folder;
  Endless endless;
  ServeSetup setup = serve_setup(folder.path());
  setup.do_job = endless.job();
  setup.kept = 1s;
  const EngineServer server(setup);
  Client client(server);
  REQUIRE(QTest::qWaitFor([&] { return endless.begun.load(); }, kLongMs));
  client.signal(SIGKILL);
  REQUIRE(client.ends());
  CHECK(QTest::qWaitFor([&] { return endless.ended.load() && server.sessions() == 0; }, kLongMs));
}

TEST_CASE("engine: how far a job is comes while it is done, and then what it found") {
  const test::TemporaryFolder folder;
  std::atomic<bool> heard = false;
  ServeSetup setup = serve_setup(folder.path());
  setup.do_job = [&](const std::string& job, const std::filesystem::path& path, const auto& tell) {
    while (!heard && tell(0.25, "reading")) std::this_thread::sleep_for(1ms);
    return job + " of " + path.filename().string();
  };
  const EngineServer server(setup);
  EngineRuns runs(place_of(server));
  const auto tell = [&](double fraction, const std::string& what) {
    if (fraction == 0.25 && what == "reading") heard = true;
    return true;
  };
  CHECK(runs.work("niah-gla.h5", "a job", tell) == "a job of niah-gla.h5");
  CHECK(heard);
}

TEST_CASE("engine: why the CPU did it is said, and what is no answer is refused") {
  const test::TemporaryFolder folder;
  std::string answer = remote::pack(JobDone<ModelFound>{"cuda: the device is lost; the CPU does it from the beginning", {}});
  ServeSetup setup = serve_setup(folder.path());
  setup.do_job = [&](const std::string&, const std::filesystem::path&, const auto&) { return answer; };
  const EngineServer server(setup);
  Client noted(server);
  REQUIRE(noted.ends());
  CHECK(noted.status() == 0);
  CHECK(noted.errors() == "note: cuda: the device is lost; the CPU does it from the beginning\n");
  answer.pop_back();
  Client misled(server);
  REQUIRE(misled.ends());
  CHECK(misled.status() == 1);
  CHECK(misled.errors() == "statescope: a message ends too early: 7 bytes where 8 are needed\n");
}

TEST_CASE("engine: an engine without jobs, and bytes that are none, are refused in a line") {
  const test::TemporaryFolder folder;
  ServeSetup setup = serve_setup(folder.path());
  const auto refusal = [&] {
    const EngineServer server(setup);
    EngineRuns runs(place_of(server));
    try {
      runs.work("niah-gla.h5", "no job", [](double, const std::string&) { return true; });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal() == "this engine does nothing for commands");
  setup.do_job = [](const std::string& job, const std::filesystem::path&, const auto&) { return do_packed_job(job, {}); };
  CHECK_THAT(refusal(), ContainsSubstring("a message"));
}

TEST_CASE("engine: no file of its machine is read for an evaluation") {
  const JobSite site{.checkpoint = "niah-gla.h5", .path = shipped_checkpoint("niah-gla.h5")};
  for (const char* task : {"niah", "text", "mqar", "file"}) {
    for (const char* haystack : {"/etc/passwd", "filler.txt"}) {
      EvalJob job{{{}}};
      job.cells[0].cell.samples = 1;
      job.cells[0].cell.task.name = task;
      job.cells[0].cell.task.haystack = haystack;
      INFO(task << " " << haystack);
      if (std::string(task) == "text")
        CHECK(do_job(job, site)[0].score.impossible.find("the 0 bytes of the text") != std::string::npos);
      else
        CHECK_THROWS_WITH(do_job(job, site), "no texts but those of the program are read here");
    }
  }
}

}  // namespace statescope::engine_jobs_test
