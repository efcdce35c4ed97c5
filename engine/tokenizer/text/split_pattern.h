// The regular expressions by which texts are cut into words (PCRE2, bounded).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/tokenizer/text/aligned_text.h"

namespace statescope {

/// Whose expressions they are: Oniguruma's (tokenizer.json) or those of Rust's regex and fancy-regex (tiktoken, tekken).
enum class RegexFlavour { oniguruma, rust };

/// What PCRE2 understands as the given engine understands `pattern`: white space, \w, scripts, classes with &&, {n,m}+. Throws Error naming
/// what it cannot say.
std::string translated(std::string_view pattern, RegexFlavour flavour);

class SplitPattern {
 public:
  /// Throws Error with the pattern's beginning where it cannot be translated or compiled.
  SplitPattern(std::string_view pattern, RegexFlavour flavour);
  /// Every place where that text stands.
  static SplitPattern literal(std::string_view text);

  /// Calls `found` for every match within `range`, from left to right; a match sees nothing outside. `text` is valid UTF-8. Throws Error
  /// where a match takes more steps than any real text needs.
  void each_match(std::string_view text, Range range, const std::function<void(Range)>& found) const;

 private:
  SplitPattern() = default;
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace statescope
