// A model whose layers live on several devices is, to the bit, the model on one of them: read in passes and steps, kept, sought, changed.
// No device can touch the memory of another here (locked_device.h).
#include "engine/model/placement.h"

#include "engine/clinic/collapse_report.h"
#include "engine/device.h"
#include "engine/error.h"
#include "engine/run/branches.h"
#include "engine/run/device_check.h"
#include "engine/run/scoring.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/locked_device.h"
#include "tests/engine/run/branch_cases.h"
#include "tests/engine/session/session_cases.h"

namespace statescope::test::placement_test {
namespace {

using Layers = std::vector<std::int64_t>;

/// Two devices, cut between any two layers and before the first; and one device for each layer.
std::vector<Layers> all_cuts(std::int64_t layers) {
  std::vector<Layers> cuts;
  for (std::int64_t first = 0; first < layers; ++first) cuts.push_back({first, layers - first});
  if (layers > 2) cuts.emplace_back(static_cast<std::size_t>(layers), 1);
  return cuts;
}

std::shared_ptr<Model> on_one(const std::shared_ptr<const Checkpoint>& checkpoint) {
  return Model::load(checkpoint, std::make_shared<LockedDevice>());
}
std::shared_ptr<Model> on_several(const std::shared_ptr<const Checkpoint>& checkpoint, const Layers& layers) {
  return Model::load(checkpoint, locked_devices(layers.size()), layers);
}

/// Logits [T, V] of the last tokens of a pass.
std::vector<float> read(Model& model, ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options) {
  const std::int64_t T = std::ssize(ids), wanted = options.outputs.value_or(T);
  Backend& backend = model.backend();
  const auto room = [&](std::int64_t numbers) { return backend.allocate(static_cast<std::size_t>(numbers) * sizeof(float)); };
  const Buffer hidden = room(T * model.hidden()), logits = room(wanted * model.vocab());
  const Tensor y(logits.get(), DType::f32, {wanted, model.vocab()});
  ForwardOptions all = options;
  all.logits = y;
  model.forward(state, ids, all, Tensor(hidden.get(), DType::f32, {T, model.hidden()}));
  return host_copy(backend, y);
}

/// Passes of many tokens and of one, of some of which few outputs are wanted.
std::vector<float> read_cut(Model& model, std::span<const std::int32_t> ids) {
  ModelState state = model.start();
  std::vector<float> all;
  for (const auto& [tokens, outputs, chunk_size] :
       {std::tuple{17, 17, 64}, {11, 1, 8}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {9, 4, 64}, {1, 1, 0}}) {
    const std::vector<float> logits = read(model, state, ids.first(static_cast<std::size_t>(tokens)),
                                           {.chunk_size = chunk_size, .prompt_length = 30, .outputs = outputs});
    all.insert(all.end(), logits.begin(), logits.end());
    ids = ids.subspan(static_cast<std::size_t>(tokens));
  }
  return all;
}

/// A pass that devices take turns with.
std::vector<float> read_in_turns(Model& model, std::span<const std::int32_t> ids) {
  ModelState state = model.start();
  const std::int64_t T = std::ssize(ids);
  return read(model, state, ids, {.chunk_size = 8, .prompt_length = T, .outputs = T, .piece = 8});
}

/// All that a recording says of some tokens, sought back and forth.
std::vector<std::vector<float>> sought(const std::shared_ptr<Model>& model, std::span<const std::int32_t> ids, std::size_t budget) {
  Run run(model, {.tokens_at_once = 8, .keyframe_interval = 8, .memory_budget = budget, .host_memory_budget = budget});
  run.read(ids.first(20), 20);
  for (std::size_t t = 20; t < 24; ++t) run.read(ids.subspan(t, 1), 20);
  std::vector<std::vector<float>> all;
  for (const std::int64_t t : {23, 5, 18, 0, 7, 21}) {
    all.push_back(run.logits(t));
    for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
      all.push_back(run.states_around(layer, t).first.values);
      all.push_back(run.states_around(layer, t).second.values);
      all.push_back(run.residual(layer, t, t + 1));
      all.push_back(run.companion(layer, t, t + 1));
      if (const std::shared_ptr<const Routing> routing = run.routing(layer)) all.push_back(routing->gate);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("placement: a model of every family, cut at every layer, is to the bit what it is on one device") {
  const std::vector<std::int32_t> ids = some_ids(41);
  for (const SmallModel& small : small_models()) {
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small.config), 1);
    const std::shared_ptr<Model> one = on_one(checkpoint);
    const std::vector<float> logits = read_cut(*one, ids);
    CHECK(read_cut(*Model::load(checkpoint, locked_devices(2)), ids) == logits);
    for (const Layers& layers : all_cuts(one->layers())) {
      INFO(small.name << ", layers " << Catch::StringMaker<Layers>::convert(layers));
      const std::shared_ptr<Model> several = on_several(checkpoint, layers);
      const DeviceCheck check = check_devices(*one, *several, some_ids(26), 5, 0);
      CHECK(!check.first);
      for (const DeviceDifference& each : check.largest) CHECK(each.relative == 0);
      CHECK(read_cut(*several, ids) == logits);
    }
  }
}

TEST_CASE("placement: devices that take turns with the pieces of a pass read what passes of those pieces do, to the bit") {
  const std::vector<std::int32_t> ids = some_ids(40);
  constexpr std::int64_t piece = 8;
  for (const SmallModel& small : small_models()) {
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small.config), 1);
    const std::shared_ptr<Model> one = on_one(checkpoint);
    for (const std::int64_t outputs : {40, 8, 3}) {
      ModelState state = one->start();
      std::vector<float> truth;
      for (std::int64_t begin = 0; begin < std::ssize(ids); begin += piece) {
        const ForwardOptions options{
            .chunk_size = 8, .prompt_length = 40, .outputs = std::clamp<std::int64_t>(outputs - 32 + begin, 0, piece)};
        const std::vector<float> logits = read(*one, state, std::span(ids).subspan(static_cast<std::size_t>(begin), piece), options);
        truth.insert(truth.end(), logits.begin(), logits.end());
      }
      for (const Layers& layers : all_cuts(one->layers())) {
        INFO(small.name << ", layers " << Catch::StringMaker<Layers>::convert(layers) << ", outputs " << outputs);
        const std::shared_ptr<Model> several = on_several(checkpoint, layers);
        ModelState turns = several->start();
        const std::vector<float> logits =
            read(*several, turns, ids, {.chunk_size = 8, .prompt_length = 40, .outputs = outputs, .piece = piece});
        if (outputs > piece)
          CHECK(relative_error(logits, truth) < 1e-5);  // one product makes all logits
        else
          CHECK(logits == truth);
        CHECK(turns.position == state.position);
      }
    }
  }
}

TEST_CASE("placement: a long pass is read in pieces, and recorded as such") {
  const std::vector<std::int32_t> ids = some_ids(1100);
  const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(branch_cases::config_of("gla hybrid")), 1);
  const auto recorded = [&](const std::shared_ptr<Model>& model, std::int64_t at_once) {
    Run run(model, {.tokens_at_once = at_once, .keyframe_interval = 2048});
    run.read(ids, 1100);
    std::vector<std::vector<float>> all;
    for (std::int64_t layer = 0; layer <= model->layers(); ++layer) all.push_back(run.residual(layer, 0, 1100));
    all.push_back(run.states_around(0, 1000).second.values);
    std::vector<std::int64_t> passes;
    for (const Passes& each : run.passes()) passes.insert(passes.end(), {each.tokens, each.times});
    return std::pair(passes, all);
  };
  const auto truth = recorded(on_one(checkpoint), 512);
  CHECK(truth.first == std::vector<std::int64_t>{512, 2, 76, 1});
  CHECK(recorded(on_several(checkpoint, {1, 1}), 1100) == truth);
}

TEST_CASE("placement: a recording across devices gives back what one on a single device does, in memory and in a file") {
  const std::vector<std::int32_t> ids = some_ids(24);
  for (const SmallModel& small : small_models()) {
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small.config), 1);
    for (const std::size_t budget : {std::size_t{1} << 28, std::size_t{1}}) {
      INFO(small.name << ", budget " << budget);
      const auto truth = sought(on_one(checkpoint), ids, budget);
      for (const Layers& layers : all_cuts(on_one(checkpoint)->layers()))
        CHECK(sought(on_several(checkpoint, layers), ids, budget) == truth);
    }
  }
}

TEST_CASE("placement: branches and interventions across devices are those on one") {
  for (const char* name : {"gla hybrid", "sse gdn grouped, neg, w2 r3", "qwen3_next", "rwkv7", "hymba"}) {
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(branch_cases::config_of(name)), 5);
    const auto shown_of = [&](const std::shared_ptr<Model>& model) {
      const std::shared_ptr<Run> run = branch_cases::read_run(model), other = branch_cases::read_run(model, 9);
      std::vector<Intervention> interventions{parse_intervention("scale by 0.5 at 23"), parse_intervention("zero layer 0 at 30")};
      Schedule schedule(*model, interventions, run->tokens(), {});
      auto branch = std::make_shared<Run>(run, 21, schedule);
      const std::span<const std::int32_t> rest = std::span(run->ids()).subspan(21);
      branch->read(rest, branch_cases::kPrompt);
      return std::pair(branch_cases::shown(*branch, 18, 34), branch_cases::shown(*run, 40, 46));
    };
    const auto truth = shown_of(on_one(checkpoint));
    for (const Layers& layers : all_cuts(on_one(checkpoint)->layers())) {
      INFO(name << ", layers " << Catch::StringMaker<Layers>::convert(layers));
      CHECK(shown_of(on_several(checkpoint, layers)) == truth);
    }
  }
}

TEST_CASE("placement: what a whole reading says of a model does not depend on its devices") {
  const std::vector<std::int32_t> ids = some_ids(130);
  for (const char* name : {"gla hybrid", "sse gla", "rwkv7", "zamba", "hymba"}) {
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(branch_cases::config_of(name)), 5);
    const std::string truth = to_json(inspect_sequence(*on_one(checkpoint), ids)).dump();
    for (const Layers& layers : all_cuts(on_one(checkpoint)->layers())) {
      INFO(name << ", layers " << Catch::StringMaker<Layers>::convert(layers));
      CHECK(to_json(inspect_sequence(*on_several(checkpoint, layers), ids)).dump() == truth);
    }
  }
}

TEST_CASE("placement: scores across devices are those on one") {
  ScoredSequence sequence{.ids = some_ids(600), .prompt_length = 600, .targets = {}};
  for (std::int64_t t = 3; t + 1 < 600; t += 7) sequence.targets.push_back({t, sequence.ids[static_cast<std::size_t>(t + 1)]});
  const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(branch_cases::config_of("gla hybrid")), 5);
  const auto nll = [&](const std::shared_ptr<Model>& model) {
    std::vector<double> all;
    for (const TargetScore& score : Scorer(model).score(sequence)) all.push_back(score.nll);
    return all;
  };
  CHECK(nll(on_several(checkpoint, {1, 1})) == nll(on_one(checkpoint)));
}

TEST_CASE("placement: a session shows of a model on two devices what it shows of one") {
  const auto shown = [](const std::shared_ptr<Backend>& device, std::size_t placed) {
    Posts posts;
    Session session(posts.post(), [&] { return device; }, {.name = "cuda:0,cuda:1"});
    Opening opening;
    session.open(kSse, ids_prompt(40), opening.callbacks());
    std::vector<std::vector<float>> states;
    for (const auto& [layer, token] : {std::pair{0, 39}, {1, 17}, {0, 5}, {1, 30}}) {
      std::shared_ptr<const Snapshot> last;
      session.show(layer, 1, token, [&](std::shared_ptr<const Snapshot> answer) { last = std::move(answer); });
      posts.run_until([&] { return last != nullptr || !opening.failures.empty(); });
      REQUIRE(opening.failures.empty());
      states.push_back(last->state.values);
      CHECK(last->run->model.placement.size() == placed);
    }
    return states;
  };
  CHECK(shown(locked_devices(2), 2) == shown(std::make_shared<LockedDevice>(), 0));
}

TEST_CASE("placement: a model says where each of its layers lives, and why") {
  const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small_config("gla", {{"num_hidden_layers", 4}})), 1);
  const ModelInfo several = Model::load(checkpoint, locked_devices(2))->info();
  REQUIRE(several.placement.size() == 2);
  CHECK(several.placement[0].starts_with("locked:0: layers 0 to 1, embedding and unembedding, "));
  CHECK(several.placement[1].starts_with("locked:1: layers 2 to 3, "));
  CHECK(several.layers[1].device == "locked:0");
  CHECK(several.layers[2].device == "locked:1");
  const ModelInfo one = on_one(checkpoint)->info();
  CHECK(one.placement.empty());
  CHECK(one.layers[0].device.empty());
  CHECK_THROWS_WITH(on_several(checkpoint, {3, 2}), Catch::Matchers::ContainsSubstring("4 layers cannot be placed as 3, 2 on 2 devices"));
}

TEST_CASE("placement: devices fill the same share of their room, and the host has what is left") {
  const std::vector<PartBytes> parts{{10, 5}, {10, 5}, {10, 5}, {10, 5}, {10, 5}, {10, 5}, {4, 2}};
  const auto places = [&](const std::vector<DeviceRoom>& rooms) { return place_layers(parts, rooms).of_layer; };
  using Places = std::vector<std::size_t>;
  CHECK(places({{"cuda:0", 100, true}, {"cuda:1", 100, true}}) == Places{0, 0, 0, 1, 1, 1});
  CHECK(places({{"cuda:0", 44, true}, {"cuda:1", 100, true}}) == Places{0, 0, 1, 1, 1, 1});
  CHECK(places({{"cuda:0", 34, true}, {"cuda:1", 30, true}}) == Places{0, 0, 0, 1, 1, 1});
  CHECK(places({{"cuda:0", 100, true}, {"cpu", 100, false}}) == Places{0, 0, 0, 0, 0, 0});
  CHECK(places({{"cuda:0", 34, true}, {"cpu", 15, false}}) == Places{0, 0, 0, 1, 1, 1});
  CHECK(places({{"cpu", 100, false}, {"cuda:0", 29, true}}) == Places{0, 0, 0, 0, 1, 1});
  CHECK(places({{"cuda:0", 19, true}, {"cuda:1", 25, true}, {"cpu", 15, false}}) == Places{0, 1, 1, 2, 2, 2});
  const std::vector<DeviceRoom> small{{"cuda:0", 34'000'000'000, true}, {"cpu", 10, false}};
  std::vector<PartBytes> large = parts;
  for (PartBytes& part : large) part = {part.own * 1'000'000'000, part.host * 1'000'000'000};
  CHECK_THROWS_WITH(place_layers(large, small),
                    "no room: layers, embedding and unembedding take 64.0 GB with what 8192 tokens leave behind, and "
                    "cuda:0 has room for 34.0 GB, cpu has room for 0.0 MB");
  CHECK_THROWS_AS(place_layers(large, std::vector<DeviceRoom>{{"cuda:0", 3'000'000'000, true}, {"cpu", 1'000'000'000'000, false}}), Error);
}

namespace {

/// Devices with so much room each, opened one by one, the host last.
std::shared_ptr<Devices> opened_in_turn(std::vector<std::size_t> rooms) {
  auto open = [rooms = std::move(rooms), i = std::size_t{0}]() mutable -> std::optional<Devices::Device> {
    if (i > rooms.size()) return std::nullopt;
    const std::size_t own = i++;
    if (own == rooms.size()) return Devices::Device{"cpu", make_cpu_backend(1)};
    return Devices::Device{"locked:" + std::to_string(own), std::make_shared<LockedDevice>(rooms[own])};
  };
  Devices::Device first = *open();
  return std::make_shared<Devices>(std::vector{std::move(first)}, std::move(open));
}

}  // namespace

TEST_CASE("placement: as few devices as have room, opened when they are needed") {
  const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small_config("gla", {{"num_hidden_layers", 4}})), 1);
  const std::vector<PartBytes> parts = part_bytes(plan_model(Config::parse(checkpoint->config)), checkpoint->tensors);
  const std::size_t layer = parts[0].own, all = 4 * layer + parts.back().own;
  const auto of = [](std::size_t room) { return room + room / 7 + 64; };  // an eighth is scratch memory
  const auto where = [](const Model& model) {
    std::vector<std::string> names;
    for (const LayerInfo& one : model.info().layers) names.push_back(one.device);
    return names;
  };
  using Names = std::vector<std::string>;

  const std::shared_ptr<Devices> enough = opened_in_turn({of(all), of(all)});
  CHECK(where(*Model::load(checkpoint, enough)) == Names(4));
  CHECK(enough->all().size() == 1);

  const std::shared_ptr<Devices> two = opened_in_turn({of(2 * layer + parts.back().own), of(2 * layer), of(all)});
  const std::shared_ptr<Model> over_two = Model::load(checkpoint, two);
  CHECK(two->all().size() == 2);
  CHECK(where(*over_two) == Names{"locked:0", "locked:0", "locked:1", "locked:1"});
  const std::vector<std::int32_t> ids = some_ids(41);
  const std::vector<float> truth = read_cut(*on_one(checkpoint), ids);
  CHECK(read_cut(*over_two, ids) == truth);
  const std::shared_ptr<Devices> another = opened_in_turn({of(all), of(all)});
  CHECK(over_two->beside(another) != nullptr);  // reads weights of two
  CHECK(another->all().size() == 2);

  CHECK(where(*Model::load(checkpoint, opened_in_turn({of(2 * layer + parts.back().own)}))) == Names{"locked:0", "locked:0", "cpu", "cpu"});
}

TEST_CASE("placement: weights lie once, on the device of the layer that reads them") {
  for (const char* name : {"gla", "transformer", "qwen3_next", "sse gla"}) {
    INFO(name);
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(branch_cases::config_of(name)), 1);
    const std::shared_ptr<Devices> devices = locked_devices(2);
    const std::shared_ptr<Model> model = Model::load(checkpoint, devices, Layers{1, 1});
    const auto held = [&](std::size_t device) { return dynamic_cast<LockedDevice&>(devices->at(device)).taken(); };
    std::size_t of_first = 0, of_second = 0;
    for (const StoredTensor& tensor : checkpoint->tensors)
      (tensor.name.find("layers.1.") == tensor.name.npos ? of_first : of_second) += static_cast<std::size_t>(tensor.bytes());
    const std::size_t beside = 64 * 64;  // alignment, constants
    CHECK((held(0) >= of_first && held(0) < of_first + beside));
    CHECK((held(1) >= of_second && held(1) < of_second + beside));
  }
}

TEST_CASE("placement: devices by name") {
  for (const char* name : {"cpu", "cuda", "cuda:1", "auto", "cuda:0,cuda:1,cpu", "cpu,cuda"}) CHECK(wrong_device_name(name).empty());
  for (const char* name : {"check:cpu,cuda", "check:cuda:0,cuda:1,1e-3", "check:cpu,cpu,0"}) CHECK(wrong_device_name(name).empty());
  CHECK(wrong_device_name("check:cpu").starts_with("\"check:cpu\" does not name two devices; give "));
  CHECK(wrong_device_name("check:cpu,auto").starts_with("there is no device \"auto\" to check; give "));
  CHECK(wrong_device_name("cpu,check:cpu,cuda").starts_with("there is no device \"check:cpu\"; give "));
  CHECK(wrong_device_name("cuda:0,gpu").starts_with("there is no device \"gpu\"; give cpu, cuda, cuda:1 or auto, or several in order: "));
  CHECK(wrong_device_name("cuda,").starts_with("there is no device \"\""));
  CHECK(wrong_device_name("auto,cpu").starts_with("there is no device \"auto\""));
  CHECK(wrong_device_name("cpu,cpu") == "the device \"cpu\" is named twice");
  CHECK(wrong_device_name("cuda,cpu,cuda:0") == "the device \"cuda:0\" is named twice");
}

namespace {

/// "cuda:0,cpu": what is missing is said, and null.
std::shared_ptr<Backend> device_called(const std::string& name, Precision precision) {
  try {
    return open_device({.name = name, .threads = 0, .precision = precision});
  } catch (const DeviceError& error) {
    WARN("skipped: no devices " << name << " (" << error.what() << ")");
    return nullptr;
  }
}

/// Every family beside the same on the CPU, cut at every layer.
void compare_cuts(const std::string& name) {
  const std::shared_ptr<Backend> devices = device_called(name, Precision::float32);
  if (!devices) return;
  const std::vector<std::int32_t> ids = some_ids(41);
  for (const SmallModel& small : small_models()) {
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small.config), 1);
    const std::shared_ptr<Model> on_cpu = Model::load(checkpoint, make_cpu_backend());
    const std::vector<float> truth = read_cut(*on_cpu, ids), whole = read_in_turns(*on_cpu, ids);
    for (const Layers& layers : all_cuts(std::ssize(plan_model(Config(small.config)).layers))) {
      if (layers.size() > devices->devices()->all().size()) continue;
      INFO(name << ", " << small.name << ", layers " << Catch::StringMaker<Layers>::convert(layers));
      try {
        const std::shared_ptr<Model> model = Model::load(checkpoint, devices, layers);
        CHECK(relative_error(read_cut(*model, ids), truth) < 2e-4);
        CHECK(relative_error(read_cut(*model, ids), truth) < 2e-4);  // with steps that are repeated
        CHECK(relative_error(read_in_turns(*model, ids), whole) < 2e-4);
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
}

/// States and logits sought across devices, beside those of one GPU: the same bits where all devices are GPUs of one kind.
void compare_recordings(const std::string& name, double tolerance) {
  const std::shared_ptr<Backend> devices = device_called(name, Precision::float32);
  if (!devices) return;
  const std::vector<std::int32_t> ids = some_ids(24);
  for (const SmallModel& small : small_models()) {
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small.config), 1);
    INFO(name << ", " << small.name);
    for (const std::size_t budget : {std::size_t{1} << 28, std::size_t{1}}) {
      const auto truth = sought(Model::load(checkpoint, make_backend("cuda:0")), ids, budget);
      const std::int64_t layers = std::ssize(plan_model(Config(small.config)).layers);
      const auto found = sought(Model::load(checkpoint, devices, Layers{layers / 2, layers - layers / 2}), ids, budget);
      REQUIRE(found.size() == truth.size());
      double largest = 0;
      for (std::size_t i = 0; i < truth.size(); ++i) {
        if (found[i] != truth[i]) largest = std::max(largest, relative_error(found[i], truth[i]));
      }
      CHECK(largest <= tolerance);
    }
  }
}

}  // namespace

TEST_CASE("device: layers on the CPU and a GPU", "[device]") {
  compare_cuts("cpu,cuda:0");
  compare_cuts("cuda:0,cpu");
}

TEST_CASE("device: layers on two GPUs", "[device]") { compare_cuts("cuda:0,cuda:1"); }

TEST_CASE("device: recordings across two GPUs have the bits of one", "[device]") { compare_recordings("cuda:0,cuda:1", 0); }

TEST_CASE("device: recordings across a GPU and the CPU", "[device]") { compare_recordings("cuda:0,cpu", 1e-3); }

}  // namespace statescope::test::placement_test
