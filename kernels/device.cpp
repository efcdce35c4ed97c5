#include "kernels/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "kernels/checked/checked_device.h"
#include "kernels/checked/operands.h"
#include "kernels/cpu/beside.h"
#include "kernels/devices.h"

namespace statescope {
namespace {

/// What the module exports (cuda/backend.cu).
using MakeCudaBackend = Backend* (*)(int index, Precision precision);

/// Never unloaded: its objects may outlive any owner that could be named here.
MakeCudaBackend load_cuda_module() {
  std::error_code error;
  const std::filesystem::path file = beside_program("libstatescope-cuda.so");
  if (!std::filesystem::exists(file, error)) throw DeviceError("cuda: this program was built without its CUDA module");
  void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw DeviceError(std::string("cuda: the CUDA module cannot be loaded: ") + dlerror());
  void* const symbol = dlsym(module, "statescope_make_cuda_backend");
  if (symbol == nullptr) throw DeviceError(std::string("cuda: the CUDA module is damaged: ") + dlerror());
  return reinterpret_cast<MakeCudaBackend>(symbol);
}

/// "cuda" → 0, "cuda:1" → 1; −1: no such name.
int cuda_index(const std::string& device) {
  constexpr std::size_t prefix = 5;  // "cuda:"
  if (device == "cuda") return 0;
  int index = -1;
  const char* const end = device.data() + device.size();
  return device.starts_with("cuda:") && std::from_chars(device.data() + prefix, end, index).ptr == end ? index : -1;
}

/// Of what one device computes another way than the other, in the order of its sums, or with operands rounded to bfloat16.
constexpr double tolerance_of(Precision precision) { return precision == Precision::float32 ? 1e-4 : 2e-2; }

}  // namespace

bool is_device(const std::string& name) { return name == "cpu" || cuda_index(name) >= 0; }

std::optional<CheckedDevices> checked_devices(const std::string& name) {
  constexpr std::string_view check = "check:";
  if (!name.starts_with(check)) return std::nullopt;
  std::vector<std::string> parts(1);
  for (const char c : name.substr(check.size())) c == ',' ? parts.emplace_back() : parts.back() += c;
  if (parts.size() < 2 || parts.size() > 3)
    throw std::invalid_argument("\"" + name + "\" does not name two devices; give check:cpu,cuda or check:cpu,cuda,1e-3");
  for (std::size_t i = 0; i < 2; ++i) {
    if (!is_device(parts[i])) throw std::invalid_argument("there is no device \"" + parts[i] + "\" to check; give cpu, cuda or cuda:1");
  }
  CheckedDevices devices{parts[0], parts[1], {}};
  if (parts.size() == 2) return devices;
  const char* const end = parts[2].data() + parts[2].size();
  const auto [read, error] = std::from_chars(parts[2].data(), end, devices.tolerance.emplace());
  if (error != std::errc() || read != end || !(*devices.tolerance >= 0 && *devices.tolerance <= 1))
    throw std::invalid_argument("\"" + parts[2] + "\" is no tolerance from 0 to 1; give check:cpu,cuda,1e-3");
  return devices;
}

std::unique_ptr<Backend> make_backend(const std::string& device, int threads, Precision precision) {
  if (const std::optional<CheckedDevices> both = checked_devices(device)) {
    const auto open = [&](const std::string& name) { return Devices::Device{name, make_backend(name, threads, precision)}; };
    return std::make_unique<CheckedDevice>(open(both->one), open(both->other), both->tolerance.value_or(tolerance_of(precision)));
  }
  if (device == "cpu") return make_cpu_backend(threads, precision);
  const int index = cuda_index(device);
  if (index < 0) throw std::invalid_argument("there is no device \"" + device + "\"; give cpu, cuda or cuda:1");
  static const MakeCudaBackend make = load_cuda_module();
  return std::unique_ptr<Backend>(make(index, precision));
}

namespace {

/// Keeps the first memory that is written.
struct FirstWritten final : OperandExchange {
  const void* memory = nullptr;
  Tensor written(Tensor x) override {
    if (memory == nullptr) memory = x.data;
    return x;
  }
};

std::size_t bytes_of(ConstTensor x) { return static_cast<std::size_t>(x.shape.size()) * size_of(x.dtype); }

/// A contiguous tensor on a device.
struct Packed {
  Buffer memory;
  Tensor rows;
  Packed(Backend& device, const Shape& shape, DType type)
      : memory(device.allocate(static_cast<std::size_t>(shape.size()) * size_of(type))), rows(memory.get(), type, shape) {}
};

}  // namespace

Devices::Devices(std::vector<Device> devices, OpenNext open_next) : devices_(std::move(devices)), open_next_(std::move(open_next)) {
  const auto on_host = std::ranges::count_if(devices_, [](const Device& device) { return !device.backend->has_own_memory(); });
  if (devices_.empty() || on_host > 1) throw std::invalid_argument("several devices need memory of their own, all but one");
}

bool Devices::open_next() {
  std::optional<Device> next = open_next_ ? open_next_() : std::nullopt;
  if (next) devices_.push_back(std::move(*next));
  return next.has_value();
}

std::size_t Devices::where(const void* memory) const {
  const auto holds = [&](const Device& device) { return device.backend->holds(memory); };
  auto found = std::ranges::find_if(devices_, holds);
  if (found == devices_.end()) found = std::ranges::find_if(devices_, [](const Device& one) { return !one.backend->has_own_memory(); });
  if (found == devices_.end()) throw DeviceError("a device does not know memory of its own any more: start again to use it");
  return static_cast<std::size_t>(found - devices_.begin());
}

std::string Devices::description() const {
  std::string all;
  for (const Device& device : devices_) all += (all.empty() ? "" : "; ") + device.backend->description();
  return all;
}

std::size_t Devices::free_bytes() {
  return std::accumulate(devices_.begin(), devices_.end(), std::size_t{0},
                         [](std::size_t sum, const Device& device) { return sum + device.backend->free_bytes(); });
}

bool Devices::has_own_memory() const {
  return std::ranges::any_of(devices_, [](const Device& device) { return device.backend->has_own_memory(); });
}

bool Devices::holds(const void* memory) const {
  return std::ranges::any_of(devices_, [&](const Device& device) { return device.backend->holds(memory); });
}

std::int64_t Devices::tokens_at_once() const {
  std::int64_t least = at(home).tokens_at_once();
  for (const Device& device : devices_) least = std::min(least, device.backend->tokens_at_once());
  return least;
}

void Devices::run(const Operation& operation) {
  if (const auto* copy = std::get_if<ops::Copy>(&operation); copy && where(copy->dst.data) != where(copy->src.data))
    return cross(copy->dst, copy->src);
  FirstWritten first;
  OtherOperands(first).of(operation);
  at(first.memory == nullptr ? home : where(first.memory)).run(operation);
}

void Devices::cross(Tensor dst, ConstTensor src) {
  Backend &to = of(dst), &from = of(src);
  if (!src.contiguous() || src.dtype != dst.dtype) {
    const Packed packed(from, src.shape, dst.dtype);
    from.copy(packed.rows, src);
    return cross(dst, packed.rows);
  }
  if (!dst.contiguous()) {
    const Packed packed(to, dst.shape, dst.dtype);
    cross(packed.rows, src);
    return to.copy(dst, packed.rows);
  }
  src.shape = dst.shape;
  if (to.receive(dst, src, from)) return;
  if (!from.has_own_memory()) return to.upload(dst, src);
  if (!to.has_own_memory()) return from.download(dst, src);
  const std::unique_ptr<std::byte[]> host = std::make_unique_for_overwrite<std::byte[]>(bytes_of(src));
  const Tensor between(host.get(), src.dtype, src.shape);
  from.download(between, src);
  to.upload(dst, between);
}

}  // namespace statescope
