#include "kernels/ops/attention/shared_keys.h"

#include <vector>

#include "kernels/ops/attention/parts.h"
#include "kernels/ops/linear.h"

namespace statescope {
namespace {

constexpr std::int64_t tile_heads = 16, tile_keys = 128;
constexpr std::int64_t keys_of_piece = 1024;  // what is summed up by itself, whatever the number of threads

/// The keys of one key head of a segment that a token sees: `count` of them from `first` on, or those `listed`.
struct Seen {
  std::int64_t first = 0, count = 0;
  const std::int32_t* listed = nullptr;
};

/// One token's heads of one key head.
struct Token {
  std::int64_t row, key_head;
  Seen seen;
  HeadRows<const float> k, v;  // row 0: the segment's first key
};

/// Some heads of a token with some of its keys: row i of o [heads, V] and of `softmax` is head first_head + i.
struct Piece {
  std::size_t token;
  std::int64_t first_head, heads, first_key, keys;
  std::int64_t o, softmax;  // where they begin
};

/// Appends the keys of `chosen` up to the position.
void list_chosen(std::vector<std::int32_t>& keys, const ChosenBlocks& chosen, std::int64_t row, std::int64_t position) {
  const std::int32_t* const ids = chosen.ids.i32(row);
  for (std::int64_t i = 0; i < chosen.ids.row_size() && ids[i] >= 0; ++i) {
    const std::int64_t begin = ids[i] * chosen.block_size, end = std::min(begin + chosen.block_size, position + 1);
    for (std::int64_t key = begin; key < end; ++key) keys.push_back(static_cast<std::int32_t>(key));
  }
}

std::vector<Token> tokens_of(const SoftmaxAttention& op, std::vector<std::int32_t>& listed) {
  const std::int64_t Hkv = op.k.shape[1];
  std::vector<Token> tokens;
  std::vector<std::size_t> begins;
  for (std::int64_t s = 0; s < op.segments.count(); ++s) {
    const KeySpan span = span_of(op, s);
    for (std::int64_t i = 0; i < span.queries; ++i) {
      const std::int64_t position = span.position(i), row = span.first_query + i;
      Seen seen{.first = op.window > 0 ? std::max<std::int64_t>(0, position + 1 - op.window) : 0};
      seen.count = position + 1 - seen.first;
      begins.push_back(listed.size());
      if (op.chosen.ids) {
        list_chosen(listed, op.chosen, row, position);
        seen.count = static_cast<std::int64_t>(listed.size() - begins.back());
      }
      for (std::int64_t h = 0; h < Hkv; ++h)
        tokens.push_back(
            {row, h, seen, head_rows(op.k, span.first_key, h, Hkv, op.k.shape[2]), head_rows(op.v, span.first_key, h, Hkv, op.v.shape[2])});
    }
  }
  for (std::size_t i = 0; i < tokens.size() && op.chosen.ids; ++i)
    tokens[i].seen.listed = listed.data() + begins[i / static_cast<std::size_t>(Hkv)];
  return tokens;
}

/// The rows [first, first + n) of what a token sees: where they lie if they follow one another, else a copy in `scratch`.
HeadRows<const float> rows_of(HeadRows<const float> all, const Seen& seen, std::int64_t first, std::int64_t n, std::int64_t width,
                              Scratch& scratch) {
  if (!seen.listed) return all.from(seen.first + first);
  const std::int32_t* const ids = seen.listed + first;
  if (ids[n - 1] - ids[0] == n - 1) return all.from(ids[0]);
  float* const rows = scratch.take(tile_keys * width);
  for (std::int64_t i = 0; i < n; ++i) std::copy_n(all[ids[i]], width, rows + i * width);
  return {rows, width};
}

/// o [heads, V] = Σ e^{score − peak} v over the keys of a piece.
void attend(const SoftmaxAttention& op, const Token& token, const Piece& piece, float* o, RunningSoftmax* softmax) {
  thread_local Scratch scores, keys, values;
  const std::int64_t H = op.q.shape[1], d = op.q.shape[2], V = op.v.shape[2], group = H / op.k.shape[1], heads = piece.heads;
  const float* const q = op.q.f32(token.row) + (token.key_head * group + piece.first_head) * d;
  float* const score = scores.take(tile_heads * tile_keys);
  std::fill_n(o, heads * V, 0.0F);
  std::fill_n(softmax, heads, RunningSoftmax());
  const bool values_in_keys = token.v.data == token.k.data && token.v.stride == token.k.stride && V <= d;
  for (std::int64_t first = piece.first_key; first < piece.first_key + piece.keys; first += tile_keys) {
    const std::int64_t n = std::min(tile_keys, piece.first_key + piece.keys - first);
    const HeadRows<const float> k = rows_of(token.k, token.seen, first, n, d, keys);
    const HeadRows<const float> v = values_in_keys ? k : rows_of(token.v, token.seen, first, n, V, values);
    gemm({heads, n, d, q, d, false, k.data, k.stride, true, score, n, op.scale});
    for (std::int64_t h = 0; h < heads; ++h) softmax[h].add(score + h * n, n, o + h * V, V);
    gemm({heads, V, n, score, n, false, v.data, v.stride, false, o, V, 1, 1});
  }
}

/// The heads of some pieces of one token and first head, put together.
void put_together(const SoftmaxAttention& op, const Token& token, std::span<const Piece> pieces, const float* o,
                  const RunningSoftmax* softmax) {
  const std::int64_t V = op.v.shape[2], group = op.q.shape[1] / op.k.shape[1];
  for (std::int64_t h = 0; h < pieces[0].heads; ++h) {
    float* const y = op.o.f32(token.row) + (token.key_head * group + pieces[0].first_head + h) * V;
    float peak = -RunningSoftmax::infinity, total = 0;
    for (const Piece& piece : pieces) peak = std::max(peak, softmax[piece.softmax + h].peak);
    std::fill_n(y, V, 0.0F);
    for (const Piece& piece : pieces) {
      const RunningSoftmax& part = softmax[piece.softmax + h];
      const float weight = part.peak == peak ? 1 : std::exp(part.peak - peak);
      total += weight * part.total;
      add_rows(y, &weight, o + piece.o + h * V, V, 1, V);
    }
    scale_row(y, 1 / total, V);
  }
}

}  // namespace

bool shares_keys(const SoftmaxAttention& op) {
  constexpr std::int64_t enough_heads = 8;
  const std::int64_t group = op.q.shape[1] / op.k.shape[1];
  const bool alike = op.pattern.block_size == 0 && (op.blocks.block_size == 0 || op.blocks.topk <= 1) && !op.selected_blocks &&
                     (!op.chosen.ids || op.chosen.ids.shape.rank() == 2 || op.chosen.ids.shape[1] == 1);
  std::int64_t longest = 0;
  for (std::int64_t s = 0; s < op.segments.count(); ++s) longest = std::max(longest, span_of(op, s).queries);
  return alike && group >= enough_heads && longest <= group;
}

void attend_with_shared_keys(const SoftmaxAttention& op) {
  thread_local Scratch outputs;
  std::vector<std::int32_t> listed;
  const std::vector<Token> tokens = tokens_of(op, listed);
  const std::int64_t d = op.q.shape[2], V = op.v.shape[2], group = op.q.shape[1] / op.k.shape[1];
  std::vector<Piece> pieces;
  std::vector<std::size_t> ends;  // of the pieces that are put together
  std::int64_t rows = 0, products = 0;
  for (std::size_t token = 0; token < tokens.size(); ++token) {
    const std::int64_t count = tokens[token].seen.count;
    products += count * group;
    for (std::int64_t head = 0; head < group; head += tile_heads) {
      for (std::int64_t key = 0; key < count; key += keys_of_piece) {
        const std::int64_t heads = std::min(tile_heads, group - head);
        pieces.push_back({token, head, heads, key, std::min(keys_of_piece, count - key), rows * V, rows});
        rows += heads;
      }
      ends.push_back(pieces.size());
    }
  }
  std::vector<RunningSoftmax> softmax(static_cast<std::size_t>(rows));
  float* const o = outputs.take(rows * V);
  parallel_for(
      std::ssize(pieces),
      [&](std::int64_t i) {
        const Piece& piece = pieces[static_cast<std::size_t>(i)];
        attend(op, tokens[piece.token], piece, o + piece.o, softmax.data() + piece.softmax);
      },
      products * (d + V) >= worth_a_fork);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    put_together(op, tokens[pieces[begin].token], std::span(pieces).subspan(begin, end - begin), o, softmax.data());
    begin = end;
  }
}

}  // namespace statescope
