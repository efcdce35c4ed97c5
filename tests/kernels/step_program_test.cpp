// Programs of one token without a device: whatever order the instructions of a level are run in, memory ends as the calls leave it.
#include "kernels/step_program.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "kernels/linear.h"
#include "kernels/routing.h"
#include "tests/catch.h"

namespace statescope {
namespace {

constexpr std::int64_t width = 256;  // of a vector: a float32 weight of this width streams

/// Vectors, weights and a state that calls are made of, all in one piece of memory.
struct Arena {
  static constexpr std::int64_t vectors = 8, weights = 3, heads = 4, head = width / heads;
  std::vector<float> numbers =
      std::vector<float>(static_cast<std::size_t>((vectors + 1) * width + weights * width * width + heads * head * head));

  float* vector(std::int64_t i) { return numbers.data() + i * width; }
  float* norm_weight() { return vector(vectors); }
  float* weight(std::int64_t i) { return vector(vectors + 1) + i * width * width; }
  float* state() { return weight(weights); }
};

Tensor row(const void* p, std::int64_t n) { return {const_cast<void*>(p), DType::f32, {1, n}}; }
Tensor groups(const void* p, const StepInstruction& i) { return {const_cast<void*>(p), DType::f32, {1, i.n / i.m, i.m}}; }

/// One instruction by the CPU's operations; `a` in the place of its first operand.
void run_alone(const StepInstruction& i, const void* a) {
  const Tensor y = row(i.y, i.n);
  switch (i.code) {
    case StepCode::fill:
      return fill(y, i.number[0]);
    case StepCode::copy:
      return copy(y, row(a, i.n));
    case StepCode::activate:
      return activate(y, row(a, i.n), i.act);
    case StepCode::gate:
      return gate(y, row(a, i.n), row(i.b, i.n), i.act);
    case StepCode::add:
      return add(y, row(a, i.n), row(i.b, i.n), i.number[0]);
    case StepCode::scale_heads:
      return scale_heads(groups(i.y, i), groups(a, i), row(i.b, i.n / i.m), i.number[0]);
    case StepCode::inverse_root_norm:
      return rms_norm(y, row(a, i.n), ConstTensor(i.b, DType::f32, {i.m}), i.number[1], i.number[2]);
    case StepCode::softmax:
      return softmax(groups(i.y, i), groups(a, i), i.number[0]);
    case StepCode::streamed_linear:
    case StepCode::linear:
      return linear(y, row(a, i.m), ConstTensor(i.b, DType::f32, {i.n, i.m}));
    case StepCode::decayed_outer_product: {
      const std::int32_t token[] = {0, 1};
      DecayedOuterProduct op{.q = {a, DType::f32, {1, i.heads[0], i.K}},
                             .k = {i.b, DType::f32, {1, i.heads[1], i.K}},
                             .v = {i.c, DType::f32, {1, i.heads[2], i.V}},
                             .log_decay = {},
                             .decay_axis = DecayAxis::rows,
                             .scale = i.number[0],
                             .segments = {token, {}},
                             .initial_state = {i.from, DType::f32, {1, i.H, i.K, i.V}},
                             .final_state = {i.to, DType::f32, {1, i.H, i.K, i.V}},
                             .o = {i.y, DType::f32, {1, i.H, i.V}}};
      return decayed_outer_product_step(op);
    }
    default:
      FAIL("an instruction that this test has no form of");
  }
}

/// What stands at `base` after the steps.
std::vector<float> through(const StepInstruction* steps, int count, const void* base) {
  std::vector<float> x(static_cast<std::size_t>(steps->n));
  std::memcpy(x.data(), base, x.size() * sizeof(float));
  for (int s = 0; s < count; ++s) {
    StepInstruction own = steps[s];
    own.y = x.data();
    run_alone(own, x.data());
  }
  return x;
}

/// Numbers [begin, end) of a map, or of a product.
StepInstruction part(StepInstruction i, std::int32_t begin, std::int32_t end) {
  const auto moved = [](const void* p, std::int64_t numbers) { return p != nullptr ? static_cast<const float*>(p) + numbers : nullptr; };
  const bool product = i.code == StepCode::linear || i.code == StepCode::streamed_linear;
  i.n = end - begin;
  i.y = static_cast<float*>(i.y) + begin;
  i.a = product ? i.a : moved(i.a, begin);
  i.b = product ? moved(i.b, std::int64_t{begin} * i.m) : moved(i.b, i.code == StepCode::scale_heads ? begin / i.m : begin);
  return i;
}

void run(const StepInstruction* lead, std::mt19937& random) {
  const StepInstruction* steps = lead + 1 + lead->followers;
  StepInstruction own = *lead;
  std::vector<float> q, k;
  if (lead->q_steps > 0) {
    q = through(steps, lead->q_steps, lead->a);
    own.a = q.data();
  }
  if (lead->k_steps > 0) {
    k = through(steps + lead->q_steps, lead->k_steps, lead->b);
    own.b = k.data();
  }
  const bool rows = lead->code == StepCode::inverse_root_norm || lead->code == StepCode::softmax;  // by one warp
  if (lead->followers == 0 || rows) {
    run_alone(own, own.a);
    for (int f = 1; f <= lead->followers; ++f) run_alone(lead[f], lead[f].a);
    return;
  }
  // Who makes a number does the maps behind it with this number: here a head's worth of them at a time, in any order.
  std::vector<std::int32_t> begins;
  for (std::int32_t begin = 0; begin < lead->n; begin += Arena::head) begins.push_back(begin);
  std::shuffle(begins.begin(), begins.end(), random);
  for (const std::int32_t begin : begins) {
    for (int f = 0; f <= lead->followers; ++f) {
      const StepInstruction some = part(f == 0 ? own : lead[f], begin, begin + Arena::head);
      run_alone(some, some.a);
    }
  }
}

/// Levels one after the other, the instructions of each in any order.
void run(const StepProgram& program, std::mt19937& random) {
  std::vector<const StepInstruction*> level;
  for (std::size_t l = 0; l < program.levels.size(); ++l) {
    const StepInstruction* i = program.code.data() + program.levels[l].first;
    for (const StepInstruction* end = i + program.levels[l].count; i < end; i += i->size()) level.push_back(i);
    if (l + 1 < program.levels.size() && program.levels[l + 1].waits == 0) continue;
    std::shuffle(level.begin(), level.end(), random);
    for (const StepInstruction* lead : level) run(lead, random);
    level.clear();
  }
}

/// A random call; of vectors wholly or by halves.
void record_one(StepTrace& trace, Arena& arena, std::mt19937& random) {
  const auto any = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  const bool whole = any(4) > 0;
  const std::int64_t n = whole ? width : width / 2, begin = whole ? 0 : any(2) * n;
  const auto place = [&] { return row(arena.vector(any(Arena::vectors)) + begin, n); };
  const auto as_heads = [](Tensor x) { return x.with_row({x.row_size() / Arena::head, Arena::head}); };
  const Tensor x = place(), y = any(2) == 0 ? x : place();
  switch (any(12)) {
    case 0:
    case 1:
      REQUIRE(trace.rms_norm(y, x, ConstTensor(arena.norm_weight(), DType::f32, {any(2) == 0 ? n : Arena::head}), 1e-5F, 0));
      return;
    case 2:
      REQUIRE(trace.softmax(as_heads(y), as_heads(x), 0.5F));
      return;
    case 3:
      REQUIRE(trace.gate(y, x, place(), Activation::silu));
      return;
    case 4:
      REQUIRE(trace.add(y, x, place(), -0.5F));
      return;
    case 5:
      REQUIRE(trace.activate(y, x, Activation::sigmoid));
      return;
    case 6:
      REQUIRE(trace.copy(y, place()));
      return;
    case 7: {
      const float* g = arena.vector(any(Arena::vectors));
      while (g + begin == y.f32()) g = arena.vector(any(Arena::vectors));
      REQUIRE(trace.scale_heads(as_heads(y), as_heads(x), row(g + begin, n / Arena::head), 0.7F));
      return;
    }
    case 8: {
      const Tensor q(arena.vector(any(Arena::vectors)), DType::f32, {1, Arena::heads, Arena::head}),
          k(arena.vector(any(Arena::vectors)), DType::f32, q.shape), v(arena.vector(any(Arena::vectors)), DType::f32, q.shape),
          state(arena.state(), DType::f32, {1, Arena::heads, Arena::head, Arena::head});
      Tensor o = q;
      while (o.data == q.data || o.data == k.data || o.data == v.data) o.data = arena.vector(any(Arena::vectors));
      const std::int32_t token[] = {0, 1};
      REQUIRE(trace.decayed_outer_product({.q = q,
                                           .k = k,
                                           .v = v,
                                           .log_decay = {},
                                           .decay_axis = DecayAxis::rows,
                                           .scale = 0.1F,
                                           .segments = {token, {}},
                                           .initial_state = state,
                                           .final_state = state,
                                           .o = o}));
      return;
    }
    default: {
      const Tensor in = row(arena.vector(any(Arena::vectors)), width);
      Tensor out = in;
      while (out.data == in.data) out = row(arena.vector(any(Arena::vectors)), width);
      REQUIRE(trace.linear(out, in, ConstTensor(arena.weight(any(Arena::weights)), DType::f32, {width, width}), {}));
    }
  }
}

}  // namespace

TEST_CASE("step program: random calls end as if they had been run one by one") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    INFO("round " << round);
    Arena arena;
    std::normal_distribution<float> normal(0, 0.06F);
    for (float& x : arena.numbers) x = normal(random);
    StepTrace trace;
    const int calls = 1 + round % 60;
    for (int i = 0; i < calls; ++i) record_one(trace, arena, random);
    const StepProgram program = schedule_steps(trace.calls(), 132);
    const std::vector<float> before = arena.numbers;
    for (const StepInstruction& call : trace.calls()) run_alone(call, call.a);
    const std::vector<float> expected = arena.numbers;
    std::copy(before.begin(), before.end(), arena.numbers.begin());
    run(program, random);
    const auto close = [](float found, float wanted) { return std::abs(found - wanted) <= 1e-5F * (1 + std::abs(wanted)); };
    REQUIRE(std::equal(expected.begin(), expected.end(), arena.numbers.begin(), close));
  }
}

}  // namespace statescope
