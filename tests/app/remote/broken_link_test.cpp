// Connections and engines that go at any moment.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <QProcess>
#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <random>
#include <thread>

#include "engine/checkpoint/descriptor.h"
#include "engine/run/intervention.h"
#include "tests/app/remote/engine_rig.h"
#include "tests/app/window/watchdog.h"
#include "tests/temporary_folder.h"

namespace statescope::broken_link_test {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kChunk = 1 << 16;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
template <class Address>
sockaddr* any(Address& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

/// Passes bytes on to the engine's port, until it is told to drop what goes through.
class Middleman {
 public:
  explicit Middleman(int to) : to_(to), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    REQUIRE(::bind(listener_.get(), any(address), size) == 0);
    REQUIRE(::listen(listener_.get(), 16) == 0);
    REQUIRE(::getsockname(listener_.get(), any(address), &size) == 0);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] { work(); });
  }
  ~Middleman() {
    stopping_ = true;
    thread_.join();
  }
  void drop() { drops_ = true; }

  int port = 0;

 private:
  struct Pair {
    Descriptor client, engine;
  };

  void work() {
    std::vector<std::unique_ptr<Pair>> pairs;
    std::vector<char> bytes(kChunk);
    while (!stopping_) {
      if (drops_.exchange(false)) pairs.clear();
      std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
      for (const auto& pair : pairs) {
        polled.push_back({pair->client.get(), POLLIN, 0});
        polled.push_back({pair->engine.get(), POLLIN, 0});
      }
      ::poll(polled.data(), polled.size(), 1);
      for (std::size_t i = 1; i < polled.size(); ++i) {
        std::unique_ptr<Pair>& pair = pairs[(i - 1) / 2];
        if (polled[i].revents == 0 || !pair) continue;
        const int to = i % 2 == 1 ? pair->engine.get() : pair->client.get();
        const ssize_t read = ::read(polled[i].fd, bytes.data(), bytes.size());
        if (read <= 0 || !send_all(to, bytes.data(), read)) pair.reset();
      }
      std::erase(pairs, nullptr);
      if (polled[0].revents != 0) accept(pairs);
    }
  }
  static bool send_all(int to, const char* bytes, ssize_t count) {
    while (count > 0) {
      const ssize_t sent = ::send(to, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes += sent;
      count -= sent;
    }
    return true;
  }
  void accept(std::vector<std::unique_ptr<Pair>>& pairs) {
    Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Descriptor engine(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(to_);
    if (::connect(engine.get(), any(address), sizeof(address)) == 0)
      pairs.push_back(std::make_unique<Pair>(Pair{std::move(client), std::move(engine)}));
  }

  const int to_;
  const Descriptor listener_;
  std::atomic<bool> stopping_ = false, drops_ = false;
  std::thread thread_;
};

/// `statescope serve` as a program of its own, which may be killed.
class Program {
 public:
  explicit Program(std::filesystem::path root) : root_(std::move(root)) { start(0); }
  ~Program() { kill(); }
  void kill() {
    process_->kill();
    process_->waitForFinished();
  }
  void start(int at) {
    process_ = std::make_unique<QProcess>();
    process_->start(QCoreApplication::applicationDirPath() + "/statescope",
                    {"serve", "--listen", QString("127.0.0.1:%1").arg(at), "--root", QString::fromStdString(root_.string())});
    REQUIRE(process_->waitForReadyRead(kLongMs));
    const QString said = process_->readLine();
    port = said.section("127.0.0.1:", 1).section(',', 0, 0).toInt();
    INFO(said.toStdString());
    REQUIRE(port > 0);
  }

  int port = 0;

 private:
  const std::filesystem::path root_;
  std::unique_ptr<QProcess> process_;
};

const PromptInput kPrompt{.text = "the glass was", .spans = {}, .ids = {}, .expected = {}, .generate = 2};

/// The newest picture comes, of the run as it is; a window asks anew where there is another run.
bool shows(Asked& asked) {
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const RunInfo> asked_of;
  const auto came = [&] {
    const std::int64_t last = std::ssize(asked.run()->tokens) - 1;
    if (snapshot && snapshot->run == asked.run() && snapshot->token == last) return true;
    if (std::exchange(asked_of, asked.run()) != asked.run())
      asked.source->show(1, 0, last, [&snapshot](std::shared_ptr<const Snapshot> answer) { snapshot = std::move(answer); });
    return false;
  };
  const bool did = QTest::qWaitFor(came, kLongMs);
  asked.source->show(0, 0, 0, [](const auto&) {});
  return did;
}

/// Connections, and now and then the engine, go at a hundred moments.
void lose_a_hundred(unsigned seed) {
  test_application();
  const test::TemporaryFolder folder;
  Program engine(folder.path());
  auto middleman = std::make_unique<Middleman>(engine.port);
  Asked asked(make_remote_source(engine_place(fmt::format("127.0.0.1:{}", middleman->port), "", "")));
  asked.source->open("niah-gla.h5", kPrompt, asked.callbacks());
  REQUIRE(asked.ends());
  REQUIRE(asked.failed == "");
  std::mt19937 random(seed);
  Watchdog watchdog;
  int engines = 0;
  for (int i = 0; i < 100; ++i) {
    INFO("moment " << i);
    const bool kills_engine = i % 13 == 12;
    const std::int64_t tokens = std::ssize(asked.run()->tokens), branch = asked.run()->branch.number;
    const auto what = random() % 4;
    if (what == 0) asked.source->generate(tokens + 1, asked.callbacks());
    if (what == 1) asked.source->intervene({parse_intervention("zero state at 1")}, asked.callbacks());
    if (what == 2) asked.source->undo(asked.callbacks());
    if (what == 3) asked.source->read(kPrompt, asked.callbacks());
    asked.source->show(static_cast<std::int64_t>(random() % 3), 0, 0, [](const auto&) {});
    QTest::qWait(static_cast<int>(random() % 20));
    if (kills_engine) {
      ++engines;
      engine.kill();
      QTest::qWait(static_cast<int>(random() % 50));
      engine.start(engine.port);
    } else {
      middleman->drop();
    }
    REQUIRE(asked.ends());
    if (!kills_engine) {
      CHECK(asked.failed == "");
      if (what == 0) CHECK(std::ssize(asked.run()->tokens) == tokens + 1);
      if (what == 1) CHECK(asked.run()->branch.parent == branch);
      if (what == 3) CHECK(std::ssize(asked.run()->tokens) == 5);
    }
    REQUIRE(shows(asked));
  }
  CHECK(engines == 7);
  CHECK(watchdog.longest_ms() < 200);
}

}  // namespace

TEST_CASE("remote: a connection and an engine that go at random moments lose nothing that the engine has, and nothing hangs") {
  lose_a_hundred(7);
}

TEST_CASE("remote: the same at a hundred other moments") { lose_a_hundred(8); }

TEST_CASE("remote: a connection that is lost is spoken of, and so is its return; what is cancelled meanwhile ends at once") {
  test_application();
  const test::TemporaryFolder folder;
  auto server = std::make_unique<EngineServer>(serve_setup(folder.path()));
  const EnginePlace place = place_of(*server);
  Asked asked(make_remote_source(place));
  asked.source->open("niah-gla.h5", kPrompt, asked.callbacks());
  REQUIRE(asked.ends());
  server.reset();
  asked.source->generate(20, asked.callbacks());
  REQUIRE(QTest::qWaitFor([&] { return !asked.remarked.empty(); }, kLongMs));
  CHECK_THAT(asked.remarked, ContainsSubstring(place.address + " does not answer"));
  asked.source->cancel();
  CHECK(asked.ended);
  CHECK(asked.failed == "cancelled");
  asked.remarked.clear();
  ServeSetup again = serve_setup(folder.path());
  again.address = place.address;
  server = std::make_unique<EngineServer>(again);
  REQUIRE(QTest::qWaitFor([&] { return asked.remarked.find("does not have this session any more") != std::string::npos; }, kLongMs));
  REQUIRE(shows(asked));
  CHECK(std::ssize(asked.run()->tokens) == 5);
}

TEST_CASE("remote: the window says that its engine is away, stays alive, and goes on when that is back") {
  test_application();
  const test::TemporaryFolder folder;
  Program engine(folder.path());
  Middleman middleman(engine.port);
  const std::unique_ptr<RunSource> source = make_remote_source(engine_place(fmt::format("127.0.0.1:{}", middleman.port), "", ""));
  MainWindow window(*source, {.opengl = false, .theme = ThemeChoice::light, .scale = 1, .autoplay = false, .is_elsewhere = true});
  window.resize(1200, 800);
  window.show();
  Navigator& navigator = window.navigator();
  const auto settled = [&] { return navigator.run() && !navigator.is_opening() && navigator.is_current(); };
  window.open_checkpoint("niah-gla.h5", kPrompt);
  REQUIRE(QTest::qWaitFor(settled, kLongMs));
  window.go_to_token(1);
  REQUIRE(QTest::qWaitFor(settled, kLongMs));

  middleman.drop();
  window.go_to_token(3);  // waits for the connection that comes at once
  REQUIRE(QTest::qWaitFor(settled, kLongMs));
  CHECK(navigator.snapshot()->token == 3);
  CHECK(window.error_bar().message().isEmpty());

  engine.kill();
  Watchdog watchdog;
  REQUIRE(QTest::qWaitFor([&] { return window.error_bar().message().contains("does not answer"); }, kLongMs));
  for (const std::int64_t token : {4, 0, 2}) {
    window.go_to_token(token);
    QTest::qWait(20);
    CHECK(navigator.cursor().token == token);
  }
  CHECK_FALSE(navigator.is_current());
  engine.start(engine.port);
  REQUIRE(QTest::qWaitFor([&] { return window.error_bar().message().contains("does not have this session any more"); }, kLongMs));
  REQUIRE(QTest::qWaitFor(settled, kLongMs));
  CHECK(navigator.snapshot()->token == 2);
  CHECK(watchdog.longest_ms() < 500);
}

TEST_CASE("remote: a session that was saved is opened again, with its branches, where the engine was started anew") {
  test_application();
  const test::TemporaryFolder folder;
  auto server = std::make_unique<EngineServer>(serve_setup(folder.path()));
  const EnginePlace place = place_of(*server);
  Asked asked(make_remote_source(place));
  asked.source->open("niah-gla.h5", kPrompt, asked.callbacks());
  REQUIRE(asked.ends());
  asked.source->intervene({parse_intervention("zero state at 1")}, asked.callbacks());
  REQUIRE(asked.ends());
  bool saved = false;
  asked.source->save(
      "run.scope", [&] { saved = true; }, [](const std::string&) {});
  REQUIRE(QTest::qWaitFor([&] { return saved; }, kLongMs));
  asked.branches.reset();
  server.reset();
  ServeSetup again = serve_setup(folder.path());
  again.address = place.address;
  server = std::make_unique<EngineServer>(again);
  REQUIRE(QTest::qWaitFor([&] { return asked.branches != nullptr; }, kLongMs));
  CHECK(asked.branches->runs.size() == 2);
  REQUIRE(shows(asked));
  CHECK(asked.run()->branch.number == 1);
}

}  // namespace statescope::broken_link_test
