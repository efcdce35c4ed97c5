// A branch of a small random model's run, ready to be asked about.
#pragma once

#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test {

/// Run 1, whose states may be imported, is four tokens shorter.
struct BranchEvidence {
  std::shared_ptr<Model> model;
  Branches tree;
  FairMutex mutex;
  std::shared_ptr<Reading> reading;
  Evidence evidence;

  BranchEvidence(const json& config, const std::vector<std::string>& lines, std::int64_t tokens)
      : model(Model::load(random_checkpoint(Config(config), 5), make_cpu_backend(1))),
        tree(intervened(model, lines, tokens)),
        reading(std::make_shared<Reading>(tree[tree.current()].run, make_tokenizer(model->checkpoint(), model->vocab()),
                                          PromptInput{.ids = some_ids(tokens)},
                                          BranchInfo{.number = 1, .parent = 0, .from = 12, .interventions = lines})),
        evidence(reading, mutex) {}

  static Branches intervened(const std::shared_ptr<Model>& model, const std::vector<std::string>& lines, std::int64_t tokens) {
    const auto read = [&](std::int64_t count) {
      auto run = std::make_shared<Run>(model);
      run->read(some_ids(count), count);
      return run;
    };
    Branches tree(read(tokens));
    tree.add(read(tokens - 4));
    std::vector<Intervention> interventions;
    for (const std::string& line : lines) interventions.push_back(parse_intervention(line));
    tree.intervene(std::move(interventions));
    return tree;
  }
};

}  // namespace statescope::test
