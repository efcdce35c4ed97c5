#include "app/jobs/branch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "app/common/prompts.h"
#include "engine/run/sampling.h"
#include "views/parts.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::size_t kShownTokens = 5;

std::string answer(const Run& run, const Tokenizer& tokenizer) {
  return tokenizer.decode(std::span(run.ids()).subspan(static_cast<std::size_t>(run.prompt_length())));
}

/// "119 'ivan'"
std::string token_text(const BranchReport& report, std::int64_t token) {
  return fmt::format("{} '{}'", token, visible_text(report.texts[static_cast<std::size_t>(token)]));
}

/// "'8' 0.98"
std::string prediction_text(const Prediction& best) { return fmt::format("'{}' {:.3f}", visible_text(best.text), best.probability); }

/// Of those that a and b have left, up to where they are one: a's, then b's.
std::pair<std::vector<Intervention>, std::vector<Intervention>> interventions_apart(const Branches& tree, std::int64_t a, std::int64_t b) {
  std::pair<std::vector<Intervention>, std::vector<Intervention>> all;
  while (a != b && a >= 0 && b >= 0) {
    std::int64_t& younger = a > b ? a : b;
    std::vector<Intervention>& of = a > b ? all.first : all.second;
    const std::vector<Intervention>& own = tree[younger].interventions;
    of.insert(of.begin(), own.begin(), own.end());
    younger = tree[younger].parent;
  }
  return all;
}

json as_json(const std::vector<Intervention>& interventions) {
  json list = json::array();
  for (const Intervention& intervention : interventions) list.push_back(to_text(intervention));
  return list;
}

void print_answer(const BranchReport& report) {
  const auto verdict = [&](const std::string& text) {
    return report.expected.empty() ? "" : answers(text, report.expected) ? ", right" : ", wrong";
  };
  if (report.answer_before.empty()) return;
  fmt::print("answer before: {}{}\n", printable_text(report.answer_before), verdict(report.answer_before));
  fmt::print("answer after:  {}{}\n", printable_text(report.answer_after), verdict(report.answer_after));
  if (!report.expected.empty()) fmt::print("expected:      {}\n", printable_text(report.expected));
}

void print_predictions(const BranchReport& report) {
  const RunDifference& difference = report.difference;
  if (difference.kl.empty()) return fmt::print("predictions: the same\n");
  if (difference.changed && report.changed_before && report.changed_after) {
    fmt::print("predictions: first change after token {}: {}, was {}\n", token_text(report, *difference.changed),
               prediction_text(*report.changed_after), prediction_text(*report.changed_before));
  } else {
    fmt::print("predictions: the most probable token stays the same everywhere\n");
  }
  const double sum = std::accumulate(difference.kl.begin(), difference.kl.end(), 0.0);
  fmt::print("KL(before ‖ after) of the next token: mean {:.3g} nat over tokens {} to {}; most",
             sum / static_cast<double>(difference.kl.size()), difference.from, difference.from + std::ssize(difference.kl) - 1);
  std::vector<std::size_t> order(difference.kl.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return difference.kl[a] > difference.kl[b]; });
  order.resize(std::min(order.size(), kShownTokens));
  for (std::size_t i = 0; i < order.size(); ++i)
    fmt::print("{} {:.3g} after {}", i == 0 ? "" : ",", difference.kl[order[i]],
               token_text(report, difference.from + static_cast<std::int64_t>(order[i])));
  if (difference.parted) fmt::print("; from token {} on they read different texts", *difference.parted);
  fmt::print("\n");
}

void print_states(const BranchReport& report) {
  for (const BranchReport::States& at : report.states) {
    fmt::print("states after token {}, ‖after − before‖ / ‖before‖:", token_text(report, at.token));
    for (std::size_t layer = 0; layer < at.layers.size(); ++layer) {
      const bool stateful = std::ranges::count(report.stateful, static_cast<std::int64_t>(layer)) > 0;
      fmt::print("{} layer {}: {}", layer == 0 ? "" : ",", layer,
                 stateful ? fmt::format("{:.3g}", at.layers[layer].relative()) : "no state");
    }
    fmt::print("\n");
  }
}

}  // namespace

BranchReport report_branches(const Branches& tree, std::int64_t before, std::int64_t after, const Tokenizer& tokenizer,
                             const std::string& expected) {
  Run &a = *tree[before].run, &b = *tree[after].run;
  BranchReport report{.before = before,
                      .after = after,
                      .only_before = {},
                      .only_after = {},
                      .answer_before = answer(a, tokenizer),
                      .answer_after = answer(b, tokenizer),
                      .expected = expected,
                      .difference = tree.compare(before, after),
                      .states = {},
                      .stateful = {},
                      .texts = {},
                      .changed_before = {},
                      .changed_after = {}};
  std::tie(report.only_before, report.only_after) = interventions_apart(tree, before, after);
  const std::int64_t last = std::min(a.tokens(), b.tokens()) - 1;
  std::vector<std::int64_t> tokens{last};
  for (const auto* only : {&report.only_before, &report.only_after})
    for (const Intervention& intervention : *only) tokens.push_back(std::min(intervention.at, last));
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const std::int64_t token : tokens) {
    report.states.push_back({token, {}});
    for (std::int64_t layer = 0; layer < a.model().layers(); ++layer)
      report.states.back().layers.push_back(compare_states(a, b, layer, token));
  }
  for (std::int64_t layer = 0; layer < a.model().layers(); ++layer) {
    if (!a.model().layout(layer).memory.empty()) report.stateful.push_back(layer);
  }
  for (const std::int32_t id : a.ids()) report.texts.push_back(tokenizer.text_of(id));
  if (const std::optional<std::int64_t> changed = report.difference.changed) {
    report.changed_before = most_probable(a.logits(*changed), 1, tokenizer)[0];
    report.changed_after = most_probable(b.logits(*changed), 1, tokenizer)[0];
  }
  return report;
}

json to_json(const BranchReport& report) {
  json states = json::array();
  for (const BranchReport::States& at : report.states) {
    json layers = json::array();
    for (const StateDifference& state : at.layers)
      layers.push_back({{"before", state.a}, {"after", state.b}, {"difference", state.difference}, {"relative", state.relative()}});
    states.push_back({{"token", at.token}, {"layers", layers}});
  }
  const RunDifference& difference = report.difference;
  json out{{"interventions", as_json(report.only_after)},
           {"answer", {{"before", report.answer_before}, {"after", report.answer_after}}},
           {"first_token", difference.from},
           {"first_changed_prediction", difference.changed ? json(*difference.changed) : json()},
           {"texts_part", difference.parted ? json(*difference.parted) : json()},
           {"kl", difference.kl},
           {"logit_difference", difference.logits},
           {"states", states}};
  if (!report.expected.empty()) out["answer"]["expected"] = report.expected;
  if (!report.only_before.empty()) out["interventions_before"] = as_json(report.only_before);
  return out;
}

void print(const BranchReport& report) {
  for (const Intervention& intervention : report.only_before) fmt::print("  before: {}\n", to_text(intervention));
  const bool both = !report.only_before.empty();
  for (const Intervention& intervention : report.only_after) fmt::print("  {}{}\n", both ? "after: " : "", to_text(intervention));
  print_answer(report);
  print_predictions(report);
  print_states(report);
}

}  // namespace statescope
