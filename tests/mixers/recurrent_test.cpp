// What distinguishes MiniMax's, RWKV's and Zamba's layers (spec §17.5, §17.7, §17.10).
#include <cmath>

#include "tests/mixers/mixer_rig.h"

namespace statescope::test::recurrent_test {
namespace {

constexpr std::int64_t kTokens = 24;

/// Of one head, in double precision: S ← diag(α) S − eᵀ (p S) + kᵀ v from the channels of a pass, p and e only where keys erase.
std::vector<double> state_from_channels(const Pass& pass, std::int64_t h, std::int64_t K, std::int64_t V) {
  std::vector<double> S(static_cast<std::size_t>(K * V)), erased(static_cast<std::size_t>(V));
  const bool erases = pass.channels.contains("erase_key");
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const auto of = [&](const char* name, std::int64_t width, std::int64_t i) {
      return double{pass[name].row(t)[static_cast<std::size_t>(h * width + i)]};
    };
    std::fill(erased.begin(), erased.end(), 0.0);
    for (std::int64_t i = 0; erases && i < K * V; ++i)
      erased[static_cast<std::size_t>(i % V)] += of("erase_key", K, i / V) * S[static_cast<std::size_t>(i)];
    for (std::int64_t i = 0; i < K * V; ++i) {
      const std::int64_t r = i / V, c = i % V;
      double& cell = S[static_cast<std::size_t>(i)];
      cell = std::exp(of("log_decay", K, r)) * cell + of("k", K, r) * of("v", V, c);
      if (erases) cell -= of("erase_key", K, r) * of("erase_rate", K, r) * erased[static_cast<std::size_t>(c)];
    }
  }
  return S;
}

double state_error(const MixerRig& rig, const Pass& pass) {
  const Shape& shape = rig.layout.memory[0].shape;
  const std::vector<float> found = values_of(pass.state.memory[0]);
  std::vector<float> expected;
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    for (const double cell : state_from_channels(pass, h, shape[2], shape[3])) expected.push_back(static_cast<float>(cell));
  }
  return difference(found, expected);
}

}  // namespace

TEST_CASE("lightning attention: rates fall with the head and with depth, and the last layer forgets next to nothing") {
  const Editable model(
      minimax_config("minimax", {{"num_hidden_layers", 5}, {"layer_types", json(std::vector<std::string>(5, "linear_attention"))}}));
  for (const std::int64_t layer : {0, 2, 4}) {
    MixerRig rig(model, layer);
    const Pass pass = rig.read(rig.some_input(3));
    for (std::size_t h = 0; h < 4; ++h) {
      const double rate = std::exp2(-2.0 * static_cast<double>(h + 1)) * (1 - static_cast<double>(layer) / (4 + 1e-5) + 1e-5);
      CHECK(pass["log_decay"].row(2)[h] == Approx(-rate).epsilon(1e-5));
    }
  }
}

TEST_CASE("RWKV: the state is what the channels say, with what is taken away and without") {
  MixerRig seventh(Editable(rwkv_config("rwkv7")), 1), sixth(Editable(rwkv_config("rwkv6")), 1);
  CHECK(state_error(seventh, seventh.read(seventh.some_input(kTokens))) < 1e-5);
  CHECK(state_error(sixth, sixth.read(sixth.some_input(kTokens))) < 1e-5);
  // With a = 0 nothing is taken away.
  Editable kept(rwkv_config("rwkv7"));
  kept.fill("a_lora.lora.2.weight", 0).fill("a_lora.lora.2.bias", -200);
  MixerRig rig(kept, 1);
  Pass pass = rig.read(rig.some_input(kTokens));
  CHECK(std::ranges::all_of(pass["erase_rate"].floats, [](float a) { return a == 0; }));
  pass.channels.erase("erase_key");
  CHECK(state_error(rig, pass) < 1e-5);
}

TEST_CASE("RWKV-7: values behind layer 0 lie between their own and those of layer 0") {
  Editable own(rwkv_config("rwkv7")), first(rwkv_config("rwkv7"));
  own.fill("v_lora.lora.2.weight", 0).fill("v_lora.lora.2.bias", -200);
  first.fill("v_lora.lora.2.weight", 0).fill("v_lora.lora.2.bias", 200);
  MixerRig alone(own, 1), mixed(first, 1);
  const std::int64_t D = alone.hidden();
  const std::vector<float> x = alone.some_input(kTokens);
  std::vector<float> other = x;
  for (std::int64_t i = 0; i < std::ssize(other); ++i) {
    if (i % (2 * D) >= D) other[static_cast<std::size_t>(i)] += 1;
  }
  CHECK(alone.read(x).y == alone.read(other).y);
  const Pass pass = mixed.read(x);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const std::span<const float> expected = std::span(x).subspan(static_cast<std::size_t>((2 * t + 1) * D), static_cast<std::size_t>(D));
    CHECK(difference(pass["v"].row(t), expected) < 1e-6);
  }
}

TEST_CASE("RWKV-6: a token reads before it writes, and itself through its bonus alone") {
  Editable edited(rwkv_config("rwkv6"));
  edited.fill("attn.bonus", 0).fill("attn.g_norm.bias", 0);
  MixerRig without(edited);
  const std::vector<float> x = without.some_input(2);
  const Pass silent = without.read(x);
  CHECK(std::ranges::all_of(silent["readout"].row(0), [](float read) { return read == 0; }));
  CHECK(std::ranges::any_of(silent["readout"].row(1), [](float read) { return read != 0; }));
  MixerRig itself(edited.fill("attn.bonus", 1));
  CHECK(std::ranges::any_of(itself.read(x)["readout"].row(0), [](float read) { return read != 0; }));
}

TEST_CASE("Zamba: where a layer takes nothing from the shared block, the block does not matter (spec §17.7)") {
  const std::vector<std::int32_t> ids = some_ids(20);
  for (const char* family : {"zamba", "zamba2"}) {
    INFO(family);
    Editable model(zamba_config(family));
    const std::vector<float> truth = logits_of(*model.model(), ids);
    model.fill("pre_ff_layernorm.weight", 0.5F);
    CHECK(logits_of(*model.model(), ids) != truth);
    model.fill(".linear.weight", 0);
    const std::vector<float> bare = logits_of(*model.model(), ids);
    model.fill("pre_ff_layernorm.weight", 2);
    CHECK(logits_of(*model.model(), ids) == bare);
  }
}

}  // namespace statescope::test::recurrent_test
