// WKV on a CUDA device against the CPU: a row, several, odd widths, segments; and LayerNorm, which comes with it.
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

}  // namespace statescope::device_wkv_test
