// The options that several commands take.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"
#include "engine/error.h"

namespace statescope {

/// A whole number, not below that.
CLI::Validator at_least(std::int64_t least);
/// One that an option's number can hold: the parser itself would take the largest there is.
CLI::Validator whole_number();
/// What `statescope intervene` understands.
CLI::Validator is_intervention();
/// An option whose text `set` takes; what it throws (Error) is what is wrong with the option.
template <class Set>
CLI::Option* add_parsed(CLI::App& command, const char* name, const Set& set, const char* help) {
  return command.add_option_function<std::string>(
      name,
      [set, name](const std::string& text) {
        try {
          set(text);
        } catch (const Error& error) {
          throw CLI::ValidationError(name, error.what());
        }
      },
      help);
}
void add_prompt(CLI::App& command, PromptArguments& prompt, bool required);
/// --chat and --chat-file, into a group of which one is given; what goes with them.
void add_chat_prompt(CLI::App& group, PromptArguments& prompt);
void add_chat_settings(CLI::App& command, PromptArguments& prompt);
/// --json [FILE]: `what` as JSON into a file, or, without one and with "-", to standard output (parsable_words puts the "-" there).
void add_json(CLI::App& command, std::string& json, const std::string& what);
/// "float32", "bfloat16". Throws Error.
Precision precision_called(const std::string& text);
void add_device(CLI::App& command, DeviceChoice& device);
/// MB of a recording.
void add_memory(CLI::App& command, std::int64_t& megabytes);
/// The device, and threads.
void add_compute(CLI::App& command, DeviceChoice& device);

}  // namespace statescope
