// Chains of a token's decoding in one launch (cuda_chain.h): products of one row with bf16 weights and memories' steps, level by level. A
// block a multiprocessor. The weights of all levels come through a ring that does not wait for a level to begin (cuda_chain_levels.h), what
// a level makes goes by mail (cuda_chain_mail.h): no block waits for all others.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "kernels/cuda_chain.h"
#include "kernels/cuda_chain_products.h"

namespace statescope::cuda {
namespace {

using namespace chain;

// ---- the kernel ----------------------------------------------------------------------------------------------------------------------

/// A memory's step of a level: the block's tasks.
__device__ __noinline__ void take_steps(Slot& slot, int ring_bytes, const Mail& mail) {
  extern __shared__ __align__(128) char room[];
  memory_step::Shared& shared = reinterpret_cast<Work*>(room + ring_bytes)->step;
  const Step& p = slot.level.step;
  const MailInTurn in_turn{mail};
  const auto hand_on = [&](int i, float4 o) { mail.put(slot.level.mail[0] + i, o); };
#pragma unroll 1
  for (int task = static_cast<int>(blockIdx.x); task < p.tasks(); task += static_cast<int>(gridDim.x)) {
    if (task != static_cast<int>(blockIdx.x)) {
      sync_warps();
      if (threadIdx.x == 0) find_task(slot.task, p, task, mail);
      sync_warps();
    }
    const int rows = p.rows_of_thread();
    const bool delta_rule = slot.level.kind == Kind::delta_rule;
    const auto take = [&]<int RowsPerThread>() {
      delta_rule ? memory_step::take_step<true, RowsPerThread>(p, slot.task, shared, in_turn, hand_on)
                 : memory_step::take_step<false, RowsPerThread>(p, slot.task, shared, in_turn, hand_on);
    };
    rows == 1   ? take.template operator()<1>()
    : rows == 2 ? take.template operator()<2>()
    : rows == 4 ? take.template operator()<4>()
                : take.template operator()<8>();
  }
}

/// `all`: the levels, or null where there is only `one`.
__global__ void __launch_bounds__(block_threads, 1)
    chain_kernel(const Level* all, int count, Mailbox* box, RingSize size, const __grid_constant__ Level one) {
  extern __shared__ __align__(128) char room[];
  __shared__ __align__(64) unsigned char room_for_levels[sizeof(Levels)];
  __shared__ Stage stages[most_stages];
  __shared__ Groups groups;
  auto& levels = *reinterpret_cast<Levels*>(room_for_levels);
  auto& work = *reinterpret_cast<Work*>(room + size.bytes());
  const Ring ring{size, room, stages};
  const int thread = static_cast<int>(threadIdx.x), warp = thread / warp_size;
  if (thread == 0) {
    levels.mail =
        box == nullptr ? Mail{} : Mail{reinterpret_cast<std::uintptr_t>(box->begin), box->bytes, box->turn * std::uintptr_t{box->bytes}};
  }
  if (thread < most_stages) stages[thread].make(warps_of_half);
  if (thread < known_levels) levels.handed[thread].make(warps_with_levels);
  if (thread == 0) groups.make();
  publish_barriers();
  __syncthreads();
  if (warp == fetcher) {
    fetch_weights(levels, count, ring);
  } else if (warp == planner) {
    look_ahead(levels, all != nullptr ? all : &one, count, box, work.step);
  } else if (warp >= first_finisher) {
    finish_products(levels, count, work, groups);
  } else {
    const Mail& mail = levels.mail;
    PlaceInRing at;
    PlaceInGroups group{groups};
#pragma unroll 1
    for (int level = 0; level < count; ++level) {
      Slot& slot = levels.wait_for_level(level);
      if (slot.level.kind == Kind::products) {
        make_products(slot, work, ring, at, group, mail);
        if (slot.made_rows > 0) make_rows(slot, work, ring, at, mail);
      } else {
        sync_warps();
        take_steps(slot, size.bytes(), mail);
        sync_warps();
      }
      levels.end_level(level);
    }
  }
  if (box == nullptr) return;
  // The last block gives the turn to the other box, which nobody has looked into.
  __syncthreads();
  if (threadIdx.x == 0 && atomicInc(&box->ended, gridDim.x - 1) == gridDim.x - 1) box->turn ^= 1;
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

template <class Number>
Number rounded_up(Number n, Number to) {
  return (n + to - 1) / to * to;
}

/// The most that a block has of n.
int most_of(int n) {
  const auto blocks = static_cast<int>(multiprocessors());
  return (n + blocks - 1) / blocks;
}

/// The most outputs that a block has up to a turn's.
int most_outputs(const Tiles& tiles, Turn last) {
  int outputs = 0;
  for (int turn = announced; turn <= last; ++turn) outputs += most_of(tiles.outputs[turn]);
  return outputs;
}

/// As the kernel sees them; is_awaited(product): whether the next level waits for it. False where they do not fit it.
template <class IsAwaited>
bool as_tiles(Tiles& tiles, const OneRow& op, const IsAwaited& is_awaited) {
  const Input& input = op.inputs[0];
  const int most = input.group > 0 ? most_normed_numbers : most_plain_numbers;
  const bool activates =
      input.gate == nullptr || input.act == Activation::silu || input.act == Activation::sigmoid || input.act == Activation::identity;
  const bool aligned_norm = reinterpret_cast<std::uintptr_t>(input.weight) % piece == 0 && input.group % 4 == 0;
  if (op.input_count != 1 || input.n % block_columns != 0 || input.n > most || !activates || !aligned_norm) return false;
  tiles.input = input;
  tiles.of_group = input.group > 0 ? 1 / static_cast<float>(input.group) : 1;
  const bool gated = op.products[0].end == End::gated;
  tiles.outputs_of_tile = gated ? tile_rows / 2 : tile_rows;
  // The product behind gate and up begins with what is made of them first.
  tiles.tiles_together = gated ? 2 : most_tiles_together;
  tiles.blocks = input.n / block_columns;
  // Warps have whole groups of blocks where that is possible.
  constexpr int whole = warps_of_half * blocks_at_once;
  const int pieces = (tiles.blocks + most_blocks - 1) / most_blocks;
  const int least = (tiles.blocks + pieces - 1) / pieces, rounded = rounded_up(least, whole);
  tiles.blocks_of_piece = rounded <= most_blocks ? rounded : least;
  tiles.row_bytes = std::min(tiles.blocks, tiles.blocks_of_piece) * block_bytes;
  tiles.part_bytes = rounded_up(2 * input.n, line_bytes);
  const std::span<const Product> products(op.products, static_cast<std::size_t>(op.product_count));
  const auto is_announced = [&](const Product& p) { return std::ranges::find(products, p.y, &Product::made) != products.end(); };
  const auto turn_of = [&](const Product& p) {
    return p.made != nullptr ? turns : is_announced(p) ? announced : is_awaited(p) ? awaited : later;
  };
  for (int turn = announced; turn <= turns; ++turn) {
    int outputs = 0;
    for (const Product& p : products) {
      if (turn_of(p) != turn) continue;
      tiles.first_output[tiles.product_count] = outputs;
      tiles.products[tiles.product_count++] = p;
      outputs += p.out;
    }
    if (turn == turns) break;
    tiles.outputs[turn] = outputs;
    tiles.products_before[turn + 1] = tiles.product_count;
  }
  int numbers = 0, bytes = 0;
  bool fits = true;
  for (int n = 0; n < tiles.product_count; ++n) {
    const Product& p = tiles.products[n];
    fits &= p.weight_bytes % piece == 0 && (p.made == nullptr ? p.in == input.n : p.weight_bytes == 2 * p.in && !p.announced);
    if (p.made != nullptr) numbers += p.in, bytes += most_of(p.out) * p.in * 2;
  }
  const bool listed = tiles.product_count == 1 || most_outputs(tiles, later) <= listed_rows;
  return fits && listed && numbers <= most_made_numbers && bytes <= most_stage_bytes;
}

/// Low-rank decays go from the products before a step into the step, if it can make all of them: one way less from block to block.
void take_decays(Step& step, OneRow& op) {
  const int halves = step.halves(), count = step.log_decay.heads * step.K;
  if (step.log_decay.width != step.K || halves * step.K > memory_step::threads) return;
  Product decays[2]{};
  const auto makes = [&](const Product& p, int half) {
    return p.made != nullptr && p.y == step.log_decay.x + half * count && p.out == count && p.in == memory_step::decay_rank &&
           p.end == End::forget_gate && p.z == nullptr && p.weight_bytes == 2 * p.in;
  };
  OneRow rest = op;
  for (int half = 0; half < halves; ++half) {
    Product* const end = rest.products + rest.product_count;
    Product* const maker = std::find_if(rest.products, end, [&](const Product& p) { return makes(p, half); });
    if (maker == end) return;
    decays[half] = *maker;
    std::copy(maker + 1, end, maker);
    --rest.product_count;
  }
  std::ranges::copy(decays, step.decays);
  op = rest;
}

/// With wider tasks where not all of them would run at once, if a thread can have so many rows.
Step with_tasks_at_once(const Step& step) {
  Step wide = step;
  wide.columns = memory_step::most_columns;
  const bool fits = wide.K <= memory_step::most_rows_of_thread * wide.rows_at_once();
  return fits && step.tasks() > static_cast<int>(multiprocessors()) ? wide : step;
}

/// Of the kernel, beside what a launch asks for.
int declared_shared_memory() {
  static const int bytes = [] {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, chain_kernel), "a chain");
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
    const int rows = stage_rows * tiles.row_bytes + between_rows;
    return {static_cast<std::size_t>(parts_of_x * tiles.part_bytes) + 128, rounded_up(std::max(rows, made), line_bytes)};
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

/// Where what a chain has made so far stands.
class Addresses {
 public:
  /// Numbers at p have their place at `mail`; null: they are not handed on.
  void written(const float* p, std::int64_t count, float* mail) {
    if (p == nullptr) return;
    auto i = ranges_.upper_bound(p);
    if (i != ranges_.begin() && p < std::prev(i)->second.end) --i;
    while (i != ranges_.end() && i->first < p + count) i = ranges_.erase(i);
    ranges_[p] = {p + count, mail};
  }
  void look_up(const float*& p) const {
    const auto range = of(p);
    if (range != ranges_.end() && range->second.mail != nullptr) p = range->second.mail + (p - range->first);
  }
  bool is_not_handed_on(const float* p) const {
    const auto range = of(p);
    return range != ranges_.end() && range->second.mail == nullptr;
  }

 private:
  struct Range {
    const float* end;
    float* mail;
  };
  using Ranges = std::map<const float*, Range>;
  Ranges::const_iterator of(const float* p) const {
    const auto next = ranges_.upper_bound(p);
    return p == nullptr || next == ranges_.begin() || p >= std::prev(next)->second.end ? ranges_.end() : std::prev(next);
  }
  Ranges ranges_;
};

std::span<const Product> products_of(const Level& level) {
  return {level.tiles.products, static_cast<std::size_t>(level.tiles.product_count)};
}

/// visit(p) for each p that a level reads numbers at which levels before it may have made.
template <class AnyLevel, class Visit>
void for_what_is_read(AnyLevel& level, const Visit& visit) {
  if (level.kind == Kind::products) {
    visit(level.tiles.input.x), visit(level.tiles.input.gate);
    for (int n = 0; n < level.tiles.product_count; ++n) visit(level.tiles.products[n].addend);
    return;
  }
  auto& step = level.step;
  if (step.q_source.pair == nullptr) visit(step.q.x);
  if (step.k_source.pair == nullptr) visit(step.k.x);
  visit(step.v.x), visit(step.beta.x);
  if (step.decays[0].out == 0) visit(step.log_decay.x);
  for (auto& product : step.decays) visit(product.made);
  for (auto* x : {&step.q_source, &step.k_source}) visit(x->shared), visit(x->sparse), visit(x->more);
  visit(step.routing.logits);
}

/// visit(p, count, n) for what a level writes; n: which place in its mail, −1 for what is not handed on.
template <class Visit>
void for_what_is_written(const Level& level, const Visit& visit) {
  if (level.kind == Kind::products) {
    for (int n = 0; n < level.tiles.product_count; ++n) {
      const Product& p = level.tiles.products[n];
      visit(p.z, p.out, -1), visit(p.y, p.out, n);
    }
    return;
  }
  const Step& step = level.step;
  for (const Product& product : step.decays) visit(product.y, product.out, -1);
  for (float* pair : {step.q_source.pair, step.k_source.pair}) visit(pair, 2 * step.H * step.K, -1);
  visit(step.routing.gate, step.routing.N, -1);
  visit(step.o, step.H * step.V, 0);
}

/// What gates an input passes its activation where it is made, if nobody else reads it from the mail.
void activate_gates_early(std::vector<Level>& levels) {
  for (auto reader = levels.begin(); reader != levels.end(); ++reader) {
    Input& input = reader->tiles.input;
    if (reader->kind != Kind::products || input.gate == nullptr) continue;
    const auto makes = [&](const Product& p) { return p.y <= input.gate && input.gate + input.n <= p.y + p.out; };
    auto maker = reader;
    const Product* product = nullptr;
    while (product == nullptr && maker != levels.begin()) {
      const auto products = products_of(*--maker);
      const auto found = std::ranges::find_if(products, makes);
      if (found != products.end()) product = &*found;
    }
    if (product == nullptr || product->end == End::convolve) continue;
    const float *const begin = product->y, *const end = begin + product->out;
    int readers = 0;
    bool overwritten = false;
    for (auto level = maker + 1; level != levels.end() && !overwritten; ++level) {
      for_what_is_read(*level, [&](const float* p) { readers += begin <= p && p < end ? 1 : 0; });
      for_what_is_written(*level, [&](const float* p, int count, int) { overwritten |= p < end && begin < p + count; });
    }
    if (readers == 1) maker->mailed[product - maker->tiles.products] = std::exchange(input.act, Activation::identity);
  }
}

/// The level of a step and the products right before it: what the step waits for is made first, and low-rank decays by the step itself.
void let_step_begin_early(Level& level, Level& products, const OneRow& op) {
  Level early = level;
  OneRow rest = op;
  take_decays(early.step, rest);
  const auto is_read = [&](const Product& product) {
    bool reads = false;
    for_what_is_read(early, [&](const float* p) { reads |= p >= product.y && p < product.y + product.out; });
    return reads;
  };
  const auto spares_tiles = [](const Tiles& tiles) {
    const auto tiles_of = [](int rows) { return (rows + tile_rows - 1) / tile_rows; };
    const bool makes_rows = tiles.product_count > tiles.products_of_x();  // which come behind all others
    return tiles.product_count > 1 && !makes_rows && tiles_of(most_outputs(tiles, awaited)) < tiles_of(most_outputs(tiles, later));
  };
  Tiles tiles{};
  if (!as_tiles(tiles, rest, is_read) || !spares_tiles(tiles)) {
    tiles = {};
    if (!as_tiles(tiles, rest, [](const Product&) { return true; })) return;
  }
  level = early, products.tiles = tiles;
}

/// Gives all that levels make a place from `begin` on, and lets those behind read it there. Returns the bytes of these places; null: only
/// that.
std::size_t address_mail(std::vector<Level>& levels, float* begin) {
  Addresses addresses;
  std::size_t numbers = 0;
  // As aligned as the numbers themselves: four are read at once.
  const auto place = [&](const float* y, std::int64_t count, bool right_behind) {
    if (!right_behind) numbers = rounded_up(numbers, std::size_t{line}) + reinterpret_cast<std::uintptr_t>(y) % line_bytes / sizeof(float);
    float* const mail = begin + numbers;
    numbers += static_cast<std::size_t>(count);
    return mail;
  };
  for (Level& level : levels) {
    if (begin != nullptr) for_what_is_read(level, [&](const float*& p) { addresses.look_up(p); });
    if (level.kind != Kind::products) {
      const Step& step = level.step;
      level.mail[0] = place(step.o, std::int64_t{step.H} * step.V, false);
    }
    // What lies side by side does so in the mail: a reader may take several products' numbers as one row.
    std::vector<int> order(static_cast<std::size_t>(level.tiles.product_count));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int n) { return level.tiles.products[n].y; });
    const float* end = nullptr;
    for (const int n : order) {
      const Product& p = level.tiles.products[n];
      level.mail[n] = place(p.y, p.out, p.y == end);
      end = p.y + p.out;
    }
    for_what_is_written(level, [&](const float* p, int count, int n) { addresses.written(p, count, n < 0 ? nullptr : level.mail[n]); });
    for (int n = 0; begin != nullptr && n < level.tiles.product_count; ++n) addresses.look_up(level.tiles.products[n].made);
  }
  return rounded_up(numbers * sizeof(float), std::size_t{line_bytes});
}

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

/// `sent`: what was sent, or null where one level needs no mail.
void start(const std::vector<Level>& levels, void* sent, const Room& room, cudaStream_t stream) {
  const RingSize ring = room.ring().value();
  const std::size_t shared = static_cast<std::size_t>(ring.bytes()) + room.besides_ring();
  allow_shared_memory("a chain", reinterpret_cast<const void*>(chain_kernel), static_cast<std::size_t>(declared_shared_memory()) + shared);
  // Blocks wait for one another: all of them have to be there.
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = multiprocessors();
  config.blockDim = block_threads;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &together;
  config.numAttrs = 1;
  auto* const box = static_cast<Mailbox*>(sent);
  const auto* const all = sent == nullptr ? nullptr : reinterpret_cast<const Level*>(box + 1);
  check(cudaLaunchKernelEx(&config, chain_kernel, all, static_cast<int>(levels.size()), box, ring, levels[0]), "a chain");
}

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
  OneRow last;                 // the last one, where it is products
  Addresses written;           // by them
  Room room;                   // for all of them
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
    return std::exchange(levels, {});
  }
  void push(const Level& level) {
    levels.push_back(level);
    for_what_is_written(level, [&](float* p, int count, int n) { written.written(p, count, n < 0 ? nullptr : p); });
  }
};

Chain::Chain() : collected_(std::make_unique<Collected>()) {
  check(cudaGetDevice(&collected_->device), "the device");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
}
Chain::~Chain() { cudaStreamDestroy(stream_); }

cudaStream_t Chain::stream() {
  const std::lock_guard lock(collected_->mutex);
  launch();
  return stream_;
}
void Chain::drop() {
  const std::lock_guard lock(collected_->mutex);
  collected_->clear();
}
std::vector<Chain::Memory> Chain::captured() { return std::exchange(captured_, {}); }

bool Chain::add(const OneRow& op, DType type) {
  Level level{.kind = Kind::products, .tiles = {}, .step = {}, .mail = {}, .mailed = {}};
  if (type != DType::bf16 || !as_tiles(level.tiles, op, [](const Product&) { return true; })) return false;
  const Room room = Room::of(level.tiles);
  if (!room.ring()) return false;
  const std::lock_guard lock(collected_->mutex);
  const bool fits = collected_->levels.size() < most_levels && collected_->room.with(room).ring();
  if (!fits || collected_->is_read_from_memory(level)) launch();
  collected_->room = collected_->room.with(room);
  collected_->push(level);
  collected_->last = op;
  return true;
}
bool Chain::add(const Step& step, bool delta_rule) {
  const std::lock_guard lock(collected_->mutex);
  Level level{
      .kind = delta_rule ? Kind::delta_rule : Kind::outer_product, .tiles = {}, .step = with_tasks_at_once(step), .mail = {}, .mailed = {}};
  if (collected_->levels.empty() || collected_->levels.size() == most_levels || collected_->is_read_from_memory(level)) return false;
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
  cudaFreeAsync(memory, stream_);
}

void Chain::launch() {
  if (const auto failure = std::exchange(collected_->failure, nullptr)) std::rethrow_exception(failure);
  const Room room = collected_->room;
  std::vector<Level> levels = collected_->clear();
  if (levels.empty()) return;
  check(cudaSetDevice(collected_->device), "the device");
  const Tiles& first = levels[0].tiles;
  if (levels.size() == 1 && first.products_of_x() == first.product_count) {
    std::ranges::fill(levels[0].mail, nullptr);
    return start(levels, nullptr, room, stream_);
  }
  activate_gates_early(levels);
  const std::size_t mail_bytes = address_mail(levels, nullptr), bytes = mail_offset(levels.size()) + 2 * mail_bytes;
  cudaStreamCaptureStatus capture{};
  check(cudaStreamIsCapturing(stream_, &capture), "a graph");
  void* sent = nullptr;
  Memory owner;
  if (capture == cudaStreamCaptureStatusActive) {
    OutsideOfGraph outside;
    check(cudaMalloc(&sent, bytes), "device memory");
    owner = Memory(sent, [](void* p) { cudaFree(p); });
    captured_.push_back(owner);
    const cudaStream_t aside = outside.stream();
    send(levels, sent, mail_bytes, aside);
    check(cudaStreamSynchronize(aside), "a chain");
  } else {
    check(cudaMallocAsync(&sent, bytes, stream_), "device memory");
    owner = Memory(sent, [stream = stream_](void* p) { cudaFreeAsync(p, stream); });
    send(levels, sent, mail_bytes, stream_);
  }
  start(levels, sent, room, stream_);
}

}  // namespace statescope::cuda
