#include "app/needle/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "app/common/page.h"
#include "views/parts.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::size_t kCauses = 8;                                                                // shown of the verdict
constexpr std::string_view kAttention = "softmax attention", kConvolution = "short convolution";  // LayerInfo::memory
constexpr std::array kLosses{Loss::decay, Loss::erase, Loss::overwrite, Loss::misroute};

const LayerInfo& layer_of(const NeedleReport& report, std::int64_t layer) {
  return report.run->model.layers[static_cast<std::size_t>(layer)];
}

const std::string& text_of(const NeedleReport& report, std::int64_t token) {
  return report.run->tokens[static_cast<std::size_t>(token)].text;
}

/// Of so many digits; what rounds to 0 has no sign.
std::string number_text(double x, int digits) {
  const std::string text = fmt::format("{:.{}f}", x, digits);
  return text.find_first_of("123456789") == text.npos && x < 0 ? text.substr(1) : text;
}

/// "119 '8'"
std::string token_text(const NeedleReport& report, std::int64_t token) {
  return fmt::format("{} '{}'", token, visible_text(text_of(report, token)));
}

const std::string& slot_text(const NeedleReport& report, std::int64_t layer, std::int64_t slot) {
  return layer_of(report, layer).slot_names[static_cast<std::size_t>(slot)];
}

/// Of a memory with several; the parts of a complex state are one.
bool has_slots(const LayerInfo& layer) { return layer.slots() > 1 && layer.memory != "state space"; }

/// "partition 2, head 0", "level 5, head 0"; without the slot where there is but one.
std::string place_text(const NeedleReport& report, std::int64_t layer, std::int64_t slot, std::int64_t head) {
  if (!has_slots(layer_of(report, layer))) return fmt::format("head {}", head);
  const std::string& name = slot_text(report, layer, slot);
  const bool is_number = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  return fmt::format("{}{}, head {}", is_number ? "partition " : "", name, head);
}

std::string head_line(const NeedleReport& report, std::int64_t layer, const NeedleFate& fate, std::size_t events) {
  std::string line =
      fmt::format("    {}: wrote {:.3g}; {:.3f} of it is left, ", place_text(report, layer, fate.slot, fate.head), fate.written, fate.kept);
  if (fate.read) {
    line +=
        fmt::format("{} still clear; its share of what is read here: {}", number_text(fate.readable(), 3), number_text(fate.read_share, 3));
  } else {
    line += "the question does not read here";
  }
  for (std::size_t i = 0; i < std::min(fate.events.size(), events); ++i) {
    const LossEvent& event = fate.events[i];
    line += fmt::format("{} {} ({} {:.3f})", i == 0 ? "; most lost at" : ",", token_text(report, event.token), name_of(event.cause),
                        event.lost);
  }
  return line + "\n";
}

std::string read_text(const NeedleReport& report) {
  const NeedleVerdict& verdict = report.verdict;
  if (!verdict.read) return "the question reads no memory that the needle wrote to";
  return fmt::format("the needle's largest share of what the question reads of a memory: {}, layer {}, {}",
                     number_text(verdict.read->share, 2), verdict.read->layer,
                     place_text(report, verdict.read->layer, verdict.read->slot, verdict.read->head));
}

std::string loss_text(const NeedleReport& report, const NeedleLoss& loss) {
  return fmt::format("{} took {:.3f} in layer {}, {}, most at {}", name_of(loss.cause), loss.lost, loss.layer,
                     place_text(report, loss.layer, loss.slot, loss.head), token_text(report, loss.token));
}

/// "tokens 5 to 8"
std::string tokens_text(std::int64_t begin, std::int64_t end) {
  return end - begin == 1 ? fmt::format("token {}", begin) : fmt::format("tokens {} to {}", begin, end - 1);
}

/// The tokens that ask, where the prompt marks them.
std::optional<TokenRange> asking(const NeedleReport& report) {
  const std::vector<TokenSpan>& spans = report.run->spans;
  const auto found = std::ranges::find_if(
      spans, [&](const TokenSpan& span) { return span.kind == SpanKind::question && span.begin >= report.needle.end; });
  return found == spans.end() ? std::nullopt : std::optional(TokenRange{found->begin, found->end});
}

/// "asked by tokens 15 to 17, after token 23"
std::string asked_text(const NeedleReport& report) {
  const std::optional<TokenRange> by = asking(report);
  return fmt::format("asked {}after token {}", by ? "by " + tokens_text(by->begin, by->end) + ", " : "", report.question);
}

bool any_memory(const NeedleReport& report) { return std::ranges::any_of(report.run->model.layers, &LayerInfo::has_state); }

bool any_of_kind(const NeedleReport& report, std::string_view memory) {
  return std::ranges::any_of(report.run->model.layers, [&](const LayerInfo& layer) { return layer.memory == memory; });
}

/// What a model without a state has in its place, and where a needle is seen there.
std::string without_memory(const NeedleReport& report) {
  const bool attends = any_of_kind(report, kAttention);
  std::string text = "no layer has a memory in which a needle fades: ";
  if (any_of_kind(report, kConvolution)) text += "a short convolution holds its last few inputs alone";
  if (any_of_kind(report, kConvolution) && attends) text += ", ";
  if (attends) text += "softmax attention keeps keys and values as they are; what attends to the needle: statescope figure attention";
  return text;
}

std::string verdict_text(const NeedleReport& report) {
  if (!any_memory(report)) return without_memory(report);
  if (report.verdict.losses.empty()) return "nothing of the needle was lost in a matrix memory";
  return "all layers: of what the needle wrote " + report.verdict.summary.text();
}

/// What is said of a layer in place of a needle's parts.
std::string_view no_fate(const LayerInfo& layer) {
  if (layer.has_state()) return "the needle wrote nothing here";
  if (layer.memory == kAttention) return "softmax attention, which keeps keys and values as they are";
  return layer.memory == kConvolution ? "a short convolution, which holds its last few inputs alone" : "no memory";
}

std::string accuracy_line() {
  return fmt::format(
      "left: what decay and erasure have not taken; clear: what nothing has taken; parts of 1, {}; layers count the same, heads by the "
      "squares of what was written; share of what is read: along it, so that it is above 1 where other tokens' point the other way, below "
      "0 "
      "where the needle's does",
      NeedleVerdict::accuracy.text());
}

// ---- JSON -------------------------------------------------------------------------------------------------------------------------------

template <class Parts>
void add_parts(json& to, const Parts& parts, double clear) {
  to.update({{"clear", clear},
             {"decay", parts.decayed},
             {"erasure", parts.erased},
             {"overwriting", parts.overwritten},
             {"misrouting", parts.misrouted}});
}

json place_json(const NeedleReport& report, std::int64_t layer, std::int64_t slot, std::int64_t head) {
  const LayerInfo& info = layer_of(report, layer);
  const bool is_one = info.slots() > 1 && !has_slots(info);
  return {{"layer", layer}, {"slot", is_one ? "state" : slot_text(report, layer, slot)}, {"head", head}};
}

json event_json(const NeedleReport& report, Loss cause, double lost, std::int64_t token) {
  return {{"cause", name_of(cause)}, {"lost", lost}, {"token", token}, {"text", text_of(report, token)}};
}

json survival_json(const NeedleReport& report, const NeedleFate& fate, const Survival& survival) {
  const auto place_of = [&](std::int64_t token) { return std::ranges::upper_bound(survival.token, token) - survival.token.begin(); };
  json tokens = json::array(), kept = json::array();
  for (auto j = place_of(report.needle.end - 1) - 1; j < place_of(report.question); ++j) {
    tokens.push_back(survival.token[static_cast<std::size_t>(j)]);
    kept.push_back(survival.kept[static_cast<std::size_t>(j)] / fate.written);
  }
  return {{"tokens", tokens}, {"kept", kept}};
}

json head_json(const NeedleReport& report, std::int64_t layer, const NeedleFate& fate, const Survival& survival) {
  json head = place_json(report, layer, fate.slot, fate.head);
  add_parts(head, fate, fate.readable());
  json events = json::array();
  for (const LossEvent& event : fate.events) events.push_back(event_json(report, event.cause, event.lost, event.token));
  head.update({{"written", fate.written}, {"kept", fate.kept}, {"reads", fate.read}, {"read_share", fate.read_share}, {"events", events}});
  head["survival"] = survival_json(report, fate, survival);
  return head;
}

json asked_by_json(const NeedleReport& report) {
  const std::optional<TokenRange> by = asking(report);
  return by ? json{{"begin", by->begin}, {"end", by->end}} : json();
}

json verdict_json(const NeedleReport& report) {
  const NeedleVerdict& verdict = report.verdict;
  json all{{"read", nullptr}, {"losses", json::array()}};
  add_parts(all, verdict.summary, verdict.summary.readable);
  if (std::ranges::all_of(report.fates, &std::vector<NeedleFate>::empty)) {
    for (const char* part : {"clear", "decay", "erasure", "overwriting", "misrouting"}) all[part] = nullptr;
  }
  if (verdict.read) {
    all["read"] = place_json(report, verdict.read->layer, verdict.read->slot, verdict.read->head);
    all["read"]["share"] = verdict.read->share;
  }
  for (const NeedleLoss& loss : verdict.losses) {
    all["losses"].push_back(event_json(report, loss.cause, loss.lost, loss.token));
    all["losses"].back().update(place_json(report, loss.layer, loss.slot, loss.head));
  }
  return all;
}

// ---- the page ---------------------------------------------------------------------------------------------------------------------------

/// Parts of 1 as a bar; the numbers are in the titles.
template <class Parts>
std::string bar(const Parts& parts, double clear) {
  std::string pieces, words;
  const auto piece = [&](std::string_view name, double part) {
    words += fmt::format("{}{} {:.3f}", words.empty() ? "" : ", ", name, part);
    pieces +=
        fmt::format("<i class=\"{0}\" style=\"width:{1:.1f}%\" title=\"{0}: {2:.3f}\"></i>", name, 100 * std::clamp(part, 0.0, 1.0), part);
  };
  piece("clear", clear);
  piece("decay", parts.decayed);
  piece("erasure", parts.erased);
  piece("overwriting", parts.overwritten);
  piece("misrouting", parts.misrouted);
  return fmt::format("<span class=\"parts\" role=\"img\" aria-label=\"{}\">{}</span>", words, pieces);
}

std::string key() {
  std::string key = "<p class=\"key\"><i class=\"clear\"></i>still clear";
  for (const Loss loss : kLosses) key += fmt::format("<i class=\"{0}\"></i>{0}", name_of(loss));
  return key + "</p>\n";
}

std::string head_row(const NeedleReport& report, std::int64_t layer, const NeedleFate& fate) {
  std::string events;
  for (const LossEvent& event : fate.events)
    events += fmt::format("{}{} ({} {:.3f})", events.empty() ? "" : ", ", escaped(token_text(report, event.token)), name_of(event.cause),
                          event.lost);
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td>{:.3g}</td><td>{:.3f}</td><td>{:.3f}</td><td>{}</td><td class=\"left\">{}</td><td "
      "class=\"left words\">{}</td></tr>\n",
      escaped(place_text(report, layer, fate.slot, fate.head)), fate.written, fate.kept, fate.readable(),
      fate.read ? number_text(fate.read_share, 3) : "not read", bar(fate, fate.readable()), events);
}

std::string layer_section(const NeedleReport& report, std::int64_t layer) {
  const std::vector<NeedleFate>& fates = report.fates[static_cast<std::size_t>(layer)];
  std::string section = fmt::format("<h2>Layer {}: {}</h2>\n", layer, escaped(layer_of(report, layer).mixer));
  if (fates.empty()) return section + fmt::format("<p>{}.</p>\n", capitalized(std::string(no_fate(layer_of(report, layer)))));
  std::string heads, rows;
  for (const char* name : {"where", "written", "left", "still clear", "share of what is read"}) heads += html_head(name);
  for (const char* name : {"what became of it", "most lost at"}) heads += html_head(name, true);
  for (const NeedleFate& fate : fates) rows += head_row(report, layer, fate);
  return section + html_table("Heads that it was written to", heads, rows);
}

}  // namespace

std::string needle_text(const NeedleReport& report, std::size_t heads, std::size_t events) {
  std::string text = fmt::format("{}: {}, \"{}\"; {}\n  {}\n", report.checkpoint, tokens_text(report.needle.begin, report.needle.end),
                                 printable_text(report.text), asked_text(report), verdict_text(report));
  const NeedleVerdict& verdict = report.verdict;
  if (!verdict.losses.empty()) text += fmt::format("  {}\n", read_text(report));
  for (std::size_t i = 0; i < std::min(verdict.losses.size(), kCauses); ++i)
    text += fmt::format("    {}. {}\n", i + 1, loss_text(report, verdict.losses[i]));
  for (std::int64_t layer = 0; layer < std::ssize(report.fates); ++layer) {
    const std::vector<NeedleFate>& fates = report.fates[static_cast<std::size_t>(layer)];
    text +=
        fmt::format("  layer {} {}: {}\n", layer, layer_of(report, layer).mixer,
                    fates.empty() ? std::string(no_fate(layer_of(report, layer))) : "of what the needle wrote " + summary(fates).text());
    for (std::size_t i = 0; i < std::min(fates.size(), heads); ++i) text += head_line(report, layer, fates[i], events);
  }
  return text + (verdict.losses.empty() ? "" : fmt::format("  {}\n  {}\n", accuracy_line(), NeedleVerdict::kCaution));
}

std::string needle_json(const NeedleReport& report) {
  json layers = json::array();
  for (std::int64_t layer = 0; layer < std::ssize(report.fates); ++layer) {
    const std::vector<NeedleFate>& fates = report.fates[static_cast<std::size_t>(layer)];
    json one{{"layer", layer}, {"mixer", layer_of(report, layer).mixer}, {"heads", json::array()}};
    const NeedleSummary parts = summary(fates);
    if (!fates.empty()) add_parts(one, parts, parts.readable);
    for (std::size_t i = 0; i < fates.size(); ++i)
      one["heads"].push_back(head_json(report, layer, fates[i], report.survivals[static_cast<std::size_t>(layer)][i]));
    layers.push_back(std::move(one));
  }
  const json all{{"format", "statescope-needle"},
                 {"version", 1},
                 {"accuracy", NeedleVerdict::accuracy.text()},
                 {"checkpoint", report.checkpoint},
                 {"notes", report.notes},
                 {"needle", {{"begin", report.needle.begin}, {"end", report.needle.end}, {"text", report.text}}},
                 {"question", report.question},
                 {"asked_by", asked_by_json(report)},
                 {"verdict", verdict_json(report)},
                 {"layers", layers}};
  return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string needle_html(const NeedleReport& report) {
  std::string page = page_begin("needle", "What became of the needle?");
  page += fmt::format("<p>{}: {}, <b>{}</b>; {}.</p>\n", escaped(report.checkpoint), tokens_text(report.needle.begin, report.needle.end),
                      escaped(report.text), asked_text(report));
  const NeedleVerdict& verdict = report.verdict;
  if (verdict.losses.empty()) {
    page += fmt::format("<p>{}.</p>\n", capitalized(verdict_text(report)));
    for (std::int64_t layer = 0; layer < std::ssize(report.fates); ++layer) page += layer_section(report, layer);
    return page + std::string(kPageEnd);
  }
  page += fmt::format("<p>Of what it wrote {}; {}.</p>\n{}", verdict.summary.text(), read_text(report), key());
  std::string rows;
  for (std::size_t layer = 0; layer < report.fates.size(); ++layer) {
    if (report.fates[layer].empty()) continue;
    const NeedleSummary parts = summary(report.fates[layer]);
    rows += fmt::format("<tr>{}{}<td>{:.3f}</td></tr>\n", html_row_head(std::to_string(layer)), html_left(bar(parts, parts.readable)),
                        parts.readable);
  }
  page += html_table("All heads of a layer together", html_head("layer") + html_head("what became of it", true) + html_head("still clear"),
                     rows);
  page += "<ol>\n";
  for (std::size_t i = 0; i < std::min(verdict.losses.size(), kCauses); ++i)
    page += fmt::format("<li>{}</li>\n", escaped(loss_text(report, verdict.losses[i])));
  page += fmt::format("</ol>\n<p>How exact: {}. It is {}.</p>\n", accuracy_line(), NeedleVerdict::kCaution);
  for (std::int64_t layer = 0; layer < std::ssize(report.fates); ++layer) page += layer_section(report, layer);
  return page + std::string(kPageEnd);
}

}  // namespace statescope
