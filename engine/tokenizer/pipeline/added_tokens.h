// Tokens that are found in the text before it is cut into words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/text/aligned_text.h"
#include "engine/tokenizer/text/trie.h"

namespace statescope {

struct AddedToken {
  std::int32_t id;
  std::string content;
  bool special = false, normalized = false;  // normalized: searched in the normalised text
  bool lstrip = false, rstrip = false;       // swallows the white space before it, behind it
  bool single_word = false;                  // not within a word
};

/// A part of a text: a token, or text where `token` is null.
struct Section {
  Range range;
  const AddedToken* token;
};

class AddedTokens {
 public:
  void add(AddedToken token);
  /// Once all are there. `normal`: the normalised content of those that are searched there.
  template <class Normal>
  void finish(Normal normal) {
    std::vector<std::string> contents;
    for (const AddedToken& token : tokens_) contents.push_back(token.normalized ? normal(token.content) : token.content);
    build(contents);
  }

  /// Cuts out the tokens, leftmost and longest first: those of the raw or of the normalised text.
  std::vector<Section> cut(std::string_view text, bool normalized, bool recognise_specials) const;

  const AddedToken* of_id(std::int32_t id) const;
  const std::vector<AddedToken>& all() const { return tokens_; }
  /// Throws Error for a damaged list.
  static AddedTokens read(const nlohmann::json& list);

 private:
  void build(const std::vector<std::string>& contents);

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  Trie raw_, normalized_;
};

}  // namespace statescope
