#include "engine/model/token_traffic.h"

#include <algorithm>
#include <utility>

#include "engine/model/counted_weights.h"
#include "engine/model/model.h"

namespace statescope {
namespace {

/// Which part of a tensor one token reads.
double share_read(const Plan& plan, std::size_t part, const std::string& name) {
  if (part == plan.layers.size()) return name == plan.embeddings && !plan.tied ? 1 / static_cast<double>(plan.vocab) : 1;
  const LayerPlan& layer = plan.layers[part];
  if (layer.ffn != FfnKind::experts || !layer.experts || !name.starts_with(layer.ffn_prefix)) return 1;
  const ExpertsPlan& experts = *layer.experts;
  const std::string own = name.substr(layer.ffn_prefix.size());
  const std::string stem = experts.one_by_one.substr(0, experts.one_by_one.find("{}"));
  const bool is_packed = std::ranges::any_of(experts.packed, [&](const auto& names) { return own == names.first || own == names.second; });
  const bool is_one = !stem.empty() && own.starts_with(stem);
  return is_packed || is_one ? static_cast<double>(experts.chosen) / static_cast<double>(experts.count) : 1;
}

/// Counts what one token reads.
class ReadWeights final : public CountedWeights {
 public:
  ReadWeights(const Plan& plan, const std::vector<StoredTensor>& tensors)
      : CountedWeights(tensors, plan.layers.size()), read(plan.layers.size() + 1), plan_(plan) {}

  std::vector<double> read;  // bytes

  ConstTensor matrix(const std::string& name, std::vector<std::int64_t> shape) override {
    const ConstTensor given = CountedWeights::matrix(name, std::move(shape));
    read[part()] += static_cast<double>(given.shape.size()) * static_cast<double>(size_of(type_of(name))) * share_read(plan_, part(), name);
    return given;
  }
  ConstTensor floats(const std::string& name, std::vector<std::int64_t> shape) override {
    const ConstTensor given = CountedWeights::floats(name, std::move(shape));
    read[part()] += static_cast<double>(given.shape.size()) * sizeof(float);
    return given;
  }

 private:
  const Plan& plan_;
};

/// Numbers of a memory that one token comes to.
std::int64_t numbers_visited(const MixerLayout& layout, const MixerLayout::Memory& memory) {
  if (layout.partitions == 0) return memory.shape.size();
  const std::int64_t chosen = std::max({layout.writers, layout.readers, std::int64_t{1}}) + (layout.has_shared_slot ? 1 : 0);
  return std::min(chosen, memory.shape[0]) * memory.shape.row_size();
}

}  // namespace

std::vector<StoredTensor> tensors_without_data(const Config& config, DType dtype) {
  std::vector<StoredTensor> tensors;
  for (const TensorSpec& spec : model_tensors(config))
    tensors.push_back({.name = spec.name, .dtype = spec.shape.size() > 1 ? dtype : DType::f32, .shape = spec.shape});
  return tensors;
}

std::vector<TokenTraffic> token_traffic(const Plan& plan, const std::vector<StoredTensor>& tensors) {
  ReadWeights weights(plan, tensors);
  const Stack counted(plan, weights);  // only asks
  std::vector<TokenTraffic> traffic(plan.layers.size() + 1);
  for (std::size_t part = 0; part < traffic.size(); ++part) traffic[part].weights = weights.read[part];
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const MixerLayout& layout = counted.blocks[i].layout;
    std::int64_t numbers = 0;
    for (const MixerLayout::Memory& memory : layout.memory) numbers += numbers_visited(layout, memory);
    for (const Shape& cache : layout.conv_caches) numbers += cache.size();
    traffic[i].states = 2.0 * static_cast<double>(numbers) * sizeof(float);
    traffic[i].cache = static_cast<double>(layout.kv_heads * (layout.key_dim + layout.value_dim) + layout.index_dim) * sizeof(float);
  }
  return traffic;
}

}  // namespace statescope
