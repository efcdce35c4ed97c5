// Operations asked of a stream, kept as a graph that the device does again. Included by .cu files alone.
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

/// What is asked of one stream while work runs. Nothing of it is done before it is launched.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {}

  /// Runs work, once, and has done what it asked for. The graph of that, or null where work gave up. Throws what work throws, then what it
  /// asked for is not done.
  std::unique_ptr<Graph> of(const std::function<void()>& work);
  /// What comes next cannot be done again in a graph: what was captured so far is done, the rest as it is asked for. Nothing where nothing
  /// is captured.
  void give_up();

 private:
  std::unique_ptr<Graph> end();

  cudaStream_t stream_;
  bool under_way_ = false;
};

}  // namespace statescope::cuda
