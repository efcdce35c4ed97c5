#include "kernels/ops/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "kernels/cpu/parallel.h"

namespace statescope {
namespace {

/// NaN counts as smallest.
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

/// The rows of one head that are written: the `topk` largest of z, in any order.
std::span<const std::int32_t> chosen_rows(const float* z, std::int64_t K, std::int64_t topk) {
  static thread_local std::vector<std::int32_t> rows;
  rows.resize(static_cast<std::size_t>(K));
  std::iota(rows.begin(), rows.end(), 0);
  const auto before = [z](std::int32_t a, std::int32_t b) { return larger(z[a], z[b]) || (!larger(z[b], z[a]) && a < b); };
  if (topk < K) std::nth_element(rows.begin(), rows.begin() + topk, rows.end(), before);
  return {rows.data(), static_cast<std::size_t>(topk)};
}

/// One head of row_sparse. `k` may be `z`.
void write_chosen_rows(float* k, float* log_decay, const float* z, std::int64_t K, std::int64_t topk, bool skip_decay) {
  static thread_local std::vector<float> weight, decay;
  weight.assign(static_cast<std::size_t>(K), 0);
  decay.assign(static_cast<std::size_t>(K), 0);
  const float largest = *std::max_element(z, z + K);
  float sum = 0;
  for (std::int32_t r : chosen_rows(z, K, topk)) {
    // k_r = exp(z_r) / Σ_{j∈R} exp(z_j)     (SSE eq. 7)
    sum += weight[static_cast<std::size_t>(r)] = std::exp(z[r] - largest);
    decay[static_cast<std::size_t>(r)] = log_decay[r];
  }
  for (std::int64_t r = 0; r < K; ++r) k[r] = weight[static_cast<std::size_t>(r)] / sum;
  if (skip_decay) std::copy(decay.begin(), decay.end(), log_decay);
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

void renormalise(Tensor y, ConstTensor gate, ConstTensor ids) {
  const std::int64_t N = gate.row_size(), W = ids.row_size();
  if (y.shape != gate.shape || ids.rows() != gate.rows()) {
    throw std::invalid_argument("renormalise: " + y.shape.to_string() + " of " + gate.shape.to_string() + " by " + ids.shape.to_string());
  }
  static thread_local std::vector<float> chosen;
  chosen.resize(static_cast<std::size_t>(W));
  for (std::int64_t t = 0; t < gate.rows(); ++t) {
    const std::int32_t* n = ids.i32(t);
    float sum = 0;
    for (std::int64_t w = 0; w < W; ++w) sum += chosen[static_cast<std::size_t>(w)] = gate.f32(t)[n[w]];
    std::fill_n(y.f32(t), N, 0.0F);
    for (std::int64_t w = 0; w < W; ++w) y.f32(t)[n[w]] = chosen[static_cast<std::size_t>(w)] / sum;
  }
}

void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay) {
  if (z.shape.rank() != 3 || k.shape != z.shape || log_decay.shape != z.shape || topk < 1 || topk > z.shape[2]) {
    throw std::invalid_argument("row_sparse: top " + std::to_string(topk) + ", k " + k.shape.to_string() + ", z " + z.shape.to_string() +
                                ", log_decay " + log_decay.shape.to_string());
  }
  const std::int64_t K = z.shape[2];
  const auto write = [&](std::int64_t t) {
    for (std::int64_t h = 0; h < z.shape[1]; ++h) {
      write_chosen_rows(k.f32(t) + h * K, log_decay.f32(t) + h * K, z.f32(t) + h * K, K, topk, skip_decay);
    }
  };
  parallel_for(z.rows(), write, z.shape.size() > 4096);
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
