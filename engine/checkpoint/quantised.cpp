#include "engine/checkpoint/quantised.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/packed_numbers.h"
#include "engine/checkpoint/passed_over.h"

namespace statescope {
namespace {

constexpr std::string_view kHelp = "take the original weights, or convert these to BF16 first";

struct NamedEnd {
  std::string_view end, name;
};
/// What a tensor's name gives away where the config says nothing.
constexpr std::array<NamedEnd, 16> kForms{{{".qweight", "GPTQ or AWQ"},
                                           {".qzeros", "GPTQ or AWQ"},
                                           {".g_idx", "GPTQ"},
                                           {".absmax", "bitsandbytes"},
                                           {".SCB", "bitsandbytes"},
                                           {".weight_format", "bitsandbytes"},
                                           {"bitsandbytes__nf4", "bitsandbytes"},
                                           {"bitsandbytes__fp4", "bitsandbytes"},
                                           {".W_q", "hqq"},
                                           {"._data", "quanto"},
                                           {".trellis", "exl3"},
                                           {"_blocks", "MXFP4 in the layout of gpt-oss"},
                                           {".bitmask", "sparse 2:4: compressed-tensors sparse-24-bitmask"},
                                           {".compressed", "sparse 2:4: compressed-tensors sparse-24-bitmask"},
                                           {".q_weight", "exl2"},
                                           {".codes", "aqlm"}}};

bool is_matrix(const RawTensor& tensor) { return tensor.shape.size() == 2; }

std::int64_t pieces(std::int64_t n, std::int64_t piece) { return (n + piece - 1) / piece; }

/// Scales in float32, with what each is the scale of.
struct Scales {
  std::vector<float> values;
  BlockScales layout;  // points to `values`
};

class Taker {
 public:
  Taker(Checkpoint& checkpoint, std::vector<RawTensor> tensors, const Quantisation& said)
      : checkpoint_(checkpoint), path_(checkpoint.path), said_(said), all_(std::move(tensors)) {
    for (RawTensor& tensor : all_) {
      if (!by_name_.emplace(tensor.name, &tensor).second) fail(path_, fmt::format("tensor {} is there twice", in_quotes(tensor.name)));
    }
  }

  void take() {
    drop("no elements", [](const RawTensor& tensor) { return tensor.is_empty(); });
    drop("scales of activations, which are not quantised here,", [](const RawTensor& tensor) { return is_activation_scale(tensor.name); });
    const RawTensor* const evidence = first_quantised();
    if (const std::string name = said_.refused_as(); evidence && !name.empty()) refuse(name, *evidence);
    if (!evidence && !said_.method.empty())
      checkpoint_.notes.push_back(fmt::format("{} says that the weights are quantised ({}), but they are not: read as they are",
                                              said_.place(), one_line(said_.method, 60)));
    for (const auto& [name, tensor] : by_name_) {
      if (!float_type(tensor->dtype) && !used_.contains(name)) take_quantised(*tensor);
    }
    for (const auto& [name, tensor] : by_name_) {
      if (!used_.contains(name)) take_rest(*tensor);
    }
    note();
  }

 private:
  /// Drops what `is_one` says of, with a note.
  template <class IsOne>
  void drop(std::string_view what, IsOne is_one) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : by_name_) {
      if (is_one(*tensor)) names.emplace_back(name);
    }
    for (const std::string& name : names) by_name_.erase(name);
    if (!names.empty()) checkpoint_.notes.push_back(passed_over_note(what, names));
  }

  /// A tensor of another type than weights have, that the forward pass may need; null if there is none.
  const RawTensor* first_quantised() const {
    for (const auto& [name, tensor] : by_name_) {
      if (!float_type(tensor->dtype) && passed_over_as(name).empty()) return tensor;
    }
    return nullptr;
  }

  [[noreturn]] void refuse(std::string_view form, const RawTensor& evidence) const {
    const std::string said = said_.method.empty() ? std::string() : fmt::format(" by its {}", said_.place());
    fail(path_, fmt::format("is quantised{} as {}, which is not read; tensor {} for one; {}", said, form, evidence.description(), kHelp));
  }
  [[noreturn]] void refuse_tensor(const RawTensor& tensor, std::string_view why) const {
    fail(path_, fmt::format("tensor {} {}; {}", tensor.description(), why, kHelp));
  }

  const RawTensor* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  /// X.name beside the matrix X.weight or X.weight_packed; what is found counts as used.
  const RawTensor* beside(const RawTensor& matrix, std::string_view name) {
    const RawTensor* const found = find(matrix.name.substr(0, matrix.name.rfind('.') + 1) + std::string(name));
    if (found) used_.insert(found->name);
    return found;
  }
  const RawTensor& required(const RawTensor& matrix, std::string_view name) {
    const RawTensor* const found = beside(matrix, name);
    if (!found) refuse_tensor(matrix, fmt::format("lacks {} beside it", name));
    return *found;
  }

  // ---- scales ---------------------------------------------------------------------------------------------------------------------------

  std::vector<float> finite(const RawTensor& scale, bool as_exponents = false) const {
    const auto values = numbers_of(scale.dtype, scale.bytes, as_exponents);
    if (!values) refuse_tensor(scale, "is of a type that scales do not have");
    const auto bad = std::ranges::find_if_not(*values, [](float value) { return std::isfinite(value); });
    if (bad != values->end()) refuse_tensor(scale, fmt::format("is {} at number {}", *bad, bad - values->begin()));
    return *values;
  }

  /// One number for all, one for each row, or blocks; the last ones are cut off.
  BlockScales layout_of(const RawTensor& matrix, const RawTensor& scale) const {
    const std::int64_t O = matrix.shape[0], I = matrix.shape[1];
    const std::vector<std::int64_t>& shape = scale.shape;
    if (scale.size() == 1) return {nullptr, O, I, 1};
    if (shape == std::vector{O} || shape == std::vector<std::int64_t>{O, 1}) return {nullptr, 1, I, 1};
    for (const BlockSize& block : said_.blocks) {
      const std::int64_t rows = pieces(O, block.rows), columns = pieces(I, block.columns);
      if (shape == std::vector{rows, columns} || shape == std::vector<std::int64_t>{rows, 1, columns, 1})
        return {nullptr, block.rows, block.columns, columns};
    }
    refuse_tensor(
        scale, fmt::format("does not fit the matrix of [{}, {}]: one number, one for each row or for blocks of {} × {} was expected", O, I,
                           said_.blocks.front().rows, said_.blocks.front().columns));
  }

  Scales scales_of(const RawTensor& matrix, const RawTensor& scale) const {
    Scales scales{finite(scale), layout_of(matrix, scale)};
    scales.layout.values = scales.values.data();
    return scales;
  }

  /// X.weight_scale or X.weight_scale_inv, which mean the same.
  const RawTensor& scale_beside(const RawTensor& matrix) {
    const RawTensor *const plain = beside(matrix, "weight_scale"), *const inverse = beside(matrix, "weight_scale_inv");
    if (plain && inverse) refuse_tensor(matrix, "has both weight_scale and weight_scale_inv beside it");
    if (!plain && !inverse) refuse_tensor(matrix, "lacks its scale, weight_scale or weight_scale_inv");
    return plain ? *plain : *inverse;
  }

  float number_beside(const RawTensor& matrix, std::string_view name) {
    const RawTensor& scale = required(matrix, name);
    if (scale.size() != 1) refuse_tensor(scale, "should be one number");
    return finite(scale).front();
  }

  // ---- matrices -------------------------------------------------------------------------------------------------------------------------

  void take_quantised(const RawTensor& tensor) {
    const bool is_weight = tensor.name.ends_with(".weight") && is_matrix(tensor);
    const bool is_packed = tensor.name.ends_with(".weight_packed") && is_matrix(tensor) && tensor.dtype == "U8";
    if (!passed_over_as(tensor.name).empty() || (!is_weight && !is_packed)) return;
    if (find(tensor.name.substr(0, tensor.name.rfind('.')) + ".pre_quant_scale"))
      refuse(tensor.dtype == "U8" ? "NVFP4 with AWQ's scales of activations" : "FP8 with AWQ's scales of activations", tensor);
    if (tensor.dtype == "F8_E4M3") return take_float8(tensor);
    if (tensor.dtype == "I8" && said_.method == "compressed-tensors") return take_int8(tensor);
    if (is_packed && beside_type(tensor, "weight_scale") == "U8") return take_mxfp4(tensor);
    if (is_packed && find(stem(tensor) + "weight_global_scale"))
      return take_nvfp4(tensor, 1 / number_beside(tensor, "weight_global_scale"));
    if (tensor.dtype == "U8" && find(stem(tensor) + "weight_scale_2")) return take_nvfp4(tensor, number_beside(tensor, "weight_scale_2"));
  }

  static std::string stem(const RawTensor& matrix) { return matrix.name.substr(0, matrix.name.rfind('.') + 1); }
  std::string_view beside_type(const RawTensor& matrix, std::string_view name) const {
    const RawTensor* const found = find(stem(matrix) + std::string(name));
    return found ? std::string_view(found->dtype) : std::string_view();
  }

  void take_float8(const RawTensor& matrix) {
    const RawTensor& scale = scale_beside(matrix);
    const bool of_32 = scale.shape == std::vector{matrix.shape[0], pieces(matrix.shape[1], 32)} && scale.size() > 1;
    if (scale.dtype == "U8" || (scale.dtype == "F8_E8M0" && of_32)) refuse("MXFP8", matrix);
    const auto scales = std::make_shared<Scales>(scales_of(matrix, scale));
    checkpoint_.storage.push_back(scales);
    checkpoint_.tensors.push_back({matrix.name, DType::f8, matrix.shape, matrix.bytes.data(), &scales->layout});
    used_.insert(matrix.name);
    ++float8_;
  }

  /// W = (q − z) · scale
  void take_int8(const RawTensor& matrix) {
    const Scales scales = scales_of(matrix, scale_beside(matrix));
    const RawTensor* const zero = beside(matrix, "weight_zero_point");
    std::vector<float> zeros(scales.values.size());
    if (zero) zeros = finite(*zero);
    if (zeros.size() != scales.values.size()) refuse_tensor(*zero, "has not as many numbers as the scales");
    std::vector<float> wide = *numbers_of(matrix.dtype, matrix.bytes);
    const std::int64_t O = matrix.shape[0], I = matrix.shape[1];
    for (std::int64_t o = 0; o < O; ++o) {
      const std::int64_t first = o / scales.layout.rows * scales.layout.per_row;
      for (std::int64_t i = 0; i < I; ++i) {
        const auto block = static_cast<std::size_t>(first + i / scales.layout.columns);
        float& w = wide[static_cast<std::size_t>(o * I + i)];
        w = (w - zeros[block]) * scales.values[block];
      }
    }
    add_widened(matrix, matrix.name, {O, I}, std::move(wide));
  }

  void take_mxfp4(const RawTensor& packed) {
    const RawTensor& scale = required(packed, "weight_scale");
    const std::int64_t columns = 2 * packed.shape[1];
    if (scale.shape != std::vector{packed.shape[0], pieces(columns, 32)}) {
      const bool six_bits = is_matrix(scale) && packed.shape[1] * 8 == scale.shape[1] * 32 * 6;
      six_bits ? refuse("MXFP6", packed) : refuse_tensor(scale, "does not fit its matrix: one number for 32 columns was expected");
    }
    take_fp4(packed, finite(scale, true), 32, 1);
  }

  void take_nvfp4(const RawTensor& packed, float factor) {
    if (!std::isfinite(factor)) refuse_tensor(packed, "has a global scale of 0 beside it");
    const RawTensor& scale = required(packed, "weight_scale");
    if (scale.dtype != "F8_E4M3" || scale.shape != std::vector{packed.shape[0], pieces(2 * packed.shape[1], 16)})
      refuse_tensor(scale, "does not fit its matrix: one F8_E4M3 for 16 columns was expected");
    take_fp4(packed, finite(scale), 16, factor);
  }

  /// Byte j of a row holds column 2j in its low and column 2j + 1 in its high half: W = e2m1 · scale · factor.
  void take_fp4(const RawTensor& packed, const std::vector<float>& scales, std::int64_t group, float factor) {
    const std::int64_t O = packed.shape[0], I = 2 * packed.shape[1], groups = pieces(I, group);
    std::vector<float> wide(static_cast<std::size_t>(O * I));
    for (std::int64_t at = 0; at < O * I; ++at) {
      const auto byte = std::to_integer<unsigned>(packed.bytes[static_cast<std::size_t>(at / 2)]);
      const float scale = scales[static_cast<std::size_t>(at / I * groups + at % I / group)] * factor;
      wide[static_cast<std::size_t>(at)] = from_e2m1(at % 2 ? byte >> 4 : byte & 15) * scale;
    }
    add_widened(packed, stem(packed) + "weight", {O, I}, std::move(wide));
  }

  void add_widened(const RawTensor& from, std::string name, std::vector<std::int64_t> shape, std::vector<float> values) {
    if (name != from.name && find(name)) refuse_tensor(from, fmt::format("is there beside {} itself", in_quotes(name)));
    const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
    checkpoint_.storage.push_back(kept);
    checkpoint_.tensors.push_back({std::move(name), DType::f32, std::move(shape), reinterpret_cast<const std::byte*>(kept->data())});
    used_.insert(from.name);
    ++widened_;
  }

  // ---- the rest -------------------------------------------------------------------------------------------------------------------------

  void take_rest(const RawTensor& tensor) {
    if (const std::optional<DType> dtype = float_type(tensor.dtype)) return take_float(tensor, *dtype);
    const std::string_view part = passed_over_as(tensor.name);
    if (part.empty()) refuse_unknown(tensor);
    unread_[part].push_back(tensor.name);
  }

  void take_float(const RawTensor& tensor, DType dtype) {
    const auto bytes = static_cast<std::int64_t>(tensor.bytes.size());
    for (const char* scale : {"weight_scale", "weight_scale_inv"}) {
      if (tensor.name.ends_with(".weight") && find(stem(tensor) + scale) && passed_over_as(tensor.name).empty())
        refuse_tensor(tensor, fmt::format("is not quantised, but has {} beside it: it is unclear whether that is multiplied in", scale));
    }
    checkpoint_.tensors.push_back({tensor.name, dtype, tensor.shape, aligned(tensor.bytes.data(), bytes, dtype, checkpoint_.storage)});
  }

  [[noreturn]] void refuse_unknown(const RawTensor& tensor) const {
    const auto known = std::ranges::find_if(kForms, [&](const NamedEnd& form) { return tensor.name.ends_with(form.end); });
    if (known != kForms.end()) refuse(known->name, tensor);
    if (tensor.dtype == "F8_E5M2") refuse("FP8 E5M2", tensor);
    if (tensor.dtype == "F8_E4M3" && tensor.shape.size() == 3) refuse("FP8 with all experts of a layer in one tensor", tensor);
    if (tensor.dtype == "U32") refuse("MLX", tensor);
    if (tensor.name.ends_with(".weight_packed"))
      refuse(tensor.dtype == "I32" ? "compressed-tensors pack-quantized" : "FP4 in an unknown layout", tensor);
    const std::string_view likely = tensor.dtype == "U8"   ? ", perhaps of bitsandbytes, NVFP4 or BitNet"
                                    : tensor.dtype == "I8" ? ", perhaps of bitsandbytes or compressed-tensors"
                                                           : "";
    refuse_tensor(tensor, fmt::format("is of a type that weights do not have, and nothing says how to read it{}", likely));
  }

  void note() {
    for (const auto& [part, names] : unread_) checkpoint_.notes.push_back(passed_over_note(part, names));
    if (float8_ > 0)
      checkpoint_.notes.push_back(
          fmt::format("{} matrices are FP8 (E4M3), widened where they are used; activations are not quantised, as "
                      "runtimes do with differences of about 1e-2",
                      float8_));
    if (widened_ > 0)
      checkpoint_.notes.push_back(fmt::format("{} matrices are quantised ({}) and were widened to float32", widened_,
                                              said_.forms.empty() ? said_.method : one_line(said_.forms.front(), 60)));
  }

  Checkpoint& checkpoint_;
  const std::filesystem::path& path_;
  const Quantisation& said_;
  std::vector<RawTensor> all_;
  std::map<std::string, const RawTensor*, std::less<>> by_name_;
  std::set<std::string, std::less<>> used_;
  std::map<std::string_view, std::vector<std::string>> unread_;
  std::int64_t float8_ = 0, widened_ = 0;
};

}  // namespace

void take_tensors(Checkpoint& checkpoint, std::vector<RawTensor> tensors, const Quantisation& said) {
  Taker(checkpoint, std::move(tensors), said).take();
  sort_by_name(checkpoint.path, checkpoint.tensors);
}

}  // namespace statescope
