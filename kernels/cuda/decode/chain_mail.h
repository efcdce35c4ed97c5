// Mail (cuda_chain_kernel.h): how a level of a launch hands its numbers on to those behind it. Each number has a place in memory, which
// says that nothing has come yet until the number is there: who needs it looks at it alone, and it needs no fence. Included by .cu files
// alone.
#pragma once

#include <cstdint>

namespace statescope::cuda::chain {

/// Of a launch, two of its kind: one is in use, the other one is emptied for the next launch, whose turn it is then.
struct alignas(256) Mailbox {
  unsigned turn, begun;  // 0 or 1; blocks that know whose turn it is
  char* begin;           // of the first
  unsigned bytes;        // of each; the second one is right behind the first
};

// ---- in kernels ----

constexpr unsigned nothing_yet = ~0U;  // a NaN that no number handed on is
/// A block's view of the mailbox in use: what a level reads, be it there or in memory that was written before the launch.
struct Mail {
  std::uintptr_t begin = 0;
  unsigned bytes = 0;
  std::uintptr_t turn = 0;  // bytes from the first box to the one in use

  static __device__ Mail of(const Mailbox* box) {
    if (box == nullptr) return {};
    return {reinterpret_cast<std::uintptr_t>(box->begin), box->bytes, box->turn * std::uintptr_t{box->bytes}};
  }
  /// What has been asked for, and perhaps not come yet.
  template <class Number>
  struct AskedFor {
    Number x;
    const float* from;
    bool mailed;
  };
  using Asked = AskedFor<float>;
  using AskedFour = AskedFor<float4>;

  __device__ bool has(const float* p) const { return reinterpret_cast<std::uintptr_t>(p) - begin < bytes; }
  template <class Number>
  __device__ Number* in_turn(Number* p) const {
    return has(p) ? reinterpret_cast<Number*>(reinterpret_cast<std::uintptr_t>(p) + turn) : p;
  }
  static __device__ void put_in_turn(float* to, float x) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(as_mail(x)) : "memory");
  }
  __device__ void put(float* to, float4 x) const {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(in_turn(to)), "r"(as_mail(x.x)), "r"(as_mail(x.y)),
                 "r"(as_mail(x.z)), "r"(as_mail(x.w))
                 : "memory");
  }
  static __device__ unsigned as_mail(float x) { return __float_as_uint(x) == nothing_yet ? nothing_yet >> 1 : __float_as_uint(x); }
  static __device__ void load(float& x, const float* from) {
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(from) : "memory");
  }
  static __device__ void load(float4& x, const float* from) {
    asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "l"(from)
                 : "memory");
  }
  static __device__ bool came(float x) { return __float_as_uint(x) != nothing_yet; }
  /// Without a branch.
  static __device__ bool came(float4 x) { return came(x.x) & came(x.y) & came(x.z) & came(x.w); }

  __device__ Asked ask(const float* p) const { return asked_for<float>(in_turn(p), has(p)); }
  template <class Number>
  static __device__ Number get(AskedFor<Number> a) {
    while (a.mailed && !came(a.x)) load(a.x, a.from);
    return a.x;
  }

  template <class Number>
  static __device__ AskedFor<Number> asked_for(const float* p, bool mailed) {
    AskedFor<Number> a{{}, p, mailed};
    load(a.x, p);
    return a;
  }
};

/// By one thread of each block that knows whose turn it is: the last one says whose it is in the next launch.
__device__ inline void give_turn_to_other(Mailbox& box) {
  if (atomicInc(&box.begun, gridDim.x - 1) == gridDim.x - 1) box.turn ^= 1;
}

/// The same for who knows the place in the box in use.
struct MailInTurn {
  const Mail& mail;
  using Asked = Mail::Asked;
  using AskedFour = Mail::AskedFour;
  static constexpr bool in_chain = true;

  __device__ bool has(const float* p) const { return reinterpret_cast<std::uintptr_t>(p) - (mail.begin + mail.turn) < mail.bytes; }
  __device__ Asked ask(const float* p) const { return Mail::asked_for<float>(p, has(p)); }
  __device__ AskedFour ask_four(const float* p) const { return Mail::asked_for<float4>(p, has(p)); }
  template <class Number>
  __device__ Number get(const Mail::AskedFor<Number>& a) const {
    return Mail::get(a);
  }
};

}  // namespace statescope::cuda::chain
