// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace statescope {

/// Ids and, for each, the bytes [begin, end) of the text that it stands for.
struct Encoding {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> begin, end;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Throws Error naming the first word that the vocabulary lacks.
  virtual Encoding encode(std::string_view text) const = 0;
  /// What one token stands for; "<7>" for an id that has no text.
  virtual std::string text_of(std::int32_t id) const = 0;
  /// The tokens joined as text would be written (words by spaces, bytes by nothing).
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
};

/// The tokenizer that comes with a checkpoint: a word list (tokenizer.json as one object word → id, words separated by white space) or
/// bytes (tokenizer.json {"type": "bytes"}, or no tokenizer and a vocabulary of 256 … 260). Any other kind is refused by name, saying that
/// token ids can be given with --ids instead; the refusal comes from `encode`, so that such a checkpoint still opens and runs from ids.
std::unique_ptr<Tokenizer> make_tokenizer(const Checkpoint& checkpoint, std::int64_t vocab_size);

}  // namespace statescope
