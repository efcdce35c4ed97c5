// What attention looks at, on a CUDA device against the CPU: fixed patterns, blocks and tokens that something has chosen, and the choices.
#include <algorithm>
#include <set>

#include "tests/kernels/device_shapes.h"

namespace statescope::device_choice_test {
using namespace statescope::testing;

namespace {

struct Rows {
  std::vector<std::int32_t> queries, keys;  // of each segment

  Packed packed(const std::vector<std::int32_t>& lengths) const { return {lengths, {}, std::ssize(lengths)}; }
};

const std::vector<Rows> all_rows{
    {{300, 0, 1, 47}, {300, 9, 200, 150}}, {{65}, {333}}, {{1, 0, 1}, {300, 9, 64}}, {{7}, {290}}, {{1, 2}, {3000, 500}}};

/// Device and host each hold a list in their own memory.
const std::int32_t* list_in(Side& s, const std::vector<std::int32_t>& list) {
  return list.empty() ? nullptr : s.in(list, {static_cast<std::int64_t>(list.size())}).i32();
}

template <class Sight>
void compare_attention(const Comparison& both, const std::string& name, const Rows& rows, const Sight& sight) {
  Random random(1);
  const Packed queries = rows.packed(rows.queries), keys = rows.packed(rows.keys);
  for (const auto& [d, V] : {std::pair{16, 12}, {60, 130}}) {
    const Numbers q = random.uniform({queries.rows(), 4, d}), k = random.uniform({keys.rows(), 2, d}),
                  v = random.uniform({keys.rows(), 2, V});
    const bool step = *std::max_element(rows.queries.begin(), rows.queries.end()) <= 1;
    both(with(name, {{"queries", queries.rows()}, {"keys", keys.rows()}, {"d", d}, {"V", V}}), [&](Side& s) {
      SoftmaxAttention op;
      op.q = s.in(q), op.k = s.in(k), op.v = s.in(v);
      op.scale = 0.4F, op.segments = queries.view(), op.cu_seqlens_k = keys.cu_seqlens;
      sight(op, s);
      op.o = s.out({queries.rows(), 4, V});
      s->softmax_attention(op, step ? 0 : 64);
    });
  }
}

/// Of every query its own block and up to four others, for each of `heads`.
std::vector<std::int32_t> some_blocks(const Rows& rows, std::int64_t heads, std::int64_t size, std::int64_t n) {
  Random random(7);
  std::vector<std::int32_t> all;
  for (std::size_t s = 0; s < rows.queries.size(); ++s) {
    for (std::int64_t i = 0; i < rows.queries[s] * heads; ++i) {
      const std::int64_t position = rows.keys[s] - rows.queries[s] + i / heads;
      std::set<std::int32_t> some{static_cast<std::int32_t>(position / size)};
      for (int more = 0; more < 4; ++more) some.insert(static_cast<std::int32_t>(random.below(position / size + 1)));
      std::vector<std::int32_t> list(some.begin(), some.end());
      list.resize(static_cast<std::size_t>(n), -1);
      all.insert(all.end(), list.begin(), list.end());
    }
  }
  return all;
}

}  // namespace

TEST_CASE("device: softmax attention with fixed patterns", "[device]") {
  const Comparison both;
  if (!both) return;
  std::vector<std::int32_t> listed;
  Random random(5);
  for (std::int64_t i = 0; i < 4 * 30 * 2; ++i) listed.push_back(static_cast<std::int32_t>(random.below(i / 2 % 30 + 2)) - 1);
  const std::vector<std::int32_t> dilation{1, 1, 2, 3}, tokens{0, 5, 70}, first{0};
  for (const Rows& rows : all_rows) {
    compare_attention(both, "dilated windows", rows, [&](SoftmaxAttention& op, Side& s) {
      op.pattern = {.block_size = 1, .window = 8, .dilation = list_in(s, dilation), .global = list_in(s, tokens), .globals = 3};
    });
    compare_attention(both, "first tokens", rows,
                      [&](SoftmaxAttention& op, Side&) { op.pattern = {.block_size = 1, .window = 8, .leading = 6}; });
    compare_attention(both, "listed blocks", rows, [&](SoftmaxAttention& op, Side& s) {
      op.pattern = {.block_size = 8,
                    .window = 2,
                    .global = list_in(s, first),
                    .listed = list_in(s, listed),
                    .globals = 1,
                    .listed_rows = 30,
                    .listed_width = 2};
    });
    for (const std::int64_t size : {4, 100})
      compare_attention(both, "vertical strides", rows,
                        [&](SoftmaxAttention& op, Side&) { op.pattern = {.block_size = size, .window = 2, .stride = 8, .head_step = 2}; });
  }
}

TEST_CASE("device: softmax attention over what something has chosen", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const Rows& rows : all_rows) {
    for (const std::int64_t size : {1, 5, 64, 200}) {
      for (const std::int64_t heads : {1, 2, 4}) {
        constexpr std::int64_t n = 6;
        const std::vector<std::int32_t> chosen = some_blocks(rows, heads, size, n);
        compare_attention(both, "chosen blocks", rows, [&](SoftmaxAttention& op, Side& s) {
          op.chosen = {s.in(chosen, {std::ssize(chosen) / (heads * n), heads, n}), size};
        });
      }
    }
  }
}

// MLA and DSA: all heads read one latent of a token, which is key and value.
TEST_CASE("device: softmax attention of many heads over latents", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const Rows& rows : {Rows{{1, 0, 2}, {3000, 9, 64}}, Rows{{7}, {290}}}) {
    const Packed queries = rows.packed(rows.queries), keys = rows.packed(rows.keys);
    const std::vector<std::int32_t> chosen = some_blocks(rows, 1, 3, 6);
    for (const std::int64_t H : {5, 16, 40}) {
      for (const auto& [latent, shared] : {std::pair{512, 64}, {60, 4}, {30, 3}}) {
        Random random(1);
        const Numbers q = random.uniform({queries.rows(), H, latent + shared}), latents = random.uniform({keys.rows(), 1, latent + shared});
        for (const bool lists : {false, true}) {
          both(with(lists ? "latents, chosen" : "latents", {{"queries", queries.rows()}, {"H", H}, {"latent", latent}}), [&](Side& s) {
            SoftmaxAttention op;
            op.q = s.in(q), op.k = s.in(latents), op.v = op.k.columns(0, {1, latent});
            op.scale = 0.1F, op.segments = queries.view(), op.cu_seqlens_k = keys.cu_seqlens;
            if (lists) op.chosen = {s.in(chosen, {queries.rows(), 6}), 3};
            op.o = s.out({queries.rows(), H, latent});
            s->softmax_attention(op, 64);
          });
        }
      }
    }
  }
}

TEST_CASE("device: compressed attention and the blocks that it chooses", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const Rows& rows : all_rows) {
    const Packed queries = rows.packed(rows.queries), keys = rows.packed(rows.keys);
    for (const auto& [size, n] : {std::pair{8, 4}, {5, 3}, {1, 7}, {64, 5}, {7, 100}, {400, 3}}) {
      for (const auto& [H, Hkv, d, V] : {std::array{6, 1, 16, 12}, {6, 2, 60, 130}, {3, 3, 200, 20}}) {
        Random random(1);
        const Numbers q = random.uniform({queries.rows(), H, d}, -3, 3), k = random.uniform({keys.rows(), Hkv, d}),
                      v = random.uniform({keys.rows(), Hkv, V});
        for (const bool wanted : {false, true}) {
          both(with("compressed_attention", {{"queries", queries.rows()}, {"size", size}, {"n", n}, {"H", H}, {"Hkv", Hkv}, {"d", d}}),
               [&](Side& s) {
                 s->compressed_attention({.q = s.in(q),
                                          .k = s.in(k),
                                          .v = s.in(v),
                                          .scale = 0.4F,
                                          .block_size = size,
                                          .segments = queries.view(),
                                          .cu_seqlens_k = keys.cu_seqlens,
                                          .o = s.out({queries.rows(), H, V}),
                                          .selected = s.out_i32({queries.rows(), Hkv, n}),
                                          .importance = wanted ? s.out({queries.rows(), Hkv, n}) : Tensor{}});
               });
        }
      }
    }
  }
}

TEST_CASE("device: the indexer's choice of tokens, equal scores too", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const Rows& rows : all_rows) {
    const Packed queries = rows.packed(rows.queries), keys = rows.packed(rows.keys);
    for (const auto& [H, d] : {std::pair{8, 16}, {1, 5}, {64, 128}}) {
      for (const std::int64_t n : {1, 7, 40, 200, 500}) {
        for (const bool alike : {false, true}) {
          Random random(1);
          const Numbers q = alike ? Numbers({queries.rows(), H, d}) : random.uniform({queries.rows(), H, d});
          const Numbers k = random.uniform({keys.rows(), d}), weight = random.uniform({queries.rows(), H});
          both(with(alike ? "choose_tokens, ties" : "choose_tokens", {{"queries", queries.rows()}, {"H", H}, {"d", d}, {"n", n}}),
               [&](Side& s) {
                 s->choose_tokens({.q = s.in(q),
                                   .k = s.in(k),
                                   .weight = s.in(weight),
                                   .scale = 0.3F,
                                   .segments = queries.view(),
                                   .cu_seqlens_k = keys.cu_seqlens,
                                   .selected = s.out_i32({queries.rows(), n}),
                                   .scores = alike ? Tensor{} : s.out({queries.rows(), n})});
               });
        }
      }
    }
  }
}

}  // namespace statescope::device_choice_test
