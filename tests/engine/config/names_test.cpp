// Names of tensors as files have them: prefixes of wrappers, compilers and base models, and what is passed over.
#include "engine/config/names.h"

#include <nlohmann/json.hpp>

#include "engine/checkpoint/passed_over.h"
#include "engine/config/config.h"
#include "engine/model/model.h"
#include "engine/model/random_checkpoint.h"
#include "tests/catch.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/model/golden.h"

namespace statescope::names_test {
using namespace statescope::test;

namespace {

std::vector<std::string> planned(const std::vector<std::string>& names, std::vector<std::string>& notes) {
  std::vector<StoredTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, DType::f32, {1}, nullptr});
  take_planned_names(tensors, "model.embed_tokens.weight", "lm_head.weight", notes);
  std::vector<std::string> result;
  for (const StoredTensor& tensor : tensors) result.push_back(tensor.name);
  return result;
}

/// A tiny model whose every tensor's name passes through `rename`; empty drops the tensor.
std::shared_ptr<const Checkpoint> renamed(const nlohmann::json& config, const std::function<std::string(const std::string&)>& rename) {
  auto checkpoint = std::make_shared<Checkpoint>(*random_checkpoint(Config(config), 1));
  std::vector<StoredTensor> tensors;
  for (StoredTensor tensor : checkpoint->tensors) {
    tensor.name = rename(tensor.name);
    if (!tensor.name.empty()) tensors.push_back(tensor);
  }
  checkpoint->tensors = std::move(tensors);
  std::ranges::sort(checkpoint->tensors, {}, &StoredTensor::name);
  return checkpoint;
}

std::vector<float> logits_of(std::shared_ptr<const Checkpoint> checkpoint) {
  const auto model = Model::load(std::move(checkpoint), std::shared_ptr<Backend>(make_cpu_backend(1)));
  ModelState state = model->start();
  const std::vector<std::int32_t> ids{1, 5, 2};
  std::vector<float> x(ids.size() * static_cast<std::size_t>(model->hidden())), y(ids.size() * static_cast<std::size_t>(model->vocab()));
  const Tensor hidden(x.data(), DType::f32, {3, model->hidden()});
  model->forward(state, ids, {}, hidden);
  model->logits(Tensor(y.data(), DType::f32, {3, model->vocab()}), hidden);
  return y;
}

const nlohmann::json kQwen{{"model_type", "qwen3_5_text"},
                           {"hidden_size", 16},
                           {"num_hidden_layers", 2},
                           {"vocab_size", 11},
                           {"intermediate_size", 8},
                           {"layer_types", {"linear_attention", "full_attention"}},
                           {"linear_num_key_heads", 1},
                           {"linear_num_value_heads", 2},
                           {"linear_key_head_dim", 4},
                           {"linear_value_head_dim", 4},
                           {"num_attention_heads", 2},
                           {"num_key_value_heads", 1},
                           {"head_dim", 8},
                           {"tie_word_embeddings", true}};

}  // namespace

TEST_CASE("prefixes that wrappers put before names are taken off, with a note") {
  const std::vector<std::string> plain{"model.embed_tokens.weight", "model.layers.0.norm.weight", "lm_head.weight"};
  const std::vector<std::pair<std::string, std::string>> roots{{"model.language_model.", ""},
                                                               {"language_model.model.", ""},
                                                               {"language_model.model.", "language_model."},
                                                               {"model.language_model.", "model."},
                                                               {"module.model.", "module."},
                                                               {"_orig_mod.model.", "_orig_mod."},
                                                               {"module._orig_mod.model.", "module._orig_mod."},
                                                               {"student.net.", ""},
                                                               {"", ""}};
  for (const auto& [root, of_head] : roots) {
    std::vector<std::string> notes;
    INFO(root);
    CHECK(planned({root + "embed_tokens.weight", root + "layers.0.norm.weight", of_head + "lm_head.weight"}, notes) == plain);
    CHECK(notes.size() >= 1);
  }
  std::vector<std::string> notes;
  CHECK(planned(plain, notes) == plain);
  CHECK(notes.empty());
  CHECK(planned({"model.embed_tokens.weight", "model.layers.0._orig_mod.norm.weight", "x_orig_mod.w"}, notes) ==
        std::vector<std::string>{"model.embed_tokens.weight", "model.layers.0.norm.weight", "x_orig_mod.w"});
  CHECK(notes.size() == 1);
}

TEST_CASE("towers' and further heads' tables are not taken for the text model's") {
  std::vector<std::string> notes;
  const std::vector<std::string> names =
      planned({"model.visual.embed_tokens.weight", "mtp.embed_tokens.weight", "embed_tokens.weight"}, notes);
  CHECK(names == std::vector<std::string>{"model.visual.embed_tokens.weight", "mtp.embed_tokens.weight", "model.embed_tokens.weight"});
  CHECK(error_of([&] {
          planned({"a.embed_tokens.weight", "b.embed_tokens.weight"}, notes);
        }).find("may be under 'a.' or 'b.'") != std::string::npos);
}

TEST_CASE("what is passed over is known by its place in the name") {
  CHECK(passed_over_as("model.visual.blocks.0.attn.qkv.weight") == "a vision or sound tower");
  CHECK(passed_over_as("vision_tower.encoder.layers.0.weight") == "a vision or sound tower");
  CHECK(passed_over_as("mtp.layers.0.mlp.down_proj.weight") == "heads that predict several tokens at once");
  CHECK(passed_over_as("model.layers.0.self_attn.rotary_emb.inv_freq") == "buffers");
  CHECK(passed_over_as("model.layers.0.mtp.weight").empty());
  CHECK(passed_over_as("model.layers.0.mlp.gate_proj.weight").empty());
  CHECK(passed_over_as("").empty());
}

TEST_CASE("a model under other names computes the same, and says so") {
  const std::vector<float> expected = logits_of(renamed(kQwen, [](const std::string& name) { return name; }));
  const std::vector<std::function<std::string(const std::string&)>> ways{
      [](const std::string& name) { return "module." + name; }, [](const std::string& name) { return "_orig_mod." + name; },
      [](const std::string& name) { return "model.language_model." + name.substr(6); },
      [](const std::string& name) { return name.substr(6); },  // a base model, tied
  };
  for (const auto& way : ways) {
    const auto checkpoint = renamed(kQwen, way);
    CHECK(logits_of(checkpoint) == expected);
    CHECK_FALSE(Model::load(checkpoint, std::shared_ptr<Backend>(make_cpu_backend(1)))->notes().empty());
  }
}

TEST_CASE("two tensors that would be read as one are refused") {
  const auto both = renamed(kQwen, [](const std::string& name) {
    return name == "model.norm.weight" ? "_orig_mod.model.layers.0.input_layernorm.weight" : name;
  });
  CHECK(error_of([&] { logits_of(both); }).find("two tensors are read as model.layers.0.input_layernorm.weight") != std::string::npos);
}

}  // namespace statescope::names_test
