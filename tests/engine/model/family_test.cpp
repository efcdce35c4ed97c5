// From a checkpoint's tensors to a model: every family in chunks and steps, old forms made regular (spec §14), and what is said when a
// tensor is amiss.
#include "engine/model/family.h"

#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::family_test {
namespace {

const std::vector<std::int32_t> kIds = some_ids(20);

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

bool noted(const Model& model, const std::string& part) {
  return std::any_of(model.notes().begin(), model.notes().end(), [&](const std::string& note) { return contains(note, part); });
}

/// The two forms must agree to the bit: they are the same weights.
void check_same(const Editable& regular, const Editable& other) {
  CHECK(logits_of(*regular.model(), kIds) == logits_of(*other.model(), kIds));
}

}  // namespace

TEST_CASE("every family: a prompt in chunks, in steps or in parts has the same logits") {
  const std::vector<std::int32_t> ids = some_ids(63);
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const std::shared_ptr<Model> model = Editable(small.config).model();
    const std::vector<float> whole = logits_of(*model, ids, 64);
    CHECK(relative_error(logits_of(*model, ids, 7), whole) < 2e-4);
    ModelState state = model->start();
    std::vector<float> parts = read_logits(*model, state, std::span(ids).first(31), {.chunk_size = 64, .prompt_length = 63});
    for (std::size_t t = 31; t < 63; ++t) {
      const std::vector<float> row = read_logits(*model, state, std::span(ids).subspan(t, 1), {.chunk_size = 0, .prompt_length = 63});
      parts.insert(parts.end(), row.begin(), row.end());
    }
    CHECK(relative_error(parts, whole) < 2e-4);
    CHECK(state.position == 63);
    CHECK(model->info().layers.size() == static_cast<std::size_t>(model->layers()));
  }
}

TEST_CASE("every family: outputs that nobody wants are left out, and nothing else changes") {
  const std::vector<std::int32_t> ids = some_ids(63);
  for (const SmallModel& small : small_models()) {
    const std::shared_ptr<Model> model = Editable(small.config).model();
    const auto V = static_cast<std::size_t>(model->vocab());
    const std::vector<float> whole = logits_of(*model, ids, 64);
    for (const std::int64_t outputs : {0, 1, 5, 30, 99}) {
      INFO(small.name << ", " << outputs << " of 40 tokens");
      ModelState state = model->start();
      const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(outputs, 40));
      const std::vector<float> first = read_logits(*model, state, std::span(ids).first(40), {.prompt_length = 63, .outputs = outputs});
      const std::vector<float> rest = read_logits(*model, state, std::span(ids).subspan(40), {.prompt_length = 63});
      CHECK(relative_error(std::span(first).last(wanted * V), std::span(whole).subspan((40 - wanted) * V, wanted * V)) < 2e-4);
      CHECK(relative_error(rest, std::span(whole).subspan(40 * V)) < 2e-4);
      CHECK(state.position == 63);
    }
  }
}

TEST_CASE("logits asked for with a pass are those of its last rows") {
  const std::vector<std::int32_t> ids = some_ids(41);
  for (const SmallModel& small : small_models()) {
    const std::shared_ptr<Model> model = Editable(small.config).model();
    const auto V = static_cast<std::size_t>(model->vocab());
    ModelState apart = model->start(), together = model->start();
    const auto check_next = [&](std::size_t first, std::size_t count, std::int64_t chunk_size, std::int64_t rows) {
      INFO(small.name << ", " << rows << " of " << count << " tokens");
      const std::span<const std::int32_t> next = std::span(ids).subspan(first, count);
      ForwardOptions options{.chunk_size = chunk_size, .prompt_length = 41, .outputs = rows};
      const std::vector<float> truth = read_logits(*model, apart, next, options);
      std::vector<float> hidden(count * static_cast<std::size_t>(model->hidden())),
          found(static_cast<std::size_t>(rows) * V, std::nanf(""));
      options.logits = Tensor(found.data(), DType::f32, {rows, model->vocab()});
      model->forward(together, next, options, Tensor(hidden.data(), DType::f32, {static_cast<std::int64_t>(count), model->hidden()}));
      CHECK(relative_error(found, std::span(truth).last(found.size())) < 1e-5);
    };
    check_next(0, 40, 64, 40);
    check_next(0, 40, 64, 3);
    check_next(0, 40, 64, 1);
    check_next(40, 1, 0, 1);
  }
}

TEST_CASE("legacy: gate and up in one matrix") {
  const Editable regular(small_config("gla"));
  Editable fused(*regular.checkpoint());
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    const std::string gate = layer + std::string("mlp.gate_proj.weight"), up = layer + std::string("mlp.up_proj.weight");
    const std::span<const float> first = fused.floats(gate), last = fused.floats(up);
    std::vector<float> both(first.begin(), first.end());
    both.insert(both.end(), last.begin(), last.end());
    fused.erase(gate).erase(up).add(gate, {48, 64}, both);
  }
  check_same(regular, fused);
  CHECK(noted(*fused.model(), "gate and up"));
}

TEST_CASE("legacy: norms inside the sublayers, and the old eps of the MLP's") {
  for (const char* family : {"gla", "retnet", "delta_net", "transformer", "gsa"}) {
    INFO(family);
    const Editable regular(small_config(family, {{"norm_eps", 1e-5}}));
    Editable old(*regular.checkpoint());
    old.rename(".attn_norm.weight", ".attn.norm.weight").rename(".mlp_norm.weight", ".mlp.norm.weight").set({{"norm_first", true}});
    check_same(regular, old);
    CHECK(noted(*old.model(), "inside the sublayer"));
    CHECK(plan_model(Config(old.config())).ffn_norm_eps == 1e-5F);
    Editable small_eps(*old.checkpoint());
    small_eps.set({{"norm_eps", 1e-6}});
    CHECK(small_eps.model()->plan().ffn_norm_eps == 1e-5F);
  }
}

TEST_CASE("legacy: renamed embeddings, stray buffers, an unused D") {
  const Editable gla(small_config("gla")), mamba(small_config("mamba2", {{"head_dim", 16}, {"state_size", 16}}));
  const Editable gdn(small_config("gated_deltanet", {{"head_dim", 16}})), retnet(small_config("retnet"));
  Editable old_gla(*gla.checkpoint()), old_mamba(*mamba.checkpoint()), old_gdn(*gdn.checkpoint()), old_retnet(*retnet.checkpoint());
  check_same(gla, old_gla.rename("model.embeddings", "model.embed_tokens"));
  CHECK(noted(*old_gla.model(), "embed_tokens"));
  check_same(mamba, old_mamba.rename("backbone.embeddings", "backbone.embedding"));
  CHECK(noted(*old_mamba.model(), "backbone.embedding"));
  check_same(gdn, old_gdn.add("model.layers.1.attn.D", {4}, {1, 2, 3, 4}));
  check_same(retnet, old_retnet.add("model.layers.0.attn.rotary.inv_freq", {2}, {1, 0.5}));
  CHECK(noted(*old_gdn.model(), "attn.D"));
  CHECK(noted(*old_retnet.model(), "inv_freq"));
}

TEST_CASE("tied embeddings: the head may be absent; a head of its own is used") {
  Editable tied(small_config("gla", {{"tie_word_embeddings", true}}));
  tied.erase("lm_head.weight");
  const std::span<const float> table = tied.floats("model.embeddings.weight");
  Editable own(*tied.checkpoint());
  own.add("lm_head.weight", {97, 64}, {table.begin(), table.end()}).set({{"tie_word_embeddings", false}});
  check_same(own, tied);
  CHECK(contains(error_of([&] { Editable(*tied.checkpoint()).set({{"tie_word_embeddings", false}}).model(); }), "lm_head.weight"));
}

TEST_CASE("the norm before the output gate is found under either name") {
  for (const char* family : {"gla", "retnet"}) {
    const Editable fused(small_config(family));
    Editable plain(*fused.checkpoint());
    check_same(fused, plain.rename("g_norm_swish_gate", "g_norm"));
    check_same(fused, plain.set({{"fuse_norm", false}}));
  }
}

TEST_CASE("RetNet has convolutions where their tensors are") {
  const Editable plain(small_config("retnet", {{"use_short_conv", true}}));
  Editable convolved(*plain.checkpoint());
  for (const char* layer : {"model.layers.0.attn.", "model.layers.1.attn."}) {
    for (const auto& [name, channels] : std::map<std::string, std::int64_t>{{"q", 64}, {"k", 64}, {"v", 128}}) {
      convolved.add(layer + name + "_conv1d.weight", {channels, 1, 4}, std::vector<float>(static_cast<std::size_t>(channels * 4), 0.5F));
    }
  }
  CHECK(plain.model()->layout(0).conv_caches.empty());
  CHECK(convolved.model()->layout(0).conv_caches.size() == 3);
  CHECK(relative_error(logits_of(*convolved.model(), kIds), logits_of(*plain.model(), kIds)) > 1e-2);
}

TEST_CASE("Qwen: packed experts, and a text model inside a larger one") {
  const Editable separate(qwen_config("qwen3_next"));
  Editable packed(*separate.checkpoint());
  for (const std::string layer : {"model.layers.0.mlp.experts", "model.layers.1.mlp.experts"}) {
    std::vector<float> gate_up, down;
    for (int e = 0; e < 4; ++e) {
      for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
        const std::string full = layer + "." + std::to_string(e) + "." + name + ".weight";
        const std::span<const float> values = packed.floats(full);
        std::vector<float>& all = std::string(name) == "down_proj" ? down : gate_up;
        all.insert(all.end(), values.begin(), values.end());
        packed.erase(full);
      }
    }
    packed.add(layer + ".gate_up_proj", {4, 24, 64}, gate_up).add(layer + ".down_proj", {4, 64, 12}, down);
  }
  check_same(separate, packed);

  const Editable text(qwen_config("qwen3_5_text"));
  Editable whole(*text.checkpoint());
  whole.rename("model.", "model.language_model.").add("model.visual.patch.weight", {2}, {1, 2}).add("mtp.fc.weight", {2}, {1, 2});
  const json inner = text.config();
  json outer{{"model_type", "qwen3_5"}, {"text_config", inner}, {"tie_word_embeddings", false}};
  for (const auto& [key, value] : inner.items()) {
    if (!outer.contains(key)) outer[key] = nullptr;
  }
  check_same(text, whole.set(outer));
}

TEST_CASE("a tensor that is missing, or of another shape, is named with what was expected") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const Editable whole(small.config);
    const std::vector<TensorSpec> specs = model_tensors(Config(small.config));
    REQUIRE_FALSE(specs.empty());
    // The first, the last, and one from the middle: a mixer's.
    for (const std::size_t i : {std::size_t{0}, specs.size() / 2, specs.size() - 1}) {
      const std::string& name = specs[i].name;
      Editable missing(*whole.checkpoint()), misshapen(*whole.checkpoint());
      const std::string missing_text = error_of([&] { missing.erase(name).model(); });
      CHECK(contains(missing_text, "tensor " + name + " is missing"));
      misshapen.tensor(name).shape.back() -= 1;
      const std::string text = error_of([&] { misshapen.model(); });
      CHECK(contains(text, name));
      CHECK(contains(text, "expected ["));
      CHECK(contains(text, "has shape ["));
    }
  }
}

TEST_CASE("a convolution without taps and a low-rank map without rank are refused") {
  Editable conv(small_config("gated_deltanet", {{"head_dim", 16}})), rank(small_config("gla"));
  conv.tensor("model.layers.0.attn.q_conv1d.weight").shape = {64, 1, 0};
  CHECK(contains(error_of([&] { conv.model(); }), "q_conv1d.weight"));
  rank.tensor("model.layers.0.attn.gk_proj.0.weight").shape = {0, 64};
  rank.tensor("model.layers.0.attn.gk_proj.1.weight").shape = {32, 0};
  CHECK(contains(error_of([&] { rank.model(); }), "gk_proj.0.weight"));
}

TEST_CASE("tensors that may belong to the computation are refused by name") {
  for (const char* name : {"model.layers.0.attn.q_proj.bias", "model.layers.1.attn.extra_norm.weight", "model.layers.2.attn_norm.weight",
                           "model.layers.0.mlp.gate_proj.bias", "model.embed_positions.weight", "lm_head.bias"}) {
    INFO(name);
    Editable odd(small_config("gla"));
    odd.add(name, {2}, {1, 2});
    CHECK(contains(error_of([&] { odd.model(); }), name));
  }
}

TEST_CASE("heads for other tasks are noted, and play no part") {
  Editable odd(small_config("gla"));
  const Editable plain(*odd.checkpoint());
  check_same(plain, odd.add("score.weight", {2}, {1, 2}));
  CHECK(noted(*odd.model(), "score.weight"));
}

}  // namespace statescope::test::family_test
