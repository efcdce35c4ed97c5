// What one branch of a run has that another has not, as plain data: logits, states, answer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/branches.h"
#include "engine/snapshot.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

struct BranchReport {
  std::int64_t before = 0, after = 0;                 // branches
  std::vector<Intervention> only_before, only_after;  // that hold in one of them alone
  std::string answer_before, answer_after;            // empty: nothing was generated
  std::string expected;                               // empty: unknown
  RunDifference difference;                           // from where they part
  struct States {
    std::int64_t token;
    std::vector<StateDifference> layers;
  };
  std::vector<States> states;                               // after the tokens of the interventions, and after the last that both have
  std::vector<std::int64_t> stateful;                       // layers that have a state
  std::vector<std::string> texts;                           // of the tokens of `before`
  std::optional<Prediction> changed_before, changed_after;  // what is most probable where another token is
};

/// Throws Error.
BranchReport report_branches(const Branches& tree, std::int64_t before, std::int64_t after, const Tokenizer& tokenizer,
                             const std::string& expected);
/// "interventions", "interventions_before" (where there are any), "answer", "first_token", "first_changed_prediction", "texts_part",
/// "kl", "logit_difference", "states".
nlohmann::json to_json(const BranchReport& report);
/// To standard output, without what the branches are.
void print(const BranchReport& report);

}  // namespace statescope
