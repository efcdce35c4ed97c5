// A lesson's Markdown as HTML, as the window understands it.
#pragma once

#include <string>

namespace statescope {

/// Paragraphs, lists, bold, italics and code; nothing else, and no attributes. Needs a QGuiApplication.
std::string html_of_markdown(const std::string& markdown);

}  // namespace statescope
