// The tokenizers of small models: a list of words, and bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// tokenizer.json as one object word → id; words are separated by white space. `source` is what errors name. Throws Error.
std::unique_ptr<Tokenizer> word_tokenizer(const std::filesystem::path& source, const nlohmann::json& words, std::int64_t vocab_size);
/// Bytes are their own ids. Throws Error for a vocabulary below 256.
std::unique_ptr<Tokenizer> byte_tokenizer(const std::filesystem::path& source, std::int64_t vocab_size);
/// Stands where text cannot be read: tokens show as numbers.
std::unique_ptr<Tokenizer> numbers_only(std::string refusal);
/// "<7>"
std::string number_of(std::int32_t id);

}  // namespace statescope
