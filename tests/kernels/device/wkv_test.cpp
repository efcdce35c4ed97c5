// Recurrences on a CUDA device against the CPU, of a row, several, and odd widths: WKV over segments, log-linear attention, state spaces;
// and LayerNorm, which comes with WKV.
#include "tests/kernels/device_shapes.h"

namespace statescope::device_wkv_test {
using namespace statescope::testing;

namespace {

struct Sizes {
  std::int64_t H, shared, K, V;  // `shared`: heads of what is not v
};

void compare(const Comparison& both, const Packed& segments, const Sizes& sizes, bool erases, bool reads_first, float strongest = 1.5F) {
  const auto& [H, shared, K, V] = sizes;
  Random random(1);
  const std::int64_t T = segments.rows();
  const Shape keys{T, shared, K};
  const float most = 0.5F / std::sqrt(static_cast<float>(K));
  const Numbers q = random.uniform(keys), k = random.uniform(keys), v = random.uniform({T, H, V}),
                log_decay = random.uniform(keys, -strongest, 0), erase_key = random.uniform(keys, -most, most),
                erase_along = random.uniform(keys, -most, most), initial = random.uniform({segments.slots, H, K, V});
  const auto run = [&](Side& s) {
    const Tensor state = s.inout_whole(initial);
    s->wkv({.q = s.in(q),
            .k = s.in(k),
            .v = s.in(v),
            .log_decay = s.in(log_decay),
            .erase_key = erases ? ConstTensor(s.in(erase_key)) : ConstTensor(),
            .erase_along = erases ? ConstTensor(s.in(erase_along)) : ConstTensor(),
            .reads_first = reads_first,
            .segments = segments.view(),
            .initial_state = state,
            .final_state = state,
            .o = s.out({T, H, V})});
  };
  both(with("wkv", {{"rows", T}, {"segments", segments.view().count()}, {"H", H}, {"shared", shared}, {"K", K}, {"V", V}}) +
           (erases ? ", erases" : "") + (reads_first ? ", reads first" : ""),
       run, 1e-4);
}

}  // namespace

TEST_CASE("device: WKV", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const bool erases : {false, true}) {
    for (const bool reads_first : {false, true}) {
      for (const std::int64_t T : {1, 2, 63, 300}) {
        for (const Sizes& sizes : {Sizes{1, 1, 64, 64}, {2, 2, 5, 20}, {4, 2, 24, 36}, {1, 1, 100, 33}, {2, 1, 200, 40}})
          compare(both, Packed(T), sizes, erases, reads_first);
      }
      for (const Packed* segments : {&mixed_segments, &single_row_segments, &empty_segments})
        compare(both, *segments, {4, 2, 16, 30}, erases, reads_first);
      compare(both, Packed(100), {1, 1, 64, 64}, erases, reads_first, 100);
    }
  }
}

TEST_CASE("device: LayerNorm, of rows and of heads", "[device]") {
  const Comparison both;
  if (!both) return;
  Random random(2);
  for (const auto& [T, heads, n] :
       {std::array<std::int64_t, 3>{1, 1, 64}, {3, 1, 60}, {70, 4, 16}, {5, 3, 20}, {2, 1, 4096}, {300, 1, 1}}) {
    const Numbers x = random.uniform({T, heads * n}), weight = random.uniform({heads * n}), bias = random.uniform({heads * n});
    for (const bool plain : {false, true}) {
      const auto run = [&](Side& s) {
        s->layer_norm(s.out({T, heads * n}), s.in(x), plain ? ConstTensor() : ConstTensor(s.whole(weight)),
                      plain ? ConstTensor() : ConstTensor(s.whole(bias)), n, 1e-3F);
      };
      both(with("layer_norm", {{"rows", T}, {"heads", heads}, {"n", n}}) + (plain ? ", plain" : ""), run, 1e-4);
    }
  }
}

TEST_CASE("device: log-linear attention", "[device]") {
  const Comparison both;
  if (!both) return;
  Random random(1);
  for (const auto& [T, levels, H, shared, K, V] :
       {std::array<std::int64_t, 6>{1, 1, 1, 1, 4, 5}, {63, 15, 2, 1, 5, 20}, {300, 10, 4, 2, 24, 36}, {130, 15, 1, 1, 128, 64}}) {
    const Numbers q = random.uniform({T, shared, K}), k = random.uniform({T, shared, K}), v = random.uniform({T, H, V}),
                  log_decay = random.uniform({T, H}, -0.2F, 0), scale = random.uniform({T, H, levels}, 0, 1);
    for (const std::int64_t first : {std::int64_t{0}, T / 2}) {  // tokens of a first call
      const auto run = [&](Side& s) {
        const Tensor state = s.inout_whole(Numbers({levels, H, K, V}));
        const ConstTensor on_q = s.in(q), on_k = s.in(k), on_v = s.in(v), on_decay = s.in(log_decay), on_scale = s.in(scale);
        const Tensor o = s.out({T, H, V});
        for (const auto& [begin, count] : {std::pair{std::int64_t{0}, first}, {first, T - first}}) {
          s->log_linear_attention({.q = on_q.slice(begin, count),
                                   .k = on_k.slice(begin, count),
                                   .v = on_v.slice(begin, count),
                                   .log_decay = on_decay.slice(begin, count),
                                   .level_scale = on_scale.slice(begin, count),
                                   .position = begin,
                                   .initial_state = state,
                                   .final_state = state,
                                   .o = o.slice(begin, count)});
        }
      };
      both(with("log_linear_attention", {{"rows", T}, {"first", first}, {"levels", levels}, {"H", H}, {"K", K}, {"V", V}}), run, 1e-4);
    }
  }
}

TEST_CASE("device: state spaces, diagonal and dense", "[device]") {
  const Comparison both;
  if (!both) return;
  Random random(2);
  for (const std::int64_t parts : {1, 2}) {
    for (const auto& [T, N, D] : {std::array<std::int64_t, 3>{1, 1, 1}, {63, 5, 70}, {40, 32, 33}, {9, 64, 200}, {5, 200, 20}}) {
      const float most = parts == 2 ? 0.7F : 0.9F / static_cast<float>(N);
      const Numbers u = random.uniform({T, D}), A = random.uniform({parts == 2 ? 2 : N, N, D}, -most, most),
                    B = random.uniform({parts, N, D}), C = random.uniform({parts, N, D}), initial = random.uniform({parts, 1, N, D});
      const auto run = [&](Side& s) {
        const Tensor state = s.inout_whole(initial);
        s->state_space({.u = s.in(u),
                        .A = s.whole(A),
                        .B = s.whole(B),
                        .C = s.whole(C),
                        .initial_state = state,
                        .final_state = state,
                        .o = s.out({T, D})});
      };
      both(with("state_space", {{"rows", T}, {"parts", parts}, {"N", N}, {"D", D}}), run, 1e-4);
    }
  }
}

}  // namespace statescope::device_wkv_test
