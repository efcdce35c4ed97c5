#include "app/inspect/report.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace statescope {
namespace {

using nlohmann::json;

double mean(std::span<const StateSimilarity> heads, double (*figure)(const StateSimilarity&)) {
  double sum = 0;
  for (const StateSimilarity& head : heads) sum += figure(head);
  return sum / static_cast<double>(heads.size());
}
double entropy(const StateSimilarity& head) { return head.stacked.entropy; }
double rank(const StateSimilarity& head) { return head.stacked.rank; }
double cosine(const StateSimilarity& head) { return head.rows.mean_abs; }

double largest_norm(const LayerReport& layer) {
  double norm = 0;
  for (const SlotReport& slot : layer.slots) norm = std::max(norm, slot.norm);
  return norm;
}

std::string layer_line(std::size_t index, const LayerReport& layer) {
  std::string line = fmt::format("  {:5} {:20} {:9.3g}", index, layer.mixer, layer.residual_norm);
  if (layer.heads.empty()) return line;
  line += fmt::format(" {:9.3g} {:6.2f} {:5.1f}/{:<4} {:6.2f}", largest_norm(layer), mean(layer.heads, entropy), mean(layer.heads, rank),
                      layer.full_rank, mean(layer.heads, cosine));
  const SlotReport& first = layer.slots.front();
  line +=
      first.half_life ? fmt::format(" {:9.3g} {:8.0f}", *first.half_life, *first.receptive_field) : fmt::format(" {:>9} {:>8}", "–", "–");
  if (!layer.routing) return line;
  line += fmt::format("  {:.2f}:", layer.routing->load_entropy);
  for (const double load : layer.routing->balance.load) line += fmt::format(" {:.2f}", load);
  return line;
}

std::string verdict_line(const Verdict& verdict) {
  return fmt::format("{} {}: {}; {:.2f} in layer {}, healthy from {:.2f}", verdict.healthy ? "healthy  " : "COLLAPSED", verdict.name,
                     verdict.statement, verdict.value, verdict.layer, verdict.threshold);
}

json checkpoint_json(const Inspected& inspected) {
  json sequences = json::array(), judged = json::array();
  for (std::size_t i = 0; i < inspected.sequences.size(); ++i) {
    sequences.push_back(to_json(inspected.sequences[i]));
    sequences.back()["name"] = inspected.names[i];
  }
  for (const Verdict& verdict : verdicts(inspected.sequences)) judged.push_back(to_json(verdict));
  const auto known = [](std::int64_t number) { return number > 0 ? json(number) : json(nullptr); };
  return {{"checkpoint", inspected.checkpoint},
          {"trained_length", known(inspected.trained)},
          {"steps", known(inspected.steps)},
          {"sequences", sequences},
          {"verdicts", judged}};
}

// ---- the page ---------------------------------------------------------------------------------------------------------------------------

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Statescope: inspection</title><style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 "DejaVu Sans", sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 0.5em 0 1.5em; }
th, td { padding: 0.15em 0.8em; text-align: right; border-bottom: 1px solid #8884; font-variant-numeric: tabular-nums; }
th { font-weight: 600; } th:first-child, td:first-child, td.left { text-align: left; }
.bad { font-weight: 700; } .bad::before { content: "\25B2 "; } .good::before { content: "\2713 "; }
.loads { display: inline-flex; align-items: flex-end; height: 2em; gap: 2px; border-bottom: 1px solid; }
.loads i { width: 0.8em; background: #0072b2; } .loads i.over { background: #d55e00; }
</style></head><body><h1>Does the memory do its work?</h1>
)";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return safe;
}

std::string cell(double value, const char* format) { return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "–"; }

/// A bar for every partition: full height is three times the ideal load. The number is in the title.
std::string load_bars(const RoutingReport& routing) {
  constexpr double most = 3;
  std::string bars = "<span class=\"loads\">";
  for (std::size_t n = 0; n < routing.balance.load.size(); ++n) {
    const double load = routing.balance.load[n];
    bars += fmt::format("<i class=\"{}\" style=\"height:{:.0f}%\" title=\"partition {}: {:.3f}\"></i>",
                        load > kLoadThresholds.overloaded ? "over" : "", 100 * std::min(load, most) / most, n + 1, load);
  }
  return bars + "</span>";
}

std::string layer_row(std::size_t index, const LayerReport& layer) {
  std::string row =
      fmt::format("<tr><td>{}</td><td class=\"left\">{}</td><td>{}</td>", index, escaped(layer.mixer), cell(layer.residual_norm, "{:.3g}"));
  if (layer.heads.empty()) return row + "<td colspan=\"7\"></td></tr>\n";
  const SlotReport& first = layer.slots.front();
  row +=
      fmt::format("<td>{}</td><td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"left\">{}</td></tr>\n",
                  cell(largest_norm(layer), "{:.3g}"), cell(mean(layer.heads, entropy), "{:.2f}"), cell(mean(layer.heads, rank), "{:.1f}"),
                  layer.full_rank, cell(mean(layer.heads, cosine), "{:.2f}"), cell(first.half_life.value_or(NAN), "{:.3g}"),
                  cell(first.receptive_field.value_or(NAN), "{:.0f}"), layer.routing ? load_bars(*layer.routing) : "");
  return row;
}

std::string sequence_section(const std::string& name, const SequenceReport& report) {
  std::string section = fmt::format(
      "<h3>{}: {} tokens</h3>\n<table><tr><th>layer</th><th>mixer</th><th>residual norm</th><th>largest state norm</th>"
      "<th>spectral entropy</th><th>effective rank</th><th>mean |cos| of rows</th><th>half-life</th>"
      "<th>receptive field</th><th>loads</th></tr>\n",
      escaped(name), report.tokens);
  for (std::size_t l = 0; l < report.layers.size(); ++l) section += layer_row(l, report.layers[l]);
  section += "</table>\n";
  if (report.nll_by_eighth.empty()) return section;
  section += "<p>Nat a token, by eighth of the sequence:";
  for (const double nll : report.nll_by_eighth) section += " " + cell(nll, "{:.2f}");
  return section + "</p>\n";
}

std::string verdict_item(const Verdict& verdict) {
  return fmt::format("<li class=\"{}\">{}: {} ({} in layer {}, healthy from {:.2f}: {})</li>\n", verdict.healthy ? "good" : "bad",
                     verdict.name, verdict.statement, cell(verdict.value, "{:.2f}"), verdict.layer, verdict.threshold, verdict.why);
}

/// A row a checkpoint: its verdicts, and the last eighth of every sequence.
std::string comparison(const std::vector<Inspected>& all) {
  std::string table =
      "<table><tr><th>checkpoint</th><th>steps</th><th>load entropy</th><th>relative rank</th><th>nat a token at the end</th></tr>\n";
  for (const Inspected& inspected : all) {
    std::string routing = "<td></td>", ranks = "<td></td>", ends;
    for (const Verdict& verdict : verdicts(inspected.sequences)) {
      (verdict.name == "routing" ? routing : ranks) =
          fmt::format("<td class=\"{}\">{}</td>", verdict.healthy ? "good" : "bad", cell(verdict.value, "{:.2f}"));
    }
    for (const SequenceReport& report : inspected.sequences) {
      if (!report.nll_by_eighth.empty())
        ends += fmt::format("{}{}: {}", ends.empty() ? "" : ", ", report.tokens, cell(report.nll_by_eighth.back(), "{:.2f}"));
    }
    const std::string steps = inspected.steps > 0 ? std::to_string(inspected.steps) : "–";
    table += fmt::format("<tr><td>{}</td><td>{}</td>{}{}<td>{}</td></tr>\n",
                         escaped(std::filesystem::path(inspected.checkpoint).stem().string()), steps, routing, ranks, ends);
  }
  return table + "</table>\n";
}

}  // namespace

std::string inspection_text(const Inspected& inspected) {
  std::string text;
  for (std::size_t i = 0; i < inspected.sequences.size(); ++i) {
    const SequenceReport& report = inspected.sequences[i];
    text += fmt::format("{}: {}, {} tokens", inspected.checkpoint, inspected.names[i], report.tokens);
    if (inspected.trained > 0) text += fmt::format(" (trained on {})", inspected.trained);
    text += "\n  layer mixer                residual     state entropy  rank       |cos| half-life receptive  loads (1: even)\n";
    for (std::size_t l = 0; l < report.layers.size(); ++l) text += layer_line(l, report.layers[l]) + "\n";
    if (report.nll_by_eighth.empty()) continue;
    text += "  nat a token, by eighth:";
    for (const double nll : report.nll_by_eighth) text += fmt::format(" {:.2f}", nll);
    text += "\n";
  }
  for (const Verdict& verdict : verdicts(inspected.sequences)) text += "  " + verdict_line(verdict) + "\n";
  return text;
}

std::string inspection_json(const std::vector<Inspected>& all) {
  json checkpoints = json::array();
  for (const Inspected& inspected : all) checkpoints.push_back(checkpoint_json(inspected));
  return json{{"format", "statescope-inspection"}, {"version", 1}, {"accuracy", accuracy_json()}, {"checkpoints", checkpoints}}.dump(1) +
         "\n";
}

std::string inspection_html(const std::vector<Inspected>& all) {
  std::string page(kHead);
  page += comparison(all);
  for (const Inspected& inspected : all) {
    page += fmt::format("<h2>{}</h2>\n", escaped(inspected.checkpoint));
    if (inspected.trained > 0) page += fmt::format("<p>Trained on sequences of up to {} tokens.</p>\n", inspected.trained);
    page += "<ul>\n";
    for (const Verdict& verdict : verdicts(inspected.sequences)) page += verdict_item(verdict);
    page += "</ul>\n";
    for (std::size_t i = 0; i < inspected.sequences.size(); ++i) page += sequence_section(inspected.names[i], inspected.sequences[i]);
  }
  return page + fmt::format("<p>How exact: {}.</p>\n</body></html>\n", accuracy_text());
}

}  // namespace statescope
