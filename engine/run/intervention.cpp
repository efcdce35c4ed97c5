#include "engine/run/intervention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include "engine/error.h"
#include "engine/place_words.h"

namespace statescope {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// ------------------------------------------------------------------------------------------------------------------------------------ text

constexpr std::string_view kForms =
    "zero|scale [row R] [head H] [partition P|shared] [layer L] [by F] at T\n"
    "freeze decay|scale decay by F [layer L] from T [until U]\n"
    "writers W|readers R|topk W [layer L] from T [until U]\n"
    "route [layer L] to partition P,… from T [until U]\n"
    "sharpen gates by F [layer L] from T [until U]\n"
    "replace token by ID at T\n"
    "import run N [token S] [layer L] at T";

constexpr std::array<std::string_view, 10> kVerbs{"zero", "scale", "freeze",  "writers", "readers",
                                                  "topk", "route", "sharpen", "replace", "import"};

/// The words of a line: the verb, words that stand for themselves, words that are followed by a value.
class Clauses {
 public:
  explicit Clauses(std::string_view text) : text_(text) {
    std::istringstream words{std::string(text)};
    words >> verb;
    if (std::ranges::find(kVerbs, verb) == kVerbs.end())
      fail(verb.empty() ? "nothing is said" : fmt::format("\"{}\" is not understood", verb));
    if (is_top_k()) words >> values_[verb];
    for (std::string word; words >> word;) {
      if (word == "of" || word == "to") continue;
      const bool names_token = word == "token" && verb == "replace";
      if (values_.contains(word)) fail(fmt::format("\"{}\" is said twice", word));
      if (word == "decay" || word == "gates" || word == "shared" || word == "state" || names_token) {
        values_[word] = "";
      } else if (std::string value; words >> value) {
        const bool shared = word == "partition" && value == "shared";
        values_[shared ? value : word] = shared ? "" : value;
      } else {
        fail(fmt::format("a value is missing after \"{}\"", word));
      }
    }
  }

  std::string verb;
  /// Whether the verb is a clause as well: "writers 2".
  bool is_top_k() const { return verb == "writers" || verb == "readers" || verb == "topk"; }

  [[noreturn]] void fail(const std::string& what) const {
    std::string forms;
    std::istringstream lines{std::string(kForms)};
    for (std::string line; std::getline(lines, line);) {
      const std::string verbs = "|" + line + " ";
      if (verbs.find("|" + verb + " ") != verbs.npos || verbs.starts_with("|" + verb + "|"))
        forms += (forms.empty() ? "" : "; or: ") + line;
    }
    if (forms.empty()) forms = fmt::format("one of {}", fmt::join(kVerbs, ", "));
    throw Error(fmt::format("\"{}\": {}; expected {}", text_, what, forms));
  }

  bool take_flag(const std::string& name) { return values_.erase(name) > 0; }
  std::optional<std::string> take(const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    std::string value = std::move(found->second);
    values_.erase(found);
    return value;
  }
  template <class Number>
  Number number(const std::string& value) const {
    Number number{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) fail(fmt::format("\"{}\" is not a number", value));
    return number;
  }
  std::optional<std::int64_t> take_integer(const std::string& name) {
    const std::optional<std::string> value = take(name);
    return value ? std::optional(number<std::int64_t>(*value)) : std::nullopt;
  }
  /// Of a clause that must be there.
  template <class Number>
  Number needed(const std::string& name) {
    const std::optional<std::string> value = take(name);
    if (!value) fail(fmt::format("\"{}\" is missing", name));
    return number<Number>(*value);
  }
  void end() const {
    if (values_.empty()) return;
    const std::string& word = values_.begin()->first;
    const bool names_a_part = (verb == "zero" || verb == "scale") && word != "by" && word != "until";
    if (names_a_part) fail(fmt::format("\"{}\" is nothing to {}: a state can be, a partition of it, a head, a row", word, verb));
    fail(fmt::format("\"{}\" has no meaning after \"{}\"", word, verb));
  }

 private:
  std::string_view text_;
  std::map<std::string, std::string> values_;
};

ScaleState parse_scale_state(Clauses& clauses) {
  ScaleState change;
  change.row = clauses.take_integer("row");
  change.head = clauses.take_integer("head");
  change.partition = clauses.take_integer("partition");
  if (change.partition && *change.partition < 1) clauses.fail("partitions count from 1");
  if (clauses.take_flag("shared")) {
    if (change.partition) clauses.fail("it is a partition or the shared state");
    change.partition = 0;
  }
  clauses.take_flag("state");
  if (clauses.verb == "scale") change.factor = clauses.needed<float>("by");
  return change;
}

ForceRouting parse_routing(Clauses& clauses) {
  ForceRouting change;
  std::istringstream list(clauses.take("partition").value_or(""));
  for (std::string one; std::getline(list, one, ',');) change.partitions.push_back(clauses.number<std::int64_t>(one));
  if (change.partitions.empty()) clauses.fail("\"partition\" is missing");
  return change;
}

Change parse_change(Clauses& clauses) {
  const std::string& verb = clauses.verb;
  if ((verb == "freeze" || verb == "scale") && clauses.take_flag("decay")) {
    return ScaleDecay{verb == "freeze" ? 0 : clauses.needed<float>("by")};
  }
  if (verb == "zero" || verb == "scale") return parse_scale_state(clauses);
  if (verb == "route") return parse_routing(clauses);
  if (verb == "sharpen" && clauses.take_flag("gates")) return SharpenGates{clauses.needed<float>("by")};
  if (verb == "replace" && clauses.take_flag("token")) return ReplaceToken{clauses.needed<std::int32_t>("by")};
  if (clauses.is_top_k()) {
    if (const auto both = clauses.take_integer("topk")) return ChangeTopK{both, both};
    const auto writers = clauses.take_integer("writers");
    return ChangeTopK{writers, clauses.take_integer("readers")};
  }
  if (verb == "import") {
    const auto run = clauses.needed<std::int64_t>("run");
    return ImportState{run, clauses.take_integer("token")};
  }
  clauses.fail(fmt::format("\"{}\" is not understood", verb));
}

/// "row 3 of head 1 of partition 2"; all: "state"
std::string address(const ScaleState& change) {
  std::vector<std::string> parts;
  if (change.row) parts.push_back(fmt::format("row {}", *change.row));
  if (change.head) parts.push_back(fmt::format("head {}", *change.head));
  if (change.partition) parts.push_back(*change.partition == 0 ? "shared" : fmt::format("partition {}", *change.partition));
  return parts.empty() ? "state" : fmt::format("{}", fmt::join(parts, " of "));
}

// All but the tokens.
std::string change_text(const ScaleState& scale, const std::string& of_layer) {
  if (scale.factor == 0) return fmt::format("zero {}{}", address(scale), of_layer);
  return fmt::format("scale {}{} by {}", address(scale), of_layer, scale.factor);
}
std::string change_text(const ImportState& import, const std::string& of_layer) {
  return fmt::format("import run {}{}{}", import.run, import.token ? fmt::format(" token {}", *import.token) : "", of_layer);
}
std::string change_text(const ReplaceToken& token, const std::string&) { return fmt::format("replace token by {}", token.id); }
std::string change_text(const ScaleDecay& decay, const std::string& of_layer) {
  return decay.factor == 0 ? "freeze decay" + of_layer : fmt::format("scale decay{} by {}", of_layer, decay.factor);
}
std::string change_text(const ChangeTopK& change, const std::string& of_layer) {
  if (change.writers == change.readers) return fmt::format("topk {}{}", change.writers.value_or(0), of_layer);
  if (!change.readers) return fmt::format("writers {}{}", *change.writers, of_layer);
  if (!change.writers) return fmt::format("readers {}{}", *change.readers, of_layer);
  return fmt::format("writers {} readers {}{}", *change.writers, *change.readers, of_layer);
}
std::string change_text(const ForceRouting& routing, const std::string& of_layer) {
  return fmt::format("route{} to partition {}", of_layer.empty() ? "" : of_layer.substr(3), fmt::join(routing.partitions, ","));
}
std::string change_text(const SharpenGates& gates, const std::string& of_layer) {
  return fmt::format("sharpen gates{} by {}", of_layer, gates.lambda);
}

// ------------------------------------------------------------------------------------------------------------------------------- the model

bool in(std::int64_t value, std::int64_t from, std::int64_t end) { return value >= from && value < end; }

/// What a layer has in place of partitions: "there are no partitions"
std::string without_partitions(const MixerLayout& layout) {
  const std::string none = "there are no partitions";
  if (layout.slot_names.size() < 2) return none;
  const bool levels = layout.slot_names[0].starts_with("level");
  return fmt::format("{} but {}, which are changed together: the state can be, a head of it, a row", none,
                     levels ? "levels of one memory" : "the real and imaginary parts of one state");
}

/// Why a layer has no such partition; empty: it has.
std::string no_partition(std::int64_t n, const MixerLayout& layout) {
  if (layout.partitions == 0) return without_partitions(layout);
  return in(n, 1, layout.partitions + 1) ? "" : no_such("partition", n, layout.partitions, 1);
}

/// Why a layer cannot use so many of its partitions for a token; empty: it can.
std::string no_partitions(std::int64_t count, const MixerLayout& layout) {
  if (layout.partitions == 0) return "there are no partitions";
  return in(count, 1, layout.partitions + 1) ? "" : fmt::format("a token can have 1 to {} partitions", layout.partitions);
}

// Why a change means nothing to a layer; empty: it does.
std::string refusal(const ScaleState& scale, const MixerLayout& layout) {
  if (layout.memory.empty()) return "there is no matrix state";
  const Shape& shape = layout.memory[0].shape;
  if (scale.partition == 0 && !layout.has_shared_slot)
    return layout.partitions == 0 && layout.slot_names.size() > 1 ? without_partitions(layout) : "there is no shared state";
  const std::string why = scale.partition.value_or(0) == 0 ? "" : no_partition(*scale.partition, layout);
  if (!why.empty()) return why;
  if (scale.head && !in(*scale.head, 0, shape[1])) return no_such("head", *scale.head, shape[1]);
  return scale.row && !in(*scale.row, 0, shape[2]) ? no_such("row", *scale.row, shape[2]) : "";
}
std::string refusal(const ScaleDecay&, const MixerLayout& layout) { return layout.decays ? "" : "nothing decays"; }
std::string refusal(const ChangeTopK& top_k, const MixerLayout& layout) {
  for (const auto& count : {top_k.writers, top_k.readers}) {
    if (const std::string why = count ? no_partitions(*count, layout) : ""; !why.empty()) return why;
  }
  return layout.readers == 0 && top_k.writers != top_k.readers ? "tokens read the partitions that they write: say topk" : "";
}
std::string refusal(const ForceRouting& routing, const MixerLayout& layout) {
  for (const std::int64_t n : routing.partitions) {
    if (const std::string why = no_partition(n, layout); !why.empty()) return why;
    if (std::ranges::count(routing.partitions, n) > 1) return fmt::format("partition {} is named twice", n);
  }
  return "";
}
std::string refusal(const SharpenGates&, const MixerLayout& layout) { return layout.head_gates ? "" : "there are no head gates"; }
std::string refusal(const ImportState&, const MixerLayout&) { return ""; }
std::string refusal(const ReplaceToken&, const MixerLayout&) { return ""; }
const std::string& mixer_of(std::int64_t layer, const Model& model) { return model.plan().layers[static_cast<std::size_t>(layer)].mixer; }

std::string refusal(const Change& change, const Model& model, std::int64_t layer) {
  if (mixer_of(layer, model) == "s4" && std::holds_alternative<ScaleDecay>(change))
    return "states decay by exp(Δ A), a weight that is the same at every token, and by no gate that could be scaled";
  return std::visit([&](const auto& one) { return refusal(one, model.layout(layer)); }, change);
}

/// Why it means nothing to any layer: "there are no partitions", or "in layers 0 and 2 (gla) nothing decays; in layer 1 (…) …".
std::string refusals(const Change& change, const Model& model) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> layers_of;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    const std::string why = refusal(change, model, layer);
    auto known = std::ranges::find_if(
        layers_of, [&](const auto& one) { return one.first == why && mixer_of(one.second.front(), model) == mixer_of(layer, model); });
    if (known == layers_of.end()) known = layers_of.insert(known, {why, {}});
    known->second.push_back(layer);
  }
  const auto& first = layers_of.front().first;
  if (std::ranges::all_of(layers_of, [&](const auto& one) { return one.first == first; })) return first;
  std::string text;
  for (const auto& [why, layers] : layers_of)
    text += fmt::format("{}in {} ({}) {}", text.empty() ? "" : "; ", counted("layer", layers), mixer_of(layers.front(), model), why);
  return text;
}

/// What is wrong with the numbers of a change, whatever the layer; empty: nothing.
std::string wrong_number(const Change& change, const Model& model) {
  const auto factor = [](float value, const char* name, bool signed_too) {
    if (std::isfinite(value) && (signed_too || value >= 0)) return std::string();
    return fmt::format("{} is {}, expected a number{}", name, value, signed_too ? "" : " ≥ 0");
  };
  if (const auto* scale = std::get_if<ScaleState>(&change)) return factor(scale->factor, "the factor", true);
  if (const auto* decay = std::get_if<ScaleDecay>(&change)) return factor(decay->factor, "the factor", false);
  if (const auto* gates = std::get_if<SharpenGates>(&change)) return factor(gates->lambda, "λ", false);
  if (const auto* token = std::get_if<ReplaceToken>(&change); token && (token->id < 0 || token->id >= model.vocab()))
    return fmt::format("the vocabulary has ids 0 to {}", model.vocab() - 1);
  if (const auto* routing = std::get_if<ForceRouting>(&change); routing && routing->partitions.empty()) return "it names no partition";
  return "";
}

void apply(const Change& change, Rules& rules, const MixerLayout& layout) {
  if (const auto* decay = std::get_if<ScaleDecay>(&change)) rules.decay = decay->factor;
  if (const auto* gates = std::get_if<SharpenGates>(&change)) rules.sharpness = gates->lambda;
  if (const auto* routing = std::get_if<ForceRouting>(&change)) {
    rules.route.clear();
    for (const std::int64_t n : routing->partitions) rules.route.push_back(static_cast<std::int32_t>(n - 1));
  }
  if (const auto* top_k = std::get_if<ChangeTopK>(&change)) {
    const auto unless = [](std::int64_t count, std::int64_t own) { return count == own ? 0 : count; };
    const std::int64_t own_readers = layout.readers > 0 ? layout.readers : layout.writers;
    if (top_k->writers) rules.writers = unless(*top_k->writers, layout.writers);
    if (top_k->readers) rules.readers = unless(*top_k->readers, own_readers);
  }
}

bool is_rule(const Intervention& intervention) {
  return !edits_state(intervention) && !std::holds_alternative<ReplaceToken>(intervention.change);
}

}  // namespace

std::int64_t slot_of(std::int64_t partition, const MixerLayout& layout) { return partition - (layout.has_shared_slot ? 0 : 1); }

bool edits_state(const Intervention& intervention) {
  return std::holds_alternative<ScaleState>(intervention.change) || std::holds_alternative<ImportState>(intervention.change);
}

std::string_view intervention_forms() { return kForms; }

std::string to_text(const Intervention& intervention) {
  const std::string of_layer = intervention.layer ? fmt::format(" of layer {}", *intervention.layer) : "";
  const std::string change = std::visit([&](const auto& one) { return change_text(one, of_layer); }, intervention.change);
  const std::string until = intervention.until ? fmt::format(" until {}", *intervention.until) : "";
  return fmt::format("{} {} {}{}", change, is_rule(intervention) ? "from" : "at", intervention.at, until);
}

Intervention parse_intervention(std::string_view text) {
  Clauses clauses(text);
  Intervention intervention{.change = parse_change(clauses), .at = 0, .until = {}, .layer = {}};
  intervention.layer = clauses.take_integer("layer");
  const auto from = clauses.take_integer("from"), at = clauses.take_integer("at");
  if (from.has_value() == at.has_value()) clauses.fail("say at which token, once");
  intervention.at = from ? *from : *at;
  if (is_rule(intervention)) intervention.until = clauses.take_integer("until");
  clauses.end();
  return intervention;
}

std::vector<std::int64_t> changed_layers(const Intervention& intervention, const Model& model, std::int64_t tokens) {
  const auto fail = [&](const std::string& why) { throw Error(fmt::format("{}: {}", to_text(intervention), why)); };
  if (intervention.at < 0 || intervention.at >= tokens) fail(no_such("token", intervention.at, tokens));
  if (intervention.until && *intervention.until < intervention.at) fail("it ends before it begins");
  if (const std::string why = wrong_number(intervention.change, model); !why.empty()) fail(why);
  if (intervention.layer) {
    const std::int64_t layer = *intervention.layer;
    if (layer < 0 || layer >= model.layers()) fail(no_such("layer", layer, model.layers()));
    const std::string why = refusal(intervention.change, model, layer);
    if (!why.empty()) fail(fmt::format("in layer {} ({}) {}", layer, mixer_of(layer, model), why));
    return {layer};
  }
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    if (refusal(intervention.change, model, layer).empty()) layers.push_back(layer);
  }
  if (layers.empty()) fail("no layer can do that: " + refusals(intervention.change, model));
  return layers;
}

Schedule::Schedule(const Model& model, std::span<const Intervention> interventions, std::int64_t tokens, const Import& import) {
  rules_[0] = {};
  for (const Intervention& intervention : interventions) {
    if (is_rule(intervention)) {
      rules_[intervention.at];
      if (intervention.until) rules_[*intervention.until + 1];
    }
    for (const std::int64_t layer : changed_layers(intervention, model, tokens)) {
      if (const auto* scale = std::get_if<ScaleState>(&intervention.change); scale && scale->factor != 1)
        edits_.emplace(intervention.at + 1, Edit{layer, *scale, std::nullopt});
      if (const auto* state = std::get_if<ImportState>(&intervention.change))
        edits_.emplace(intervention.at + 1, Edit{layer, {}, import(state->run, layer, state->token.value_or(intervention.at))});
    }
  }
  for (auto& [token, rules] : rules_) {
    rules.resize(static_cast<std::size_t>(model.layers()));
    for (const Intervention& intervention : interventions) {
      if (!is_rule(intervention) || token < intervention.at || token > intervention.until.value_or(kNever)) continue;
      for (const std::int64_t layer : changed_layers(intervention, model, tokens))
        apply(intervention.change, rules[static_cast<std::size_t>(layer)], model.layout(layer));
    }
  }
  // Where nothing changes, nothing stops.
  for (auto piece = std::next(rules_.begin()); piece != rules_.end();)
    piece = piece->second == std::prev(piece)->second ? rules_.erase(piece) : std::next(piece);
  if (rules_.size() == 1 && std::ranges::all_of(rules_[0], [](const Rules& rules) { return rules == Rules(); })) rules_.clear();
}

std::span<const Rules> Schedule::rules(std::int64_t token) const {
  if (rules_.empty()) return {};
  return std::prev(rules_.upper_bound(token))->second;
}

std::int64_t Schedule::next_stop(std::int64_t tokens) const {
  const auto rules = rules_.upper_bound(tokens);
  const auto edit = edits_.upper_bound(tokens);
  return std::min(rules == rules_.end() ? kNever : rules->first, edit == edits_.end() ? kNever : edit->first);
}

Schedule::Edits Schedule::edits(std::int64_t layer, std::int64_t tokens) const {
  Edits found;
  const auto [begin, end] = edits_.equal_range(tokens);
  for (auto entry = begin; entry != end; ++entry) {
    if (entry->second.layer != layer) continue;
    if (entry->second.imported) found.imported = true;
    if (!entry->second.imported) found.scaled.push_back(entry->second.scale);
  }
  return found;
}

std::int64_t Schedule::first_with_other_rules(const Schedule& other) const {
  std::int64_t first = kNever;
  const auto differ = [&](std::int64_t token) {
    const auto mine = rules(token), theirs = other.rules(token);
    const auto plain = [](const Rules& r) { return r == Rules(); };
    if (mine.empty() || theirs.empty()) return !std::ranges::all_of(mine, plain) || !std::ranges::all_of(theirs, plain);
    return !std::ranges::equal(mine, theirs);
  };
  for (const Schedule* schedule : {this, &other}) {
    for (const auto& [token, rules] : schedule->rules_) {
      if (token < first && differ(token)) first = token;
    }
  }
  return first;
}

}  // namespace statescope
