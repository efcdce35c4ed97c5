// Every key of a config is computed with, known to be harmless, of the one value that changes nothing, or refused by name.
#include "engine/config/config_keys.h"

#include <fstream>

#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/config/complaint.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::config_keys_test {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// One small config of each family of flash-linear-attention and of Qwen's.
std::vector<json> plain_families() {
  std::vector<json> all;
  for (const char* family :
       {"transformer", "linear_attn", "retnet", "gla", "delta_net", "gated_deltanet", "gated_deltaproduct", "kda", "comba",
        "gsa",         "hgrn2",       "metala", "mom", "mamba2",    "mamba",          "falcon_mamba",       "sse", "sse_swa_moba",
        "moba",        "nsa"})
    all.push_back(small_config(family));
  all.push_back(jamba_config());
  for (const char* family : {"zamba", "zamba2"}) all.push_back(zamba_config(family));
  for (const char* family : {"rwkv6", "rwkv7"}) all.push_back(rwkv_config(family));
  all.push_back(log_linear_config());
  for (const char* mode : {"diag", "hippo"}) all.push_back(s4_config(mode));
  for (const char* family : {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"}) all.push_back(qwen_config(family));
  return all;
}

/// The same of all families: of hybrids too, which have switches and factors of their own.
std::vector<json> families() {
  std::vector<json> all = plain_families();
  for (const char* family : {"bamba", "falcon_h1"}) all.push_back(mamba_hybrid_config(family));
  all.push_back(mamba_hybrid_config("granitemoehybrid", {{"shared_intermediate_size", 20}}));
  all.push_back(nemotron_config("ME*-"));
  all.push_back(olmo_config());
  for (const char* family : {"lfm2", "lfm2_moe"}) all.push_back(lfm2_config(family));
  all.push_back(kimi_config());
  for (const char* family : {"minimax", "minimax_text_01", "minimax_m1"}) all.push_back(minimax_config(family));
  all.push_back(deepseek_config());
  all.push_back(indexed_config());
  all.push_back(hymba_config());
  return all;
}

}  // namespace

TEST_CASE("config keys: one that nobody knows is refused whatever its value, unless that is null") {
  for (const json& config : families()) {
    INFO(config["model_type"]);
    CHECK(complaint(config).empty());
    for (const json& value : {json(true), json(false), json(0), json(1.5), json("on"), json::array(), json::object()}) {
      CHECK(contains(complaint(with(config, {{"frobnication", value}})), "\"frobnication\""));
    }
    CHECK(complaint(with(config, {{"frobnication", nullptr}})).empty());
  }
}

TEST_CASE("config keys: switches of other families are refused unless they do nothing") {
  struct Switch {
    const char* key;
    json neutral, other;
  };
  for (const json& config : plain_families()) {
    INFO(config["model_type"]);
    for (const auto& [key, neutral, other] : std::vector<Switch>{{"mlp_bias", false, true},
                                                                 {"logit_scale", 1.0, 0.5},
                                                                 {"residual_multiplier", 1, 0.22},
                                                                 {"final_logit_softcapping", nullptr, 30.0},
                                                                 {"use_sliding_window", false, true},
                                                                 {"is_encoder_decoder", false, true},
                                                                 {"pruned_heads", json::object(), {{"0", {1}}}},
                                                                 {"attn_pattern", nullptr, {{"type", "longformer"}}}}) {
      INFO(key);
      CHECK(complaint(with(config, {{key, neutral}})).empty());
      CHECK(contains(complaint(with(config, {{key, other}})), key));
    }
    CHECK(contains(complaint(with(config, {{"sliding_window", 8}})), "sliding_window"));
    CHECK(contains(complaint(with(config, {{"sliding_window", 8}, {"use_sliding_window", true}})), "sliding_window"));
    CHECK(complaint(with(config, {{"sliding_window", 8}, {"use_sliding_window", false}, {"max_window_layers", 1}})).empty());
  }
  const json softmax = small_config("transformer");  // 16 channels a head
  CHECK(complaint(with(softmax, {{"query_pre_attn_scalar", 16}, {"attention_multiplier", 0.25}})).empty());
  CHECK(contains(complaint(with(softmax, {{"query_pre_attn_scalar", 64}})), "query_pre_attn_scalar"));
  CHECK(contains(complaint(with(softmax, {{"attention_multiplier", 1.0}})), "attention_multiplier"));
  CHECK(contains(complaint(small_config("gsa", {{"row_sparse", {{"topk", 4}, {"skip_decay", false}}}})), "skip_decay"));
}

TEST_CASE("config keys: what Transformers writes into every config does no harm") {
  const json general{{"transformers_version", "5.24.0"},
                     {"torch_dtype", "bfloat16"},
                     {"architectures", {"AForCausalLM"}},
                     {"_name_or_path", "a"},
                     {"use_cache", true},
                     {"initializer_range", 0.02},
                     {"return_dict", true},
                     {"output_attentions", false},
                     {"chunk_size_feed_forward", 0},
                     {"min_length", 0},
                     {"no_repeat_ngram_size", 0},
                     {"id2label", {{"0", "LABEL_0"}}},
                     {"label2id", {{"LABEL_0", 0}}},
                     {"is_decoder", false},
                     {"tie_encoder_decoder", false},
                     {"pruned_heads", json::object()},
                     {"finetuning_task", nullptr},
                     {"problem_type", nullptr},
                     {"bad_words_ids", nullptr},
                     {"temperature", 1.0},
                     {"typical_p", 1.0},
                     {"bos_token_id", 1},
                     {"eos_token_id", {1, 2}},
                     {"pad_token_id", 0},
                     {"torchscript", false},
                     {"use_bfloat16", false},
                     {"tf_legacy_loss", false},
                     {"rope_scaling", nullptr},
                     {"unsloth_fixed", true}};
  for (const json& config : families()) {
    INFO(config["model_type"]);
    CHECK(complaint(with(config, general)).empty());
  }
}

TEST_CASE("config keys: objects within a config have lists of their own") {
  const json attn{{"layers", {1}}, {"num_heads", 4}};
  CHECK(complaint(small_config("gla", {{"attn", attn}})).empty());
  CHECK(contains(complaint(small_config("gla", {{"attn", with(attn, {{"qk_norm", true}})}})), "\"qk_norm\""));
  CHECK(contains(complaint(small_config("gla", {{"attn", {with(attn, {{"sinks", 4}})}}})), "\"sinks\""));
  CHECK(contains(complaint(small_config("transformer", {{"attn", attn}})), "\"attn\""));
  const json strided{{"block_size", 3}, {"local_blocks", 2}, {"vert_stride", 8}};
  CHECK(complaint(small_config("transformer", pattern("blocksparse", strided))).empty());
  CHECK(contains(complaint(small_config("transformer", pattern("blocksparse", with(strided, {{"sinks", 1}})))), "\"sinks\""));
  CHECK(contains(complaint(small_config("transformer", pattern("blocksparse", with(strided, {{"window", 1}})))), "\"window\""));
  CHECK(contains(complaint(small_config("gla", pattern("blocksparse", strided))), "\"attn_pattern\""));
  CHECK(complaint(small_config("mom", {{"attn", with(attn, {{"qkv_bias", true}})}})).empty());
  CHECK(contains(complaint(small_config("gla", sla({{"gdn_decay", false}}))), "\"gdn_decay\""));
  CHECK(contains(complaint(small_config("gla", {{"row_sparse", {{"topk", 4}, {"rows", 3}}}})), "\"rows\""));
  CHECK(
      contains(complaint(with(qwen_config("qwen3_5_text"), {{"rope_parameters", {{"rope_type", "default"}, {"turns", 2}}}})), "\"turns\""));
}

TEST_CASE("config keys: what stands around a text model") {
  const json inner = qwen_config("qwen3_5_text");
  const json wrapper{{"model_type", "qwen3_5"}, {"text_config", inner}, {"vision_config", {{"depth", 1}}}, {"image_token_id", 5}};
  CHECK(complaint(wrapper).empty());
  CHECK(complaint(with(wrapper, {{"hidden_size", 64}, {"dtype", "bfloat16"}})).empty());
  CHECK(contains(complaint(with(wrapper, {{"hidden_size", 32}})), "hidden_size"));
  CHECK(contains(complaint(with(wrapper, {{"rope_scaling", {{"type", "yarn"}, {"factor", 4}}}})), "rope_scaling"));
  CHECK(contains(complaint(with(wrapper, {{"text_config", with(inner, {{"model_type", "qwen3_5_moe_text"}})}})), "qwen3_5_moe_text"));
}

namespace {

/// A number or a switch, changed; nothing of anything else.
std::optional<json> changed(const json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) return value.get<int>() + 1;
  if (value.is_number()) return value.get<double>() * 1.5;
  return std::nullopt;
}

/// `config` with each number and switch changed in turn that is computed with, by key; also of objects in it.
std::vector<std::pair<std::string, json>> mutations(const json& config, const std::string& where, const std::string& prefix = "") {
  std::vector<std::pair<std::string, json>> all;
  for (const auto& [key, value] : config.items()) {
    const std::optional<KeyRule> rule = key_rule(where, key);
    REQUIRE(rule);
    if (rule->use != KeyUse::computed) continue;
    if (value.is_object()) {
      const std::string inside = key.starts_with("rope_") ? "rope" : where + "." + key;
      for (const auto& [name, inner] : mutations(value, inside, key + ".")) all.push_back({name, with(config, {{key, inner}})});
    } else if (const std::optional<json> other = changed(value)) {
      all.push_back({prefix + key, with(config, {{key, *other}})});
    }
  }
  return all;
}

}  // namespace

TEST_CASE("config keys: a changed number or switch is refused, or changes what is computed") {
  const std::vector<std::int32_t> ids = some_ids(60);
  for (const SmallModel& small : small_models()) {
    const Editable whole(small.config);
    const std::vector<float> truth = logits_of(*whole.model(), ids);
    const auto type = small.config["model_type"].get<std::string>();
    const bool dense_granite = type == "granitemoehybrid" && !small.config.contains("num_local_experts");
    for (const auto& [key, config] :
         mutations(small.config, small.config.contains("layer_norm_epsilon") && type == "mamba2" ? "mamba2_hf" : type)) {
      INFO(small.name << ": another " << key);
      if (key == "tie_feature_map_qk") continue;                         // a map without weights has nothing to tie
      if (key == "norm_q") continue;                                     // the norm of each head's output takes out what scales its query
      if (key == "intermediate_size" && type == "qwen3_next") continue;  // all layers have experts
      if (key == "intermediate_size" && dense_granite) continue;         // its MLP has a key of its own
      if (key == "first_k_dense_replace" && small.config.contains("mlp_layer_types")) continue;  // which says it of each layer
      if (key == "fuse_norm") continue;                                                          // a 1e-6 within a norm
      if (key == "mamba_expand" && small.config.contains("mamba_d_ssm")) continue;               // which says the width instead
      std::vector<float> found;
      try {
        found = logits_of(*Editable(*whole.checkpoint()).set(config).model(), ids);
      } catch (const Error&) {
        continue;  // refused
      }
      CHECK(relative_error(found, truth) > 1e-6);
    }
  }
}

TEST_CASE("config keys: released configs open, or are refused by the name of what is not supported") {
  const json configs = json::parse(std::ifstream(from_source("tests/golden/configs/released.json")));
  const std::vector<std::string> open{"qwen3_5_vl",
                                      "qwen3_5_vl_tied",
                                      "qwen3_5_vl_bf16",
                                      "qwen3_5_moe",
                                      "qwen3_5_moe_text",
                                      "qwen3_5_text_prefixed",
                                      "rope_dynamic",
                                      "rope_linear_v4",
                                      "rope_llama3",
                                      "rope_longrope",
                                      "rope_proportional",
                                      "rope_yarn",
                                      "rope_yarn_both",
                                      "rope_yarn_next",
                                      "rope_yarn_vl",
                                      "bamba",
                                      "falcon_h1",
                                      "falcon_h1_mup",
                                      "fp8_modelopt",
                                      "granitemoehybrid",
                                      "mamba",
                                      "falcon_mamba",
                                      "jamba",
                                      "moba",
                                      "nsa",
                                      "dsa",
                                      "fixed_longformer",
                                      "fixed_bigbird",
                                      "fixed_blocksparse",
                                      "hymba",
                                      "log_linear_mamba2",
                                      "s4d",
                                      "s4_hippo",
                                      "zamba",
                                      "zamba2",
                                      "rwkv6",
                                      "rwkv7",
                                      "minimax",
                                      "minimax_text01",
                                      "lfm2",
                                      "lfm2_moe",
                                      "mamba2_hf",
                                      "nemotron_h",
                                      "nemotron_h_groups",
                                      "nvfp4_modelopt",
                                      "olmo_hybrid",
                                      "linear_attn_performer",
                                      "gsa_rowsparse",
                                      "hgrn2",
                                      "metala",
                                      "metala_rowsparse",
                                      "gated_deltaproduct",
                                      "comba",
                                      "kda",
                                      "kimi_linear_dense",
                                      "mla_dense",
                                      "mla_moe",
                                      "kimi_linear_moe"};
  for (const std::string& name : open) CHECK(configs.contains(name));
  for (const auto& [name, text] : configs.items()) {
    INFO(name);
    const Config config = Config::parse(text.get<std::string>());
    std::string said;
    try {
      plan_model(config);
    } catch (const Error& error) {
      said = error.what();
    }
    const bool opens = std::ranges::find(open, name) != open.end();
    if (opens) CHECK(said == "");
    const std::string type = config.text("model_type");
    const bool planned = type.starts_with("qwen3");
    if (planned || opens) continue;
    const bool named = contains(said, type) || contains(said, "row_sparse") || contains(said, "attn_pattern");
    CHECK(named);
  }
}

}  // namespace statescope::test::config_keys_test
