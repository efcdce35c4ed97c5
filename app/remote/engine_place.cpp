#include "app/remote/engine_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string_view>

#include "app/assets.h"
#include "app/remote/engine_link.h"
#include "app/remote/engine_server.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostSecret = 4096;       // bytes of a token's file
constexpr std::size_t kMostOfPem = 1 << 20;     // bytes
constexpr std::string_view kThere = "engine:";  // before a path there, which is no path here
constexpr auto kFirstAnswer = std::chrono::seconds(15);

}  // namespace

EnginePlace engine_place(const std::string& address, const std::string& token_file, const std::string& authorities_file) {
  EnginePlace place{.address = address, .name = address};
  const bool is_near = is_loopback(address_of(address).host);
  place.tls = !is_near || !authorities_file.empty();
  if (!authorities_file.empty()) place.authorities = pem_in(authorities_file, "CERTIFICATE");
  if (!token_file.empty()) place.token = secret_in(token_file);
  return place;
}

std::string pem_in(const fs::path& file, const std::string& kind) {
  std::string text = read_file(file, kMostOfPem);
  if (text.find("-----BEGIN ") == text.npos || text.find(kind + "-----") == text.npos)
    throw Error(fmt::format("{}: has no {} in PEM form", file.string(), kind == "CERTIFICATE" ? "certificate" : "private key"));
  return text;
}

std::string secret_in(const fs::path& file) {
  std::string secret = read_file(file, kMostSecret);
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!secret.empty() && is_space(secret.back())) secret.pop_back();
  const bool plain = std::ranges::all_of(secret, [](char c) { return c > ' ' && c <= '~'; });
  if (secret.empty() || !plain) throw Error(file.string() + ": a token must be one word of ASCII letters, digits and signs");
  return secret;
}

std::string name_on_engine(const fs::path& path) {
  std::error_code error;
  for (const fs::path& place : checkpoint_places()) {
    if (path.is_absolute() && fs::equivalent(path.parent_path(), place, error)) return path.filename().string();
  }
  const std::string name = path.string();
  return name.starts_with(kThere) ? name.substr(kThere.size()) : name;
}

fs::path name_from_engine(const std::string& name) {
  const fs::path shipped = shipped_checkpoint(name);
  return shipped.empty() ? fs::path(std::string(kThere) + name) : shipped;
}

void check_engine(const EnginePlace& place) {
  const auto answer = std::make_shared<std::promise<std::string>>();
  const auto answered = std::make_shared<std::atomic_flag>();
  std::future<std::string> outcome = answer->get_future();
  const auto tell = [answer, answered](const std::string& why) {
    if (!answered->test_and_set()) answer->set_value(why);
  };
  EngineLink link(place, {.event = [](const remote::Event&) {},
                          .connected = [tell](bool) { tell(""); },
                          .lost = [tell](const remote::Ending& ending) { tell(ending.why); }});
  if (outcome.wait_for(kFirstAnswer) != std::future_status::ready) throw Error(place.name + ": nothing answers there");
  if (const std::string why = outcome.get(); !why.empty()) throw Error(fmt::format("{}: {}", place.name, why));
}

}  // namespace statescope
