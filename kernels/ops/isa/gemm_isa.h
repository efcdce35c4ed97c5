// The product of gemm_eigen.cpp, compiled once for each instruction set. Nothing but the plain struct Gemm crosses between them.
#pragma once

namespace statescope {

struct Gemm;

void gemm_baseline(const Gemm& product);
void gemm_v3(const Gemm& product);
void gemm_v4(const Gemm& product);

}  // namespace statescope
