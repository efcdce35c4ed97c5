// The queue of decode_queue.h: operations are recorded, prepared (plan.h) and launched as one persistent kernel (persistent_kernel.h).
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "kernels/cuda/common/decode_queue.h"
#include "kernels/cuda/decode/persistent_kernel.h"
#include "kernels/cuda/decode/plan.h"

namespace statescope::cuda {
namespace {

using namespace decode;

Kernel kernel_of(const StepVariant& variant, int normed_vectors) {
  const auto of_rule = variant.delta_rule ? variant.sparse ? sparse_delta_rule_kernel : delta_rule_kernel
                       : variant.sparse   ? sparse_outer_product_kernel
                                          : outer_product_kernel;
  return of_rule(variant.rows_per_thread, normed_vectors);
}

bool has_long_normed_row(const Operation& operation) {
  const Input& input = operation.gemv.input;
  return operation.kind == OperationKind::gemv && input.group > 0 && input.n > threads * vector_values * few_normed_vectors;
}

/// Static shared memory of the kernel, the same for all variants.
int declared_shared_memory() {
  static const int bytes = [] {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel_of({}, few_normed_vectors)), "the decode kernel");
    return static_cast<int>(attributes.sharedSizeBytes);
  }();
  return bytes;
}

/// Dynamic shared memory of a launch: the most that any of its operations needs.
struct SharedMemoryNeed {
  std::size_t x_bytes = 0;
  int stage_bytes = l2_line_bytes;

  static SharedMemoryNeed of(const TiledGemv& gemv) {
    int dependent_bytes = 0;
    for (int n = gemv.independent_products(); n < gemv.product_count; ++n) {
      dependent_bytes += most_per_block(gemv.products[n].out) * static_cast<int>(gemv.products[n].weight_bytes);
    }
    const int rows = stage_rows * gemv.slice_bytes(std::min(gemv.k_blocks, gemv.k_blocks_per_slice)) + row_padding;
    return {static_cast<std::size_t>(rounded_up(split_terms * gemv.term_bytes + term_padding, l2_line_bytes)),
            rounded_up(std::max(rows, dependent_bytes), l2_line_bytes)};
  }
  SharedMemoryNeed with(const SharedMemoryNeed& other) const {
    return {std::max(x_bytes, other.x_bytes), std::max(stage_bytes, other.stage_bytes)};
  }
  std::size_t besides_pipeline() const {
    return std::max(offsetof(BlockMemory, gemv) + offsetof(GemvMemory, x) + x_bytes, sizeof(BlockMemory));
  }
  /// None where fewer than `least_stages` stages fit.
  std::optional<PipelineSize> pipeline() const {
    const int most = attribute_of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    const int left = most - declared_shared_memory() - static_cast<int>(besides_pipeline());
    const int stages = std::min(left / stage_bytes, most_stages);
    return stages < least_stages ? std::nullopt : std::optional(PipelineSize{stages, stage_bytes});
  }
};

/// Where the mailbox begins in the memory of a launch, after the buffers' description and the operations.
std::size_t mailbox_offset(std::size_t operations) {
  return rounded_up(sizeof(MailboxBuffers) + operations * sizeof(Operation), alignof(MailboxBuffers));
}

/// Uploads the description of the mailbox and the operations, and clears both buffers.
void upload(std::vector<Operation>& operations, void* to, std::size_t mailbox_bytes, cudaStream_t stream) {
  char* const mailbox = static_cast<char*>(to) + mailbox_offset(operations.size());
  assign_mailbox(operations, reinterpret_cast<float*>(mailbox));
  const MailboxBuffers buffers{0, 0, mailbox, static_cast<unsigned>(mailbox_bytes)};
  std::vector<char> bytes(sizeof buffers + operations.size() * sizeof(Operation));
  std::memcpy(bytes.data(), &buffers, sizeof buffers);
  std::memcpy(bytes.data() + sizeof buffers, operations.data(), operations.size() * sizeof(Operation));
  // Pageable memory: the copy has read it before the call returns.
  check(cudaMemcpyAsync(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream), "the decode kernel");
  check(cudaMemsetAsync(mailbox, 0xFF, 2 * mailbox_bytes, stream), "the decode kernel");
}

/// Queues of this process, by device; those of the last counter are of all devices from there on.
std::array<std::atomic<int>, 64> queue_counts{};
std::atomic<int>& queue_count(int device) { return queue_counts[std::min(static_cast<std::size_t>(device), queue_counts.size() - 1)]; }

/// Blocks of a launch wait for one another, so all of them must be resident. Launches of a single queue are: each waits behind the one
/// before. Of two queues, perhaps of two processes that share the device, each could have some of its blocks resident. Launches are
/// cooperative then, which never overlap.
bool overlap_is_safe() {
  static const bool shared = attribute_of_device(cudaDevAttrMpsEnabled) != 0;
  int device = 0;
  check(cudaGetDevice(&device), "the device");
  return queue_count(device) == 1 && !shared;
}

/// A launch of operations that were uploaded, or of a single one that needs no mailbox: `uploaded` is null then.
struct Launch {
  void* uploaded;
  int operations;
  SharedMemoryNeed shared_memory;
  StepVariant variant;
  int normed_vectors;

  /// `overlap`: it may start while the kernels before it run, if they have not written any of its weights.
  void start(const Operation& one, cudaStream_t stream, Overlap overlap, const EmbeddedRow& row = {}) const {
    const PipelineSize pipeline = shared_memory.pipeline().value();
    const std::size_t shared = static_cast<std::size_t>(pipeline.bytes()) + shared_memory.besides_pipeline();
    const Kernel kernel = kernel_of(variant, normed_vectors);
    allow_shared_memory("the decode kernel", reinterpret_cast<const void*>(kernel),
                        static_cast<std::size_t>(declared_shared_memory()) + shared);
    cudaLaunchAttribute attribute{};
    if (overlap == Overlap::with_kernels_before && overlap_is_safe()) {
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
    } else {
      attribute.id = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    }
    cudaLaunchConfig_t config{};
    config.gridDim = multiprocessors();
    config.blockDim = block_threads;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    auto* const buffers = static_cast<MailboxBuffers*>(uploaded);
    const auto* const all = uploaded == nullptr ? nullptr : reinterpret_cast<const Operation*>(buffers + 1);
    check(cudaLaunchKernelEx(&config, kernel, all, operations, buffers, pipeline, row, one), "the decode kernel");
  }
};

/// While this lives, what the thread asks of the device is not captured into a graph.
class OutsideOfCapture {
 public:
  OutsideOfCapture() { check(cudaThreadExchangeStreamCaptureMode(&mode_), "a graph"); }
  ~OutsideOfCapture() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  OutsideOfCapture(const OutsideOfCapture&) = delete;
  OutsideOfCapture& operator=(const OutsideOfCapture&) = delete;
  /// A stream of its own.
  cudaStream_t stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    return stream_;
  }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

struct DecodeQueue::Recorded {
  int device = 0;
  std::vector<Operation> operations;
  Gemv last;                           // the last operation, where it is a GEMV
  MailboxMap written;                  // what they write
  SharedMemoryNeed shared_memory;      // of all of them
  std::optional<StepVariant> variant;  // of their steps
  EmbeddedRow row;                     // to be embedded before what is recorded next
  CompactWeights compact;
  std::exception_ptr failure;  // of a launch in free(), which cannot throw
  std::mutex mutex;            // any thread may free a buffer

  /// Whether the operation reads what an earlier one writes and does not publish, like a product's z.
  bool reads_unpublished(const Operation& operation) const {
    bool reads = false;
    for_each_read(operation, [&](const float* p) { reads |= written.is_unpublished(p); });
    return reads;
  }
  std::vector<Operation> clear() {
    written = {};
    shared_memory = {};
    variant = {};
    return std::exchange(operations, {});
  }
  /// The same GEMV with compact weights, if all weights of its input row can be compact.
  Gemv compacted(const Gemv& op, int k_blocks_per_slice, cudaStream_t stream) {
    Gemv own = op;
    for (Product& p : std::span(own.products, static_cast<std::size_t>(own.product_count))) {
      if (p.intermediate != nullptr) continue;
      for (const char** weight : {&p.weight, &p.up}) {
        if (*weight == nullptr) continue;
        *weight = compact.of({*weight, p.weight_bytes, p.out, p.in, k_blocks_per_slice}, stream);
        if (*weight == nullptr) return op;
      }
    }
    own.compact = true;
    return own;
  }
  void push(const Operation& operation) {
    operations.push_back(operation);
    for_each_write(operation, [&](float* p, int count, int n) { written.add(p, count, n < 0 ? nullptr : p); });
  }
};

DecodeQueue::DecodeQueue() : recorded_(std::make_unique<Recorded>()) {
  check(cudaGetDevice(&recorded_->device), "the device");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  ++queue_count(recorded_->device);
}
DecodeQueue::~DecodeQueue() {
  cudaStreamDestroy(stream_);
  --queue_count(recorded_->device);
}

void DecodeQueue::flush() {
  const std::lock_guard lock(recorded_->mutex);
  launch();
}
cudaStream_t DecodeQueue::stream() {
  flush();
  return stream_;
}
void DecodeQueue::drop() {
  const std::lock_guard lock(recorded_->mutex);
  recorded_->clear();
  recorded_->row = {};
}
std::vector<DecodeQueue::Captured> DecodeQueue::take_captured() { return std::exchange(captured_, {}); }

void DecodeQueue::embed(const EmbeddedRow& row) {
  const std::lock_guard lock(recorded_->mutex);
  launch();
  recorded_->row = row;
}
void DecodeQueue::repeat(const Captured& again) {
  const std::lock_guard lock(recorded_->mutex);
  const EmbeddedRow row = std::exchange(recorded_->row, {});
  launch();
  again(row);
}

bool DecodeQueue::add(const Gemv& requested, DType type) {
  Operation operation{.kind = OperationKind::gemv, .gemv = {}, .step = {}, .mailbox = {}, .mailbox_activation = {}};
  const auto all = [](const Product&) { return true; };
  if (type != DType::bf16 || !tile(operation.gemv, requested, all) || !SharedMemoryNeed::of(operation.gemv).pipeline()) return false;
  const std::lock_guard lock(recorded_->mutex);
  launch_embedding();
  const Gemv op = recorded_->compacted(requested, operation.gemv.k_blocks_per_slice, stream_);
  if (op.compact) tile(operation.gemv = {}, op, all);
  const SharedMemoryNeed shared_memory = SharedMemoryNeed::of(operation.gemv);
  const bool fits = recorded_->operations.size() < most_operations && recorded_->shared_memory.with(shared_memory).pipeline();
  if (!fits || recorded_->reads_unpublished(operation)) launch();
  recorded_->shared_memory = recorded_->shared_memory.with(shared_memory);
  recorded_->push(operation);
  recorded_->last = op;
  return true;
}
bool DecodeQueue::add(const Step& step, bool delta_rule) {
  const std::lock_guard lock(recorded_->mutex);
  const Step concurrent = with_concurrent_tasks(step);
  const StepVariant variant{delta_rule, concurrent.is_sparse(), concurrent.rows_per_thread()};
  Operation operation{.kind = OperationKind::memory_step, .gemv = {}, .step = concurrent, .mailbox = {}, .mailbox_activation = {}};
  if (recorded_->operations.empty() || recorded_->operations.size() == most_operations || recorded_->reads_unpublished(operation))
    return false;
  if (recorded_->variant.value_or(variant) != variant) return false;
  recorded_->variant = variant;
  if (Operation& before = recorded_->operations.back(); before.kind == OperationKind::gemv)
    let_step_start_early(operation, before, recorded_->last);
  recorded_->push(operation);
  return true;
}

void DecodeQueue::free(void* memory) noexcept {
  const std::lock_guard lock(recorded_->mutex);
  try {
    launch();
  } catch (...) {
    recorded_->failure = std::current_exception();
  }
  recorded_->compact.release(memory, stream_);
  cudaFreeAsync(memory, stream_);
}

void DecodeQueue::hold_weights(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(recorded_->mutex);
  recorded_->compact.hold(memory, bytes);
}

void DecodeQueue::launch_embedding() {
  const EmbeddedRow row = std::exchange(recorded_->row, {});
  if (row.from == nullptr) return;
  check(cudaSetDevice(recorded_->device), "the device");
  cuda::embed(row, stream_);
}

void DecodeQueue::launch() {
  launch_embedding();
  if (const auto failure = std::exchange(recorded_->failure, nullptr)) std::rethrow_exception(failure);
  const SharedMemoryNeed shared_memory = recorded_->shared_memory;
  const StepVariant variant = recorded_->variant.value_or(StepVariant{});
  std::vector<Operation> operations = recorded_->clear();
  if (operations.empty()) return;
  check(cudaSetDevice(recorded_->device), "the device");
  const int normed_vectors = std::ranges::any_of(operations, has_long_normed_row) ? most_normed_vectors : few_normed_vectors;
  const TiledGemv& first = operations[0].gemv;
  if (operations.size() == 1 && first.independent_products() == first.product_count) {
    std::ranges::fill(operations[0].mailbox, nullptr);
    return Launch{nullptr, 1, shared_memory, variant, normed_vectors}.start(operations[0], stream_, Overlap::none);
  }
  activate_gates_early(operations);
  const std::size_t mailbox_bytes = assign_mailbox(operations, nullptr), bytes = mailbox_offset(operations.size()) + 2 * mailbox_bytes;
  cudaStreamCaptureStatus capture{};
  check(cudaStreamIsCapturing(stream_, &capture), "a graph");
  Launch launch{nullptr, static_cast<int>(operations.size()), shared_memory, variant, normed_vectors};
  std::shared_ptr<void> owner;
  if (capture == cudaStreamCaptureStatusActive) {
    OutsideOfCapture outside;
    check(cudaMalloc(&launch.uploaded, bytes), "device memory");
    owner.reset(launch.uploaded, [](void* p) { cudaFree(p); });
    captured_.push_back(
        [launch, owner, stream = stream_](const EmbeddedRow& row) { launch.start({}, stream, Overlap::with_kernels_before, row); });
    const cudaStream_t aside = outside.stream();
    upload(operations, launch.uploaded, mailbox_bytes, aside);
    check(cudaStreamSynchronize(aside), "the decode kernel");
  } else {
    check(cudaMallocAsync(&launch.uploaded, bytes, stream_), "device memory");
    owner.reset(launch.uploaded, [stream = stream_](void* p) { cudaFreeAsync(p, stream); });
    upload(operations, launch.uploaded, mailbox_bytes, stream_);
  }
  launch.start(operations[0], stream_, Overlap::none);
}

}  // namespace statescope::cuda
