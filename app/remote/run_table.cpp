#include "app/remote/run_table.h"

#include <algorithm>
#include <string_view>

#include "engine/remote/wire.h"

namespace statescope {
namespace {

using remote::pack;
using remote::unpack;
using remote::WireError;

constexpr std::size_t kMost = 64;  // runs that are known beside those of the tree

bool same(const TokenInfo& a, const TokenInfo& b) { return a.id == b.id && a.text == b.text; }

RunInfo without_tokens(const RunInfo& run) {
  return {.model = run.model,
          .tokens = {},
          .spans = run.spans,
          .prompt_length = run.prompt_length,
          .expected = run.expected,
          .branch = run.branch,
          .recording = run.recording};
}

std::size_t same_first(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}
std::size_t same_last(std::string_view a, std::string_view b, std::size_t most) {
  std::size_t count = 0;
  while (count < most && a[a.size() - 1 - count] == b[b.size() - 1 - count]) ++count;
  return count;
}

/// Views look no further than the run says.
void check_fits(const Snapshot& snapshot, const RunInfo& run) {
  const bool there = snapshot.layer >= 0 && snapshot.layer < std::ssize(run.model.layers) && snapshot.token >= 0 &&
                     snapshot.token < std::ssize(run.tokens) && snapshot.head >= 0;
  if (!there) throw WireError("a snapshot is of a place that its run does not have");
  const LayerInfo& layer = run.model.layers[static_cast<std::size_t>(snapshot.layer)];
  for (const HeadState* state : {&snapshot.before, &snapshot.state}) {
    const auto cells = static_cast<std::uint64_t>(state->values.size());
    const bool is_empty = cells == 0 && state->slots == 0;
    const bool fits = layer.has_state() && state->slots == layer.slots() && state->rows == layer.rows && state->columns == layer.columns &&
                      cells == static_cast<std::uint64_t>(state->slots * state->rows * state->columns);
    if (!is_empty && !fits) throw WireError("a snapshot's state is not of its layer's size");
  }
  if (snapshot.routing && (snapshot.routing->partitions != layer.partitions || snapshot.routing->tokens() < std::ssize(run.tokens)))
    throw WireError("a snapshot's routing is not of its layer's size");
}

}  // namespace

std::uint64_t TellingRuns::number_of(const std::shared_ptr<const RunInfo>& run, std::vector<remote::Event>& before) {
  const auto known = std::ranges::find_if(runs_, [&](const auto& one) { return one.second.run == run; });
  if (known != runs_.end()) return known->first;
  std::string head = pack(without_tokens(*run));
  remote::RunDefined told{.run = ++last_};
  std::vector<TokenInfo> rest = run->tokens;
  if (!runs_.empty()) {
    const auto& [base, other] = *runs_.rbegin();
    told.base = base;
    told.first = same_first(head, other.head);
    told.last = same_last(head, other.head, std::min(head.size(), other.head.size()) - told.first);
    const auto differs = std::ranges::mismatch(run->tokens, other.run->tokens, same).in1;
    told.same_tokens = static_cast<std::uint64_t>(differs - run->tokens.begin());
    rest = {differs, run->tokens.end()};
  }
  told.middle = head.substr(told.first, head.size() - told.first - told.last);
  told.tokens = pack(RunInfo{.model = {}, .tokens = std::move(rest), .spans = {}, .expected = {}, .branch = {}, .recording = {}});
  for (auto one = runs_.begin(); runs_.size() >= kMost + held_.size() && one != std::prev(runs_.end());) {
    const bool stays = held_.contains(one->first);
    if (!stays) told.forgotten.push_back(one->first);
    one = stays ? std::next(one) : runs_.erase(one);
  }
  runs_[told.run] = {run, std::move(head)};
  const std::uint64_t number = told.run;
  before.push_back({.told = std::move(told)});
  return number;
}

std::shared_ptr<const RunInfo> TellingRuns::run(std::uint64_t number) const {
  const auto known = runs_.find(number);
  return known == runs_.end() ? nullptr : known->second.run;
}

void TellingRuns::tell_routing(std::int64_t layer, bool beside, const std::shared_ptr<const Routing>& routing,
                               std::vector<remote::Event>& before) {
  std::shared_ptr<const Routing>& known = routings_[{layer, beside}];
  if (known == routing) return;
  const std::int64_t n = routing->partitions;
  std::int64_t same_tokens = 0;
  if (known && known->partitions == n) {
    const auto gates = std::ranges::mismatch(routing->gate, known->gate).in1 - routing->gate.begin();
    const auto choices = std::ranges::mismatch(routing->selected, known->selected).in1 - routing->selected.begin();
    same_tokens = n > 0 ? std::min(gates, choices) / n : 0;
    if (same_tokens == routing->tokens() && same_tokens == known->tokens()) return void(known = routing);
  }
  const auto from = static_cast<std::ptrdiff_t>(same_tokens * n);
  Routing rest{.partitions = n,
               .gate = {routing->gate.begin() + from, routing->gate.end()},
               .selected = {routing->selected.begin() + from, routing->selected.end()}};
  before.push_back({.told = remote::RoutingDefined{layer, beside, same_tokens, pack(rest)}});
  known = routing;
}

void ToldRuns::define(const remote::RunDefined& message) {
  std::string head = message.middle;
  std::vector<TokenInfo> tokens;
  if (message.base > 0) {
    const auto known = runs_.find(message.base);
    if (known == runs_.end()) throw WireError("a run differs from one that is not known");
    const Known& base = known->second;
    const std::size_t size = base.head.size();
    if (message.first > size || message.last > size || message.same_tokens > base.run->tokens.size())
      throw WireError("a run has more in common with another one than there is");
    head = base.head.substr(0, message.first) + head + base.head.substr(size - message.last);
    tokens.assign(base.run->tokens.begin(), base.run->tokens.begin() + static_cast<std::ptrdiff_t>(message.same_tokens));
  }
  auto run = std::make_shared<RunInfo>(unpack<RunInfo>(head));
  RunInfo rest = unpack<RunInfo>(message.tokens);
  std::ranges::move(rest.tokens, std::back_inserter(tokens));
  run->tokens = std::move(tokens);
  if (run->prompt_length < 0) throw WireError("a run's prompt has a negative length");
  for (const std::uint64_t number : message.forgotten) {
    if (number != message.run) runs_.erase(number);
  }
  runs_[message.run] = {std::move(run), std::move(head)};
}

void ToldRuns::define(const remote::RoutingDefined& message) {
  const auto rest = unpack<Routing>(message.rest);
  std::shared_ptr<const Routing>& known = routings_[{message.layer, message.beside}];
  auto routing = std::make_shared<Routing>(Routing{.partitions = rest.partitions, .gate = {}, .selected = {}});
  if (message.same_tokens != 0) {
    if (!known || known->partitions != rest.partitions || message.same_tokens < 0 || message.same_tokens > known->tokens())
      throw WireError("a layer's routing has more in common with the one before than there is");
    const auto cells = static_cast<std::ptrdiff_t>(message.same_tokens * rest.partitions);
    routing->gate.assign(known->gate.begin(), known->gate.begin() + cells);
    routing->selected.assign(known->selected.begin(), known->selected.begin() + cells);
  }
  routing->gate.insert(routing->gate.end(), rest.gate.begin(), rest.gate.end());
  routing->selected.insert(routing->selected.end(), rest.selected.begin(), rest.selected.end());
  known = std::move(routing);
}

std::shared_ptr<const RunInfo> ToldRuns::run(std::uint64_t number) const {
  const auto known = runs_.find(number);
  if (known == runs_.end()) throw WireError("a run is named that is not known");
  return known->second.run;
}

std::uint64_t ToldRuns::number_of(const std::shared_ptr<const RunInfo>& run) const {
  const auto known = std::ranges::find_if(runs_, [&](const auto& one) { return one.second.run == run; });
  return known == runs_.end() ? 0 : known->first;
}

std::shared_ptr<const Snapshot> ToldRuns::snapshot(const remote::Shown& message) const {
  auto snapshot = std::make_shared<Snapshot>(unpack<Snapshot>(message.snapshot));
  snapshot->run = run(message.run);
  if (message.routed) {
    const auto known = routings_.find({snapshot->layer, message.beside});
    if (known == routings_.end()) throw WireError("a snapshot's routing is not known");
    snapshot->routing = known->second;
  }
  check_fits(*snapshot, *snapshot->run);
  return snapshot;
}

std::shared_ptr<BranchTree> ToldRuns::tree(const remote::BranchesChanged& message) const {
  auto tree = std::make_shared<BranchTree>(unpack<BranchTree>(message.tree));
  tree->runs.clear();
  for (const std::uint64_t number : message.runs) tree->runs.push_back(number == 0 ? nullptr : run(number));
  const auto branches = std::ssize(tree->runs);
  const bool fits = tree->current >= 0 && tree->current < branches && tree->redo >= -1 && tree->redo < branches;
  const bool parents = std::ranges::all_of(tree->runs, [&](const auto& one) { return !one || one->branch.parent < branches; });
  if (!fits || !parents) throw WireError("a tree of branches names one that it does not have");
  return tree;
}

void ToldRuns::forget_all() {
  runs_.clear();
  routings_.clear();
}

}  // namespace statescope
