// An engine for windows and commands on other machines.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QTimer>
#include <array>
#include <cstdio>

#include "app/cli/commands.h"
#include "app/common/interruption.h"
#include "app/common/recording.h"
#include "app/jobs/jobs.h"
#include "app/remote/engine_server.h"
#include "app/remote/remote_source.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr int kLookMs = 50;
constexpr std::size_t kMostOfLine = 4096;

std::string host_of(const std::string& listen) { return listen.substr(0, listen.rfind(':')); }

/// The first line of standard input.
std::string secret_of_input() {
  std::string line;
  char c = 0;
  while (line.size() < kMostOfLine && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') line += c;
  if (line.empty()) throw Error("--token-file -: the first line of standard input is empty");
  return line;
}

/// Of standard input: whoever started this engine has gone.
bool input_has_ended() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&input, 1, 0) <= 0) return false;
  std::array<char, 64> ignored{};
  return ::read(STDIN_FILENO, ignored.data(), ignored.size()) <= 0;
}

/// How a client on this machine, or on another one, comes here.
std::string how_to_connect(const ServeArguments& arguments, const Address& address, int port) {
  const std::string token = arguments.token_file.empty() ? "" : " --engine-token-file FILE";
  if (is_loopback(address.host))
    return fmt::format("Here: statescope --engine {0}:{1}{2}. From elsewhere: ssh -L {1}:{0}:{1} USER@HOST, then the same.",
                       host_of(arguments.listen), port, token);
  return fmt::format("From elsewhere: statescope --engine HOST:{}{}; add --engine-ca FILE if no known authority signed its certificate.",
                     port, token);
}

}  // namespace

int serve_command(const ServeArguments& arguments) {
  const std::shared_ptr<Backend> device = open_device(arguments.device);  // says now what is wrong with it
  int argc = 1;
  std::array<char, 11> name{"statescope"};
  std::array<char*, 2> argv{name.data(), nullptr};
  const QCoreApplication application(argc, argv.data());
  ServeSetup setup{.address = arguments.listen, .root = arguments.root, .most_clients = arguments.most_clients};
  const bool from_input = arguments.token_file == "-";
  if (from_input) {
    setup.token = secret_of_input();
  } else if (!arguments.token_file.empty()) {
    setup.token = secret_in(arguments.token_file);
  }
  if (!arguments.certificate.empty()) setup.certificate = pem_in(arguments.certificate, "CERTIFICATE");
  if (!arguments.key.empty()) setup.key = pem_in(arguments.key, "PRIVATE KEY");
  const std::size_t memory = recording_budgets(arguments.memory).memory_budget / static_cast<std::size_t>(arguments.most_clients);
  const bool on_cpu = arguments.device.name == "cpu";
  setup.device = arguments.device.name;
  setup.make_source = [device = arguments.device, memory, on_cpu] {
    return make_session_source(
        on_cpu ? Session::OpenDevice() : [device] { return open_cuda_device(device); }, device, memory);
  };
  setup.do_job = [device = arguments.device, memory](const std::string& job, const std::filesystem::path& path, const auto& tell) {
    return do_packed_job(job, {.checkpoint = {}, .path = path, .device = device, .memory = memory, .tell = tell});
  };
  const Interruption interruption;
  const EngineServer server(std::move(setup));
  fmt::print("Serves {} on {}:{}, on {}.\n{}\n", server.root().folder().string(), host_of(arguments.listen), server.port(),
             device->description(), how_to_connect(arguments, address_of(arguments.listen), server.port()));
  std::fflush(stdout);
  QTimer look;
  QObject::connect(&look, &QTimer::timeout, [&] {
    const bool nobody = from_input && input_has_ended() && server.sessions() == 0;
    if (Interruption::asked() || nobody) QCoreApplication::quit();
  });
  look.start(kLookMs);
  QCoreApplication::exec();
  return 0;
}

}  // namespace statescope
