// The CUDA backend as the module exports it, and the repetition of a token's step.
#include "kernels/cuda/backend.h"

namespace statescope {
namespace cuda {

/// The first run allocates scratch, the second one is captured, and from then on the graph is launched.
class CudaBackend::Repetition final : public Repeated {
 public:
  explicit Repetition(CudaBackend& backend) : backend_(backend) {}

  void run(const std::function<void()>& work) override {
    backend_.use();
    if (graph_) return launch_again();
    if (std::exchange(times_, times_ + 1) != 1) return work();
    backend_.queue().flush();
    backend_.queue().take_captured();  // what other captures left
    try {
      graph_ = backend_.capture_.of([&] {
        work();
        backend_.queue().flush();
      });
    } catch (...) {
      backend_.queue().drop();
      throw;
    }
    launches_ = backend_.queue().take_captured();
  }

 private:
  void launch_again() const {
    const bool is_one_launch = graph_->nodes() == 1 && launches_.size() == 1;
    is_one_launch ? backend_.queue().repeat(launches_[0]) : graph_->launch(backend_.stream());
  }

  CudaBackend& backend_;
  int times_ = 0;                                // runs of work so far
  std::vector<DecodeQueue::Captured> launches_;  // of the graph
  std::unique_ptr<Graph> graph_;
};

bool CudaBackend::holds(const void* memory) const {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, memory), "where memory lies");
  return attributes.type == cudaMemoryTypeDevice && attributes.device == index_;
}

bool CudaBackend::receive(Tensor dst, ConstTensor src, Backend& from) {
  auto* const other = dynamic_cast<CudaBackend*>(&from);
  if (other == nullptr) return false;
  require_fit(dst, src);
  if (bytes_of(src) == 0) return true;
  other->give_up_capture();
  give_up_capture();
  crossing_.copy(dst.data, stream(), other->crossing_, src.data, other->stream(), bytes_of(src));
  return true;
}

std::unique_ptr<Repeated> CudaBackend::repeated() { return std::make_unique<Repetition>(*this); }

}  // namespace cuda

extern "C" Backend* statescope_make_cuda_backend(int index, Precision precision) { return new cuda::CudaBackend(index, precision); }

}  // namespace statescope
