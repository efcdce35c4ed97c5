// Products of one row with any number of weights, which are read once, as they are stored, at the speed of memory: a token's decoding.
// What is asked becomes one level (cuda_levels.h).
#include <algorithm>
#include <array>

#include "kernels/cuda_levels.h"
#include "kernels/cuda_linear.h"

namespace statescope::cuda {
namespace {

using namespace one_row;

/// Whether a product fits the kernels: rows of whole eights that begin at 16 bytes.
bool streams(ConstTensor x, const InputNorm& norm, ConstTensor weight) {
  const auto size = static_cast<std::int64_t>(size_of(weight.dtype));
  const auto aligned = [](ConstTensor t, std::int64_t bytes) {
    return reinterpret_cast<std::uintptr_t>(t.data) % piece == 0 && t.stride * bytes % piece == 0;
  };
  const bool rows = weight.row_size() % eight == 0 && aligned(weight, size);
  const bool groups = norm.group == 0 || norm.group == x.row_size() || norm.group % numbers_of_sum == 0;
  return x.rows() == 1 && x.dtype == DType::f32 && rows && aligned(x, piece) && groups &&
         (!norm.gate || (norm.gate.dtype == DType::f32 && aligned(norm.gate, piece)));
}

bool same(const InputNorm& a, const InputNorm& b) {
  return a.group == b.group && a.weight.data == b.weight.data && a.gate.data == b.gate.data;
}

/// What is collected for one launch.
class OneRowLaunch {
 public:
  /// False where it does not fit; then nothing may be launched.
  bool add(const Projection& p) {
    if (p.y.dtype != DType::f32 || (p.z && p.z.dtype != DType::f32) || !add_product(p.x, p.norm, p.weight)) return false;
    Product& product = products_.back().product;
    product.y = p.y.f32();
    product.z = f32(p.z).data;
    product.bias = f32(p.bias).data;
    return std::visit([&](const auto& finish) { return set(product, finish); }, p.finish);
  }
  /// y = silu(x̂ · gateᵀ) ⊙ (x̂ · upᵀ)
  bool add_gated(Tensor y, ConstTensor x, const InputNorm& norm, ConstTensor gate, ConstTensor up) {
    if (gate.dtype != up.dtype || gate.stride != up.stride || !streams(x, norm, up) || !add_product(x, norm, gate)) return false;
    Product& product = products_.back().product;
    product.y = y.f32();
    product.up = static_cast<const char*>(up.data);
    product.end = End::gated;
    product.act = Activation::silu;
    return true;
  }
  void start(Levels& levels, cudaStream_t stream) {
    // Those that others wait for come first, those that wait last: a block that waits must not keep another product from being made.
    for (Collected& one : products_) {
      Product& p = one.product;
      const auto bytes = static_cast<std::int64_t>(p.in) * static_cast<std::int64_t>(size_of(type_));
      p.short_rows = p.end != End::gated && bytes <= short_bytes && p.weight_bytes == bytes;
    }
    std::ranges::stable_sort(products_, {}, [](const Collected& one) { return std::pair(one.place, one.product.short_rows); });
    for (const Collected& one : products_) {
      Product product = one.product;
      product.first_unit = op_.first_unit[op_.product_count] = op_.units;
      const int rows = rows_of_unit(product);
      op_.units += (product.out + rows - 1) / rows;
      if (one.place <= Place::announced) op_.announced = op_.units;
      if (one.place <= Place::plain) op_.waiting = op_.units;
      op_.products[op_.product_count++] = product;
    }
    op_.enough = static_cast<unsigned>(op_.announced);
    levels.products(op_, type_, stream);
  }

 private:
  enum class Place { announced, plain, waiting };
  struct Collected {
    Product product{};
    Place place = Place::plain;
  };

  bool add_product(ConstTensor x, const InputNorm& norm, ConstTensor weight) {
    if (products_.size() == most_products || !streams(x, norm, weight) || (!products_.empty() && weight.dtype != type_)) return false;
    type_ = weight.dtype;
    Collected* const maker = maker_of(x);
    if (maker != nullptr) {
      if (norm.group > 0 || maker->product.out != x.row_size() || maker->place == Place::waiting) return false;
      maker->place = Place::announced;
    }
    const int input = input_of(x, norm);
    if (input < 0) return false;
    op_.inputs[input].made = maker != nullptr;
    const auto size = static_cast<std::int64_t>(size_of(type_));
    products_.push_back({.place = maker != nullptr ? Place::waiting : Place::plain});
    Product& product = products_.back().product;
    product.weight = static_cast<const char*>(weight.data);
    product.weight_bytes = weight.stride * size;
    product.out = static_cast<int>(weight.rows());
    product.in = static_cast<int>(weight.row_size());
    product.input = input;
    return true;
  }
  /// The product before that makes x; null: there is none.
  Collected* maker_of(ConstTensor x) {
    const auto maker = std::ranges::find(products_, x.data, [](const Collected& one) -> const void* { return one.product.y; });
    return maker == products_.end() ? nullptr : &*maker;
  }
  /// Its number among the inputs; −1 where there is no room.
  int input_of(ConstTensor x, const InputNorm& norm) {
    for (int n = 0; n < op_.input_count; ++n) {
      if (op_.inputs[n].x == x.data && same(norms_[static_cast<std::size_t>(n)], norm)) return n;
    }
    const auto n = static_cast<int>(x.row_size()), places = (n + numbers_of_sum - 1) / numbers_of_sum * numbers_of_sum;
    if (op_.input_count == most_inputs || op_.numbers + places > most_numbers) return -1;
    const int sums = static_cast<int>((norm.group + numbers_of_sum - 1) / numbers_of_sum);
    norms_[static_cast<std::size_t>(op_.input_count)] = norm;
    op_.inputs[op_.input_count] = {x.f32(),
                                   f32(norm.weight).data,
                                   f32(norm.gate).data,
                                   n,
                                   static_cast<int>(norm.group),
                                   op_.numbers,
                                   norm.eps,
                                   norm.offset,
                                   norm.act,
                                   sums,
                                   sums > 0 ? ((1 << 16) + sums - 1) / sums : 0,
                                   false,
                                   false,
                                   false};
    op_.numbers += places;
    op_.groups |= norm.group > 0 && norm.group < n;
    return op_.input_count++;
  }

  static bool set(Product& product, const Activate& finish) {
    product.end = End::activate;
    product.act = finish.act;
    product.addend = f32(finish.addend).data;
    return true;
  }
  static bool set(Product& product, const ForgetGate& finish) {
    product.end = End::forget_gate;
    product.scale = 1 / finish.normalizer;
    product.clamp_min = finish.clamp_min;
    return true;
  }
  static bool set(Product& product, const DeltaDecay& finish) {
    product.end = End::delta_decay;
    product.A_log = f32(finish.A_log).data;
    product.dt_bias = f32(finish.dt_bias).data;
    return true;
  }
  static bool set(Product& product, const Convolve& finish) {
    product.end = End::convolve;
    product.act = finish.act;
    product.taps = f32(finish.weight).data;
    product.tap_bias = f32(finish.bias).data;
    product.cache = f32(finish.cache).data;
    product.width = static_cast<int>(finish.weight.row_size());
    return product.width <= most_taps;
  }

  OneRow op_{};
  std::vector<Collected> products_;
  std::array<InputNorm, most_inputs> norms_;
  DType type_ = DType::bf16;
};

}  // namespace

bool Products::project(std::span<const Projection> projections, cudaStream_t stream) {
  if (!Levels::supported()) return false;
  OneRowLaunch all;
  for (const Projection& p : projections) {
    check_linear(p.z ? p.z : p.y, p.x, p.weight, p.bias);
    if (!all.add(p)) return false;
  }
  if (!projections.empty()) all.start(levels_, stream);
  return true;
}

bool Products::gated_linear(Tensor y, ConstTensor x, const InputNorm& norm, ConstTensor gate, ConstTensor up, cudaStream_t stream) {
  check_linear(y, x, gate, {});
  check_linear(y, x, up, {});
  OneRowLaunch all;
  if (!Levels::supported() || !all.add_gated(y, x, norm, gate, up)) return false;
  all.start(levels_, stream);
  return true;
}

}  // namespace statescope::cuda
