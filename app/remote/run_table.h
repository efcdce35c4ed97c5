// The runs that both sides know by number, and how they travel: each once, as it differs from the one before it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/remote/messages.h"
#include "engine/session/session.h"
#include "engine/snapshot.h"

namespace statescope {

/// The engine's side. Of one thread at a time.
class TellingRuns {
 public:
  /// Its number; appends what the other side has to be told first.
  std::uint64_t number_of(const std::shared_ptr<const RunInfo>& run, std::vector<remote::Event>& before);
  /// These are not forgotten until others are held.
  void hold(std::vector<std::uint64_t> runs) { held_ = {runs.begin(), runs.end()}; }
  /// Null: not known, or forgotten.
  std::shared_ptr<const RunInfo> run(std::uint64_t number) const;

  /// Appends what makes the layer's routing known to the other side.
  void tell_routing(std::int64_t layer, bool beside, const std::shared_ptr<const Routing>& routing, std::vector<remote::Event>& before);

 private:
  struct Known {
    std::shared_ptr<const RunInfo> run;
    std::string head;  // packed, without tokens
  };
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Known> runs_;
  std::set<std::uint64_t> held_;
  std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const Routing>> routings_;
};

/// The client's side. Throws Error for what does not fit together.
class ToldRuns {
 public:
  void define(const remote::RunDefined& message);
  void define(const remote::RoutingDefined& message);
  /// Throws Error where it was not told of.
  std::shared_ptr<const RunInfo> run(std::uint64_t number) const;
  /// 0: not one of these.
  std::uint64_t number_of(const std::shared_ptr<const RunInfo>& run) const;
  /// With its run and its routing.
  std::shared_ptr<const Snapshot> snapshot(const remote::Shown& message) const;
  /// With its runs; its checkpoint is called as the engine does.
  std::shared_ptr<BranchTree> tree(const remote::BranchesChanged& message) const;
  void forget_all();

 private:
  struct Known {
    std::shared_ptr<const RunInfo> run;
    std::string head;
  };
  std::map<std::uint64_t, Known> runs_;
  std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const Routing>> routings_;
};

}  // namespace statescope
