// How a normalised text is cut into words, which a model then splits one by one.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/tokenizer/text/aligned_text.h"
#include "engine/tokenizer/text/split_pattern.h"

namespace statescope {

/// A text, and the words that it has been cut into.
struct CutText {
  AlignedText text;
  std::vector<Range> ranges;  // of text, in order and apart, none empty

  /// The whole text as one word.
  static CutText of(AlignedText text);
};

/// What becomes of the places where a text is cut.
enum class Cut { isolated, removed, merged_with_previous, merged_with_next, contiguous };

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void cut(CutText& words) const = 0;
  /// Bytes become words; what comes after this sees them in the byte alphabet.
  virtual bool is_byte_level() const { return false; }
};

/// Cuts every word at the matches.
void cut_at(CutText& words, const SplitPattern& pattern, Cut how, bool invert);

/// Every word in the byte alphabet.
void to_byte_alphabet(CutText& words);

/// `part`: what a tokenizer.json has as its pre_tokenizer; null: no cutting. Throws Error naming the part that is not understood.
std::vector<std::unique_ptr<PreTokenizer>> read_pre_tokenizers(const nlohmann::json& part);

/// GPT-2's pattern.
extern const char* const kGpt2Pattern;

}  // namespace statescope
