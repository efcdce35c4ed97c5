// Reports as HTML pages that need nothing else: light and dark as the reader prefers, on paper too.
#pragma once

#include <string>
#include <string_view>

namespace statescope {

/// Everything before the first paragraph.
std::string page_begin(std::string_view title, std::string_view heading);
inline constexpr std::string_view kPageEnd = "</main></body></html>\n";

std::string escaped(std::string_view text);
/// A number as fmt writes it, or a dash where there is none.
std::string number_cell(double value, const char* format);
/// With three digits or all before the point: "1870", "16.0", "0.0123", "1.24e+06"; a dash where there is none.
std::string short_number(double value);

/// A heading over a column: `left` for words.
std::string html_head(std::string_view name, bool left = false);
/// Cells of a row.
std::string html_cell(std::string_view text);
std::string html_left(std::string_view text);
std::string html_row_head(std::string_view text);
/// `caption` and `rows` are HTML. Where it is wider than the page, it alone is scrolled.
std::string html_table(std::string_view caption, std::string_view heads, std::string_view rows);

}  // namespace statescope
