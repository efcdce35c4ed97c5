#include "app/figure/provenance.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "statescope-figure", kElement = "statescope:figure";
constexpr int kVersion = 1;
constexpr std::size_t kMostSources = 1000;

/// A value of the object, of that type. Throws Error.
template <class Value>
Value value_of(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) throw Error(fmt::format("has no {}", in_quotes(key)));
  try {
    return found->get<Value>();
  } catch (const json::exception&) {
    throw Error(fmt::format("{} is of another kind than it should be", in_quotes(key)));
  }
}

Provenance provenance_of(const json& value, const std::string& name) {
  if (value_of<std::string>(value, "format") != kFormat) throw Error("is not a figure's provenance");
  if (value_of<int>(value, "version") != kVersion) throw Error("is of another version of Statescope");
  Provenance provenance{.spec = parse_figure_spec(value_of<json>(value, "spec").dump(), name),
                        .sources = {},
                        .command = value_of<std::string>(value, "command"),
                        .program = value_of<std::string>(value, "program"),
                        .device = value_of<std::string>(value, "device")};
  const json sources = value_of<json>(value, "sources");
  if (!sources.is_array() || sources.size() > kMostSources) throw Error("\"sources\" is not a list");
  for (const json& source : sources)
    provenance.sources.push_back(
        {value_of<std::string>(source, "name"), value_of<std::string>(source, "sha256"), value_of<std::string>(source, "config")});
  return provenance;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

}  // namespace

std::string to_json(const Provenance& provenance) {
  json sources = json::array();
  for (const FigureSource& source : provenance.sources)
    sources.push_back({{"name", source.name}, {"sha256", source.sha256}, {"config", source.config}});
  const json out{{"format", kFormat},
                 {"version", kVersion},
                 {"program", provenance.program},
                 {"command", provenance.command},
                 {"device", provenance.device},
                 {"sources", sources},
                 {"spec", json::parse(to_json(provenance.spec))}};
  return out.dump(1, ' ', true, json::error_handler_t::replace) + "\n";
}

Provenance parse_provenance(std::string_view text, const std::string& name) {
  check_json_text(name, "its provenance", text);
  const json value = json::parse(text, nullptr, false);
  try {
    return provenance_of(value, name);
  } catch (const Error& error) {
    const std::string_view words = error.what();
    if (words.starts_with(name)) throw;
    fail(name, fmt::format("its provenance {}", words));
  }
}

std::string without_spaces(std::string_view text) {
  std::string dense = json::parse(text).dump(-1, ' ', true);
  replace_all(dense, " ", "\\u0020");  // all that are left stand in texts
  return dense;
}

std::string provenance_element(std::string_view json) {
  std::string text(json);
  replace_all(text, "&", "&amp;");
  replace_all(text, "<", "&lt;");
  replace_all(text, ">", "&gt;");
  return fmt::format("<{0} xmlns:statescope=\"urn:statescope:figure\">{1}</{0}>", kElement, text);
}

std::string provenance_in(std::string_view file, const std::string& name) {
  const std::string open = fmt::format("<{} ", kElement), close = fmt::format("</{}>", kElement);
  const std::size_t element = file.find(open), begin = element == file.npos ? file.npos : file.find('>', element);
  const std::size_t end = begin == file.npos ? file.npos : file.find(close, begin);
  if (end == file.npos) fail(name, "this figure does not say what it was made from; only those of `statescope figure` do");
  std::string text(file.substr(begin + 1, end - begin - 1));
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  replace_all(text, "&amp;", "&");
  return text;
}

}  // namespace statescope
