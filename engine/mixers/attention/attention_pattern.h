// Fixed patterns of softmax attention, as a Transformer's key `attn_pattern` names them (spec §18.5).
#pragma once

#include <optional>
#include <vector>

#include "engine/config/config.h"
#include "engine/config/weights.h"
#include "kernels/ops/softmax_attention.h"

namespace statescope {

class AttentionPattern {
 public:
  /// Of a layer with so many query heads; none where the config has no such key. Throws Error.
  static std::optional<AttentionPattern> of(const Config& config, std::int64_t layer, std::int64_t heads);

  /// Its lists lie in this object.
  FixedPattern on_host() const;
  /// Its lists lie with the weights.
  FixedPattern on_device(const WeightScope& weights) const;
  /// Tokens for which blocks are listed; 0: there are no such lists.
  std::int64_t listed_tokens() const { return rule_.listed_rows * rule_.block_size; }

 private:
  void read_longformer(const Config& pattern, std::int64_t heads);
  void read_bigbird(const Config& pattern, std::int64_t layer, std::int64_t layers, std::int64_t heads);
  void read_blocksparse(const Config& pattern, std::int64_t heads);
  FixedPattern with_lists(const std::int32_t* dilation, const std::int32_t* global, const std::int32_t* listed) const;

  FixedPattern rule_;                                     // without its lists
  std::vector<std::int32_t> dilation_, global_, listed_;  // as FixedPattern has them
};

}  // namespace statescope
