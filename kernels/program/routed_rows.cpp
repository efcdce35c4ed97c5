#include "kernels/program/routed_rows.h"

#include <numeric>

#include "kernels/ops/routing.h"

namespace statescope::program {

RoutedRows::RoutedRows(Backend& backend, ConstTensor ids, std::span<const std::int32_t> cu_seqlens_of_tokens, std::int64_t memories_,
                       bool has_shared)
    : cu_seqlens{0}, memories(memories_), shared(has_shared ? ids.rows() : 0) {
  std::vector<std::int32_t> on_host(static_cast<std::size_t>(ids.shape.size()));
  const Tensor host(on_host.data(), DType::i32, ids.shape);
  backend.download(host, ids);
  PartitionOrder order;
  order_by_partition(order, host, cu_seqlens_of_tokens, memories);
  token.resize(static_cast<std::size_t>(shared));
  gate.resize(static_cast<std::size_t>(shared));
  std::iota(token.begin(), token.end(), 0);
  if (has_shared) {
    cu_seqlens.push_back(static_cast<std::int32_t>(shared));
    slot.push_back(0);
  }
  for (std::size_t i = 0; i < order.token.size(); ++i) {
    token.push_back(order.token[i]);
    gate.push_back(order.token[i] * static_cast<std::int32_t>(memories) + order.partition[i]);
  }
  for (std::size_t r = 0; r < order.run.size(); ++r) {
    cu_seqlens.push_back(static_cast<std::int32_t>(shared) + order.cu_seqlens[r + 1]);
    slot.push_back(order.run[r] + (has_shared ? 1 : 0));
  }
}

std::vector<std::int32_t> RoutedRows::places(std::int64_t slots) const {
  std::vector<std::int32_t> place(token.size());
  for (std::size_t r = 0; r < slot.size(); ++r) {
    for (auto row = static_cast<std::size_t>(cu_seqlens[r]); row < static_cast<std::size_t>(cu_seqlens[r + 1]); ++row)
      place[row] = token[row] * static_cast<std::int32_t>(slots) + slot[r];
  }
  return place;
}

}  // namespace statescope::program
