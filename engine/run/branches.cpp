#include "engine/run/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "engine/place_words.h"
#include "engine/run/sampling.h"

namespace statescope {
namespace {

constexpr std::int64_t kComparedLogits = std::int64_t{1} << 22;  // compared at once

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

/// Σ p ln(p / q), p = softmax(a), q = softmax(b)
double divergence(std::span<const float> a, std::span<const float> b) {
  const double log_a = log_sum_exp(a), log_b = log_sum_exp(b);
  double sum = 0;
  for (std::size_t v = 0; v < a.size(); ++v) {
    const double log_p = a[v] - log_a, log_q = b[v] - log_b;
    sum += std::exp(log_p) * (log_p - log_q);
  }
  return std::max(sum, 0.0);  // rounding
}

float largest_distance(std::span<const float> a, std::span<const float> b) {
  float largest = 0;
  for (std::size_t v = 0; v < a.size(); ++v) largest = std::max(largest, std::abs(b[v] - a[v]));
  return largest;
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

const ReplaceToken* replacement(const Intervention& intervention) { return std::get_if<ReplaceToken>(&intervention.change); }

std::int64_t first_concerned(const Intervention& intervention) { return intervention.at + (edits_state(intervention) ? 1 : 0); }

/// Reads on from where the run is until there are `total` tokens: what is left of `ids`, which begin with the prompt, then what the model
/// generates, unless it is replaced.
void read_on(Run& run, std::span<const std::int32_t> ids, std::int64_t prompt, std::int64_t total,
             std::span<const Intervention> interventions, const Run::Progress& progress) {
  bool wanted = true;
  const auto tell = [&](std::int64_t tokens) { return wanted = !progress || progress(tokens); };
  if (run.tokens() < prompt) {
    const auto rest = ids.first(static_cast<std::size_t>(prompt)).subspan(static_cast<std::size_t>(run.tokens()));
    run.read(rest, prompt, tell);
  }
  while (wanted && run.tokens() < total) {
    const bool is_given = run.tokens() < std::ssize(ids);
    std::int32_t id = is_given ? ids[static_cast<std::size_t>(run.tokens())] : most_probable_id(run.logits(run.tokens() - 1));
    for (const Intervention& intervention : interventions) {
      if (const ReplaceToken* other = replacement(intervention); other && intervention.at == run.tokens()) id = other->id;
    }
    run.read({&id, 1}, prompt, tell);
  }
  if (!wanted) throw Cancelled();
}

/// The first token that both have generated, each another one.
std::optional<std::int64_t> parted(const Run& a, const Run& b) {
  for (std::int64_t t = std::max(a.prompt_length(), b.prompt_length()); t < std::min(a.tokens(), b.tokens()); ++t) {
    if (a.ids()[static_cast<std::size_t>(t)] != b.ids()[static_cast<std::size_t>(t)]) return t;
  }
  return {};
}

}  // namespace

RunDifference compare(Run& a, Run& b, std::int64_t from, std::int64_t to) {
  RunDifference difference{.from = from, .logits = {}, .kl = {}, .changed = {}, .parted = parted(a, b)};
  const std::int64_t end = std::min({a.tokens(), b.tokens(), to, difference.parted.value_or(to)}), V = a.model().vocab(),
                     rows = std::max<std::int64_t>(1, kComparedLogits / V);
  for (std::int64_t first = from; first < end; first += rows) {
    const std::int64_t count = std::min(rows, end - first);
    const std::vector<float> of_a = a.logits(first, first + count), of_b = b.logits(first, first + count);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = [&](const std::vector<float>& logits) {
        return std::span(logits).subspan(static_cast<std::size_t>(i * V), static_cast<std::size_t>(V));
      };
      difference.logits.push_back(largest_distance(row(of_a), row(of_b)));
      difference.kl.push_back(divergence(row(of_a), row(of_b)));
      if (!difference.changed && most_probable_id(row(of_a)) != most_probable_id(row(of_b))) difference.changed = first + i;
    }
  }
  return difference;
}

StateDifference compare_states(Run& a, Run& b, std::int64_t layer, std::int64_t token) {
  const LayerState of_a = a.state(layer, token), of_b = b.state(layer, token);
  std::vector<float> difference(of_a.values.size());
  std::ranges::transform(of_b.values, of_a.values, difference.begin(), std::minus());
  return {norm(of_a.values), norm(of_b.values), norm(difference)};
}

Branches::Branches(std::shared_ptr<Run> run) { add(std::move(run)); }

std::int64_t Branches::add(std::shared_ptr<Run> run) {
  if (!branches_.empty() && run->model_ptr() != branches_[0].run->model_ptr())
    throw Error("states can only come from runs of the same model");
  branches_.push_back({-1, {}, std::move(run)});
  child_.push_back(-1);
  return count() - 1;
}

std::int64_t Branches::intervene(std::vector<Intervention> interventions, const Run::Progress& progress) {
  return leave(std::move(interventions), nullptr, progress);
}

/// `before`: as it was made before; null: it is new.
std::int64_t Branches::leave(std::vector<Intervention> interventions, const BranchRecord* before, const Run::Progress& progress) {
  const std::shared_ptr<Run> left = (*this)[current_].run;
  for (const Intervention& intervention : interventions) check(intervention);
  std::vector<Intervention> all = lineage(current_);
  std::int64_t from = first_changed(all, interventions), total = left->tokens();
  // What the branch that is left has edited before is in its states.
  std::erase_if(all, [&](const Intervention& intervention) { return edits_state(intervention) && first_concerned(intervention) <= from; });
  std::ranges::copy_if(interventions, std::back_inserter(all), [&](const Intervention& own) { return !changes_nothing(own); });

  std::vector<std::int32_t> ids = left->ids();
  for (const Intervention& intervention : interventions) {
    if (const ReplaceToken* other = replacement(intervention)) ids[static_cast<std::size_t>(intervention.at)] = other->id;
  }
  ids.resize(static_cast<std::size_t>(left->prompt_length()));
  if (before) {
    ids.insert(ids.end(), before->generated.begin(), before->generated.end());
    from = std::min(from, std::ssize(ids));
    total = std::ssize(ids) + before->to_generate;
  }
  const auto import = [&](std::int64_t run, std::int64_t layer, std::int64_t token) { return imported(run, layer, token); };
  auto run = std::make_shared<Run>(left, from, Schedule(left->model(), all, left->tokens(), import));
  coming_ = {{current_, std::move(interventions), std::move(run)}, total};
  try {
    read_on(*coming_->branch.run, ids, left->prompt_length(), total, all, progress);
  } catch (...) {
    coming_.reset();
    throw;
  }

  branches_.push_back(std::move(coming_->branch));
  coming_.reset();
  child_.push_back(-1);
  child_[static_cast<std::size_t>(current_)] = count() - 1;
  return current_ = count() - 1;
}

std::vector<BranchRecord> Branches::records() const {
  std::vector<BranchRecord> records;
  const auto add = [&](const Branch& branch, std::int64_t tokens) {
    const Run& run = *branch.run;
    const std::int64_t prompt = run.prompt_length();
    BranchRecord record{.parent = branch.parent, .interventions = branch.interventions, .prompt = {}, .generated = {}};
    if (branch.parent < 0) record.prompt.assign(run.ids().begin(), run.ids().begin() + prompt);
    if (run.tokens() > prompt) record.generated.assign(run.ids().begin() + prompt, run.ids().end());
    record.to_generate = tokens - prompt - std::ssize(record.generated);
    records.push_back(std::move(record));
  };
  for (const Branch& branch : std::span(branches_).subspan(1)) add(branch, branch.run->tokens());
  if (coming_) add(coming_->branch, coming_->tokens);
  return records;
}

void Branches::restore(std::span<const BranchRecord> records, const Run::Progress& progress) {
  for (const BranchRecord& record : records) restore(record, progress);
}

void Branches::restore(const BranchRecord& record, const Run::Progress& progress) {
  if (record.parent >= 0) {
    go_to(record.parent);
    leave(record.interventions, &record, progress);
    return;
  }
  const Run& first = *branches_[0].run;
  auto run = std::make_shared<Run>(first.model_ptr(), first.beside());
  std::vector<std::int32_t> ids = record.prompt;
  ids.insert(ids.end(), record.generated.begin(), record.generated.end());
  read_on(*run, ids, std::ssize(record.prompt), std::ssize(ids), {}, progress);
  add(std::move(run));
}

bool Branches::undo() {
  const std::int64_t parent = (*this)[current_].parent;
  if (parent < 0) return false;
  child_[static_cast<std::size_t>(parent)] = current_;
  current_ = parent;
  return true;
}

bool Branches::redo() {
  if (to_redo() < 0) return false;
  current_ = to_redo();
  return true;
}

/// All that holds in a branch, in the order in which it was asked for.
std::vector<Intervention> Branches::lineage(std::int64_t branch) const {
  std::vector<Intervention> all;
  for (; branch >= 0; branch = (*this)[branch].parent)
    all.insert(all.begin(), (*this)[branch].interventions.begin(), (*this)[branch].interventions.end());
  std::erase_if(all, [&](const Intervention& intervention) { return changes_nothing(intervention); });
  return all;
}

MixerState Branches::imported(std::int64_t run, std::int64_t layer, std::int64_t token) const {
  return (*this)[run].run->mixer_state(layer, token + 1);
}

/// Throws Error.
void Branches::check(const Intervention& intervention) const {
  const Run& run = *(*this)[current_].run;
  const std::vector<std::int64_t> layers = changed_layers(intervention, run.model(), run.tokens());
  const auto* import = std::get_if<ImportState>(&intervention.change);
  if (!import) return;
  const auto fail = [&](const std::string& why) { throw Error(fmt::format("{}: {}", to_text(intervention), why)); };
  if (import->run < 0 || import->run >= count()) fail(no_such("run", import->run, count()));
  const std::int64_t token = import->token.value_or(intervention.at), tokens = (*this)[import->run].run->tokens();
  if (token < 0 || token >= tokens) fail(fmt::format("in run {} {}", import->run, no_such("token", token, tokens)));
  for (const std::int64_t layer : layers) {
    if (token != intervention.at && run.model().layout(layer).kv_heads > 0)
      fail(fmt::format("layer {} keeps keys and values of all tokens: they can only be taken from the same token", layer));
  }
}

bool Branches::changes_nothing(const Intervention& intervention) const {
  const auto* scale = std::get_if<ScaleState>(&intervention.change);
  return scale && scale->factor == 1;
}

/// Whether it brings to the current branch what is there. A branch that leaves it earlier may hold something else by then.
bool Branches::imports_own(const Intervention& intervention) const {
  const auto* import = std::get_if<ImportState>(&intervention.change);
  if (!import || import->token.value_or(intervention.at) != intervention.at) return false;
  return import->run == current_ || parting(import->run, current_) > intervention.at + 1;
}

/// The first token that the current branch does not share with one where `own` holds too.
std::int64_t Branches::first_changed(std::span<const Intervention> inherited, std::span<const Intervention> own) const {
  const Run& run = *(*this)[current_].run;
  std::vector<Intervention> all(inherited.begin(), inherited.end());
  all.insert(all.end(), own.begin(), own.end());
  const auto nothing = [](std::int64_t, std::int64_t, std::int64_t) { return MixerState(); };
  const Schedule before(run.model(), inherited, run.tokens(), nothing), after(run.model(), all, run.tokens(), nothing);
  std::int64_t first = std::min(run.tokens(), after.first_with_other_rules(before));
  for (const Intervention& intervention : own) {
    const ReplaceToken* other = replacement(intervention);
    const bool same = other && other->id == run.ids()[static_cast<std::size_t>(intervention.at)];
    if ((other && !same) || (edits_state(intervention) && !changes_nothing(intervention) && !imports_own(intervention)))
      first = std::min(first, first_concerned(intervention));
  }
  return first;
}

std::int64_t Branches::parting(std::int64_t a, std::int64_t b) const {
  if (a == b) return (*this)[a].run->tokens();
  std::int64_t first = std::min((*this)[a].run->tokens(), (*this)[b].run->tokens());
  // A branch is younger than what it left: the younger of the two goes back until they meet.
  while (a != b) {
    std::int64_t& younger = a > b ? a : b;
    if ((*this)[younger].parent < 0) return 0;
    first = std::min(first, (*this)[younger].run->first());
    younger = (*this)[younger].parent;
  }
  return first;
}

RunDifference Branches::compare(std::int64_t a, std::int64_t b) const {
  return statescope::compare(*(*this)[a].run, *(*this)[b].run, parting(a, b));
}

}  // namespace statescope
