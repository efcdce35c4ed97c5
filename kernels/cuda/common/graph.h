// Captures the work of a stream as a CUDA graph that can be launched again. Included by .cu files alone.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace statescope::cuda {

/// Throws DeviceError.
class Graph {
 public:
  explicit Graph(cudaGraph_t graph);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const;
  std::size_t nodes() const { return nodes_; }

 private:
  cudaGraphExec_t executable_ = nullptr;
  std::size_t nodes_ = 0;
};

/// Captures what one stream is asked for. Nothing of it runs before the graph is launched.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {}

  /// Runs work once, captured, and launches the graph. Returns it, or null where work called give_up. Throws what work throws; then nothing
  /// of it has run.
  std::unique_ptr<Graph> of(const std::function<void()>& work);
  /// Work that follows cannot be part of a graph: what was captured so far is launched, the rest runs as it is asked for. No effect outside
  /// a capture.
  void give_up();

 private:
  std::unique_ptr<Graph> end();

  cudaStream_t stream_;
  bool active_ = false;
};

}  // namespace statescope::cuda
