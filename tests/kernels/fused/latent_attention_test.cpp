// Latent attention, by latents and by heads, against keys and values that are written out in double precision.
#include "kernels/fused/latent_attention.h"

#include <algorithm>
#include <set>

#include "tests/kernels/device_shapes.h"

namespace statescope::latent_attention_test {
using namespace statescope::testing;

namespace {

struct Sizes {
  std::int64_t H, C, n, r, V;
};

struct Problem {
  Packed queries, keys;
  Sizes sizes;
  bool shared_first = false;
  std::int64_t most_numbers = 64 << 20;
  std::vector<std::int32_t> chosen;  // [queries, 7]
  Numbers q, latents, W_k, W_v;

  Problem(const std::vector<std::int32_t>& queries_, const std::vector<std::int32_t>& keys_, const Sizes& of)
      : queries(queries_, {}, std::ssize(queries_)), keys(keys_, {}, std::ssize(keys_)), sizes(of) {
    Random random(2);
    q = random.uniform({queries.rows(), of.H, of.n + of.r});
    latents = random.uniform({keys.rows(), 1, of.C + of.r});
    W_k = random.uniform({of.H * of.n, of.C}, -0.5F, 0.5F);
    W_v = random.uniform({of.H * of.V, of.C}, -0.5F, 0.5F);
  }

  /// Of each query itself and up to six tokens before it.
  void choose() {
    Random random(9);
    for (std::size_t s = 0; s + 1 < queries.cu_seqlens.size(); ++s) {
      const std::int64_t count = queries.cu_seqlens[s + 1] - queries.cu_seqlens[s], all = keys.cu_seqlens[s + 1] - keys.cu_seqlens[s];
      for (std::int64_t i = 0; i < count; ++i) {
        std::set<std::int32_t> some{static_cast<std::int32_t>(all - count + i)};
        for (int more = 0; more < 6; ++more) some.insert(static_cast<std::int32_t>(random.below(all - count + i + 1)));
        std::vector<std::int32_t> list(some.begin(), some.end());
        list.resize(7, -1);
        chosen.insert(chosen.end(), list.begin(), list.end());
      }
    }
  }

  /// With operands where `in` puts them.
  template <class In>
  LatentAttention op(const In& in, ConstTensor ids, Tensor o) const {
    return {.q = in(q),
            .shared_first = shared_first,
            .latents = in(latents),
            .W_k = in(W_k),
            .W_v = in(W_v),
            .scale = 0.3F,
            .chosen = {ids},
            .segments = queries.view(),
            .cu_seqlens_k = keys.cu_seqlens,
            .o = o,
            .most_numbers = most_numbers};
  }
  void run(Side& s, std::int64_t chunk_size) const {
    const ConstTensor ids = chosen.empty() ? ConstTensor() : s.in(chosen, {queries.rows(), 7});
    const auto in = [&](const Numbers& x) { return s.whole(x); };
    latent_attention(op(in, ids, s.out_whole({queries.rows(), sizes.H, sizes.V})), chunk_size, *s.operator->(), s.workspace());
  }
  std::vector<float> run(std::int64_t chunk_size) const {
    const auto cpu = make_cpu_backend(2);
    Workspace workspace(*cpu);
    Numbers o = poisoned({queries.rows(), sizes.H, sizes.V});
    const ConstTensor ids = chosen.empty() ? ConstTensor() : ConstTensor(chosen.data(), DType::i32, {queries.rows(), 7});
    latent_attention(op([](const Numbers& x) { return x.view(); }, ids, o.view()), chunk_size, *cpu, workspace);
    return o.values;
  }

  /// W x, of the rows [first, first + count) of W
  static std::vector<double> product(const Numbers& W, std::int64_t first, std::int64_t count, const float* x) {
    std::vector<double> y(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t c = 0; c < W.shape[1]; ++c) y[static_cast<std::size_t>(i)] += static_cast<double>(W.row(first + i)[c]) * x[c];
    }
    return y;
  }
  bool sees(std::int64_t row, std::int64_t key) const {
    return chosen.empty() || std::count(chosen.begin() + row * 7, chosen.begin() + (row + 1) * 7, key) > 0;
  }

  std::vector<double> truth() const {
    const auto& [H, C, n, r, V] = sizes;
    std::vector<double> all(static_cast<std::size_t>(queries.rows() * H * V));
    for (std::int64_t h = 0; h < H; ++h) {
      std::vector<std::vector<double>> k, v;
      for (std::int64_t j = 0; j < keys.rows(); ++j) {
        k.push_back(product(W_k, h * n, n, latents.row(j)));
        v.push_back(product(W_v, h * V, V, latents.row(j)));
        k.back().insert(shared_first ? k.back().begin() : k.back().end(), latents.row(j) + C, latents.row(j) + C + r);
      }
      for (std::size_t s = 0; s + 1 < queries.cu_seqlens.size(); ++s) {
        const std::int64_t end = queries.cu_seqlens[s + 1], first_key = keys.cu_seqlens[s], count = keys.cu_seqlens[s + 1] - first_key;
        for (std::int64_t row = queries.cu_seqlens[s]; row < end; ++row) {
          double* o = all.data() + (row * H + h) * V;
          double total = 0;
          for (std::int64_t key = 0; key <= count - (end - row); ++key) {
            if (!sees(row, key)) continue;
            const auto at = static_cast<std::size_t>(first_key + key);
            double score = 0;
            for (std::size_t c = 0; c < k[at].size(); ++c) score += q.row(row)[h * (n + r) + static_cast<std::int64_t>(c)] * k[at][c];
            const double weight = std::exp(static_cast<double>(0.3F) * score);
            total += weight;
            for (std::size_t c = 0; c < v[at].size(); ++c) o[c] += weight * v[at][c];
          }
          for (std::int64_t c = 0; c < V; ++c) o[c] /= total;
        }
      }
    }
    return all;
  }
};

/// With so many queries of a segment each form is taken: 35 is worth working out the heads of the first sizes, 3 is not.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const bool shared_first : {false, true}) {
    for (const Sizes& sizes : {Sizes{3, 24, 6, 4, 5}, {9, 20, 8, 2, 12}, {16, 7, 10, 6, 3}}) {
      all.emplace_back(std::vector{70, 0, 1, 47}, std::vector{150, 9, 90, 133}, sizes);
      all.emplace_back(std::vector{3, 2}, std::vector{140, 2}, sizes);
      all.emplace_back(std::vector{1, 0, 1}, std::vector{1100, 9, 64}, sizes);
      for (std::size_t i = all.size() - 3; i < all.size(); ++i) all[i].shared_first = shared_first;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("latent attention: of latents, or of all heads' keys and values", "[memory]") {
  for (Problem p : problems()) {
    for (const bool chooses : {false, true}) {
      CAPTURE(p.queries.rows(), p.sizes.H, p.shared_first, chooses);
      if (chooses) p.choose();
      const std::vector<double> truth = p.truth();
      for (const std::int64_t chunk_size : {1, 16, 64}) CHECK(relative_error(p.run(chunk_size), truth) <= 1e-5);
      p.most_numbers = 3000;  // one head at a time, or two
      CHECK(relative_error(p.run(64), truth) <= 1e-5);
    }
  }
}

TEST_CASE("latent attention: a step", "[memory]") {
  for (const Sizes& sizes : {Sizes{3, 24, 6, 4, 5}, {20, 24, 6, 4, 5}}) {
    Problem p({1, 0, 1}, {1300, 3, 1}, sizes);
    CHECK(relative_error(p.run(0), p.truth()) <= 1e-5);
    p.choose();
    CHECK(relative_error(p.run(0), p.truth()) <= 1e-5);
  }
}

TEST_CASE("device: latent attention, of the widths of DeepSeek-V3 too", "[device]") {
  const Comparison both;
  if (!both) return;
  const auto compare = [&](const Problem& p, std::int64_t chunk_size) {
    both(
        with("latent_attention", {{"queries", p.queries.rows()}, {"H", p.sizes.H}, {"C", p.sizes.C}, {"chooses", !p.chosen.empty()}}),
        [&](Side& s) { p.run(s, chunk_size); }, 1e-4);
  };
  std::vector<Problem> all = problems();
  all.emplace_back(std::vector{1}, std::vector{700}, Sizes{16, 512, 128, 64, 128});
  all.emplace_back(std::vector{9}, std::vector{300}, Sizes{16, 512, 128, 64, 128});
  all.emplace_back(std::vector{200}, std::vector{300}, Sizes{4, 512, 128, 64, 128});
  for (Problem& p : all) {
    compare(p, 64);
    p.choose();
    compare(p, 64);
  }
}

}  // namespace statescope::latent_attention_test
