// A prompt that is being read.
#include "engine/run/reading.h"

#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::reading_test {

TEST_CASE("reading: how much has been read is told as a part of the prompt") {
  const auto checkpoint = open_checkpoint(golden_root() / "gla");
  const auto model = Model::load(checkpoint, make_cpu_backend(1));
  PromptInput prompt;
  prompt.ids = some_ids(12);
  std::vector<double> heard;
  const auto hear = [&](double fraction) { return heard.push_back(fraction), true; };
  const Reading reading(model, make_tokenizer(*checkpoint, model->vocab()), prompt, hear, {.tokens_at_once = 3});
  CHECK(heard == std::vector{0.25, 0.5, 0.75, 1.0});
}

}  // namespace statescope::test::reading_test
