#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/cli_commands.h"
#include "engine/error.h"
#include "engine/run/branches.h"
#include "engine/run/sampling.h"
#include "engine/text/tokenizer.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::int64_t kDefaultLength = 32;
constexpr std::size_t kShownTokens = 5;

/// Everything that the interventions changed.
struct Outcome {
  std::vector<Intervention> interventions;
  std::string before, after, expected;  // answers
  RunDifference difference;
  struct Layer {
    std::int64_t token;
    std::vector<StateDifference> layers;
  };
  std::vector<Layer> states;  // after the first token that is another, and after the last one
};

std::vector<std::int32_t> ids_of(const PromptInput& prompt, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids = prompt.ids.empty() ? tokenizer.encode(prompt.text).ids : prompt.ids;
  if (ids.empty()) throw Error("the prompt is empty");
  return ids;
}

/// Reads a prompt and generates, greedily.
std::shared_ptr<Run> read_run(const std::shared_ptr<Model>& model, const std::vector<std::int32_t>& ids, std::int64_t generate) {
  auto run = std::make_shared<Run>(model);
  const std::int64_t length = std::ssize(ids);
  ProgressBar bar("reading");
  run->read(ids, length, [&](std::int64_t tokens) {
    bar.show(static_cast<double>(tokens) / static_cast<double>(length));
    return true;
  });
  for (std::int64_t i = 0; i < generate; ++i) {
    const std::int32_t id = most_probable_id(run->logits(run->tokens() - 1));
    run->read({&id, 1}, length);
  }
  return run;
}

std::string answer(const Run& run, const Tokenizer& tokenizer) {
  return tokenizer.decode(std::span(run.ids()).subspan(static_cast<std::size_t>(run.prompt_length())));
}

/// "119 'ivan'"
std::string token_text(const Run& run, std::int64_t token, const Tokenizer& tokenizer) {
  return fmt::format("{} '{}'", token, tokenizer.text_of(run.ids()[static_cast<std::size_t>(token)]));
}

/// "'8' 0.98"
std::string prediction_text(Run& run, std::int64_t token, const Tokenizer& tokenizer) {
  const Prediction best = most_probable(run.logits(token), 1, tokenizer)[0];
  return fmt::format("'{}' {:.3f}", best.text, best.probability);
}

Outcome outcome_of(Branches& tree, std::int64_t branch, const Tokenizer& tokenizer, const PromptInput& prompt) {
  Run &before = *tree[0].run, &after = *tree[branch].run;
  Outcome outcome{.interventions = tree[branch].interventions,
                  .before = answer(before, tokenizer),
                  .after = answer(after, tokenizer),
                  .expected = prompt.expected,
                  .difference = tree.compare(0, branch),
                  .states = {}};
  const std::int64_t last = before.tokens() - 1;
  std::vector<std::int64_t> tokens{last};
  for (const Intervention& intervention : outcome.interventions) tokens.push_back(intervention.at);
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const std::int64_t token : tokens) {
    outcome.states.push_back({token, {}});
    for (std::int64_t layer = 0; layer < before.model().layers(); ++layer)
      outcome.states.back().layers.push_back(compare_states(before, after, layer, token));
  }
  return outcome;
}

void print_json(const Outcome& outcome, const Model& model) {
  json interventions = json::array(), states = json::array();
  for (const Intervention& intervention : outcome.interventions) interventions.push_back(to_text(intervention));
  for (const Outcome::Layer& at : outcome.states) {
    json layers = json::array();
    for (const StateDifference& state : at.layers)
      layers.push_back({{"before", state.a}, {"after", state.b}, {"difference", state.difference}, {"relative", state.relative()}});
    states.push_back({{"token", at.token}, {"layers", layers}});
  }
  const RunDifference& difference = outcome.difference;
  json out{{"checkpoint", model.checkpoint().path.string()},
           {"family", model.plan().family},
           {"device", model.backend().description()},
           {"interventions", interventions},
           {"answer", {{"before", outcome.before}, {"after", outcome.after}}},
           {"first_token", difference.from},
           {"first_changed_prediction", difference.changed ? json(*difference.changed) : json()},
           {"kl", difference.kl},
           {"logit_difference", difference.logits},
           {"states", states}};
  if (!outcome.expected.empty()) out["answer"]["expected"] = outcome.expected;
  fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
}

void print_answer(const Outcome& outcome) {
  const auto verdict = [&](const std::string& text) {
    return outcome.expected.empty() ? "" : answers(text, outcome.expected) ? ", right" : ", wrong";
  };
  if (outcome.before.empty()) return;
  fmt::print("answer before: {}{}\n", outcome.before, verdict(outcome.before));
  fmt::print("answer after:  {}{}\n", outcome.after, verdict(outcome.after));
  if (!outcome.expected.empty()) fmt::print("expected:      {}\n", outcome.expected);
}

void print_predictions(const Outcome& outcome, Run& before, Run& after, const Tokenizer& tokenizer) {
  const RunDifference& difference = outcome.difference;
  if (difference.kl.empty()) return fmt::print("predictions: the same\n");
  if (difference.changed) {
    const std::int64_t token = *difference.changed;
    fmt::print("predictions: first another after token {}: {}, was {}\n", token_text(before, token, tokenizer),
               prediction_text(after, token, tokenizer), prediction_text(before, token, tokenizer));
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
               token_text(before, difference.from + static_cast<std::int64_t>(order[i]), tokenizer));
  fmt::print("\n");
}

void print_states(const Outcome& outcome, Run& before, const Tokenizer& tokenizer) {
  for (const Outcome::Layer& at : outcome.states) {
    fmt::print("states after token {}, ‖after − before‖ / ‖before‖:", token_text(before, at.token, tokenizer));
    for (std::size_t layer = 0; layer < at.layers.size(); ++layer) {
      const bool stateful = !before.model().layout(static_cast<std::int64_t>(layer)).memory.empty();
      fmt::print("{} layer {}: {}", layer == 0 ? "" : ",", layer,
                 stateful ? fmt::format("{:.3g}", at.layers[layer].relative()) : "no state");
    }
    fmt::print("\n");
  }
}

}  // namespace

int intervene_command(const InterveneArguments& arguments) {
  std::vector<Intervention> interventions;
  for (const std::string& text : arguments.interventions) interventions.push_back(parse_intervention(text));
  const auto checkpoint = open_checkpoint(arguments.checkpoint);
  const auto model = Model::load(checkpoint, open_device(arguments.device));
  const auto tokenizer = make_tokenizer(*checkpoint, model->vocab());
  const PromptInput prompt = load_prompt(arguments.prompt);
  const std::vector<std::int32_t> ids = ids_of(prompt, *tokenizer);
  const std::int64_t wanted = prompt.expected.empty() ? kDefaultLength : std::ssize(tokenizer->encode(prompt.expected).ids);
  const std::int64_t generate = arguments.generate.value_or(wanted);
  for (const Intervention& intervention : interventions) changed_layers(intervention, *model, std::ssize(ids) + generate);

  Branches tree(read_run(model, ids, generate));
  for (const std::string& file : arguments.others) tree.add(read_run(model, ids_of(load_prompt({.file = file}), *tokenizer), 0));
  const std::int64_t branch = tree.intervene(interventions);
  for (const auto& run : {tree[0].run, tree[branch].run}) {
    if (const std::string remark = run->remark(); !remark.empty()) fmt::print(stderr, "note: {}\n", remark);
  }

  const Outcome outcome = outcome_of(tree, branch, *tokenizer, prompt);
  if (arguments.json) {
    print_json(outcome, *model);
    return 0;
  }
  Run &before = *tree[0].run, &after = *tree[branch].run;
  const std::string again = after.first() < after.tokens() ? fmt::format("read again from token {}", after.first()) : "nothing read again";
  fmt::print("{}: {} tokens, {}\n", arguments.checkpoint, before.tokens(), again);
  for (const Intervention& intervention : interventions) fmt::print("  {}\n", to_text(intervention));
  print_answer(outcome);
  print_predictions(outcome, before, after, *tokenizer);
  print_states(outcome, before, *tokenizer);
  return 0;
}

}  // namespace statescope
