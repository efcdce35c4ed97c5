// Layers of experts on a CUDA device against the CPU.
#include <Eigen/Core>

#include "tests/kernels/device_shapes.h"

namespace statescope::device_experts_test {
using namespace statescope::testing;

namespace {

/// Numbers as a checkpoint may store them.
std::vector<std::byte> stored(const Numbers& x, DType type) {
  std::vector<std::byte> bytes(x.values.size() * size_of(type));
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    std::byte* const at = bytes.data() + i * size_of(type);
    const auto half = static_cast<Eigen::half>(x.values[i]);
    const auto bfloat = static_cast<Eigen::bfloat16>(x.values[i]);
    const void* const number = type == DType::f32   ? static_cast<const void*>(&x.values[i])
                               : type == DType::f16 ? static_cast<const void*>(&half)
                                                    : &bfloat;
    std::memcpy(at, number, size_of(type));
  }
  return bytes;
}

}  // namespace

TEST_CASE("device: experts chosen by scores, in groups and with corrections", "[device]") {
  const Comparison both;
  if (!both) return;
  Random random(1);
  for (const std::int64_t T : {1, 5, 63, 300}) {
    for (const auto& [E, k, groups, chosen_groups] :
         {std::array{6, 2, 1, 1}, {8, 3, 4, 2}, {60, 7, 3, 1}, {256, 8, 8, 4}, {512, 22, 1, 1}}) {
      const Numbers logits = random.uniform({T, E}, -4, 4), correction = random.uniform({E}, -0.3F, 0.3F);
      for (const bool corrected : {false, true}) {
        for (const bool renormalise : {false, true}) {
          const ScoredChoice how{groups, chosen_groups, renormalise, 1e-6F, 2.5F};
          both(with("score_experts", {{"T", static_cast<double>(T)}, {"E", E}, {"k", k}, {"corrected", corrected}}), [&](Side& s) {
            const Tensor weights = s.out({T, E}), ids = s.out_i32({T, k});
            s->score_experts({weights, ids, s.in(logits), corrected ? s.whole(correction) : ConstTensor(), how});
          });
        }
      }
    }
  }
}

TEST_CASE("device: a step of the chosen experts, of every type and of awkward widths", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const auto& [E, k, D, I] : {std::array{4, 2, 64, 48}, {3, 3, 60, 20}, {7, 1, 129, 31}, {64, 10, 512, 256}, {5, 2, 2048, 768}}) {
    Random random(2);
    const float scale = 1 / std::sqrt(static_cast<float>(D));
    const Numbers x = random.uniform({1, D}), weights = random.uniform({1, E}, 0, 1), y = random.uniform({1, D}),
                  into = random.uniform({E, 2 * I, D}, -scale, scale), down = random.uniform({E, D, I}, -scale, scale);
    std::vector<std::int32_t> ids;
    for (std::int32_t j = 0; j < k; ++j) ids.push_back((j * 3 + 1) % E);
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      const std::vector<std::byte> into_bytes = stored(into, type), down_bytes = stored(down, type);
      const auto size = static_cast<std::int64_t>(size_of(type));
      for (const bool gated : {true, false}) {
        both(with("expert_step " + std::string(name_of(type)), {{"E", E}, {"k", k}, {"D", D}, {"I", I}, {"gated", gated}}), [&](Side& s) {
          const ConstTensor all = s.weight({into_bytes.data(), type, {E * 2 * I, D}}),
                            outs = s.weight({down_bytes.data(), type, {E * D, I}});
          s->expert_step({.y = s.inout(y),
                          .x = s.in(x),
                          .ids = s.in(ids, {1, k}),
                          .weights = s.in(weights),
                          .gate = gated ? all.slice(0, I) : ConstTensor(),
                          .up = all.slice(I, I),
                          .down = outs.slice(0, D),
                          .into_stride = 2 * I * D * size,
                          .out_of_stride = D * I * size},
                         s.workspace());
        });
      }
    }
  }
}

}  // namespace statescope::device_experts_test
