// vocab.json and merges.txt: byte-level BPE as GPT-2 came.
#pragma once

#include "engine/tokenizer/files/files.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// `vocabulary`: pieces and ids as a JSON object; `merges`: two pieces a line, the first line skipped if it begins with #version. How texts
/// are cut is GPT-2's, or Qwen2's where tokenizer_config.json names that. Throws Error.
std::unique_ptr<Tokenizer> read_gpt2_files(const TokenizerFiles& files, const std::string& vocabulary, std::string_view merges);

}  // namespace statescope
