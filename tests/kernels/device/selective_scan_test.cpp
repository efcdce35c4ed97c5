// The selective scan on a CUDA device against the CPU: a row, several, so many that they are cut into chunks, odd widths, segments.
#include "tests/kernels/device_shapes.h"

namespace statescope::device_selective_scan_test {
using namespace statescope::testing;

namespace {

struct Sizes {
  std::int64_t H, shared, N, P;  // `shared`: heads of B and C
};

void compare(const Comparison& both, const Packed& segments, const Sizes& sizes, float strongest = 0.5F, float decay_factor = 1) {
  const auto& [H, shared, N, P] = sizes;
  Random random(1);
  const std::int64_t T = segments.rows();
  const Numbers x = random.uniform({T, H, P}), dt = random.uniform({T, H, P}, 0, strongest), A = random.uniform({H, N, P}, -2, 0),
                B = random.uniform({T, shared, N}), C = random.uniform({T, shared, N}), initial = random.uniform({segments.slots, H, N, P});
  for (const bool in_place : {false, true}) {
    const auto run = [&](Side& s) {
      SelectiveScan op{.x = s.in(x),
                       .dt = s.in(dt),
                       .A = s.whole(A),
                       .B = s.in(B),
                       .C = s.in(C),
                       .decay_factor = decay_factor,
                       .segments = segments.view(),
                       .initial_state = {},
                       .final_state = {},
                       .o = s.out({T, H, P})};
      if (in_place) {
        op.initial_state = op.final_state = s.inout_whole(initial);
      } else {
        op.initial_state = s.whole(initial);
        op.final_state = s.out_whole(initial.shape);
      }
      s->selective_scan(op);
    };
    both(with("selective_scan", {{"rows", T}, {"segments", segments.view().count()}, {"H", H}, {"shared", shared}, {"N", N}, {"P", P}}) +
             (in_place ? ", in place" : ""),
         run, 1e-4);
  }
}

}  // namespace

TEST_CASE("device: selective scan", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : {1, 2, 63, 300, 1000}) {
    for (const Sizes& sizes :
         {Sizes{1, 1, 16, 64}, {1, 1, 16, 97}, {1, 1, 8, 1}, {2, 2, 5, 20}, {4, 2, 24, 36}, {1, 1, 60, 33}, {1, 1, 100, 40}})
      compare(both, Packed(T), sizes);
  }
  for (const Packed* segments : {&mixed_segments, &single_row_segments, &empty_segments}) compare(both, *segments, {4, 2, 16, 30});
}

TEST_CASE("device: selective scan, strong decays, none, and other factors", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : {1, 1000}) {
    compare(both, Packed(T), {1, 1, 16, 60}, 100);
    compare(both, Packed(T), {1, 1, 16, 60}, 0);
    for (const float factor : {0.0F, 2.5F}) compare(both, Packed(T), {1, 1, 16, 60}, 0.5F, factor);
  }
}

}  // namespace statescope::device_selective_scan_test
