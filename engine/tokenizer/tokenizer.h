// Text to token ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace statescope {

/// Ids and, for each, the bytes [begin, end) of the text that it stands for; for a token that was put beside the text they are equal.
/// Several tokens may share the bytes of one character.
struct Encoding {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> begin, end;
};

struct EncodeOptions {
  bool add_specials = true;         // what the files put around a text (a token for its beginning, mostly)
  bool recognise_specials = false;  // a special token's name in the text ("<|im_end|>") is that token, else text as any other
};

/// A text that goes on from another one: an answer, the rest of a prompt.
inline constexpr EncodeOptions kContinuation{.add_specials = false};

/// What is known of a tokenizer beside its text.
struct TokenizerInfo {
  std::string kind;                                           // "words", "bytes", "byte-level BPE", …; empty where text cannot be read
  std::string refusal;                                        // why text cannot be read: file, part, reason; empty where it can
  std::int64_t size = 0;                                      // all ids that have a text are below it
  std::map<std::string, std::int32_t, std::less<>> specials;  // special tokens by name
  std::optional<std::int32_t> begin_of_text, end_of_text;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  const TokenizerInfo& info() const { return info_; }

  /// Throws Error: the refusal, or the first word that a word list lacks. Bytes that are no UTF-8 count as U+FFFD, except where tokens are
  /// bytes.
  virtual Encoding encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  /// The bytes that one token stands for, which need not be whole characters: a piece as its vocabulary has it, with spaces and bytes in
  /// place of their signs; "<7>" for an id that has no text.
  virtual std::string text_of(std::int32_t id) const = 0;
  /// The text of all tokens together. Ids without a text are left out, except by words, bytes and where text cannot be read.
  virtual std::string decode(std::span<const std::int32_t> ids, bool skip_specials = false) const = 0;
  /// Where decode() is the tokens' own bytes one after the other, U+FFFD in place of what is no UTF-8: the bytes of this one.
  virtual std::optional<std::string> bytes_of(std::int32_t id, bool skip_specials = false) const;

 protected:
  TokenizerInfo info_;
};

/// The text of tokens that come one by one, in whole characters: what add() and finish() return, put together, is the text of all, unless
/// byte pieces (<0xE4>) break a text of which a part has been said.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_specials = false);

  /// What can be said now that this token is there; empty while a character is incomplete.
  std::string add(std::int32_t id);
  /// What is left at the end: U+FFFD for a character that stayed incomplete.
  std::string finish();

 private:
  std::string add_piece(std::int32_t id);

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_specials_;
  std::string tail_;                // bytes of a character that is not complete
  std::vector<std::int32_t> last_;  // where neighbours matter: first those tokens of which `said_` has been said
  std::size_t known_ = 0;           // how many those are
  std::string said_;
};

/// The tokenizer that comes with a checkpoint. Where text cannot be read, because there is none or because something in its files is not
/// understood, info().refusal says why, `encode` throws it (with the advice to give ids), and tokens show as numbers: such a checkpoint
/// still opens and runs from ids. Without any file, a vocabulary of 256 … 260 is bytes.
std::unique_ptr<Tokenizer> make_tokenizer(const Checkpoint& checkpoint, std::int64_t vocab_size);

/// The tokenizer of a checkpoint (.h5 file or folder), of a folder that has tokenizer files alone, or in one such file. Throws Error.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& path);

}  // namespace statescope
