// A run of a small random model, ready to be asked about.
#pragma once

#include "engine/analysis/evidence.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test {

struct SmallEvidence {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<Model> model;
  std::shared_ptr<Reading> reading;
  FairMutex mutex;
  Evidence evidence;

  explicit SmallEvidence(const json& config, std::int64_t tokens = 37) : SmallEvidence(random_checkpoint(Config(config), 5), tokens) {}
  SmallEvidence(std::shared_ptr<const Checkpoint> checkpoint_, std::int64_t tokens)
      : checkpoint(std::move(checkpoint_)),
        model(Model::load(checkpoint, make_cpu_backend(1))),
        reading(std::make_shared<Reading>(model, make_tokenizer(*checkpoint, model->vocab()), PromptInput{.ids = some_ids(tokens)})),
        evidence(reading, mutex) {}
};

}  // namespace statescope::test
