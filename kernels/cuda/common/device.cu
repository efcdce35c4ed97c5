// Errors in one line, the choice of the device, limits of shared memory (cuda.h).
#include "kernels/cuda/common/device.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "kernels/cuda/common/cuda.h"

namespace statescope::cuda {
namespace {

constexpr int hopper = 9;  // compute capability, its first number

/// A kernel went wrong in a way after which nothing works on the device any more, until the program is started again.
bool is_lost(cudaError_t status) {
  return status == cudaErrorLaunchFailure || status == cudaErrorIllegalAddress || status == cudaErrorIllegalInstruction ||
         status == cudaErrorMisalignedAddress || status == cudaErrorHardwareStackError || status == cudaErrorECCUncorrectable ||
         status == cudaErrorLaunchTimeout || status == cudaErrorDevicesUnavailable;
}

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "the device");
  return device;
}

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "the device's properties");
  return properties;
}

void require_age(int index) {
  const cudaDeviceProp properties = properties_of(index);
  constexpr int oldest = 8;  // Ampere: the architectures that CMakeLists.txt names
  if (properties.major < oldest)
    throw DeviceError(std::string("cuda: ") + properties.name + " is too old (compute capability " + std::to_string(properties.major) +
                      "." + std::to_string(properties.minor) + ", at least 8.0 is needed)");
}

}  // namespace

void check(cudaError_t status, const char* what, std::source_location where) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // forgotten, unless the device is lost: then every later call fails as well
  if (status == cudaErrorMemoryAllocation) throw std::bad_alloc();
  const std::string_view file = where.file_name();
  throw DeviceError(std::string(is_lost(status) ? "cuda: the device is lost, start again to use it: " : "cuda: ") + what + ": " +
                    cudaGetErrorString(status) + " (" + std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(where.line()) +
                    ")");
}

void allow_shared_memory(const char* name, const void* kernel, std::size_t bytes) {
  constexpr std::size_t always_there = 48 << 10;
  if (bytes <= always_there) return;
  // Once a thread: kernels of a token's step are too short for a call before each of them. The limit is raised as far as it goes, so what
  // one thread has allowed holds for all others.
  thread_local std::set<std::pair<int, const void*>> allowed;
  const int device = current_device();
  if (allowed.contains({device, kernel})) return;
  int most = 0;
  cudaFuncAttributes own{};
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), name);
  check(cudaFuncGetAttributes(&own, kernel), name);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - static_cast<int>(own.sharedSizeBytes)), name);
  allowed.insert({device, kernel});
}

bool can_overlap() {
  // A kernel that was compiled for older devices alone does not wait for those before it.
  constexpr std::array compiled_for{__CUDA_ARCH_LIST__};  // 100 times the compute capability
  return attribute_of_device(cudaDevAttrComputeCapabilityMajor) >= hopper && *std::ranges::max_element(compiled_for) >= 100 * hopper;
}
bool is_hopper() { return attribute_of_device(cudaDevAttrComputeCapabilityMajor) == hopper; }

std::string described(int index, Precision precision) {
  const cudaDeviceProp properties = properties_of(index);
  constexpr double gigabyte = 1e9;
  const auto memory = static_cast<int>(static_cast<double>(properties.totalGlobalMem) / gigabyte + 0.5);
  return std::string("CUDA device ") + std::to_string(index) + ", " + properties.name + ", " + std::to_string(memory) + " GB, " +
         (precision == Precision::bfloat16 ? "bfloat16 products" : "float32");
}

void choose_device(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
    throw DeviceError(driver == 0 ? std::string("cuda: there is no NVIDIA driver here")
                                  : "cuda: the NVIDIA driver is too old (it knows CUDA " + version(driver) + ", " + version(runtime) +
                                        " is needed)");
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) throw DeviceError("cuda: there is no NVIDIA GPU here");
  check(status, "looking for devices");
  if (index >= count) throw DeviceError("cuda: there is no device " + std::to_string(index) + ", only 0 to " + std::to_string(count - 1));
  require_age(index);
  check(cudaSetDevice(index), "the device");
  // Freed memory stays in the pool: the next forward pass allocates the same again.
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, index), "the memory pool");
  std::uint64_t threshold = std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), "the memory pool");
}

}  // namespace statescope::cuda
