// Chains of a token's decoding (cuda_chain.h): operations are collected, become levels (cuda_chain_plan.h), and are launched
// (cuda_chain_kernel.h).
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

#include "kernels/cuda/common/chain.h"
#include "kernels/cuda/decode/chain_kernel.h"
#include "kernels/cuda/decode/chain_plan.h"

namespace statescope::cuda {
namespace {

using namespace chain;

Kernel kernel_of(const StepForm& form) {
  const auto of_rule = form.delta_rule ? form.sparse ? sparse_delta_rule_kernel : delta_rule_kernel
                       : form.sparse   ? sparse_outer_product_kernel
                                       : outer_product_kernel;
  return of_rule(form.rows_of_thread);
}

/// Of any kernel, beside what a launch asks for.
int declared_shared_memory() {
  static const int bytes = [] {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel_of({})), "a chain");
    return static_cast<int>(attributes.sharedSizeBytes);
  }();
  return bytes;
}

/// What a launch needs of shared memory beside what the kernel declares: the most of its levels.
struct Room {
  std::size_t x_bytes = 0;
  int stage_bytes = line_bytes;

  static Room of(const Tiles& tiles) {
    int made = 0;
    for (int n = tiles.products_of_x(); n < tiles.product_count; ++n) {
      made += most_of(tiles.products[n].out) * static_cast<int>(tiles.products[n].weight_bytes);
    }
    const int rows = stage_rows * tiles.piece_bytes(std::min(tiles.blocks, tiles.blocks_of_piece)) + between_rows;
    return {static_cast<std::size_t>(rounded_up(parts_of_x * tiles.part_bytes + between_parts, line_bytes)),
            rounded_up(std::max(rows, made), line_bytes)};
  }
  Room with(const Room& other) const { return {std::max(x_bytes, other.x_bytes), std::max(stage_bytes, other.stage_bytes)}; }
  std::size_t besides_ring() const { return std::max(offsetof(Work, of_x) + offsetof(OfProducts, x) + x_bytes, sizeof(Work)); }
  /// None: too few stages.
  std::optional<RingSize> ring() const {
    const int most = attribute_of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    const int left = most - declared_shared_memory() - static_cast<int>(besides_ring());
    const int stages = std::min(left / stage_bytes, most_stages);
    return stages < least_stages ? std::nullopt : std::optional(RingSize{stages, stage_bytes});
  }
};

/// Where the mail begins behind a mailbox and so many levels.
std::size_t mail_offset(std::size_t levels) { return rounded_up(sizeof(Mailbox) + levels * sizeof(Level), alignof(Mailbox)); }

/// A mailbox, the levels and both empty boxes into the memory that a launch reads.
void send(std::vector<Level>& levels, void* to, std::size_t mail_bytes, cudaStream_t stream) {
  char* const mail = static_cast<char*>(to) + mail_offset(levels.size());
  address_mail(levels, reinterpret_cast<float*>(mail));
  const Mailbox box{0, 0, mail, static_cast<unsigned>(mail_bytes)};
  std::vector<char> bytes(sizeof box + levels.size() * sizeof(Level));
  std::memcpy(bytes.data(), &box, sizeof box);
  std::memcpy(bytes.data() + sizeof box, levels.data(), levels.size() * sizeof(Level));
  // Pageable memory: copied before the call returns.
  check(cudaMemcpyAsync(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream), "a chain");
  check(cudaMemsetAsync(mail, 0xFF, 2 * mail_bytes, stream), "a chain");
}

/// How many chains there are.
std::atomic<int> chains = 0;

/// Blocks of a launch wait for one another, so all of them have to be there. Those of launches of a single chain will be, each behind the
/// one before. Of two chains, be it of another process that shares the device, each could have some: then launches are cooperative, which
/// do not overlap.
bool blocks_come_in_turn() {
  static const bool shared = attribute_of_device(cudaDevAttrMpsEnabled) != 0;
  return chains == 1 && !shared;
}

/// A launch of so many levels that were sent, or of one that needs no mail: then `sent` is null.
struct Launch {
  void* sent;
  int levels;
  Room room;
  StepForm form;

  /// `overlap`: with kernels before it, where they have written none of the weights.
  void start(const Level& one, cudaStream_t stream, Overlap overlap, const EmbeddedRow& row = {}) const {
    const RingSize ring = room.ring().value();
    const std::size_t shared = static_cast<std::size_t>(ring.bytes()) + room.besides_ring();
    const Kernel kernel = kernel_of(form);
    allow_shared_memory("a chain", reinterpret_cast<const void*>(kernel), static_cast<std::size_t>(declared_shared_memory()) + shared);
    cudaLaunchAttribute attribute{};
    if (overlap == Overlap::with_kernels_before && blocks_come_in_turn()) {
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
    auto* const box = static_cast<Mailbox*>(sent);
    const auto* const all = sent == nullptr ? nullptr : reinterpret_cast<const Level*>(box + 1);
    check(cudaLaunchKernelEx(&config, kernel, all, levels, box, ring, row, one), "a chain");
  }
};

/// What a thread asks of the device while this lives is no part of a graph that it captures.
class OutsideOfGraph {
 public:
  OutsideOfGraph() { check(cudaThreadExchangeStreamCaptureMode(&mode_), "a graph"); }
  ~OutsideOfGraph() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  OutsideOfGraph(const OutsideOfGraph&) = delete;
  OutsideOfGraph& operator=(const OutsideOfGraph&) = delete;
  /// Of its own.
  cudaStream_t stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    return stream_;
  }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

struct Chain::Collected {
  int device = 0;
  std::vector<Level> levels;
  OneRow last;                   // the last one, where it is products
  Addresses written;             // by them
  Room room;                     // for all of them
  std::optional<StepForm> form;  // of the steps among them
  EmbeddedRow row;               // behind which there is nothing as yet
  CompactWeights compact;
  std::exception_ptr failure;  // of a launch whose caller could not be told
  std::mutex mutex;            // buffers are given back by any thread

  /// Whether the level reads what was made on the way, like a product's z: that is not handed on.
  bool is_read_from_memory(const Level& level) const {
    bool reads = false;
    for_what_is_read(level, [&](const float* p) { reads |= written.is_not_handed_on(p); });
    return reads;
  }
  std::vector<Level> clear() {
    written = {};
    room = {};
    form = {};
    return std::exchange(levels, {});
  }
  /// The same products with compact weights, if all that are of x are.
  OneRow compacted(const OneRow& op, int blocks_of_piece, cudaStream_t stream) {
    OneRow own = op;
    for (Product& p : std::span(own.products, static_cast<std::size_t>(own.product_count))) {
      if (p.made != nullptr) continue;
      for (const char** weight : {&p.weight, &p.up}) {
        if (*weight == nullptr) continue;
        *weight = compact.of({*weight, p.weight_bytes, p.out, p.in, blocks_of_piece}, stream);
        if (*weight == nullptr) return op;
      }
    }
    own.compact = true;
    return own;
  }
  void push(const Level& level) {
    levels.push_back(level);
    for_what_is_written(level, [&](float* p, int count, int n) { written.written(p, count, n < 0 ? nullptr : p); });
  }
};

Chain::Chain() : collected_(std::make_unique<Collected>()) {
  check(cudaGetDevice(&collected_->device), "the device");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  ++chains;
}
Chain::~Chain() {
  cudaStreamDestroy(stream_);
  --chains;
}

void Chain::flush() {
  const std::lock_guard lock(collected_->mutex);
  launch();
}
cudaStream_t Chain::stream() {
  flush();
  return stream_;
}
void Chain::drop() {
  const std::lock_guard lock(collected_->mutex);
  collected_->clear();
  collected_->row = {};
}
std::vector<Chain::Captured> Chain::take_captured() { return std::exchange(captured_, {}); }

void Chain::embed(const EmbeddedRow& row) {
  const std::lock_guard lock(collected_->mutex);
  launch();
  collected_->row = row;
}
void Chain::repeat(const Captured& again) {
  const std::lock_guard lock(collected_->mutex);
  const EmbeddedRow row = std::exchange(collected_->row, {});
  launch();
  again(row);
}

bool Chain::add(const OneRow& as_asked, DType type) {
  Level level{.kind = Kind::products, .tiles = {}, .step = {}, .mail = {}, .mailed = {}};
  const auto all = [](const Product&) { return true; };
  if (type != DType::bf16 || !as_tiles(level.tiles, as_asked, all) || !Room::of(level.tiles).ring()) return false;
  const std::lock_guard lock(collected_->mutex);
  launch_row();
  const OneRow op = collected_->compacted(as_asked, level.tiles.blocks_of_piece, stream_);
  if (op.compact) as_tiles(level.tiles = {}, op, all);
  const Room room = Room::of(level.tiles);
  const bool fits = collected_->levels.size() < most_levels && collected_->room.with(room).ring();
  if (!fits || collected_->is_read_from_memory(level)) launch();
  collected_->room = collected_->room.with(room);
  collected_->push(level);
  collected_->last = op;
  return true;
}
bool Chain::add(const Step& step, bool delta_rule) {
  const std::lock_guard lock(collected_->mutex);
  const Step at_once = with_tasks_at_once(step);
  const StepForm form{delta_rule, at_once.is_sparse(), at_once.rows_of_thread()};
  Level level{.kind = Kind::step, .tiles = {}, .step = at_once, .mail = {}, .mailed = {}};
  if (collected_->levels.empty() || collected_->levels.size() == most_levels || collected_->is_read_from_memory(level)) return false;
  if (collected_->form.value_or(form) != form) return false;
  collected_->form = form;
  if (Level& before = collected_->levels.back(); before.kind == Kind::products) let_step_begin_early(level, before, collected_->last);
  collected_->push(level);
  return true;
}

void Chain::free(void* memory) noexcept {
  const std::lock_guard lock(collected_->mutex);
  try {
    launch();
  } catch (...) {
    collected_->failure = std::current_exception();
  }
  collected_->compact.release(memory, stream_);
  cudaFreeAsync(memory, stream_);
}

void Chain::hold_weights(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(collected_->mutex);
  collected_->compact.hold(memory, bytes);
}

void Chain::launch_row() {
  const EmbeddedRow row = std::exchange(collected_->row, {});
  if (row.from == nullptr) return;
  check(cudaSetDevice(collected_->device), "the device");
  cuda::embed(row, stream_);
}

void Chain::launch() {
  launch_row();
  if (const auto failure = std::exchange(collected_->failure, nullptr)) std::rethrow_exception(failure);
  const Room room = collected_->room;
  const StepForm form = collected_->form.value_or(StepForm{});
  std::vector<Level> levels = collected_->clear();
  if (levels.empty()) return;
  check(cudaSetDevice(collected_->device), "the device");
  const Tiles& first = levels[0].tiles;
  if (levels.size() == 1 && first.products_of_x() == first.product_count) {
    std::ranges::fill(levels[0].mail, nullptr);
    return Launch{nullptr, 1, room, form}.start(levels[0], stream_, Overlap::none);
  }
  activate_gates_early(levels);
  const std::size_t mail_bytes = address_mail(levels, nullptr), bytes = mail_offset(levels.size()) + 2 * mail_bytes;
  cudaStreamCaptureStatus capture{};
  check(cudaStreamIsCapturing(stream_, &capture), "a graph");
  Launch launch{nullptr, static_cast<int>(levels.size()), room, form};
  std::shared_ptr<void> owner;
  if (capture == cudaStreamCaptureStatusActive) {
    OutsideOfGraph outside;
    check(cudaMalloc(&launch.sent, bytes), "device memory");
    owner.reset(launch.sent, [](void* p) { cudaFree(p); });
    captured_.push_back(
        [launch, owner, stream = stream_](const EmbeddedRow& row) { launch.start({}, stream, Overlap::with_kernels_before, row); });
    const cudaStream_t aside = outside.stream();
    send(levels, launch.sent, mail_bytes, aside);
    check(cudaStreamSynchronize(aside), "a chain");
  } else {
    check(cudaMallocAsync(&launch.sent, bytes, stream_), "device memory");
    owner.reset(launch.sent, [stream = stream_](void* p) { cudaFreeAsync(p, stream); });
    send(levels, launch.sent, mail_bytes, stream_);
  }
  launch.start(levels[0], stream_, Overlap::none);
}

}  // namespace statescope::cuda
