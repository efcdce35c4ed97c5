#include "kernels/cuda/common/graph.h"

#include <type_traits>
#include <utility>

#include "kernels/cuda/common/cuda.h"
#include "kernels/device.h"

namespace statescope::cuda {

Graph::Graph(cudaGraph_t graph) {
  check(cudaGraphGetNodes(graph, nullptr, &nodes_), "a graph");
  check(cudaGraphInstantiate(&executable_, graph, 0), "a graph");
}
Graph::~Graph() { cudaGraphExecDestroy(executable_); }

void Graph::launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "a graph"); }

std::unique_ptr<Graph> Capture::of(const std::function<void()>& work) {
  // Other threads go on allocating.
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "a graph");
  active_ = true;
  try {
    work();
  } catch (...) {
    if (std::exchange(active_, false)) {
      cudaGraph_t rest = nullptr;
      cudaStreamEndCapture(stream_, &rest);
      cudaGraphDestroy(rest);
      cudaGetLastError();
    }
    throw;
  }
  if (!active_) return nullptr;
  try {
    return end();
  } catch (const DeviceError&) {
    work();  // nothing of it has been done
    return nullptr;
  }
}

void Capture::give_up() {
  if (!active_) return;
  const std::unique_ptr<Graph> begun = end();
  check(cudaStreamSynchronize(stream_), "the work before");  // before the graph ends
}

std::unique_ptr<Graph> Capture::end() {
  active_ = false;
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(stream_, &captured), "a graph");
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)> owner(captured, cudaGraphDestroy);
  auto graph = std::make_unique<Graph>(captured);
  graph->launch(stream_);
  return graph;
}

}  // namespace statescope::cuda
