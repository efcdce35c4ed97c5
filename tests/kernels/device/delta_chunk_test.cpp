// The chunk form of the gated delta rule on a CUDA device against the CPU. Its products are rounded to bfloat16, so results are compared by
// the norm of their difference.
#include "kernels/ops/gated_delta_rule.h"
#include "tests/kernels/device_chunk_cases.h"

namespace statescope::device_delta_chunk_test {
using namespace statescope::testing;

namespace {

constexpr Decay strong_decay{"strong", -5, 0};

struct Heads {
  std::int64_t state, q, k, v, gates;
};
Heads same(std::int64_t heads) { return {heads, heads, heads, heads, heads}; }

struct Problem {
  Packed segments;
  Heads heads;
  std::int64_t K, V;
  Decay decay;
  bool has_decay = true, has_beta = true;
  float scale = 0.5F;
  Numbers q, k, v, log_decay, beta, initial;

  Problem(Packed segments_, const Heads& heads_, std::int64_t K_, std::int64_t V_, const Decay& decay_, bool channels = false)
      : segments(std::move(segments_)), heads(heads_), K(K_), V(V_), decay(decay_) {
    Random random(1);
    const std::int64_t rows = segments.rows();
    q = random.uniform({rows, heads.q, K});
    k = l2_normalized(random.uniform({rows, heads.k, K}), K);
    v = random.uniform({rows, heads.v, V});
    beta = random.uniform({rows, heads.gates}, 0, 2);
    initial = random.uniform({segments.slots, heads.state, K, V});
    log_decay = decay.draw(random, channels ? Shape{rows, heads.gates, K} : Shape{rows, heads.gates});
  }

  GatedDeltaRule op(Numbers& final_state, Numbers& o) const {
    GatedDeltaRule op;
    op.q = q.view(), op.k = k.view(), op.v = v.view();
    if (has_decay) op.log_decay = log_decay.view();
    if (has_beta) op.beta = beta.view();
    op.scale = scale, op.segments = segments.view();
    op.initial_state = initial.view(), op.final_state = final_state.view(), op.o = o.view();
    return op;
  }
  static void apply(const GatedDeltaRule& op, std::int64_t chunk_size) { gated_delta_rule_chunk(op, chunk_size); }
  static void apply_on(Backend& backend, const GatedDeltaRule& op) { backend.gated_delta_rule(op, 64); }

  std::string name() const {
    return std::string(log_decay.shape.rank() == 3 ? "each channel, " : "") + "T " + std::to_string(segments.rows()) + ", segments " +
           std::to_string(segments.view().count()) + ", " + initial.shape.to_string() + ", decay " + (has_decay ? decay.name : "absent") +
           (has_beta ? "" : ", without beta");
  }
};

/// Of rows of any length, one of them of none.
struct UnitProblem : Problem {
  UnitProblem(const Packed& segments_, const Heads& heads_, std::int64_t K_, std::int64_t V_, const Decay& decay_)
      : Problem(segments_, heads_, K_, V_, decay_) {
    Random random(2);
    q = random.uniform(q.shape, -3, 3);
    k = random.uniform(k.shape, -0.1F, 0.2F);
    for (Numbers* x : {&q, &k}) {
      if (segments.rows() > 1) std::fill_n(x->row(1), K, 0.F);
    }
    shorten({&q, &k, &v});
  }
  static void apply(const GatedDeltaRule& op, std::int64_t chunk_size) {
    const std::shared_ptr<Backend> cpu = make_cpu_backend();
    Workspace workspace(*cpu);
    cpu->unit_delta_rule(op, chunk_size, workspace);
  }
  static void apply_on(Backend& backend, const GatedDeltaRule& op) {
    Workspace workspace(backend);
    backend.unit_delta_rule(op, 64, workspace);
  }
};

}  // namespace

TEST_CASE("device: gated delta rule in chunks, bfloat16 operands", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int64_t T : {63, 600}) {
    for (const auto& [K, V] : {std::pair{64, 64}, {128, 128}, {60, 21}, {128, 130}, {256, 512}}) {
      Problem p(Packed(T), same(2), K, V, mild_decay);
      shorten({&p.q, &p.k, &p.v});
      for (const std::int64_t gap : {0, 3, 8}) {
        INFO(p.name() << ", rows " << gap << " apart");
        check_close(run_in_bf16(*backend, p, gap), run(p, 64), bf16_rounding);
      }
    }
  }
}

// On a device of compute capability 9.0 a form of its own.
TEST_CASE("device: gated delta rule in chunks, heads of more than 64 channels in bfloat16", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  const auto compare = [&](const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V, const Decay& decay) {
    Problem p(segments, heads, K, V, decay);
    shorten({&p.q, &p.k, &p.v});
    const Result<float> truth = run(p, 64);
    for (const std::int64_t gap : {0, 8}) {
      INFO(p.name() << ", rows " << gap << " apart");
      check_close(run_in_bf16(*backend, p, gap), truth, bf16_rounding);
    }
  };
  for (const std::int64_t T : {32, 63, 64, 65, 600}) {
    for (const auto& [K, V] : {std::pair{256, 512}, {136, 8}, {200, 72}, {128, 128}, {72, 40}})
      compare(Packed(T), same(2), K, V, mild_decay);
  }
  compare(Packed(std::int64_t{2100}), same(1), 256, 512, mild_decay);
  compare(Packed(std::int64_t{2100}), same(8), 128, 128, mild_decay);
  for (const std::int64_t K : {256, 128}) {
    for (const Decay& decay : {no_decay, weak_decay, strong_decay, broken_decay, wiping_decay})
      compare(Packed(std::int64_t{600}), same(2), K, 72, decay);
  }
  for (const std::int64_t K : {136, 104}) {
    for (const Heads& heads : {same(3), Heads{4, 2, 2, 4, 1}}) {
      compare(Packed({5, 0, 1, 70, 600, 17}, {}, 6), heads, K, 40, mild_decay);
      compare(Packed({256, 0, 0, 257, 64, 1, 511, 128}, {}, 8), heads, K, 40, broken_decay);
    }
  }
}

TEST_CASE("device: gated delta rule in chunks, q and k brought to length 1", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  const auto compare = [&](const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V, const Decay& decay) {
    const UnitProblem p(segments, heads, K, V, decay);
    const Result<float> truth = run(p, 64);
    // Rows 3 apart, and heads of 60, are not 16-byte vectors: the norm is a launch of its own.
    for (const std::int64_t gap : {0, 3, 8}) {
      INFO(p.name() << ", rows " << gap << " apart");
      check_close(run_in_bf16(*backend, p, gap), truth, bf16_rounding);
    }
    INFO(p.name() << ", float32");
    check_close(run_on(*backend, p, 0, false), truth, bf16_rounding);
  };
  for (const std::int64_t T : {31, 32, 65, 600}) {
    for (const auto& [K, V] : {std::pair{256, 512}, {136, 8}, {128, 130}, {64, 128}, {60, 20}})
      compare(Packed(T), same(2), K, V, mild_decay);
  }
  // Blocks of 128 columns in pairs and alone, of the states and of the transitions.
  for (const std::int64_t V : {128, 256, 384}) compare(Packed(std::int64_t{2100}), same(1), 256, V, mild_decay);
  for (const Heads& heads : {same(3), Heads{4, 2, 2, 4, 1}}) {
    for (const std::int64_t K : {136, 64}) {
      compare(Packed({5, 0, 1, 70, 600, 17}, {}, 6), heads, K, 40, strong_decay);
      compare(Packed({256, 0, 0, 257, 64, 1, 511, 128}, {}, 8), heads, K, 40, broken_decay);
    }
  }
  compare(Packed(std::int64_t{0}), same(2), 256, 64, mild_decay);
}

// o passes the norm of its heads and a gate: on a device of compute capability 9.0 in the epilogue, where heads are one, two or four
// blocks of 128 columns.
TEST_CASE("device: gated delta rule in chunks, read out", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16), cpu = make_cpu_backend();
  if (!backend) return;
  Workspace workspace(*backend), of_cpu(*cpu);
  const auto compare = [&](const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V, bool weighted = true,
                           Activation act = Activation::silu) {
    const UnitProblem p(segments, heads, K, V, mild_decay);
    Random random(3);
    const Shape of_rows{segments.rows(), heads.state * V};
    Numbers gate = random.uniform(of_rows, -6, 6), weight = random.uniform({V}, -2, 2);
    shorten({&gate});
    InputNorm readout{.group = V, .weight = weighted ? weight.view() : Tensor{}, .eps = 1e-5F, .gate = gate.view(), .act = act};
    Numbers o = poisoned({segments.rows(), heads.state, V}), final_state = poisoned(p.initial.shape);
    cpu->unit_delta_rule(p.op(final_state, o), 64, of_cpu, readout);
    const Result<float> truth{o.values, final_state.values};
    for (const std::int64_t gap : {0, 3, 8}) {
      INFO(p.name() << ", rows " << gap << " apart" << (weighted ? "" : ", without weight"));
      DeviceTensors device(*backend, gap);
      readout.gate = device.rows(gate.view(), DType::bf16);
      if (weighted) readout.weight = device.whole(weight.view());
      check_close(run_in_bf16(*backend, p, gap, [&](const GatedDeltaRule& op) { backend->unit_delta_rule(op, 64, workspace, readout); }),
                  truth, bf16_rounding);
    }
  };
  for (const std::int64_t T : {31, 32, 65, 600}) {
    for (const auto& [K, V] : {std::pair{256, 512}, {136, 8}, {128, 130}, {128, 128}, {72, 200}, {64, 128}, {60, 20}})
      compare(Packed(T), same(2), K, V);
  }
  for (const std::int64_t V : {128, 256, 384, 448, 512, 640}) compare(Packed(std::int64_t{2100}), same(1), 256, V);
  compare(Packed(std::int64_t{8192}), same(6), 256, 512);
  compare(Packed(std::int64_t{2100}), same(8), 128, 128, false);
  compare(Packed(std::int64_t{600}), same(2), 256, 512, true, Activation::sigmoid);
  for (const Heads& heads : {same(3), Heads{4, 2, 2, 4, 1}}) {
    compare(Packed({5, 0, 1, 70, 600, 17}, {}, 6), heads, 136, 264);
    compare(Packed({256, 0, 0, 257, 64, 1, 511, 128}, {}, 8), heads, 128, 40);
  }
  compare(Packed(std::int64_t{0}), same(2), 256, 64);
}

TEST_CASE("device: gated delta rule in chunks, shapes", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int64_t T : {1, 2, 63, 64, 65, 130, 1000}) {
    for (const std::int64_t K : {16, 60, 64, 128}) compare_chunks(*backend, Problem(Packed(T), same(3), K, K, mild_decay));
    for (const std::int64_t H : {1, 8}) compare_chunks(*backend, Problem(Packed(T), same(H), 64, 64, mild_decay));
  }
  for (const std::int64_t T : {65, 600}) {
    for (const auto& [K, V] : {std::pair{60, 1}, {16, 128}, {128, 20}, {100, 256}, {128, 130}, {256, 512}, {200, 33}}) {
      compare_chunks(*backend, Problem(Packed(T), same(3), K, V, mild_decay));
    }
  }
  compare_chunks(*backend, Problem(Packed(std::int64_t{0}), same(3), 16, 16, mild_decay));
  compare_chunks(*backend, Problem(Packed(std::int64_t{8192}), same(8), 128, 128, mild_decay));
  compare_chunks(*backend, Problem(Packed(std::int64_t{3000}), same(2), 256, 512, mild_decay));
}

TEST_CASE("device: gated delta rule in chunks, decays", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int64_t T : {65, 1000}) {
    for (const Decay& decay : {no_decay, weak_decay, mild_decay, strong_decay, broken_decay, wiping_decay}) {
      Problem p(Packed(T), same(3), 60, 20, decay);
      compare_chunks(*backend, p);
      p.has_beta = false;
      compare_chunks(*backend, p);
    }
    Problem p(Packed(T), same(3), 60, 20, no_decay);
    p.has_decay = false;
    compare_chunks(*backend, p);
  }
}

TEST_CASE("device: gated delta rule in chunks, segments and grouped heads", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Heads& heads : {same(3), Heads{4, 2, 2, 4, 4}, Heads{4, 4, 4, 2, 1}, Heads{6, 3, 3, 2, 6}}) {
    for (const Packed& segments : {mixed_lengths(), many_segments()}) {
      for (const Decay& decay : {mild_decay, broken_decay}) compare_chunks(*backend, Problem(segments, heads, 60, 20, decay));
    }
  }
}

// The keys' channels decay each by itself: scores are taken at the row before each block of 16, those on the diagonal as they stand.
TEST_CASE("device: gated delta rule in chunks, each channel forgets by itself", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  const auto compare = [&](const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V, const Decay& decay,
                           bool beta = true) {
    Problem p(segments, heads, K, V, decay, true);
    p.has_beta = beta;
    compare_chunks(*backend, p);
    shorten({&p.q, &p.k, &p.v});
    const Result<float> truth = run(p, 64);
    for (const std::int64_t gap : {0, 3, 8}) {
      INFO(p.name() << ", bfloat16, rows " << gap << " apart");
      check_close(run_in_bf16(*backend, p, gap), truth, bf16_rounding);
    }
  };
  for (const std::int64_t T : {32, 63, 64, 65, 600}) {
    for (const auto& [K, V] : {std::pair{64, 64}, {128, 128}, {60, 21}, {128, 130}, {200, 33}, {256, 72}, {16, 128}})
      compare(Packed(T), same(2), K, V, mild_decay);
  }
  for (const Decay& decay : {no_decay, weak_decay, strong_decay, broken_decay, wiping_decay}) {
    for (const std::int64_t K : {60, 128, 256}) compare(Packed(std::int64_t{600}), same(2), K, 40, decay);
    compare(Packed(std::int64_t{1000}), same(3), 60, 20, decay, false);
  }
  for (const Heads& heads : {same(3), Heads{4, 2, 2, 4, 4}, Heads{4, 4, 4, 2, 1}}) {
    for (const Packed& segments : {mixed_lengths(), many_segments()})
      compare_chunks(*backend, Problem(segments, heads, 60, 20, broken_decay, true));
    compare(Packed({5, 0, 1, 70, 600, 17}, {}, 6), heads, 60, 20, broken_decay);
    compare(Packed({256, 0, 0, 257, 64, 1, 511, 128}, {}, 8), heads, 128, 40, mild_decay);
  }
  compare(Packed(std::int64_t{2100}), same(1), 256, 256, mild_decay);
  compare(Packed(std::int64_t{4100}), same(8), 128, 128, weak_decay);
}

// Keys are unit vectors and every product is a small integer, so that bfloat16 holds all of them.
TEST_CASE("device: gated delta rule in chunks, numbers that need no rounding", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int64_t T : {64, 130, 600}) {
    for (const std::int64_t K : {64, 128}) {
      Problem p(Packed(T), same(2), K, 64, no_decay);
      p.has_beta = false, p.scale = 1;
      for (Numbers* x : {&p.q, &p.v, &p.initial}) {
        for (float& number : x->values) number = std::round(1.5F * number);
      }
      std::fill(p.k.values.begin(), p.k.values.end(), 0.F);
      for (std::int64_t t = 0; t < T; ++t) {
        for (std::int64_t h = 0; h < 2; ++h) p.k.row(t)[h * K + (7 * t + 3 * h) % K] = 1;
      }
      compare_chunks(*backend, p, 1e-6);
    }
  }
}

}  // namespace statescope::device_delta_chunk_test
