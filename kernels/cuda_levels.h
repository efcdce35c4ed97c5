// A token's way through a model: products of one row and steps of memories, each a level that takes the results of the one before. They
// are launched one by one, or kept and done as one kernel (levels_hopper.cu), which fetches a level's weights while those before it are
// at work, and hands numbers from level to level by mail (cuda_mail.h). Included by .cu files alone.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cuda_memory_step.h"
#include "kernels/cuda_one_row.h"

namespace statescope::cuda {

struct alignas(16) Level {
  enum class Kind { products, memory } kind;
  union {
    one_row::OneRow products;
    memory_step::Step memory;
  };
  explicit Level(const one_row::OneRow& op) : kind(Kind::products), products(op) {}
  explicit Level(const memory_step::Step& op) : kind(Kind::memory), memory(op) {}
};

/// On the device; both 0 before and after each kernel.
struct Counters {
  unsigned ready;  // announced units that have been made
  unsigned ended;  // blocks that have nothing more to wait for
};

/// Throws DeviceError.
class Levels {
 public:
  Levels();
  ~Levels();
  Levels(const Levels&) = delete;
  Levels& operator=(const Levels&) = delete;

  /// Whether the device of this thread can multiply one row so (compute capability 9.0).
  static bool supported();
  void products(const one_row::OneRow& op, DType weights, cudaStream_t stream);
  void memory(const memory_step::Step& op, bool delta_rule, cudaStream_t stream);

  using Memory = std::shared_ptr<void>;  // on the device
  /// From here on, levels that one kernel can do together wait for `flush`.
  void keep();
  /// Starts what was kept: before anything else is asked of the stream.
  void flush(cudaStream_t stream);
  /// No more is kept, and what has not been started is forgotten. The memory that the kernels started since `keep` use.
  std::vector<Memory> end();

 private:
  /// Neighbouring numbers that one kept level makes: what later ones read of them comes by mail.
  struct Made {
    const float *begin, *end;
    std::int64_t place;  // of the first one among the mail
    bool by_mail, read;
  };
  /// A pointer in a kept level that is still to be set: `offset` bytes into it.
  struct Pointer {
    std::size_t level, offset;
    std::size_t made, first;  // to number `first` of this one's mail
  };
  void keep(const Level& level, cudaStream_t stream);
  bool receive(Level& level, bool made_here, std::vector<Pointer>& pointers) const;
  void send(Level& level);
  void forget();

  Counters* counters_ = nullptr;
  bool keeps_ = false, delta_rule_ = false;
  int rows_ = 0;  // of the states of kept memories that a thread has, at most
  std::vector<Level> kept_;
  std::vector<std::size_t> first_made_;  // of each kept level
  std::vector<Made> made_;
  std::vector<Pointer> inputs_, outputs_;
  std::vector<Memory> started_;
};

/// Launches a memory's step by itself (memory_step.cu).
void start_step(const memory_step::Step& op, bool delta_rule, cudaStream_t stream);

}  // namespace statescope::cuda
