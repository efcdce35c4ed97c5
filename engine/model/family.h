// From model_type to the stack: which mixer each layer has, what the tensors around it are called, and which norms they use (spec §1, §7,
// §8, §15).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/config/config.h"
#include "engine/model/ffn.h"

namespace statescope {

enum class FfnKind { none, mlp, experts, channel_mix };

/// What goes beside the residual stream through all layers, as wide as it or several times as wide: nothing, the values v of layer 0
/// (RWKV-7) with zeros behind them, or the embedding (Zamba).
enum class Companion { none, first_values, embedding };

/// How what a part puts out enters the residual stream x.
struct Residual {
  float norm_factor = 1, part_factor = 1;
  bool keeps_norm = false;  // x = norm_factor · n + part_factor · part(n), n = RMSNorm(x); else x += part_factor · part(n)
};

struct LayerPlan {
  std::string mixer;                  // row of the mixer table; empty: the layer is an MLP or experts alone
  Config config;                      // of this layer's mixer
  std::string mixer_prefix;           // "model.layers.0.attn."
  std::string mixer_norm;             // "model.layers.0.attn_norm.weight"; empty: the mixer reads the residual stream as it is
  bool reads_companion = false;       // behind its normalised input
  std::int64_t companion_layer = -1;  // then what entered this layer, one before it; −1: the model's companion
  std::string mixer_post_norm;        // of what the mixer puts out; empty: none
  Residual mixer_residual;
  FfnKind ffn = FfnKind::mlp;
  std::string ffn_prefix;  // "model.layers.0.mlp."
  std::string ffn_norm;    // "model.layers.0.mlp_norm.weight"; as mixer_norm
  std::string ffn_post_norm;
  Residual ffn_residual;
  MlpPlan mlp;  // where ffn is that
  std::shared_ptr<const ExpertsPlan> experts;
  ChannelMixPlan channel_mix;
};

struct Plan {
  std::string family;  // model_type
  std::int64_t hidden = 0, vocab = 0;
  std::string embeddings, norm, head;
  float norm_eps = 1e-6f, ffn_norm_eps = 1e-6f;
  float norm_offset = 0;                          // 1: zero-centred norms
  float embedding_factor = 1, logits_factor = 1;  // x = factor · embedding, factor · head(x)
  bool layer_norms = false;                       // the stream's norms take the mean away first
  bool norm_biases = false;                       // and have a bias
  std::string embedding_norm;                     // of the embedding, before the first layer; empty: none
  Companion companion = Companion::none;
  std::int64_t companion_parts = 1;     // of `hidden` numbers each, side by side
  std::string memory_tokens;            // [so many, hidden], which every layer reads before the first token; empty: there are none
  std::int64_t memory_token_count = 0;  // they take the positions before it
  std::int64_t most_tokens = 0;         // of a sequence; 0: any number
  bool tied = false;
  bool extra_layers = false;        // files may hold layers behind the last one, which predict further tokens: passed over
  bool tied_where_no_head = false;  // without a head in the files the embedding is the head, whatever the config says (spec §19.1)
  std::vector<LayerPlan> layers;
  std::vector<std::string_view> buffers;           // ends of names of tensors that are worked out anew: passed over
  std::map<std::string, std::string> other_names;  // under which a tensor may be stored, and what it is called here
  std::vector<std::string> notes;                  // what was ignored or mended, one line each
};

/// Throws Error: unknown families are refused by name.
Plan plan_model(const Config& config);

/// The tensors under their present names: legacy checkpoints are made regular (spec §14), and what was done is noted in the plan.
std::vector<StoredTensor> regular_tensors(const Checkpoint& checkpoint, Plan& plan);

}  // namespace statescope
