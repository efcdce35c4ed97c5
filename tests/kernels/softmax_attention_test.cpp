#include "kernels/ops/softmax_attention.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "tests/kernels/memory_cases.h"

namespace statescope::softmax_attention_test {
using namespace statescope::testing;

namespace {

struct Problem {
  Packed queries, keys;
  std::int64_t H, Hkv, d, V;
  std::int64_t window = 0;
  BlockTopK blocks;
  float scale = 0.4F;
  Numbers q, k, v;

  Problem(Packed queries_, Packed keys_, std::int64_t H_, std::int64_t Hkv_, std::int64_t d_, std::int64_t V_, std::uint64_t seed = 1)
      : queries(std::move(queries_)), keys(std::move(keys_)), H(H_), Hkv(Hkv_), d(d_), V(V_) {
    Random random(seed);
    q = random.uniform({queries.rows(), H, d});
    k = random.uniform({keys.rows(), Hkv, d});
    v = random.uniform({keys.rows(), Hkv, V});
  }

  SoftmaxAttention op(Numbers& o, std::vector<std::int32_t>& selected) const {
    SoftmaxAttention op;
    op.q = q.view();
    op.k = k.view();
    op.v = v.view();
    op.scale = scale;
    op.window = window;
    op.blocks = blocks;
    op.segments = queries.view();
    op.cu_seqlens_k = keys.cu_seqlens;
    op.o = o.view();
    if (!selected.empty()) op.selected_blocks = {selected.data(), DType::i32, {q.shape[0], H, blocks.topk - 1}};
    return op;
  }
};

struct Attended {
  std::vector<float> o;
  std::vector<std::int32_t> selected;
};

/// chunk_size 0 takes the step form. Outputs are NaN, and choices 12345, before.
Attended run(const Problem& p, std::int64_t chunk_size) {
  Numbers o = poisoned({p.queries.rows(), p.H, p.V});
  std::vector<std::int32_t> selected(static_cast<std::size_t>(p.queries.rows() * p.H * std::max<std::int64_t>(p.blocks.topk - 1, 0)),
                                     12345);
  const SoftmaxAttention op = p.op(o, selected);
  if (chunk_size == 0) {
    softmax_attention_step(op);
  } else {
    softmax_attention_chunk(op, chunk_size);
  }
  return {o.values, selected};
}

double dot(const float* a, const float* b, std::int64_t n) { return std::inner_product(a, a + n, b, 0.0); }

/// The blocks that the query at `position` chooses, best first: of the segment whose keys of this head begin at `k`.
std::vector<std::int32_t> choice(const Problem& p, const float* q, const float* k, std::int64_t position) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(position / p.blocks.block_size));
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> score(order.size(), 0);
  for (std::size_t b = 0; b < order.size(); ++b) {
    for (std::int64_t j = 0; j < p.blocks.block_size; ++j) {
      score[b] += dot(q, k + (static_cast<std::int64_t>(b) * p.blocks.block_size + j) * p.Hkv * p.d, p.d);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return score[static_cast<std::size_t>(a)] > score[static_cast<std::size_t>(b)]; });
  order.resize(static_cast<std::size_t>(p.blocks.topk - 1), -1);
  return order;
}

struct Truth {
  std::vector<double> o;
  std::vector<std::int32_t> selected;
};

/// Every query against every key, in double precision.
Truth truth(const Problem& p) {
  Truth result;
  for (std::size_t s = 0; s + 1 < p.queries.cu_seqlens.size(); ++s) {
    const std::int64_t first_key = p.keys.cu_seqlens[s], keys = p.keys.cu_seqlens[s + 1] - first_key;
    for (std::int64_t t = p.queries.cu_seqlens[s]; t < p.queries.cu_seqlens[s + 1]; ++t) {
      const std::int64_t position = keys - (p.queries.cu_seqlens[s + 1] - t);
      for (std::int64_t h = 0; h < p.H; ++h) {
        const std::int64_t head = h / (p.H / p.Hkv);
        const float *q = p.q.row(t) + h * p.d, *k = p.k.row(first_key) + head * p.d, *v = p.v.row(first_key) + head * p.V;
        const bool chooses = p.blocks.block_size > 0 && p.blocks.topk > 1 && position < p.blocks.until;
        std::vector<std::int32_t> chosen(static_cast<std::size_t>(std::max<std::int64_t>(p.blocks.topk - 1, 0)), -1);
        if (chooses) chosen = choice(p, q, k, position);
        result.selected.insert(result.selected.end(), chosen.begin(), chosen.end());

        std::vector<double> weight(static_cast<std::size_t>(position) + 1, 0);
        for (std::int64_t j = 0; j <= position; ++j) {
          const std::int64_t block = chooses ? j / p.blocks.block_size : 0;
          const bool own = !chooses || block == position / p.blocks.block_size;
          const bool near = p.window == 0 || j > position - p.window;
          if (near && (own || std::find(chosen.begin(), chosen.end(), block) != chosen.end())) {
            weight[static_cast<std::size_t>(j)] = std::exp(static_cast<double>(p.scale) * dot(q, k + j * p.Hkv * p.d, p.d));
          }
        }
        const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
        for (std::int64_t c = 0; c < p.V; ++c) {
          double o = 0;
          for (std::int64_t j = 0; j <= position; ++j) o += weight[static_cast<std::size_t>(j)] / total * v[j * p.Hkv * p.V + c];
          result.o.push_back(o);
        }
      }
    }
  }
  return result;
}

void check_against_truth(const Problem& p, const std::vector<std::int64_t>& chunk_sizes) {
  const Truth expected = truth(p);
  for (const std::int64_t chunk_size : chunk_sizes) {
    CAPTURE(chunk_size);
    const Attended found = run(p, chunk_size);
    CHECK(relative_error(found.o, expected.o) <= 1e-5);
    CHECK(found.selected == expected.selected);
  }
}

Packed lengths(const std::vector<std::int32_t>& of_segments) {
  return Packed(of_segments, {}, static_cast<std::int64_t>(of_segments.size()));
}

/// One head, one sequence, as many queries as keys.
Problem sequence(std::int64_t T, std::int64_t d, std::int64_t V) { return {Packed(T), Packed(T), 1, 1, d, V}; }

}  // namespace

TEST_CASE("softmax attention: any number of queries at a time, with and without a window", "[memory]") {
  const std::int64_t T = GENERATE(1, 63, 130, 300);
  const auto [d, V] = GENERATE(std::pair{60, 60}, std::pair{16, 32});
  Problem p{Packed(T), Packed(T), 4, 2, d, V};
  p.window = GENERATE(0, 1, 5, 64, 1000);
  CAPTURE(T, d, V, p.window);
  check_against_truth(p, {1, 7, 64, T});
}

TEST_CASE("softmax attention: segments with and without earlier keys, some of them empty", "[memory]") {
  Problem p(lengths({5, 0, 1, 70, 0, 17}), lengths({5, 9, 200, 70, 0, 150}), 6, GENERATE(1, 3, 6), 20, 12);
  p.window = GENERATE(0, 30);
  check_against_truth(p, {1, 16, 64, 1000});
}

TEST_CASE("softmax attention: steps", "[memory]") {
  Problem p(lengths({1, 0, 1, 1}), lengths({300, 9, 1, 64}), 6, GENERATE(1, 3, 6), 60, 60);
  p.window = GENERATE(0, 30);
  check_against_truth(p, {0, 1, 64});
}

TEST_CASE("softmax attention: few tokens whose heads share keys", "[memory]") {
  Problem p(lengths({3, 0, 1, 8}), lengths({1200, 9, 200, 40}), 24, GENERATE(1, 2, 3), 20, 12);
  p.window = GENERATE(0, 30, 1100);
  check_against_truth(p, {1, 64});
  Problem step(lengths({1, 0, 1}), lengths({2100, 9, 5}), 40, 1, 12, 20);
  check_against_truth(step, {0, 64});
}

TEST_CASE("softmax attention: block top-k, one softmax over the own block and the chosen ones", "[memory]") {
  Problem p(lengths({300, 0, 1, 47}), lengths({300, 9, 200, 150}), 4, 2, 16, 12);
  p.blocks = GENERATE(BlockTopK{16, 3, 1000}, BlockTopK{16, 3, 100}, BlockTopK{7, 5, 133}, BlockTopK{150, 2, 299}, BlockTopK{1, 4, 1000},
                      BlockTopK{16, 100, 1000});
  CAPTURE(p.blocks.block_size, p.blocks.topk, p.blocks.until);
  check_against_truth(p, {1, 7, 64, 300});
}

TEST_CASE("softmax attention: block top-k in steps", "[memory]") {
  Problem p(lengths({1, 0, 1, 1}), lengths({300, 9, 1, 64}), 4, 2, 16, 12);
  p.blocks = GENERATE(BlockTopK{16, 3, 1000}, BlockTopK{16, 3, 299}, BlockTopK{64, 2, 64});
  CAPTURE(p.blocks.block_size, p.blocks.topk, p.blocks.until);
  check_against_truth(p, {0, 1});
}

TEST_CASE("softmax attention: one huge score picks its value", "[memory]") {
  // Only key 1 has a product with the query: 1000 against 0, and −1000 for the others must not overflow either.
  Problem p = sequence(3, 2, 2);
  p.scale = 1;
  p.q.values = {1, 0, GENERATE(1000.0F, 1e30F), 0, 1000, 0};
  p.k.values = {-1, 0, 1, 0, -1, 0};
  p.v.values = {1, 2, 3, 4, 5, 6};
  CHECK(run(p, GENERATE(1, 2, 3)).o == std::vector<float>{1, 2, 3, 4, 3, 4});
}

TEST_CASE("softmax attention: equal scores average what is in sight", "[memory]") {
  Problem p = sequence(4, 2, 1);
  std::fill(p.q.values.begin(), p.q.values.end(), 0.0F);
  p.v.values = {1, 3, 8, 16};
  CHECK(run(p, 4).o == std::vector<float>{1, 2, 4, 7});
  p.window = 2;
  CHECK(run(p, 4).o == std::vector<float>{1, 2, 5.5F, 12});
  p.window = 1;
  CHECK(run(p, 4).o == p.v.values);
}

TEST_CASE("softmax attention: of blocks with equal scores the earlier ones are chosen", "[memory]") {
  // Blocks of two, zero queries: token 7 sees its own block (6, 7) and blocks 0 and 1, not 2. Token 8 decodes, and sees all.
  Problem p = sequence(9, 2, 1);
  std::fill(p.q.values.begin(), p.q.values.end(), 0.0F);
  p.v.values = {1, 2, 4, 8, 1000, 1000, 16, 32, 9};
  p.blocks = {2, 3, 8};
  const Attended found = run(p, 9);
  CHECK(found.o[5] == Approx((1 + 2 + 4 + 8 + 2000) / 6.0));
  CHECK(found.o[6] == Approx((1 + 2 + 4 + 8 + 16) / 5.0));
  CHECK(found.o[7] == Approx((1 + 2 + 4 + 8 + 16 + 32) / 6.0));
  CHECK(found.o[8] == Approx(2072 / 9.0));
  CHECK(found.selected == std::vector<std::int32_t>{-1, -1, -1, -1, 0, -1, 0, -1, 0, 1, 0, 1, 0, 1, 0, 1, -1, -1});
}

TEST_CASE("softmax attention: chosen blocks come best first, by the mean of their keys", "[memory]") {
  // Block means 1, 3, 2 (block 1 through one large and one small key): the query at 6 takes 1, then 2.
  Problem p = sequence(7, 1, 1);
  p.q.values.assign(7, 1.0F);
  p.k.values = {1, 1, 7, -1, 2, 2, 0};
  p.blocks = {2, 3, 100};
  const std::vector<std::int32_t> selected = run(p, 7).selected;
  CHECK(std::vector(selected.end() - 2, selected.end()) == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("softmax attention: a choice of no block is plainly causal", "[memory]") {
  Problem p = sequence(40, 8, 8);
  const std::vector<float> causal = run(p, 16).o;
  p.blocks = GENERATE(BlockTopK{4, 1, 1000}, BlockTopK{4, 0, 1000}, BlockTopK{0, 0, 1000}, BlockTopK{64, 3, 1000}, BlockTopK{4, 3, 0});
  CHECK(same_bits(run(p, 16).o, causal));
}

TEST_CASE("softmax attention: complaints name the operand, what was found and what was expected", "[memory]") {
  const Problem p(lengths({5, 1}), lengths({5, 9}), 4, 2, 16, 12);
  Numbers o = poisoned({6, 4, 12});
  std::vector<std::int32_t> none, wrong(6 * 4 * 2);
  const SoftmaxAttention good = p.op(o, none);
  const auto complaint = [&](auto&& spoil) {
    SoftmaxAttention op = good;
    spoil(op);
    return complaint_of([&] { softmax_attention_chunk(op, 16); });
  };
  CHECK(complaint([](auto&) {}).empty());
  CHECK(complaint([](auto& op) { op.k.shape[1] = 3; }) ==
        "softmax_attention_chunk: k: found float32 [14, 3, 16], expected float32 [14, 4, 16]");
  CHECK(complaint([](auto& op) { op.v = op.v.slice(0, 13); }).find("k: found float32 [14, 2, 16]") != std::string::npos);
  CHECK(complaint([](auto& op) { op.q = {}; }).find("q: found []") != std::string::npos);
  CHECK(complaint([](auto& op) { op.window = -1; }).find("window: found -1") != std::string::npos);
  CHECK(complaint([](auto& op) { op.window = 3, op.blocks = {4, 2, 100}; }).find("one of the two") != std::string::npos);
  CHECK(complaint([&](auto& op) {
          op.blocks = {4, 2, 100}, op.selected_blocks = {wrong.data(), DType::i32, {6, 4, 2}};
        }) == "softmax_attention_chunk: selected_blocks: found int32 [6, 4, 2], expected int32 [6, 4, 1]");
  const std::vector<std::int32_t> short_keys{0, 4, 14}, one_segment{0, 14};
  CHECK(complaint([&](auto& op) { op.cu_seqlens_k = short_keys; }).find("segment 0 has 5 queries and 4 keys") != std::string::npos);
  CHECK(complaint([&](auto& op) { op.cu_seqlens_k = one_segment; }).find("cu_seqlens_k: found 2 offsets") != std::string::npos);
  CHECK(complaint_of([&] { softmax_attention_chunk(good, 0); }).find("chunk_size: found 0") != std::string::npos);
  CHECK(complaint_of([&] { softmax_attention_step(good); }).find("segment 0 has 5 rows") != std::string::npos);
}

}  // namespace statescope::softmax_attention_test
