// Keys and values that a layer of softmax attention keeps, or the latents that it makes them of.
#pragma once

#include "kernels/backend.h"

namespace statescope {

/// Keys and values of all tokens so far. Grows; never forgets, so an earlier length is an earlier state.
struct KvCache {
  Buffer memory;
  Tensor k, v;   // [capacity, Hkv, d]; no v: what is read is in k
  Tensor index;  // [capacity, di]: keys of an indexer (token_choice.h), or absent
  std::int64_t length = 0;

  /// Those of the first `tokens` tokens, where they lie. What is appended to such a full cache goes elsewhere.
  KvCache first(std::int64_t tokens) const;
};

/// Appends T rows, growing the cache (by doubling) if need be. Throws std::bad_alloc.
void append(KvCache& cache, Backend& backend, ConstTensor k, ConstTensor v, ConstTensor index = {});

}  // namespace statescope
