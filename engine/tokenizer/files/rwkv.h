// The RWKV "World" vocabulary: the longest piece that begins at each byte.
#pragma once

#include "engine/tokenizer/files/files.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// Lines `id literal length`, the literal as Python writes it. Throws Error naming the line.
std::unique_ptr<Tokenizer> read_rwkv(const TokenizerFiles& files, const std::string& name, std::string_view text);
/// Whether the text's first line is one of such a file.
bool is_rwkv(std::string_view text);

}  // namespace statescope
