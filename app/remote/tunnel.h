// An engine behind the user's own ssh: it is started there, and a port of this machine leads to it.
#pragma once

#include <QProcess>
#include <QTimer>
#include <string>
#include <vector>

#include "app/remote/remote_source.h"

namespace statescope {

/// "ssh://USER@HOST[:PORT][/PROGRAM]".
struct SshPlace {
  std::string host;                    // USER@HOST, HOST, or what the user's ssh configuration calls it
  int port = 0;                        // 0: ssh's own
  std::string program = "statescope";  // there
};
bool is_ssh(const std::string& place);
/// Throws Error.
SshPlace ssh_place_of(const std::string& place);

/// While it lives, ssh runs. Where ssh ends, it is started again, without another engine: that one waits for its client.
class Tunnel : public QObject {
 public:
  /// `options`: of the engine, as `statescope serve` takes them. Throws Error where there is no ssh.
  Tunnel(const std::string& place, std::vector<std::string> options);
  ~Tunnel() override;

  const EnginePlace& place() const { return place_; }
  /// Until the engine answers, or ssh has ended: then throws Error. ssh may ask for a password meanwhile.
  void wait();

 private:
  void start();

  const SshPlace ssh_;
  const std::vector<std::string> options_;
  EnginePlace place_;
  int there_ = 0;  // the engine's port
  bool stands_ = false;
  QProcess process_;
  QTimer again_;
};

}  // namespace statescope
