#include "app/inspect/report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/page.h"

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
double within(const StateSimilarity& head) { return head.rows.within; }
double between(const StateSimilarity& head) { return head.rows.between; }

/// Sequences of one name, as their mean.
struct Kind {
  std::string name;  // "niah, 256 words; mean of 3"
  SequenceReport report;
};

/// In their order; where there is no mean of all of one name, each for itself.
std::vector<Kind> kinds_of(const Inspected& inspected) {
  std::vector<Kind> kinds;
  for (std::size_t first = 0, end = 0; first < inspected.names.size(); first = end) {
    while (end < inspected.names.size() && inspected.names[end] == inspected.names[first]) ++end;
    const auto same = std::span(inspected.sequences).subspan(first, end - first);
    if (const std::optional<SequenceReport> mean = same.size() > 1 ? mean_report(same) : std::nullopt) {
      kinds.push_back({fmt::format("{}; mean of {}", inspected.names[first], same.size()), *mean});
    } else {
      for (const SequenceReport& one : same) kinds.push_back({inspected.names[first], one});
    }
  }
  return kinds;
}

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

/// "0.31 0.42": numbers after one another.
std::string numbers(const std::vector<double>& values, std::string_view format) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : " ") + fmt::format(fmt::runtime(format), value);
  return text;
}

/// "1 low, 3 middle": how many heads are of which class of rank.
std::string head_classes(const LayerReport& layer) {
  std::map<HeadClass, int> count;
  for (const StateSimilarity& head : layer.heads) ++count[head_class(rank(head) / static_cast<double>(layer.full_rank))];
  std::string text;
  for (const auto& [head, heads] : count) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", heads, name_of(head));
  return text;
}

/// Empty without a matrix state.
std::string state_line(std::size_t index, const LayerReport& layer) {
  if (layer.heads.empty()) return "";
  std::string likeness;
  if (layer.slots.size() > 1)
    likeness = fmt::format(" (within partitions {:.2f}, between them {:.2f})", mean(layer.heads, within), mean(layer.heads, between));
  return fmt::format(
      "layer {}: state norm by eighth {}; largest row {:.1f} times the median one; mean |cos| of rows {:.2f}{}; ranks of heads: {}", index,
      numbers(layer.norm_by_eighth, "{:.3g}"), layer.outlier, mean(layer.heads, cosine), likeness, head_classes(layer));
}

/// "2, 3"; "none"
std::string partitions_text(const std::vector<std::int64_t>& partitions) {
  std::string text;
  for (const std::int64_t n : partitions) text += fmt::format("{}{}", text.empty() ? "" : ", ", n + 1);
  return text.empty() ? "none" : text;
}

/// Empty where nothing is routed.
std::string routing_line(std::size_t index, const LayerReport& layer) {
  if (!layer.routing) return "";
  const RoutingReport& routing = *layer.routing;
  return fmt::format(
      "layer {}: entropy of a token's routing {:.2f}, margin {:.2f}; balance loss {:.2f} (even: 1); dead partitions (load at most {}): {}; "
      "overloaded (above {}): {}",
      index, routing.token_entropy, routing.margin, routing.balance.loss, kLoadThresholds.dead, partitions_text(routing.uneven.dead),
      kLoadThresholds.overloaded, partitions_text(routing.uneven.overloaded));
}

/// Empty where the sequence is too short to say.
std::string remembrance_line(const SequenceReport& report) {
  std::string text;
  for (const Remembrance& left_out : report.remembrance)
    text += fmt::format("{}{:.3f} without the first {}", text.empty() ? "" : ", ", left_out.change, left_out.dropped);
  return text.empty() ? text : fmt::format("change of the last {} predictions (total variation): {}", kRememberedAt, text);
}

std::string perplexity_line(const SequenceReport& report) {
  std::vector<double> perplexity;
  for (const double nll : report.nll_by_eighth) perplexity.push_back(std::exp(nll));
  return fmt::format("perplexity by eighth of the sequence: {} (nat a token {})", numbers(perplexity, "{:.3g}"),
                     numbers(report.nll_by_eighth, "{:.2f}"));
}

/// All lines beneath the table of layers.
std::vector<std::string> lines_of(const SequenceReport& report) {
  std::vector<std::string> lines;
  if (report.nll_by_eighth.empty()) return lines;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    lines.push_back(state_line(l, report.layers[l]));
    lines.push_back(routing_line(l, report.layers[l]));
  }
  lines.push_back(perplexity_line(report));
  lines.push_back(remembrance_line(report));
  std::erase(lines, "");
  return lines;
}

/// A checkpoint in a line, of all its sequences.
struct Overview {
  std::string name, steps, ends;  // "256: 5.8, 1024: 11.6": perplexity in the last eighth
  std::optional<Verdict> routing, rank;
  double likeness = NAN, growth = NAN;  // of the worst layer: mean |cos| of rows; state norm at the end over that in the middle

  explicit Overview(const Inspected& inspected)
      : name(std::filesystem::path(inspected.checkpoint).stem().string()),
        steps(inspected.steps > 0 ? std::to_string(inspected.steps) : "–") {
    for (Verdict& verdict : verdicts(inspected.sequences)) (verdict.name == "routing" ? routing : rank) = std::move(verdict);
    for (const auto& [kind, report] : kinds_of(inspected)) {
      for (const LayerReport& layer : report.layers) {
        if (!layer.heads.empty()) likeness = std::fmax(likeness, mean(layer.heads, cosine));
        if (!layer.norm_by_eighth.empty()) growth = std::fmax(growth, layer.norm_by_eighth.back() / layer.norm_by_eighth[3]);
      }
      if (!report.nll_by_eighth.empty())
        ends +=
            fmt::format("{}{}: {}", ends.empty() ? "" : ", ", report.tokens, number_cell(std::exp(report.nll_by_eighth.back()), "{:.3g}"));
    }
  }
};

/// What a comparison shows of a layer; NaN: it has no such thing.
constexpr std::array<std::pair<std::string_view, double (*)(const LayerReport&)>, 10> kFigures{{
    {"residual norm", [](const LayerReport& layer) { return layer.residual_norm; }},
    {"largest state norm", [](const LayerReport& layer) { return layer.heads.empty() ? NAN : largest_norm(layer); }},
    {"spectral entropy", [](const LayerReport& layer) { return mean(layer.heads, entropy); }},
    {"effective rank", [](const LayerReport& layer) { return mean(layer.heads, rank); }},
    {"mean |cos| of rows", [](const LayerReport& layer) { return mean(layer.heads, cosine); }},
    {"largest row over the median one", [](const LayerReport& layer) { return layer.heads.empty() ? NAN : layer.outlier; }},
    {"half-life", [](const LayerReport& layer) { return layer.slots.empty() ? NAN : layer.slots[0].half_life.value_or(NAN); }},
    {"receptive field", [](const LayerReport& layer) { return layer.slots.empty() ? NAN : layer.slots[0].receptive_field.value_or(NAN); }},
    {"load entropy", [](const LayerReport& layer) { return layer.routing ? layer.routing->load_entropy : NAN; }},
    {"routing entropy of a token", [](const LayerReport& layer) { return layer.routing ? layer.routing->token_entropy : NAN; }},
}};

/// Empty where neither has the figure.
std::string comparison_line(const std::string& name, double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return "";
  return fmt::format("{:42} {:>10} {:>10} {:>10}\n", name, number_cell(a, "{:.4g}"), number_cell(b, "{:.4g}"),
                     number_cell(b - a, "{:+.3g}"));
}

std::string verdict_line(const Verdict& verdict) {
  return fmt::format("{} {}: {}; {:.2f} in layer {}, healthy from {:.2f}: {}", verdict.healthy ? "healthy  " : "COLLAPSED", verdict.name,
                     verdict.statement, verdict.value, verdict.layer, verdict.threshold, verdict.why);
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
  std::string row = fmt::format("<tr><td>{}</td><td class=\"left\">{}</td><td>{}</td>", index, escaped(layer.mixer),
                                number_cell(layer.residual_norm, "{:.3g}"));
  if (layer.heads.empty()) return row + "<td colspan=\"7\"></td></tr>\n";
  const SlotReport& first = layer.slots.front();
  row += fmt::format("<td>{}</td><td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"left\">{}</td></tr>\n",
                     number_cell(largest_norm(layer), "{:.3g}"), number_cell(mean(layer.heads, entropy), "{:.2f}"),
                     number_cell(mean(layer.heads, rank), "{:.1f}"), layer.full_rank, number_cell(mean(layer.heads, cosine), "{:.2f}"),
                     number_cell(first.half_life.value_or(NAN), "{:.3g}"), number_cell(first.receptive_field.value_or(NAN), "{:.0f}"),
                     layer.routing ? load_bars(*layer.routing) : "");
  return row;
}

std::string verdict_cell(const std::optional<Verdict>& verdict) {
  if (!verdict) return "<td></td>";
  return fmt::format("<td class=\"{}\">{}</td>", verdict->healthy ? "good" : "bad", number_cell(verdict->value, "{:.2f}"));
}

std::string sequence_section(const std::string& name, const SequenceReport& report) {
  std::string section = fmt::format(
      "<h3>{}: {} tokens</h3>\n<table><tr><th>layer</th><th>mixer</th><th>residual norm</th><th>largest state norm</th>"
      "<th>spectral entropy</th><th>effective rank</th><th>mean |cos| of rows</th><th>half-life</th>"
      "<th>receptive field</th><th>loads</th></tr>\n",
      escaped(name), report.tokens);
  for (std::size_t l = 0; l < report.layers.size(); ++l) section += layer_row(l, report.layers[l]);
  section += "</table>\n<ul>\n";
  for (const std::string& line : lines_of(report)) section += fmt::format("<li>{}</li>\n", escaped(line));
  return section + "</ul>\n";
}

std::string verdict_item(const Verdict& verdict) {
  return fmt::format("<li class=\"{}\">{}: {} ({} in layer {}, healthy from {:.2f}: {})</li>\n", verdict.healthy ? "good" : "bad",
                     verdict.name, verdict.statement, number_cell(verdict.value, "{:.2f}"), verdict.layer, verdict.threshold, verdict.why);
}

/// A row a checkpoint: its verdicts, what its worst layer has, and the last eighth of every kind of sequence.
std::string comparison(const std::vector<Inspected>& all) {
  std::string table =
      "<table><tr><th>checkpoint</th><th>steps</th><th>load entropy</th><th>relative rank</th><th>largest mean |cos| of rows</th>"
      "<th>largest growth of a state's norm in the second half</th><th>tokens: perplexity at the end</th></tr>\n";
  for (const Inspected& inspected : all) {
    const Overview one(inspected);
    table += fmt::format("<tr><td>{}</td><td>{}</td>{}{}<td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(one.name), one.steps,
                         verdict_cell(one.routing), verdict_cell(one.rank), number_cell(one.likeness, "{:.2f}"),
                         number_cell(one.growth, "{:.2f}"), one.ends);
  }
  return table + "</table>\n";
}

}  // namespace

std::string inspection_text(const Inspected& inspected) {
  std::string text;
  for (const auto& [name, report] : kinds_of(inspected)) {
    text += fmt::format("{}: {}, {} tokens", inspected.checkpoint, name, report.tokens);
    if (inspected.trained > 0) text += fmt::format(" (trained on {})", inspected.trained);
    text += "\n  layer mixer                residual     state entropy  rank       |cos| half-life receptive  loads (1: even)\n";
    for (std::size_t l = 0; l < report.layers.size(); ++l) text += layer_line(l, report.layers[l]) + "\n";
    for (const std::string& line : lines_of(report)) text += "  " + line + "\n";
  }
  for (const Verdict& verdict : verdicts(inspected.sequences)) text += "  " + verdict_line(verdict) + "\n";
  return text;
}

std::string comparison_text(const Inspected& a, const Inspected& b) {
  const auto layers = [](const Inspected& one) { return one.sequences.empty() ? 0 : one.sequences[0].layers.size(); };
  const std::vector<Kind> kinds_a = kinds_of(a), kinds_b = kinds_of(b);
  if (!std::ranges::equal(kinds_a, kinds_b, {}, &Kind::name, &Kind::name) || layers(a) != layers(b)) return "";
  std::string text = fmt::format("A: {}\nB: {}\n", a.checkpoint, b.checkpoint);
  for (std::size_t i = 0; i < kinds_a.size(); ++i) {
    const SequenceReport &of_a = kinds_a[i].report, &of_b = kinds_b[i].report;
    text +=
        fmt::format("{}, {} and {} tokens\n{:42} {:>10} {:>10} {:>10}\n", kinds_a[i].name, of_a.tokens, of_b.tokens, "", "A", "B", "B - A");
    for (std::size_t l = 0; l < of_a.layers.size(); ++l) {
      for (const auto& [name, figure] : kFigures)
        text += comparison_line(fmt::format("  layer {} {}", l, name), figure(of_a.layers[l]), figure(of_b.layers[l]));
    }
    const std::size_t eighths = std::min(of_a.nll_by_eighth.size(), of_b.nll_by_eighth.size());
    for (std::size_t e = 0; e < eighths; ++e)
      text +=
          comparison_line(fmt::format("  perplexity, eighth {}", e + 1), std::exp(of_a.nll_by_eighth[e]), std::exp(of_b.nll_by_eighth[e]));
    const std::size_t dropped = std::min(of_a.remembrance.size(), of_b.remembrance.size());
    for (std::size_t r = 0; r < dropped; ++r)
      text += comparison_line(fmt::format("  change without the first {}", of_a.remembrance[r].dropped), of_a.remembrance[r].change,
                              of_b.remembrance[r].change);
  }
  for (const Inspected* one : {&a, &b}) {
    for (const Verdict& verdict : verdicts(one->sequences)) text += fmt::format("  {} {}\n", one == &a ? 'A' : 'B', verdict_line(verdict));
  }
  return text;
}

std::string overview_text(const std::vector<Inspected>& all) {
  std::string text = fmt::format("{:36} {:>7} {:>12} {:>13} {:>13} {:>11}  {}\n", "checkpoint", "steps", "load entropy", "relative rank",
                                 "largest |cos|", "norm growth", "tokens: perplexity at the end");
  const auto value = [](const std::optional<Verdict>& verdict) {
    return verdict ? number_cell(verdict->value, "{:.2f}") + (verdict->healthy ? "" : " !") : std::string("–");
  };
  for (const Inspected& inspected : all) {
    const Overview one(inspected);
    text += fmt::format("{:36} {:>7} {:>12} {:>13} {:>13} {:>11}  {}\n", one.name, one.steps, value(one.routing), value(one.rank),
                        number_cell(one.likeness, "{:.2f}"), number_cell(one.growth, "{:.2f}"), one.ends);
  }
  return text;
}

std::string inspection_json(const std::vector<Inspected>& all) {
  json checkpoints = json::array();
  for (const Inspected& inspected : all) checkpoints.push_back(checkpoint_json(inspected));
  return json{{"format", "statescope-inspection"}, {"version", 1}, {"accuracy", accuracy_json()}, {"checkpoints", checkpoints}}.dump(1) +
         "\n";
}

std::string inspection_html(const std::vector<Inspected>& all) {
  std::string page = page_begin("inspection", "Does the memory do its work?");
  page += comparison(all);
  for (const Inspected& inspected : all) {
    page += fmt::format("<h2>{}</h2>\n", escaped(inspected.checkpoint));
    if (inspected.trained > 0) page += fmt::format("<p>Trained on sequences of up to {} tokens.</p>\n", inspected.trained);
    page += "<ul>\n";
    for (const Verdict& verdict : verdicts(inspected.sequences)) page += verdict_item(verdict);
    page += "</ul>\n";
    for (const auto& [name, report] : kinds_of(inspected)) page += sequence_section(name, report);
  }
  return page + fmt::format("<p>How exact: {}.</p>\n{}", accuracy_text(), kPageEnd);
}

}  // namespace statescope
