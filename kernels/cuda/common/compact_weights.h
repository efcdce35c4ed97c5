// bf16 weights in 12 bits each, without loss, for a token's decoding (cuda_chain.h), which is bound by their bytes. Of a row's numbers
// nearly all have one of 16 neighbouring exponents: a number keeps its sign, its 7 bits behind the point and 4 bits that say which of
// the 16. The few others stand behind the row as they are. Included by .cu files alone.
//
// A row's pieces stand apart: all rows' first pieces, then all rows' second ones, and so on. A piece has 48 bytes for every 32 columns, in
// the order in which lanes multiply them (cuda_chain_products.h), then 32 bytes: the number by which sums of its products are multiplied,
// and its exceptions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>

namespace statescope::cuda {

namespace compact {

constexpr int block_columns = 32, block_bytes = 48, behind_bytes = 32;
constexpr int lanes_of_row = 4, warps_of_row = 4;        // each lane has 8 columns of a block; each warp has every fourth block
constexpr int group_blocks = 16, half_group_blocks = 8;  // that warps multiply together; a piece has groups, and perhaps a half
constexpr int lane_bytes = 16, line_of_lanes = lanes_of_row * lane_bytes;  // that a lane reads at once; that the lanes of a row do
constexpr int exponents = 16, most_exceptions = 7;                         // of a piece of a row
constexpr int is_exception = 1;                                            // beside its place, which is even
constexpr unsigned first_exponent = 112;  // what code 0 means: numbers are made 2^−15 … 2, and sums multiplied by `scale` of the row
constexpr unsigned in_place = 0x87FF87FF, in_place_exponents = 0x38003800;

/// Where a piece begins in bytes per row of all rows, behind so many pieces and blocks.
__device__ inline std::int64_t bytes_before(int pieces, int blocks) {
  return std::int64_t{blocks} * block_bytes + std::int64_t{pieces} * behind_bytes;
}
/// Whether rows of n numbers, in pieces of so many blocks, can be compact.
inline bool fits(int n, int blocks_of_piece) {
  const int last = n / block_columns % blocks_of_piece;  // 0: a whole piece
  return n % (half_group_blocks * block_columns) == 0 && blocks_of_piece % half_group_blocks == 0 && blocks_of_piece >= group_blocks &&
         (last == 0 || last >= group_blocks);
}

/// Eight numbers of a lane as 24 bits of each pair: three pairs stand where bf16 has them but for the upper four bits of their exponents;
/// the fourth pair's bits stand there.
struct Eight {
  unsigned a, b, c;
};

#ifdef __CUDACC__

/// Of pairs of bf16 numbers with exponents from `first_exponent` on.
__device__ inline Eight packed_eight(uint4 pairs) {
  constexpr unsigned spare = ~in_place;
  const unsigned last = pairs.w & in_place;
  return {(pairs.x & in_place) | (last << 4 & spare), (pairs.y & in_place) | (last << 8 & spare),
          (pairs.z & in_place) | (__funnelshift_l(last, last, 12) & spare)};
}
/// The bits that all their exponents have. The compiler does not know them: one instruction masks and adds, with two constants it took two.
__device__ inline unsigned common_bits() { return in_place_exponents * gridDim.z; }
/// `common`: common_bits, in a register.
__device__ inline uint4 unpacked_eight(Eight x, unsigned common) {
  const unsigned last = (x.a >> 4 & 0x07800780) | common | (x.b >> 8 & 0x00780078) | (__funnelshift_r(x.c, x.c, 12) & 0x80078007);
  return {(x.a & in_place) | common, (x.b & in_place) | common, (x.c & in_place) | common, last};
}

#endif

}  // namespace compact

/// The compact forms of a stream's weights, made when a product of one row asks for them first. Weights keep their own form beside it, for
/// products of many rows. For one thread at a time.
class CompactWeights {
 public:
  CompactWeights() = default;
  CompactWeights(const CompactWeights&) = delete;
  CompactWeights& operator=(const CompactWeights&) = delete;

  /// There are weights in this memory, which nobody writes once products read them.
  void hold(const void* memory, std::size_t bytes);
  /// The memory is given back, and what was made of it.
  void release(const void* memory, cudaStream_t stream) noexcept;

  /// bf16 weights of `out` rows of `in` numbers, `row_bytes` apart, in pieces of so many blocks.
  struct Matrix {
    const char* weight;
    std::int64_t row_bytes;
    int out, in, blocks_of_piece;
    bool operator==(const Matrix&) const = default;
  };
  /// Null where there is none: the weights may change, rows do not fit or have too many exceptions, a graph is captured, or memory is
  /// short: half of what is free is left alone.
  const char* of(const Matrix& matrix, cudaStream_t stream);

 private:
  struct Made {
    Matrix matrix;
    std::size_t bytes;
    char* memory;  // null: there is none
  };
  struct Held {
    std::size_t bytes;
    std::map<const char*, Made> made;
  };
  Made make(const Matrix& matrix, cudaStream_t stream);
  std::map<const char*, Held> held_;
  std::size_t bytes_ = 0;  // of all that was made
};

}  // namespace statescope::cuda
