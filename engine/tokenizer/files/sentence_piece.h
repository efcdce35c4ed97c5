// sentencepiece's tokenizer.model. Read by own code: the library's table of characters goes wherever a damaged file points it, and versions
// of it differ where two splits are equally probable.
#pragma once

#include "engine/tokenizer/files/files.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// A protobuf message ModelProto (sentencepiece_model.proto). Throws Error.
std::unique_ptr<Tokenizer> read_sentence_piece(const TokenizerFiles& files, const std::string& name, std::string_view bytes);

}  // namespace statescope
