// A device that takes norms into its products and adds to the residual there, on the CPU: every model says the same.
#include "engine/model/model.h"
#include "tests/catch.h"
#include "tests/engine/model/failing_device.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::folded_norms_test {
namespace {

class FoldsNorms final : public FailingDevice {
 public:
  FoldsNorms() : FailingDevice([](std::string_view) {}) {}
  bool folds_norms(std::int64_t) const override { return true; }
};

/// Logits of a prompt read in one pass, then of tokens one by one; `watched`: somebody wants all channels.
std::vector<float> read_by(const std::shared_ptr<Backend>& device, const SmallModel& small, bool watched) {
  Recording recording(*device);
  Observer* const observer = watched ? &recording : nullptr;
  const auto model = Model::load(random_checkpoint(Config(small.config), 1), device);
  const std::vector<std::int32_t> ids = some_ids(13, model->vocab());
  ModelState state = model->start();
  const auto prompt = std::span(ids).first(10);
  std::vector<float> logits = read_logits(*model, state, prompt, {.chunk_size = 4, .prompt_length = 10}, observer);
  for (const std::int32_t id : std::span(ids).subspan(10)) {
    const std::vector<float> next = read_logits(*model, state, {&id, 1}, {.chunk_size = 0, .prompt_length = 10}, observer);
    logits.insert(logits.end(), next.begin(), next.end());
  }
  return logits;
}

}  // namespace

TEST_CASE("norms taken into products change no number, watched or not") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const std::vector<float> plain = read_by(make_cpu_backend(1), small, false);
    for (const bool watched : {false, true}) CHECK(read_by(std::make_shared<FoldsNorms>(), small, watched) == plain);
  }
}

}  // namespace statescope::test::folded_norms_test
