// Softmax attention over what a fixed pattern or a choice lets a query see, against every query with every key in double precision.
#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "kernels/ops/softmax_attention.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::attention_sight_test {
using namespace statescope::testing;

namespace {

/// Whether the query in this row, at this position of its segment, sees a key with head h.
using Sees = std::function<bool(std::int64_t h, std::int64_t row, std::int64_t position, std::int64_t key)>;

struct Problem {
  Packed queries, keys;
  std::int64_t H, Hkv, d = 12, V = 20;
  FixedPattern pattern;
  std::vector<std::int32_t> chosen;  // [queries, chosen_heads, n]
  std::int64_t chosen_heads = 0, chosen_size = 1;
  Numbers q, k, v;

  Problem(const std::vector<std::int32_t>& queries_, const std::vector<std::int32_t>& keys_, std::int64_t H_ = 4, std::int64_t Hkv_ = 2)
      : queries(queries_, {}, std::ssize(queries_)), keys(keys_, {}, std::ssize(keys_)), H(H_), Hkv(Hkv_) {
    Random random(3);
    q = random.uniform({queries.rows(), H, d});
    k = random.uniform({keys.rows(), Hkv, d});
    v = random.uniform({keys.rows(), Hkv, V});
  }

  std::vector<float> run(std::int64_t chunk_size) const {
    Numbers o = poisoned({queries.rows(), H, V});
    SoftmaxAttention op;
    op.q = q.view(), op.k = k.view(), op.v = v.view(), op.o = o.view();
    op.scale = 0.7F, op.pattern = pattern, op.segments = queries.view(), op.cu_seqlens_k = keys.cu_seqlens;
    if (!chosen.empty()) {
      const std::int64_t rows = queries.rows(), n = std::ssize(chosen) / (rows * std::max<std::int64_t>(chosen_heads, 1));
      op.chosen = {{chosen.data(), DType::i32, chosen_heads > 0 ? Shape{rows, chosen_heads, n} : Shape{rows, n}}, chosen_size};
    }
    chunk_size == 0 ? softmax_attention_step(op) : softmax_attention_chunk(op, chunk_size);
    return o.values;
  }

  std::vector<double> truth(const Sees& sees) const {
    std::vector<double> all;
    for (std::size_t s = 0; s + 1 < queries.cu_seqlens.size(); ++s) {
      const std::int64_t first = queries.cu_seqlens[s], end = queries.cu_seqlens[s + 1], first_key = keys.cu_seqlens[s];
      const std::int64_t count = keys.cu_seqlens[s + 1] - first_key;
      for (std::int64_t row = first; row < end; ++row) {
        for (std::int64_t h = 0; h < H; ++h) {
          const std::int64_t position = count - (end - row), g = h / (H / Hkv);
          std::vector<double> o(static_cast<std::size_t>(V));
          double total = 0;
          for (std::int64_t j = 0; j <= position; ++j) {
            if (!sees(h, row, position, j)) continue;
            double score = 0;
            for (std::int64_t c = 0; c < d; ++c) score += q.row(row)[h * d + c] * static_cast<double>(k.row(first_key + j)[g * d + c]);
            const double weight = std::exp(static_cast<double>(0.7F) * score);
            total += weight;
            for (std::int64_t c = 0; c < V; ++c) o[static_cast<std::size_t>(c)] += weight * v.row(first_key + j)[g * V + c];
          }
          for (const double x : o) all.push_back(x / total);
        }
      }
    }
    return all;
  }
};

void check(const Problem& p, const Sees& sees) {
  const std::vector<double> expected = p.truth(sees);
  for (const std::int64_t chunk_size : {1, 7, 64, 300}) {
    CAPTURE(chunk_size);
    CHECK(relative_error(p.run(chunk_size), expected) <= 1e-5);
  }
}

/// Several queries of several segments; and steps.
std::vector<Problem> problems() { return {Problem({150, 0, 1, 47}, {150, 9, 90, 133}), Problem({1, 0, 1}, {150, 9, 64})}; }

}  // namespace

TEST_CASE("softmax attention: dilated windows and global tokens", "[memory]") {
  const std::vector<std::int32_t> dilation{1, 1, 2, 3}, global{0, 5, 70};
  for (Problem p : problems()) {
    p.pattern = {.block_size = 1, .window = 8, .dilation = dilation.data(), .global = global.data(), .globals = 3};
    check(p, [&](std::int64_t h, std::int64_t, std::int64_t t, std::int64_t s) {
      const std::int64_t apart = dilation[static_cast<std::size_t>(h)];
      return ((t - s) % apart == 0 && (t - s) / apart < 8) || std::ranges::count(global, s) > 0 || std::ranges::count(global, t) > 0;
    });
  }
}

TEST_CASE("softmax attention: a window, and the first tokens beyond it", "[memory]") {
  for (const std::int64_t leading : {1, 6, 60}) {
    for (Problem p : problems()) {
      p.pattern = {.block_size = 1, .window = 8, .leading = leading};
      check(p, [&](std::int64_t, std::int64_t, std::int64_t t, std::int64_t s) { return t - s < 8 || s < leading || t < leading; });
    }
  }
}

TEST_CASE("softmax attention: windows of blocks, global and listed ones", "[memory]") {
  constexpr std::int64_t rows = 12, width = 2;
  std::vector<std::int32_t> listed;
  Random random(5);
  for (std::int64_t i = 0; i < 4 * rows; ++i) {
    listed.push_back(static_cast<std::int32_t>(random.below(i % rows + 1)));
    listed.push_back(i % 3 == 0 ? -1 : static_cast<std::int32_t>(random.below(i % rows + 1)));
  }
  const std::vector<std::int32_t> global{0};
  for (Problem p : problems()) {
    p.pattern = {.block_size = 8,
                 .window = 2,
                 .global = global.data(),
                 .listed = listed.data(),
                 .globals = 1,
                 .listed_rows = rows,
                 .listed_width = width};
    check(p, [&](std::int64_t h, std::int64_t, std::int64_t t, std::int64_t s) {
      const std::int64_t a = t / 8, b = s / 8;
      const auto list = listed.begin() + (h * rows + a) * width;
      return a - b < 2 || b < 1 || a < 1 || (a < rows && std::find(list, list + width, b) != list + width);
    });
  }
}

TEST_CASE("softmax attention: local blocks and vertical strides", "[memory]") {
  for (const std::int64_t step : {0, 1, 2}) {
    for (Problem p : problems()) {
      p.pattern = {.block_size = 4, .window = 3, .stride = 8, .head_step = step};
      check(p, [&](std::int64_t h, std::int64_t, std::int64_t t, std::int64_t s) {
        return t / 4 - s / 4 < 3 || (s / 4 + h * step + 1) % 8 == 0;
      });
    }
  }
}

TEST_CASE("softmax attention: a pattern whose window is one of tokens is that window, to the bit", "[memory]") {
  Problem p({150}, {150});
  p.pattern = {.block_size = 1, .window = 1000};
  const std::vector<float> all = p.run(16);
  p.pattern = {};
  CHECK(same_bits(p.run(16), all));
}

TEST_CASE("softmax attention: blocks and tokens that something else has chosen", "[memory]") {
  for (const std::int64_t heads : {0, 1, 2, 4}) {
    for (const std::int64_t size : {1, 5, 64}) {
      std::vector<Problem> all = problems();
      all.emplace_back(std::vector{2, 0, 1, 8}, std::vector{150, 9, 64, 90}, 16, 2);  // few tokens whose heads share keys
      for (Problem p : all) {
        CAPTURE(heads, size, p.H);
        Random random(7);
        p.chosen_heads = heads, p.chosen_size = size;
        constexpr std::size_t n = 6;
        for (std::size_t s = 0; s + 1 < p.queries.cu_seqlens.size(); ++s) {
          const std::int64_t first = p.queries.cu_seqlens[s], end = p.queries.cu_seqlens[s + 1],
                             keys = p.keys.cu_seqlens[s + 1] - p.keys.cu_seqlens[s];
          for (std::int64_t i = 0; i < (end - first) * std::max<std::int64_t>(heads, 1); ++i) {
            const std::int64_t position = keys - (end - first) + i / std::max<std::int64_t>(heads, 1);
            std::set<std::int32_t> some{static_cast<std::int32_t>(position / size)};
            for (int more = 0; more < 4; ++more) some.insert(static_cast<std::int32_t>(random.below(position / size + 1)));
            std::vector<std::int32_t> list(some.begin(), some.end());
            list.resize(n, -1);
            p.chosen.insert(p.chosen.end(), list.begin(), list.end());
          }
        }
        check(p, [&](std::int64_t h, std::int64_t row, std::int64_t, std::int64_t key) {
          const std::int64_t lists = std::max<std::int64_t>(heads, 1);
          const auto list = p.chosen.begin() + (row * lists + h * lists / p.H) * static_cast<std::int64_t>(n);
          return std::find(list, list + n, key / size) != list + n;
        });
      }
    }
  }
}

TEST_CASE("softmax attention: complaints of a sight", "[memory]") {
  Problem p({5}, {5});
  p.pattern = {.block_size = 4, .window = 0};
  CHECK(complaint_of([&] { p.run(4); }).find("pattern: window 0") != std::string::npos);
  p.pattern.window = 1;
  p.chosen.assign(5 * 3, 0);
  CHECK(complaint_of([&] { p.run(4); }).find("pattern: a fixed pattern or chosen keys") != std::string::npos);
  p.pattern = {};
  p.chosen_size = 0;
  CHECK(complaint_of([&] { p.run(4); }).find("chosen: block size 0") != std::string::npos);
  p.chosen_size = 1, p.chosen_heads = 3;
  CHECK(complaint_of([&] { p.run(4); }).find("chosen: found [5, 3, 1]") != std::string::npos);
}

}  // namespace statescope::attention_sight_test
