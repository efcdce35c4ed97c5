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

namespace {

/// T tokens that choose k of E experts in turn, `crowd` of them the same ones.
std::vector<std::int32_t> chosen(std::int64_t T, std::int64_t E, std::int64_t k, std::int64_t crowd) {
  std::vector<std::int32_t> ids;
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t j = 0; j < k; ++j) ids.push_back(static_cast<std::int32_t>(((t < crowd ? 1 : 5 * t) + k - j) % E));
  }
  return ids;
}

/// Experts whose matrices lie side by side, in numbers of some type.
struct Experts {
  std::int64_t E, D, I;
  DType type;
  std::vector<std::byte> into, out;

  Experts(Random& random, std::int64_t E_, std::int64_t D_, std::int64_t I_, DType type_) : E(E_), D(D_), I(I_), type(type_) {
    const float scale = 1 / std::sqrt(static_cast<float>(D));
    into = stored(random.uniform({E, 2 * I, D}, -scale, scale), type);
    out = stored(random.uniform({E, D, I}, -scale, scale), type);
  }
  ExpertMlps mlps(Side& s, Tensor y, ConstTensor x, ConstTensor ids, ConstTensor weights, bool gated) const {
    const ConstTensor all = s.weight({into.data(), type, {E * 2 * I, D}}), outs = s.weight({out.data(), type, {E * D, I}});
    const auto size = static_cast<std::int64_t>(size_of(type));
    const ConstTensor gate = gated ? all.slice(0, I) : ConstTensor();
    return {y, x, ids, weights, gate, all.slice(I, I), outs.slice(0, D), 2 * I * D * size, D * I * size};
  }
};

}  // namespace

TEST_CASE("device: the chosen experts of few tokens, of every type and of awkward widths", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const auto& [T, E, k, D, I] : {std::array{1, 4, 2, 64, 48},
                                      {3, 3, 3, 60, 20},
                                      {63, 7, 1, 129, 31},
                                      {1, 64, 10, 512, 256},
                                      {1, 5, 2, 2048, 768},
                                      {64, 16, 3, 64, 48}}) {
    Random random(2);
    const Numbers x = random.uniform({T, D}), weights = random.uniform({T, E}, 0, 1), y = random.uniform({T, D});
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      const Experts experts(random, E, D, I, type);
      for (const bool gated : {true, false}) {
        both(with("expert_mlps " + std::string(name_of(type)), {{"T", T}, {"E", E}, {"k", k}, {"D", D}, {"I", I}, {"gated", gated}}),
             [&](Side& s) {
               s->expert_mlps(experts.mlps(s, s.inout(y), s.in(x), s.in(chosen(T, E, k, T / 2), {T, k}), s.in(weights), gated),
                              s.workspace());
             });
      }
    }
  }
}

TEST_CASE("device: the chosen experts of many tokens, as products of bf16", "[device]") {
  const Comparison both(Precision::bfloat16);
  if (!both) return;
  constexpr double rounding = 2e-2;  // two products behind each other
  // Experts that nobody chose, that one token chose, and that most did; rows, inputs and outputs that end within a tile.
  for (const auto& [T, E, k, D, I, crowd] : {std::array{65, 4, 2, 64, 48, 0},
                                             {300, 3, 3, 72, 24, 300},
                                             {700, 40, 1, 520, 264, 650},
                                             {129, 64, 10, 512, 256, 3},
                                             {2, 8, 2, 64, 64, 0},
                                             {1000, 512, 4, 256, 128, 0}}) {
    Random random(3);
    const Numbers x = random.uniform({T, D}), weights = random.uniform({T, E}, 0, 1), y = random.uniform({T, D});
    const Experts experts(random, E, D, I, DType::bf16);
    const std::vector<std::int32_t> ids = chosen(T, E, k, crowd);
    for (const bool gated : {true, false}) {
      for (const bool to_float32 : {true, false}) {
        both(
            with("expert_mlps", {{"T", T}, {"E", E}, {"k", k}, {"D", D}, {"I", I}, {"gated", gated}, {"to float32", to_float32}}),
            [&](Side& s) {
              const Tensor sum = to_float32 ? s.inout(y) : s.activation_inout(y);
              const ExpertMlps op = experts.mlps(s, sum, s.activation(x), s.in(ids, {T, k}), s.in(weights), gated);
              if (op.x.dtype == DType::bf16) CHECK(s->takes(op));
              s->expert_mlps(op, s.workspace());
            },
            rounding, 8);
      }
    }
  }
}

}  // namespace statescope::device_experts_test
