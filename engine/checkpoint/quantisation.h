// What a folder's config says of how its weights are quantised (spec §19.17).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

/// Of a matrix in blocks that have a scale each.
struct BlockSize {
  std::int64_t rows = 128, columns = 128;
};

struct Quantisation {
  std::string file, key;           // where it says so: "config.json", "quantization_config"
  std::string method;              // "gptq", "compressed-tensors", "modelopt", …; empty: it says nothing
  std::vector<std::string> forms;  // that the method is said to use, as written: "pack-quantized", "NVFP4", "e5m2"
  std::vector<BlockSize> blocks;   // that it may have: what the config says, then 128 × 128

  bool uses(std::string_view form) const;  // whatever the case
  /// The name under which it is refused; empty: its tensors decide.
  std::string refused_as() const;
  /// "config.json, quantization_config"
  std::string place() const { return file + ", " + key; }
};

/// Of config.json and, where there is one, hf_quant_config.json: both JSON texts that check_json_text has passed; the second may be empty.
/// What is no object says nothing.
Quantisation quantisation_of(std::string_view config, std::string_view hf_quant_config);

}  // namespace statescope
