// Runs recorded operations on one row (step_program.h) with one kernel.
#pragma once

#include <unordered_map>

#include "kernels/cuda.h"
#include "kernels/step_program.h"

namespace statescope::cuda {

/// Programs of one stream. Those that were run before are still on the device: a token like the one before it costs one launch.
class StepMachine {
 public:
  /// Of the current device.
  explicit StepMachine(cudaStream_t stream);
  ~StepMachine();
  StepMachine(const StepMachine&) = delete;
  StepMachine& operator=(const StepMachine&) = delete;

  /// Whether the device can run programs; before Hopper it cannot.
  bool available() const { return blocks_ > 0; }
  void run(const StepTrace& trace);

 private:
  struct Program {
    std::vector<StepInstruction> calls;
    char* memory = nullptr;                     // the code, and behind it:
    std::size_t levels_at = 0, streams_at = 0;  // bytes
    int levels = 0, streams = 0;
    unsigned waits = 0;
  };
  const Program& program(std::span<const StepInstruction> calls);
  Program uploaded(std::span<const StepInstruction> calls);
  void forget();

  cudaStream_t stream_;
  int blocks_ = 0;
  unsigned* arrivals_ = nullptr;  // of blocks where all wait for each other
  unsigned waited_ = 0;           // how often they have
  std::unordered_map<std::uint64_t, Program> programs_;
};

}  // namespace statescope::cuda
