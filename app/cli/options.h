// The options that several commands take, and those of figures and films.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace statescope {

/// A whole number, not below that.
CLI::Validator at_least(std::int64_t least);
/// One that an option's number can hold: the parser itself would take the largest there is.
CLI::Validator whole_number();
void add_prompt(CLI::App& command, PromptArguments& prompt, bool required);
/// --chat and --chat-file, into a group of which one is given; what goes with them.
void add_chat_prompt(CLI::App& group, PromptArguments& prompt);
void add_chat_settings(CLI::App& command, PromptArguments& prompt);
/// --json [FILE]: `what` as JSON into a file, or, without one and with "-", to standard output (parsable_words puts the "-" there).
void add_json(CLI::App& command, std::string& json, const std::string& what);
void add_device(CLI::App& command, DeviceChoice& device);
/// The device, and threads.
void add_compute(CLI::App& command, DeviceChoice& device);

void add_figure(CLI::App& app, FigureArguments& figure);
void add_film(CLI::App& app, FilmArguments& film);
void add_batch(CLI::App& app, BatchArguments& batch);

}  // namespace statescope
