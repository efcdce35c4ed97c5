// The words of a command line before they are parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace statescope {

/// As the parser knows them: "help COMMAND" becomes "COMMAND --help", "version" "--version", and the "-" behind the --json of a command
/// that prints its JSON anyway is taken out. Throws CLI::ParseError for a command that there is not, with those that look like it.
std::vector<std::string> parsable_words(const CLI::App& app, std::vector<std::string> words);

}  // namespace statescope
