// Any bytes as a vocabulary; the first half of them is also the text that it encodes.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "engine/error.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope::fuzz {

/// Reads the files as a checkpoint's, encodes `text` and decodes it again.
inline void try_tokenizer(std::map<std::string, std::string> files, std::string_view text) {
  Checkpoint checkpoint;
  checkpoint.tokenizer = std::move(files);
  const auto tokenizer = make_tokenizer(checkpoint, 300);
  try {
    const Encoding encoding = tokenizer->encode(text, {.recognise_specials = true});
    tokenizer->decode(encoding.ids);
    for (std::size_t i = 0; i < encoding.ids.size(); ++i)
      if (encoding.ids[i] < 0 || encoding.begin[i] > encoding.end[i] || encoding.end[i] > text.size()) std::abort();
  } catch (const Error&) {
  }
}

}  // namespace statescope::fuzz
