#include "app/remote/reached_engine.h"

#include "app/remote/engine_server.h"
#include "engine/error.h"

namespace statescope {

ReachedEngine::ReachedEngine(const std::string& place, const std::string& token_file, const std::string& authorities_file,
                             std::vector<std::string> options) {
  if (is_ssh(place)) {
    tunnel_ = std::make_unique<Tunnel>(place, std::move(options));
    tunnel_->wait();
    place_ = tunnel_->place();
  } else {
    place_ = engine_place(place, token_file, authorities_file);
    check_engine(place_);
  }
}

void check_place(const std::string& place) {
  if (is_ssh(place)) return void(ssh_place_of(place));
  if (address_of(place).port == 0) refuse_address(place);
}

}  // namespace statescope
