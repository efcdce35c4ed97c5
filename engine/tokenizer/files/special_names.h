// What tokenizer_config.json and special_tokens_map.json say beside a vocabulary.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/tokenizer/files/files.h"

namespace statescope {

struct SpecialNames {
  std::string begin, end;         // tokens for a text's beginning and end; empty: not said
  std::optional<bool> add_begin;  // put it in front of a text; unset: not said
  std::optional<bool> add_end;
};

/// A file of JSON as an object; an empty one where it is missing or damaged.
nlohmann::json json_file(const TokenizerFiles& files, std::string_view name);
/// A file that is damaged says nothing.
SpecialNames special_names(const TokenizerFiles& files);

}  // namespace statescope
