// Sparse states whose partitions are gathered by the chunk form, on a CUDA device against the CPU; operands of float32 and of bfloat16.
#include "kernels/ops/sparse_state.h"
#include "tests/kernels/device_chunk_cases.h"

namespace statescope::device_sparse_chunk_test {
using namespace statescope::testing;

namespace {

struct Shapes {
  std::int64_t H, K, V;
};
struct Routing {
  std::int64_t N, writers, readers;
  bool gate_q = true, gate_k = true;
  bool one_partition = false;  // all tokens choose the last one
  std::int64_t choices() const { return std::max(writers, readers); }
};

enum class Memory { outer_product, delta_rule, delta_rule_gate_after_l2 };

struct Problem {
  std::vector<std::int32_t> cu_seqlens;
  Shapes shapes;
  Routing routing;
  Decay decay;
  Memory memory;
  Numbers q, k, v, log_decay, beta, gate, initial;
  std::vector<std::int32_t> selected;

  Problem(std::vector<std::int32_t> cu_seqlens_, const Shapes& shapes_, const Routing& routing_, const Decay& decay_ = mild_decay,
          Memory memory_ = Memory::outer_product)
      : cu_seqlens(std::move(cu_seqlens_)), shapes(shapes_), routing(routing_), decay(decay_), memory(memory_) {
    Random random(1);
    const auto& [H, K, V] = shapes;
    q = bf16_numbers(random, {tokens(), 2, H, K}), k = bf16_numbers(random, {tokens(), 2, H, K});
    v = bf16_numbers(random, {tokens(), H, V});
    log_decay = decay.draw(random, delta_rule() ? Shape{tokens(), 2, H} : Shape{tokens(), 2, H, K});
    beta = random.uniform({tokens(), 2, H}, 0, 1.5F);
    gate = random.uniform({tokens(), routing.N}, 0.05F, 1);
    for (std::int64_t t = 0; routing.one_partition && t < tokens(); ++t) gate.row(t)[routing.N - 1] = 2;
    initial = random.uniform({sequences() * (1 + routing.N), H, K, V});
    selected.resize(static_cast<std::size_t>(tokens() * routing.choices()));
    make_cpu_backend()->top_k(Tensor(selected.data(), DType::i32, {tokens(), routing.choices()}), gate.view());
  }

  bool delta_rule() const { return memory != Memory::outer_product; }
  std::int64_t tokens() const { return cu_seqlens.back(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(cu_seqlens.size()) - 1; }

  SparseState op() const {
    SparseState op;
    op.writers = routing.writers, op.readers = routing.readers, op.gate_q = routing.gate_q, op.gate_k = routing.gate_k;
    op.gate_place = memory == Memory::delta_rule_gate_after_l2 ? GatePlace::after_l2 : GatePlace::before_l2;
    op.write_scale = 0.5F, op.scale = 0.5F, op.cu_seqlens = cu_seqlens;
    return op;
  }

  std::string name() const {
    return "tokens " + std::to_string(tokens()) + ", sequences " + std::to_string(sequences()) + ", N " + std::to_string(routing.N) +
           ", writers " + std::to_string(routing.writers) + ", readers " + std::to_string(routing.readers) + ", state " +
           initial.shape.to_string() + ", " + decay.name + (delta_rule() ? ", delta rule" : "") +
           (memory == Memory::delta_rule_gate_after_l2 ? ", gate after the norm" : "");
  }

 private:
  /// Numbers that bfloat16 holds.
  static Numbers bf16_numbers(Random& random, const Shape& shape) {
    Numbers numbers = random.uniform(shape);
    for (float& x : numbers.values) x = std::round(128 * x) / 128;
    return numbers;
  }
};

Result<float> run_on_host(const Problem& p) {
  const std::shared_ptr<Backend> backend = make_cpu_backend();
  Workspace workspace(*backend);
  Numbers o(p.v.shape), final_state(p.initial.shape);
  SparseState op = p.op();
  op.q = p.q.view(), op.k = p.k.view(), op.v = p.v.view(), op.log_decay = p.log_decay.view(), op.gate = p.gate.view();
  if (p.delta_rule()) op.beta = p.beta.view();
  op.selected = ConstTensor(p.selected.data(), DType::i32, {p.tokens(), p.routing.choices()});
  op.initial_state = p.initial.view(), op.final_state = final_state.view(), op.o = o.view();
  backend->sparse_state(op, 64, workspace);
  return {o.values, final_state.values};
}

Result<float> run_on_device(Backend& backend, const Problem& p, DType type, std::int64_t gap, bool in_place) {
  Workspace workspace(backend);
  Numbers o = poisoned(p.v.shape), final_state = in_place ? p.initial : poisoned(p.initial.shape);
  DeviceTensors device(backend, gap);
  SparseState op = p.op();
  op.q = device.rows(p.q.view(), type), op.k = device.rows(p.k.view(), type), op.v = device.rows(p.v.view(), type);
  op.log_decay = device.rows(p.log_decay.view()), op.gate = device.rows(p.gate.view());
  if (p.delta_rule()) op.beta = device.rows(p.beta.view());
  op.selected = device.indices(p.selected, {p.tokens(), p.routing.choices()});
  op.final_state = device.whole(final_state.view()), op.o = device.rows(o.view(), type);
  op.initial_state = in_place ? ConstTensor(op.final_state) : device.whole(p.initial.view());
  backend.sparse_state(op, 64, workspace);
  return {device.fetch(op.o).values, device.fetch(op.final_state).values};
}

void compare(Backend& backend, const Problem& p) {
  const Result<float> truth = run_on_host(p);
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t gap : {0, 3}) {
      for (const bool in_place : {false, true}) {
        INFO(p.name() << ", " << name_of(type) << (gap > 0 ? ", rows apart" : "") << (in_place ? ", in place" : ""));
        check_close(run_on_device(backend, p, type, gap, in_place), truth, bf16_rounding);
      }
    }
  }
}

/// With all that the operation takes made on the way, decays among it.
Result<float> run_from_sources(Backend& backend, const Problem& p, DType type) {
  const std::int64_t T = p.tokens(), H = p.shapes.H, K = p.shapes.K, width = H * K;
  constexpr std::int64_t rank = 16;
  Random random(3);
  Numbers q = random.uniform({T, width}, -2, 2), k = random.uniform({T, width}, -2, 2), more = random.uniform({T, width}, -2, 2),
          weight = random.uniform({2 * width, rank});
  shorten({&q, &k, &more, &weight});
  const Numbers logits = random.uniform({T, p.routing.N}, -3, 3), shared_features = random.uniform({T, rank}),
                sparse_features = random.uniform({T, rank}), bias = random.uniform({width}, -2, 6), v = p.v,
                unmade = poisoned({T, 2, H, K}), no_gate = poisoned({T, p.routing.N});
  Numbers o = poisoned(p.v.shape), final_state = poisoned(p.initial.shape);
  Workspace workspace(backend);
  DeviceTensors device(backend, 0);
  const auto pair = [&](const Numbers& x) {
    return SparsePair{device.rows(unmade.view(), type),
                      device.rows(x.view(), type),
                      device.rows(x.view(), type),
                      device.rows(more.view(), type),
                      Activation::silu,
                      true};
  };
  const Tensor log_decay = device.rows(unmade.view());
  const ConstTensor weights = device.rows(weight.view(), type);
  const auto gate = [&](std::int64_t half, const Numbers& features) {
    return Projection{.x = device.rows(features.view()),
                      .norm = {},
                      .weight = weights.slice(half * width, width),
                      .bias = device.whole(bias.view()),
                      .y = log_decay.columns(half * width, {width}),
                      .finish = ForgetGate{16, -1},
                      .z = {}};
  };
  const SparseSources from{.q = pair(q),
                           .k = pair(k),
                           .logits = device.rows(logits.view()),
                           .gate = device.rows(no_gate.view()),
                           .selected = device.indices(p.selected, {T, p.routing.choices()}),
                           .by_logits = true,
                           .decays = {gate(0, shared_features), gate(1, sparse_features)}};
  SparseState op = p.op();
  op.q = from.q.pair, op.k = from.k.pair, op.v = device.rows(v.view(), type), op.log_decay = log_decay, op.gate = from.gate;
  op.selected = from.selected;
  op.initial_state = device.whole(p.initial.view()), op.final_state = device.whole(final_state.view());
  op.o = device.rows(o.view(), type);
  backend.sparse_state(op, from, 64, workspace);
  return {device.fetch(op.o).values, device.fetch(op.final_state).values};
}

}  // namespace

TEST_CASE("device: sparse states in chunks, shapes", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int32_t T : {32, 63, 64, 65, 130, 1000}) {
    for (const std::int64_t K : {60, 64, 128}) compare(*backend, Problem({0, T}, {2, K, K}, {4, 1, 1}));
  }
  for (const auto& [K, V] : {std::pair{60, 1}, {16, 130}, {128, 20}}) compare(*backend, Problem({0, 300}, {3, K, V}, {4, 2, 2}));
  for (const std::int64_t N : {1, 64, 100}) compare(*backend, Problem({0, 700}, {2, 64, 64}, {N, 1, 1}));
}

// Every kernel, small enough for a race checker.
TEST_CASE("device: sparse states in chunks, few tokens", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const std::int64_t K : {60, 128}) compare(*backend, Problem({0, 100, 101}, {1, K, 20}, {3, 2, 2}));
}

TEST_CASE("device: sparse states in chunks, routing", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const auto& [writers, readers] : {std::pair{1, 1}, {2, 2}, {1, 3}, {3, 1}, {0, 2}, {2, 0}}) {
    for (const bool gates : {true, false}) {
      compare(*backend, Problem({0, 200, 200, 201, 541}, {2, 64, 64}, {9, writers, readers, gates, gates}));
      compare(*backend, Problem({0, 200, 200, 201, 541}, {2, 128, 72}, {3, writers, readers, gates, gates}));
    }
  }
  // All but one partition empty.
  for (const std::int64_t K : {64, 128}) compare(*backend, Problem({0, 400}, {2, K, K}, {4, 1, 1, true, true, true}));
  compare(*backend, Problem({0, 33, 66, 99}, {1, 128, 128}, {64, 1, 1}));  // often one token in a partition
  for (const std::int64_t K : {64, 128}) compare(*backend, Problem({0, 500}, {2, K, 64}, {4, 2, 2, true, false}, broken_decay));
  compare(*backend, Problem({0, 3000}, {8, 128, 128}, {300, 1, 1}));  // runs counted in two turns
}

TEST_CASE("device: sparse states in chunks, decays of features", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  const auto compare_sources = [&](const Problem& p) {
    INFO(p.name());
    check_close(run_from_sources(*backend, p, DType::bf16), run_from_sources(*make_cpu_backend(), p, DType::f32), bf16_rounding);
  };
  for (const std::int64_t K : {60, 64, 72, 128}) {
    for (const std::int32_t T : {1, 40, 64, 65, 700}) compare_sources(Problem({0, T}, {2, K, 72}, {4, 1, 1}));
  }
  for (const auto& [writers, readers] : {std::pair{2, 2}, {1, 3}, {3, 1}})
    compare_sources(Problem({0, 200, 200, 201, 541}, {2, 128, 72}, {3, writers, readers}));
  compare_sources(Problem({0, 300}, {1, 128, 64}, {64, 1, 1}));   // runs too short for tiles
  compare_sources(Problem({0, 300}, {1, 128, 8}, {9000, 1, 1}));  // more runs than are sorted
}

TEST_CASE("device: sparse states of the delta rule in chunks, shapes", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  const auto run = [&](std::int32_t T, const Shapes& shapes, const Routing& routing) {
    compare(*backend, Problem({0, T}, shapes, routing, mild_decay, Memory::delta_rule));
  };
  for (const std::int32_t T : {32, 63, 64, 65, 130, 1000}) {
    for (const std::int64_t K : {60, 64, 128}) run(T, {2, K, K}, {4, 1, 1});
  }
  for (const auto& [K, V] : {std::pair{60, 8}, {16, 136}, {64, 8}, {128, 24}, {256, 40}}) run(300, {3, K, V}, {4, 2, 2});
  for (const std::int64_t N : {1, 64}) run(700, {2, 64, 64}, {N, 1, 1});
}

TEST_CASE("device: sparse states of the delta rule in chunks, routing", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Memory memory : {Memory::delta_rule, Memory::delta_rule_gate_after_l2}) {
    for (const auto& [writers, readers] : {std::pair{1, 1}, {2, 2}, {1, 3}, {3, 1}, {0, 2}, {2, 0}}) {
      for (const bool gates : {true, false})
        compare(*backend, Problem({0, 200, 200, 201, 541}, {2, 64, 64}, {9, writers, readers, gates, gates}, mild_decay, memory));
    }
    compare(*backend, Problem({0, 400}, {2, 64, 64}, {4, 1, 1, true, true, true}, mild_decay, memory));  // all but one partition empty
    compare(*backend, Problem({0, 33, 66, 99}, {1, 128, 128}, {64, 1, 1}, mild_decay, memory));          // often one token in a partition
    compare(*backend, Problem({0, 500}, {2, 64, 64}, {4, 2, 2, true, false}, broken_decay, memory));
  }
}

}  // namespace statescope::device_sparse_chunk_test
