// Copying: n words, a mark, the same n words. Whatever is not kept in memory cannot be said again.
#pragma once

#include <memory>

#include "datasets/task.h"

namespace statescope {

/// Of `options`: length (2n + 1), seed, split. Throws OptionsError.
std::unique_ptr<const Task> make_copying(const TaskOptions& options);

}  // namespace statescope
