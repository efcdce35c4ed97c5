#include "kernels/workspace.h"

#include <algorithm>

#include "kernels/backend.h"

namespace statescope {
namespace {

constexpr std::size_t alignment = 64, first_block = 1 << 20;

#if defined(STATESCOPE_POISON) || defined(__SANITIZE_ADDRESS__)
/// Every bit set: NaN in all float types, −1 as an index.
void poison(Backend& backend, Tensor tensor) {
  static thread_local std::vector<unsigned char> ones;
  ones.resize(std::max(ones.size(), static_cast<std::size_t>(tensor.shape.size()) * size_of(tensor.dtype)), 0xFF);
  backend.upload(tensor, ConstTensor(ones.data(), tensor.dtype, tensor.shape));
}
#else
void poison(Backend&, Tensor) {}
#endif

}  // namespace

Tensor Workspace::tensor(Shape shape, DType dtype) {
  const std::size_t bytes = static_cast<std::size_t>(shape.size()) * size_of(dtype);
  const std::size_t taken = (bytes + alignment - 1) / alignment * alignment;
  while (block_ < blocks_.size() && used_ + taken > blocks_[block_].bytes) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const std::size_t size = std::max(taken, blocks_.empty() ? first_block : 2 * blocks_.back().bytes);
    blocks_.push_back({backend_.allocate(size), size});
  }
  Tensor result(static_cast<char*>(blocks_[block_].memory.get()) + used_, dtype, shape);
  used_ += taken;
  poison(backend_, result);
  return result;
}

}  // namespace statescope
