// Where the values of a program lie while it runs.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/program/run.h"
#include "kernels/program/text.h"

namespace statescope::program {

/// The tensors of a pass's values. One is taken from the workspace when an operation first writes to it.
class Tensors {
 public:
  Tensors(const Program& program, const Pass& pass) : program_(program), pass_(pass), tensors_(program.values.size()) {}

  /// Where `v` is written; absent stays absent.
  Tensor to(Value v) {
    if (!v) return {};
    Tensor& tensor = tensors_[static_cast<std::size_t>(v.index)];
    const ValueInfo& info = program_[v];
    if (tensor) return tensor;
    if (info.of) return tensor = view(to(info.of), info);
    if (v == program_.result) return tensor = pass_.y;
    return tensor = pass_.workspace.tensor(shape(info), type(info));
  }
  ConstTensor from(Value v) const {
    if (!v) return {};
    const ValueInfo& info = program_[v];
    if (const Tensor& made = tensors_[static_cast<std::size_t>(v.index)]) return made;
    if (const auto constant = constants_.find(v.index); constant != constants_.end()) return constant->second;
    if (v == program_.x()) return pass_.x;
    if (!info.of) throw std::logic_error("a program reads what nothing has made");
    return view(from(info.of), info);
  }
  std::int64_t rows(const ValueInfo& info) const { return info.rows == Rows::routed ? routed_rows_ : pass_.tokens; }
  void set_routed_rows(std::int64_t rows) { routed_rows_ = rows; }
  void set(Value v, Tensor tensor) { tensors_[static_cast<std::size_t>(v.index)] = tensor; }
  bool is_made(Value v) const { return tensors_[static_cast<std::size_t>(v.index)] || constants_.contains(v.index); }
  /// One row for all tokens.
  void set_constant(Value v, ConstTensor row) { constants_[v.index] = {row.data, row.dtype, shape(program_[v]), 0}; }
  DType type(const ValueInfo& info) const {
    if (info.numbers == ValueType::indices) return DType::i32;
    return info.numbers == ValueType::exact ? DType::f32 : pass_.backend.activation_type(pass_.tokens);
  }

  /// What lies in memory that `op` has written; empty: nothing that has a name.
  std::string name_of(const Operation& op, const void* memory) const {
    for (const Value v : results(op)) {
      if (is_made(v) && from(v).data == memory) return name_in(program_, v);
    }
    if (memory == pass_.residual.data) return "residual stream";
    for (std::size_t i = 0; i < pass_.memory.size(); ++i) {
      if (memory == pass_.memory[i].data) return "S" + std::to_string(i);
    }
    for (std::size_t i = 0; i < pass_.conv_caches.size(); ++i) {
      if (memory == pass_.conv_caches[i].data) return "convolution cache " + std::to_string(i);
    }
    const auto holds = [memory](ConstTensor all) {
      const auto *begin = static_cast<const char*>(all.data), *at = static_cast<const char*>(memory);
      return begin <= at && at < begin + all.shape.size() * static_cast<std::int64_t>(size_of(all.dtype));
    };
    if (pass_.kv && holds(pass_.kv->k)) return "key cache";
    if (pass_.kv && holds(pass_.kv->v)) return "value cache";
    return {};
  }

 private:
  Shape shape(const ValueInfo& info) const {
    if (info.rows == Rows::slots) return info.axes;
    Shape all{rows(info)};
    for (int axis = 0; axis < info.axes.rank(); ++axis) all.push_back(info.axes[axis]);
    return all;
  }
  template <class Any>
  static Any view(Any whole, const ValueInfo& info) {
    const Shape& axes = info.axes;
    switch (axes.rank()) {
      case 1:
        return whole.columns(info.begin, {axes[0]});
      case 2:
        return whole.columns(info.begin, {axes[0], axes[1]});
      default:
        return whole.columns(info.begin, {axes[0], axes[1], axes[2]});
    }
  }

  const Program& program_;
  const Pass& pass_;
  std::vector<Tensor> tensors_;
  std::map<std::int32_t, ConstTensor> constants_;
  std::int64_t routed_rows_ = 0;
};

}  // namespace statescope::program
