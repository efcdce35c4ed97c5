// Words that have been split before: most words of a text are few.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/tokenizer/vocabularies/model.h"

namespace statescope {

class WordCache {
 public:
  static constexpr std::size_t kLongestWord = 64;  // bytes

  /// The pieces of a word, by `split` where it is new. They stay until the next call.
  template <class Split>
  std::span<const TokenPiece> pieces_of(std::string_view word, Split split) {
    const std::size_t hash = std::hash<std::string_view>{}(word);
    Slot& slot = slot_of(word, hash);
    if (slot.length > 0) return std::span(pieces_).subspan(slot.first_piece, slot.pieces);
    return put(slot, word, hash, split);
  }

 private:
  static constexpr std::size_t kSlots = 1 << 17, kMostWords = kSlots / 2;
  struct Slot {
    std::uint32_t hash = 0, begin = 0, first_piece = 0;
    std::uint16_t length = 0, pieces = 0;  // length 0: nothing is here
  };

  Slot& slot_of(std::string_view word, std::size_t hash) {
    for (std::size_t at = hash % kSlots;; at = (at + 1) % kSlots) {
      Slot& slot = slots_[at];
      const bool is_it = slot.hash == static_cast<std::uint32_t>(hash >> 32) && slot.length == word.size() &&
                         std::string_view(words_).substr(slot.begin, slot.length) == word;
      if (slot.length == 0 || is_it) return slot;
    }
  }

  template <class Split>
  std::span<const TokenPiece> put(Slot& slot, std::string_view word, std::size_t hash, Split split) {
    if (count_ == kMostWords) {
      *this = WordCache();
      return put(slot_of(word, hash), word, hash, split);
    }
    const auto first = static_cast<std::uint32_t>(pieces_.size()), begin = static_cast<std::uint32_t>(words_.size());
    split(word, pieces_);
    words_ += word;
    ++count_;
    slot = {static_cast<std::uint32_t>(hash >> 32), begin, first, static_cast<std::uint16_t>(word.size()),
            static_cast<std::uint16_t>(pieces_.size() - first)};
    return std::span(pieces_).subspan(first);
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::string words_;
  std::vector<TokenPiece> pieces_;
  std::size_t count_ = 0;
};

/// Caches that threads borrow, so that each is used by one at a time.
class WordCaches {
 public:
  class Borrowed {
   public:
    explicit Borrowed(WordCaches& caches) : caches_(caches), cache_(caches.take()) {}
    ~Borrowed() { caches_.give(std::move(cache_)); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    WordCache& operator*() { return *cache_; }

   private:
    WordCaches& caches_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  std::unique_ptr<WordCache> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<WordCache>();
    auto cache = std::move(free_.back());
    free_.pop_back();
    return cache;
  }
  void give(std::unique_ptr<WordCache> cache) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(cache));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

}  // namespace statescope
