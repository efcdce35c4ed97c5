// Who sees a forward pass from inside.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/tensor.h"

namespace statescope {

/// Tensors live on the device and only during the call; rows are the tokens of that pass.
class Observer {
 public:
  virtual ~Observer() = default;
  /// The residual stream [T, D] as it enters block `layer`; layer = number of layers: as it leaves the last one.
  virtual void residual(std::int64_t layer, ConstTensor x) = 0;
  /// What goes beside the residual stream [T, parts · D], where the model has such (Companion), once it is known.
  virtual void companion(ConstTensor /*x*/) {}
  virtual void channel(std::int64_t layer, std::string_view name, ConstTensor values) = 0;
  /// As ChannelSink::wants.
  virtual bool wants(std::string_view /*name*/) const { return true; }
  /// As ChannelSink::wants_all.
  virtual bool wants_all() const { return false; }
  /// Whether a layer's tokens may be shown some at a time, in order.
  virtual bool takes_pieces() const { return false; }
};

}  // namespace statescope
