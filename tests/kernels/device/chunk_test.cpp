// The chunk form of the decayed outer product on a CUDA device against the CPU. Its products are rounded to bfloat16, so results are
// compared by the norm of their difference.
#include <limits>

#include "kernels/ops/decayed_outer_product.h"
#include "tests/kernels/device_chunk_cases.h"

namespace statescope::device_chunk_test {
using namespace statescope::testing;

namespace {

enum class Kind { absent, per_head, per_channel, per_column };
constexpr const char* kind_names[] = {"absent", "per head", "per channel", "per column"};
constexpr Kind kinds[] = {Kind::absent, Kind::per_head, Kind::per_channel};

constexpr Decay strong_decay{"strong", -6, -4};

struct Heads {
  std::int64_t state, q, k, v, decay;
};
Heads same(std::int64_t heads) { return {heads, heads, heads, heads, heads}; }

struct Problem {
  Packed segments;
  Kind kind;
  Decay decay;
  float scale = 0.5F;
  Numbers q, k, v, log_decay, initial;

  Problem(Packed segments_, const Heads& heads, std::int64_t K, std::int64_t V, Kind kind_, const Decay& decay_)
      : segments(std::move(segments_)), kind(kind_), decay(decay_) {
    Random random(1);
    const std::int64_t rows = segments.rows();
    q = random.uniform({rows, heads.q, K});
    k = random.uniform({rows, heads.k, K});
    v = random.uniform({rows, heads.v, V});
    initial = random.uniform({segments.slots, heads.state, K, V});
    Shape shape{rows, heads.decay};
    if (kind == Kind::per_channel) shape.push_back(K);
    if (kind == Kind::per_column) shape.push_back(V);
    log_decay = decay.draw(random, shape);
  }

  DecayedOuterProduct op(Numbers& final_state, Numbers& o) const {
    DecayedOuterProduct op;
    op.q = q.view(), op.k = k.view(), op.v = v.view();
    if (kind != Kind::absent) op.log_decay = log_decay.view();
    if (kind == Kind::per_column) op.decay_axis = DecayAxis::columns;
    op.scale = scale, op.segments = segments.view();
    op.initial_state = initial.view(), op.final_state = final_state.view(), op.o = o.view();
    return op;
  }
  static void apply(const DecayedOuterProduct& op, std::int64_t chunk_size) { decayed_outer_product_chunk(op, chunk_size); }
  static void apply_on(Backend& backend, const DecayedOuterProduct& op) { backend.decayed_outer_product(op, 64); }

  std::string name() const {
    return "rows " + std::to_string(segments.rows()) + ", segments " + std::to_string(segments.view().count()) + ", " +
           initial.shape.to_string() + ", decay " + kind_names[static_cast<std::size_t>(kind)] + ", " + decay.name;
  }
};

/// What decays are made of: bias between `low` and `high`.
struct Forgetting {
  float low, high;
  ForgetGate gate;
  std::int64_t rank = 16;
};

Result<float> run_forgetting(Backend& backend, const Problem& p, const Forgetting& forgetting, DType type, std::int64_t gap) {
  const std::int64_t channels = p.log_decay.shape.row_size();
  Random random(2);
  Numbers features = random.uniform({p.segments.rows(), forgetting.rank}, -2, 2), weight = random.uniform({channels, forgetting.rank}),
          bias = random.uniform({channels}, forgetting.low, forgetting.high);
  shorten({&weight});
  Numbers o = poisoned({p.segments.rows(), p.initial.shape[1], p.initial.shape[3]}), final_state = poisoned(p.initial.shape),
          unmade = poisoned(p.log_decay.shape);
  DeviceTensors device(backend, gap), together(backend, 0);
  const Tensor log_decay = device.rows(unmade.view());
  auto op = p.op(final_state, o);
  op.q = device.rows(op.q, type), op.k = device.rows(op.k, type), op.v = device.rows(op.v, type), op.log_decay = log_decay;
  op.o = device.rows(o.view(), type);
  op.initial_state = device.whole(p.initial.view()), op.final_state = device.whole(final_state.view());
  Workspace workspace(backend);
  backend.forget_gated_outer_product(op,
                                     {.x = device.rows(features.view()),
                                      .norm = {},
                                      .weight = together.rows(weight.view(), type),
                                      .bias = together.whole(bias.view()),
                                      .y = log_decay.with_row({channels}),
                                      .finish = forgetting.gate,
                                      .z = {}},
                                     64, workspace);
  return {device.fetch(op.o).values, device.fetch(op.final_state).values};
}

}  // namespace

TEST_CASE("device: decayed outer product in chunks, shapes", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : kinds) {
    for (const std::int64_t T : {1, 2, 31, 32, 33, 63, 64, 65, 130, 1000}) {
      for (const std::int64_t K : {16, 60, 64, 128}) compare_chunks(*backend, Problem(Packed(T), same(3), K, K, kind, mild_decay));
      for (const std::int64_t H : {1, 8}) compare_chunks(*backend, Problem(Packed(T), same(H), 64, 64, kind, mild_decay));
    }
    for (const std::int64_t T : {65, 600}) {
      for (const auto& [K, V] : {std::pair{60, 1}, {1, 60}, {16, 128}, {128, 20}, {100, 256}, {128, 130}, {256, 64}}) {
        compare_chunks(*backend, Problem(Packed(T), same(3), K, V, kind, mild_decay));
      }
    }
    compare_chunks(*backend, Problem(Packed(std::int64_t{0}), same(3), 16, 16, kind, mild_decay));
    compare_chunks(*backend, Problem(Packed(std::int64_t{8192}), same(8), 128, 128, kind, mild_decay));
  }
  compare_chunks(*backend, Problem(Packed(std::int64_t{130}), same(3), 60, 20, Kind::per_column, mild_decay));
}

// Every kernel, small enough for a race checker.
TEST_CASE("device: decayed outer product in chunks, few rows", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : {Kind::per_head, Kind::per_channel}) {
    for (const std::int64_t K : {60, 128}) compare_chunks(*backend, Problem(Packed({100, 0, 1}, {}, 3), same(1), K, 20, kind, mild_decay));
  }
}

TEST_CASE("device: decayed outer product in chunks, decays", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : {Kind::per_head, Kind::per_channel}) {
    for (const std::int64_t T : {65, 1000}) {
      for (const Decay& decay : {no_decay, weak_decay, mild_decay, strong_decay, broken_decay, wiping_decay}) {
        for (const std::int64_t K : {60, 128}) compare_chunks(*backend, Problem(Packed(T), same(3), K, 20, kind, decay));
      }
    }
  }
}

TEST_CASE("device: decayed outer product in chunks, segments and grouped heads", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : kinds) {
    for (const Heads& heads : {same(3), Heads{4, 2, 4, 1, 2}, Heads{4, 4, 1, 2, 4}, Heads{6, 3, 2, 6, 1}}) {
      for (const Packed& segments : {mixed_lengths(), many_segments()}) {
        for (const Decay& decay : {mild_decay, broken_decay}) compare_chunks(*backend, Problem(segments, heads, 60, 20, kind, decay));
      }
    }
  }
}

// On a device of compute capability 9.0 a form of its own.
TEST_CASE("device: decayed outer product in chunks, heads of more than 64 channels in bfloat16", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  const auto compare = [&](const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V, Kind kind, const Decay& decay) {
    Problem p(segments, heads, K, V, kind, decay);
    shorten({&p.q, &p.k, &p.v});
    const Result<float> truth = run(p, 64);
    for (const std::int64_t gap : {0, 8}) {
      INFO(p.name() << ", rows " << gap << " apart");
      check_close(run_in_bf16(*backend, p, gap), truth, bf16_rounding);
    }
  };
  for (const Kind kind : kinds) {
    for (const std::int64_t T : {32, 63, 64, 65, 600}) {
      for (const auto& [K, V] : {std::pair{256, 512}, {136, 8}, {200, 72}, {128, 128}, {72, 40}})
        compare(Packed(T), same(2), K, V, kind, mild_decay);
    }
  }
  compare(Packed(std::int64_t{2100}), same(1), 256, 512, Kind::per_channel, mild_decay);
  compare(Packed(std::int64_t{2100}), same(8), 128, 128, Kind::per_channel, mild_decay);
  for (const Kind kind : {Kind::per_head, Kind::per_channel}) {
    for (const std::int64_t K : {256, 128}) {
      for (const Decay& decay : {no_decay, weak_decay, strong_decay, broken_decay, wiping_decay})
        compare(Packed(std::int64_t{600}), same(2), K, 72, kind, decay);
    }
    for (const std::int64_t K : {136, 104}) {
      for (const Heads& heads : {same(3), Heads{4, 2, 1, 4, 2}}) {
        compare(Packed({5, 0, 1, 70, 600, 17}, {}, 6), heads, K, 40, kind, mild_decay);
        compare(Packed({256, 0, 0, 257, 64, 1, 511, 128}, {}, 8), heads, K, 40, kind, broken_decay);
      }
    }
  }
}

TEST_CASE("device: decayed outer product in chunks, decays of features", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  constexpr float none = -std::numeric_limits<float>::infinity();
  const auto compare = [&](const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V, const Forgetting& forgetting) {
    Problem p(segments, heads, K, V, Kind::per_channel, mild_decay);
    shorten({&p.q, &p.k, &p.v});
    const Result<float> truth = run_forgetting(*make_cpu_backend(), p, forgetting, DType::f32, 0);
    for (const std::int64_t gap : {0, 8}) {
      INFO(p.name() << ", bias from " << forgetting.low << ", rank " << forgetting.rank << ", rows " << gap << " apart");
      check_close(run_forgetting(*backend, p, forgetting, DType::bf16, gap), truth, bf16_rounding);
    }
  };
  const Forgetting mild{-2, 6, {16, none}}, clamped{-9, 3, {1, -0.1F}}, strong{-300, -20, {16, none}}, wiping{-3000, 20, {1, none}};
  for (const std::int64_t T : {1, 31, 32, 63, 64, 65, 600}) {
    for (const auto& [K, V] : {std::pair{256, 512}, {136, 8}, {128, 128}, {72, 40}}) compare(Packed(T), same(2), K, V, mild);
  }
  compare(Packed(std::int64_t{2100}), same(4), 256, 512, mild);
  for (const std::int64_t K : {256, 104}) {
    for (const Forgetting& forgetting : {clamped, strong, wiping}) compare(Packed(std::int64_t{600}), same(2), K, 72, forgetting);
    for (const Heads& heads : {same(3), Heads{4, 2, 1, 4, 2}}) compare(Packed({5, 0, 1, 70, 600, 17}, {}, 6), heads, K, 40, mild);
    compare(Packed(std::int64_t{100}), same(2), K, 72, {-2, 6, {16, none}, 8});  // features of which decays are made before
  }
  compare(Packed(std::int64_t{100}), same(2), 60, 64, mild);
}

TEST_CASE("device: decayed outer product in chunks, what is not finite stays in its sequence", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int64_t K : {64, 128, 256}) {
    for (const std::int32_t length : {1, 40, 63, 64, 100}) {
      const Problem p(Packed({length, 90}, {}, 2), same(2), K, 72, Kind::per_channel, mild_decay);
      for (const auto operand : {&Problem::q, &Problem::k, &Problem::v}) keep_apart(*backend, p, operand);
    }
  }
}

// Every product and every sum is a small integer, so that bfloat16 holds all of them.
TEST_CASE("device: decayed outer product in chunks, numbers that need no rounding", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : kinds) {
    for (const std::int64_t T : {64, 130, 600}) {
      for (const std::int64_t K : {64, 128}) {
        Problem p(Packed(T), same(2), K, 64, kind, no_decay);
        p.scale = 1;
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
}

}  // namespace statescope::device_chunk_test
