#include "app/inspect/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/common/page.h"
#include "app/inspect/figures.h"
#include "engine/place_words.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr const char* kColumns =
    "  residual: norm of what enters the layer, mean over tokens; state: ‖S‖ of the partition where it is largest, mean over heads "
    "(by eighth: mean over partitions and heads); half-life and receptive field: tokens, of the shared state where there is one, "
    "the median channel's and the mean over channels and the last 128 tokens; ≥: for some of them it reaches back to the first token\n";

std::string layer_line(std::size_t index, const LayerReport& layer) {
  std::string line = fmt::format("  {:5} {:20} {:9.3g}", index, layer.mixer, layer.residual_norm);
  if (layer.heads.empty()) return line + (layer.memory.empty() ? "" : " ") + layer.memory;
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
      "layer {}: entropy of a token's routing {:.2f}, margin {:.2f}; balance loss {:.2f} (fair: 1); dead partitions (load at most {}): {}; "
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

namespace {

/// Of all its kinds the longest one within the length that the model was trained on; else the shortest.
const InspectedKind& usual_kind(const std::vector<InspectedKind>& kinds, std::int64_t trained) {
  const auto order = [trained](const InspectedKind& kind) {
    const std::int64_t tokens = kind.report.tokens;
    return trained > 0 && tokens > trained ? -tokens : tokens;
  };
  return *std::ranges::max_element(kinds, {}, order);
}

std::string trained_words(const Inspected& inspected) {
  return inspected.trained > 0 ? fmt::format(" (trained on {})", inspected.trained) : "";
}

/// Of a layer what tells most.
std::string short_line(std::size_t index, const LayerReport& layer) {
  std::string line = fmt::format("  {:5} {:20}", index, layer.mixer);
  if (layer.heads.empty()) return line + (layer.memory.empty() ? "" : " ") + layer.memory;
  line += fmt::format(" {:>9} {:>9} {:5.1f}/{:<4} {:6.2f}", bounded_cell(half_life_of(layer), "{:.3g}"),
                      bounded_cell(receptive_field_of(layer), "{:.0f}"), mean_rank(layer), layer.full_rank, mean_cosine(layer));
  return layer.routing ? line + "  " + numbers(layer.routing->balance.load, "{:.2f}") : line;
}

/// In place of a table where no layer has a state.
std::string without_state(const SequenceReport& report) {
  const auto any = [&](std::string_view memory) {
    return std::ranges::find(report.layers, memory, &LayerReport::memory) != report.layers.end();
  };
  std::string keeps = any("softmax attention") ? "softmax attention keeps the keys and values themselves" : "";
  if (any("short convolution")) keeps += std::string(keeps.empty() ? "" : ", ") + "a short convolution its last few inputs";
  return fmt::format("  no layer has a state{}{}: there is nothing to tell of half-lives, ranks and loads, only of predictions\n",
                     keeps.empty() ? "" : "; ", keeps);
}

bool any_state(const SequenceReport& report) {
  return std::ranges::any_of(report.layers, [](const LayerReport& layer) { return !layer.heads.empty(); });
}

std::string short_text(const Inspected& inspected) {
  const std::vector<InspectedKind> kinds = kinds_of(inspected);
  if (kinds.empty()) return "";
  const InspectedKind& kind = usual_kind(kinds, inspected.trained);
  const bool has_state = any_state(kind.report);
  std::string text = fmt::format("  {}, {} tokens{}\n", kind.name, kind.report.tokens, trained_words(inspected));
  text += has_state ? "  layer mixer                half-life receptive  rank       |cos|  loads (1: fair)\n" : without_state(kind.report);
  for (std::size_t l = 0; has_state && l < kind.report.layers.size(); ++l) text += short_line(l, kind.report.layers[l]) + "\n";
  const std::string ends = ends_text(InspectionOverview(inspected).ends);
  if (!ends.empty()) text += fmt::format("  perplexity at the end, by tokens: {}\n", ends);
  return text +
         (has_state ? "  half-life and receptive field: in tokens; rank: of a head's state, effective; |cos|: of its rows, mean\n" : "");
}

std::string whole_text(const Inspected& inspected) {
  std::string text;
  for (const InspectedKind& kind : kinds_of(inspected)) {
    const SequenceReport& report = kind.report;
    text += fmt::format("  {}, {} tokens{}\n", kind.name, report.tokens, trained_words(inspected));
    text +=
        "  layer mixer                residual     state entropy  rank       |cos| half-life receptive  load entropy, loads (1: fair)\n";
    for (std::size_t l = 0; l < report.layers.size(); ++l) text += layer_line(l, report.layers[l]) + "\n";
    for (const std::string& line : lines_of(report)) text += "  " + line + "\n";
  }
  return text + kColumns;
}

/// What tells most of a layer, as kFigures calls it.
constexpr std::array<std::string_view, 4> kShortFigures{"half-life", "effective rank", "mean |cos| of rows", "load entropy"};

/// Layer by layer, A beside B.
std::string short_comparison(const SequenceReport& a, const SequenceReport& b) {
  std::string text = "  layer", letters = "       ";
  for (const std::string_view name : kShortFigures) {
    text += fmt::format("{:>22}", name);
    letters += fmt::format("{:>12}{:>10}", "A", "B");
  }
  text += fmt::format("\n{}\n", letters);
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    text += fmt::format("  {:5}", l);
    for (const std::string_view name : kShortFigures) {
      const auto figure = std::ranges::find(kFigures, name, &decltype(kFigures)::value_type::first)->second;
      text += fmt::format("{:>12}{:>10}", bounded_cell(figure(a.layers[l]), "{:.3g}"), bounded_cell(figure(b.layers[l]), "{:.3g}"));
    }
    text += '\n';
  }
  return text;
}

/// Every figure in a line of its own.
std::string whole_comparison(const SequenceReport& a, const SequenceReport& b) {
  std::string text = fmt::format("{:42} {:>10} {:>10} {:>10}\n", "", "A", "B", "B - A");
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    for (const auto& [name, figure] : kFigures)
      text += comparison_line(fmt::format("  layer {} {}", l, name), figure(a.layers[l]), figure(b.layers[l]));
  }
  const std::size_t eighths = std::min(a.nll_by_eighth.size(), b.nll_by_eighth.size());
  for (std::size_t e = 0; e < eighths; ++e)
    text += comparison_line(fmt::format("  perplexity, eighth {}", e + 1), std::exp(a.nll_by_eighth[e]), std::exp(b.nll_by_eighth[e]));
  const std::size_t dropped = std::min(a.remembrance.size(), b.remembrance.size());
  for (std::size_t r = 0; r < dropped; ++r)
    text += comparison_line(fmt::format("  change without the first {}", a.remembrance[r].dropped), a.remembrance[r].change,
                            b.remembrance[r].change);
  return text;
}

}  // namespace

std::string inspection_text(const Inspected& inspected, bool whole) {
  return fmt::format("{}\n{}{}", inspected.checkpoint, judgement_text(inspected), whole ? whole_text(inspected) : short_text(inspected));
}

std::string comparison_text(const Inspected& a, const Inspected& b, bool whole) {
  const auto layers = [](const Inspected& one) { return one.sequences.empty() ? 0 : one.sequences[0].layers.size(); };
  const std::vector<InspectedKind> kinds_a = kinds_of(a), kinds_b = kinds_of(b);
  if (!std::ranges::equal(kinds_a, kinds_b, {}, &InspectedKind::name, &InspectedKind::name) || layers(a) != layers(b)) return "";
  std::string text = fmt::format("A: {}\n{}B: {}\n{}", a.checkpoint, judgement_text(a), b.checkpoint, judgement_text(b));
  for (std::size_t i = 0; i < kinds_a.size(); ++i) {
    const SequenceReport &of_a = kinds_a[i].report, &of_b = kinds_b[i].report;
    if (!whole && &kinds_a[i] != &usual_kind(kinds_a, a.trained)) continue;
    text += fmt::format("{}, {} and {} tokens\n", kinds_a[i].name, of_a.tokens, of_b.tokens);
    text += whole ? whole_comparison(of_a, of_b) : short_comparison(of_a, of_b);
  }
  if (!whole)
    for (const auto& [letter, one] : {std::pair("A", &a), std::pair("B", &b)}) {
      const std::string ends = ends_text(InspectionOverview(*one).ends);
      if (!ends.empty()) text += fmt::format("  {}: perplexity at the end, by tokens: {}\n", letter, ends);
    }
  return text;
}

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
