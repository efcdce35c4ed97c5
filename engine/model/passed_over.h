// Tensors of a file that the forward pass did not ask for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace statescope {

/// A note for each kind of part that is known to play none in the text model: a vision tower, heads for other tasks, heads for more than
/// one token, buffers. Throws Error naming the first tensors that may belong to the computation: all others.
std::vector<std::string> passed_over(const std::vector<std::string>& unused, std::string_view family);

}  // namespace statescope
