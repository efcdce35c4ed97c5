// One line of `statescope chat`: a conversation as JSON, and what became of it.
#pragma once

#include <ctime>
#include <string>

#include "engine/chat/template_folder.h"

namespace statescope::chat {

struct RequestDefaults {
  std::string template_name;
  std::tm now;
  Dict variables;  // the caller's own names, which those of the line replace
};

/// A line {"messages", "tools", "documents", "add_generation_prompt", "kwargs", "now", "template", "template_name"} into {"text"} or
/// {"error"}, as JSON. A line without messages is for a template of its own that does without. Never throws Error.
std::string answer(const std::string& line, const TemplateFolder& folder, const RequestDefaults& defaults);

}  // namespace statescope::chat
