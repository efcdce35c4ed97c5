// Scratch memory of a forward pass: handed out from one growing store, taken back all at once.
#pragma once

#include <memory>
#include <vector>

#include "kernels/tensor.h"

namespace statescope {

class Backend;

/// Memory on a device, freed with its owner.
using Buffer = std::shared_ptr<void>;

/// Tensors taken from a workspace live until the mark that was set before them is released. The first pass of a size allocates;
/// later ones of the same or a smaller size find everything in place.
class Workspace {
 public:
  explicit Workspace(Backend& backend) : backend_(backend) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Uninitialised memory, 64-byte aligned, contiguous.
  Tensor tensor(Shape shape, DType dtype = DType::f32);

  /// Releases, when it ends, what was taken since it began.
  class Mark {
   public:
    explicit Mark(Workspace& workspace) : workspace_(workspace), block_(workspace.block_), used_(workspace.used_) {}
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    ~Mark() {
      workspace_.block_ = block_;
      workspace_.used_ = used_;
    }

   private:
    Workspace& workspace_;
    std::size_t block_, used_;
  };

 private:
  struct Block {
    Buffer memory;
    std::size_t bytes;
  };
  Backend& backend_;
  std::vector<Block> blocks_;
  std::size_t block_ = 0;  // the block that is being filled
  std::size_t used_ = 0;   // bytes of it
};

}  // namespace statescope
