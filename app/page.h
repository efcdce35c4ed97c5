// Reports as HTML pages that need nothing else: light and dark as the reader prefers.
#pragma once

#include <string>
#include <string_view>

namespace statescope {

/// Everything before the first paragraph.
std::string page_begin(std::string_view title, std::string_view heading);
inline constexpr std::string_view kPageEnd = "</body></html>\n";

std::string escaped(std::string_view text);
/// A number as fmt writes it, or a dash where there is none.
std::string number_cell(double value, const char* format);

}  // namespace statescope
