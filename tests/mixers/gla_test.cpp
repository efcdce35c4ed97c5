// GLA's row-sparse update and clamp (spec §3.4, §5), by hand.
#include "tests/mixers/mixer_rig.h"

namespace statescope::test::gla_test {

TEST_CASE("row-sparse: the k largest rows are written, with a softmax over them, and only they decay (SSE eq. 7, 8)") {
  const Editable plain(small_config("gla", {{"expand_k", 1.0}}));
  Editable sparse(*plain.checkpoint()), decaying(*plain.checkpoint());
  sparse.set({{"row_sparse", {{"topk", 3}}}});
  decaying.set({{"row_sparse", {{"topk", 3}, {"skip_decay", false}}}});
  MixerRig base_rig(plain), rig(sparse), decaying_rig(decaying);
  const std::int64_t T = 25;
  const std::vector<float> x = rig.some_input(T);
  const Pass base = base_rig.read(x), pass = rig.read(x), all_decay = decaying_rig.read(x);
  CHECK(all_decay["k"].floats == pass["k"].floats);
  CHECK(all_decay["log_decay"].floats == base["log_decay"].floats);
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::size_t h = 0; h < 4; ++h) {
      const auto head = [&](const Pass& p, const char* name) { return p[name].row(t).subspan(h * 16, 16); };
      std::vector<float> largest(head(base, "k").begin(), head(base, "k").end());
      std::sort(largest.rbegin(), largest.rend());
      const double sum =
          std::exp(static_cast<double>(largest[0])) + std::exp(static_cast<double>(largest[1])) + std::exp(static_cast<double>(largest[2]));
      for (std::size_t r = 0; r < 16; ++r) {
        const float z = head(base, "k")[r];
        const bool written = z >= largest[2];
        CHECK(head(pass, "k")[r] == Approx(written ? std::exp(static_cast<double>(z)) / sum : 0));
        CHECK(head(pass, "log_decay")[r] == (written ? head(base, "log_decay")[r] : 0));
      }
    }
  }
}

TEST_CASE("GLA: clamp_min bounds the decay from below") {
  const Editable plain(small_config("gla"));
  Editable clamped(*plain.checkpoint());
  clamped.set({{"clamp_min", -0.01}});
  MixerRig a(plain), b(clamped);
  const std::vector<float> x = a.some_input(10);
  std::vector<float> expected = a.read(x)["log_decay"].floats;
  CHECK(*std::min_element(expected.begin(), expected.end()) < -0.01F);
  for (float& value : expected) value = std::max(value, -0.01F);
  CHECK(b.read(x)["log_decay"].floats == expected);
}

}  // namespace statescope::test::gla_test
