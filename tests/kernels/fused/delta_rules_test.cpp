// Forms of the delta rule that are the ordinary one with other operands, against their equations in double precision.
#include "kernels/fused/delta_rules.h"

#include <array>

#include "tests/kernels/device_cases.h"

namespace statescope::delta_rules_test {
using namespace statescope::testing;

namespace {

struct Problem {
  std::int64_t T, H, K, V, steps;
  Numbers q, k, v, log_decay, beta, c, initial;

  Problem(std::int64_t T_, std::int64_t H_, std::int64_t K_, std::int64_t V_, std::int64_t steps_)
      : T(T_), H(H_), K(K_), V(V_), steps(steps_) {
    Random random(5);
    q = random.uniform({T, H, K});
    k = l2_normalized(random.uniform({T, steps * H, K}), K);
    v = random.uniform({T, steps * H, V});
    log_decay = random.uniform({T, H}, -3, 0);
    beta = random.uniform({T, steps * H});
    for (float& b : beta.values) b = std::abs(b);
    c = random.uniform({T, H}, 0.5F, 1);
    initial = random.uniform({1, H, K, V});
    for (std::int64_t t = 4; t < T; t += 7) log_decay[t * H] = -1000;  // α is 0
  }

  std::string name() const { return "T " + std::to_string(T) + ", " + initial.shape.to_string() + ", steps " + std::to_string(steps); }

  /// S and o in double precision; with c the erase is of what has not decayed.
  void truth(std::vector<double>& S, std::vector<double>& o, bool undecayed) const {
    S.assign(initial.values.begin(), initial.values.end());
    o.clear();
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t h = 0; h < H; ++h) {
        double* state = S.data() + h * K * V;
        const double alpha = std::exp(static_cast<double>(log_decay[t * H + h]));
        for (std::int64_t i = 0; i < K * V && !undecayed; ++i) state[i] *= alpha;
        for (std::int64_t j = 0; j < steps; ++j) step(state, (t * steps + j) * H + h, undecayed ? alpha : 1, undecayed ? c[t * H + h] : 1);
        for (std::int64_t n = 0; n < V; ++n) {
          double sum = 0;
          for (std::int64_t r = 0; r < K; ++r) sum += q[(t * H + h) * K + r] * state[r * V + n];
          o.push_back(0.5 * sum);
        }
      }
    }
  }
  /// u = β (v − c k S),   S ← α S + kᵀ u
  void step(double* state, std::int64_t row, double alpha, double c_t) const {
    for (std::int64_t n = 0; n < V; ++n) {
      double read = 0;
      for (std::int64_t r = 0; r < K; ++r) read += k[row * K + r] * state[r * V + n];
      const double u = beta[row] * (v[row * V + n] - c_t * read);
      for (std::int64_t r = 0; r < K; ++r) state[r * V + n] = alpha * state[r * V + n] + k[row * K + r] * u;
    }
  }

  void run(Side& s, std::int64_t chunk_size, bool undecayed) const {
    const std::array<std::int32_t, 2> all{0, static_cast<std::int32_t>(T)};
    const Tensor state = s.inout_whole(initial);
    const GatedDeltaRule op{.q = s.in(q),
                            .k = s.in(k),
                            .v = s.in(v),
                            .log_decay = s.in(log_decay),
                            .beta = s.in(beta),
                            .scale = 0.5F,
                            .segments = {all, {}},
                            .initial_state = state,
                            .final_state = state,
                            .o = s.out({T, H, V})};
    Backend& backend = *s.operator->();
    if (!undecayed) return gated_delta_rule_steps(op, steps, chunk_size, backend, s.workspace());
    s->gated_delta_rule(with_undecayed_erase(op, s.in(c), backend, s.workspace()), chunk_size);
  }
};

/// On the CPU: state and o.
std::pair<std::vector<float>, std::vector<float>> on_cpu(const Problem& p, std::int64_t chunk_size, bool undecayed) {
  const auto backend = make_cpu_backend(1);
  Workspace workspace(*backend);
  Numbers state = p.initial, o = poisoned({p.T, p.H, p.V});
  const std::array<std::int32_t, 2> all{0, static_cast<std::int32_t>(p.T)};
  const GatedDeltaRule op{.q = p.q.view(),
                          .k = p.k.view(),
                          .v = p.v.view(),
                          .log_decay = p.log_decay.view(),
                          .beta = p.beta.view(),
                          .scale = 0.5F,
                          .segments = {all, {}},
                          .initial_state = state.view(),
                          .final_state = state.view(),
                          .o = o.view()};
  if (undecayed) {
    backend->gated_delta_rule(with_undecayed_erase(op, p.c.view(), *backend, workspace), chunk_size);
  } else {
    gated_delta_rule_steps(op, p.steps, chunk_size, *backend, workspace);
  }
  return {state.values, o.values};
}

const std::vector<Problem>& problems(bool undecayed) {
  static const std::vector<Problem> erasing{{1, 2, 12, 20, 1}, {63, 3, 20, 7, 1}, {130, 1, 16, 16, 1}};
  static const std::vector<Problem> stepping{{1, 2, 12, 20, 2}, {63, 3, 20, 7, 3}, {40, 1, 16, 16, 1}};
  return undecayed ? erasing : stepping;
}

}  // namespace

TEST_CASE("delta rules: an erase of what has not decayed, and several steps a token, are what their equations say") {
  for (const bool undecayed : {true, false}) {
    for (const Problem& p : problems(undecayed)) {
      std::vector<double> S, o;
      p.truth(S, o, undecayed);
      for (const std::int64_t chunk_size : {0, 1, 7, 64}) {
        if (chunk_size == 0 && p.T > 1) continue;
        INFO(p.name() << ", chunk " << chunk_size << (undecayed ? ", undecayed" : ""));
        const auto [state, read] = on_cpu(p, chunk_size, undecayed);
        CHECK(relative_error(state, S) < 2e-5);
        CHECK(relative_error(read, o) < 2e-5);
      }
    }
  }
}

TEST_CASE("device: an erase of what has not decayed, and several steps a token", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const bool undecayed : {true, false}) {
    for (const Problem& p : problems(undecayed)) {
      both(p.name() + (undecayed ? ", undecayed" : ""), [&](Side& s) { p.run(s, p.T == 1 ? 0 : 64, undecayed); });
    }
  }
}

}  // namespace statescope::delta_rules_test
