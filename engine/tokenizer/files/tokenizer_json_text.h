// The text of a tokenizer.json, read once: the large lists go where they are needed, the rest into a JSON value.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/tokenizer/vocabularies/vocabulary.h"

namespace statescope {

struct TokenizerJsonText {
  struct Merge {
    std::uint32_t begin, left, right;  // bytes of the two parts, which lie one after the other
  };
  nlohmann::json rest;  // all but the following
  Vocabulary vocabulary;
  std::vector<double> scores;  // of a vocabulary that is a list, by id
  std::vector<Merge> merges;
  std::string merge_text;
  bool has_merges = false, has_scores = false;

  std::string_view left(const Merge& merge) const { return std::string_view(merge_text).substr(merge.begin, merge.left); }
  std::string_view right(const Merge& merge) const { return std::string_view(merge_text).substr(merge.begin + merge.left, merge.right); }
};

/// Throws Error where it is no JSON object, or a list is damaged.
TokenizerJsonText read_tokenizer_json_text(const std::string& text);

}  // namespace statescope
