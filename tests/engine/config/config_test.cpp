// config.json from anywhere: what is wrong is said in one line that names the key, and nothing worse happens.
#include "engine/config/config.h"

#include <fmt/format.h>

#include <limits>

#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::config_test {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

std::string repeated(const char* text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// What loading the family's small model says when its config has been changed and its tensors have not.
std::string load_error(const std::string& name, const json& change) {
  for (const SmallModel& small : small_models()) {
    if (small.name == name) return error_of([&] { Editable(small.config).set(change).model(); });
  }
  throw std::logic_error("no small model " + name);
}

}  // namespace

TEST_CASE("config: what Python writes and JSON cannot say") {
  const Config config =
      Config::parse(R"({"a": Infinity, "b": -Infinity, "c": NaN, "d": "NaN Infinity \" -Infinity", "e": [0.5, Infinity], "f": 2.0})");
  CHECK(config.number("a", {}, true) == std::numeric_limits<double>::infinity());
  CHECK(config.number("b", {}, true) == -std::numeric_limits<double>::infinity());
  CHECK(config.text("d") == "NaN Infinity \" -Infinity");
  CHECK(config.numbers("e") == std::vector<double>{0.5, std::numeric_limits<double>::infinity()});
  CHECK(config.integer("f") == 2);
  CHECK(contains(error_of([&] { config.number("a"); }), "\"a\""));
  CHECK(contains(error_of([&] { config.number("c", {}, true); }), "\"c\""));
  CHECK(contains(error_of([&] { config.integer("a"); }), "\"a\""));
}

TEST_CASE("config: absent and null are the same, and give the fallback") {
  const Config config = Config::parse(R"({"a": null})");
  for (const char* key : {"a", "b"}) {
    CHECK_FALSE(config.has(key));
    CHECK(config.integer(key, 3) == 3);
    CHECK(config.number(key, 0.5) == 0.5);
    CHECK(config.boolean(key, true));
    CHECK(config.text(key, "x") == "x");
    CHECK(config.integers(key).empty());
    CHECK(config.objects(key).empty());
    CHECK(config.object(key).keys().empty());
    CHECK(error_of([&] { config.integer(key); }) == std::string("config: \"") + key + "\" is missing");
  }
}

TEST_CASE("config: values of the wrong type or out of range are named with what they may be") {
  const Config config = Config::parse(R"({"i": 5, "x": 2.5, "big": 1e300, "s": "five", "t": true, "l": [1, "2"], "o": {"a": 1}, "n": -1})");
  CHECK(error_of([&] { config.integer("s"); }) == "config: \"s\" is \"five\", expected an integer from 1 to 100000000");
  for (const char* key : {"x", "big", "s", "t", "l", "o", "n"}) CHECK(contains(error_of([&] { config.integer(key); }), key));
  for (const char* key : {"s", "t", "l", "o"}) CHECK(contains(error_of([&] { config.number(key); }), key));
  for (const char* key : {"i", "s", "l"}) CHECK(contains(error_of([&] { config.boolean(key, true); }), key));
  for (const char* key : {"i", "t", "l"}) CHECK(contains(error_of([&] { config.text(key); }), key));
  for (const char* key : {"i", "s", "l"}) CHECK(contains(error_of([&] { config.object(key); }), key));
  for (const char* key : {"i", "l", "o"}) CHECK(contains(error_of([&] { config.integers(key); }), key));
  CHECK(contains(error_of([&] { config.text("s", {}, {"one", "two"}); }), "one, two"));
  CHECK(contains(error_of([&] { config.integer("absent", 2, 1, 1); }), "absent"));  // a fallback must fit as well
}

TEST_CASE("config: what is no JSON object is refused") {
  for (const char* text : {"", " ", "[]", "3", "{", "{\"a\"", "{\"a\": 1,}", "{\"a\": 1}}", "{\"a\": Infinit}", "\xff\xfe",
                           "{\"a\": \"\xff\"}", "{\"a\": 1", "null"}) {
    INFO(text);
    CHECK(contains(error_of([&] { Config::parse(text); }), "config"));
  }
}

TEST_CASE("config: nesting without end is refused, whatever it hides in") {
  for (int depth : {1'000, 1'000'000}) {
    CHECK(contains(error_of([&] { Config::parse(repeated("[", depth)); }), "config"));
    CHECK(contains(error_of([&] { Config::parse("{\"hidden_size\": " + repeated("[", depth) + repeated("]", depth) + "}"); }), "nested"));
    CHECK(contains(error_of([&] { Config::parse(repeated("{\"a\":", depth) + "1" + repeated("}", depth)); }), "nested"));
  }
  CHECK(Config::parse("{\"a\": \"" + repeated("[", 1000) + "\"}").text("a").size() == 1000);
}

TEST_CASE("config: values that no model can have are refused at load, by key") {
  struct Refusal {
    const char* model;
    json change;
    const char* says;
  };
  const std::vector<Refusal> refusals{
      {"gla", {{"model_type", "mamba3"}}, "mamba3"},
      {"gla", {{"model_type", nullptr}}, "model_type"},
      {"gla", {{"model_type", 7}}, "model_type"},
      {"gla", {{"model_type", "a\nb"}}, "model_type"},
      {"gla", {{"model_type", std::string(100'000, 'x')}}, "model_type"},
      {"gla", {{"hidden_size", "64"}}, "hidden_size"},
      {"gla", {{"hidden_size", 64.5}}, "hidden_size"},
      {"gla", {{"hidden_size", 0}}, "hidden_size"},
      {"gla", {{"hidden_size", -64}}, "hidden_size"},
      {"gla", {{"hidden_size", 1e12}}, "hidden_size"},
      {"gla", {{"hidden_size", {64}}}, "hidden_size"},
      {"gla", {{"hidden_size", 100'000'000}}, "model.embeddings.weight"},
      {"gla", {{"num_hidden_layers", 10'001}}, "num_hidden_layers"},
      {"gla", {{"num_hidden_layers", 3}}, "model.layers.2."},
      {"gla", {{"num_heads", 5}}, "num_heads"},
      {"gla", {{"num_kv_heads", 3}}, "num_kv_heads"},
      {"gla", {{"num_heads", 100'000'000}}, "num_heads"},
      {"gla", {{"expand_k", -1}}, "expand_k"},
      {"gla", {{"expand_k", 0}}, "expand_k"},
      {"gla", {{"expand_v", 1e30}}, "expand_v"},
      {"gla", {{"expand_v", {{"__float__", "Infinity"}}}}, "expand_v"},
      {"gla", {{"norm_eps", "small"}}, "norm_eps"},
      {"gla", {{"norm_eps", -1e-6}}, "norm_eps"},
      {"gla", {{"norm_eps", 1e39}}, "norm_eps"},
      {"gla", {{"gate_logit_normalizer", 0}}, "gate_logit_normalizer"},
      {"gla", {{"gate_logit_normalizer", 1e-39}}, "gate_logit_normalizer"},
      {"gla", {{"clamp_min", {{"__float__", "Infinity"}}}}, "clamp_min"},
      {"gla", {{"attn", {{"layers", {0}}, {"num_heads", 4}, {"rope_theta", -1}}}}, "rope_theta"},
      {"gla sla", {{"sla", {{"enabled", true}, {"temperature", -1}}}}, "temperature"},
      {"gla", {{"intermediate_size", nullptr}, {"hidden_ratio", 1e300}}, "hidden_ratio"},
      {"gla", {{"intermediate_size", nullptr}, {"hidden_ratio", -4}}, "hidden_ratio"},
      {"gla", {{"hidden_act", "powlu"}}, "powlu"},
      {"gla", {{"feature_map", "cosine"}}, "cosine"},
      {"gla", {{"tie_word_embeddings", "yes"}}, "tie_word_embeddings"},
      {"gla", {{"attnres_block_size", 4}}, "attnres_block_size"},
      {"gla", {{"row_sparse", {{"topk", 9}}}}, "topk"},
      {"gla", {{"row_sparse", {{"skip_decay", true}}}}, "topk"},
      {"gla", {{"row_sparse", 3}}, "row_sparse"},
      {"gla", {{"sla", {{"enabled", 1}}}}, "enabled"},
      {"gla sla", {{"sla", {{"enabled", true}, {"gate_input", "v"}}}}, "gate_input"},
      {"gla", {{"attn", 5}}, "attn"},
      {"gla", {{"attn", json::object()}}, "layers"},
      {"gla", {{"attn", {{"layers", {2}}, {"num_heads", 4}}}}, "layer 2"},
      {"gla", {{"attn", {{"layers", {-1}}, {"num_heads", 4}}}}, "layer -1"},
      {"gla", {{"attn", {{"layers", {0, 0}}, {"num_heads", 4}}}}, "twice"},
      {"gla", {{"attn", {{"layers", {"0"}}, {"num_heads", 4}}}}, "layers"},
      {"gla", {{"attn", {{"layers", {0}}}}}, "num_heads"},
      {"gla", {{"attn", {{"layers", {0}}, {"num_heads", 3}}}}, "num_heads"},
      {"gla", {{"attn", {{"layers", {0}}, {"num_heads", 4}, {"num_kv_heads", 3}}}}, "num_kv_heads"},
      {"gla", {{"attn", {{"layers", {0}}, {"num_heads", 64}}}}, "head"},  // heads of one channel: nothing to rotate
      {"transformer", {{"head_dim", 15}}, "head"},
      {"sse gla", {{"num_writer", 4}}, "num_writer"},
      {"sse gla", {{"num_reader", 5}}, "num_reader"},
      {"sse gla", {{"num_sparse_partition", 1}}, "num_"},
      {"sse gla", {{"num_sparse_partition", 1}, {"num_writer", nullptr}, {"num_reader", nullptr}}, "num_writer"},
      {"sse gla", {{"num_v_heads", 3}}, "num_v_heads"},
      {"sse gla", {{"linear_attn_type", "mamba"}}, "linear_attn_type"},
      {"sse gla", {{"head_dim", 100'000'000}, {"num_heads", 100'000'000}, {"num_sparse_partition", 1'000'000}}, "shape"},
      {"mom", {{"topk", 5}}, "topk"},
      {"mom", {{"num_memories", 1}}, "topk"},
      {"mom", {{"mom_backend", "gla"}}, "mom_backend"},
      {"mom", {{"use_short_conv", false}}, "use_short_conv"},
      {"mamba", {{"intermediate_size", 100}}, "intermediate_size"},
      {"mamba", {{"hidden_act", "gelu"}}, "hidden_act"},
      {"mamba", {{"time_step_rank", "all"}}, "time_step_rank"},
      {"mamba", {{"layer_norm_epsilon", 1e-5}, {"norm_eps", 1e-6}}, "norm_eps"},
      {"jamba", {{"hidden_act", "gelu"}}, "hidden_act"},
      {"rwkv7", {{"num_heads", 8}}, "num_heads"},
      {"jamba", {{"mamba_inner_layernorms", false}}, "mamba_inner_layernorms"},
      {"mamba2", {{"dt_limit", {0.1}}}, "dt_limit"},
      {"mamba2", {{"dt_limit", "wide"}}, "dt_limit"},
      {"mamba2", {{"head_dim", 24}}, "head_dim"},
      {"mamba2", {{"n_groups", 3}}, "n_groups"},
      {"mamba2", {{"hidden_size", 100'000'000}, {"expand", 100'000'000}, {"head_dim", 1}}, "backbone.embeddings.weight"},
      {"delta_net", {{"qk_norm", "max"}}, "qk_norm"},
      {"gated_deltanet", {{"num_v_heads", 6}}, "num_v_heads"},
      {"qwen3_next", {{"layer_types", {"linear_attention"}}}, "layer_types"},
      {"qwen3_next", {{"layer_types", {"linear_attention", "sliding"}}}, "layer_types"},
      {"qwen3_next", {{"num_experts_per_tok", 5}}, "num_experts_per_tok"},
      {"qwen3_next", {{"num_experts_per_tok", nullptr}}, "num_experts_per_tok"},
      {"qwen3_next", {{"decoder_sparse_step", 0}}, "decoder_sparse_step"},
      {"qwen3_next", {{"partial_rotary_factor", 3.0}}, "partial_rotary_factor"},
      {"qwen3_next", {{"partial_rotary_factor", -0.5}}, "partial_rotary_factor"},
      {"qwen3_next", {{"text_config", 1}}, "text_config"},
      {"qwen3_next", {{"hidden_act", "gelu"}}, "hidden_act"},
      {"gla", {{"hidden_act", "sigmoid"}}, "hidden_act"},  // the MLP knows no gate but silu
      {"gla", {{"feature_map", "elu"}}, "feature_map"},
      {"gated_deltanet", {{"output_gate_activation", "tanh"}}, "output_gate_activation"},
      {"mamba2", {{"num_heads", 4}}, "num_heads"},
      {"mamba2", {{"layer_norm_epsilon", 1e-5}}, "num_heads"},
      {"mamba2", {{"time_step_limit", {0.0, 1.0}}, {"norm_before_gates", true}}, "norm_before_gates"},
      {"transformer", {{"qkv_bias", true}, {"attention_bias", false}}, "attention_bias"},
      {"gla", {{"norm_eps", 1e-6}, {"rms_norm_eps", 1e-5}}, "rms_norm_eps"},
      {"sse swa moba gdn", {{"attn", {{"full_layers", {7}}}}}, "layer 7"},
  };
  for (const Refusal& refusal : refusals) {
    INFO(refusal.model << " with " << refusal.change.dump().substr(0, 200));
    CHECK(contains(load_error(refusal.model, refusal.change), refusal.says));
  }
}

TEST_CASE("config: a size that a tensor's shape tells is refused where the config says another, with both numbers") {
  struct Size {
    const char *model, *key;
    int right;
    const char* tensor;
  };
  for (const auto& [model, key, right, tensor] : std::vector<Size>{
           {"gla", "gate_low_rank_dim", 16, "model.layers.0.attn.gk_proj.0.weight"},
           {"sse gla", "gate_low_rank_dim", 16, "model.layers.0.attn.gk_proj.0.0.weight"},
           {"delta_net", "conv_size", 4, "model.layers.0.attn.q_conv1d.weight"},
           {"gated_deltanet", "conv_size", 4, "model.layers.0.attn.q_conv1d.weight"},
           {"mom", "conv_size", 4, "model.layers.0.attn.q_conv1d.weight"},
           {"mamba2", "conv_kernel", 4, "backbone.layers.0.mixer.conv1d.weight"},
           {"jamba", "mamba_d_conv", 4, "model.layers.0.mamba.conv1d.weight"},
           {"zamba", "mamba_d_conv", 4, "model.layers.0.mamba.conv1d.weight"},
           {"granitemoehybrid", "mamba_d_conv", 4, "model.layers.0.mamba.conv1d.weight"},
           {"olmo_hybrid", "linear_conv_kernel_dim", 4, "model.layers.0.linear_attn.q_conv1d.weight"},
           {"qwen3_next", "linear_conv_kernel_dim", 4, "model.layers.0.linear_attn.conv1d.weight"},
           {"qwen3_5", "linear_conv_kernel_dim", 4, "model.layers.0.linear_attn.conv1d.weight"},
       }) {
    INFO(model << ": " << key);
    for (const int wrong : {right - 1, right + 1})
      CHECK(contains(load_error(model, {{key, wrong}}),
                     fmt::format("config: \"{}\" is {}, but tensor {} has {} on axis", key, wrong, tensor, right)));
    for (const SmallModel& small : small_models()) {
      if (small.name == model) CHECK(Editable(small.config).set({{key, right}}).model());
    }
  }
}

TEST_CASE("config: sizes that do not go together are refused whatever the tensors are") {
  auto describe_error = [](const json& config) { return error_of([&] { model_tensors(Config(config)); }); };
  CHECK(contains(describe_error(small_config("retnet", {{"expand_k", 0.0625}})), "RoPE"));
  CHECK(contains(describe_error(small_config("transformer", {{"num_heads", 64}})), "RoPE"));
  CHECK(contains(describe_error(small_config("gsa", {{"expand_v", 2.0}})), "hidden_size"));
  CHECK(contains(describe_error(small_config("gla", with(sla(), {{"num_kv_heads", 2}}))), "num_kv_heads"));
}

}  // namespace statescope::test::config_test
