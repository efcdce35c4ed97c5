// An engine on another machine, as the command line names it.
#pragma once

#include <string>

namespace statescope {

struct EngineArguments {
  std::string place;  // HOST:PORT, ssh://USER@HOST; empty: this machine's
  std::string token_file, authorities;
};

}  // namespace statescope
