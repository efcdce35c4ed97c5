// The command line as a manual page and as completions for shells, made of what the parser knows.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace statescope {

/// statescope(1), in the language of man.
std::string manual_page(const CLI::App& app);

/// A script that completes commands, options and the values that an option can have. `shell`: bash, zsh or fish.
std::string completions(const CLI::App& app, const std::string& shell);

}  // namespace statescope
