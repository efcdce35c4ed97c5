// Decoding as tokens come: by bytes where decoding is nothing else, otherwise by decoding the last few tokens again with each new one, for
// decoders look at neighbours (Hugging Face tokenizers, decode_stream).
#include <algorithm>

#include "engine/tokenizer/text/utf8.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

constexpr std::size_t kMostUnsaid = 64;  // tokens: a run of broken bytes is said at the latest then

constexpr std::string_view kBroken = "\xEF\xBF\xBD";  // U+FFFD

/// What `text` has behind its beginning, which it shares with what has been said.
std::string behind(const std::string& text, std::string_view said) {
  const auto differing = std::ranges::mismatch(text, said);
  return {differing.in1, text.end()};
}

}  // namespace

std::optional<std::string> Tokenizer::bytes_of(std::int32_t, bool) const { return std::nullopt; }

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_specials)
    : tokenizer_(std::move(tokenizer)), skip_specials_(skip_specials) {}

std::string StreamDecoder::add(std::int32_t id) {
  const std::optional<std::string> bytes = tokenizer_->bytes_of(id, skip_specials_);
  if (!bytes) return add_piece(id);
  tail_ += *bytes;
  return utf8::take_whole(tail_);
}

std::string StreamDecoder::finish() {
  std::string rest = last_.empty() ? utf8::repaired(tail_) : behind(tokenizer_->decode(last_, skip_specials_), said_);
  tail_.clear();
  last_.clear();
  said_.clear();
  known_ = 0;
  return rest;
}

std::string StreamDecoder::add_piece(std::int32_t id) {
  last_.push_back(id);
  const std::string text = tokenizer_->decode(last_, skip_specials_);
  const bool is_cut = text.ends_with(kBroken) && last_.size() - known_ < kMostUnsaid;
  if (text.size() <= said_.size() || is_cut) return {};
  std::string added = behind(text, said_);
  last_.erase(last_.begin(), last_.begin() + static_cast<std::ptrdiff_t>(known_));
  known_ = last_.size();
  said_ = tokenizer_->decode(last_, skip_specials_);
  return added;
}

}  // namespace statescope
