#include "app/common/page.h"

#include <fmt/format.h>

#include <cmath>

namespace statescope {
namespace {

constexpr std::string_view kStyle =
    R"(:root { color-scheme: light dark; --line: #8886; --soft: #8882; --good: #009e73; --bad: #d55e00; --bar: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --bar: #56b4e9; } }
body { font: 15px/1.5 "DejaVu Sans", sans-serif; margin: 2em 0; }
main { max-width: 75em; margin: auto; padding: 0 1em; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; } h3 { margin-top: 2em; } h2 { margin-top: 2.5em; border-top: 1px solid var(--line); padding-top: 1em; }
p, li, dd { max-width: 60em; } .path { overflow-wrap: anywhere; } dt { font-weight: 600; } dd { margin: 0 0 0.5em 1.5em; }
.wide { overflow-x: auto; margin: 0.5em 0 1.5em; } table { border-collapse: collapse; }
caption { text-align: left; font-weight: 600; padding: 0.3em 0.5em 0.3em 0; } caption span { display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 3em); }
th, td { padding: 0.2em 0.7em; text-align: right; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
td, tbody th { white-space: nowrap; } td.words { white-space: normal; min-width: 22em; } thead th { vertical-align: bottom; max-width: 9em; } thead th.long { min-width: 8em; } th { font-weight: 600; } tbody th { font-weight: inherit; }
th:first-child, td:first-child, th.left, td.left { text-align: left; }
.bad::before { content: "\25B2\00A0"; } .good::before { content: "\2713\00A0"; } td.bad { font-weight: 700; }
.verdicts { list-style: none; padding: 0; } .verdicts li { border-left: 4px solid; padding: 0.3em 0.8em; margin: 0.5em 0; background: var(--soft); }
li.good { border-color: var(--good); } li.bad { border-color: var(--bad); } small { display: block; }
.loads { display: inline-flex; align-items: flex-end; vertical-align: middle; height: 2.1em; gap: 2px; border-bottom: 1px solid; margin-right: 0.7em;
  background: linear-gradient(currentColor, currentColor) 0 66.7% / 100% 1px no-repeat; }
.loads i { width: 0.7em; background: var(--bar); } .loads i.over { background: var(--bad); }
svg { display: inline-block; vertical-align: middle; width: 7em; height: 1.6em; fill: none; stroke: var(--bar); stroke-width: 1.5; overflow: visible; }
figure { margin: 1em 0; } figcaption { max-width: 60em; } .panels { display: flex; flex-wrap: wrap; gap: 0.5em 1.5em; }
svg.panel { width: 15.5em; margin-right: 1em; height: auto; stroke-width: 1.2; } .panel text { font-size: 9px; fill: currentColor; stroke: none; }
.panel .axis { stroke: var(--line); } .panel .trained { stroke: var(--bad); stroke-dasharray: 4 3; } .panel circle { fill: var(--bar); stroke: none; opacity: 0.7; }
.panel .range { stroke-width: 6; } .panel polyline { opacity: 0.75; }
.opening { font-size: 0.85em; margin: 0.4em 0 1em; } .opening code { user-select: all; overflow-wrap: anywhere; background: var(--soft); padding: 0.1em 0.3em; }
.panels > .led { flex: 1 1 20em; } .opening button { font: inherit; padding: 0 0.6em; } [data-place] { cursor: pointer; }
.parts { display: inline-flex; height: 1.1em; width: 20em; outline: 1px solid #8888; } .key i { padding: 0 0.6em; margin: 0 0.3em 0 1em; }
.clear { background: #009e73; } .decay { background: #56b4e9; } .erasure { background: #cc79a7; }
.overwriting { background: #d55e00; } .misrouting { background: #f0e442; }
i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
@media print {
  @page { margin: 12mm; } :root { color-scheme: light; --bar: #0072b2; } body { font-size: 8pt; margin: 0; } main { padding: 0; max-width: none; }
  .wide { overflow: visible; } .opening button { display: none; } th, td { padding: 0.15em 0.45em; } h2, h3, caption { break-after: avoid; } tr, li, dd { break-inside: avoid; }
}
)";

}  // namespace

std::string page_begin(std::string_view title, std::string_view heading) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\"/><title>Statescope: {}</title><style>\n{}</style></head><body><main><h1>{}</h1>\n",
      title, kStyle, heading);
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return safe;
}

std::string number_cell(double value, const char* format) { return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "–"; }

std::string short_number(double value) {
  const double size = std::abs(value);
  return number_cell(value, size >= 99.95 && size < 1e6 ? "{:.0f}" : "{:#.3g}");
}

std::string html_head(std::string_view name, bool left) {
  constexpr std::size_t long_name = 24;  // does not shrink to its longest word
  const char* kind = name.size() > long_name ? left ? " class=\"left long\"" : " class=\"long\"" : left ? " class=\"left\"" : "";
  return fmt::format("<th scope=\"col\"{}>{}</th>", kind, escaped(name));
}

std::string html_cell(std::string_view text) { return fmt::format("<td>{}</td>", text); }
std::string html_left(std::string_view text) { return fmt::format("<td class=\"left\">{}</td>", text); }
std::string html_row_head(std::string_view text) { return fmt::format("<th scope=\"row\">{}</th>", text); }

std::string html_table(std::string_view caption, std::string_view heads, std::string_view rows) {
  return fmt::format(
      "<div class=\"wide\" "
      "tabindex=\"0\"><table><caption><span>{}</span></caption>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      caption, heads, rows);
}

}  // namespace statescope
