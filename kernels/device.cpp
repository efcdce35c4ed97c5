#include "kernels/device.h"

#include <dlfcn.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "kernels/beside.h"

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

/// "cuda" → 0, "cuda:1" → 1.
int cuda_index(const std::string& device) {
  constexpr std::size_t prefix = 5;  // "cuda:"
  if (device == "cuda") return 0;
  int index = -1;
  const char* const end = device.data() + device.size();
  if (!device.starts_with("cuda:") || std::from_chars(device.data() + prefix, end, index).ptr != end || index < 0)
    throw std::invalid_argument("there is no device \"" + device + "\"; give cpu, cuda or cuda:1");
  return index;
}

}  // namespace

std::unique_ptr<Backend> make_backend(const std::string& device, int threads, Precision precision) {
  if (device == "cpu") return make_cpu_backend(threads, precision);
  const int index = cuda_index(device);
  static const MakeCudaBackend make = load_cuda_module();
  return std::unique_ptr<Backend>(make(index, precision));
}

}  // namespace statescope
