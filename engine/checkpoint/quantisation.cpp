#include "engine/checkpoint/quantisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::size_t kMostForms = 256;

std::string lower(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return low;
}

const json* member(const json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string text_of(const json& object, const char* key) {
  const json* value = member(object, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

/// The members of an object under a key; none where there is none.
template <class Each>
void each_member(const json& object, const char* key, Each each) {
  const json* const inside = member(object, key);
  if (!inside || !inside->is_object()) return;
  for (const auto& [name, value] : inside->items()) each(value);
}

void add_form(Quantisation& found, const json& object, const char* key) {
  if (std::string form = text_of(object, key); !form.empty() && found.forms.size() < kMostForms) found.forms.push_back(std::move(form));
}

/// [128, 128], or "128x128".
void add_block(Quantisation& found, const json* value) {
  const auto is_extent = [](const json& n) {
    return n.is_number_unsigned() && n.get<std::uint64_t>() > 0 && n.get<std::uint64_t>() < 1 << 30;
  };
  if (!value || found.blocks.size() >= kMostForms) return;
  if (value->is_array() && value->size() == 2 && is_extent((*value)[0]) && is_extent((*value)[1]))
    found.blocks.push_back({(*value)[0].get<std::int64_t>(), (*value)[1].get<std::int64_t>()});
  if (!value->is_string()) return;
  int rows = 0, columns = 0;
  if (std::sscanf(value->get_ref<const std::string&>().c_str(), "%9dx%9d", &rows, &columns) == 2 && rows > 0 && columns > 0)
    found.blocks.push_back({rows, columns});
}

/// The groups of compressed-tensors, each perhaps with a form of its own, and the layers of ModelOpt.
void add_parts(Quantisation& found, const json& settings) {
  each_member(settings, "config_groups", [&](const json& group) {
    add_form(found, group, "format");
    if (const json* weights = member(group, "weights")) add_block(found, member(*weights, "block_structure"));
  });
  each_member(settings, "quantized_layers", [&](const json& layer) {
    if (!found.uses(text_of(layer, "quant_algo"))) add_form(found, layer, "quant_algo");
  });
}

void read_settings(Quantisation& found, const json& settings) {
  found.method = lower(text_of(settings, "quant_method"));
  for (const char* key : {"format", "quant_algo", "fmt"}) add_form(found, settings, key);
  if (const json* sparsity = member(settings, "sparsity_config")) add_form(found, *sparsity, "format");
  add_block(found, member(settings, "weight_block_size"));
  add_parts(found, settings);
  if (!found.method.empty()) return;
  const json* const producer = member(settings, "producer");
  if ((producer && lower(text_of(*producer, "name")) == "modelopt") || member(settings, "quant_algo")) found.method = "modelopt";
  if (found.method.empty() && member(settings, "config_groups")) found.method = "compressed-tensors";
  if (found.method.empty() && (member(settings, "load_in_4bit") || member(settings, "load_in_8bit"))) found.method = "bitsandbytes";
  if (found.method.empty()) found.method = "a method without a name";
}

/// Under the keys that are in use, at the top or with the text model, or one level down inside itself.
bool find_settings(Quantisation& found, const json& config) {
  for (const char* const holder : {"", "text_config", "llm_config", "language_config"}) {
    const json* const inside = *holder ? member(config, holder) : &config;
    for (const char* const key : {"quantization_config", "compression_config"}) {
      const json* settings = inside ? member(*inside, key) : nullptr;
      for (const char* const again : {"quantization_config", "compression_config"}) {
        if (settings && member(*settings, again)) settings = member(*settings, again);
      }
      if (!settings || !settings->is_object() || settings->empty()) continue;
      found.file = "config.json";
      found.key = *holder ? fmt::format("{}.{}", holder, key) : key;
      read_settings(found, *settings);
      return true;
    }
  }
  return false;
}

bool find_mlx(Quantisation& found, const json& config) {
  const json* const settings = member(config, "quantization");
  if (!settings || !member(*settings, "group_size") || !member(*settings, "bits")) return false;
  found.file = "config.json";
  found.key = "quantization";
  found.method = "mlx";
  return true;
}

void find_modelopt(Quantisation& found, const json& file) {
  const json* const settings = member(file, "quantization");
  if (!settings || !settings->is_object()) return;
  found.file = "hf_quant_config.json";
  found.key = "quantization";
  read_settings(found, *settings);
}

json parsed(std::string_view text) {
  return text.empty() ? json() : json::parse(quote_python_floats(text), nullptr, /*allow_exceptions=*/false);
}

struct Named {
  std::string_view word, name;
};
/// Methods whose usual name is another.
constexpr std::array<Named, 9> kMethods{{{"gptq", "GPTQ"},
                                         {"awq", "AWQ"},
                                         {"auto-round", "AutoRound"},
                                         {"auto_round", "AutoRound"},
                                         {"intel/auto-round", "AutoRound"},
                                         {"mxfp4", "MXFP4 in the layout of gpt-oss"},
                                         {"mxfp8", "MXFP8"},
                                         {"nvfp4", "nvfp4 (NVFP4 without a known layout)"},
                                         {"mlx", "MLX"}}};
constexpr std::array<std::string_view, 7> kReadForms{"float-quantized", "int-quantized", "mxfp4-pack-quantized", "nvfp4-pack-quantized",
                                                     "mixed-precision", "dense",         "naive-quantized"};
constexpr std::array<std::string_view, 6> kReadAlgorithms{
    "fp8", "fp8_per_channel_per_token", "fp8_pb_wo", "nvfp4", "w4a16_nvfp4", "mixed_precision"};

template <std::size_t n>
std::string first_unread(const std::vector<std::string>& forms, const std::array<std::string_view, n>& read) {
  const auto found =
      std::ranges::find_if(forms, [&](const std::string& form) { return std::ranges::find(read, lower(form)) == read.end(); });
  return found == forms.end() ? std::string() : one_line(*found, 60);
}

std::string compressed_tensors_name(const std::vector<std::string>& forms) {
  const std::string form = first_unread(forms, kReadForms);
  if (form.empty()) return {};
  const std::string low = lower(form);
  const std::string_view usual = low.starts_with("mxfp6")                                    ? "MXFP6: "
                                 : low.starts_with("mxfp8")                                  ? "MXFP8: "
                                 : low.starts_with("sparse") || low.starts_with("marlin-24") ? "sparse 2:4: "
                                 : low == "pack-quantized"                                   ? "packed INT4 or INT8: "
                                                                                             : "";
  return fmt::format("{}compressed-tensors {}", usual, form);
}

std::string modelopt_name(const std::vector<std::string>& forms) {
  const std::string form = first_unread(forms, kReadAlgorithms);
  return form.empty() ? std::string() : fmt::format("{} (ModelOpt)", form);
}

}  // namespace

bool Quantisation::uses(std::string_view form) const {
  return std::ranges::any_of(forms, [&](const std::string& one) { return lower(one) == lower(form); });
}

std::string Quantisation::refused_as() const {
  if (method.empty()) return {};
  if (method == "compressed-tensors") return compressed_tensors_name(forms);
  if (method == "modelopt") return modelopt_name(forms);
  if (method == "fp8" || method == "fbgemm_fp8") return uses("e5m2") ? "FP8 E5M2" : "";
  if (method == "bitsandbytes") return "bitsandbytes";
  const auto known = std::ranges::find(kMethods, method, &Named::word);
  return known != kMethods.end() ? std::string(known->name) : one_line(method, 60);
}

Quantisation quantisation_of(std::string_view config, std::string_view hf_quant_config) {
  Quantisation found;
  const json object = parsed(config);
  if (!find_mlx(found, object) && !find_settings(found, object)) find_modelopt(found, parsed(hf_quant_config));
  found.blocks.push_back({});
  return found;
}

}  // namespace statescope
