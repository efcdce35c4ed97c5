#include "kernels/device.h"

#include <algorithm>
#include <cstring>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::backend_test {
using namespace statescope::testing;

TEST_CASE("the CPU backend says what it runs on") {
  CHECK(make_cpu_backend(1)->description() == std::string("CPU, 1 thread, ") + instruction_set());
  CHECK(make_cpu_backend(1, Precision::bfloat16)->description().find("products in bfloat16") != std::string::npos);
  CHECK(make_cpu_backend(2)->description() == std::string("CPU, 2 threads, ") + instruction_set());
}

TEST_CASE("the CPU backend's memory is aligned, moves whole tensors and adopts weights as they are") {
  const auto backend = make_cpu_backend();
  const Buffer memory = backend->allocate(100);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0);
  CHECK(backend->allocate(0) != nullptr);

  Numbers x(Shape{2, 3}, {1, 2, 3, 4, 5, 6}), back = poisoned(x.shape);
  const Tensor device(memory.get(), DType::f32, x.shape);
  backend->upload(device, x.view());
  backend->download(back.view(), device);
  CHECK(back.values == x.values);
  CHECK_THROWS_AS(backend->upload(device.columns(0, {2}), x.view().columns(0, {2})), std::invalid_argument);
  CHECK_THROWS_AS(backend->download(back.view(), device.slice(0, 1)), std::invalid_argument);

  Buffer owner;
  CHECK(backend->adopt(x.view(), owner).data == x.values.data());
  CHECK(owner == nullptr);

  backend->fill(x.view().columns(1, {2}), 0);
  CHECK(x.values == std::vector<float>{1, 0, 0, 4, 0, 0});
}

TEST_CASE("a workspace hands out separate aligned memory, and the same again after the mark") {
  const auto backend = make_cpu_backend();
  Workspace workspace(*backend);
  std::vector<void*> first, second;
  const auto take = [&](std::vector<void*>& places) {
    const Workspace::Mark mark(workspace);
    for (std::int64_t n : {1, 100, 300'000, 7, 3'000'000, 0, 5}) {
      const Tensor tensor = workspace.tensor({n, 1});
      CHECK(reinterpret_cast<std::uintptr_t>(tensor.data) % 64 == 0);
      CHECK((tensor.contiguous() && tensor.dtype == DType::f32 && tensor));
      std::fill_n(tensor.f32(), n, static_cast<float>(n));
      places.push_back(tensor.data);
    }
    std::size_t i = 0;
    for (std::int64_t n : {1, 100, 300'000, 7, 3'000'000, 0, 5}) {
      const auto* numbers = static_cast<const float*>(places[i++]);
      CHECK(std::count(numbers, numbers + n, static_cast<float>(n)) == n);
    }
  };
  take(first);
  take(second);
  CHECK(first == second);

  const Tensor kept = workspace.tensor({4}, DType::i32);
  void* inner = nullptr;
  {
    const Workspace::Mark mark(workspace);
    inner = workspace.tensor({4}).data;
    CHECK(inner != kept.data);
  }
  CHECK(workspace.tensor({4}).data == inner);
}

TEST_CASE("swiglu is (silu(x gateᵀ) ⊙ (x upᵀ)) downᵀ") {
  const auto backend = make_cpu_backend();
  Workspace workspace(*backend);
  Random random(1);
  const std::int64_t T = GENERATE(1, 2, 63), D = 60, I = 37;
  const Numbers x = random.uniform({T, D}), gate = random.uniform({I, D}), up = random.uniform({I, D}), down = random.uniform({D, I});
  std::vector<double> truth(static_cast<std::size_t>(T * D));
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t i = 0; i < I; ++i) {
      double g = 0, u = 0;
      for (std::int64_t d = 0; d < D; ++d) {
        g += static_cast<double>(x.row(t)[d]) * gate.row(i)[d];
        u += static_cast<double>(x.row(t)[d]) * up.row(i)[d];
      }
      for (std::int64_t d = 0; d < D; ++d) truth[static_cast<std::size_t>(t * D + d)] += g / (1 + std::exp(-g)) * u * down.row(d)[i];
    }
  }
  Numbers y = poisoned({T, D});
  backend->swiglu(y.view(), x.view(), gate.view(), up.view(), down.view(), workspace);
  CHECK(relative_error(y.values, truth) < 1e-5);
}

TEST_CASE("chunk size 0 takes the step form") {
  const auto backend = make_cpu_backend();
  // One head, K = V = 1: S = 6 + 5 · 7 = 41, o = 11 · 41.
  Numbers q(Shape{1, 1, 1}, {11}), k(Shape{1, 1, 1}, {5}), v(Shape{1, 1, 1}, {7}), state(Shape{1, 1, 1, 1}, {6}),
      o = poisoned(Shape{1, 1, 1});
  const std::int32_t one[] = {0, 1};
  DecayedOuterProduct op;
  op.q = q.view(), op.k = k.view(), op.v = v.view(), op.segments = {one, {}}, op.initial_state = state.view(),
  op.final_state = state.view(), op.o = o.view();
  const std::int64_t chunk_size = GENERATE(0, 4);
  backend->decayed_outer_product(op, chunk_size);
  CHECK(state[0] == 41);
  CHECK(o[0] == 451);
}

}  // namespace statescope::backend_test
