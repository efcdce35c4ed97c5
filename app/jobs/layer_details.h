// What a layer of a model sees and shares, in the words of the field.
#pragma once

#include <string>
#include <vector>

#include "engine/model/model.h"

namespace statescope {

/// [layers] "window of 16 tokens", "top-3 blocks of 12 tokens", "latent width 20, shared key part 12", "attention and MLP shared by layers
/// 1 and 2"; empty: nothing of the kind.
std::vector<std::string> layer_details(const Model& model);

}  // namespace statescope
