// Needles in a haystack: sentences that give names their values, among generated sentences (counted in words) or in prose (counted in
// bytes); at the end the values of some names are asked for.
#pragma once

#include <memory>
#include <string>

#include "datasets/task.h"
#include "datasets/templates.h"

namespace statescope {

/// Of `options`: length, needles, values, queries, depth_percent, value, seed, split. Both throw OptionsError.
std::unique_ptr<const Task> make_filler_needles(const TaskOptions& options, const Templates& templates);
/// `text` is one line of UTF-8, as prose() gives it. Where a haystack would begin within a character, it begins with the next one, and the
/// example is up to 3 bytes shorter than asked.
std::unique_ptr<const Task> make_prose_needles(const TaskOptions& options, const Templates& templates, std::string text);

}  // namespace statescope
