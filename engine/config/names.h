// What tensors are called in files, and what the plan calls them.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace statescope {

/// Names as a plan has them: wrappers' prefixes ("module.", "_orig_mod.", "language_model.model.", none at all, …) become the one before
/// `embeddings`, the plan's name of the embedding table, and the head is found under them. What was done is added to `notes`. Throws Error
/// where two tables could be meant.
void take_planned_names(std::vector<StoredTensor>& tensors, const std::string& embeddings, const std::string& head,
                        std::vector<std::string>& notes);

}  // namespace statescope
