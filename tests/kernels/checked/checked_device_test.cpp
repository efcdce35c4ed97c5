// Two devices that compute every operation: what differs is named, whatever the operation writes, and wherever.
#include "kernels/checked/checked_device.h"

#include <cmath>
#include <limits>
#include <set>

#include "kernels/device.h"
#include "tests/catch.h"
#include "tests/kernels/checked/meddling_device.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::checked_device_test {
namespace {
using namespace statescope::testing;
using Catch::Matchers::ContainsSubstring;

/// The CPU, checked by one of which `after` changes what operations have written.
class Checked {
 public:
  explicit Checked(
      std::function<void(const Operation&)> after = [](const Operation&) {}, double tolerance = 0)
      : device_({"cpu", make_cpu_backend(1)}, {"other", std::make_shared<MeddlingDevice>(std::move(after))}, tolerance) {}

  Backend* operator->() { return &device_; }
  Workspace& workspace() { return workspace_; }
  Tensor in(const Numbers& x) {
    const Tensor there = room(x.shape);
    device_.upload(there, x.view());
    return there;
  }
  Tensor room(const Shape& shape, DType type = DType::f32) {
    buffers_.push_back(device_.allocate(static_cast<std::size_t>(shape.size()) * size_of(type)));
    return {buffers_.back().get(), type, shape};
  }
  std::vector<float> read(ConstTensor x) {
    std::vector<float> numbers(static_cast<std::size_t>(x.shape.size()));
    device_.download(Tensor(numbers.data(), DType::f32, x.shape), x);
    return numbers;
  }

 private:
  CheckedDevice device_;
  Workspace workspace_{device_};
  std::vector<Buffer> buffers_;
};

/// Adds to number `i` of row `row` of what the operation writes first.
std::function<void(const Operation&)> adds(float change, std::int64_t row, std::int64_t i) {
  return [=](const Operation& operation) {
    const Tensor x = written_by(operation).front();
    x.dtype == DType::i32 ? void(x.i32(row)[i] += static_cast<int>(change)) : void(x.f32(row)[i] += change);
  };
}

/// What `work` is stopped with.
template <class Work>
std::string stopped(const Work& work) {
  try {
    work();
  } catch (const DevicesDiffer& difference) {
    return difference.what();
  }
  return "nothing differs";
}

}  // namespace

TEST_CASE("checked device: what an operation writes, and what it reads, follows from its type") {
  Numbers a(Shape{2, 3}), b(Shape{2, 3}), c(Shape{2, 3}), d(Shape{2, 3});
  const auto memory_of = [](const Operation& operation) {
    std::set<const void*> memory;
    for (const Tensor& x : written_by(operation)) memory.insert(x.data);
    return memory;
  };
  using Memory = std::set<const void*>;
  CHECK(memory_of(ops::Activate{a.view(), b.view(), Activation::silu}) == Memory{a.view().data});
  CHECK(memory_of(ops::AddRmsNorm{a.view(), b.view(), c.view(), d.view(), 0, 0}) == Memory{a.view().data, b.view().data});
  const Projection projection{.x = a.view(),
                              .norm = {.gate = b.view()},
                              .weight = {},
                              .bias = {},
                              .y = c.view(),
                              .finish = Convolve{.weight = {}, .bias = {}, .cache = d.view()},
                              .z = {}};
  const auto cpu = make_cpu_backend(1);
  Workspace workspace(*cpu);
  CHECK(memory_of(ops::Project{{&projection, 1}, workspace}) == Memory{c.view().data, d.view().data});
  const DecayedOuterProduct memory{.q = a.view(), .initial_state = b.view(), .final_state = b.view(), .o = c.view()};
  CHECK(memory_of(ops::DecayedOuterProduct{memory, 1}) == Memory{b.view().data, c.view().data});
  const SparseSources from{.q = {.pair = a.view()}, .k = {.pair = b.view()}, .gate = c.view(), .selected = {}, .decays = {projection}};
  const SparseState sparse{.q = a.view(), .final_state = d.view()};
  CHECK(memory_of(ops::SparseState{sparse, &from, 1, workspace}) == Memory{a.view().data, b.view().data, c.view().data, d.view().data});
}

TEST_CASE("checked device: devices that agree compute what one of them does") {
  Random random(1);
  const Numbers x = random.uniform({5, 12}), weight = random.uniform({12}), up = random.uniform({20, 12}), down = random.uniform({12, 20});
  const auto swiglu_on = [&](Backend& device, Workspace& workspace, Tensor y, ConstTensor in) {
    device.swiglu(y, in, up.view(), up.view(), down.view(), workspace, {.group = 12, .weight = weight.view(), .eps = 1e-6F}, in);
  };
  Checked checked;
  const Tensor y = checked.room({5, 12});
  swiglu_on(*checked.operator->(), checked.workspace(), y, checked.in(x));
  const auto cpu = make_cpu_backend(1);
  Workspace workspace(*cpu);
  Numbers truth = poisoned({5, 12});
  swiglu_on(*cpu, workspace, truth.view(), x.view());
  CHECK(checked.read(y) == truth.values);
}

TEST_CASE("checked device: the first number apart is named, with both numbers and the tolerance") {
  Checked checked(adds(0.25F, 3, 2), 0.01);
  const Tensor x = checked.in(Numbers(Shape{4, 1, 5}, std::vector<float>(20, 2)));
  CHECK(stopped([&] { checked->activate(x, x, Activation::identity); }) ==
        "activate, result [3, 0, 2]: 2 on cpu, 2.25 on other (tolerance: 0.01 of its largest number, 2.25)");
}

TEST_CASE("checked device: views, results in place and states are compared where they lie") {
  Random random(2);
  const Numbers wide = random.uniform({4, 9}), part = random.uniform({4, 3});
  SECTION("columns of wider rows, next to numbers that nobody wrote") {
    Checked checked(adds(1, 2, 1));
    const Tensor y = checked.room({4, 9}).columns(4, {3});
    CHECK_THAT(stopped([&] { checked->activate(y, checked.in(part), Activation::silu); }), ContainsSubstring("activate, result [2, 1]: "));
  }
  SECTION("in place") {
    Checked checked(adds(1, 0, 8));
    const Tensor y = checked.in(wide);
    CHECK_THAT(stopped([&] { checked->add(y, y, y); }), ContainsSubstring("add, result [0, 8]: "));
  }
  SECTION("a state in place, of a slot in the middle") {
    const std::int32_t rows[] = {0, 3, 7};
    const std::int32_t slots[] = {2, 0};
    const auto changes_slot = [](std::int64_t slot) {
      return [slot](const Operation& operation) {
        for (const Tensor& x : written_by(operation)) {
          if (x.shape.rank() == 4) x.f32(slot)[1] += 1;
        }
      };
    };
    for (const std::int64_t slot : {0, 2}) {
      Checked checked(changes_slot(slot));
      const Tensor state = checked.in(random.uniform({3, 2, 3, 5})), o = checked.room({7, 2, 5});
      DecayedOuterProduct op;
      op.q = checked.in(random.uniform({7, 2, 3})), op.k = checked.in(random.uniform({7, 2, 3})),
      op.v = checked.in(random.uniform({7, 2, 5}));
      op.segments = {rows, slots}, op.initial_state = state, op.final_state = state, op.o = o;
      const std::string said = stopped([&] { checked->decayed_outer_product(op, 2); });
      CHECK_THAT(said, ContainsSubstring("decayed_outer_product, result 1 [" + std::to_string(slot) + ", 0, 0, 1]: "));
    }
  }
  SECTION("the second of two products side by side, whose first differs less than it may") {
    const auto changes_both = [](const Operation& operation) {
      const std::vector<Tensor> all = written_by(operation);
      all[0].f32(1)[0] += 1e-5F;
      all[1].f32(1)[2] += 1;
    };
    Checked checked(changes_both, 1e-3);
    const Tensor y = checked.room({4, 6}), x = checked.in(wide), weight = checked.in(random.uniform({3, 9}));
    const LinearProduct products[] = {{y.columns(0, {3}), weight, {}, {}}, {y.columns(3, {3}), weight, {}, {}}};
    CHECK_THAT(stopped([&] { checked->linear_together(products, x); }), ContainsSubstring("linear_together, result 2 [1, 2]: "));
  }
  SECTION("the cache of a convolution behind a product") {
    const auto changes_cache = [](const Operation& operation) { written_by(operation)[1].f32(0)[4] += 1; };
    Checked checked(changes_cache);
    const Tensor cache = checked.in(random.uniform({1, 2, 4}));
    const Projection p{.x = checked.in(wide),
                       .norm = {},
                       .weight = checked.in(random.uniform({4, 9})),
                       .bias = {},
                       .y = checked.room({4, 4}),
                       .finish = Convolve{checked.in(random.uniform({4, 3})), {}, Activation::silu, cache, checked.room({4, 4})},
                       .z = {}};
    CHECK_THAT(stopped([&] { checked->project({&p, 1}, checked.workspace()); }), ContainsSubstring("project, result 2 [0, 1, 0]: "));
  }
}

TEST_CASE("checked device: indices must be equal, and what is no number must be none on both") {
  Random random(3);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  SECTION("indices") {
    Checked checked(adds(1, 1, 0), 1);
    const Tensor ids = checked.room({2, 2}, DType::i32);
    CHECK_THAT(stopped([&] { checked->top_k(ids, checked.in(random.uniform({2, 7}))); }), ContainsSubstring("top_k, result [1, 0]: "));
  }
  SECTION("no numbers on both") {
    Checked checked;
    const Tensor x = checked.in(Numbers(Shape{1, 4}, {nan, inf, -inf, 1}));
    checked->activate(x, x, Activation::identity);
    CHECK(std::isnan(checked.read(x)[0]));
  }
  SECTION("no number on one") {
    for (const float other : {nan, inf}) {
      Checked checked(adds(other, 0, 3), 1);
      const Tensor x = checked.in(Numbers(Shape{1, 4}, {nan, inf, -inf, 1}));
      CHECK_THAT(stopped([&] { checked->activate(x, x, Activation::identity); }), ContainsSubstring("activate, result [0, 3]: 1 on cpu, "));
    }
  }
}

TEST_CASE("checked device: what may differ is what one operation does, not what many have summed up") {
  // Each operation is wrong by less than it may be; a hundred of them are not.
  Checked checked(adds(1e-4F, 0, 0), 1e-3);
  const Tensor x = checked.in(Numbers(Shape{1, 2}, {1, 1}));
  for (int i = 0; i < 100; ++i) checked->activate(x, x, Activation::identity);
  CHECK(checked.read(x) == std::vector<float>{1, 1});
}

TEST_CASE("checked device: memory that is not its own is refused, and parts of its own are found") {
  Checked checked;
  Numbers host(Shape{2, 2});
  CHECK_THROWS_AS(checked->fill(host.view(), 1), std::logic_error);
  const Tensor x = checked.room({3, 2});
  checked->fill(x.slice(0, 0), 1);  // nothing of it
  checked->fill(x, 1);
  checked->fill(x.slice(2, 1), 5);
  CHECK(checked.read(x) == std::vector<float>{1, 1, 1, 1, 5, 5});
}

TEST_CASE("checked device: by name") {
  const auto wrong = [](const std::string& name) -> std::string {
    try {
      return checked_devices(name) ? "" : "none";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  CHECK(wrong("cpu") == "none");
  CHECK(wrong("check:cpu,cuda") == "");
  CHECK(wrong("check:cuda:0,cuda:1,0") == "");
  CHECK(checked_devices("check:cpu,cuda:1,1e-3")->other == "cuda:1");
  CHECK(checked_devices("check:cpu,cuda:1,1e-3")->tolerance == 1e-3);
  CHECK(wrong("check:cpu") == "\"check:cpu\" does not name two devices; give check:cpu,cuda or check:cpu,cuda,1e-3");
  CHECK(wrong("check:cpu,cuda,1,2").starts_with("\"check:cpu,cuda,1,2\" does not name two devices"));
  CHECK(wrong("check:cpu,auto") == "there is no device \"auto\" to check; give cpu, cuda or cuda:1");
  CHECK(wrong("check:,cpu").starts_with("there is no device \"\" to check"));
  CHECK(wrong("check:cpu,check:cpu").starts_with("there is no device \"check:cpu\" to check"));
  for (const char* tolerance : {"", "x", "-1", "2", "nan", "1e-3x"}) {
    INFO(tolerance);
    CHECK(wrong(std::string("check:cpu,cpu,") + tolerance).ends_with("is no tolerance from 0 to 1; give check:cpu,cuda,1e-3"));
  }
  const std::string cpu = make_cpu_backend(1)->description();
  CHECK(make_backend("check:cpu,cpu", 1)->description() == cpu + "; each operation checked on " + cpu);
}

}  // namespace statescope::checked_device_test
