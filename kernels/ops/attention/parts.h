// What operations over queries and the keys before them share: where a segment's rows lie, checks of their operands.
#pragma once

#include <cmath>

#include "kernels/ops/memory_parts.h"

namespace statescope {

/// Where a segment's rows lie: its queries are the last ones of its keys.
struct KeySpan {
  std::int64_t first_query, queries, first_key, keys;

  /// Of query i among the keys.
  std::int64_t position(std::int64_t i) const { return keys - queries + i; }
};

template <class Op>
KeySpan span_of(const Op& op, std::int64_t segment) {
  const auto s = static_cast<std::size_t>(segment);
  const auto &queries = op.segments.cu_seqlens, &keys = op.cu_seqlens_k;
  return {queries[s], queries[s + 1] - queries[s], keys[s], keys[s + 1] - keys[s]};
}

/// Shapes of q, k, v and o. k and v may have fewer heads.
template <class Op>
void check_heads(const OperandCheck& check, const Op& op) {
  const Shape &q = op.q.shape, &k = op.k.shape, &v = op.v.shape;
  check.require(q.rank() == 3, "q", "found " + q.to_string() + ", expected [queries, heads, d]");
  check.require(v.rank() == 3, "v", "found " + v.to_string() + ", expected [keys, heads, V]");
  check.tensor("q", op.q, q);
  check.heads("k", op.k, {v[0], q[1], q[2]});
  check.tensor("v", op.v, {k[0], k[1], v[2]});
  check.tensor("o", op.o, {q[0], q[1], v[2]});
}

/// Every segment has a key for every query.
template <class Op>
void check_spans(const OperandCheck& check, const Op& op, std::int64_t queries, std::int64_t keys) {
  check.offsets("cu_seqlens", op.segments.cu_seqlens, queries);
  check.offsets("cu_seqlens_k", op.cu_seqlens_k, keys);
  check.require(op.segments.cu_seqlens.size() == op.cu_seqlens_k.size(), "cu_seqlens_k",
                "found " + std::to_string(op.cu_seqlens_k.size()) + " offsets, expected those of cu_seqlens, " +
                    std::to_string(op.segments.cu_seqlens.size()));
  for (std::int64_t s = 0; s < op.segments.count(); ++s) {
    const KeySpan span = span_of(op, s);
    check.require(span.queries <= span.keys, "cu_seqlens_k",
                  "segment " + std::to_string(s) + " has " + std::to_string(span.queries) + " queries and " + std::to_string(span.keys) +
                      " keys, expected a key for every query");
  }
}

/// Order of indices: by score, of equal scores the lower index first; NaN counts as smallest.
struct LargestFirst {
  const float* score;

  bool operator()(std::int32_t a, std::int32_t b) const { return larger(a, b) || (!larger(b, a) && a < b); }

 private:
  bool larger(std::int32_t a, std::int32_t b) const { return score[a] > score[b] || (std::isnan(score[b]) && !std::isnan(score[a])); }
};

/// mean[c] = the mean of x_j[c] over the rows [first, first + count)
inline void mean_of_rows(float* mean, HeadRows<const float> x, std::int64_t first, std::int64_t count, std::int64_t width) {
  std::fill_n(mean, width, 0.0F);
  for (std::int64_t j = first; j < first + count; ++j) {
    for (std::int64_t c = 0; c < width; ++c) mean[c] += x[j][c];
  }
  scale_row(mean, 1 / static_cast<float>(count), width);
}

}  // namespace statescope
