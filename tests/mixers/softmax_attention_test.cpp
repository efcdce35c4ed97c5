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

namespace {

/// What a Transformer puts out, whose weights are the same with any keys.
std::vector<float> read_with(const json& keys) {
  MixerRig rig(Editable(small_config("transformer", {{"num_kv_heads", 2}})).set(keys));
  return rig.read(rig.some_input(50)).y;
}

}  // namespace

TEST_CASE("softmax attention: patterns that are a window, or everything (spec §18.5)") {
  const std::vector<float> all = read_with(json::object());
  CHECK(difference(read_with(pattern("longformer", {{"window", 9}})), read_with({{"window_size", 9}})) < 1e-6);
  CHECK(difference(read_with(pattern("longformer", {{"window", 9}})), all) > 1e-2);
  CHECK(difference(read_with(pattern("longformer", {{"window", 1}, {"global_tokens", {0, 49}}})), all) > 1e-2);
  CHECK(difference(read_with(pattern("bigbird", {{"block_size", 8}, {"window_blocks", 7}})), all) < 1e-6);
  CHECK(difference(read_with(pattern("blocksparse", {{"block_size", 8}, {"local_blocks", 7}, {"vert_stride", 100}})), all) < 1e-6);
  CHECK(difference(read_with(pattern("blocksparse", {{"block_size", 8}, {"local_blocks", 1}, {"vert_stride", 1}})), all) < 1e-6);
}

TEST_CASE("softmax attention: an indexer that may choose every token leaves latent attention as it is (spec §18.2)") {
  const Editable indexed(indexed_config({{"index_topk", 60}}));
  Editable plain(*indexed.checkpoint());
  plain.erase("indexer.wq_b.weight").erase("indexer.wk.weight").erase("indexer.weights_proj.weight");
  plain.erase("indexer.k_norm.weight").erase("indexer.k_norm.bias");
  plain.set({{"model_type", "deepseek_v3"}, {"index_n_heads", nullptr}, {"index_head_dim", nullptr}, {"index_topk", nullptr}});
  const std::vector<std::int32_t> ids = some_ids(50);
  const std::vector<float> all = logits_of(*plain.model(), ids);
  CHECK(difference(logits_of(*indexed.model(), ids), all) < 1e-6);
  CHECK(difference(logits_of(*Editable(*indexed.checkpoint()).set({{"index_topk", 7}}).model(), ids), all) > 1e-3);
}

TEST_CASE("softmax attention: of a token latent attention keeps its latent and the shared key, nothing of a head (spec §17.4)") {
  for (const json& config : {deepseek_config(), indexed_config()}) {
    MixerRig rig{Editable(config)};
    const Pass pass = rig.read(rig.some_input(50));
    CHECK(pass.state.kv.k.row_size() == 16 + 8);
    CHECK(!pass.state.kv.v);
    CHECK(pass["k"].shape == Shape{50, 2, 20});
    CHECK(pass["v"].shape == Shape{50, 2, 12});
    const std::span<const float> kept(pass.state.kv.k.f32(49) + 16, 8);
    for (std::int64_t head = 0; head < 2; ++head)
      CHECK(difference(kept, pass["k"].row(49).subspan(static_cast<std::size_t>(head * 20), 8)) == 0);
  }
}

TEST_CASE("softmax attention: query heads of a group of NSA may change places with their rows (spec §18.3)") {
  const json config =
      small_config("nsa", {{"num_kv_heads", 2}, {"head_dim", 12}, {"block_size", 4}, {"block_counts", 4}, {"window_size", 7}});
  Editable changed(config);
  // Heads 0 and 1 of four read the first head of keys.
  const auto swap_rows = [&](const std::string& name, std::size_t rows, std::size_t width) {
    const std::span<float> W = changed.floats(name);
    std::swap_ranges(W.begin(), W.begin() + static_cast<std::ptrdiff_t>(rows * width),
                     W.begin() + static_cast<std::ptrdiff_t>(rows * width));
  };
  swap_rows("model.layers.0.attn.q_proj.weight", 12, 64);
  swap_rows("model.layers.0.attn.g_proj.weight", 3, 64);
  const std::span<float> o = changed.floats("model.layers.0.attn.o_proj.weight");
  for (std::ptrdiff_t row = 0; row < 64; ++row)
    std::swap_ranges(o.begin() + row * 48, o.begin() + row * 48 + 12, o.begin() + row * 48 + 12);
  MixerRig before{Editable(config)}, after{changed};
  const std::vector<float> x = before.some_input(50);
  CHECK(difference(after.read(x).y, before.read(x).y) < 1e-5);
}

}  // namespace statescope::test::softmax_attention_test
