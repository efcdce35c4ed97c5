#include "app/remote/tunnel.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <QElapsedTimer>
#include <QRandomGenerator>
#include <algorithm>
#include <charconv>
#include <csignal>

#include "app/common/interruption.h"
#include "app/inspect/window_command.h"
#include "app/remote/engine_server.h"
#include "engine/checkpoint/descriptor.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::string_view kScheme = "ssh://";
constexpr int kFirstPort = 20'000, kLastPort = 60'000;
constexpr int kAgainMs = 2'000, kLookMs = 200, kEndMs = 1'000;
constexpr qint64 kPatienceMs = 180'000;  // somebody may type a password

int free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0) throw Error("no port is free on this machine");
  return ntohs(address.sin_port);
}

}  // namespace

bool is_ssh(const std::string& place) { return place.starts_with(kScheme); }

SshPlace ssh_place_of(const std::string& place) {
  const std::string rest = place.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  SshPlace ssh;
  ssh.host = rest.substr(0, slash);
  if (const std::size_t colon = ssh.host.rfind(':'); colon != ssh.host.npos) {
    const char* const last = ssh.host.data() + ssh.host.size();
    const auto [end, error] = std::from_chars(ssh.host.data() + colon + 1, last, ssh.port);
    if (error != std::errc() || end != last || ssh.port < 1 || ssh.port > 65535) ssh.host.clear();
    ssh.host.resize(std::min(colon, ssh.host.size()));
  }
  const bool plain = std::ranges::all_of(ssh.host, [](unsigned char c) { return c > ' ' && c < 127; });
  const bool has_both = !ssh.host.starts_with('@') && !ssh.host.ends_with('@');  // or neither
  if (ssh.host.empty() || ssh.host.starts_with('-') || !plain || !has_both)
    throw Error(fmt::format("{} is not an ssh address; write ssh://USER@HOST or ssh://USER@HOST/usr/bin/statescope", place));
  if (slash + 1 < rest.size()) ssh.program = rest.substr(slash);
  return ssh;
}

Tunnel::Tunnel(const std::string& place, std::vector<std::string> options) : ssh_(ssh_place_of(place)), options_(std::move(options)) {
  there_ = QRandomGenerator::system()->bounded(kFirstPort, kLastPort);
  place_ = {.address = fmt::format("127.0.0.1:{}", free_port()), .name = place, .token = random_name()};
  process_.setProcessChannelMode(QProcess::ForwardedErrorChannel);
  process_.setStandardOutputFile(QProcess::nullDevice());
  process_.setChildProcessModifier([] { ::prctl(PR_SET_PDEATHSIG, SIGTERM); });  // it ends with this program, however that ends
  again_.setSingleShot(true);
  again_.setInterval(kAgainMs);
  connect(&again_, &QTimer::timeout, this, [this] { start(); });
  connect(&process_, &QProcess::finished, this, [this] {
    if (stands_) again_.start();
  });
  start();
  if (!process_.waitForStarted()) throw Error(place + ": this machine has no ssh program");
}

Tunnel::~Tunnel() {
  process_.disconnect();
  again_.stop();
  process_.closeWriteChannel();  // the engine ends as its input does
  if (process_.waitForFinished(kEndMs)) return;
  process_.kill();
  process_.waitForFinished(kEndMs);
}

void Tunnel::start() {
  QStringList words{"-o", "ExitOnForwardFailure=yes",
                    "-o", "ServerAliveInterval=5",
                    "-L", QString::fromStdString(fmt::format("{}:127.0.0.1:{}", place_.address, there_))};
  if (ssh_.port > 0) words << "-p" << QString::number(ssh_.port);
  if (stands_) words << "-N";
  words << "--" << QString::fromStdString(ssh_.host);
  if (!stands_) {
    std::string command = shell_word(ssh_.program) + " serve";
    for (const std::string& option : options_) command += " " + shell_word(option);
    words << QString::fromStdString(fmt::format("exec {} --listen 127.0.0.1:{} --token-file -", command, there_));
  }
  process_.start("ssh", words);
  if (!stands_) process_.write((place_.token + "\n").c_str());
}

void Tunnel::wait() {
  QElapsedTimer since;
  since.start();
  while (true) {
    process_.waitForFinished(kLookMs);
    if (Interruption::asked()) throw Cancelled();
    if (process_.state() == QProcess::NotRunning)
      throw Error(
          fmt::format("{}: ssh ended, for the reason it gives above, or because {} does not start there", place_.name, ssh_.program));
    try {
      check_engine(place_);
      stands_ = true;
      return;
    } catch (const Error&) {
      if (since.elapsed() > kPatienceMs) throw;
    }
  }
}

}  // namespace statescope
