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

TEST_CASE("softmax attention: MoBA that may choose every block sees every token (spec §18.4)") {
  const auto read = [](std::int64_t block, std::int64_t topk) {
    MixerRig rig(Editable(small_config("moba", {{"moba_chunk_size", block}, {"moba_topk", topk}})));
    return rig.read(rig.some_input(50)).y;
  };
  const std::vector<float> all = read(64, 4);
  CHECK(difference(read(7, 8), all) < 1e-5);
  CHECK(difference(read(7, 1), all) < 1e-5);
  CHECK(difference(read(7, 3), all) > 1e-2);
}

}  // namespace statescope::test::softmax_attention_test
