// Questions about a run at a token: what a layer's quantities are, and who wrote a state.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "app/assets.h"
#include "app/cli/engine.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/common/running.h"
#include "app/figure/fonts_alone.h"
#include "app/figure/run_here.h"
#include "engine/answers/observables.h"
#include "engine/error.h"
#include "engine/place_words.h"
#include "engine/run/not_finite.h"
#include "views/parts.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::size_t kShownNumbers = 8;
constexpr std::int64_t kMostTokens = 512;  // of observe

/// A prompt, read and changed as asked, ready to be asked about.
class AskedRun {
 public:
  /// A token as an option names it.
  struct Named {
    const char* option;
    std::int64_t token;
  };

  /// Throws Error where a token, or the layer, is not there: before anything is read, where this program reads.
  AskedRun(const AskArguments& arguments, const std::vector<Named>& tokens, std::optional<std::int64_t> layer) {
    if (!arguments.engine.place.empty()) {
      application_.emplace();
      interruption_.emplace();
      engine_ = reach_engine(arguments.engine, arguments.device, 0);
    }
    run_ = engine_ ? read_there(arguments, tokens, layer) : read_here(arguments, tokens, layer);
    not_finite_ = run_->not_finite();
    if (not_finite_) print_note(not_finite_.text());
    bar_.emplace("working it out");
  }

  template <class Q>
  typename Q::Answer answer(const Q& question) {
    return run_->answer(question);
  }
  const RunInfo& info() const { return run_->info(); }
  const NotFinite& not_finite() const { return not_finite_; }
  /// A token as the user names it: below 0 counted from the prompt's end.
  std::int64_t token(std::int64_t asked) const { return asked < 0 ? info().prompt_length + asked : asked; }
  const std::string& text(std::int64_t token) const { return info().tokens[static_cast<std::size_t>(token)].text; }
  /// "119 'ivan'"
  std::string token_text(std::int64_t token) const { return fmt::format("{} '{}'", token, visible_text(text(token))); }
  /// The model's.
  std::vector<std::string> notes() const {
    std::vector<std::string> all = info().model.notes;
    if (not_finite_) all.push_back(not_finite_.text());
    return all;
  }
  void done() { bar_.reset(); }

 private:
  static void check_tokens(const std::vector<Named>& tokens, std::int64_t prompt_length, std::int64_t count) {
    for (const auto& [option, token] : tokens) {
      try {
        token_place(token, prompt_length, count);
      } catch (const Error& error) {
        throw Error(fmt::format("{}: {}", option, error.what()));
      }
    }
  }
  static void check_layer(std::optional<std::int64_t> layer, std::int64_t layers) { check_index("layer", layer.value_or(0), layers); }

  std::unique_ptr<ReadRun> read_here(const AskArguments& arguments, const std::vector<Named>& tokens, std::optional<std::int64_t> layer) {
    const std::filesystem::path path = checkpoint_at(arguments.checkpoint);
    const auto checkpoint = open_checkpoint(path);
    const std::shared_ptr<Model> model = load_model(checkpoint, arguments.device);
    const PromptInput prompt = load_prompt(arguments.prompt, "", path.string());
    const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
    check_layer(layer, model->layers());
    const std::int64_t length = std::ssize(encode(prompt, *tokenizer).ids);
    check_tokens(tokens, length, length + arguments.generate);
    auto reading = std::make_shared<Reading>(model, tokenizer, prompt);
    if (const std::string remark = reading->run().remark(); !remark.empty()) print_note(remark);
    for (std::int64_t i = 0; i < arguments.generate; ++i) reading->generate_one();
    return std::make_unique<RunHere>(std::move(reading), prompt, arguments.interventions, progress(), arguments.device);
  }

  std::unique_ptr<ReadRun> read_there(const AskArguments& arguments, const std::vector<Named>& tokens, std::optional<std::int64_t> layer) {
    PromptInput prompt = engine_->prompt(arguments.prompt, arguments.checkpoint);
    prompt.generate = arguments.generate;
    std::unique_ptr<ReadRun> run = engine_->read(arguments.checkpoint, prompt, arguments.interventions, progress());
    print_notes(run->info().model.notes);
    check_layer(layer, std::ssize(run->info().model.layers));
    check_tokens(tokens, run->info().prompt_length, std::ssize(run->info().tokens));
    return run;
  }

  RunReader::Progress progress() {
    return [this](double fraction) {
      if (bar_) bar_->show(fraction);
      return !Interruption::asked();
    };
  }

  std::optional<Offscreen<QCoreApplication>> application_;  // of the connection
  std::optional<Interruption> interruption_;                // so that the engine hears of it
  std::unique_ptr<EngineRuns> engine_;
  std::unique_ptr<ReadRun> run_;
  NotFinite not_finite_;
  std::optional<ProgressBar> bar_;
};

/// What JSON has no number for is text: "inf"; what does not exist is null.
json number_json(float value) {
  if (std::isnan(value)) return nullptr;
  return std::isinf(value) ? json(value < 0 ? "-inf" : "inf") : json(value);
}

// ---- observe ----------------------------------------------------------------------------------------------------------------------------

/// Of one layer over all tokens asked for, which follow one another.
struct LayerObservables {
  std::int64_t layer = 0;
  Observables found;
};

std::int64_t numbers_of_token(const Observables::Quantity& quantity) {
  return std::accumulate(quantity.shape.begin(), quantity.shape.end(), std::int64_t{1}, std::multiplies{});
}

std::span<const float> at_token(const Observables::Quantity& quantity, std::int64_t index) {
  const std::int64_t each = numbers_of_token(quantity);
  return std::span(quantity.values).subspan(static_cast<std::size_t>(index * each), static_cast<std::size_t>(each));
}

/// All of a few numbers; of many the least, the mean and the largest. `none`: what stands for a number that does not exist.
std::string numbers_text(std::span<const float> values, const std::string& none) {
  const auto text = [&](float value) { return std::isnan(value) ? none : fmt::format("{:.4g}", value); };
  if (values.size() <= kShownNumbers) {
    std::vector<std::string> all;
    for (const float value : values) all.push_back(text(value));
    return fmt::format("{}", fmt::join(all, " "));
  }
  std::vector<float> known;
  std::ranges::copy_if(values, std::back_inserter(known), [](float value) { return !std::isnan(value); });
  if (known.empty()) return none;
  if (std::ranges::min(known) == std::ranges::max(known)) return fmt::format("{} numbers: all {}", known.size(), text(known.front()));
  const double mean = std::accumulate(known.begin(), known.end(), 0.0) / static_cast<double>(known.size());
  return fmt::format("{} numbers: {} to {}, mean {:.4g}", known.size(), text(std::ranges::min(known)), text(std::ranges::max(known)), mean);
}

void print_observables(const AskedRun& run, const std::vector<LayerObservables>& layers, std::int64_t from, std::int64_t to) {
  const std::string none = run.not_finite() ? "nan" : "–";
  for (std::int64_t t = from; t < to; ++t) {
    for (const LayerObservables& layer : layers) {
      fmt::print("layer {} {}, token {}\n", layer.layer, run.info().model.layers[static_cast<std::size_t>(layer.layer)].mixer,
                 run.token_text(t));
      for (const Observables::Quantity& quantity : layer.found.quantities)
        fmt::print("  {:27} {:25} {:12} {}  ({})\n", quantity.name, quantity.axes, quantity.unit,
                   numbers_text(at_token(quantity, t - from), none), quantity.accuracy.name());
    }
  }
}

json quantity_json(const Observables::Quantity& quantity) {
  json values = json::array();
  for (const float value : quantity.values) values.push_back(number_json(value));
  std::vector<std::int64_t> shape{std::ssize(quantity.values) / numbers_of_token(quantity)};
  shape.insert(shape.end(), quantity.shape.begin(), quantity.shape.end());
  return {{"name", quantity.name},
          {"axes", quantity.axes},
          {"unit", quantity.unit},
          {"equation", quantity.equation},
          {"accuracy", quantity.accuracy.text()},
          {"shape", shape},
          {"values", values}};
}

std::string observables_json(const AskedRun& run, const AskArguments& arguments, const std::vector<LayerObservables>& layers,
                             std::int64_t from, std::int64_t to) {
  json tokens = json::array(), all = json::array();
  for (std::int64_t t = from; t < to; ++t) tokens.push_back({{"token", t}, {"text", run.text(t)}});
  for (const LayerObservables& layer : layers) {
    json quantities = json::array();
    for (const Observables::Quantity& quantity : layer.found.quantities) quantities.push_back(quantity_json(quantity));
    all.push_back({{"layer", layer.layer},
                   {"mixer", run.info().model.layers[static_cast<std::size_t>(layer.layer)].mixer},
                   {"slots", run.info().model.layers[static_cast<std::size_t>(layer.layer)].slot_names},
                   {"quantities", quantities}});
  }
  const json report{{"format", "statescope-observables"},
                    {"version", 1},
                    {"checkpoint", arguments.checkpoint},
                    {"device", run.info().model.device},
                    {"notes", run.notes()},
                    {"not_finite", to_json(run.not_finite())},
                    {"prompt_length", run.info().prompt_length},
                    {"interventions", arguments.interventions},
                    {"tokens", tokens},
                    {"layers", all}};
  return report.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

// ---- history ----------------------------------------------------------------------------------------------------------------------------

/// NaN has no sign here.
std::string number_text(const char* format, double value) { return std::isnan(value) ? "nan" : fmt::format(fmt::runtime(format), value); }

/// A complex state is read as one, whichever of its parts is asked about.
bool has_slot(const HistoryQuestion& question, const LayerInfo& layer) {
  return layer.slots() > 1 && !(question.read && layer.memory == "state space");
}

/// As the layer calls it.
std::string slot_text(const HistoryQuestion& question, const LayerInfo& layer) {
  const bool is_one = layer.slots() > 1 && !has_slot(question, layer);
  return is_one ? "state" : layer.slot_names[static_cast<std::size_t>(question.slot)];
}

/// "layer 1, partition 2, head 0, row 3"
std::string place_text(const HistoryQuestion& question, const LayerInfo& layer) {
  std::string text = fmt::format("layer {}", question.layer);
  if (has_slot(question, layer)) {
    const std::string& name = layer.slot_names[static_cast<std::size_t>(question.slot)];
    const bool is_number = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    text += ", " + (is_number ? "partition " + name : name);
  }
  text += fmt::format(", head {}", question.head);
  if (question.row >= 0) text += fmt::format(", row {}", question.row);
  return question.column >= 0 ? text + fmt::format(", column {}", question.column) : text;
}

/// What a model reads before the first token writes too.
constexpr const char* kMemoryTokensText = "memory tokens";

/// "119 'ivan'", "119 'ivan', step 2"
std::string writer_text(const AskedRun& run, const History& history, std::size_t j) {
  if (history.token[j] < 0) return kMemoryTokensText;
  const std::string text = run.token_text(history.token[j]);
  if (history.step.empty()) return text;
  return text + (history.step[j] < 0 ? ", intervention" : fmt::format(", step {}", history.step[j] + 1));
}

std::string writers_text(const History& history) {
  const bool memory_tokens = !history.token.empty() && history.token.front() < 0;
  const std::set<std::int32_t> different(history.token.begin(), history.token.end());
  const std::size_t tokens = different.size() - (memory_tokens ? 1 : 0);
  std::string counted = tokens == 1 ? "1 token" : fmt::format("{} tokens", tokens);
  if (!history.step.empty())
    counted += fmt::format(" in {} steps", std::ranges::count_if(history.step, [](int step) { return step >= 0; }));
  if (memory_tokens) return fmt::format("{} and {} that add up", kMemoryTokensText, counted);
  return counted + (tokens == 1 && history.step.empty() ? " that adds up" : " that add up");
}

void print_history(const AskedRun& run, const HistoryQuestion& question, const History& history, const std::vector<std::size_t>& order,
                   std::size_t most) {
  const LayerInfo& layer = run.info().model.layers[static_cast<std::size_t>(question.layer)];
  fmt::print("{}, after token {}: {} {}, written by {} to {} ({})\n", place_text(question, layer), run.token_text(question.token),
             question.read          ? "what it reads has norm"
             : question.column >= 0 ? "value"
                                    : "norm",
             number_text("{:.6g}", history.shown), writers_text(history), number_text("{:.6g}", history.sum), History::accuracy.text());
  fmt::print("  {:>14}  {:>14}  {:>14}  token\n", "contribution", "coefficient", "written with");
  double others = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t j = order[i];
    if (i >= most) {
      others += static_cast<double>(history.contribution[j]);
      continue;
    }
    fmt::print("  {:>14}  {:>14}  {:>14}  {}\n", number_text("{:+.6g}", history.contribution[j]),
               number_text("{:.6g}", history.coefficient[j]), number_text("{:.6g}", history.written[j]), writer_text(run, history, j));
  }
  if (order.size() > most)
    fmt::print("  {:>14}  {} {}\n", number_text("{:+.6g}", others), order.size() - most, history.step.empty() ? "others" : "other steps");
}

std::string history_json(const AskedRun& run, const AskArguments& arguments, const HistoryQuestion& question, const History& history,
                         const std::vector<std::size_t>& order) {
  const LayerInfo& layer = run.info().model.layers[static_cast<std::size_t>(question.layer)];
  const auto index = [](std::int64_t number) { return number < 0 ? json(nullptr) : json(number); };
  const auto step_json = [](std::int32_t step) { return step < 0 ? json(nullptr) : json(step + 1); };
  json writers = json::array();
  for (const std::size_t j : order)
    writers.push_back({{"token", index(history.token[j])},
                       {"text", history.token[j] < 0 ? kMemoryTokensText : run.text(history.token[j])},
                       {"contribution", number_json(history.contribution[j])},
                       {"coefficient", number_json(history.coefficient[j])},
                       {"written", number_json(history.written[j])}});
  for (std::size_t i = 0; i < order.size() && !history.step.empty(); ++i) writers[i]["step"] = step_json(history.step[order[i]]);
  const json report{{"format", "statescope-history"},
                    {"version", 1},
                    {"accuracy", History::accuracy.text()},
                    {"checkpoint", arguments.checkpoint},
                    {"device", run.info().model.device},
                    {"notes", run.notes()},
                    {"not_finite", to_json(run.not_finite())},
                    {"prompt_length", run.info().prompt_length},
                    {"interventions", arguments.interventions},
                    {"layer", question.layer},
                    {"slot", slot_text(question, layer)},
                    {"head", question.head},
                    {"row", index(question.row)},
                    {"column", index(question.column)},
                    {"token", question.token},
                    {"read", question.read},
                    {"shown", history.shown},
                    {"sum", history.sum},
                    {"writers", writers}};
  return report.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

void list_observables() {
  for (const ObservableGroup& group : observable_groups()) {
    for (const ObservableRow& row : group.rows)
      fmt::print("{:27} {:25} {:12} {}; {}\n", row.name, row.axes, row.unit, row.equation, row.accuracy.text());
  }
}

}  // namespace

int observe_command(const ObserveArguments& arguments) {
  if (arguments.list) {
    list_observables();
    return 0;
  }
  ReportFile json_file(arguments.json, arguments.force);
  AskedRun run(arguments,
               {{"--token", arguments.token}, {"--until", arguments.until.value_or(arguments.token)}, {"--since", arguments.since}},
               arguments.layer);
  const std::int64_t from = run.token(arguments.token), to = run.token(arguments.until.value_or(arguments.token)) + 1;
  const std::int64_t since = run.token(arguments.since);
  if (to - from > kMostTokens) throw Error(fmt::format("--until: {} tokens; at most {} can be shown at once", to - from, kMostTokens));
  if (to <= from) throw Error(fmt::format("--until {}: it is before --token {}", to - 1, from));
  std::vector<LayerObservables> layers;
  for (std::int64_t layer = 0; layer < std::ssize(run.info().model.layers); ++layer) {
    if (arguments.layer.value_or(layer) == layer)
      layers.push_back({layer, run.answer(ObservablesQuestion{layer, from, to, arguments.names, since})});
  }
  run.done();
  if (!json_file.is_standard_output()) print_observables(run, layers, from, to);
  json_file.write(observables_json(run, arguments, layers, from, to));
  return 0;
}

int history_command(const HistoryArguments& arguments) {
  ReportFile json_file(arguments.json, arguments.force);
  AskedRun run(arguments, {{"--token", arguments.token}}, arguments.layer);
  const HistoryQuestion question{.layer = arguments.layer,
                                 .slot = arguments.slot,
                                 .head = arguments.head,
                                 .row = arguments.row.value_or(-1),
                                 .column = arguments.column.value_or(-1),
                                 .token = run.token(arguments.token),
                                 .read = arguments.read};
  const History history = run.answer(question);
  run.done();
  std::vector<std::size_t> order(history.token.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t j) { return std::abs(history.contribution[j]); });
  if (!json_file.is_standard_output()) print_history(run, question, history, order, static_cast<std::size_t>(arguments.most));
  json_file.write(history_json(run, arguments, question, history, order));
  return 0;
}

}  // namespace statescope
