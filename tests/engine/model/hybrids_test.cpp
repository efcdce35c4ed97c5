// The plans of hybrids: what their configs may say, and other names of the same tensors.
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/config/complaint.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::hybrids_test {
TEST_CASE("hybrids: what a config of one may not say is refused by name") {
  const auto refused = [](const json& config, const std::string& part) {
    const std::string text = complaint(config);
    INFO(text);
    CHECK(text.find(part) != text.npos);
  };
  refused(nemotron_config("MXM"), "\"hybrid_override_pattern\" holds \"X\"");
  refused(nemotron_config("ME", {{"n_group", 4}, {"topk_group", 1}}), "\"num_experts_per_tok\" is 3");
  refused(nemotron_config("M", {{"mlp_hidden_act", "silu"}}), "\"mlp_hidden_act\" is \"silu\"");
  refused(mamba_hybrid_config("bamba", {{"mamba_d_head", 24}}), "\"mamba_d_head\" is 24");
  refused(mamba_hybrid_config("bamba", {{"attn_layer_indices", {2}}}), "names layer 2");
  refused(mamba_hybrid_config("granitemoehybrid", {{"shared_intermediate_size", 20}, {"layer_types", {"mamba"}}}), "\"layer_types\" has 1");
  refused(mamba_hybrid_config("falcon_h1", {{"mlp_multipliers", {1.0}}}), "\"mlp_multipliers\" must hold two");
  refused(lfm2_config("lfm2", {{"layer_types", {"conv", "mamba"}}}), "\"layer_types\" holds");
  refused(kimi_config({{"mla_use_nope", false}}), "\"mla_use_nope\" is false");
  const auto kimi_layers = [](const json& kda, const json& full) {
    return kimi_config({{"linear_attn_config", {{"kda_layers", kda}, {"full_attn_layers", full}}}});
  };
  refused(kimi_layers({1, 2, 3}, {2}), "names layer 2 twice");
  refused(kimi_layers({1, 3}, json::array()), "does not say what layer 2 is");
  refused(kimi_layers({0, 1}, {2}), "names layer 0 of 1 to 3");
  refused(kimi_config({{"linear_attn_config", {{"gated", true}}}}), "\"gated\" is true");
  refused(kimi_config({{"num_experts_per_token", 7}}), "\"num_experts_per_token\" is 7");
  refused(deepseek_config({{"topk_method", "greedy"}}), "\"topk_method\" is \"greedy\"");
  refused(deepseek_config({{"scoring_func", "softmax"}}), "\"scoring_func\" is \"softmax\"");
  refused(deepseek_config({{"qk_rope_head_dim", 7}}), "RoPE turns channels in pairs");
  refused(indexed_config({{"q_lora_rank", nullptr}}), "\"q_lora_rank\" is missing");
  refused(indexed_config({{"rope_interleave", false}}), "\"rope_interleave\" is false");
  refused(indexed_config({{"layer_types", {"indexed_attention", "full_attention"}}}), "\"layer_types\" holds");
  CHECK(complaint(indexed_config({{"mlp_layer_types", json::array()}})).empty());
  refused(indexed_config({{"mlp_layer_types", {"dense"}}}), "\"mlp_layer_types\" has 1");
  refused(small_config("moba", {{"window_size", 8}}), "\"window_size\" is 8");
  refused(small_config("moba", {{"moba_topk", 0}}), "\"moba_topk\" is 0");
  refused(small_config("nsa", {{"window_size", nullptr}}), "\"window_size\" is null");
  refused(minimax_config("minimax", {{"attn_type_list", {0, 1}}}), "\"attn_type_list\" is");
  refused(minimax_config("minimax", {{"layer_types", {"full_attention"}}}), "\"layer_types\" has 1");
  refused(minimax_config("minimax_text_01", {{"attn_type_list", {0, 2}}}), "\"attn_type_list\" holds 2");
  refused(minimax_config("minimax_text_01", {{"attn_type_list", {0}}}), "\"attn_type_list\" has 1");
  refused(minimax_config("minimax_text_01", {{"postnorm", false}}), "\"postnorm\" is false");
  refused(minimax_config("minimax_text_01", {{"num_attention_heads", 6}}), "\"num_attention_heads\" is 6");
  refused(minimax_config("minimax_m1", {{"shared_intermediate_size", 8}}), "\"shared_intermediate_size\" is 8");
  refused(zamba_config("zamba", {{"attention_hidden_size", 40}}), "\"attention_hidden_size\" is 40");
  refused(zamba_config("zamba", {{"hidden_act", "silu"}}), "\"hidden_act\" is \"silu\"");
  refused(zamba_config("zamba2", {{"layers_block_type", nullptr}}), "\"layers_block_type\" is missing");
  refused(zamba_config("zamba2", {{"hybrid_layer_ids", {0, 2}}}), "\"hybrid_layer_ids\" names other layers");
  refused(zamba_config("zamba2", {{"use_long_context", true}}), "\"use_long_context\" is true");
  refused(hymba_config({{"memory_tokens_interspersed_every", 4}}), "\"memory_tokens_interspersed_every\" is 4");
  refused(hymba_config({{"rope_type", "dynamic_ntk"}}), "\"rope_type\" is \"dynamic_ntk\"");
  refused(hymba_config({{"kq_norm", "l2"}}), "\"kq_norm\" is \"l2\"");
  refused(hymba_config({{"kv_reuse_group", {{2, 1}}}}), "names layer 1");
  refused(hymba_config({{"kv_reuse_group", {{0, 1}, {1, 2}}}}), "names layer 1 twice");
  refused(hymba_config({{"kv_reuse_group", {{1, 3}}}}), "names layer 3");
  refused(hymba_config({{"kv_reuse_every_i_layer", 2}}), "stands beside");
  refused(hymba_config({{"global_attn_idx", {5}}}), "names layer 5");
  refused(hymba_config({{"v_head_dim", 20}}), "\"v_head_dim\" is 20");
  refused(hymba_config({{"layer_type", {"h", "a", "h"}}}), "\"layer_type\" holds \"a\"");
  refused(hymba_config({{"num_mamba", 2}}), "\"num_mamba\" is 2");
  refused(log_linear_config({{"dt_limit", {0.01, 1.0}}}), "\"dt_limit\" is");
  refused(log_linear_config({{"hidden_ratio", 2}}), "\"hidden_ratio\" is 2");
  refused(log_linear_config({{"hidden_act", "relu"}}), "\"hidden_act\" is \"relu\"");
  refused(s4_config("dplr"), "\"s4_mode\" is \"dplr\"");
  refused(s4_config("diag", {{"state_size", 7}}), "\"state_size\"");
  refused(rwkv_config("rwkv7", {{"value_dim", {64, 128, 64}}}), "\"value_dim\" holds 128");
  refused(rwkv_config("rwkv7", {{"value_dim", {64, 64}}}), "\"value_dim\" holds 2 numbers for 3 layers");
  refused(rwkv_config("rwkv7", {{"attn", {{"layers", {1}}}}}), "\"attn\" is");
  refused(rwkv_config("rwkv6", {{"hidden_act", "relu"}}), "\"hidden_act\" is \"relu\"");
  refused(olmo_config({{"surprise", 1}}), "\"surprise\" is 1");
  refused(jamba_config({{"attn_layer_offset", 2}}), "\"attn_layer_offset\" is 2");
  refused(jamba_config({{"num_experts_per_tok", 5}}), "\"num_experts_per_tok\" is 5");
}

TEST_CASE("log-linear Mamba-2: keys of early releases, and what those do not compute") {
  const json infinity = {{"__float__", "Infinity"}};
  const json early{{"rms_norm", true},     {"time_step_limit", {0.0, infinity}}, {"time_step_rank", 256}, {"time_step_min", 0.001},
                   {"time_step_max", 0.1}, {"time_step_floor", 0.0001},          {"n_groups", 1},         {"layer_norm_epsilon", 1e-5}};
  CHECK(complaint(log_linear_config(early)).empty());
  for (const char* key : {"time_step_limit", "dt_limit"}) {
    for (const json& most : {infinity, json("Infinity")}) CHECK(complaint(log_linear_config({{key, {0, most}}})).empty());
    for (const json& limit : {json{0.0, 1.0}, json{0.001, infinity}, json{0.0}, json{0.0, "-Infinity"}, json{0.0, "infinite"}, json(0.1)}) {
      INFO(key << " " << limit.dump());
      CHECK(complaint(log_linear_config({{key, limit}})).find(key) != std::string::npos);
    }
  }
  const std::string text = log_linear_config({{"time_step_limit", {0.0, "INFINITY"}}}).dump();
  const std::string of_python = std::string(text).replace(text.find("\"INFINITY\""), 10, "Infinity");
  CHECK_NOTHROW(plan_model(Config::parse(of_python)));

  const auto refused = [&](const json& changes, const std::string& said) { CHECK(complaint(log_linear_config(changes)) == said); };
  refused({{"rms_norm", false}}, "config: \"rms_norm\" is false, which is not supported: log_linear_mamba2 is computed with true alone");
  for (const auto& [key, value, expected] : std::vector<std::tuple<const char*, json, const char*>>{
           {"n_groups", 2, "1"}, {"rmsnorm", false, "true"}, {"norm_before_gate", true, "false"}, {"D_has_hdim", true, "false"}}) {
    CHECK(complaint(log_linear_config({{key, value}})).empty());
    for (const char* of_early : {"rms_norm", "time_step_limit", "time_step_rank"}) {
      refused({{of_early, early[of_early]}, {key, value}}, "config: \"" + std::string(key) + "\" is " + value.dump() +
                                                               ", but the releases of flash-linear-attention that write \"" + of_early +
                                                               "\" compute with " + expected + " alone");
    }
  }
  refused({{"layer_norm_epsilon", 1e-6}}, "config: \"layer_norm_epsilon\" is 1e-06, but \"norm_eps\" 1e-05");
  refused({{"layer_norm_epsilon", 1e-5}, {"norm_eps", 1e-6}}, "config: \"layer_norm_epsilon\" is 1e-05, but \"norm_eps\" 1e-06");
  CHECK(complaint(log_linear_config({{"layer_norm_epsilon", 1e-6}, {"norm_eps", 1e-6}})).empty());
}

TEST_CASE("Transformer: what a fixed pattern may not say is refused by name") {
  const auto refused = [](const char* type, const json& keys, const std::string& part) {
    const std::string text = complaint(small_config("transformer", pattern(type, keys)));
    INFO(text);
    CHECK(text.find(part) != text.npos);
    CHECK(text.find("\"attn_pattern\"") != text.npos);
  };
  refused("sinks", json::object(), "\"type\" is \"sinks\"");
  refused("longformer", json::object(), "\"window\" is missing");
  refused("longformer", {{"window", 8}, {"dilation", {1, 2}}}, "\"dilation\" has 2 numbers");
  refused("longformer", {{"window", 8}, {"dilation", {1, 2, 0, 1}}}, "\"dilation\" holds 0");
  refused("longformer", {{"window", 8}, {"block_size", 4}}, "\"block_size\" is 4");
  refused("bigbird", {{"block_size", 4}, {"window_blocks", 2}, {"random_blocks", json::array()}}, "each of 2 layers");
  refused("bigbird", {{"block_size", 4}, {"window_blocks", 2}, {"random_blocks", {{{{0}}}, {{{0}}}}}}, "each of 4 heads");
  json uneven = random_blocks();
  uneven[0][1].push_back(json::array());
  refused("bigbird", {{"block_size", 4}, {"window_blocks", 2}, {"random_blocks", uneven}}, "more blocks for one head");
  json long_list = random_blocks();
  for (int block = 0; block < 4096; ++block) long_list[0][0].push_back(json::array());
  for (int head = 1; head < 4; ++head) long_list[0][static_cast<std::size_t>(head)] = long_list[0][0];
  long_list[0][0][0] = std::vector<int>(2000, 0);
  refused("bigbird", {{"block_size", 4}, {"window_blocks", 2}, {"random_blocks", long_list}}, "too long for so many blocks");
  refused("blocksparse", {{"block_size", 4}, {"local_blocks", 0}, {"vert_stride", 2}}, "\"local_blocks\" is 0");
  CHECK(
      complaint(small_config("transformer", with(pattern("longformer", {{"window", 8}}), {{"window_size", 8}}))).find("\"attn_pattern\"") !=
      std::string::npos);
  const Plan plan = plan_model(Config(
      small_config("transformer", pattern("bigbird", {{"block_size", 4}, {"window_blocks", 2}, {"random_blocks", random_blocks()}}))));
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0] == "attn_pattern lists random blocks for 48 tokens; those behind them have none");
}

TEST_CASE("hybrids: the names of files saved again are read as those of the releases") {
  const json config = olmo_config();
  Editable renamed(config);
  renamed.rename("0.attention_layer_norm", "0.input_layernorm").rename("0.feedforward_layer_norm", "0.post_attention_layernorm");
  const std::vector<std::int32_t> ids = some_ids(9);
  CHECK(logits_of(*renamed.model(), ids) == logits_of(*Editable(config).model(), ids));
}

TEST_CASE("DeepSeek-V3: layers that predict further tokens are passed over, with a note") {
  const json config = deepseek_config();
  Editable further(config);
  further.rename("1.self_attn.o_proj", "2.self_attn.o_proj");
  CHECK_THROWS_WITH(further.model(), Catch::Matchers::ContainsSubstring("layers.1.self_attn.o_proj.weight"));
  const auto whole = Editable(deepseek_config({{"num_hidden_layers", 3}}));
  Editable cut(*whole.checkpoint());
  cut.set({{"num_hidden_layers", 2}});
  CHECK(std::ranges::any_of(cut.model()->plan().notes, [](const std::string& note) { return note.find("predict several") != note.npos; }));
}

TEST_CASE("Zamba2: files that repeat the shared block, with the adapters of all its uses or with none") {
  const Editable once(zamba_config("zamba2", {{"use_shared_attention_adapter", true}}));
  const std::vector<std::int32_t> ids = some_ids(9);
  const std::vector<float> truth = logits_of(*once.model(), ids);
  for (const bool adapters : {true, false}) {
    Editable repeated(*once.checkpoint());
    for (const StoredTensor& tensor : once.checkpoint()->tensors) {
      constexpr std::string_view owner = "model.layers.1.shared_transformer.";
      if (!tensor.name.starts_with(owner) || (!adapters && tensor.name.find("adapter_list") != tensor.name.npos)) continue;
      const std::span<const float> values = floats(tensor);
      repeated.add("model.layers.2.shared_transformer." + tensor.name.substr(owner.size()), tensor.shape, {values.begin(), values.end()});
    }
    CHECK(logits_of(*repeated.model(), ids) == truth);
  }
}

TEST_CASE("Zamba: a layer's own copy of the shared block is its own") {
  const Editable once(zamba_config("zamba"));
  const std::vector<std::int32_t> ids = some_ids(9);
  const std::vector<float> truth = logits_of(*once.model(), ids);
  Editable copied(*once.checkpoint());
  for (const StoredTensor& tensor : once.checkpoint()->tensors) {
    constexpr std::string_view owner = "model.layers.1.shared_transf.";
    if (!tensor.name.starts_with(owner)) continue;
    const std::span<const float> values = floats(tensor);
    copied.add("model.layers.2.shared_transf." + tensor.name.substr(owner.size()), tensor.shape, {values.begin(), values.end()});
  }
  CHECK(logits_of(*copied.model(), ids) == truth);
  copied.fill("layers.2.shared_transf.pre_ff_layernorm.weight", 2.0F);
  CHECK(logits_of(*copied.model(), ids) != truth);
}

TEST_CASE("RWKV-7: six mixing vectors in one tensor, as early files have them") {
  const Editable apart(rwkv_config("rwkv7"));
  const std::vector<std::int32_t> ids = some_ids(9);
  const std::vector<float> truth = logits_of(*apart.model(), ids);
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{6, 1, 1, 64}, {6, 64}}) {
    Editable together(*apart.checkpoint());
    for (int layer = 0; layer < 3; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".attn.x_";
      std::vector<float> all;
      for (const char which : std::string("rwkvag")) {
        const std::span<const float> part = together.floats(prefix + which);
        all.insert(all.end(), part.begin(), part.end());
        together.erase(prefix + which);
      }
      together.add(prefix + "x", shape, all);
    }
    CHECK(logits_of(*together.model(), ids) == truth);
  }
}

TEST_CASE("hybrids: a missing head is the embedding, whatever the config says") {
  Editable tied(mamba_hybrid_config("bamba"));
  tied.erase("lm_head.weight");
  CHECK(tied.model()->plan().tied);
}

TEST_CASE("hybrids: Jamba's attention and experts come at their periods") {
  // a layer of attention: A, of Mamba: M; in small letters without experts
  const auto layers = [](const json& changes = json::object()) {
    std::string letters;
    for (const LayerPlan& layer : plan_model(Config(jamba_config(changes))).layers) {
      const bool attends = layer.mixer == "transformer", chooses = layer.ffn == FfnKind::experts;
      letters += attends ? (chooses ? 'A' : 'a') : (chooses ? 'M' : 'm');
    }
    return letters;
  };
  CHECK(layers() == "mAmA");
  CHECK(layers({{"attn_layer_period", 3}, {"attn_layer_offset", 2}, {"expert_layer_period", 1}, {"expert_layer_offset", 0}}) == "MMAM");
  CHECK(layers({{"attn_layer_period", nullptr}, {"attn_layer_offset", nullptr}, {"num_hidden_layers", 6}}) == "mMmMaM");
  CHECK(layers({{"num_experts", 1}}) == "mama");
}

TEST_CASE("hybrids: the rank of Mamba's steps and its head follow from either layout's keys") {
  const auto plan = [](const json& changes = json::object()) { return plan_model(Config(small_config("mamba", changes))); };
  const auto rank = [&](const json& changes) { return plan(changes).layers[0].config.integer("time_step_rank"); };
  CHECK(rank({{"hidden_size", 60}}) == 4);
  CHECK(rank({{"hidden_size", 66}, {"time_step_rank", "auto"}}) == 5);
  CHECK(rank({{"time_step_rank", 7}}) == 7);
  CHECK(rank({{"dt_rank", 3}}) == 3);
  CHECK(plan().tied);
  CHECK_FALSE(plan({{"norm_eps", 1e-5}}).tied);
  CHECK(plan({{"norm_eps", 1e-3}}).norm_eps == 1e-3F);
}

TEST_CASE("hybrids: a layer of experts alone has no mixer and no memory") {
  const auto model = Editable(nemotron_config("EM-")).model();
  CHECK(model->mixer(0) == nullptr);
  CHECK(model->info().layers[0].memory == "no memory");
  CHECK(model->info().layers[0].mixer == "experts");
  CHECK(model->info().layers[2].mixer == "mlp");
  const std::vector<std::int32_t> ids = some_ids(20);
  const std::vector<float> together = logits_of(*model, ids);
  std::vector<float> one_by_one;
  ModelState state = model->start();
  for (const std::int32_t id : ids) {
    const std::vector<float> next = read_logits(*model, state, {&id, 1}, {.chunk_size = 0, .prompt_length = 20});
    one_by_one.insert(one_by_one.end(), next.begin(), next.end());
  }
  for (std::size_t i = 0; i < together.size(); ++i) REQUIRE(one_by_one[i] == Approx(together[i]).margin(1e-4));
}

}  // namespace statescope::test::hybrids_test
