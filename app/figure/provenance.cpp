#include "app/figure/provenance.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/json_object.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "statescope-figure", kElement = "statescope:figure";
constexpr int kVersion = 1;
constexpr std::size_t kMostSources = 1000;

Provenance provenance_of(const json& value, const std::string& name) {
  JsonObject object(value, name + ": its provenance");
  if (object.text("format") != kFormat) object.refuse("is not a figure's");
  if (object.at("version") != kVersion) object.refuse("is of another version of Statescope");
  Provenance provenance{.spec = parse_figure_spec(object.at("spec").dump(), name),
                        .sources = {},
                        .command = object.text("command"),
                        .program = object.text("program"),
                        .device = object.text("device")};
  const json& sources = object.list("sources");
  if (sources.size() > kMostSources) object.refuse("has too many sources");
  for (const json& each : sources) {
    JsonObject source(each, object.place() + ": a source");
    provenance.sources.push_back({source.text("name"), source.text("sha256"), source.text("config")});
  }
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
  return provenance_of(json::parse(text, nullptr, false), name);
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
