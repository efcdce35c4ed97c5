// Help as the parser writes it, but for what may stand several times on a command's line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace statescope {

class UsageFormatter final : public CLI::Formatter {
 public:
  /// "checkpoint", "[checkpoints...]": not how many there may be, which the description says.
  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string name = make_option_name(option, true) + (option->get_expected_max() > 1 ? "..." : "");
    return option->get_required() ? name : "[" + name + "]";
  }
};

}  // namespace statescope
