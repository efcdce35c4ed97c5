#include "app/inspect/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/common/page.h"
#include "app/inspect/figures.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr const char* kColumns =
    "  residual: norm of what enters the layer, mean over tokens; state: ‖S‖ of the partition where it is largest, mean over heads "
    "(by eighth: mean over partitions and heads); half-life and receptive field: tokens, of the shared state where there is one, "
    "the median channel's and the mean over channels and the last 128 tokens; ≥: for some of them it reaches back to the first token\n";

std::string layer_line(std::size_t index, const LayerReport& layer) {
  std::string line = fmt::format("  {:5} {:20} {:9.3g}", index, layer.mixer, layer.residual_norm);
  if (layer.heads.empty()) return line;
  line += fmt::format(" {:9.3g} {:6.2f} {:5.1f}/{:<4} {:6.2f}", largest_norm(layer), mean_entropy(layer), mean_rank(layer), layer.full_rank,
                      mean_cosine(layer));
  line += fmt::format(" {:>9} {:>9}", bounded_cell(half_life_of(layer), "{:.3g}"), bounded_cell(receptive_field_of(layer), "{:.0f}"));
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

/// Empty without a matrix state.
std::string state_line(std::size_t index, const LayerReport& layer) {
  if (layer.heads.empty()) return "";
  std::string likeness;
  if (layer.slots.size() > 1)
    likeness = fmt::format(" (within partitions {:.2f}, between them {:.2f})", mean_within(layer), mean_between(layer));
  return fmt::format(
      "layer {}: state norm by eighth {}; largest row {:.1f} times the median one; mean |cos| of rows {:.2f}{}; ranks of heads: {}", index,
      numbers(layer.norm_by_eighth, "{:.3g}"), layer.outlier, mean_cosine(layer), likeness, head_classes({&layer, 1}));
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

/// "256: 5.8, 1024: 11.6"
std::string ends_text(const std::vector<InspectionOverview::End>& ends) {
  std::string text;
  for (const auto& [tokens, perplexity] : ends)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", tokens, number_cell(perplexity, "{:.3g}"));
  return text;
}

/// What a comparison shows of a layer; NaN: it has no such thing.
constexpr std::array<std::pair<std::string_view, Bounded (*)(const LayerReport&)>, 10> kFigures{{
    {"residual norm", [](const LayerReport& layer) -> Bounded { return layer.residual_norm; }},
    {"largest state norm", [](const LayerReport& layer) -> Bounded { return layer.heads.empty() ? NAN : largest_norm(layer); }},
    {"spectral entropy", [](const LayerReport& layer) -> Bounded { return mean_entropy(layer); }},
    {"effective rank", [](const LayerReport& layer) -> Bounded { return mean_rank(layer); }},
    {"mean |cos| of rows", [](const LayerReport& layer) -> Bounded { return mean_cosine(layer); }},
    {"largest row over the median one", [](const LayerReport& layer) -> Bounded { return layer.heads.empty() ? NAN : layer.outlier; }},
    {"half-life", half_life_of},
    {"receptive field", receptive_field_of},
    {"load entropy", [](const LayerReport& layer) -> Bounded { return layer.routing ? layer.routing->load_entropy : NAN; }},
    {"routing entropy of a token", [](const LayerReport& layer) -> Bounded { return layer.routing ? layer.routing->token_entropy : NAN; }},
}};

/// Empty where neither has the figure.
std::string comparison_line(const std::string& name, const Bounded& a, const Bounded& b) {
  if (std::isnan(a.value) && std::isnan(b.value)) return "";
  return fmt::format("{:42} {:>10} {:>10} {:>10}\n", name, bounded_cell(a, "{:.4g}"), bounded_cell(b, "{:.4g}"),
                     difference_cell(a, b, "{:+.3g}"));
}

/// What was found, a line each, and what it holds for.
std::string judgement_text(const Inspected& inspected) {
  const Judgement& judgement = inspected.judgement;
  if (!judgement.cannot_say.empty()) return fmt::format("  cannot say: {}\n", judgement.cannot_say);
  if (judgement.diagnoses.empty())
    return fmt::format("  healthy   none of {} illnesses was found (on {})\n", illnesses().size(), inspected.read_on);
  std::string text;
  for (const Diagnosis& found : judgement.diagnoses) {
    const std::string where = place_text(found);
    text += fmt::format("  {:9} {}{}{}: {} ({}; on {})\n", found.ill ? "ILL" : "watch", row_of(found.illness).name,
                        where.empty() ? "" : ", ", where, found.sentence, row_of(found.illness).source, inspected.read_on);
  }
  return text;
}

json checkpoint_json(const Inspected& inspected) {
  json sequences = json::array(), found = json::array();
  for (std::size_t i = 0; i < inspected.sequences.size(); ++i) {
    sequences.push_back(to_json(inspected.sequences[i]));
    sequences.back()["name"] = inspected.names[i];
  }
  for (const Diagnosis& diagnosis : inspected.judgement.diagnoses) {
    found.push_back(to_json(diagnosis));
    found.back()["prompts"] = inspected.read_on;
  }
  const std::string& silent = inspected.judgement.cannot_say;
  const auto known = [](std::int64_t number) { return number > 0 ? json(number) : json(nullptr); };
  return {{"checkpoint", inspected.checkpoint},
          {"notes", inspected.notes},
          {"trained_length", known(inspected.trained)},
          {"steps", known(inspected.steps)},
          {"sequences", sequences},
          {"verdicts", found},
          {"cannot_say", silent.empty() ? json(nullptr) : json(silent)}};
}

}  // namespace

std::string inspection_text(const Inspected& inspected) {
  std::string text;
  for (const InspectedKind& kind : kinds_of(inspected)) {
    const SequenceReport& report = kind.report;
    text += fmt::format("{}: {}, {} tokens", inspected.checkpoint, kind.name, report.tokens);
    if (inspected.trained > 0) text += fmt::format(" (trained on {})", inspected.trained);
    text += "\n  layer mixer                residual     state entropy  rank       |cos| half-life receptive  loads (1: even)\n";
    for (std::size_t l = 0; l < report.layers.size(); ++l) text += layer_line(l, report.layers[l]) + "\n";
    for (const std::string& line : lines_of(report)) text += "  " + line + "\n";
  }
  return text + judgement_text(inspected) + kColumns;
}

std::string comparison_text(const Inspected& a, const Inspected& b) {
  const auto layers = [](const Inspected& one) { return one.sequences.empty() ? 0 : one.sequences[0].layers.size(); };
  const std::vector<InspectedKind> kinds_a = kinds_of(a), kinds_b = kinds_of(b);
  if (!std::ranges::equal(kinds_a, kinds_b, {}, &InspectedKind::name, &InspectedKind::name) || layers(a) != layers(b)) return "";
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
  return text + "A:\n" + judgement_text(a) + "B:\n" + judgement_text(b);
}

namespace {

/// "2", "1 and 2", "0, 1 and 2"
std::string listed(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ", numbers[i]);
  return text;
}

std::string counted(std::string_view what, const std::vector<std::int64_t>& numbers) {
  return numbers.empty() ? "" : fmt::format("{}{} {}", what, numbers.size() > 1 ? "s" : "", listed(numbers));
}

}  // namespace

std::string place_text(const Diagnosis& found) {
  const auto& heads = found.heads_by_layer;
  const bool same = std::ranges::all_of(heads, [&](const std::vector<std::int64_t>& of_layer) { return of_layer == heads.front(); });
  if (heads.empty() || same) {
    const std::string of_heads = heads.empty() ? "" : counted("head", heads.front());
    return counted("layer", found.layers) + (of_heads.empty() ? "" : ", " + of_heads);
  }
  std::string text;
  for (std::size_t i = 0; i < found.layers.size(); ++i)
    text += fmt::format("{}layer {} ({})", i > 0 ? ", " : "", found.layers[i], heads[i].empty() ? "all heads" : counted("head", heads[i]));
  return text;
}

std::string illnesses_text(const Inspected& inspected) {
  std::string text;
  for (const Diagnosis& found : inspected.judgement.diagnoses) {
    const std::string where = place_text(found);
    text += fmt::format("{}{}{}{}", text.empty() ? "" : "; ", row_of(found.illness).name, where.empty() ? "" : ", ", where);
  }
  return text;
}

std::string verdict_in_short(const Inspected& inspected) {
  if (!inspected.judgement.cannot_say.empty()) return "cannot say";
  return inspected.is_ill() ? "ill: " + illnesses_text(inspected) : "healthy";
}

std::string overview_text(const std::vector<Inspected>& all) {
  std::string text = fmt::format("{:36} {:>7} {:>12} {:>13} {:>9} {:>9} {:>13} {:>11} {:24} {:24}  {}\n", "checkpoint", "steps",
                                 "load entropy", "relative rank", "half-life", "receptive", "largest |cos|", "norm growth",
                                 "dead partitions", "ranks of heads", "verdict; tokens: perplexity at the end");
  for (const Inspected& inspected : all) {
    const InspectionOverview one(inspected);
    text +=
        fmt::format("{:36} {:>7} {:>12} {:>13} {:>9} {:>9} {:>13} {:>11} {:24} {:24}  {}; {}\n", one.name,
                    one.steps > 0 ? std::to_string(one.steps) : "–", number_cell(one.spread, "{:.2f}"), number_cell(one.rank, "{:.2f}"),
                    bounded_cell(one.half_life, "{:.3g}"), bounded_cell(one.width, "{:.0f}"), number_cell(one.likeness, "{:.2f}"),
                    number_cell(one.growth, "{:.2f}"), one.dead.empty() ? "none" : one.dead, one.heads, one.verdict, ends_text(one.ends));
  }
  return text;
}

std::string inspection_json(const std::vector<Inspected>& all) {
  json checkpoints = json::array();
  for (const Inspected& inspected : all) checkpoints.push_back(checkpoint_json(inspected));
  return json{{"format", "statescope-inspection"}, {"version", 2}, {"accuracy", accuracy_json()}, {"checkpoints", checkpoints}}.dump(
             1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

}  // namespace statescope
