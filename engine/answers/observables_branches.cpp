// Of a layer with attention beside its memory, how much each of the two reads, and how alike what they read is (spec §17.9), token by
// token.
#include <algorithm>
#include <numeric>

#include "engine/analysis/parts.h"
#include "engine/answers/answers.h"
#include "engine/answers/observables_groups.h"

namespace statescope {

ObservedGroup observe_two_readouts(const LayerSpan& span, Evidence& evidence) {
  const ChannelRows *attention = evidence.channel(span.layer, "attention_readout"), *scan = evidence.channel(span.layer, "scan_readout");
  if (!attention || !scan) return {};
  const auto width = static_cast<std::size_t>(attention->shape.front());
  Observed of_attention(span, {}), of_scan(span, {}), cosine(span, {});
  for (std::int64_t t = span.from; t < span.to; ++t) {
    const auto row = [&](const ChannelRows& rows) { return std::span(rows.values).subspan(static_cast<std::size_t>(t) * width, width); };
    const std::span<const float> a = row(*attention), b = row(*scan);
    const double product = norm(a) * norm(b);
    of_attention.at(t) = static_cast<float>(norm(a));
    of_scan.at(t) = static_cast<float>(norm(b));
    cosine.at(t) = static_cast<float>(product > 0 ? std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / product : 0);
  }
  return {of_attention, of_scan, cosine};
}

ObservedGroup observe_memory_tokens(const LayerSpan& span, Evidence& evidence) {
  if (evidence.model().plan().memory_token_count == 0 || !evidence.layer(span.layer).attends_beside()) return {};
  const std::int64_t H = evidence.channel(span.layer, "attention_q")->shape.front();
  Observed share(span, {H});
  for (std::int64_t head = 0; head < H; ++head) {
    for (std::int64_t first = span.from; first < span.to; first += AttentionMap::kMostRows) {
      const std::int64_t count = std::min(span.to - first, AttentionMap::kMostRows);
      // Before the first column there is nothing else.
      const AttentionMap map = answer(AttentionQuestion{.layer = span.layer,
                                                        .head = head,
                                                        .rows = {first, 1, count},
                                                        .columns = {0, 1, first + count},
                                                        .slot = AttentionQuestion::kBeside},
                                      evidence);
      for (std::int64_t i = 0; i < count; ++i) share.at(first + i, head) = map.before[static_cast<std::size_t>(i)];
    }
  }
  return {share};
}

}  // namespace statescope
