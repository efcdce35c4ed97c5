// Multi-query associative recall (Arora et al., "Zoology", ICLR 2024): pairs of key and value, then noise among which the keys come again,
// each after a gap drawn from a power law. After every key that comes again the model must predict its value.
#pragma once

#include <memory>

#include "datasets/task.h"

namespace statescope {

/// Of `options`: length, pairs, filler, seed, split. Throws OptionsError.
std::unique_ptr<const Task> make_recall(const TaskOptions& options);

}  // namespace statescope
