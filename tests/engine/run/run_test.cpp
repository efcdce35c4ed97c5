// A run: any state at any token, forwards and back, is what a fresh reading of the same tokens has there.
#include "engine/run/run.h"

#include <malloc.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "kernels/device_rows.h"
#include "tests/engine/analysis/states.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_device.h"
#include "tests/engine/model/small_models.h"
#include "tests/kernels/device_cases.h"
#include "tests/source.h"

namespace statescope::test::run_test {
namespace {

constexpr std::int64_t kPrompt = 70, kTokens = 82;

std::vector<SmallModel> run_models() {
  std::vector<SmallModel> chosen;
  for (const char* name : {"gla hybrid", "sse gla n4k2, conv", "sse gdn grouped, neg, w2 r3", "mom, one projection", "mamba2", "gsa",
                           "retnet", "linear_attn hedgehog", "sse swa moba gdn", "qwen3_next", "transformer", "minimax", "rwkv6", "rwkv7",
                           "zamba", "hymba", "log_linear_mamba2", "s4 hippo"}) {
    for (const SmallModel& model : small_models()) {
      if (model.name == name) chosen.push_back(model);
    }
  }
  REQUIRE(chosen.size() == 18);
  return chosen;
}

std::shared_ptr<Model> load(const json& config) { return Model::load(random_checkpoint(Config(config), 5), make_cpu_backend(1)); }

/// Prompt, then one token at a time.
void read_all(Run& run, std::span<const std::int32_t> ids) {
  run.read(ids.first(kPrompt), kPrompt);
  for (std::size_t t = kPrompt; t < ids.size(); ++t) run.read(ids.subspan(t, 1), kPrompt);
}

/// The first memory of every layer after `tokens` tokens of a reading that stops there.
std::vector<std::vector<float>> fresh_states(Model& model, std::span<const std::int32_t> ids, std::int64_t tokens) {
  ModelState state = model.start();
  if (tokens > 0) read_logits(model, state, ids.first(static_cast<std::size_t>(tokens)), {.prompt_length = kPrompt});
  std::vector<std::vector<float>> states;
  for (const MixerState& layer : state.layers)
    states.push_back(layer.memory.empty() ? std::vector<float>{} : host_copy(model.backend(), layer.memory[0]));
  return states;
}

/// Of the heap, by this thread.
std::size_t bytes_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

bool near(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (std::equal(a.begin(), a.end(), b.begin()) || relative_error(a, b) <= 1e-5);
}

}  // namespace

TEST_CASE("run: the states around any token are those of a fresh run that stops there") {
  const std::vector<std::int32_t> ids = some_ids(kTokens);
  for (const SmallModel& small : run_models()) {
    for (const std::size_t budget : {std::size_t{1} << 30, std::size_t{1}}) {
      const std::shared_ptr<Model> model = load(small.config);
      Run run(model, {.keyframe_interval = 4, .memory_budget = budget});
      read_all(run, ids);
      REQUIRE(run.tokens() == kTokens);
      bool stateful = false;
      for (std::int64_t layer = 0; layer < model->layers(); ++layer) stateful = stateful || !model->layout(layer).memory.empty();
      if (stateful) CHECK((run.keyframe_interval() > 4) == (budget == 1));
      for (std::int64_t t : {0, 3, 69, 4, 80, 31, 70, 81, 33, 16}) {
        INFO(small.name << ", token " << t << ", keyframes every " << run.keyframe_interval());
        const auto before = fresh_states(*model, ids, t), after = fresh_states(*model, ids, t + 1);
        for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
          const auto l = static_cast<std::size_t>(layer);
          const auto [left, right] = run.states_around(layer, t);
          CHECK(near(left.values, before[l]));
          CHECK(near(right.values, after[l]));
          CHECK(near(run.state(layer, t).values, after[l]));
          if (right.heads > 0) CHECK(run.head_states_around(layer, right.heads - 1, t).first.values == one_head(left, right.heads - 1));
          CHECK(right.slots * right.heads * right.rows * right.columns == static_cast<std::int64_t>(right.values.size()));
        }
      }
    }
  }
}

TEST_CASE("run: at keyframes and at the end a state is the run's own, to the bit") {
  const std::vector<std::int32_t> ids = some_ids(50);
  const std::shared_ptr<Model> model = load(sse_config("gla", {{"use_short_conv", true}}));
  Run run(model, {.keyframe_interval = 16});
  run.read(ids, 50);
  ModelState state = model->start();
  std::int64_t read = 0;
  for (std::int64_t end : {16, 32, 48, 50}) {
    read_logits(*model, state, std::span(ids).subspan(static_cast<std::size_t>(read), static_cast<std::size_t>(end - read)),
                {.chunk_size = 64, .prompt_length = 50});
    read = end;
    CHECK(run.is_keyframe(end - 1));
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const std::vector<float> expected = host_copy(model->backend(), state.layers[static_cast<std::size_t>(layer)].memory[0]);
      CHECK(run.state(layer, end - 1).values == expected);
      CHECK(run.states_around(layer, end - 1).second.values == expected);
    }
  }
  CHECK_FALSE(run.is_keyframe(20));
}

TEST_CASE("run: what a token leaves alone has the same bits before and after it, at keyframes too") {
  const std::vector<std::int32_t> ids = some_ids(150);
  for (const char* type : {"gla", "gdn"}) {
    const std::shared_ptr<Model> model = load(sse_config(type));
    const auto run = std::make_shared<Run>(model, RunOptions{.keyframe_interval = 16});
    run->read(ids, 150);
    Run branch(run, 40, Schedule());
    branch.read(std::span(ids).subspan(40), 150);
    for (Run* const of : {run.get(), &branch}) {
      for (const std::int64_t token : {15, 39, 40, 127, 149}) {
        INFO(type << ", token " << token << (of == &branch ? " of the branch" : ""));
        CHECK((token == 40 || of->is_keyframe(token) || of == run.get()));
        const auto [before, after] = of->states_around(1, token);
        const std::span<const std::uint8_t> selected = std::span(of->routing(1)->selected).subspan(static_cast<std::size_t>(token) * 4, 4);
        const std::size_t size = after.values.size() / 5;  // of a slot
        for (std::size_t slot = 0; slot < 5; ++slot) {
          const bool chosen = slot == 0 || selected[slot - 1] != 0;
          CHECK(std::equal(&before.values[slot * size], &before.values[slot * size] + size, &after.values[slot * size]) == !chosen);
        }
      }
    }
  }
}

namespace {

/// Says how many bytes came to the host, how often a memory was replayed, and which rows were kept for a window.
class WatchedDevice final : public FailingDevice {
 public:
  WatchedDevice() : WatchedDevice(std::make_shared<int>(0)) {}

  void download(Tensor host, ConstTensor device) override {
    bytes_to_host += host.shape.size() * static_cast<std::int64_t>(size_of(host.dtype));
    FailingDevice::download(host, device);
  }
  std::shared_ptr<const DeviceRows> rows_for_window(ConstTensor rows) override {
    return std::make_shared<Kept>(std::vector<float>(rows.f32(), rows.f32() + rows.shape.size()));
  }

  struct Kept final : DeviceRows {
    explicit Kept(std::vector<float> values_) : values(std::move(values_)) {}
    std::size_t bytes() const override { return values.size() * sizeof(float); }
    std::unique_ptr<SharedBuffer> share(unsigned) const override { return nullptr; }
    std::vector<float> values;
  };

  std::int64_t bytes_to_host = 0;
  std::shared_ptr<int> replays;

 private:
  explicit WatchedDevice(const std::shared_ptr<int>& count)
      : FailingDevice([count](std::string_view operation) { *count += operation == "decayed_outer_product" ? 1 : 0; }), replays(count) {}
};

}  // namespace

TEST_CASE("run: for a window one head alone comes to the host, and another head at the same place costs no replay") {
  const auto device = std::make_shared<WatchedDevice>();
  const auto model = Model::load(random_checkpoint(Config(sse_config("gla")), 5), device);
  Run run(model, {.keyframe_interval = 16});
  run.read(some_ids(50), 50);
  for (const std::int64_t token : {0, 15, 16, 40, 49}) {
    INFO("token " << token);
    const auto [before, after] = run.states_around(1, token);
    REQUIRE(after.heads > 1);
    const int replays = *device->replays;
    for (std::int64_t head = 0; head < after.heads; ++head) {
      const std::int64_t bytes = device->bytes_to_host;
      const auto [left, right] = run.head_states_around(1, head, token);
      CHECK(device->bytes_to_host - bytes == 2 * 4 * after.slots * after.rows * after.columns);
      CHECK(left.values == one_head(before, head));
      CHECK(right.values == one_head(after, head));
      CHECK((right.slots == after.slots && right.heads == after.heads && right.rows == after.rows && right.columns == after.columns));
      for (const HeadState* state : {&left, &right}) {
        const auto* kept = dynamic_cast<const WatchedDevice::Kept*>(state->on_device.get());
        REQUIRE(kept);
        CHECK(kept->values == state->values);
      }
    }
    CHECK(*device->replays == replays);
    const HeadState again = run.head_state(1, 1, token);
    CHECK(near(again.values, one_head(after, 1)));  // replayed in other pieces
    CHECK_FALSE(again.on_device);
  }
}

TEST_CASE("run: logits and routing, a row for every token") {
  const std::vector<std::int32_t> ids = some_ids(kTokens);
  for (const SmallModel& small : run_models()) {
    INFO(small.name);
    const std::shared_ptr<Model> model = load(small.config);
    Run run(model);
    read_all(run, ids);
    ModelState state = model->start();
    const std::vector<float> expected = read_logits(*model, state, ids, {.prompt_length = kPrompt});
    for (std::int64_t t : {0, 17, 69, 70, 81}) {
      CHECK(relative_error(run.logits(t), std::span(expected).subspan(static_cast<std::size_t>(t * model->vocab()),
                                                                      static_cast<std::size_t>(model->vocab()))) < 1e-4);
    }
    for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
      const std::shared_ptr<const Routing> routing = run.routing(layer);
      REQUIRE((routing == nullptr) == (model->layout(layer).partitions == 0));
      if (!routing) continue;
      REQUIRE(routing->tokens() == kTokens);
      REQUIRE(routing->selected.size() == routing->gate.size());
      std::set<std::int64_t> counts;
      for (std::int64_t t = 0; t < kTokens; ++t) {
        double sum = 0;
        std::int64_t count = 0;
        for (std::int64_t n = 0; n < routing->partitions; ++n) sum += routing->gate_at(t, n), count += routing->selected_at(t, n);
        CHECK(sum == Approx(1));
        counts.insert(count);
      }
      CHECK(counts.size() == 1);
    }
  }
}

TEST_CASE("run: routing that was handed out stays as it was while the run grows") {
  const std::vector<std::int32_t> ids = some_ids(30);
  Run run(load(sse_config("gla")));
  run.read(std::span(ids).first(20), 20);
  const std::shared_ptr<const Routing> early = run.routing(0);
  const std::vector<float> gate = early->gate;
  run.read(std::span(ids).subspan(20), 20);
  CHECK(early->tokens() == 20);
  CHECK(early->gate == gate);
  CHECK(run.routing(0)->tokens() == 30);
}

TEST_CASE("run: before the first token there is nothing, one token is a run, a stopped reading goes on") {
  const std::vector<std::int32_t> ids = some_ids(300);
  const std::shared_ptr<Model> model = load(small_config("gla"));
  Run run(model);
  std::vector<std::int64_t> seen;
  run.read(ids, 300, [&](std::int64_t tokens) { return seen.push_back(tokens), false; });
  REQUIRE(seen == std::vector<std::int64_t>{128});
  CHECK(run.tokens() == 128);
  run.read(std::span(ids).subspan(128), 300);
  const auto [before, after] = run.states_around(0, 0);
  CHECK(before.values == std::vector<float>(after.values.size(), 0));
  CHECK(run.state(0, -1).values == before.values);
  const std::vector<float> logits = logits_of(*model, ids);
  CHECK(relative_error(run.logits(299), std::span(logits).last(97)) < 1e-4);

  Run single(model);
  single.read(std::span(ids).first(1), 1);
  CHECK(single.tokens() == 1);
  CHECK(single.state(0, 0).values == after.values);
}

TEST_CASE("run: a token outside the vocabulary is refused, and the run goes on without it") {
  Run run(load(small_config("gla")));
  const std::vector<std::int32_t> good = some_ids(5), bad{1, 97};
  run.read(good, 5);
  CHECK(error_of([&] { run.read(bad, 5); }) == "token id 97 is outside the vocabulary of 97");
  CHECK(error_of([&] { run.read(std::vector<std::int32_t>{-1}, 5); }) == "token id -1 is outside the vocabulary of 97");
  CHECK(run.tokens() == 5);
  run.read(good, 5);
  CHECK(run.tokens() == 10);
}

namespace {

/// Seeks in a recording on `backend`, in passes of a few hundred tokens, against readings on the same that record nothing.
void check_seeks(const std::shared_ptr<Backend>& backend, std::size_t memory_budget, std::size_t host_memory_budget, double tolerance) {
  constexpr std::int64_t tokens = 1300;
  const std::vector<std::int32_t> ids = some_ids(tokens);
  for (const char* type : {"gla", "gdn"}) {
    INFO(type << ", budgets " << memory_budget << " and " << host_memory_budget);
    const auto model = Model::load(random_checkpoint(Config(sse_config(type, {{"use_short_conv", true}})), 5), backend);
    Run run(model,
            {.tokens_at_once = 300, .keyframe_interval = 300, .memory_budget = memory_budget, .host_memory_budget = host_memory_budget});
    run.read(std::span(ids).first(tokens - 3), tokens - 3);
    for (std::size_t t = tokens - 3; t < tokens; ++t) run.read(std::span(ids).subspan(t, 1), tokens - 3);
    for (const std::int64_t t : {0, 7, 255, 256, 299, 300, 511, 899, 1100, 1296, 1297, 1299}) {
      INFO("token " << t);
      ModelState state = model->start();
      const Buffer memory = backend->allocate(static_cast<std::size_t>((t + 1) * model->hidden()) * sizeof(float));
      model->forward(state, std::span(ids).first(static_cast<std::size_t>(t + 1)), {.prompt_length = tokens - 3},
                     Tensor(memory.get(), DType::f32, {t + 1, model->hidden()}));
      for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
        const auto [before, after] = run.states_around(layer, t);
        CHECK(relative_error(after.values, host_copy(*backend, state.layers[static_cast<std::size_t>(layer)].memory[0])) <= tolerance);
        const std::vector<float> former = run.state(layer, t - 1).values;
        CHECK((run.is_keyframe(t) ? relative_error(before.values, former) <= tolerance : before.values == former));
        CHECK(run.routing(layer)->tokens() == tokens);
      }
    }
    CHECK(run.remark().empty());
  }
}

}  // namespace

TEST_CASE("run: recorded on a device, on its host and in a file alike") {
  for (const auto& [on_device, on_host] : {std::pair<std::size_t, std::size_t>{1 << 30, 0}, {400'000, 1 << 30}, {400'000, 200'000}})
    check_seeks(std::make_shared<SmallDevice>(std::size_t{1} << 30), on_device, on_host, 1e-5);
}

TEST_CASE("device: seeks in a recording are what a reading that records nothing has there", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend();
  if (!device) return;
  for (const auto& [on_device, on_host] : {std::pair<std::size_t, std::size_t>{0, 0}, {400'000, 1 << 30}, {400'000, 200'000}})
    check_seeks(device, on_device, on_host, 1e-5);
}

TEST_CASE("device: replayed in the passes of the recording, a state is the recording's own, to the bit", "[device]") {
  const std::vector<std::int32_t> ids = some_ids(1200);
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const std::shared_ptr<Backend> device = testing::cuda_backend(precision);
    if (!device) return;
    for (const char* type : {"gla", "gdn"}) {
      INFO(type << ", " << device->description());
      const auto model = Model::load(random_checkpoint(Config(sse_config(type)), 5, DType::bf16), device);
      Run kept(model, {.tokens_at_once = 200, .keyframe_interval = 200}),
          replayed(model, {.tokens_at_once = 200, .keyframe_interval = 1000});
      kept.read(ids, 1200);
      replayed.read(ids, 1200);
      for (std::int64_t t = 199; t < 1200; t += 200) {
        for (std::int64_t layer = 0; layer < model->layers(); ++layer)
          CHECK(replayed.state(layer, t).values == kept.state(layer, t).values);
      }
    }
  }
}

TEST_CASE("run: where a device runs out of memory the recording continues in the host's, and nothing is lost") {
  const std::vector<std::int32_t> ids = some_ids(2000);
  const auto checkpoint = random_checkpoint(Config(sse_config("gla")), 5);
  const auto plain = Model::load(checkpoint, make_cpu_backend(1));
  for (const std::size_t room : {400'000, 700'000}) {
    INFO(room << " bytes beside the model");
    const auto device = std::make_shared<SmallDevice>(std::size_t{1} << 30);
    const auto model = Model::load(checkpoint, device);
    // What reading takes without a recording.
    Run first(model, {.tokens_at_once = 128, .keyframe_interval = 512});
    first.read(std::span(ids).first(128), 2000);
    const Buffer rest = device->allocate(device->free_bytes() - room);

    Run run(model, {.tokens_at_once = 128, .keyframe_interval = 512, .memory_budget = 1 << 30});
    run.read(ids, 2000);
    CHECK(run.tokens() == 2000);
    CHECK(run.remark() == "the device is out of memory: the recording continues in the host's");
    CHECK(run.bytes_on_device() <= room / 2);
    for (const std::int64_t t : {1, 400, 511, 512, 1600, 1999}) {
      const auto expected = fresh_states(*plain, ids, t + 1);
      for (std::int64_t layer = 0; layer < model->layers(); ++layer)
        CHECK(relative_error(run.state(layer, t).values, expected[static_cast<std::size_t>(layer)]) <= 1e-5);
    }
  }
}

TEST_CASE("run: routing is a part of what the budget is for") {
  constexpr std::size_t budget = 6 << 20;
  const std::vector<std::int32_t> ids = some_ids(8000);
  json config = sse_config("gla", {{"num_sparse_partition", 32}});
  Run run(load(config), {.memory_budget = budget});
  const auto bytes = [&] {
    const RecordingInfo told = run.recording();
    CHECK(told.memory == static_cast<std::int64_t>(run.bytes_in_memory()));
    CHECK((told.memory_budget == budget && told.host_budget == 0 && told.file == static_cast<std::int64_t>(run.bytes_in_file())));
    CHECK(told.keyframe_interval == run.keyframe_interval());
    return run.bytes_in_memory();
  };
  for (std::size_t read = 0; read < ids.size(); read += 1000) {
    run.read(std::span(ids).subspan(read, 1000), 8000);
    CHECK(bytes() <= budget + budget / 10);
    if (read % 2000 == 0) run.routing(0), run.routing(1);
  }
  CHECK(run.bytes_in_file() > 0);
  const std::size_t routing = 8000 * 2 * 32 * (sizeof(float) + 1);
  CHECK(routing > budget / 4);
  CHECK(run.routing(0)->tokens() == 8000);
}

TEST_CASE("run: ten thousand seeks in a long recording, most of it in a file, against a reading that records nothing") {
  constexpr std::int64_t tokens = 32'768, seeks = 10'000, compared = 200;
  constexpr std::size_t budget = 32 << 20;
  const auto checkpoint = open_checkpoint(from_source("assets/checkpoints/niah/niah-sse-gla-n4k1.h5"));
  const std::shared_ptr<Model> model = Model::load(checkpoint, make_cpu_backend(1));
  std::mt19937 random(3);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
  const std::vector<std::int32_t> ids = some_ids(tokens, model->vocab());
  const std::size_t before = bytes_in_use();
  Run run(model, {.memory_budget = budget});
  run.read(ids, tokens);
  CHECK(bytes_in_use() <= before + budget + budget / 10);  // whatever the run counts
  CHECK(run.bytes_in_file() > budget);
  CHECK(run.bytes_in_memory() <= budget + budget / 10);

  std::set<std::int64_t> chosen;
  while (static_cast<std::int64_t>(chosen.size()) < compared) chosen.insert(below(tokens));
  // In the recording's passes: cut elsewhere, sums are rounded otherwise, and a token between two partitions may go to the other one.
  const std::int64_t pass = run.tokens_at_once();
  ModelState state = model->start();
  const auto read_to = [&](ModelState& reading, std::int64_t end) {
    const std::span<const std::int32_t> rest = std::span(ids).subspan(static_cast<std::size_t>(reading.position));
    if (end > reading.position)
      read_logits(*model, reading, rest.first(static_cast<std::size_t>(end - reading.position)), {.prompt_length = tokens});
  };
  std::map<std::int64_t, std::vector<std::vector<float>>> expected;
  for (const std::int64_t token : chosen) {
    while (state.position + pass <= token + 1) read_to(state, state.position + pass);
    ModelState here = model->start();
    here.position = state.position;
    for (std::size_t layer = 0; layer < state.layers.size(); ++layer)
      model->backend().copy(here.layers[layer].everything, state.layers[layer].everything);
    read_to(here, token + 1);
    for (const MixerState& layer : here.layers) expected[token].push_back(host_copy(model->backend(), layer.memory[0]));
  }
  std::int64_t agreed = 0;
  std::vector<std::int64_t> order(chosen.begin(), chosen.end());
  for (std::int64_t seek = 0; seek < seeks; ++seek) {
    const bool compare = seek % (seeks / compared) == 0;
    const std::int64_t token = compare ? order[static_cast<std::size_t>(seek / (seeks / compared))] : below(tokens),
                       layer = below(model->layers());
    const LayerState found = run.state(layer, token);
    if (compare) agreed += near(found.values, expected[token][static_cast<std::size_t>(layer)]) ? 1 : 0;
  }
  CHECK(agreed == compared);
}

}  // namespace statescope::test::run_test
