// The module that knows gRPC: streams of messages (engine/remote/transport.h).
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <engine.grpc.pb.h>
#include "engine/remote/grpc/proto.h"
#include "engine/remote/transport.h"

namespace statescope::remote {
namespace {

constexpr int kMostRequest = 256 << 20;  // bytes: a question may hold a layer's states
constexpr int kPingMs = 10'000, kPingTimeoutMs = 5'000, kLeastPingMs = 4'000;
constexpr int kThreadsBeside = 16;  // of gRPC, beside those of streams
constexpr const char* kNoEngine = "something answers there, but it is not a Statescope engine";
constexpr auto kShutdown = std::chrono::milliseconds(100);

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

/// Whatever is a capital in either.
bool has(std::string_view text, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

/// How a stream of a client ended that never stood: in our words where gRPC, its resolver and OpenSSL have words of theirs.
Ending failure_of(const grpc::Status& status, bool tls) {
  const std::string message = one_line(status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {message};  // of the engine's own (code_of)
    case grpc::StatusCode::CANCELLED:
      return {"the connection has ended"};
    case grpc::StatusCode::UNAVAILABLE:
      break;
    default:
      return {kNoEngine};
  }
  // gRPC calls a page of the web that came instead of HTTP/2 "OK".
  if (has(message, "http1.x server") || has(message, "failed parsing http/2") || message.ends_with(": OK")) return {kNoEngine};
  if (has(message, "DNS resolution failed") || has(message, "domain name not found"))
    return {"there is no machine of that name, or the name cannot be looked up now"};
  if (has(message, "certificate verify failed") || has(message, "CERTIFICATE_VERIFY_FAILED"))
    return {"this machine does not trust its certificate; name the PEM file of that certificate, or of its authority, with --engine-ca"};
  if (has(message, "peer name") || has(message, "hostname verification"))
    return {"its certificate is for another host name than the one in --engine"};
  if (has(message, "wrong version number") || has(message, "WRONG_VERSION_NUMBER")) return {"it does not speak TLS, or is not an engine"};
  if (has(message, "handshake"))
    return {"no encrypted connection can be made with it; is it an engine, and does --engine-ca name its certificate?"};
  if (!tls &&
      (has(message, "socket closed") || has(message, "connection reset") || has(message, "http2") || has(message, "endpoint closing")))
    return {.why = "it closes the connection; an engine with a certificate needs --engine-ca FILE, the PEM file of that certificate",
            .closed = true};
  const std::size_t colon = message.rfind(": ");
  const bool is_connecting = message.starts_with("failed to connect") && colon != message.npos;
  if (!is_connecting) return {message};
  return {.why = "cannot connect: " + message.substr(colon + 2), .refused = has(message, "connection refused")};
}

Ending ending_of(const grpc::Status& status, bool tls, bool was_welcome) {
  if (!was_welcome) return failure_of(status, tls);
  return {has(status.error_message(), "keepalive") ? "it has gone silent" : "the connection has ended"};
}

std::string metadata(const grpc::ServerContext& context, const char* name) {
  const auto found = context.client_metadata().find(name);
  return found == context.client_metadata().end() ? std::string() : std::string(found->second.data(), found->second.size());
}

template <class Number>
Number number_in(const std::string& text) {
  Number number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && end == last ? number : Number(0);
}

grpc::StatusCode code_of(Admission::Refusal refusal) {
  switch (refusal) {
    case Admission::Refusal::token:
      return grpc::StatusCode::UNAUTHENTICATED;
    case Admission::Refusal::version:
      return grpc::StatusCode::FAILED_PRECONDITION;
    default:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
  }
}

class GrpcListener final : public Listener, proto::Engine::Service {
 public:
  explicit GrpcListener(ListenSetup setup) : admit_(std::move(setup.admit)) {
    grpc::ServerBuilder builder;
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (!setup.certificate.empty()) {
      grpc::SslServerCredentialsOptions options;
      options.pem_key_cert_pairs.push_back({setup.key, setup.certificate});
      credentials = grpc::SslServerCredentials(options);
    }
    builder.AddListeningPort(setup.address, credentials, &port_);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kMostRequest);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kLeastPingMs);
    builder.SetResourceQuota(grpc::ResourceQuota("streams").SetMaxThreads(setup.most_streams + kThreadsBeside));
    server_ = builder.BuildAndStart();
    if (server_ && port_ != 0) return;
    const char* const keys = setup.certificate.empty() ? "" : ", or --key is not the key of --cert";
    throw std::runtime_error(std::string("cannot listen there; the port is taken, or this machine does not have that address") + keys);
  }
  ~GrpcListener() override { server_->Shutdown(std::chrono::system_clock::now() + kShutdown); }

  int port() const override { return port_; }

 private:
  grpc::Status Talk(grpc::ServerContext* context, grpc::ServerReaderWriter<proto::Event, proto::Request>* stream) override {
    const Hello hello{.protocol = number_in<int>(metadata(*context, "statescope-protocol")),
                      .version = metadata(*context, "statescope-version"),
                      .token = metadata(*context, "statescope-token"),
                      .session = metadata(*context, "statescope-session"),
                      .heard = number_in<std::uint64_t>(metadata(*context, "statescope-heard"))};
    const Admission admission = admit_(hello);
    if (!admission.end) return {code_of(admission.refusal), admission.why};
    std::thread writer([&] {
      while (std::optional<Event> event = admission.end->next()) {
        if (!stream->Write(proto::to_proto(std::move(*event)))) break;
      }
      context->TryCancel();  // so that nothing more is read
    });
    proto::Request request;
    while (stream->Read(&request) && admission.end->hear(proto::from_proto(std::move(request)))) request.Clear();
    admission.end->gone({});
    writer.join();
    return grpc::Status::OK;
  }

  std::function<Admission(const Hello&)> admit_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class GrpcConnection final : public Connection {
 public:
  GrpcConnection(ConnectSetup setup, std::shared_ptr<ClientEnd> end)
      : is_first_(setup.hello.session.empty()), tls_(setup.tls), end_(std::move(end)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // nothing is left of a connection that failed before
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    if (!setup.tls) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = setup.authorities;
    channel_ =
        grpc::CreateCustomChannel(setup.address, setup.tls ? grpc::SslCredentials(tls) : grpc::InsecureChannelCredentials(), arguments);
    context_.AddMetadata("statescope-protocol", std::to_string(setup.hello.protocol));
    context_.AddMetadata("statescope-version", setup.hello.version);
    context_.AddMetadata("statescope-token", setup.hello.token);
    context_.AddMetadata("statescope-session", setup.hello.session);
    context_.AddMetadata("statescope-heard", std::to_string(setup.hello.heard));
    reader_ = std::thread([this] { talk(); });
  }
  ~GrpcConnection() override {
    context_.TryCancel();
    reader_.join();
  }

 private:
  void talk() {
    const auto stub = proto::Engine::NewStub(channel_);
    const auto stream = stub->Talk(&context_);
    std::thread writer([&] {
      while (std::optional<Request> request = end_->next()) {
        if (!stream->Write(proto::to_proto(std::move(*request)))) break;
      }
      stream->WritesDone();
    });
    proto::Event event;
    bool was_welcome = false;
    while (stream->Read(&event)) {
      was_welcome = true;
      if (!end_->hear(proto::from_proto(std::move(event)))) context_.TryCancel();
      event.Clear();
    }
    const grpc::Status status = stream->Finish();
    Ending ending = ending_of(status, tls_, was_welcome);
    ending.final = status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
                   status.error_code() == grpc::StatusCode::FAILED_PRECONDITION || status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
                   (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && is_first_);
    end_->gone(ending);
    writer.join();
  }

  const bool is_first_;  // there is no session yet that waits for this client
  const bool tls_;
  std::shared_ptr<ClientEnd> end_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::thread reader_;
};

class GrpcTransport final : public Transport {
  std::unique_ptr<Listener> listen(ListenSetup setup) override { return std::make_unique<GrpcListener>(std::move(setup)); }
  std::unique_ptr<Connection> connect(ConnectSetup setup, std::shared_ptr<ClientEnd> end) override {
    return std::make_unique<GrpcConnection>(std::move(setup), std::move(end));
  }
};

}  // namespace
}  // namespace statescope::remote

extern "C" statescope::remote::Transport* statescope_make_transport() {
  static statescope::remote::GrpcTransport transport;
  gpr_set_log_function([](gpr_log_func_args*) {});  // what goes wrong is told by whoever asked for it
  return &transport;
}
