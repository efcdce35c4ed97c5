// `statescope serve` as a program: behind TLS, behind somebody's ssh, told to end.
#include <fmt/format.h>
#include <sys/stat.h>

#include <QProcess>
#include <QStandardPaths>
#include <csignal>
#include <fstream>

#include "app/assets.h"
#include "app/remote/tunnel.h"
#include "engine/error.h"
#include "tests/app/remote/engine_rig.h"
#include "tests/temporary_folder.h"

namespace statescope::engine_program_test {
namespace {

using Catch::Matchers::ContainsSubstring;

QString statescope() {
  test_application();
  return QCoreApplication::applicationDirPath() + "/statescope";
}

struct Ended {
  int status = -1;
  std::string output, error;
};
Ended run(const QStringList& words) {
  QProcess process;
  process.start(statescope(), words);
  if (!process.waitForFinished(kLongMs)) return {};
  return {process.exitCode(), process.readAllStandardOutput().toStdString(), process.readAllStandardError().toStdString()};
}

/// Stands for ssh: a port of this machine that leads to another one of it, and the command, by a shell.
constexpr const char* kSsh = R"(#!/usr/bin/python3 -B
import os, socket, subprocess, sys, threading
words = sys.argv[1:]
with open(os.environ["SSH_LOG"], "a") as log:
    print(*words, sep="|", file=log)
here, there = words[words.index("-L") + 1].rsplit(":127.0.0.1:", 1)
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(here.split(":")[1])))
server.listen()

def carry(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
    except OSError:
        pass
    for end in (one, other):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

def serve():
    while True:
        client, _ = server.accept()
        try:
            engine = socket.create_connection(("127.0.0.1", int(there)))
        except OSError:
            client.close()
            continue
        for pair in ((client, engine), (engine, client)):
            threading.Thread(target=carry, args=pair, daemon=True).start()

threading.Thread(target=serve, daemon=True).start()
if "-N" in words:
    threading.Event().wait()
status = subprocess.run(words[words.index("--") + 2], shell=True).returncode
with open(os.environ["SSH_LOG"], "a") as log:
    print("ended", file=log)
sys.exit(status)
)";

void write_program(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
}

const PromptInput kPrompt{.text = "the glass was", .spans = {}, .ids = {}, .expected = {}, .generate = 2};

}  // namespace

TEST_CASE("serve: wrong use is said, with status 2") {
  const Ended open = run({"serve", "--listen", "0.0.0.0:0"});
  CHECK(open.status == 2);
  CHECK(open.error == "statescope: --listen 0.0.0.0:0: other machines can hear that address; it needs --cert, --key and --token-file\n");
  CHECK(run({"serve", "--root", "/none"}).status == 2);
  CHECK(run({"serve", "--cert", "/etc/hostname"}).status == 2);
  for (const char* wrong :
       {"", "there", "127.0.0.1:0", "127.0.0.1:x", "127.0.0.1\n:7453", "ssh://", "ssh://@", "ssh://me@", "ssh://@there"}) {
    INFO(wrong);
    const Ended place = run({"--engine", wrong, "niah-gla.h5", "--screenshot", "none.png"});
    CHECK(place.status == 2);
    CHECK_THAT(place.error, ContainsSubstring("--engine: "));
    CHECK(run({"serve", "--listen", wrong, "--root", "/none"}).status == 2);
  }
  const Ended nowhere = run({"--engine", "there.invalid:7453", "niah-gla.h5", "--screenshot", "none.png"});
  CHECK(nowhere.status == 1);
  CHECK(nowhere.error == "statescope: there.invalid:7453: there is no machine of that name, or the name cannot be looked up now\n");
  const Ended nobody = run({"--engine", "127.0.0.1:1", "niah-gla.h5", "--screenshot", "none.png"});
  CHECK(nobody.status == 1);
  CHECK(nobody.error == "statescope: 127.0.0.1:1: cannot connect: Connection refused\n");
  const Ended command = run({"--engine", "127.0.0.1:1", "check", "niah-gla.h5"});
  CHECK(command.status == 2);
  CHECK_THAT(command.error, ContainsSubstring("--engine: check works with the model itself: start it on the engine's machine"));
}

TEST_CASE("serve: an engine with a certificate and a token is spoken to by who has both") {
  const QString openssl = QStandardPaths::findExecutable("openssl");
  if (openssl.isEmpty()) {
    WARN("skipped: there is no openssl to make a certificate");
    return;
  }
  const test::TemporaryFolder folder;
  const auto file = [&](const char* name) { return QString::fromStdString((folder / name).string()); };
  for (const char* name : {"right", "wrong"}) {
    REQUIRE(QProcess::execute(openssl, {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                                        file((std::string(name) + ".key").c_str()), "-out", file((std::string(name) + ".pem").c_str())}) ==
            0);
  }
  std::ofstream(folder / "token") << "open-sesame\n";
  std::ofstream(folder / "other") << "open-barley\n";
  QProcess engine;
  engine.start(statescope(), {"serve", "--listen", "0.0.0.0:0", "--cert", file("right.pem"), "--key", file("right.key"), "--token-file",
                              file("token"), "--root", QString::fromStdString(folder.path().string())});
  REQUIRE(engine.waitForReadyRead(kLongMs));
  const std::string port = QString(engine.readLine()).section("0.0.0.0:", 1).section(',', 0, 0).toStdString();
  const auto why_not = [&](const char* token, const char* authority) -> std::string {
    try {
      check_engine(engine_place("127.0.0.1:" + port, (folder / token).string(), (folder / authority).string()));
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  CHECK(why_not("token", "right.pem") == "");
  CHECK_THAT(why_not("other", "right.pem"), ContainsSubstring("the engine does not accept this token"));
  CHECK_THAT(why_not("token", "wrong.pem"), ContainsSubstring("this machine does not trust its certificate; name the PEM file"));
  const Ended plain = run({"--engine", QString::fromStdString("127.0.0.1:" + port), "niah-gla.h5", "--screenshot", "none.png"});
  CHECK_THAT(plain.error, ContainsSubstring("it closes the connection; an engine with a certificate needs --engine-ca FILE"));
  Asked asked(make_remote_source(engine_place("127.0.0.1:" + port, (folder / "token").string(), (folder / "right.pem").string())));
  asked.source->open("niah-gla.h5", kPrompt, asked.callbacks());
  REQUIRE(asked.ends());
  CHECK(asked.failed == "");
  ::kill(static_cast<pid_t>(engine.processId()), SIGINT);
  REQUIRE(engine.waitForFinished(kLongMs));
  CHECK(engine.exitStatus() == QProcess::NormalExit);
  CHECK(engine.exitCode() == 0);
  CHECK(engine.readAllStandardError().toStdString() == "");
}

TEST_CASE("serve: through somebody's ssh, which may end and comes again") {
  test_application();
  const test::TemporaryFolder folder;
  write_program(folder / "ssh", kSsh);
  const QByteArray path = qgetenv("PATH");
  qputenv("PATH", QByteArray::fromStdString(folder.path().string()) + ":" + path);
  qputenv("SSH_LOG", QByteArray::fromStdString((folder / "log").string()));
  {
    Tunnel tunnel("ssh://me@there:2222" + statescope().toStdString(), {"--threads", "1"});
    tunnel.wait();
    Asked asked(make_remote_source(tunnel.place()));
    asked.source->open("niah-gla.h5", kPrompt, asked.callbacks());
    REQUIRE(asked.ends());
    REQUIRE(asked.failed == "");
    EnginePlace without = tunnel.place();
    without.token.clear();
    CHECK_THROWS_WITH(check_engine(without), ContainsSubstring("asks for a token"));
  }
  qputenv("PATH", path);
  std::ifstream log(folder / "log");
  std::string words;
  std::getline(log, words);
  CHECK_THAT(words, ContainsSubstring("ExitOnForwardFailure=yes") && ContainsSubstring("|-p|2222|") &&
                        ContainsSubstring("|--|me@there|exec ") && ContainsSubstring("serve --threads 1 --listen 127.0.0.1:") &&
                        ContainsSubstring("--token-file -"));
}

TEST_CASE("serve: what a window has started there ends with the window") {
  test_application();
  const test::TemporaryFolder folder;
  write_program(folder / "ssh", kSsh);
  const auto log = [&] {
    std::ifstream file(folder / "log");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("PATH", QString::fromStdString(folder.path().string()) + ":" + environment.value("PATH"));
  environment.insert("SSH_LOG", QString::fromStdString((folder / "log").string()));
  environment.insert("STATESCOPE_NO_SETTINGS", "1");
  environment.insert("QT_QPA_PLATFORM", "offscreen");
  QProcess window;
  window.setProcessEnvironment(environment);
  window.start(statescope(), {"--engine", "ssh://there" + statescope(), "niah-gla.h5", "--no-opengl"});
  REQUIRE(QTest::qWaitFor([&] { return log().find("serve") != std::string::npos; }, kLongMs));
  SECTION("told to end while it opens") {}
  SECTION("told to end when it stands") { QTest::qWait(3000); }
  ::kill(static_cast<pid_t>(window.processId()), SIGTERM);
  REQUIRE(window.waitForFinished(kLongMs));
  CHECK(window.exitCode() == 128 + SIGTERM);
  CHECK(QTest::qWaitFor([&] { return log().ends_with("ended\n"); }, kLongMs));
}

TEST_CASE("serve: places behind ssh") {
  CHECK(is_ssh("ssh://a"));
  CHECK_FALSE(is_ssh("a:1"));
  CHECK(ssh_place_of("ssh://me@there").host == "me@there");
  CHECK(ssh_place_of("ssh://there:22/opt/s/statescope").program == "/opt/s/statescope");
  CHECK(ssh_place_of("ssh://there:22/opt/s/statescope").port == 22);
  for (const std::string wrong : {"ssh://", "ssh:///usr/bin", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://a:0", "ssh://a:x", "ssh://@",
                                  "ssh://me@", "ssh://@there/usr/bin/statescope"}) {
    INFO(wrong);
    CHECK_THROWS_AS(ssh_place_of(wrong), Error);
  }
}

}  // namespace statescope::engine_program_test
