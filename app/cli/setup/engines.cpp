// Options of an engine for other machines, and of who goes there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/engine.h"
#include "app/cli/setup/setup.h"
#include "app/remote/engine_server.h"
#include "app/remote/reached_engine.h"

namespace statescope {
namespace {

/// What `check` throws (Error) is what is wrong with the option.
template <class Check>
CLI::Validator checked(const Check& check) {
  const auto wrong = [check](const std::string& text) -> std::string {
    try {
      check(text);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  return {wrong, ""};
}

}  // namespace

void add_serve(CLI::App& app, ServeArguments& serve) {
  CLI::App& command = *app.add_subcommand("serve", "an engine for windows and commands on other machines (statescope --engine)");
  command
      .add_option("--listen", serve.listen,
                  "HOST:PORT (default: 127.0.0.1:7453, this machine alone; others need --cert, --key and a token)")
      ->check(checked(address_of));
  command.add_option("--root", serve.root, "the folder whose checkpoints and sessions clients may open (default: the current one)")
      ->check(CLI::ExistingDirectory);
  command
      .add_option("--token-file", serve.token_file,
                  "a file with the token that clients must send; -: the first line of standard input. The engine then ends when standard "
                  "input is closed and no session is left")
      ->check(CLI::Validator([](std::string& file) { return file == "-" ? "" : CLI::ExistingFile(file); }, ""));
  auto* certificate = command.add_option("--cert", serve.certificate, "a certificate for TLS, PEM")->check(CLI::ExistingFile);
  auto* key = command.add_option("--key", serve.key, "its private key, PEM")->check(CLI::ExistingFile);
  certificate->needs(key);
  key->needs(certificate);
  add_compute(command, serve.device);
  add_memory(command, serve.memory);
  command.get_option("--memory")
      ->description("MB that the recordings of all clients may take (default: of each a quarter of what is free)");
  command.add_option("--max-clients", serve.most_clients, "sessions at a time, one for each model that is read (default: 8)")
      ->check(CLI::Range(1, 1000));
  command.footer(
      "Each model that a window or a command reads has a session of its own. A client whose connection is lost finds its sessions again\n"
      "within ten minutes, a command without a run within one minute; when all places are taken, within half a minute.\n"
      "Ctrl+C ends the engine, and all sessions with it.");
}

void add_engine(CLI::App& app, EngineArguments& engine) {
  auto* place =
      app.add_option(
             "--engine", engine.place,
             fmt::format("an engine on another machine (statescope serve): HOST:PORT, ssh://USER@HOST[/PROGRAM]; for the window and {}",
                         fmt::join(commands_of_engine(), ", ")))
          ->check(checked(check_place));
  app.add_option("--engine-token-file", engine.token_file, "a file with the token that it asks for")
      ->needs(place)
      ->check(CLI::ExistingFile);
  app.add_option("--engine-ca", engine.authorities, "PEM file of its certificate, or of the authority that signed it")
      ->needs(place)
      ->check(CLI::ExistingFile);
}

void name_engine(CLI::App& command, EngineArguments& engine) {
  command
      .add_option("--engine", engine.place,
                  "an engine on another machine, which has the checkpoints and reads: HOST:PORT, ssh://USER@HOST[/PROGRAM] (statescope "
                  "--help has more options of it)")
      ->check(checked(check_place));
}

}  // namespace statescope
