// What `statescope bench` measures with: a clock that waits for the device, and what the device could do at best.
#pragma once

#include <functional>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "engine/device.h"

namespace statescope {

/// Memory of one measurement; it ends with it.
class Operands {
 public:
  explicit Operands(Backend& backend) : workspace(backend), backend_(backend) {}

  Tensor empty(Shape shape, DType dtype = DType::f32);
  Tensor uniform(Shape shape, float low = -1, float high = 1);
  /// As a model's pass over T tokens keeps its numbers (Backend::activation_type).
  Tensor activation(Shape shape, std::int64_t T);
  Tensor empty_activation(Shape shape, std::int64_t T) { return empty(shape, backend_.activation_type(T)); }
  /// [out, in], as the device keeps it.
  ConstTensor weight(std::int64_t out, std::int64_t in, DType dtype);
  std::span<const std::int32_t> indices(std::vector<std::int32_t> numbers) { return indices_.emplace_back(std::move(numbers)); }

  Workspace workspace;

 private:
  Backend& backend_;
  std::list<Buffer> buffers_;
  std::list<std::vector<char>> host_;  // weights that a CPU reads where they are
  std::list<std::vector<std::int32_t>> indices_;
};

/// Calls of one operation, made ready: run it as often as you like.
using Work = std::function<void()>;

class Bench {
 public:
  /// Throws DeviceError.
  Bench(const DeviceChoice& device, std::string only);

  const std::shared_ptr<Backend>& backend() const { return backend_; }
  bool on_device() const { return on_device_; }
  bool wants(std::string_view name) const { return name.find(only_) != name.npos; }

  /// Of one call: the median of at least 20 batches, each of so many calls that it takes a few milliseconds, with one wait at its end.
  double seconds(const Work& work) const;
  /// The same of each of so many batches, ascending.
  std::vector<double> repeats(const Work& work, int count) const;

  /// Finds the limits and prints them.
  void measure_limits();
  /// Seconds that so many bytes and operations take at best.
  double limit(double bytes, double flops) const;
  /// "limit 0.012 ms (memory): 83 %"
  std::string share(double seconds, double bytes, double flops) const;

  /// Measures one operation, if it is wanted, and prints its line.
  void row(const std::string& name, double bytes, double flops, const std::function<Work(Operands&)>& prepare) const;

 private:
  void wait() const;

  std::shared_ptr<Backend> backend_;
  Precision precision_;
  bool on_device_ = false;
  std::string only_;
  Buffer number_;                    // read back to wait for what was asked for before it
  double bandwidth_ = 0, rate_ = 0;  // bytes and floating-point operations a second
};

/// Every operation of kernels/, on sequences of so many tokens.
void bench_kernels(const Bench& bench, std::int64_t tokens);

}  // namespace statescope
