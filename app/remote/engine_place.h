// Where an engine is, and what is called how on both sides.
#pragma once

#include <filesystem>
#include <string>

namespace statescope {

/// Where an engine listens, and how it is spoken to.
struct EnginePlace {
  std::string address;  // HOST:PORT
  std::string name;     // as the user knows it: HOST:PORT, ssh://user@host
  std::string token;    // empty: none
  bool tls = false;
  std::string authorities;  // PEM; empty: the system's
};

/// Of HOST:PORT. A loopback is spoken to without TLS, unless somebody's certificates are named; anything else never is. Throws Error.
EnginePlace engine_place(const std::string& address, const std::string& token_file, const std::string& authorities_file);

/// A token: one word, alone in its file. Throws Error.
std::string secret_in(const std::filesystem::path& file);

/// Certificates or a key, `kind` "CERTIFICATE" or "PRIVATE KEY". Throws Error where the file has none.
std::string pem_in(const std::filesystem::path& file, const std::string& kind);

/// What this program calls a file, and what an engine calls it: a shipped model is the same on both sides, and of any other, "engine:" and
/// its path there, nothing here can be mistaken for it.
std::string name_on_engine(const std::filesystem::path& path);
std::filesystem::path name_from_engine(const std::string& name);

/// Throws Error where the engine cannot be reached or does not want this program.
void check_engine(const EnginePlace& place);

}  // namespace statescope
