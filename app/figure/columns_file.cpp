#include "app/figure/columns_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "datasets/files.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "views/parts.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::size_t kMostRows = 1'000'000, kMostColumns = 10'000;

/// The separator that the first line has most of.
char separator_of(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  char best = ',';
  for (const char each : {',', ';', '\t'})
    if (std::ranges::count(line, each) > std::ranges::count(line, best)) best = each;
  return best;
}

/// Takes a record from the text: fields, in quotes where they hold separators, lines or quotes.
std::vector<std::string> take_record(std::string_view& text, char separator, const std::string& place) {
  std::vector<std::string> fields{""};
  bool in_quotes = false;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (in_quotes && c == '"' && text.starts_with('"')) {
      fields.back() += '"';
      text.remove_prefix(1);
    } else if (c == '"' && (in_quotes || fields.back().empty())) {
      in_quotes = !in_quotes;
    } else if (!in_quotes && c == separator) {
      if (fields.size() == kMostColumns) throw Error(fmt::format("{}: has more than {} columns", place, kMostColumns));
      fields.emplace_back();
    } else if (!in_quotes && c == '\n') {
      break;
    } else if (in_quotes || c != '\r') {
      fields.back() += c;
    }
  }
  if (in_quotes) throw Error(place + ": a quotation mark is not closed");
  return fields;
}

void read_csv(std::string_view text, ColumnsFile& file) {
  const char separator = separator_of(text);
  file.names = take_record(text, separator, file.place);
  for (std::size_t line = 2; !text.empty(); ++line) {
    std::vector<std::string> fields = take_record(text, separator, file.place);
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (fields.size() != file.names.size())
      throw Error(fmt::format("{}: record {} has {} fields, the first line {}", file.place, line, fields.size(), file.names.size()));
    if (file.rows.size() == kMostRows) throw Error(fmt::format("{}: has more than {} lines", file.place, kMostRows));
    file.rows.push_back(std::move(fields));
  }
}

void read_lines(std::string_view text, const std::filesystem::path& path, ColumnsFile& file) {
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view one = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.find_first_not_of(" \t\r") == one.npos) continue;
    const json object = parse_json(path, one, fmt::format("line {}: ", line));
    if (!object.is_object()) throw Error(fmt::format("{}: line {} is no object", file.place, line));
    if (file.rows.size() == kMostRows) throw Error(fmt::format("{}: has more than {} lines", file.place, kMostRows));
    std::vector<std::string>& row = file.rows.emplace_back(file.names.size());
    for (const auto& [key, value] : object.items()) {
      if (!value.is_number() && !value.is_string()) continue;
      auto column = static_cast<std::size_t>(std::ranges::find(file.names, key) - file.names.begin());
      if (column == kMostColumns) throw Error(fmt::format("{}: has more than {} keys", file.place, kMostColumns));
      if (column == file.names.size()) file.names.push_back(key);
      row.resize(file.names.size());
      row[column] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  for (std::vector<std::string>& row : file.rows) row.resize(file.names.size());
}

}  // namespace

std::size_t ColumnsFile::column(const std::string& name) const {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw Error(fmt::format("{}: has no column {}; it has {}", place, in_quotes(name), joined(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

double ColumnsFile::number(std::size_t row, std::size_t column) const {
  std::string_view text = rows[row][column];
  text.remove_prefix(std::min(text.find_first_not_of(" \t+"), text.size()));
  text = text.substr(0, text.find_last_not_of(" \t") + 1);
  double value = std::numeric_limits<double>::quiet_NaN();
  if (text.empty()) return value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(fmt::format("{}: column {}, row {}: {} is no number", place, in_quotes(names[column]), row + 1, in_quotes(text)));
  return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

ColumnsFile read_columns(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  ColumnsFile file{.names = {}, .rows = {}, .place = path.string()};
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) throw Error(file.place + ": is empty");
  if (text[first] == '{')
    read_lines(text, path, file);
  else
    read_csv(text, file);
  if (file.names.empty()) throw Error(file.place + ": no line has a number or a text under a key");
  if (file.rows.empty()) throw Error(file.place + ": has no rows");
  return file;
}

}  // namespace statescope
