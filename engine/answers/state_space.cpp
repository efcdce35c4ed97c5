#include "engine/answers/state_space.h"

#include <Eigen/Core>
#include <cmath>
#include <complex>

#include "engine/analysis/legendre.h"
#include "engine/error.h"
#include "engine/mixers/recurrent/hold.h"

namespace statescope {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// As the model's operations have it.
double rounded(double x) { return static_cast<double>(static_cast<float>(x)); }

}  // namespace

StateSpaceParameters state_space_parameters(std::int64_t layer, const Evidence& evidence) {
  return state_space_parameters(layer, evidence.layer(layer), evidence.checkpoint());
}

ChannelRule::ChannelRule(const StateSpaceParameters& space, std::int64_t channel) : diagonal(space.diagonal) {
  const auto N = static_cast<std::size_t>(space.states), first = static_cast<std::size_t>(channel) * N;
  if (!diagonal) {
    const Held held = zero_order_hold(space.A, space.B, space.step(channel));
    for (const double a : held.A) A.push_back(rounded(a));
    for (const double b : held.B) B.push_back(rounded(b));
    C.assign(space.C.begin() + static_cast<std::ptrdiff_t>(first), space.C.begin() + static_cast<std::ptrdiff_t>(first + N));
    return;
  }
  for (std::vector<double>* all : {&A, &B, &C}) all->resize(2 * N);
  for (std::size_t n = 0; n < N; ++n) {
    const std::complex<double> lambda(-std::exp(double{space.A[first + n]}), space.A_imag[first + n]);
    const HeldState held = zero_order_hold(lambda, space.step(channel));
    A[n] = rounded(held.A.real()), A[N + n] = rounded(held.A.imag());
    B[n] = rounded(held.B.real()), B[N + n] = rounded(held.B.imag());
    C[n] = 2.0 * space.C[2 * (first + n)], C[N + n] = -2.0 * space.C[2 * (first + n) + 1];
  }
}

void ChannelRule::advance(std::vector<double>& X) const {
  const std::size_t N = X.size() / (diagonal ? 2 : 1);
  if (!diagonal) {
    const auto n = static_cast<Eigen::Index>(N);
    const Eigen::VectorXd next = Eigen::Map<const Rows>(A.data(), n, n) * Eigen::Map<const Eigen::VectorXd>(X.data(), n);
    std::copy(next.begin(), next.end(), X.begin());
    return;
  }
  for (std::size_t n = 0; n < N; ++n) {
    const double re = X[n], im = X[N + n];
    X[n] = A[n] * re - A[N + n] * im;
    X[N + n] = A[n] * im + A[N + n] * re;
  }
}

std::vector<double> ChannelRule::advance_by(std::int64_t steps) const {
  const std::size_t size = B.size();
  const auto n = static_cast<Eigen::Index>(size);
  Rows power(n, n), all = Rows::Identity(n, n);
  for (std::size_t i = 0; i < size; ++i) {
    std::vector<double> X(size);
    X[i] = 1;
    advance(X);
    for (std::size_t r = 0; r < size; ++r) power(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(i)) = X[r];
  }
  for (; steps > 0; steps /= 2) {
    if (steps % 2 == 1) all = power * all;
    power = power * power;
  }
  return {all.data(), all.data() + all.size()};
}

StateSpaceRun::StateSpaceRun(std::int64_t layer, Evidence& evidence)
    : space(state_space_parameters(layer, evidence)), edits(state_edits(layer, 0, evidence)), u_(evidence.channel(layer, "v")) {
  if (!u_ || space.channels == 0 || space.A.empty()) throw Error("this layer does not tell what entered its states");
}

const StateEdit* StateSpaceRun::last_replaced(std::int64_t token, bool behind) const {
  const StateEdit* last = nullptr;
  for (const StateEdit& edit : edits) {
    if (edit.replaced && edit.token < token + (behind ? 1 : 0)) last = &edit;
  }
  return last;
}

void StateSpaceRun::walk_back(const ChannelRule& rule, std::int64_t channel, std::int64_t token, bool behind, std::int64_t from,
                              const Put& put) const {
  const std::size_t size = rule.B.size();
  const auto n = static_cast<Eigen::Index>(size);
  std::optional<Rows> M;  // from the states behind the last token of a stretch to those at `token`
  const auto at_token = [&](const std::vector<double>& X) {
    if (!M) return X;
    const Eigen::VectorXd later = *M * Eigen::Map<const Eigen::VectorXd>(X.data(), n);
    return std::vector<double>(later.begin(), later.end());
  };
  std::int64_t s = token;
  for (auto edit = edits.rbegin();; ++edit) {
    while (edit != edits.rend() && edit->token >= token + (behind ? 1 : 0)) ++edit;
    const std::int64_t first = std::max(from, edit == edits.rend() ? 0 : edit->token + 1), last = s;
    for (std::vector<double> X = rule.B; s >= first; --s, rule.advance(X)) put(s, at_token(X), true);
    if (edit == edits.rend() || edit->token < from) return;
    const std::vector<double> power = rule.advance_by(last - edit->token);
    const Rows since = Eigen::Map<const Rows>(power.data(), n, n);
    M = M ? Rows(*M * since) : since;
    if (edit->replaced) return put(edit->token, at_token(states_of_channel(*edit->replaced, channel)), false);
    for (Eigen::Index i = 0; i < n; ++i) M->col(i) *= edit->factors[static_cast<std::size_t>(i) % edit->factors.size()];
  }
}

std::vector<double> states_of_channel(const HeadState& state, std::int64_t channel) {
  std::vector<double> X;
  for (std::int64_t i = channel; i < std::ssize(state.values); i += state.columns) X.push_back(state.values[static_cast<std::size_t>(i)]);
  return X;
}

double remembered_input(std::span<const double> X, double step, std::int64_t ago) {
  return legendre_signal(X, (static_cast<double>(ago) + 0.5) * step);
}

}  // namespace statescope
