// The page of an inspection: what has collapsed, all checkpoints side by side, then each in full.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "app/assets.h"
#include "app/common/page.h"
#include "app/inspect/figures.h"
#include "app/inspect/page_figures.h"
#include "app/inspect/window_command.h"

namespace statescope {
namespace {

/// Where scripts run, a button copies the command beside it, and a mark of a figure puts its own place into it. Also well-formed XML.
constexpr const char* kCopying = R"(for (const button of document.querySelectorAll('.opening button')) {
  button.hidden = false;
  button.onclick = async () => {
    const command = button.parentElement.querySelector('code');
    getSelection().selectAllChildren(command);
    try { await navigator.clipboard.writeText(command.textContent); } catch { document.execCommand('copy'); }
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  };
}
for (const mark of document.querySelectorAll('.led [data-place]')) {
  mark.onclick = () => {
    const place = mark.closest('.led').querySelector('.place');
    if (place === null) return;
    const token = place.textContent.match(/--token [0-9]+/);
    place.textContent = mark.dataset.place + (token ? ' ' + token[0] : '');
  };
}
)";

/// A bar for every partition: full height is three times the fair load, the line across is the fair one.
std::string load_bars(const RoutingReport& routing) {
  constexpr double most = 3;
  std::string bars, words;
  for (std::size_t n = 0; n < routing.balance.load.size(); ++n) {
    const double load = routing.balance.load[n];
    bars += fmt::format("<i{} style=\"height:{:.0f}%\" title=\"partition {}: {:.3f}\"></i>",
                        load > kLoadThresholds.overloaded ? " class=\"over\"" : "", 100 * std::min(load, most) / most, n + 1, load);
    words += fmt::format("{}{:.2f}", n > 0 ? ", " : "", load);
  }
  return fmt::format("<span class=\"loads\" role=\"img\" aria-label=\"loads {}\">{}</span>", words, bars);
}

/// All of them where they are few, else the least and the largest.
std::string load_numbers(const std::vector<double>& load) {
  constexpr std::size_t few = 8;
  const auto [least, most] = std::ranges::minmax(load);
  if (load.size() > few) return fmt::format("{:.2f} … {:.2f}", least, most);
  std::string text;
  for (const double each : load) text += fmt::format("{}{:.2f}", text.empty() ? "" : " ", each);
  return text;
}

/// From 0 to the largest; nothing where a number is missing.
std::string curve(std::span<const double> values) {
  constexpr double step = 10, height = 16;
  const double most = std::ranges::max(values);
  if (!(most > 0) || !std::ranges::all_of(values, [](double x) { return std::isfinite(x); })) return "";
  std::string points;
  for (std::size_t i = 0; i < values.size(); ++i)
    points += fmt::format("{}{:.0f},{:.1f}", i > 0 ? " " : "", step * static_cast<double>(i), height * (1 - values[i] / most));
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><polyline points=\"{}\"/></svg>",
                     step * static_cast<double>(values.size() - 1), height, points);
}

std::string layer_row(std::size_t index, const LayerReport& layer) {
  std::string row =
      "<tr>" + html_row_head(std::to_string(index)) + html_left(escaped(layer.mixer)) + html_cell(short_number(layer.residual_norm));
  if (layer.heads.empty()) return row + "<td class=\"left\" colspan=\"8\">keeps no matrix state</td></tr>\n";
  std::string cosine = number_cell(mean_cosine(layer), "{:.2f}");
  if (layer.slots.size() > 1)
    cosine += fmt::format(" ({}, {})", number_cell(mean_within(layer), "{:.2f}"), number_cell(mean_between(layer), "{:.2f}"));
  for (const std::string& text :
       {short_number(largest_norm(layer)), number_cell(mean_entropy(layer), "{:.2f}"),
        fmt::format("{} of {}", number_cell(mean_rank(layer), "{:.1f}"), layer.full_rank), head_classes({&layer, 1}), cosine,
        short_number(layer.outlier), bounded_cell(half_life_of(layer)), bounded_cell(receptive_field_of(layer))})
    row += html_cell(text);
  return row + "</tr>\n";
}

std::string layers_table(const SequenceReport& report) {
  std::string heads = html_head("layer") + html_head("mixer", true), rows;
  for (const char* name :
       {"residual norm", "largest state norm", "spectral entropy", "effective rank", "ranks of heads",
        "mean |cos| of rows (within, between partitions)", "largest row over the median one", "half-life", "receptive field"})
    heads += html_head(name);
  for (std::size_t l = 0; l < report.layers.size(); ++l) rows += layer_row(l, report.layers[l]);
  return html_table("After the last token", heads, rows);
}

std::string routing_row(std::size_t index, const RoutingReport& routing) {
  std::string row = fmt::format("<tr data-place=\"--layer {}\">", index) + html_row_head(std::to_string(index)) +
                    html_left(load_bars(routing) + load_numbers(routing.balance.load));
  for (const std::string& text :
       {number_cell(routing.load_entropy, "{:.2f}"), number_cell(routing.token_entropy, "{:.2f}"), number_cell(routing.margin, "{:.2f}"),
        number_cell(routing.balance.loss, "{:.2f}"), partitions_text(routing.uneven.dead), partitions_text(routing.uneven.overloaded)})
    row += html_cell(text);
  return row + "</tr>\n";
}

/// Empty where nothing is routed.
std::string routing_table(const SequenceReport& report) {
  std::string heads = html_head("layer") + html_head("loads (1: fair)", true), rows;
  for (const std::string& name :
       {std::string("load entropy"), std::string("entropy of a token's routing"), std::string("margin"),
        std::string("balance loss (fair: 1)"), fmt::format("dead partitions (load at most {})", kLoadThresholds.dead),
        fmt::format("overloaded partitions (above {})", kLoadThresholds.overloaded)})
    heads += html_head(name);
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    if (report.layers[l].routing) rows += routing_row(l, *report.layers[l].routing);
  }
  return rows.empty() ? "" : html_table("Routing of all tokens", heads, rows);
}

/// `first`: how many eighths have no number before them.
std::string eighths_row(std::string_view name, std::span<const double> values, const char* format, std::size_t first = 0) {
  std::string row = "<tr>" + html_row_head(name) + html_left(first > 0 ? "" : curve(values));
  for (std::size_t i = 0; i < first; ++i) row += html_cell("–");
  for (const double value : values) row += html_cell(format ? number_cell(value, format) : short_number(value));
  return row + "</tr>\n";
}

/// Empty where the sequence is too short to say.
std::string eighths_table(const SequenceReport& report) {
  const auto eighths = report.nll_by_eighth.size();
  if (eighths == 0) return "";
  std::string heads = html_head("quantity") + html_head("course", true);
  for (std::size_t i = 1; i <= eighths; ++i)
    heads += html_head(fmt::format("to {}", static_cast<std::int64_t>(i) * report.tokens / static_cast<std::int64_t>(eighths)));
  std::vector<double> perplexity, change;
  for (const double nll : report.nll_by_eighth) perplexity.push_back(std::exp(nll));
  for (const Remembrance& left_out : report.remembrance) change.push_back(left_out.change);
  std::string rows = eighths_row("perplexity", perplexity, nullptr) + eighths_row("nat a token", report.nll_by_eighth, "{:.2f}");
  if (change.size() + 1 == eighths)
    rows += eighths_row(fmt::format("change of the last {} predictions without all before", kRememberedAt), change, "{:.3f}", 1);
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    const std::vector<double>& norms = report.layers[l].norm_by_eighth;
    if (norms.size() == eighths) rows += eighths_row(fmt::format("state norm, layer {}", l), norms, nullptr);
  }
  return html_table("By eighth of the sequence, up to token …", heads, rows);
}

/// A line with the command that opens the window there, and a button that copies it; empty where the prompt cannot be read again.
std::string opening(const Inspected& inspected, std::size_t sequence, const PlaceInRun& place) {
  const std::optional<WindowCommand> command = window_command_at(inspected, sequence, place);
  if (!command) return "";
  return fmt::format(
      "<p class=\"opening\">In the window: <code>{} <span class=\"place\">{}</span> {}</code> <button type=\"button\" hidden=\"\" "
      "aria-live=\"polite\">Copy</button></p>\n",
      escaped(command->before), escaped(command->place), escaped(command->after));
}

/// A figure, or table, of a kind of sequence, and the way from it to the window, on the first of them after its last token.
std::string led(const std::string& figure, const Inspected& inspected, const InspectedKind& kind, PlaceInRun place) {
  if (figure.empty() || kind.first >= inspected.sequences.size()) return figure;
  place.token = inspected.sequences[kind.first].tokens - 1;
  return fmt::format("<div class=\"led\">{}{}</div>\n", figure, opening(inspected, kind.first, place));
}

/// The layer with the least of what `figure` says; unset where none has it.
std::optional<std::int64_t> least_layer(const SequenceReport& report, const std::function<double(const LayerReport&)>& figure) {
  std::optional<std::int64_t> least;
  double value = std::numeric_limits<double>::infinity();
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    if (const double x = figure(report.layers[l]); x < value) value = x, least = static_cast<std::int64_t>(l);
  }
  return least;
}

std::optional<std::int64_t> layer_that_grew(const SequenceReport& report) {
  return least_layer(report,
                     [](const LayerReport& l) { return l.norm_by_eighth.empty() ? NAN : -l.norm_by_eighth[7] / l.norm_by_eighth[3]; });
}

std::optional<std::int64_t> layer_that_forgets(const SequenceReport& report) {
  return least_layer(report, [](const LayerReport& l) { return l.longest_half_life.value_or(NAN); });
}

std::optional<std::int64_t> least_even_layer(const SequenceReport& report) {
  return least_layer(report, [](const LayerReport& l) { return l.routing ? l.routing->load_entropy : NAN; });
}

PlaceInRun lowest_rank(const SequenceReport& report) {
  const auto rank = [](const StateSimilarity& head) { return head.stacked.rank; };
  const auto lowest = [&](const LayerReport& l) { return l.heads.empty() ? NAN : rank(*std::ranges::min_element(l.heads, {}, rank)); };
  PlaceInRun place{.view = "spectrum", .layer = least_layer(report, lowest)};
  if (!place.layer) return place;
  const std::vector<StateSimilarity>& heads = report.layers[static_cast<std::size_t>(*place.layer)].heads;
  place.head = std::ranges::min_element(heads, {}, rank) - heads.begin();
  return place;
}

std::string sequence_section(const Inspected& inspected, const InspectedKind& kind) {
  return fmt::format("<h3>{}: {} tokens</h3>\n{}{}{}", escaped(kind.name), kind.report.tokens, layers_table(kind.report),
                     led(routing_table(kind.report), inspected, kind, {.view = "routing", .layer = least_even_layer(kind.report)}),
                     eighths_table(kind.report));
}

std::string verdict_item(const Inspected& inspected, const Diagnosis& found) {
  const IllnessRow& row = row_of(found.illness);
  const SeenAt seen = seen_at(inspected, found);
  const std::string place = place_text(found), where = place.empty() ? "" : ", " + place;
  return fmt::format(
      "<li class=\"bad\"><strong>{}: {}{}</strong>. {}<small>How it is recognised: {}. Source: {}. Holds for {}.</small>{}</li>\n",
      found.ill ? "Ill" : "Watch", escaped(row.name), where, escaped(found.sentence), escaped(row.measure), escaped(row.source),
      escaped(inspected.read_on), opening(inspected, seen.sequence, seen.place));
}

std::string judgement_list(const Inspected& inspected) {
  const Judgement& judgement = inspected.judgement;
  if (!judgement.cannot_say.empty())
    return fmt::format("<ul class=\"verdicts\"><li><strong>Cannot say</strong>: {}.</li></ul>\n", escaped(judgement.cannot_say));
  if (judgement.diagnoses.empty())
    return fmt::format(
        "<ul class=\"verdicts\"><li class=\"good\"><strong>Healthy</strong>: none of {} illnesses was found.<small>Holds for "
        "{}.</small></li></ul>\n",
        illnesses().size(), escaped(inspected.read_on));
  std::string list = "<ul class=\"verdicts\">\n";
  for (const Diagnosis& found : judgement.diagnoses) list += verdict_item(inspected, found);
  return list + "</ul>\n";
}

std::string checkpoint_section(std::size_t index, const Inspected& inspected) {
  std::string section = fmt::format("<section><h2 id=\"c{}\">{}</h2>\n<p class=\"path\">{}", index,
                                    escaped(InspectionOverview(inspected).name), escaped(inspected.checkpoint));
  if (inspected.trained > 0) section += fmt::format("; trained on sequences of up to {} tokens", inspected.trained);
  section += "</p>\n";
  section += judgement_list(inspected);
  const std::vector<InspectedKind> kinds = kinds_of(inspected);
  if (!kinds.empty()) {
    const SequenceReport& last = kinds.back().report;
    const auto lead = [&](const std::string& figure, const PlaceInRun& place) { return led(figure, inspected, kinds.back(), place); };
    section += lead(drift_figure(last, inspected.trained), {.view = "spectrum/Norm along the run", .layer = layer_that_grew(last)}) +
               "<div class=\"panels\">" + lead(rank_figure(last), lowest_rank(last)) +
               lead(half_life_figure(last), {.view = "decay/Half-life", .layer = layer_that_forgets(last)}) + "</div>\n";
  }
  for (const InspectedKind& kind : kinds) section += sequence_section(inspected, kind);
  return section + "</section>\n";
}

std::string verdict_cell(const Inspected& inspected) {
  const char* kind = inspected.is_ill() ? "bad" : inspected.judgement.cannot_say.empty() ? "good" : "";
  return fmt::format("<td class=\"left {}\">{}</td>", kind, escaped(verdict_in_short(inspected)));
}

/// A row a checkpoint: its verdicts, what its worst layer has, and the last eighth of every kind of sequence.
std::string overview_table(const std::vector<Inspected>& inspected, const std::vector<InspectionOverview>& all) {
  std::set<std::int64_t> lengths;
  for (const InspectionOverview& one : all)
    for (const auto& end : one.ends) lengths.insert(end.tokens);
  std::string heads, rows;
  for (const auto& [name, words] :
       std::initializer_list<std::pair<const char*, bool>>{{"checkpoint", true},
                                                           {"steps", false},
                                                           {"verdict", true},
                                                           {"load entropy", false},
                                                           {"relative rank", false},
                                                           {"shortest half-life of a layer", false},
                                                           {"narrowest receptive field", false},
                                                           {"dead partitions", true},
                                                           {"ranks of heads", true},
                                                           {"largest mean |cos| of rows", false},
                                                           {"largest growth of a state's norm in the second half", false}})
    heads += html_head(name, words);
  for (const std::int64_t tokens : lengths) heads += html_head(fmt::format("perplexity at the end of {} tokens", tokens));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const InspectionOverview& one = all[i];
    rows += "<tr>" + html_row_head(fmt::format("<a href=\"#c{}\">{}</a>", i, escaped(one.name))) +
            html_cell(one.steps > 0 ? std::to_string(one.steps) : "–") + verdict_cell(inspected[i]) +
            html_cell(number_cell(one.spread, "{:.2f}")) + html_cell(number_cell(one.rank, "{:.2f}")) +
            html_cell(bounded_cell(one.half_life)) + html_cell(bounded_cell(one.width)) +
            html_left(escaped(one.dead.empty() ? "none" : one.dead)) + html_left(one.heads) +
            html_cell(number_cell(one.likeness, "{:.2f}")) + html_cell(number_cell(one.growth, "{:.2f}"));
    for (const std::int64_t tokens : lengths) {
      const auto end = std::ranges::find(one.ends, tokens, &InspectionOverview::End::tokens);
      rows += html_cell(short_number(end == one.ends.end() ? NAN : end->perplexity));
    }
    rows += "</tr>\n";
  }
  return html_table("All checkpoints; of several layers the worst", heads, rows);
}

/// "1 of 7 is ill: niah-collapsed (routing collapse, layer 1)."
std::string answer(const std::vector<Inspected>& all) {
  std::string ill, silent;
  std::size_t ills = 0, silents = 0;
  for (const Inspected& one : all) {
    const std::string name = escaped(InspectionOverview(one).name);
    if (one.is_ill()) {
      ++ills;
      ill += fmt::format("{}{} ({})", ill.empty() ? "" : ", ", name, escaped(illnesses_text(one)));
    } else if (!one.judgement.cannot_say.empty()) {
      ++silents;
      silent += fmt::format("{}{} ({})", silent.empty() ? "" : ", ", name, escaped(one.judgement.cannot_say));
    }
  }
  std::string text = ills == 0 ? silents == all.size() ? ""
                                 : all.size() == 1     ? "It is healthy."
                                                       : "None is ill."
                               : fmt::format("{} of {} {} ill: {}.", ills, all.size(), ills == 1 ? "is" : "are", ill);
  if (silents > 0) text += fmt::format("{}Nothing can be said of {}.", text.empty() ? "" : " ", silent);
  return text;
}

/// Of what stands in the tables.
constexpr std::array<std::array<const char*, 2>, 12> kMeanings{{
    {"load entropy",
     "−Σ f log f / log N of the partitions' shares f of the tokens: 1 if all N are chosen equally often, 0 if one alone is."},
    {"relative rank", "effective rank over the largest possible, mean over the heads."},
    {"effective rank", "exp(−Σ p log p), p = σ / Σσ of the singular values σ of a head's partitions stacked (Roy and Vetterli 2007)."},
    {"ranks of heads", "how many heads are low (relative rank below 0.1), middle, high (above 0.5)."},
    {"spectral entropy", "−Σ p log p / log n with p = σ² / Σσ²: 1 if all directions are equally strong."},
    {"mean |cos| of rows", "how alike the rows of a state are: 1 if all point the same way."},
    {"residual norm", "mean over the tokens of what enters the layer; state norm: Frobenius, mean over the heads."},
    {"half-life",
     "tokens after which decay has taken half, the median channel's; receptive field: tokens over which 0.001 or more is left, mean over "
     "channels. Both of the shared state where there is one. ≥: for some channels and tokens it reaches back to the first token, so that "
     "it "
     "may be larger; ∞: nothing decays."},
    {"entropy of a token's routing",
     "1 if the router leaves the choice open, 0 if it is sure; margin: from the last chosen partition to the first not chosen."},
    {"balance loss",
     "(N / W) Σ f p, f the share of the tokens for which a partition is among the W chosen, p its mean probability: 1 if loads are fair, N "
     "/ "
     "W at worst."},
    {"perplexity", "exp of the mean −ln p of the next token."},
    {"change of the last predictions without all before",
     "total variation ½ Σ |p − p′|, p′ without the tokens before that eighth: 0 if nothing of them is remembered or needed (effective "
     "remembrance, arXiv 2507.02782)."},
}};

/// One half of the trial, of an illness: "8 of 8 found, 0 false alarms".
std::string trial_cells(const nlohmann::json& half, std::string_view id) {
  const auto found = half.at("illnesses").find(id);
  if (found == half.at("illnesses").end()) return html_cell("–") + html_cell("–");
  return html_cell(fmt::format("{} of {}", found->at("hits").get<int>(), found->at("ill").get<int>())) +
         html_cell(std::to_string(found->at("false_alarms").get<int>()));
}

/// How often the verdicts were right (tests/clinic/trial.py); empty where the file is not there or not understood.
std::string trial_table() {
  std::ifstream file(assets_folder() / "clinic/trial.json");
  const nlohmann::json trial = nlohmann::json::parse(file, nullptr, false);
  if (!trial.is_object()) return "";
  try {
    const nlohmann::json &chosen = trial.at("chosen"), &validated = trial.at("validated");
    std::string heads = html_head("illness") + html_head("what it is", true) + html_head("how it is recognised", true), rows;
    for (const char* name :
         {"found, models that thresholds were chosen on", "false alarms there", "found, other models", "false alarms there"})
      heads += html_head(name);
    for (const IllnessRow& row : illnesses())
      rows += "<tr>" + html_row_head(row.name) + html_left(escaped(row.meaning)) + html_left(escaped(row.measure)) +
              trial_cells(chosen, row.id) + trial_cells(validated, row.id) + "</tr>\n";
    const auto count = [](const nlohmann::json& half) { return half.at("checkpoints").get<int>(); };
    return html_table(fmt::format("How far to trust it: {} and {} checkpoints, made ill or harmlessly changed on purpose, and as they were",
                                  count(chosen), count(validated)),
                      heads, rows);
  } catch (const nlohmann::json::exception&) {
    return "";
  }
}

std::string meanings() {
  std::string list = "<section><h2>What the words mean</h2>\n<dl>\n";
  for (const auto& [word, meaning] : kMeanings) list += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(word), escaped(meaning));
  return list + "</dl>\n";
}

}  // namespace

std::string inspection_html(const std::vector<Inspected>& all) {
  const std::vector<InspectionOverview> overviews(all.begin(), all.end());
  std::string page = page_begin("inspection", "Does the memory do its work?");
  page += fmt::format("<p><strong>{}</strong></p>\n{}{}", answer(all), trend_figure(overviews), overview_table(all, overviews));
  page +=
      "<p>The commands beside verdicts and figures open the window at what they speak of, on the machine that wrote this page. A point, "
      "line "
      "or row of a figure that is clicked puts its own layer and head into the command.</p>\n";
  for (std::size_t i = 0; i < all.size(); ++i) page += checkpoint_section(i, all[i]);
  return page + trial_table() + meanings() +
         fmt::format("<p>How exact: {}.</p></section>\n<script>\n{}</script>\n{}", accuracy_text(), kCopying, kPageEnd);
}

}  // namespace statescope
