// The mailbox: how an operation publishes its outputs to the blocks that compute later ones. Every value has an address in global memory
// which holds a sentinel until the value is stored there. A reader polls that address alone, so neither a barrier over all blocks nor a
// fence is needed. Included by .cu files alone.
#pragma once

#include <cstdint>

namespace statescope::cuda::decode {

/// Two buffers: a launch uses one of them and clears the other for the next launch.
struct alignas(256) MailboxBuffers {
  unsigned active, started;  // the buffer in use, 0 or 1; how many blocks have read that
  char* begin;               // the first buffer
  unsigned bytes;            // of each; the second buffer follows the first
};

// ---- in kernels ----

constexpr unsigned not_written = ~0U;  // the sentinel: a NaN that no published value has
/// A block's view of the mailbox. Pointers to operands lead into its first buffer, or to memory that was written before the launch.
struct Mailbox {
  std::uintptr_t begin = 0;
  unsigned bytes = 0;
  std::uintptr_t buffer_offset = 0;  // from the first buffer to the one in use, in bytes

  static __device__ Mailbox of(const MailboxBuffers* box) {
    if (box == nullptr) return {};
    return {reinterpret_cast<std::uintptr_t>(box->begin), box->bytes, box->active * std::uintptr_t{box->bytes}};
  }
  /// A load that was issued; its value may not have been published yet.
  template <class Number>
  struct PendingLoad {
    Number x;
    const float* from;
    bool from_mailbox;
  };
  using Pending = PendingLoad<float>;
  using PendingFour = PendingLoad<float4>;

  __device__ bool has(const float* p) const { return reinterpret_cast<std::uintptr_t>(p) - begin < bytes; }
  template <class Number>
  __device__ Number* current(Number* p) const {
    return has(p) ? reinterpret_cast<Number*>(reinterpret_cast<std::uintptr_t>(p) + buffer_offset) : p;
  }
  static __device__ void store(float* to, float x) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(encoded(x)) : "memory");
  }
  __device__ void put(float* to, float4 x) const {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(current(to)), "r"(encoded(x.x)), "r"(encoded(x.y)),
                 "r"(encoded(x.z)), "r"(encoded(x.w))
                 : "memory");
  }
  static __device__ unsigned encoded(float x) { return __float_as_uint(x) == not_written ? not_written >> 1 : __float_as_uint(x); }
  static __device__ void load(float& x, const float* from) {
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(from) : "memory");
  }
  static __device__ void load(float4& x, const float* from) {
    asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "l"(from)
                 : "memory");
  }
  static __device__ bool has_arrived(float x) { return __float_as_uint(x) != not_written; }
  /// Without a branch.
  static __device__ bool has_arrived(float4 x) { return has_arrived(x.x) & has_arrived(x.y) & has_arrived(x.z) & has_arrived(x.w); }

  __device__ Pending request(const float* p) const { return load_pending<float>(current(p), has(p)); }
  template <class Number>
  static __device__ Number get(PendingLoad<Number> a) {
    while (a.from_mailbox && !has_arrived(a.x)) load(a.x, a.from);
    return a.x;
  }

  template <class Number>
  static __device__ PendingLoad<Number> load_pending(const float* p, bool from_mailbox) {
    PendingLoad<Number> a{{}, p, from_mailbox};
    load(a.x, p);
    return a;
  }
};

/// By one thread of each block that knows which buffer is in use: the last one switches buffers for the next launch.
__device__ inline void swap_buffers(MailboxBuffers& box) {
  if (atomicInc(&box.started, gridDim.x - 1) == gridDim.x - 1) box.active ^= 1;
}

/// The same for pointers that already lead into the buffer in use.
struct CurrentMailbox {
  const Mailbox& mailbox;
  using Pending = Mailbox::Pending;
  using PendingFour = Mailbox::PendingFour;
  static constexpr bool in_persistent_kernel = true;

  __device__ bool has(const float* p) const {
    return reinterpret_cast<std::uintptr_t>(p) - (mailbox.begin + mailbox.buffer_offset) < mailbox.bytes;
  }
  __device__ Pending request(const float* p) const { return Mailbox::load_pending<float>(p, has(p)); }
  __device__ PendingFour request_four(const float* p) const { return Mailbox::load_pending<float4>(p, has(p)); }
  template <class Number>
  __device__ Number get(const Mailbox::PendingLoad<Number>& a) const {
    return Mailbox::get(a);
  }
};

}  // namespace statescope::cuda::decode
