// Copies to the host beside the compute stream: over the bus into pinned memory, from there to where they are wanted.
#include "kernels/cuda/common/download.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/common/host_copy.h"

namespace statescope::cuda {
namespace {

struct Pinned {
  char* memory = nullptr;  // null: there was none
  std::size_t bytes = 0;
};

}  // namespace

/// The stream, and pinned memory that no copy uses just now.
class Downloads::CopyStream {
 public:
  CopyStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  ~CopyStream() {
    for (const Pinned& pinned : idle_) cudaFreeHost(pinned.memory);
    cudaStreamDestroy(stream_);
  }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// The smallest idle buffer of at least so many bytes; too small ones are freed to make room.
  Pinned take(std::size_t bytes) {
    const auto found = std::ranges::lower_bound(idle_, bytes, {}, &Pinned::bytes);
    if (found != idle_.end()) {
      const Pinned pinned = *found;
      idle_.erase(found);
      return pinned;
    }
    if (!idle_.empty()) {
      cudaFreeHost(idle_.back().memory);
      idle_.pop_back();
    }
    Pinned pinned{nullptr, bytes};
    if (cudaMallocHost(&pinned.memory, bytes) == cudaSuccess) return pinned;
    cudaGetLastError();  // forgotten: the copy goes without
    return {};
  }
  void give_back(Pinned pinned) {
    if (pinned.memory) idle_.insert(std::ranges::upper_bound(idle_, pinned.bytes, {}, &Pinned::bytes), pinned);
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<Pinned> idle_;  // by rising size
};

class Downloads::DownloadInFlight final : public Download {
 public:
  DownloadInFlight(std::shared_ptr<CopyStream> copies, void* host, const void* device, std::size_t bytes, cudaStream_t after)
      : copies_(std::move(copies)), host_(static_cast<char*>(host)), bytes_(bytes), pinned_(copies_->take(bytes)) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event");
    check(cudaEventRecord(event_, after), "an event");
    check(cudaStreamWaitEvent(copies_->stream(), event_), "an event");
    check(cudaMemcpyAsync(pinned_.memory ? pinned_.memory : host_, device, bytes, cudaMemcpyDeviceToHost, copies_->stream()),
          "a copy to the host");
    check(cudaEventRecord(event_, copies_->stream()), "an event");
  }
  ~DownloadInFlight() override {
    cudaEventSynchronize(event_);
    cudaEventDestroy(event_);
    copies_->give_back(pinned_);
  }
  DownloadInFlight(const DownloadInFlight&) = delete;
  DownloadInFlight& operator=(const DownloadInFlight&) = delete;

  void wait() override {
    check(cudaEventSynchronize(event_), "a copy to the host");
    if (pinned_.memory) copy_in_pieces(host_, pinned_.memory, bytes_);
    copies_->give_back(std::exchange(pinned_, {}));
  }

 private:
  std::shared_ptr<CopyStream> copies_;
  char* host_;
  std::size_t bytes_;
  Pinned pinned_;
  cudaEvent_t event_ = nullptr;
};

Downloads::Downloads() : copies_(std::make_shared<CopyStream>()) {}
Downloads::~Downloads() = default;

std::unique_ptr<Download> Downloads::begin(void* host, const void* device, std::size_t bytes, cudaStream_t after) {
  return std::make_unique<DownloadInFlight>(copies_, host, device, bytes, after);
}

}  // namespace statescope::cuda
