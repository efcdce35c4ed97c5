#include <algorithm>
#include <cstring>

#include "kernels/cuda_levels.h"
#include "kernels/cuda_one_row_hopper.h"

namespace statescope::cuda {
namespace {

using namespace one_row;

constexpr int slots = 4;  // of levels in shared memory
constexpr std::size_t alignment = 128;

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// By one thread of each block, after all its waiting.
__device__ void end(Counters& counters) {
  if (atomicAdd(&counters.ended, 1) + 1 < gridDim.x) return;
  counters.ready = counters.ended = 0;
}

/// One level by itself. It begins while the kernel before it ends.
template <DType dtype>
__global__ void __launch_bounds__(all_threads, 2) one_level_kernel(const __grid_constant__ OneRow op, Counters* counters, int stages) {
  extern __shared__ __align__(128) char parts[];
  __shared__ Shared shared;
  Ring ring = make_ring(shared, parts + input_bytes(op.numbers), stages);
  if (threadIdx.x >= threads) return fetch<dtype>(op, ring);
  multiply_all<dtype, false>(op, ring, shared, parts, [] {
    wait_for_results();
    let_next_begin();  // not before: a second kernel ahead only stands in the way
  });
  if (op.announced > 0 && threadIdx.x == 0) end(*counters);
}

struct Program {
  const Level* levels;
  int count, stages, parts_bytes;
};

/// All levels, by blocks that all run at once. Weights bf16.
template <bool delta_rule, int RowsPerThread>
__global__ void __launch_bounds__(all_threads, 1) levels_kernel(const Program program) {
  extern __shared__ __align__(128) char memory[];
  __shared__ Shared shared;
  __shared__ std::uint64_t loaded[slots], done[slots];
  char* const parts = memory + slots * sizeof(Level);
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int s = 0; s < slots; ++s) init_barrier(loaded[s], 1), init_barrier(done[s], 1);
  }
  Ring ring = make_ring(shared, parts + program.parts_bytes, program.stages);
  const auto slot = [&](int l) -> const Level& { return reinterpret_cast<const Level*>(memory)[l % slots]; };
  const auto turn = [](int l) { return l / slots & 1; };

  if (threadIdx.x >= threads) {
    const auto bring = [&](int l) {
      if (l >= program.count || threadIdx.x % warp_size != 0) return;
      wait(done[l % slots], turn(l) ^ 1);
      arrive_and_expect(loaded[l % slots], sizeof(Level));
      copy_bytes(memory + l % slots * sizeof(Level), program.levels + l, sizeof(Level), loaded[l % slots]);
    };
    bring(0);
#pragma unroll 1
    for (int l = 0; l < program.count; ++l) {
      bring(l + 1);
      __syncwarp();
      wait(loaded[l % slots], turn(l));
      if (slot(l).kind == Level::Kind::products) fetch<DType::bf16>(slot(l).products, ring);
    }
    return;
  }

  const auto nothing = [] {};
#pragma unroll 1
  for (int l = 0; l < program.count; ++l) {
    wait(loaded[l % slots], turn(l));
    if (slot(l).kind == Level::Kind::products) {
      multiply_all<DType::bf16, true>(slot(l).products, ring, shared, parts, nothing);
    } else {
      const memory_step::Step& step = slot(l).memory;
      auto& own = *reinterpret_cast<memory_step::Shared*>(parts);
      const int blocks = memory_step::blocks_of(step);
#pragma unroll 1
      for (int block = static_cast<int>(blockIdx.x); block < blocks; block += static_cast<int>(gridDim.x)) {
        memory_step::step<delta_rule, RowsPerThread, true>(step, own, block, nothing);
      }
    }
    sync();
    if (threadIdx.x == 0) arrive(done[l % slots]);
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

unsigned multiprocessors() { return static_cast<unsigned>(attribute_of_device(cudaDevAttrMultiProcessorCount)); }

int stages_in(std::size_t bytes) { return std::min(static_cast<int>(bytes / stage_bytes), most_stages); }

std::size_t offset_in(const Level& level, const auto& pointer) {
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&pointer) - reinterpret_cast<const char*>(&level));
}

/// visit(pointer, awaited, numbers) for what a level takes: of what it makes itself, or of the rest.
template <class Visit>
void for_inputs(Level& level, bool made_here, const Visit& visit) {
  if (level.kind == Level::Kind::products) {
    OneRow& op = level.products;
    for (int n = 0; n < op.input_count; ++n) {
      Input& input = op.inputs[n];
      if (input.made != made_here) continue;
      visit(input.x, input.x_awaited, input.n);
      if (input.gate != nullptr) visit(input.gate, input.gate_awaited, input.n);
    }
    for (int n = 0; n < op.product_count && !made_here; ++n) {
      Product& p = op.products[n];
      if (p.addend != nullptr) visit(p.addend, p.addend_awaited, p.out);
    }
  } else if (!made_here) {
    memory_step::Step& op = level.memory;
    const int halves = op.choices.count > 0 ? 2 : 1;
    const auto operand = [&](memory_step::Operand& x, int parts) {
      if (x.x != nullptr) visit(x.x, x.awaited, parts * x.heads * x.width);
    };
    const auto pair = [&](memory_step::Operand& x, memory_step::Source& from) {
      if (from.shared == nullptr) return operand(x, halves);
      visit(from.shared, from.shared_awaited, x.heads * x.width);
      visit(from.sparse, from.sparse_awaited, x.heads * x.width);
      visit(from.more, from.more_awaited, x.heads * x.width);
    };
    pair(op.q, op.q_source);
    pair(op.k, op.k_source);
    operand(op.v, 1);
    operand(op.log_decay, halves);
    operand(op.beta, halves);
    if (op.routing.logits != nullptr) visit(op.routing.logits, op.routing.awaited, op.routing.N);
  }
}

/// visit(pointer, mail, numbers) for what a level makes; mail null: it is not sent.
template <class Visit>
void for_outputs(Level& level, const Visit& visit) {
  const auto output = [&](auto*& plain, float** mail, std::int64_t numbers) {
    if (plain != nullptr) visit(reinterpret_cast<float*&>(plain), mail, numbers);
  };
  if (level.kind == Level::Kind::products) {
    for (int n = 0; n < level.products.product_count; ++n) {
      Product& p = level.products.products[n];
      output(p.y, &p.y_mail, p.out);
      output(p.z, &p.z_mail, p.out);
    }
  } else {
    memory_step::Step& op = level.memory;
    output(op.o, &op.o_mail, op.H * op.V);
    for (memory_step::Source* source : {&op.q_source, &op.k_source}) output(source->pair, nullptr, 2 * op.H * op.K);
    output(op.routing.gate, nullptr, op.routing.N);
    output(op.routing.selected, nullptr, op.choices.count);
  }
}

std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

bool Levels::supported() { return attribute_of_device(cudaDevAttrComputeCapabilityMajor) == 9; }

Levels::Levels() {
  check(cudaMalloc(&counters_, sizeof *counters_), "device memory");
  check(cudaMemset(counters_, 0, sizeof *counters_), "device memory");
}
Levels::~Levels() { cudaFree(counters_); }

void Levels::products(const OneRow& op, DType weights, cudaStream_t stream) {
  if (keeps_ && weights == DType::bf16) return keep(Level(op), stream);
  flush(stream);
  constexpr std::size_t shared_bytes = 98 << 10;  // two such kernels and a memory's step share a multiprocessor
  OneRow alone = op;
  alone.ready = &counters_->ready;
  const std::size_t parts = input_bytes(op.numbers);
  const int stages = stages_in(shared_bytes - parts);
  const auto begin = [&](auto kernel) {
    // The next kernel finds room only where shared memory is as large as it can be.
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory");
    launch_overlapped("products of one row", kernel, multiprocessors(), all_threads, parts + static_cast<std::size_t>(stages) * stage_bytes,
                      stream, alone, counters_, stages);
  };
  if (weights == DType::f32) return begin(one_level_kernel<DType::f32>);
  if (weights == DType::f16) return begin(one_level_kernel<DType::f16>);
  begin(one_level_kernel<DType::bf16>);
}

void Levels::memory(const memory_step::Step& op, bool delta_rule, cudaStream_t stream) {
  if (!keeps_) return start_step(op, delta_rule, stream);
  if (rows_ > 0 && delta_rule != delta_rule_) flush(stream);
  keep(Level(op), stream);
  delta_rule_ = delta_rule;
  rows_ = std::max(rows_, memory_step::rows_of_thread(op));
}

void Levels::keep() { keeps_ = true; }

void Levels::keep(const Level& level, cudaStream_t stream) {
  kept_.push_back(level);
  first_made_.push_back(made_.size());
  std::vector<Pointer> inputs;
  if (!receive(kept_.back(), false, inputs)) {
    kept_.pop_back(), first_made_.pop_back();
    flush(stream);
    kept_.push_back(level), first_made_.push_back(0);
    inputs.clear();
  }
  send(kept_.back());
  receive(kept_.back(), true, inputs);
  for (const Pointer& input : inputs) made_[input.made].read = true;
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
}

/// Finds what the last level takes among what kept ones make. False where it is there only in part, or does not come by mail.
bool Levels::receive(Level& level, bool made_here, std::vector<Pointer>& pointers) const {
  bool found = true;
  for_inputs(level, made_here, [&](const float*& at, bool& awaited, std::int64_t n) {
    const auto made = std::find_if(made_.rbegin(), made_.rend(), [&](const Made& m) { return m.begin < at + n && at < m.end; });
    if (made == made_.rend()) return;
    found = found && made->by_mail && made->begin <= at && at + n <= made->end;
    awaited = true;
    pointers.push_back({kept_.size() - 1, offset_in(level, at), static_cast<std::size_t>(made_.rend() - made) - 1,
                        static_cast<std::size_t>(at - made->begin)});
  });
  return found;
}

/// Notes what the last level makes.
void Levels::send(Level& level) {
  const auto first = static_cast<std::ptrdiff_t>(made_.size());
  for_outputs(level, [&](float*& plain, float** mail, std::int64_t n) { made_.push_back({plain, plain + n, 0, mail != nullptr, false}); });
  std::sort(made_.begin() + first, made_.end(), [](const Made& a, const Made& b) { return a.begin < b.begin; });
  // Neighbours may be read as one.
  auto last = made_.begin() + first;
  for (auto next = last; next != made_.end(); ++next) {
    if (next == last) continue;
    const bool one = next->begin <= last->end && next->by_mail == last->by_mail;
    one ? void(last->end = std::max(last->end, next->end)) : void(*++last = *next);
  }
  if (last != made_.end()) made_.erase(last + 1, made_.end());
  for_outputs(level, [&](float*& plain, float** mail, std::int64_t) {
    if (mail == nullptr) return;
    const auto made = std::find_if(made_.begin() + first, made_.end(), [&](const Made& m) { return m.begin <= plain && plain < m.end; });
    outputs_.push_back({kept_.size() - 1, offset_in(level, *mail), static_cast<std::size_t>(made - made_.begin()),
                        static_cast<std::size_t>(plain - made->begin)});
  });
}

void Levels::flush(cudaStream_t stream) {
  if (kept_.empty()) return;
  // What a later level writes over, nobody reads where it lies. So no two levels write to one place, in whatever order blocks come to them.
  for (std::size_t l = 0; l + 1 < kept_.size(); ++l) {
    for_outputs(kept_[l], [&](float*& plain, float**, std::int64_t n) {
      const bool written_over = std::any_of(made_.begin() + static_cast<std::ptrdiff_t>(first_made_[l + 1]), made_.end(),
                                            [&](const Made& m) { return m.begin < plain + n && plain < m.end; });
      if (written_over) plain = nullptr;
    });
  }
  std::size_t parts = sizeof(memory_step::Shared);
  for (const Level& level : kept_) {
    if (level.kind == Level::Kind::products) parts = std::max<std::size_t>(parts, input_bytes(level.products.numbers));
  }
  parts = aligned(parts);
  std::int64_t mailed = 0;  // numbers
  for (Made& made : made_) {
    if (!made.read) continue;
    constexpr std::int64_t together = 4;  // numbers that are read at once: they lie as they do in `made`
    const auto shift = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(made.begin) / sizeof(float) % together);
    made.place = mailed + shift;
    mailed += (shift + (made.end - made.begin) + together - 1) / together * together;
  }
  const std::size_t level_bytes = aligned(kept_.size() * sizeof(Level)), mail_bytes = static_cast<std::size_t>(mailed) * sizeof(float);
  char* memory = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // what is allocated here is no part of what is captured
  check(cudaThreadExchangeStreamCaptureMode(&mode), "a graph");
  cudaError_t status = cudaMalloc(&memory, level_bytes + mail_bytes);
  if (status == cudaSuccess) {
    started_.emplace_back(memory, [](void* p) { cudaFree(p); });
    auto* const mail = reinterpret_cast<float*>(memory + level_bytes);
    for (const std::vector<Pointer>* pointers : {&inputs_, &outputs_}) {
      for (const Pointer& p : *pointers) {
        if (!made_[p.made].read) continue;
        const float* const to = mail + made_[p.made].place + p.first;
        std::memcpy(reinterpret_cast<char*>(&kept_[p.level]) + p.offset, &to, sizeof to);
      }
    }
    status = cudaMemcpy(memory, kept_.data(), kept_.size() * sizeof(Level), cudaMemcpyHostToDevice);
  }
  check(cudaThreadExchangeStreamCaptureMode(&mode), "a graph");
  check(status, "device memory");
  constexpr int all_ones = 0xFF;  // `absent`
  if (mail_bytes > 0) check(cudaMemsetAsync(memory + level_bytes, all_ones, mail_bytes, stream), "a token's levels");

  const auto begin = [&](auto kernel) {
    cudaFuncAttributes own{};
    check(cudaFuncGetAttributes(&own, kernel), "a token's levels");
    const std::size_t most = static_cast<std::size_t>(attribute_of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin)) - own.sharedSizeBytes;
    const int stages = stages_in(most - slots * sizeof(Level) - parts);
    const std::size_t shared = slots * sizeof(Level) + parts + static_cast<std::size_t>(stages) * stage_bytes;
    allow_shared_memory("a token's levels", reinterpret_cast<const void*>(kernel), shared);
    cudaLaunchAttribute together{};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = multiprocessors();
    config.blockDim = all_threads;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    const Program program{reinterpret_cast<const Level*>(memory), static_cast<int>(kept_.size()), stages, static_cast<int>(parts)};
    check(cudaLaunchKernelEx(&config, kernel, program), "a token's levels");
  };
  const auto with_rows = [&]<bool delta_rule>() {
    if (rows_ <= 2) return begin(levels_kernel<delta_rule, 2>);
    if (rows_ <= 4) return begin(levels_kernel<delta_rule, 4>);
    begin(levels_kernel<delta_rule, memory_step::most_rows>);
  };
  delta_rule_ ? with_rows.template operator()<true>() : with_rows.template operator()<false>();
  forget();
}

void Levels::forget() {
  kept_.clear();
  first_made_.clear();
  made_.clear();
  inputs_.clear();
  outputs_.clear();
  rows_ = 0;
}

std::vector<Levels::Memory> Levels::end() {
  keeps_ = false;
  forget();
  return std::exchange(started_, {});
}

}  // namespace statescope::cuda
