// From a report to the window: the command line that opens it where something was found.
#pragma once

#include <optional>
#include <string>

#include "app/inspect/report.h"

namespace statescope {

/// How a shell finds this very program: by its name where PATH leads to it, else by its place.
std::string program_word();

/// A word as a shell takes it, whatever stands in it; on one line.
std::string shell_word(const std::string& word);

/// Where the window is to stand.
struct PlaceInRun {
  std::string view;  // as --view has it
  std::optional<std::int64_t> layer, head, token;
};
/// Where an illness is to be seen, on the sequence that shows it best.
struct SeenAt {
  std::size_t sequence = 0;
  PlaceInRun place;
};
SeenAt seen_at(const Inspected& inspected, const Diagnosis& diagnosis);

/// "--layer 2 --head 0"; empty: anywhere
std::string place_words(const PlaceInRun& place);

/// `before`, place_words and `after` make the command, with a space between them.
struct WindowCommand {
  std::string before, place, after;
};
/// Unset where the prompt cannot be read again: it came from standard input.
std::optional<WindowCommand> window_command_at(const Inspected& inspected, std::size_t sequence, const PlaceInRun& place);

}  // namespace statescope
