// Files of columns: CSV, or a line of JSON for each row, as trainings log them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace statescope {

struct ColumnsFile {
  std::vector<std::string> names;              // of the columns
  std::vector<std::vector<std::string>> rows;  // as many texts each; empty where a line of JSON has no such key
  std::string place;                           // how errors call the file

  /// Throws Error that names those that there are.
  std::size_t column(const std::string& name) const;
  /// NaN where it is empty, or not finite. Throws Error for what is no number.
  double number(std::size_t row, std::size_t column) const;
};

/// Separated by commas, semicolons or tabs, the first line the names (RFC 4180); or objects, one a line, whose numbers and texts are taken.
/// Throws Error.
ColumnsFile read_columns(const std::filesystem::path& path);

}  // namespace statescope
