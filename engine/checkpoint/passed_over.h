// Tensors of a real folder that a language model's forward pass has no use for, known by their names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace statescope {

/// What a tensor belongs to that is passed over: "a vision or sound tower", "heads that predict several tokens at once", "buffers";
/// empty: it may be a weight.
std::string_view passed_over_as(std::string_view tensor_name);

/// Scales of activations and shapes that stand beside quantised matrices: activations are not quantised here.
bool is_activation_scale(std::string_view tensor_name);

/// "3 tensors of buffers passed over: a, b, …"
std::string passed_over_note(std::string_view what, const std::vector<std::string>& tensor_names);

}  // namespace statescope
