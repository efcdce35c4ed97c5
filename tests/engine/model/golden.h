// The reference cases of tests/golden/models: weights, inputs and everything the reference implementation computed for them.
#pragma once

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/model/model.h"
#include "tests/source.h"

namespace statescope::test {

inline std::filesystem::path golden_root() { return from_source("tests/golden/models"); }

inline std::vector<std::string> golden_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_root())) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// ||a − b|| / ||b||; NaN if any number is, infinite if they are not equally many.
inline double relative_error(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

inline std::span<const float> floats(const StoredTensor& tensor) {
  return {reinterpret_cast<const float*>(tensor.data), static_cast<std::size_t>(tensor.size())};
}

/// Of a contiguous tensor on the backend's device.
template <class Number = float>
std::vector<Number> host_copy(Backend& backend, ConstTensor tensor) {
  std::vector<Number> values(static_cast<std::size_t>(tensor.shape.size()));
  backend.download(Tensor(values.data(), tensor.dtype, tensor.shape), tensor);
  return values;
}

/// Keeps everything that a run shows, all passes one after another.
class Recording final : public Observer {
 public:
  explicit Recording(Backend& backend) : backend_(backend) {}
  void residual(std::int64_t layer, ConstTensor x) override { append(floats_[{layer, "residual"}], host_copy(backend_, contiguous(x))); }
  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override {
    if (values.dtype == DType::i32) {
      append(integers_[{layer, std::string(name)}], host_copy<std::int32_t>(backend_, contiguous(values)));
    } else {
      append(floats_[{layer, std::string(name)}], host_copy(backend_, contiguous(values)));
    }
  }
  bool wants_all() const override { return true; }
  const std::vector<float>& floats(std::int64_t layer, const std::string& name) { return floats_[{layer, name}]; }
  const std::vector<std::int32_t>& integers(std::int64_t layer, const std::string& name) { return integers_[{layer, name}]; }

 private:
  template <class Number>
  static void append(std::vector<Number>& all, const std::vector<Number>& rows) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  ConstTensor contiguous(ConstTensor x) {
    if (x.contiguous()) return x;
    scratch_ = backend_.allocate(static_cast<std::size_t>(x.shape.size()) * size_of(x.dtype));
    Tensor copy(scratch_.get(), x.dtype, x.shape);
    backend_.copy(copy, x);
    return copy;
  }
  Backend& backend_;
  Buffer scratch_;
  std::map<std::pair<std::int64_t, std::string>, std::vector<float>> floats_;
  std::map<std::pair<std::int64_t, std::string>, std::vector<std::int32_t>> integers_;
};

}  // namespace statescope::test
