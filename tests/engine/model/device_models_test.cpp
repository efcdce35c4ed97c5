// Whole models of every family on a CUDA device against the CPU: a prompt in two parts, then token by token.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>

#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"
#include "tests/kernels/device_cases.h"

namespace statescope::test::device_models_test {
namespace {

// Of so few channels roundings do not average out; and where two scores are nearly equal a rounding decides which partition, expert, block
// or row is chosen, and another one is another memory (two that have nothing in common are √2 apart).
constexpr double exact_tolerance = 2e-4, rounded_tolerance = 4e-2, other_choice_tolerance = 0.7;

/// A model being read on one backend.
class Reader {
 public:
  Reader(std::shared_ptr<const Checkpoint> checkpoint, std::shared_ptr<Backend> backend)
      : Reader(Model::load(std::move(checkpoint), std::move(backend))) {}
  explicit Reader(std::shared_ptr<Model> model) : model_(std::move(model)), state_(model_->start()) {}

  /// Logits of the next tokens, [T, V] or of those whose outputs are wanted.
  std::vector<float> read(std::span<const std::int32_t> ids, const ForwardOptions& options) {
    const auto T = static_cast<std::int64_t>(ids.size());
    const Tensor hidden = tensor(hidden_, {T, model_->hidden()}), logits = tensor(logits_, {T, model_->vocab()});
    model_->forward(state_, ids, options, hidden);
    model_->logits(logits, hidden);
    const std::int64_t wanted = options.outputs.value_or(T);
    if (wanted == 0) return {};
    return host_copy(model_->backend(), logits.slice(T - wanted, wanted));
  }
  std::vector<float> memories(std::int64_t layer) const { return host_copy(model_->backend(), of(layer).everything); }
  std::vector<float> keys_and_values(std::int64_t layer) const {
    const KvCache& kv = of(layer).kv;
    if (kv.length == 0) return {};
    std::vector<float> both = host_copy(model_->backend(), kv.k.slice(0, kv.length));
    const std::vector<float> v = kv.v ? host_copy(model_->backend(), kv.v.slice(0, kv.length)) : std::vector<float>();
    both.insert(both.end(), v.begin(), v.end());
    if (!kv.index) return both;
    const std::vector<float> index = host_copy(model_->backend(), kv.index.slice(0, kv.length));
    both.insert(both.end(), index.begin(), index.end());
    return both;
  }
  std::int64_t layers() const { return model_->layers(); }

 private:
  const MixerState& of(std::int64_t layer) const { return state_.layers[static_cast<std::size_t>(layer)]; }
  Tensor tensor(Buffer& memory, const Shape& shape) {
    memory = model_->backend().allocate(static_cast<std::size_t>(shape.size()) * sizeof(float));
    model_->backend().fill(Tensor(memory.get(), DType::f32, shape), std::nanf(""));
    return {memory.get(), DType::f32, shape};
  }

  std::shared_ptr<Model> model_;
  ModelState state_;
  Buffer hidden_, logits_;
};

void append(std::vector<float>& all, const std::vector<float>& more) { all.insert(all.end(), more.begin(), more.end()); }

/// Tokens that are read together.
struct Pass {
  std::size_t tokens;
  std::int64_t chunk_size;
  std::optional<std::int64_t> outputs = {};
};
using Passes = std::vector<Pass>;

/// A prompt in two parts, then token by token.
Passes prompt_and_steps() {
  Passes passes{{63, 64}, {9, 64}};
  passes.insert(passes.end(), 8, {1, 0});
  return passes;
}

std::vector<float> all_logits(Reader& reader, const Passes& passes) {
  const std::vector<std::int32_t> ids = some_ids(200);
  std::vector<float> logits;
  std::size_t begin = 0;
  for (const Pass& pass : passes) {
    append(logits, reader.read(std::span(ids).subspan(begin, pass.tokens),
                               {.chunk_size = pass.chunk_size, .prompt_length = 72, .outputs = pass.outputs}));
    begin += pass.tokens;
  }
  return logits;
}

/// The logits of everything that is read, and the memories after it.
void compare(std::shared_ptr<const Checkpoint> checkpoint, std::shared_ptr<Backend> device, const Passes& passes, double tolerance) {
  Reader truth(checkpoint, make_cpu_backend()), found(checkpoint, std::move(device));
  CHECK(relative_error(all_logits(found, passes), all_logits(truth, passes)) < tolerance);
  for (std::int64_t layer = 0; layer < truth.layers(); ++layer) {
    INFO("layer " << layer);
    CHECK(relative_error(found.memories(layer), truth.memories(layer)) < tolerance);
    CHECK(relative_error(found.keys_and_values(layer), truth.keys_and_values(layer)) < tolerance);
  }
}

bool chooses(const SmallModel& small) {
  constexpr const char* families[] = {"gla row-sparse",   "mom",      "sse",   "qwen3_next",           "nemotron_h",
                                      "granitemoehybrid", "lfm2_moe", "jamba", "kimi_linear, experts", "metala row-sparse",
                                      "metala, one row",  "moba",     "nsa",   "deepseek_v32"};
  return std::any_of(std::begin(families), std::end(families), [&](const char* family) { return small.name.starts_with(family); });
}

/// Of a model that chooses nothing, twice what rounded products do to it on the CPU: KDA's decay is made of two products and exp, the block
/// that Zamba's layers share has no residual.
double tolerance_of(const SmallModel& small, std::shared_ptr<const Checkpoint> checkpoint, Precision precision, const Passes& passes) {
  if (precision == Precision::float32) return exact_tolerance;
  if (chooses(small)) return other_choice_tolerance;
  Reader truth(checkpoint, make_cpu_backend()), rounded(checkpoint, make_cpu_backend(0, precision));
  return std::max(rounded_tolerance, 2 * relative_error(all_logits(rounded, passes), all_logits(truth, passes)));
}

void compare_every_family(Precision precision, const Passes& passes) {
  const std::shared_ptr<Backend> device = testing::cuda_backend(precision);
  if (!device) return;
  for (const SmallModel& small : small_models()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      INFO(small.name << ", " << name_of(dtype));
      try {
        const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small.config), 1, dtype);
        compare(checkpoint, device, passes, tolerance_of(small, checkpoint, precision, passes));
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
}

}  // namespace

TEST_CASE("device: every family reads a prompt and decodes as on the CPU", "[device]") {
  compare_every_family(Precision::float32, prompt_and_steps());
}

TEST_CASE("device: every family leaves out outputs that nobody wants as on the CPU", "[device]") {
  compare_every_family(Precision::float32, {{70, 64, 1}, {39, 64, 33}, {50, 64, 0}, {2, 64, 1}, {1, 0}});
}

TEST_CASE("device: every family reads a prompt and decodes nearly as on the CPU, with activations in bfloat16", "[device]") {
  compare_every_family(Precision::bfloat16, prompt_and_steps());
}

TEST_CASE("device: a layer's steps behind one another, with nothing asked between them, are those of the CPU", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend(Precision::float32);
  if (!device) return;
  constexpr std::int64_t steps = 3;
  for (const SmallModel& small : small_models()) {
    const auto checkpoint = random_checkpoint(Config(small.config), 1, DType::bf16);
    const auto after = [&](const std::shared_ptr<Backend>& backend) {
      const std::shared_ptr<Model> model = Model::load(checkpoint, backend);
      std::vector<float> numbers(static_cast<std::size_t>(steps * model->hidden()));
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
      const Buffer memory = backend->allocate(numbers.size() * sizeof(float));
      const Tensor x(memory.get(), DType::f32, {steps, model->hidden()});
      backend->upload(x, ConstTensor(numbers.data(), DType::f32, x.shape));
      ModelState state = model->start();
      for (std::int64_t t = 0; t < steps; ++t) {
        const Tensor row = x.slice(t, 1);
        model->replay(0, state.layers[0], row, t, {.chunk_size = 0, .companion = model->reads_companion(0) ? row : Tensor{}});
      }
      return state.layers[0].everything ? host_copy(*backend, state.layers[0].everything) : std::vector<float>();
    };
    INFO(small.name);
    CHECK(relative_error(after(device), after(make_cpu_backend())) < exact_tolerance);
  }
}

TEST_CASE("device: a model beside another reads with its weights, at the same time and after it has gone", "[device]") {
  if (!testing::cuda_backend(Precision::float32)) return;
  const std::vector<std::int32_t> ids = some_ids(80);
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    auto first = Model::load(random_checkpoint(Config(small.config), 1, DType::bf16), make_backend("cuda", 0, Precision::float32));
    const std::shared_ptr<Model> beside = first->beside(make_backend("cuda", 0, Precision::float32));
    const auto read = [&](std::shared_ptr<Model> model, std::vector<float>& logits) {
      Reader reader(std::move(model));
      append(logits, reader.read(std::span(ids).first(72), {.chunk_size = 64, .prompt_length = 72}));
      for (std::size_t t = 72; t < ids.size(); ++t)
        append(logits, reader.read(std::span(ids).subspan(t, 1), {.chunk_size = 0, .prompt_length = 72}));
    };
    std::vector<float> of_first, meanwhile, after;
    std::future<void> other = std::async(std::launch::async, [&] { read(beside, meanwhile); });
    read(first, of_first);
    other.get();
    CHECK(meanwhile == of_first);
    first.reset();
    read(beside, after);
    CHECK(after == of_first);
  }
}

TEST_CASE("device: a second device reads with the bits of the first, in turns with it", "[device]") {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const std::shared_ptr<Backend> device = testing::cuda_backend(precision);
    if (!device) return;
    std::shared_ptr<Backend> second;
    try {
      second = make_backend("cuda:1", 0, precision);
    } catch (const DeviceError& error) {
      WARN("skipped: " << error.what());
      return;
    }
    for (const SmallModel& small : small_models()) {
      INFO(small.name);
      const auto checkpoint = random_checkpoint(Config(small.config), 1, DType::bf16);
      Reader one(checkpoint, device), other(checkpoint, second);
      const std::vector<std::int32_t> ids = some_ids(80);
      const auto same = [&](std::size_t begin, std::size_t count, std::int64_t chunk_size) {
        const std::span<const std::int32_t> part = std::span(ids).subspan(begin, count);
        const ForwardOptions options{.chunk_size = chunk_size, .prompt_length = 72};
        const std::vector<float> a = one.read(part, options), b = other.read(part, options);
        return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
      };
      CHECK(same(0, 72, 64));
      for (std::size_t t = 72; t < ids.size(); ++t) CHECK(same(t, 1, 0));
    }
  }
}

}  // namespace statescope::test::device_models_test
