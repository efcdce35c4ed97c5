#include "app/remote/engine_server.h"

#include <fmt/format.h>

#include <QRandomGenerator>
#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "datasets/task.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr int kSweepMs = 500;
constexpr std::chrono::seconds kGivesPlace{30};      // to another client, where the engine is full
constexpr std::chrono::seconds kKeptForCommand{60};  // as long as one waits for an engine that it has lost

/// Its client is there, or has not been away for long.
bool has_place(const Served& session) {
  const auto alone = session.alone_since();
  return !session.is_over() && (!alone || std::chrono::steady_clock::now() - *alone < kGivesPlace);
}

std::string full_words(int places) {
  const std::string taken = places == 1 ? "its only place is taken" : fmt::format("its {} places are taken", places);
  return fmt::format("the engine is full: {}. Each model that a window or a command reads there takes one (statescope serve --max-clients)",
                     taken);
}

const ServeSetup& checked(const ServeSetup& setup) {
  const Address address = address_of(setup.address);
  if (setup.certificate.empty() != setup.key.empty()) throw Error("--cert and --key belong together");
  if (is_loopback(address.host)) return setup;
  if (setup.certificate.empty() || setup.token.empty())
    throw OptionsError(
        fmt::format("--listen {}: other machines can hear that address; it needs --cert, --key and --token-file", setup.address));
  return setup;
}

}  // namespace

Address address_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  const char* const last = text.data() + text.size();
  const char* const first = colon == text.npos ? last : text.data() + colon + 1;
  const auto [end, error] = std::from_chars(first, last, address.port);
  if (error == std::errc() && end == last && address.port >= 0 && address.port <= 65535) address.host = text.substr(0, colon);
  const bool bracketed = address.host.starts_with('[') && address.host.ends_with(']');
  if (bracketed) address.host = address.host.substr(1, address.host.size() - 2);
  const bool plain = std::ranges::none_of(address.host, [](unsigned char c) { return c <= ' ' || c == 127; });
  if (address.host.empty() || !plain || (!bracketed && address.host.find(':') != text.npos)) refuse_address(text);
  return address;
}

void refuse_address(const std::string& text) {
  throw Error(fmt::format("{} is not an address; write HOST:PORT, such as 127.0.0.1:7453", text));
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  const bool is_number = std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return is_number && host.starts_with("127.");
}

bool is_same_secret(const std::string& one, const std::string& other) {
  std::size_t differs = one.size() ^ other.size();
  for (std::size_t i = 0; i < one.size(); ++i) {
    const char beside = other.empty() ? '\0' : other[i % other.size()];
    differs |= static_cast<unsigned char>(one[i] ^ beside);
  }
  return differs == 0;
}

std::string random_name() {
  std::string name;
  for (int i = 0; i < 4; ++i) name += fmt::format("{:08x}", QRandomGenerator::system()->generate());
  return name;
}

EngineServer::EngineServer(ServeSetup setup) : setup_(checked(setup)), root_(setup_.root) {
  remote::ListenSetup listening{.address = setup_.address,
                                .certificate = setup_.certificate,
                                .key = setup_.key,
                                .most_streams = setup_.most_clients * 4,
                                .admit = [this](const remote::Hello& hello) { return admit(hello); }};
  QObject::connect(&sweep_, &QTimer::timeout, [this] { end_what_is_over(); });
  sweep_.start(kSweepMs);
  try {
    listener_ = remote::transport().listen(std::move(listening));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format("--listen {}: {}", setup_.address, error.what()));
  }
}

EngineServer::~EngineServer() {
  for (const auto& [id, session] : sessions_) session->end();
  listener_.reset();
}

std::size_t EngineServer::sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

/// On a thread of the transport's.
remote::Admission EngineServer::admit(const remote::Hello& hello) {
  using Refusal = remote::Admission::Refusal;
  if (hello.protocol != remote::kProtocol)
    return {
        nullptr, Refusal::version,
        fmt::format("the engine is of Statescope {} (protocol {}), this program of {} (protocol {}): use the same version on both machines",
                    STATESCOPE_VERSION, remote::kProtocol, hello.version.empty() ? "another kind" : hello.version, hello.protocol)};
  if (!setup_.token.empty() && !is_same_secret(hello.token, setup_.token))
    return {nullptr, Refusal::token,
            hello.token.empty() ? "the engine asks for a token; name its file with --engine-token-file"
                                : "the engine does not accept this token"};
  const std::lock_guard lock(mutex_);
  if (const auto known = sessions_.find(hello.session); known != sessions_.end()) return {known->second->attach(hello.heard, true)};
  const auto clients = std::ranges::count_if(sessions_, [](const auto& one) { return has_place(*one.second); });
  if (clients >= setup_.most_clients) return {nullptr, Refusal::full, full_words(setup_.most_clients)};
  AboutCheckpoints about = about_checkpoints(setup_.device);
  about.do_job = setup_.do_job;
  auto session = std::make_shared<Served>(random_name(), root_, setup_.make_source, std::move(about));
  sessions_[session->id()] = session;
  return {session->attach(0, false)};
}

void EngineServer::end_what_is_over() {
  std::vector<std::shared_ptr<Served>> over;  // ended outside of the mutex
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    const bool full = std::ssize(sessions_) > setup_.most_clients;
    for (auto one = sessions_.begin(); one != sessions_.end();) {
      const auto alone = one->second->alone_since();
      const auto kept = one->second->is_of_command() ? std::min(setup_.kept, kKeptForCommand) : setup_.kept;
      const bool ends = one->second->is_over() || (alone && now - *alone > kept) || (full && !has_place(*one->second));
      if (ends) over.push_back(one->second);
      one = ends ? sessions_.erase(one) : std::next(one);
    }
  }
  for (const std::shared_ptr<Served>& session : over) session->end();
}

}  // namespace statescope
