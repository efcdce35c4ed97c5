#include "kernels/routing.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace statescope {
namespace {

bool larger(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

/// Keeps ids[0 … filled) sorted by score, largest first; equal scores stay in the order in which they come.
void insert_largest(std::int32_t* ids, std::int64_t filled, std::int64_t W, const float* scores, std::int32_t n) {
  std::int64_t place = std::min(filled, W);
  while (place > 0 && larger(scores[n], scores[ids[place - 1]])) --place;
  if (place == W) return;
  std::copy_backward(ids + place, ids + std::min(filled, W - 1), ids + std::min(filled, W - 1) + 1);
  ids[place] = n;
}

/// begins[key]: the number of items with a lesser key, key = sequence · N + partition; begins.back(): all items.
void count_items(std::vector<std::int32_t>& begins, ConstTensor ids, std::span<const std::int32_t> cu_seqlens, std::int64_t partitions) {
  const std::size_t sequences = cu_seqlens.size() - 1;
  begins.assign(sequences * static_cast<std::size_t>(partitions) + 1, 0);
  for (std::size_t s = 0; s < sequences; ++s) {
    std::int32_t* counts = begins.data() + s * static_cast<std::size_t>(partitions) + 1;
    for (std::int64_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; ++t) {
      for (std::int64_t w = 0; w < ids.row_size(); ++w) {
        const std::int32_t n = ids.i32(t)[w];
        if (n < 0 || n >= partitions)
          throw std::out_of_range("order_by_partition: partition " + std::to_string(n) + " of " + std::to_string(partitions));
        ++counts[n];
      }
    }
  }
  for (std::size_t key = 1; key < begins.size(); ++key) begins[key] += begins[key - 1];
}

void list_runs(PartitionOrder& order, const std::vector<std::int32_t>& begins) {
  order.cu_seqlens.assign(1, 0);
  order.run.clear();
  for (std::size_t key = 0; key + 1 < begins.size(); ++key) {
    if (begins[key] == begins[key + 1]) continue;
    order.run.push_back(static_cast<std::int32_t>(key));
    order.cu_seqlens.push_back(begins[key + 1]);
  }
}

}  // namespace

void top_k(Tensor ids, ConstTensor scores) {
  const std::int64_t N = scores.row_size(), W = ids.row_size();
  if (ids.rows() != scores.rows() || W < 1 || W > N) {
    throw std::invalid_argument("top_k: " + ids.shape.to_string() + " of " + scores.shape.to_string());
  }
  for (std::int64_t t = 0; t < ids.rows(); ++t) {
    for (std::int64_t n = 0; n < N; ++n) insert_largest(ids.i32(t), n, W, scores.f32(t), static_cast<std::int32_t>(n));
  }
}

void order_by_partition(PartitionOrder& order, ConstTensor ids, std::span<const std::int32_t> cu_seqlens, std::int64_t partitions) {
  if (cu_seqlens.empty() || cu_seqlens.back() != ids.rows())
    throw std::invalid_argument("order_by_partition: cu_seqlens does not end at the last token");
  static thread_local std::vector<std::int32_t> next;
  count_items(next, ids, cu_seqlens, partitions);
  list_runs(order, next);
  const auto items = static_cast<std::size_t>(ids.shape.size());
  order.token.resize(items);
  order.rank.resize(items);
  order.partition.resize(items);
  for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    for (std::int32_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; ++t) {
      for (std::int32_t w = 0; w < static_cast<std::int32_t>(ids.row_size()); ++w) {
        const std::int32_t n = ids.i32(t)[w];
        const auto item = static_cast<std::size_t>(next[s * static_cast<std::size_t>(partitions) + static_cast<std::size_t>(n)]++);
        order.token[item] = t;
        order.rank[item] = w;
        order.partition[item] = n;
      }
    }
  }
}

}  // namespace statescope
