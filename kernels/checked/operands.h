// Operations with other operands: what stands before a device may send each to memory of its own. The compiler finds the fields
// (operands.cpp), so that no operation is listed: a Tensor of an operation, or of what it refers to, is written; a ConstTensor is only
// read.
#pragma once

#include <memory>
#include <vector>

#include "kernels/operation.h"

namespace statescope {

/// What stands for an operand: this leaves each as it is.
class OperandExchange {
 public:
  virtual ~OperandExchange() = default;
  virtual Tensor written(Tensor x) { return x; }
  virtual ConstTensor read(ConstTensor x) { return x; }
  /// Indices, which may lie on the device or the host.
  virtual const std::int32_t* list(const std::int32_t* x) { return x; }
  virtual Workspace& scratch(Workspace& x) { return x; }
};

/// Makes of an operation the same with other operands. What the operation refers to lasts as long as this, and the exchange has to.
class OtherOperands {
 public:
  explicit OtherOperands(OperandExchange& exchange) : exchange_(exchange) {}
  Operation of(const Operation& operation);

 private:
  OperandExchange& exchange_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace statescope
