#include "kernels/ops/softmax_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/attention/parts.h"
#include "kernels/ops/attention/shared_keys.h"
#include "kernels/ops/linear.h"

namespace statescope {

namespace {

constexpr std::int64_t key_tile = 128;
constexpr float infinity = RunningSoftmax::infinity;

bool chooses_blocks(const BlockTopK& blocks) { return blocks.block_size > 0 && blocks.topk > 1; }
std::int64_t chosen_width(const BlockTopK& blocks) { return std::max<std::int64_t>(blocks.topk - 1, 0); }

void check_chosen(const OperandCheck& check, const ChosenBlocks& chosen, const Shape& q) {
  const Shape& ids = chosen.ids.shape;
  check.require(ids.rank() == 2 || (ids.rank() == 3 && ids[1] > 0 && q[1] % ids[1] == 0), "chosen",
                "found " + ids.to_string() + ", expected [queries, n], or [queries, heads, n] with heads dividing " + std::to_string(q[1]));
  check.tensor("chosen", chosen.ids, ids.rank() == 2 ? Shape{q[0], ids[1]} : Shape{q[0], ids[1], ids[2]}, DType::i32);
  check.require(chosen.block_size >= 1, "chosen", "block size " + std::to_string(chosen.block_size) + ", expected at least 1");
}

OperandCheck check_operands(const SoftmaxAttention& op, const char* operation) {
  const OperandCheck check(operation);
  const Shape &q = op.q.shape, &k = op.k.shape;
  check_heads(check, op);
  if (op.selected_blocks) check.tensor("selected_blocks", op.selected_blocks, {q[0], q[1], chosen_width(op.blocks)}, DType::i32);
  check.require(op.window >= 0, "window", "found " + std::to_string(op.window) + ", expected at least 0");
  check.require(op.blocks.block_size >= 0, "blocks", "block size " + std::to_string(op.blocks.block_size) + ", expected at least 0");
  const bool chooses = chooses_blocks(op.blocks), fixed = op.pattern.block_size > 0, given = static_cast<bool>(op.chosen.ids);
  check.require(op.window == 0 || !chooses, "window", "given together with a choice of blocks, expected one of the two");
  check.require((op.window > 0) + chooses + fixed + given <= 1, "pattern",
                "a fixed pattern or chosen keys given together with another sight, expected one of them");
  check.require(!fixed || op.pattern.window >= 1, "pattern", "window " + std::to_string(op.pattern.window) + ", expected at least 1");
  if (given) check_chosen(check, op.chosen, q);
  check_spans(check, op, q[0], k[0]);
  return check;
}

/// Mean keys of the blocks that some query may choose, for every segment and key head (spec §4.8).
class BlockMeans {
 public:
  explicit BlockMeans(const SoftmaxAttention& op) : heads_(op.k.shape[1]), width_(op.k.shape[2]) {
    thread_local std::vector<std::int64_t> starts;
    thread_local Scratch means;
    starts.assign(1, 0);
    for (std::int64_t s = 0; s < op.segments.count(); ++s) starts.push_back(starts.back() + candidates(op, span_of(op, s)));
    starts_ = starts;
    means_ = means.take(starts.back() * heads_ * width_);
    const auto average = [&](std::int64_t piece) { average_blocks(op, piece / heads_, piece % heads_); };
    parallel_for(op.segments.count() * heads_, average, starts.back() * op.blocks.block_size * heads_ * width_ >= worth_a_fork);
  }

  /// Of head h of segment s: row b is the mean of block b.
  HeadRows<float> of(std::int64_t s, std::int64_t h) const {
    const std::int64_t before = starts_[static_cast<std::size_t>(s)] * heads_ + h * count(s);
    return {means_ + before * width_, width_};
  }

 private:
  std::int64_t count(std::int64_t s) const { return starts_[static_cast<std::size_t>(s) + 1] - starts_[static_cast<std::size_t>(s)]; }

  /// The blocks before the own block of the last query that chooses.
  static std::int64_t candidates(const SoftmaxAttention& op, const KeySpan& span) {
    const bool any = chooses_blocks(op.blocks) && span.queries > 0 && span.position(0) < op.blocks.until;
    return any ? (std::min(span.keys, op.blocks.until) - 1) / op.blocks.block_size : 0;
  }

  void average_blocks(const SoftmaxAttention& op, std::int64_t s, std::int64_t h) const {
    const std::int64_t size = op.blocks.block_size;
    const HeadRows<const float> k = head_rows(op.k, span_of(op, s).first_key, h, heads_, width_);
    for (std::int64_t b = 0; b < count(s); ++b) mean_of_rows(of(s, h)[b], k, b * size, size, width_);
  }

  std::int64_t heads_, width_;
  std::span<const std::int64_t> starts_;
  float* means_;
};

/// chosen[0 … width) = the blocks b < count with the largest q · mean_b, largest first, ties to the earlier one; −1 where there are fewer.
void choose_blocks(std::int32_t* chosen, std::int64_t width, const float* q, HeadRows<float> means, std::int64_t count, std::int64_t d) {
  thread_local Scratch scratch;
  float* score = scratch.take(count);
  dot_rows(score, q, means.data, means.stride, count, d);
  std::fill_n(chosen, width, -1);
  for (std::int64_t b = 0; b < count; ++b) {
    std::int64_t place = std::min(b, width);
    while (place > 0 && score[b] > score[chosen[place - 1]]) --place;
    if (place == width) continue;
    std::copy_backward(chosen + place, chosen + width - 1, chosen + width);
    chosen[place] = static_cast<std::int32_t>(b);
  }
}

/// Keys [begin, end) of a segment.
struct Interval {
  std::int64_t begin, end;
};

/// The keys that each of some queries sees: ascending intervals, some of them empty.
struct VisibleKeys {
  std::vector<Interval> intervals;
  std::vector<std::size_t> ends;  // of each query's intervals

  std::span<const Interval> of(std::int64_t i) const {
    const std::size_t begin = i > 0 ? ends[static_cast<std::size_t>(i) - 1] : 0;
    return std::span(intervals).subspan(begin, ends[static_cast<std::size_t>(i)] - begin);
  }
};

/// Queries [first, first + count) of one head of one segment, and what they read and write.
struct Queries {
  std::int64_t segment, head, first, count;
  KeySpan span;
  std::int64_t d, V;
  HeadRows<const float> q, k, v;  // row 0: the first of these queries, the segment's first key
  HeadRows<float> o;
};

Queries queries_of(const SoftmaxAttention& op, std::int64_t segment, std::int64_t first, std::int64_t count, std::int64_t h) {
  const KeySpan span = span_of(op, segment);
  const std::int64_t H = op.q.shape[1], d = op.q.shape[2], V = op.v.shape[2], row = span.first_query + first;
  return {segment,
          h,
          first,
          count,
          span,
          d,
          V,
          head_rows(op.q, row, h, H, d),
          head_rows(op.k, span.first_key, h, H, d),
          head_rows(op.v, span.first_key, h, H, V),
          head_rows(op.o, row, h, H, V)};
}

/// Adds the blocks that query i chooses itself, and its own up to it. Fills op.selected_blocks if wanted.
void see_best_blocks(std::vector<Interval>& visible, const SoftmaxAttention& op, const BlockMeans& means, const Queries& queries,
                     std::int64_t i) {
  thread_local std::vector<std::int32_t> chosen;
  const std::int64_t position = queries.span.position(queries.first + i), width = chosen_width(op.blocks);
  const bool chooses = position < op.blocks.until;
  const std::int64_t size = op.blocks.block_size, own = chooses ? position / size : 0;
  chosen.assign(static_cast<std::size_t>(width), -1);
  if (chooses) {
    const std::int64_t key_head = producer_head(queries.head, op.k.shape[1], op.q.shape[1]);
    choose_blocks(chosen.data(), width, queries.q[i], means.of(queries.segment, key_head), own, queries.d);
  }
  if (op.selected_blocks) {
    std::copy(chosen.begin(), chosen.end(), op.selected_blocks.i32(queries.span.first_query + queries.first + i) + queries.head * width);
  }
  std::sort(chosen.begin(), chosen.end());
  for (const std::int32_t b : chosen) {
    if (b >= 0) visible.push_back({b * size, (b + 1) * size});
  }
  visible.push_back({own * size, position + 1});
}

/// The keys of block b up to a query.
Interval up_to(std::int64_t position, std::int64_t b, std::int64_t size) {
  return {std::min(b * size, position + 1), std::min((b + 1) * size, position + 1)};
}

/// Adds the intervals of query i.
void see(std::vector<Interval>& visible, const SoftmaxAttention& op, const BlockMeans& means, const Queries& queries, std::int64_t i) {
  if (chooses_blocks(op.blocks)) return see_best_blocks(visible, op, means, queries, i);
  const std::int64_t position = queries.span.position(queries.first + i);
  if (op.selected_blocks) {  // there is no choice
    const std::int64_t width = chosen_width(op.blocks);
    std::fill_n(op.selected_blocks.i32(queries.span.first_query + queries.first + i) + queries.head * width, width, -1);
  }
  if (const ConstTensor& ids = op.chosen.ids) {
    const std::int64_t heads = ids.shape.rank() == 3 ? ids.shape[1] : 1, n = ids.row_size() / heads;
    const std::int64_t row = queries.span.first_query + queries.first + i;
    const std::int32_t* chosen = ids.i32(row) + producer_head(queries.head, heads, op.q.shape[1]) * n;
    for (std::int64_t c = 0; c < n && chosen[c] >= 0; ++c) visible.push_back(up_to(position, chosen[c], op.chosen.block_size));
  } else if (const std::int64_t size = op.pattern.block_size; size > 0) {
    const std::size_t others = visible.size();
    for (std::int64_t b = 0; b <= position / size; ++b) {
      if (!op.pattern.sees(queries.head, position / size, b)) continue;
      const Interval keys = up_to(position, b, size);
      if (visible.size() > others && visible.back().end == keys.begin) {
        visible.back().end = keys.end;
      } else {
        visible.push_back(keys);
      }
    }
  } else {
    visible.push_back({op.window > 0 ? std::max<std::int64_t>(0, position + 1 - op.window) : 0, position + 1});
  }
}

const VisibleKeys& see_all(const SoftmaxAttention& op, const BlockMeans& means, const Queries& queries) {
  thread_local VisibleKeys visible;
  visible.intervals.clear();
  visible.ends.clear();
  for (std::int64_t i = 0; i < queries.count; ++i) {
    see(visible.intervals, op, means, queries, i);
    visible.ends.push_back(visible.intervals.size());
  }
  return visible;
}

/// o = softmax(scale · q Kᵀ) V over the keys in sight.
void attend_one(const SoftmaxAttention& op, const BlockMeans& means, const Queries& queries) {
  thread_local Scratch scratch;
  const std::span<const Interval> visible = see_all(op, means, queries).of(0);
  float* score = scratch.take(queries.span.keys);
  std::int64_t n = 0;
  for (const auto [begin, end] : visible) {
    dot_rows(score + n, queries.q[0], queries.k[begin], queries.k.stride, end - begin, queries.d, op.scale);
    n += end - begin;
  }
  const float total = exp_shifted(score, score, largest(score, n), n);
  float* o = queries.o[0];
  std::fill_n(o, queries.V, 0.0F);
  for (const auto [begin, end] : visible) {
    add_rows(o, score, queries.v[begin], queries.v.stride, end - begin, queries.V);
    score += end - begin;
  }
  scale_row(o, 1 / total, queries.V);
}

/// Scores of the keys [first, first + n) that are in no interval ← −∞.
void hide(float* score, std::int64_t first, std::int64_t n, std::span<const Interval> visible) {
  std::int64_t shown_to = 0;
  for (const auto [begin, end] : visible) {
    const std::int64_t shown_from = std::clamp<std::int64_t>(begin - first, shown_to, n);
    std::fill(score + shown_to, score + shown_from, -infinity);
    shown_to = std::clamp<std::int64_t>(end - first, shown_from, n);
  }
  std::fill(score + shown_to, score + n, -infinity);
}

bool any_visible(const VisibleKeys& visible, std::int64_t begin, std::int64_t end) {
  return std::any_of(visible.intervals.begin(), visible.intervals.end(),
                     [&](const Interval& seen) { return std::max(seen.begin, begin) < std::min(seen.end, end); });
}

/// The same for several queries, one tile of keys after the other.
void attend_block(const SoftmaxAttention& op, const BlockMeans& means, const Queries& queries) {
  thread_local Scratch scratch;
  thread_local std::vector<RunningSoftmax> softmax;
  const auto& [segment, head, first, count, span, d, V, q, k, v, o] = queries;
  float* score = scratch.take(count * key_tile);
  const VisibleKeys& visible = see_all(op, means, queries);
  softmax.assign(static_cast<std::size_t>(count), {});
  for (std::int64_t i = 0; i < count; ++i) std::fill_n(o[i], V, 0.0F);

  const std::int64_t last = span.position(first + count - 1);
  for (std::int64_t tile = 0; tile <= last; tile += key_tile) {
    const std::int64_t n = std::min(key_tile, last + 1 - tile);
    if (!any_visible(visible, tile, tile + n)) continue;
    gemm({count, n, d, q.data, q.stride, false, k[tile], k.stride, true, score, n, op.scale});
    for (std::int64_t i = 0; i < count; ++i) {
      hide(score + i * n, tile, n, visible.of(i));
      softmax[static_cast<std::size_t>(i)].add(score + i * n, n, o[i], V);
    }
    gemm({count, V, n, score, n, false, v[tile], v.stride, false, o.data, o.stride, 1, 1});
  }
  for (std::int64_t i = 0; i < count; ++i) scale_row(o[i], 1 / softmax[static_cast<std::size_t>(i)].total, V);
}

/// attend(queries) for every head and every `block` queries of every segment.
template <class Attend>
void for_each_block(const SoftmaxAttention& op, std::int64_t block, const Attend& attend) {
  struct Piece {
    std::int64_t segment, first, count;
  };
  thread_local std::vector<Piece> pieces;
  pieces.clear();
  std::int64_t products = 0;
  for (std::int64_t s = 0; s < op.segments.count(); ++s) {
    const KeySpan span = span_of(op, s);
    products += span.queries * span.keys;
    for (std::int64_t first = 0; first < span.queries; first += block) pieces.push_back({s, first, std::min(block, span.queries - first)});
  }
  const BlockMeans means(op);
  const std::int64_t H = op.q.shape[1], d = op.q.shape[2];
  const auto visit = [&, &all = pieces](std::int64_t piece) {
    const auto [segment, first, count] = all[static_cast<std::size_t>(piece / H)];
    attend(op, means, queries_of(op, segment, first, count, piece % H));
  };
  parallel_for(static_cast<std::int64_t>(pieces.size()) * H, visit, products * H * d >= worth_a_fork);
}

}  // namespace

void softmax_attention_step(const SoftmaxAttention& op) {
  check_operands(op, "softmax_attention_step").single_rows(op.segments);
  shares_keys(op) ? attend_with_shared_keys(op) : for_each_block(op, 1, attend_one);
}

void softmax_attention_chunk(const SoftmaxAttention& op, std::int64_t chunk_size) {
  check_operands(op, "softmax_attention_chunk").chunk_size(chunk_size);
  shares_keys(op) ? attend_with_shared_keys(op) : for_each_block(op, chunk_size, attend_block);
}

}  // namespace statescope
