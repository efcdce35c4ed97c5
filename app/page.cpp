#include "app/page.h"

#include <fmt/format.h>

#include <cmath>

namespace statescope {
namespace {

constexpr std::string_view kStyle = R"(:root { color-scheme: light dark; }
body { font: 15px/1.5 "DejaVu Sans", sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 0.5em 0 1.5em; }
th, td { padding: 0.15em 0.8em; text-align: right; border-bottom: 1px solid #8884; font-variant-numeric: tabular-nums; }
th { font-weight: 600; } th:first-child, td:first-child, th.left, td.left { text-align: left; }
.bad { font-weight: 700; } .bad::before { content: "\25B2 "; } .good::before { content: "\2713 "; }
.loads { display: inline-flex; align-items: flex-end; height: 2em; gap: 2px; border-bottom: 1px solid; }
.loads i { width: 0.8em; background: #0072b2; } .loads i.over { background: #d55e00; }
.parts { display: inline-flex; height: 1.1em; width: 20em; outline: 1px solid #8888; } .key i { padding: 0 0.6em; margin: 0 0.3em 0 1em; }
.clear { background: #009e73; } .decay { background: #56b4e9; } .erasure { background: #cc79a7; }
.overwriting { background: #d55e00; } .misrouting { background: #f0e442; }
)";

}  // namespace

std::string page_begin(std::string_view title, std::string_view heading) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Statescope: {}</title><style>\n{}</style></head><body><h1>{}"
      "</h1>\n",
      title, kStyle, heading);
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return safe;
}

std::string number_cell(double value, const char* format) { return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "–"; }

}  // namespace statescope
