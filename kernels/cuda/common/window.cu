// From the device's memory into a buffer of OpenGL on the same device.
#include "kernels/cuda/common/window.h"

#include <cuda_gl_interop.h>

#include <algorithm>
#include <array>
#include <new>

#include "kernels/workspace.h"

namespace statescope::cuda {
namespace {

/// Requests of a window may fail: it has the values from the host as well.
bool done(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();  // forgotten
  return status == cudaSuccess;
}

/// Whether `device`, which becomes this thread's, draws the OpenGL context that is current.
bool draws_window(int device) {
  std::array<int, 16> devices{};
  unsigned count = 0;
  if (!done(cudaSetDevice(device)) || !done(cudaGLGetDevices(&count, devices.data(), devices.size(), cudaGLDeviceListAll))) return false;
  return std::find(devices.begin(), devices.begin() + count, device) != devices.begin() + count;
}

}  // namespace

/// The stream; lasts as long as anything that goes through it.
class WindowRows::CopyStream {
 public:
  explicit CopyStream(int device) : device_(device) { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  ~CopyStream() { cudaStreamDestroy(stream_); }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  int device() const { return device_; }
  cudaStream_t stream() const { return stream_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

/// Written in the order of the computing stream, read and freed in that of the lane: whoever lets go of it, whenever, touches no stream
/// that may be under capture.
class WindowRows::KeptRows final : public DeviceRows {
 public:
  KeptRows(const std::shared_ptr<CopyStream>& copies, ConstTensor rows, cudaStream_t after) : copies_(copies) {
    const std::size_t number = size_of(rows.dtype), width = static_cast<std::size_t>(rows.row_size()) * number;
    const auto height = static_cast<std::size_t>(rows.rows());
    bytes_ = height * width;
    void* memory = nullptr;
    check(cudaMallocAsync(&memory, std::max<std::size_t>(bytes_, 1), after), "rows for a window");
    memory_ = Buffer(memory, [copies](void* p) { cudaFreeAsync(p, copies->stream()); });
    check(cudaMemcpy2DAsync(memory, width, rows.data, static_cast<std::size_t>(rows.stride) * number, width, height,
                            cudaMemcpyDeviceToDevice, after),
          "rows for a window");
    check(cudaEventCreateWithFlags(&written_, cudaEventDisableTiming), "an event");
    check(cudaEventRecord(written_, after), "an event");
  }
  ~KeptRows() override {
    cudaStreamWaitEvent(copies_->stream(), written_);
    cudaEventDestroy(written_);
  }
  KeptRows(const KeptRows&) = delete;
  KeptRows& operator=(const KeptRows&) = delete;

  std::size_t bytes() const override { return bytes_; }
  std::unique_ptr<SharedBuffer> share(unsigned name) const override;
  int device() const { return copies_->device(); }
  cudaStream_t stream() const { return copies_->stream(); }
  /// In the order of `stream`.
  cudaError_t copy_to(void* there) const {
    const cudaError_t status = cudaStreamWaitEvent(stream(), written_);
    return status != cudaSuccess ? status : cudaMemcpyAsync(there, memory_.get(), bytes_, cudaMemcpyDeviceToDevice, stream());
  }

 private:
  std::shared_ptr<CopyStream> copies_;
  std::size_t bytes_ = 0;
  Buffer memory_;
  cudaEvent_t written_ = nullptr;
};

/// A buffer that OpenGL and this device both know.
class WindowRows::Shared final : public SharedBuffer {
 public:
  Shared(int device, cudaGraphicsResource_t resource) : device_(device), resource_(resource) {}
  ~Shared() override { cudaGraphicsUnregisterResource(resource_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  /// CUDA waits for what OpenGL has been asked for when it maps the buffer, and OpenGL for CUDA when it is given back.
  bool take(const DeviceRows& rows) override {
    const auto* kept = dynamic_cast<const KeptRows*>(&rows);
    if (!kept || kept->device() != device_ || !done(cudaSetDevice(device_))) return false;
    if (!done(cudaGraphicsMapResources(1, &resource_, kept->stream()))) return false;
    void* buffer = nullptr;
    std::size_t room = 0;
    const bool copied =
        done(cudaGraphicsResourceGetMappedPointer(&buffer, &room, resource_)) && room >= kept->bytes() && done(kept->copy_to(buffer));
    return done(cudaGraphicsUnmapResources(1, &resource_, kept->stream())) && copied;
  }

 private:
  int device_;
  cudaGraphicsResource_t resource_;
};

std::unique_ptr<SharedBuffer> WindowRows::KeptRows::share(unsigned name) const {
  cudaGraphicsResource_t resource = nullptr;
  if (!draws_window(device())) return nullptr;
  if (!done(cudaGraphicsGLRegisterBuffer(&resource, name, cudaGraphicsRegisterFlagsWriteDiscard))) return nullptr;
  return std::make_unique<Shared>(device(), resource);
}

WindowRows::WindowRows(int device) : copies_(std::make_shared<CopyStream>(device)) {}
WindowRows::~WindowRows() = default;

std::shared_ptr<const DeviceRows> WindowRows::keep(ConstTensor rows, cudaStream_t after) {
  try {
    return std::make_shared<const KeptRows>(copies_, rows, after);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace statescope::cuda
