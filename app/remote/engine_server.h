// An engine for clients on other machines: who may come, and the session of each.
#pragma once

#include <QTimer>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "app/remote/served.h"
#include "engine/remote/transport.h"

namespace statescope {

struct ServeSetup {
  std::string address = "127.0.0.1:7453";
  std::filesystem::path root = ".";
  std::string token;             // empty: none is asked for, which only this machine's own addresses may do
  std::string certificate, key;  // PEM; both empty: without TLS, likewise
  int most_clients = 8;
  Served::MakeSource make_source;
  std::string device = "cpu";      // what its runs are read on, as --device says it
  DoJob do_job = {};               // what commands have models do; null: nothing
  std::chrono::seconds kept{600};  // a session whose client is away
};

/// "HOST:PORT", "[::1]:7453". Throws Error.
struct Address {
  std::string host;
  int port = 0;
};
Address address_of(const std::string& text);
[[noreturn]] void refuse_address(const std::string& text);
/// Nobody else can hear what is said to it.
bool is_loopback(const std::string& host);
/// In a time that does not tell how much of it is right.
bool is_same_secret(const std::string& one, const std::string& other);
/// That nobody guesses, in letters and digits.
std::string random_name();

/// Needs a running QCoreApplication, on whose thread it is made and destroyed.
class EngineServer {
 public:
  /// Listens from now on. Throws Error.
  explicit EngineServer(ServeSetup setup);
  ~EngineServer();

  int port() const { return listener_->port(); }
  /// Sessions whose client is there or may come back.
  std::size_t sessions() const;
  const ServedRoot& root() const { return root_; }

 private:
  remote::Admission admit(const remote::Hello& hello);
  void end_what_is_over();

  const ServeSetup setup_;
  const ServedRoot root_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Served>> sessions_;
  QTimer sweep_;
  std::unique_ptr<remote::Listener> listener_;  // last: begins when all else stands
};

}  // namespace statescope
