// The CUDA forms of copy, gather and scatter of rows.
#include "kernels/cuda/common/rowwise.h"

namespace statescope::cuda {
namespace {

using namespace rowwise;

struct Same {
  __device__ float operator()(std::int64_t, unsigned, float x) const { return x; }
};

/// dst[t] = src[rows[t]], without rows src[t]. A thread owns a unit (bytes that are moved at once) of row t of dst, in long rows more.
template <class Unit>
__global__ void copy_rows_kernel(Rows<Unit> dst, Rows<const Unit> src, const std::int32_t* rows, std::int64_t count, unsigned units) {
  begin_overlapped();
  const std::int64_t t = own_row();
  if (t >= count) return;
  const Unit* from = src.row(rows != nullptr ? rows[t] : t);
  for (unsigned i = own_column(); i < units; i += all_columns()) dst.row(t)[i] = from[i];
}

/// dst[t] = src[rows[t]], without rows src[t], from one type to another. A thread owns a number of row t of dst, in long rows more.
__global__ void convert_rows_kernel(Numbers<void> dst, Numbers<const void> src, const std::int32_t* rows, std::int64_t count, unsigned n) {
  begin_overlapped();
  const std::int64_t t = own_row();
  if (t >= count) return;
  const std::int64_t from = rows != nullptr ? rows[t] : t;
  for (unsigned i = own_column(); i < n; i += all_columns()) dst.store(t, i, src.load<1>(from, i));
}

/// dst[rows[t]] += weight[t] · src[t]. The blocks of the first t that names a row of dst own this row, each some of its columns, and add
/// all that belongs there, in the order of t: the same numbers every time. Blocks of later t that name it have nothing to do.
__global__ void scatter_add_rows_kernel(Numbers<void> dst, Numbers<const void> src, const std::int32_t* rows, Rows<const float> weight,
                                        std::int64_t count, std::int64_t n) {
  __shared__ unsigned mine[most_threads / warp_size];  // bit s of mine[w]: rows[begin + 32 w + s] is the block's row
  const std::int64_t own = blockIdx.x;
  const std::int32_t row = rows[own];
  bool named_before = false;
  for (std::int64_t t = threadIdx.x; t < own; t += most_threads) named_before |= rows[t] == row;
  if (__syncthreads_or(named_before)) return;

  for (std::int64_t begin = own; begin < count; begin += most_threads) {
    const bool named = begin + threadIdx.x < count && rows[begin + threadIdx.x] == row;
    const unsigned bits = __ballot_sync(~0U, named);
    if (threadIdx.x % warp_size == 0) mine[threadIdx.x / warp_size] = bits;
    if (__syncthreads_or(named)) {
      for (unsigned w = 0; w < most_threads / warp_size; ++w) {
        for (unsigned left = mine[w]; left != 0; left &= left - 1) {
          const std::int64_t t = begin + w * warp_size + __ffs(static_cast<int>(left)) - 1;
          const float factor = weight ? *weight.row(t) : 1;
          for (std::int64_t i = blockIdx.y * most_threads + threadIdx.x; i < n; i += gridDim.y * most_threads)
            dst.store<1>(row, i, {dst.number(row, i) + factor * src.number(t, i)});
        }
      }
    }
    __syncthreads();  // before mine is written again
  }
}

/// The rows of x as `Unit`s, of which a number and a stride must be a multiple.
template <class Unit, class Byte>
auto units_of(BasicTensor<Byte> x, std::int64_t bytes) {
  using Element = std::conditional_t<std::is_const_v<Byte>, const Unit, Unit>;
  return Rows<Element>{static_cast<Element*>(x.data), x.stride * bytes / static_cast<std::int64_t>(sizeof(Unit))};
}

template <class Unit>
void copy_units(const char* name, Tensor dst, ConstTensor src, const std::int32_t* device_rows, cudaStream_t stream) {
  const auto bytes = static_cast<std::int64_t>(size_of(src.dtype));
  const std::int64_t units = src.row_size() * bytes / static_cast<std::int64_t>(sizeof(Unit));
  const auto [grid, block] = cover(dst.rows(), units);
  launch_overlapped(name, copy_rows_kernel<Unit>, grid, block, 0, stream, units_of<Unit>(dst, bytes), units_of<Unit>(src, bytes),
                    device_rows, dst.rows(), static_cast<unsigned>(units));
}

void copy_rows(const char* name, Tensor dst, ConstTensor src, const std::int32_t* device_rows, cudaStream_t stream) {
  if (dst.dtype != src.dtype) {
    const auto [grid, block] = cover(dst.rows(), dst.row_size());
    return launch_overlapped(name, convert_rows_kernel, grid, block, 0, stream, numbers(dst), numbers(src), device_rows, dst.rows(),
                             static_cast<unsigned>(dst.row_size()));
  }
  const auto bytes = static_cast<std::int64_t>(size_of(src.dtype));
  const auto starts_aligned = [&](ConstTensor x) {
    return reinterpret_cast<std::uintptr_t>(x.data) % sizeof(uint4) == 0 && x.stride * bytes % sizeof(uint4) == 0;
  };
  if (src.row_size() * bytes % sizeof(uint4) == 0 && starts_aligned(dst) && starts_aligned(src))
    return copy_units<uint4>(name, dst, src, device_rows, stream);
  if (bytes == sizeof(std::uint16_t)) return copy_units<std::uint16_t>(name, dst, src, device_rows, stream);
  copy_units<std::uint32_t>(name, dst, src, device_rows, stream);
}

}  // namespace

void copy(Tensor dst, ConstTensor src, cudaStream_t stream) {
  require_same_rows("copy", dst, src);
  if (dst.data == src.data && dst.stride == src.stride) return;
  if (dst.dtype != src.dtype) return map("copy", dst, stream, Same(), src);
  constexpr std::size_t much = std::size_t{1} << 28;  // the runtime's copy of 1 GiB reaches 4.19 TB/s on an H200, ours 4.08
  const std::size_t bytes = static_cast<std::size_t>(src.shape.size()) * size_of(src.dtype);
  if (dst.contiguous() && src.contiguous() && bytes >= much)
    return check(cudaMemcpyAsync(dst.data, src.data, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
  copy_rows("copy", dst, src, nullptr, stream);
}

void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* device_rows, cudaStream_t stream) {
  if (dst.row_size() != src.row_size()) fail("gather_rows", dst, src);
  copy_rows("gather_rows", dst, src, device_rows, stream);
}

void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* device_rows, ConstTensor weight, cudaStream_t stream) {
  if (dst.row_size() != src.row_size()) fail("scatter_add_rows", dst, src);
  constexpr std::int64_t few = 32;  // rows, which do not fill the device with a block each
  const dim3 grid(static_cast<unsigned>(src.rows()), src.rows() <= few ? blocks_for(src.row_size(), most_threads) : 1);
  launch("scatter_add_rows", scatter_add_rows_kernel, grid, most_threads, 0, stream, numbers(dst), numbers(src), device_rows, f32(weight),
         src.rows(), src.row_size());
}

}  // namespace statescope::cuda
