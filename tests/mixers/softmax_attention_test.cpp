// The window of softmax attention, seen from outside.
#include "tests/mixers/mixer_rig.h"

namespace statescope::test::softmax_attention_test {

TEST_CASE("softmax attention: a token outside the window is forgotten, the last one inside is not") {
  const std::int64_t window = 9;
  MixerRig rig(Editable(small_config("transformer", {{"window_size", window}})));
  std::vector<float> x = rig.some_input(20);
  const Pass before = rig.read(x);
  for (std::size_t i = 0; i < 64; ++i) x[i] *= -1;
  const Pass after = rig.read(x);
  for (std::int64_t t = 0; t < 20; ++t) {
    INFO("token " << t);
    const auto row = [&](const Pass& pass) { return std::span(pass.y).subspan(static_cast<std::size_t>(t * 64), 64); };
    CHECK((difference(row(after), row(before)) < 1e-6) == (t >= window));
  }
}

}  // namespace statescope::test::softmax_attention_test
