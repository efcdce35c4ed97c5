// Makes weights compact (compact_weights.h).
#include "kernels/cuda/common/compact_weights.h"

#include "kernels/cuda/common/bf16x3.h"
#include "kernels/cuda/common/cuda.h"

namespace statescope::cuda {
namespace {

using namespace compact;

// ---- the kernel ----------------------------------------------------------------------------------------------------------------------

constexpr int threads = 256, all_exponents = 256, most_slices = 16;
constexpr unsigned sign = 0x8000, not_finite = 255;
constexpr unsigned lowest_exponent = 1, highest_exponent = 253;  // a normal scale, and a normal number that is its inverse
constexpr unsigned most_above =
    64;  // of an exception's exponent above the others: its products are divided by the scale before they are added

__device__ unsigned exponent_of(unsigned number) { return number >> 7 & 0xFF; }

/// An exception: the offset of its column in x, then the value itself. 0: none.
__device__ unsigned exception(int column, unsigned number) {
  return static_cast<unsigned>(offset_in_term(column) | is_exception) << 16 | number;
}

/// The highest of the 16 exponents that most values of a row have, the lowest such one if there are several; 0: all values are 0.
__device__ unsigned common_exponent(const int* count, unsigned* best) {
  if (threadIdx.x == 0) *best = 0;
  __syncthreads();
  const unsigned top = threadIdx.x;
  if (top >= lowest_exponent && top <= highest_exponent) {
    unsigned numbers = 0;
    for (unsigned e = top < exponents ? lowest_exponent : top - exponents + 1; e <= top; ++e) numbers += static_cast<unsigned>(count[e]);
    if (numbers > 0) atomicMax(best, numbers << 8 | (highest_exponent - top));
  }
  __syncthreads();
  return *best == 0 ? 0 : highest_exponent - (*best & 0xFF);
}

/// The value with its exponent replaced by the code's (2^−15 … 2); false: it is an exception, and becomes 2^−15.
__device__ bool in_window(unsigned& number, unsigned top) {
  const unsigned e = exponent_of(number);
  const bool fits = e >= lowest_exponent && e <= top && e + exponents > top;
  number = fits ? (number & (sign | 0x7F)) | (first_exponent + exponents - 1 - (top - e)) << 7 : first_exponent << 7;
  return fits;
}

/// Stores eight values, from column 8 i of a slice on, where the lane that multiplies them loads them. `blocks`: k-blocks of the slice.
__device__ void store(unsigned* slice, int blocks, int i, CompactEight eight) {
  const int block = i / lanes_per_row, lane = i % lanes_per_row, warp = block % warps_per_row, position = block / warps_per_row % 4;
  const int group = block / group_k_blocks, whole_groups = blocks / group_k_blocks;
  constexpr int line_words = row_vector_bytes / 4, lane_words = lane_bytes / 4;
  const unsigned words[3] = {eight.a, eight.b, eight.c};
  for (int k = 0; k < 3; ++k) {
    const int word = 3 * position + k;  // of the lane
    if (group < whole_groups) {
      slice[(group * group_k_blocks * k_block_bytes) / 4 + (3 * warp + word / lane_words) * line_words + lane * lane_words +
            word % lane_words] = words[k];
    } else {
      // Half a group: 16 bytes of each lane, then 8.
      unsigned* const own = slice + (group * group_k_blocks * k_block_bytes) / 4 + warp * (line_words + line_words / 2);
      own[word < lane_words ? lane * lane_words + word : line_words + lane * (lane_words / 2) + word - lane_words] = words[k];
    }
  }
}

/// A block has a row: it counts exponents, stores the values, then the exceptions after them. `failed`: whether a row has more exceptions
/// than there is room for, or one that is too large for float32 beside the others.
__global__ void compact_kernel(char* to, CompactWeights::Matrix m, int* failed) {
  __shared__ int count[all_exponents];
  __shared__ unsigned best, exceptions[most_slices][most_exceptions];
  __shared__ int exception_count[most_slices], nonzero;
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x), eights = m.in / 8;
  const auto* const from = reinterpret_cast<const uint4*>(m.weight + row * m.row_bytes);
  count[thread] = 0;
  if (thread < most_slices) exception_count[thread] = 0;
  if (thread == 0) nonzero = 0;
  __syncthreads();
  for (int i = thread; i < eights; i += threads) {
    const uint4 pairs = from[i];
    for (const unsigned pair : {pairs.x, pairs.y, pairs.z, pairs.w}) {
      for (const unsigned number : {pair & 0xFFFF, pair >> 16}) {
        atomicAdd(&count[exponent_of(number)], 1);
        if ((number & ~sign) != 0) nonzero = 1;
      }
    }
  }
  __syncthreads();
  const unsigned top = common_exponent(count, &best);
  const bool zero = nonzero == 0;
  const int blocks = m.in / k_block_columns;
  for (int i = thread; i < eights; i += threads) {
    const uint4 pairs = from[i];
    unsigned words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
    const int first_block = i / lanes_per_row / m.k_blocks_per_slice * m.k_blocks_per_slice, slice = first_block / m.k_blocks_per_slice;
    const int of_slice = min(m.k_blocks_per_slice, blocks - first_block), own = i - first_block * lanes_per_row;
    for (int k = 0; k < 4; ++k) {
      unsigned halves[2] = {words[k] & 0xFFFF, words[k] >> 16};
      for (int h = 0; h < 2; ++h) {
        const unsigned number = halves[h];
        if (in_window(halves[h], top) || zero) continue;
        const bool too_large = exponent_of(number) > top + most_above && exponent_of(number) < not_finite;
        const int n = atomicAdd(&exception_count[slice], too_large ? most_exceptions + 1 : 1);
        if (n < most_exceptions) exceptions[slice][n] = exception(8 * own + 2 * k + h, number);
      }
      words[k] = halves[0] | halves[1] << 16;
    }
    char* const place = to + bytes_before(slice, first_block) * m.out + std::int64_t{row} * (of_slice * k_block_bytes + trailer_bytes);
    store(reinterpret_cast<unsigned*>(place), of_slice, own, packed_eight({words[0], words[1], words[2], words[3]}));
  }
  __syncthreads();
  const int slice = thread, first_block = slice * m.k_blocks_per_slice;
  if (first_block >= blocks) return;
  const int of_slice = min(m.k_blocks_per_slice, blocks - first_block), n = exception_count[slice];
  if (n > most_exceptions) {
    *failed = 1;
    return;
  }
  // Sorted by offset, so that the bytes are the same each time.
  for (int i = 1; i < n; ++i) {
    for (int j = i; j > 0 && exceptions[slice][j] < exceptions[slice][j - 1]; --j) {
      const unsigned later = exceptions[slice][j - 1];
      exceptions[slice][j - 1] = exceptions[slice][j], exceptions[slice][j] = later;
    }
  }
  auto* const behind =
      reinterpret_cast<unsigned*>(to + bytes_before(slice, first_block) * m.out +
                                  std::int64_t{row} * (of_slice * k_block_bytes + trailer_bytes) + of_slice * k_block_bytes);
  behind[0] = zero ? 0 : top << 23;
  // Rows start at different warps, to spread the exceptions.
  for (int i = 0; i < most_exceptions; ++i) behind[1 + (i + row) % most_exceptions] = i < n ? exceptions[slice][i] : 0;
}

std::size_t bytes_of(const CompactWeights::Matrix& m) {
  const int blocks = m.in / k_block_columns, slices = (blocks + m.k_blocks_per_slice - 1) / m.k_blocks_per_slice;
  return static_cast<std::size_t>(m.out) * static_cast<std::size_t>(blocks * k_block_bytes + slices * trailer_bytes);
}

/// Null where a row has too many exceptions, or memory is full after all.
char* made_of(const CompactWeights::Matrix& m, cudaStream_t stream) {
  const std::size_t bytes = bytes_of(m);
  void* to = nullptr;
  if (cudaMallocAsync(&to, bytes + sizeof(int), stream) == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  auto* const failed = reinterpret_cast<int*>(static_cast<char*>(to) + bytes);
  int has_failed = 0;
  check(cudaMemsetAsync(failed, 0, sizeof *failed, stream), "compact weights");
  launch("compact weights", compact_kernel, dim3(static_cast<unsigned>(m.out)), dim3(threads), 0, stream, static_cast<char*>(to), m,
         failed);
  check(cudaMemcpyAsync(&has_failed, failed, sizeof has_failed, cudaMemcpyDeviceToHost, stream), "compact weights");
  check(cudaStreamSynchronize(stream), "compact weights");
  if (has_failed == 0) return static_cast<char*>(to);
  cudaFreeAsync(to, stream);
  return nullptr;
}

}  // namespace

void CompactWeights::hold(const void* memory, std::size_t bytes) { held_[static_cast<const char*>(memory)] = {bytes, {}}; }

void CompactWeights::release(const void* memory, cudaStream_t stream) noexcept {
  const auto held = held_.find(static_cast<const char*>(memory));
  if (held == held_.end()) return;
  for (const auto& [weight, made] : held->second.made) {
    if (made.memory == nullptr) continue;
    cudaFreeAsync(made.memory, stream);
    bytes_ -= made.bytes;
  }
  held_.erase(held);
}

const char* CompactWeights::of(const Matrix& matrix_descriptor, cudaStream_t stream) {
  auto held = held_.upper_bound(matrix_descriptor.weight);
  if (held == held_.begin() || matrix_descriptor.weight >= (--held)->first + held->second.bytes) return nullptr;
  const auto made = held->second.made.find(matrix_descriptor.weight);
  if (made != held->second.made.end()) return made->second.matrix_descriptor == matrix_descriptor ? made->second.memory : nullptr;
  cudaStreamCaptureStatus capture{};
  check(cudaStreamIsCapturing(stream, &capture), "a graph");
  if (capture != cudaStreamCaptureStatusNone) return nullptr;
  return held->second.made.emplace(matrix_descriptor.weight, make(matrix_descriptor, stream)).first->second.memory;
}

CompactWeights::Made CompactWeights::make(const Matrix& matrix_descriptor, cudaStream_t stream) {
  Made made{matrix_descriptor, bytes_of(matrix_descriptor), nullptr};
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the device's memory");
  const bool has_room = bytes_ + made.bytes <= (free + bytes_) / 2;
  if (!has_room || !fits(matrix_descriptor.in, matrix_descriptor.k_blocks_per_slice) || matrix_descriptor.row_bytes % lane_bytes != 0)
    return made;
  made.memory = made_of(matrix_descriptor, stream);
  if (made.memory != nullptr) bytes_ += made.bytes;
  return made;
}

}  // namespace statescope::cuda
