// Streams of messages between two machines, by the module libstatescope-remote.so, which alone knows gRPC and is loaded when one is wanted.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/remote/messages.h"

namespace statescope::remote {

/// How a stream ended.
struct Ending {
  std::string why;       // in a line
  bool final = false;    // the other side will never take it: a wrong token, another version
  bool refused = false;  // nobody listens at the address
  bool closed = false;   // somebody takes the connection and closes it at once, as what leads to an engine does without one
};

/// What stands at one end of a stream. Called on the transport's threads; nothing throws.
template <class In, class Out>
class End {
 public:
  virtual ~End() = default;
  /// What came, in order. False: the stream is to end.
  virtual bool hear(In message) = 0;
  /// Waits for what is to be sent next; none: the stream is to end.
  virtual std::optional<Out> next() = 0;
  /// The stream has ended: from now on `next` has nothing. Called once.
  virtual void gone(const Ending& ending) = 0;
};
using EngineEnd = End<Request, Event>;
using ClientEnd = End<Event, Request>;

/// Of a client that wants a stream: null and why not.
struct Admission {
  enum class Refusal { none, token, version, full };
  std::shared_ptr<EngineEnd> end;
  Refusal refusal = Refusal::none;
  std::string why;
};

struct ListenSetup {
  std::string address;           // HOST:PORT; port 0: one that is free
  std::string certificate, key;  // PEM; both empty: without TLS
  int most_streams = 16;
  std::function<Admission(const Hello&)> admit;
};

/// Listens until it is destroyed, which ends all streams.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual int port() const = 0;
};

struct ConnectSetup {
  std::string address;
  bool tls = false;
  std::string authorities;  // PEM of those whose certificates are trusted; empty: the system's
  Hello hello;
};

/// A client's stream until it is destroyed.
class Connection {
 public:
  virtual ~Connection() = default;
};

/// What the module exports.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Throws std::runtime_error.
  virtual std::unique_ptr<Listener> listen(ListenSetup setup) = 0;
  /// Returns at once; the end hears of a failure as of one that comes later.
  virtual std::unique_ptr<Connection> connect(ConnectSetup setup, std::shared_ptr<ClientEnd> end) = 0;
};

/// Loads the module. Throws Error.
Transport& transport();

}  // namespace statescope::remote
