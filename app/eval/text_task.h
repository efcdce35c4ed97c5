// Needles in real text for the model that reads them: lengths in its tokens.
#pragma once

#include <filesystem>
#include <memory>

#include "datasets/task.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// Whether needles for it are those of real text: it has a tokenizer that is neither a word list nor bytes.
bool reads_real_text(const Tokenizer& tokenizer);

/// Throws OptionsError, std::runtime_error.
std::unique_ptr<const Task> make_text_task(const TaskOptions& options, std::shared_ptr<const Tokenizer> tokenizer,
                                           const std::filesystem::path& assets);

}  // namespace statescope
