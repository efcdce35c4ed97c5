// Runs a program on a device, operation by operation, each as one call of the backend.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "kernels/backend.h"
#include "kernels/program/kv_cache.h"
#include "kernels/program/program.h"

namespace statescope::program {

/// T tokens of one sequence, and what a layer keeps.
struct Pass {
  Backend& backend;
  Workspace& workspace;  // where values live; they are gone once the caller releases it
  std::int64_t tokens = 0, position = 0, chunk_size = 64;
  std::int64_t prompt_length = 0;            // tokens at earlier positions are the prompt
  std::span<const std::int32_t> cu_seqlens;  // {0, T}
  ConstTensor x;                             // [T, hidden]
  InputNorm norm;                            // what x still has to pass on its way into products; then nothing else may read x
  Tensor residual;                           // absent, or what the result is added to; then the result must be a product
  Tensor y;                                  // [T, hidden]; absent where the program has no result
  bool shows_result = false;                 // y is wanted besides the residual, by a channel too
  std::span<const Tensor> memory, conv_caches;
  KvCache* kv = nullptr;
};

/// `show` gets the program's channels once all is done. Throws what the backend throws.
void run(const Program& program, const Pass& pass, const std::function<void(std::string_view, ConstTensor)>& show);

}  // namespace statescope::program
