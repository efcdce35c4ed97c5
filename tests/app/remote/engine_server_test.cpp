// Who may come to an engine, and what it shows.
#include <fmt/format.h>

#include <unistd.h>

#include <QTcpServer>
#include <QTcpSocket>
#include <filesystem>
#include <fstream>
#include <future>

#include "app/assets.h"
#include "app/remote/served.h"
#include "engine/error.h"
#include "tests/app/remote/engine_rig.h"
#include "tests/temporary_folder.h"

namespace statescope::engine_server_test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

std::string why_not(const EnginePlace& place) {
  try {
    check_engine(place);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string why_not(ServeSetup setup) {
  try {
    const EngineServer server(std::move(setup));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// A client of another kind: what it is told.
class Stranger final : public remote::ClientEnd {
 public:
  bool hear(remote::Event) override { return false; }
  std::optional<remote::Request> next() override { return std::nullopt; }
  void gone(const remote::Ending& ending) override { told.set_value(ending); }
  std::promise<remote::Ending> told;
};

}  // namespace

TEST_CASE("engine: a wrong token is refused, and none") {
  const test::TemporaryFolder folder;
  ServeSetup setup = serve_setup(folder.path());
  setup.token = "open-sesame";
  const EngineServer server(setup);
  EnginePlace place = place_of(server);
  CHECK_THAT(why_not(place), ContainsSubstring("asks for a token"));
  for (const std::string wrong : {"open-sesam", "open-sesame2", "Open-sesame", "open-sesameopen-sesame"}) {
    place.token = wrong;
    CHECK_THAT(why_not(place), ContainsSubstring("the engine does not accept this token"));
  }
  CHECK(server.sessions() == 0);
  place.token = setup.token;
  CHECK(why_not(place) == "");
}

TEST_CASE("engine: secrets are the same only where every letter is") {
  CHECK(is_same_secret("abc", "abc"));
  for (const std::string other : {"", "ab", "abd", "abcabc", "xbc"}) {
    CHECK_FALSE(is_same_secret(other, "abc"));
    CHECK_FALSE(is_same_secret("abc", other));
  }
  CHECK(random_name().size() == 32);
  CHECK(random_name() != random_name());
}

TEST_CASE("engine: an address that others hear needs TLS and a token") {
  const test::TemporaryFolder folder;
  ServeSetup setup = serve_setup(folder.path());
  for (const std::string address : {"0.0.0.0:0", "[::]:0", "192.168.1.7:7453", "127.evil.org:80", "myhost:1"}) {
    setup.address = address;
    setup.token = "word";
    INFO(address);
    CHECK_THAT(why_not(setup), ContainsSubstring("needs --cert, --key and --token-file"));
  }
  for (const std::string address :
       {"", "127.0.0.1", ":7", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1:7453", "127.0.0.1\n:7453", "a b:7453"}) {
    setup.address = address;
    INFO(address);
    CHECK_THAT(why_not(setup), ContainsSubstring("is not an address; write HOST:PORT"));
  }
  for (const std::string host : {"127.0.0.1", "127.1.2.3", "localhost", "::1"}) CHECK(is_loopback(host));
}

TEST_CASE("engine: another protocol is refused by both versions") {
  const test::TemporaryFolder folder;
  const EngineServer server(serve_setup(folder.path()));
  const auto stranger = std::make_shared<Stranger>();
  std::future<remote::Ending> told = stranger->told.get_future();
  remote::ConnectSetup setup{.address = place_of(server).address};
  setup.hello.protocol = remote::kProtocol + 1;
  setup.hello.version = "9.9";
  const auto connection = remote::transport().connect(setup, stranger);
  const remote::Ending ending = told.get();
  CHECK(ending.final);
  CHECK_THAT(ending.why, ContainsSubstring(fmt::format("0.1.0 (protocol {})", remote::kProtocol)) &&
                             ContainsSubstring(fmt::format("9.9 (protocol {})", remote::kProtocol + 1)));
}

TEST_CASE("engine: something else that answers at the address is told from one") {
  test_application();
  const std::string page = "Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nno\n";
  for (const std::string& answer :
       {"HTTP/1.0 200 OK\r\n" + page, "HTTP/1.1 400 Bad Request\r\n" + page, std::string("SSH-2.0-OpenSSH_9\r\n")}) {
    INFO(answer);
    QTcpServer other;
    REQUIRE(other.listen(QHostAddress::LocalHost));
    QObject::connect(&other, &QTcpServer::newConnection, [&] {
      QTcpSocket* const client = other.nextPendingConnection();
      QObject::connect(client, &QTcpSocket::readyRead, client, [client, answer] {
        client->readAll();
        client->write(answer.c_str());
        client->disconnectFromHost();
      });
    });
    const EnginePlace place = engine_place(fmt::format("127.0.0.1:{}", other.serverPort()), "", "");
    std::future<std::string> told = std::async(std::launch::async, [&] { return why_not(place); });
    REQUIRE(QTest::qWaitFor([&] { return told.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }, kLongMs));
    CHECK(told.get() == place.address + ": something answers there, but it is not a Statescope engine");
  }
}

TEST_CASE("engine: no more clients than it takes") {
  const test::TemporaryFolder folder;
  ServeSetup setup = serve_setup(folder.path());
  setup.most_clients = 1;
  const EngineServer server(setup);
  Asked one(make_remote_source(place_of(server)));
  REQUIRE(QTest::qWaitFor([&] { return server.sessions() == 1; }, kLongMs));
  CHECK_THAT(why_not(place_of(server)), ContainsSubstring("the engine is full: its only place is taken. Each model that"));
  Asked other(make_remote_source(place_of(server)));
  other.source->open("niah-gla.h5", {}, other.callbacks());
  REQUIRE(other.ends());
  CHECK_THAT(other.failed, ContainsSubstring("the engine is full"));
}

TEST_CASE("engine: a session that outlives its server still knows which files it may show") {
  test_application();
  const test::TemporaryFolder folder;
  std::shared_ptr<Served> served;
  {
    const auto root = std::make_unique<ServedRoot>(folder.path());
    served = std::make_shared<Served>("id", *root, session_here);
  }
  const std::shared_ptr<remote::EngineEnd> stream = served->attach(0, false);
  REQUIRE(std::holds_alternative<remote::Welcome>(stream->next()->told));
  served->perform({.number = 1, .id = 1, .asked = remote::Save{(folder / "none/run.scope").string()}});
  const std::optional<remote::Event> told = stream->next();
  REQUIRE(std::holds_alternative<remote::NotSaved>(told->told));
  CHECK_THAT(std::get<remote::NotSaved>(told->told).why, ContainsSubstring("there is no such folder in the one that the engine shows"));
  served->end();
}

TEST_CASE("engine: a client that has left gives its place up at once") {
  const test::TemporaryFolder folder;
  ServeSetup setup = serve_setup(folder.path());
  setup.most_clients = 1;
  const EngineServer server(setup);
  for (int i = 0; i < 3; ++i) CHECK(QTest::qWaitFor([&] { return why_not(place_of(server)).empty(); }, kLongMs));
}

TEST_CASE("engine: nothing outside of its folder is shown") {
  const test::TemporaryFolder outer;
  fs::create_directories(outer / "shown/models/a");
  fs::create_directories(outer / "shown-too");
  std::ofstream(outer / "secret.h5") << "secret";
  std::ofstream(outer / "shown/own.h5") << "own";
  std::ofstream(outer / "shown-too/near.h5") << "near";
  fs::create_symlink(outer / "secret.h5", outer / "shown/link.h5");
  fs::create_symlink("own.h5", outer / "shown/inner.h5");
  fs::create_symlink(outer.path(), outer / "shown/up");
  fs::create_symlink(outer / "secret.h5", outer / "shown/models/a/config.json");
  const ServedRoot root(outer / "shown");
  CHECK(root.existing("own.h5") == fs::canonical(outer / "shown/own.h5"));
  CHECK(root.existing((outer / "shown/own.h5").string()) == fs::canonical(outer / "shown/own.h5"));
  CHECK(root.existing("models/../inner.h5") == fs::canonical(outer / "shown/own.h5"));
  CHECK(root.existing("niah-gla.h5").filename() == "niah-gla.h5");
  for (const std::string name :
       {"../secret.h5", "link.h5", "up/secret.h5", "models/a", "..", "/etc/passwd", "../shown-too/near.h5", "up"}) {
    INFO(name);
    CHECK_THROWS_WITH(root.existing(name), ContainsSubstring("lies outside of the folder that the engine shows"));
  }
  for (const std::string name : {"none.h5", "../none.h5", "", std::string("own.h5\0x", 8).c_str()}) {
    INFO(name);
    if (name != "own.h5") CHECK_THROWS_AS(root.existing(name), Error);
  }
  const std::string long_name(5000, 'a');
  for (const std::string& name : {long_name, "models/" + long_name}) {
    CHECK_THROWS_WITH(root.existing(name), ContainsSubstring("aaa...': that name is too long for a file"));
    CHECK_THROWS_WITH(root.writable(name), ContainsSubstring("too long for a file"));
  }
  CHECK(root.writable("models/run.scope") == fs::canonical(outer / "shown/models") / "run.scope");
  for (const std::string name : {"../run.scope", "up/run.scope", "/tmp/run.scope", "link.h5", "models/..", "none/run.scope", ""}) {
    INFO(name);
    CHECK_THROWS_AS(root.writable(name), Error);
  }
  CHECK(root.name_of(outer / "shown/models/a") == "models/a");
  CHECK(name_on_engine(name_from_engine("models/a")) == "models/a");
  CHECK_FALSE(fs::exists(name_from_engine("README.md")));
  CHECK(name_from_engine("niah-gla.h5") == default_run().checkpoint.parent_path() / "niah-gla.h5");
  CHECK(name_on_engine(default_run().checkpoint) == default_run().checkpoint.filename());
  CHECK(root.name_of(default_run().checkpoint) == default_run().checkpoint.filename());
}

TEST_CASE("engine: places and questions that no run has do it no harm") {
  const test::TemporaryFolder folder;
  const EngineServer server(serve_setup(folder.path()));
  Asked asked(make_remote_source(place_of(server)));
  PromptInput prompt{.text = "the glass was", .spans = {}, .ids = {}, .expected = {}, .generate = 2};
  asked.source->open("niah-sse-gla-n4k1.h5", prompt, asked.callbacks());
  REQUIRE(asked.ends());
  REQUIRE(asked.failed == "");
  constexpr std::int64_t far = std::int64_t{1} << 40;
  for (const std::int64_t x : {std::int64_t{-1}, std::int64_t{99}, far}) {
    asked.source->show(x, 0, 0, [](const auto&) {});
    asked.source->show(0, x, 0, [](const auto&) {});
    asked.source->show(0, 0, x, [](const auto&) {});
    asked.source->go_to_branch(x, asked.callbacks());
    const std::vector<Question> questions{DecayQuestion{.layer = x},
                                          DecayQuestion{.layer = 1, .slot = x, .from = 0, .to = 4},
                                          DecayQuestion{.layer = 1, .head = x, .from = 0, .to = 4},
                                          DecayQuestion{.layer = 1, .from = x, .to = x},
                                          PredictionsQuestion{.from = x, .to = x},
                                          PredictionsQuestion{.from = 0, .to = 3, .ids = {-1, 1 << 30}},
                                          StateQuestion{.layer = x},
                                          StateQuestion{.head = x},
                                          StateQuestion{.token = x},
                                          LayerStateQuestion{.layer = x},
                                          LayerStateQuestion{.token = x},
                                          NeedleQuestion{.begin = x, .end = x, .question = x}};
    for (const Question& question : questions) {
      INFO(question.index() << " with " << x);
      asked.found({question}, 2000);
    }
  }
  REQUIRE(asked.shown(1, 0, 2));
}

TEST_CASE("engine: a session that is saved there is opened again, with its branches") {
  const test::TemporaryFolder folder;
  const EngineServer server(serve_setup(folder.path()));
  PromptInput prompt{.text = "the glass was", .spans = {}, .ids = {}, .expected = {}, .generate = 2};
  {
    Asked one(make_remote_source(place_of(server)));
    one.source->open("niah-gla.h5", prompt, one.callbacks());
    REQUIRE(one.ends());
    REQUIRE(one.failed == "");
    one.source->intervene({parse_intervention("zero state at 1")}, one.callbacks());
    REQUIRE(one.ends());
    std::string outcome;
    one.source->save(
        "run.scope", [&] { outcome = "saved"; }, [&](const std::string& why) { outcome = why; });
    REQUIRE(QTest::qWaitFor([&] { return !outcome.empty(); }, kLongMs));
    CHECK(outcome == "saved");
    CHECK(one.branches->session == "run.scope");
    outcome.clear();
    one.source->save(
        "../run.scope", [&] { outcome = "saved"; }, [&](const std::string& why) { outcome = why; });
    REQUIRE(QTest::qWaitFor([&] { return !outcome.empty(); }, kLongMs));
    CHECK_THAT(outcome, ContainsSubstring("lies outside"));
  }
  REQUIRE(QTest::qWaitFor([&] { return server.sessions() == 0; }, kLongMs));
  Asked other(make_remote_source(place_of(server)));
  other.source->open_session("run.scope", {}, other.callbacks());
  REQUIRE(other.ends());
  REQUIRE(other.failed == "");
  CHECK(other.branches->runs.size() == 2);
  CHECK(other.run()->branch.number == 1);
}

}  // namespace statescope::engine_server_test
