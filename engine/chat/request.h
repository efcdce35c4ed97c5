// One line of `statescope chat`: a conversation as JSON, and what became of it.
#pragma once

#include <ctime>
#include <string>

#include "engine/chat/template_folder.h"

namespace statescope::chat {

struct RequestDefaults {
  std::string template_name;
  std::tm now;
  Dict variables;                      // the caller's own names, which those of the line replace
  bool add_generation_prompt = false;  // where the line does not say
};

/// The prompt of a line {"messages", "tools", "documents", "add_generation_prompt", "kwargs", "now", "template", "template_name"}. A line
/// without messages is for a template of its own that does without. Throws Error.
std::string prompt_of(const std::string& line, const TemplateFolder& folder, const RequestDefaults& defaults);

/// NAME=VALUE into `variables`: JSON where the value is JSON (true, 3, "3"), else a text. Throws Error.
void add_setting(Dict& variables, const std::string& setting);

/// The same as JSON: {"text"}, or {"error"}. Never throws Error.
std::string answer(const std::string& line, const TemplateFolder& folder, const RequestDefaults& defaults);

}  // namespace statescope::chat
