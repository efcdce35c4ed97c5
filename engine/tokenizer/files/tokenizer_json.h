// tokenizer.json of Hugging Face tokenizers, and word lists of that name.
#pragma once

#include <memory>

#include "engine/tokenizer/files/files.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// Throws Error naming the part that is not understood.
std::unique_ptr<Tokenizer> read_tokenizer_json(const TokenizerFiles& files, const std::string& text);

}  // namespace statescope
