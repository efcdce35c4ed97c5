#include "engine/mixers/recurrent/hold.h"

#include <Eigen/Core>
#include <unsupported/Eigen/MatrixFunctions>

namespace statescope {
namespace {

template <class Number>
using Rows = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

Held zero_order_hold(const std::vector<float>& A, const std::vector<float>& B, double dt) {
  // exp( Δ [A B; 0 0] ) = [Ā B̄; 0 1]
  const auto N = static_cast<Eigen::Index>(B.size());
  Eigen::MatrixXd M = Eigen::MatrixXd::Zero(N + 1, N + 1);
  M.topLeftCorner(N, N) = Eigen::Map<const Rows<float>>(A.data(), N, N).cast<double>();
  M.topRightCorner(N, 1) = Eigen::Map<const Eigen::VectorXf>(B.data(), N).cast<double>();
  const Eigen::MatrixXd held = (dt * M).exp();
  Held result{std::vector<double>(A.size()), std::vector<double>(B.size())};
  Eigen::Map<Rows<double>>(result.A.data(), N, N) = held.topLeftCorner(N, N);
  Eigen::Map<Eigen::VectorXd>(result.B.data(), N) = held.topRightCorner(N, 1);
  return result;
}

HeldState zero_order_hold(std::complex<double> A, double dt) {
  // e^z − 1 = 2 e^{z/2} sinh(z/2), which keeps its digits where z = Δ A is small; where A is 0, B̄ is Δ
  const std::complex<double> half = 0.5 * dt * A;
  return {std::exp(2.0 * half), std::abs(A) > 0 ? 2.0 * std::exp(half) * std::sinh(half) / A : dt};
}

}  // namespace statescope
