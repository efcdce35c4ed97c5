#include "engine/model/random_checkpoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/model/model.h"
#include "kernels/cpu/parallel.h"

namespace statescope {
namespace {

/// Sum of four uniforms: near enough to a normal deviate, cheap, and the same on every machine.
class Deviates {
 public:
  explicit Deviates(std::uint64_t seed) : random_(seed) {}
  std::uint64_t bits() { return random_(); }
  float normal() {
    const std::uint64_t bits = random_();
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>((bits >> (16 * i)) & 0xffff) / 65536.0F;
    return (sum - 2) * 1.7320508F;
  }

 private:
  std::mt19937_64 random_;
};

float scale_of(const TensorSpec& spec) {
  if (spec.shape.size() < 2) return 0.1F;
  if (spec.shape.size() == 3 && spec.shape[1] == 1) return 0.5F;  // convolutions
  return 1 / std::sqrt(static_cast<float>(spec.shape.back()));
}

/// What the numbers of a tensor lie around.
float centre_of(const TensorSpec& spec) {
  if (spec.name.ends_with("norm.weight") || spec.name.ends_with("norm_f.weight") || spec.name.ends_with("swish_gate.weight")) return 1;
  if (spec.name.ends_with("gk_proj.1.bias")) return 2;
  return spec.name.ends_with("s4.kernel.log_dt") ? -1 : 0;
}

/// The numbers from `begin` to `end`.
void fill(std::byte* bytes, const TensorSpec& spec, DType dtype, std::int64_t begin, std::int64_t end, Deviates& deviates) {
  const float scale = scale_of(spec), centre = centre_of(spec);
  const bool forgets = spec.name.ends_with("s4.kernel.A");  // a state space, along its diagonal
  for (std::int64_t i = begin; i < end; ++i) {
    const bool on_diagonal = forgets && i / spec.shape[1] == i % spec.shape[1];
    const float value = (on_diagonal ? -2 : centre) + scale * deviates.normal();
    if (dtype == DType::f32) {
      reinterpret_cast<float*>(bytes)[i] = value;
    } else {
      reinterpret_cast<std::uint16_t*>(bytes)[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    }
  }
}

/// All of so many; where that is more than a block, blocks with seeds of their own.
void fill(std::byte* bytes, const TensorSpec& spec, DType dtype, std::int64_t size, Deviates& deviates) {
  constexpr std::int64_t block = std::int64_t{1} << 16;
  if (size <= block) return fill(bytes, spec, dtype, 0, size, deviates);
  const std::uint64_t seed = deviates.bits();
  parallel_for((size + block - 1) / block, [&](std::int64_t b) {
    Deviates own(seed + static_cast<std::uint64_t>(b));
    fill(bytes, spec, dtype, b * block, std::min(size, (b + 1) * block), own);
  });
}

}  // namespace

std::shared_ptr<const Checkpoint> random_checkpoint(const Config& config, std::uint64_t seed, DType dtype) {
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->name = "random-" + config.text("model_type");
  checkpoint->path = checkpoint->name;
  checkpoint->config = config.raw().dump();
  Deviates deviates(seed);
  for (const TensorSpec& spec : model_tensors(config)) {
    StoredTensor tensor;
    tensor.name = spec.name;
    tensor.shape = spec.shape;
    const bool is_matrix = spec.shape.size() == 2 || (spec.shape.size() == 3 && spec.shape[1] > 1);  // of all experts together
    tensor.dtype = is_matrix ? dtype : DType::f32;
    const std::shared_ptr<std::byte[]> bytes(new std::byte[static_cast<std::size_t>(tensor.bytes())]);
    fill(bytes.get(), spec, tensor.dtype, tensor.size(), deviates);
    tensor.data = bytes.get();
    checkpoint->storage.push_back(bytes);
    checkpoint->tensors.push_back(std::move(tensor));
  }
  std::sort(checkpoint->tensors.begin(), checkpoint->tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  // A tied tensor is asked for twice under one name.
  const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
  checkpoint->tensors.erase(std::unique(checkpoint->tensors.begin(), checkpoint->tensors.end(), same), checkpoint->tensors.end());
  return checkpoint;
}

}  // namespace statescope
