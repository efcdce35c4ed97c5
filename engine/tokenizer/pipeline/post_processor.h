// What is done to the tokens of a whole text: special ones put around it, spaces taken off their places.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "engine/tokenizer/text/aligned_text.h"

namespace statescope {

struct PostProcessor {
  std::vector<std::int32_t> before, after;  // special tokens around a text
  bool trims = false;                       // places leave out the spaces at both ends of a piece (ByteLevel)
  bool keeps_first_space = false;           // but for the one that was put in front of the text

  /// Where `piece` stands in `text` without the spaces that it begins and ends with.
  Range trimmed(std::string_view text, std::string_view piece, Range place, bool is_first) const;
};

/// `part`: what a tokenizer.json has as its post_processor. Throws Error naming the part that is not understood.
PostProcessor read_post_processor(const nlohmann::json& part);

}  // namespace statescope
