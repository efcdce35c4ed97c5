#include "engine/checkpoint/digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <new>

namespace statescope {
namespace {

/// So that no two lists of texts give the same bytes.
void add_counted(Digest& digest, std::string_view text) {
  digest.add(fmt::format("{}:", text.size()));
  digest.add(text);
}

}  // namespace

void Digest::Free::operator()(XXH64_state_s* state) const { XXH64_freeState(state); }

Digest::Digest() : state_(XXH64_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH64_reset(state_.get(), 0);
}

void Digest::add(std::span<const std::byte> bytes) { XXH64_update(state_.get(), bytes.data(), bytes.size()); }

std::string Digest::text() const { return fmt::format("{:016x}", XXH64_digest(state_.get())); }

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
