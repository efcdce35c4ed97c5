#include "engine/checkpoint/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace statescope {
namespace {

constexpr std::uint64_t P1 = 0x9e3779b185ebca87, P2 = 0xc2b2ae3d27d4eb4f, P3 = 0x165667b19e3779f9, P4 = 0x85ebca77c2b2ae63,
                        P5 = 0x27d4eb2f165667c5;
constexpr std::size_t kStripe = 32;  // bytes

std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) { return std::rotl(lane + word * P2, 31) * P1; }

/// Little endian, as all machines are that this runs on.
template <class Word>
std::uint64_t word_at(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// So that no two lists of texts give the same bytes.
void add_counted(Digest& digest, std::string_view text) {
  digest.add(fmt::format("{}:", text.size()));
  digest.add(text);
}

}  // namespace

void Digest::add_stripe(const std::byte* stripe) {
  for (std::size_t i = 0; i < 4; ++i) lanes_[i] = mixed(lanes_[i], word_at<std::uint64_t>(stripe + 8 * i));
}

void Digest::add(std::span<const std::byte> bytes) {
  const std::size_t kept = size_ % kStripe, missing = std::min(bytes.size(), (kStripe - kept) % kStripe);
  size_ += bytes.size();
  std::copy_n(bytes.begin(), missing, rest_.begin() + static_cast<std::ptrdiff_t>(kept));
  if (kept > 0 && kept + missing == kStripe) add_stripe(rest_.data());
  bytes = bytes.subspan(missing);
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) add_stripe(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

std::uint64_t Digest::value() const {
  std::uint64_t hash = P5;
  if (size_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (std::uint64_t lane : lanes_) hash = (hash ^ mixed(0, lane)) * P1 + P4;
  }
  hash += size_;
  const std::byte* at = rest_.data();
  std::size_t left = size_ % kStripe;
  for (; left >= 8; left -= 8, at += 8) hash = std::rotl(hash ^ mixed(0, word_at<std::uint64_t>(at)), 27) * P1 + P4;
  for (; left >= 4; left -= 4, at += 4) hash = std::rotl(hash ^ word_at<std::uint32_t>(at) * P1, 23) * P2 + P3;
  for (; left > 0; --left, ++at) hash = std::rotl(hash ^ word_at<std::uint8_t>(at) * P5, 11) * P1;
  hash = (hash ^ hash >> 33) * P2;
  hash = (hash ^ hash >> 29) * P3;
  return hash ^ hash >> 32;
}

std::string Digest::text() const { return fmt::format("{:016x}", value()); }

std::string content_digest(const Checkpoint& checkpoint) {
  Digest digest;
  add_counted(digest, checkpoint.config);
  for (const StoredTensor& tensor : checkpoint.tensors) {
    add_counted(digest, tensor.name);
    digest.add(fmt::format("{} {};", static_cast<int>(tensor.dtype), fmt::join(tensor.shape, " ")));
    digest.add({tensor.data, static_cast<std::size_t>(tensor.bytes())});
    digest.add(std::as_bytes(tensor.scale_values()));
  }
  for (const auto& [name, bytes] : checkpoint.tokenizer) {
    add_counted(digest, name);
    add_counted(digest, bytes);
  }
  checkpoint.require_whole_files();
  return digest.text();
}

}  // namespace statescope
