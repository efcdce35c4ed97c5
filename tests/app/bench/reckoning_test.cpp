// `statescope bench --placement`: reckonings against numbers worked out by hand, and what configs of released models come to.
#include "app/bench/reckoning.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/model/small_models.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::reckoning_test {
namespace {

using Catch::Matchers::WithinRel;
using test::TemporaryFolder;

const std::filesystem::path kModels = from_source("assets/placement");

/// Four layers of 10 GB, and 2 GB of embeddings and head; a token reads 6 GB of a layer's weights and 1 GB of the head.
std::vector<PartBytes> four_layers() {
  std::vector<PartBytes> parts(4, {10'000'000'000, 5'000'000'000});
  parts.push_back({2'000'000'000, 2'000'000'000});
  return parts;
}
std::vector<TokenTraffic> four_layers_traffic() {
  std::vector<TokenTraffic> traffic(4, {6e9, 1e9, 1000});
  traffic.push_back({1e9, 0, 0});
  return traffic;
}

}  // namespace

TEST_CASE("reckoning: a token takes what all devices take one after the other") {
  const GpuKind gpu{"", 80e9, 2e12, 1e11};
  // One: 4 · (6 + 1 + 0.001) + 1 = 29.004 GB at 2 TB/s, with 1e6 tokens before it; 42 GB of the 70 that are room.
  const Reckoned one = reckon(four_layers(), four_layers_traffic(), 1'000'000, 1, gpu, {}, 1'000'000);
  CHECK(one.no_room.empty());
  CHECK(one.layers == std::vector<std::int64_t>{4});
  CHECK_THAT(one.memory_seconds, WithinRel(33e9 / 2e12, 1e-12));
  CHECK(one.link_seconds == 0);
  // Two: the same, and there and back 4 MB over 100 GB/s with 10 µs each time.
  const Reckoned two = reckon(four_layers(), four_layers_traffic(), 1'000'000, 2, gpu, {}, 0);
  CHECK(two.layers == std::vector<std::int64_t>{2, 2});
  CHECK_THAT(two.memory_seconds, WithinRel(29e9 / 2e12, 1e-12));
  CHECK_THAT(two.link_seconds, WithinRel(2 * (4e6 / 1e11 + 1e-5), 1e-12));
  CHECK_THAT(two.seconds(), WithinRel(0.0145 + 0.0001, 1e-9));
  CHECK(two.reasons.size() == 2);
}

TEST_CASE("reckoning: what has no room goes to the host, or nowhere") {
  const GpuKind gpu{"", 24e9, 1e12, 25e9};  // 21 GB are room: one layer beside the head, two on the second
  const Reckoned none = reckon(four_layers(), four_layers_traffic(), 1000, 2, gpu, {}, 0);
  CHECK(none.no_room.starts_with("no room: "));
  CHECK(none.layers.empty());
  const Reckoned host = reckon(four_layers(), four_layers_traffic(), 1000, 2, gpu, {64e9, 1e11}, 0);
  REQUIRE(host.layers == std::vector<std::int64_t>{1, 2, 1});
  CHECK_THAT(host.memory_seconds, WithinRel(8e9 / 1e12 + 14e9 / 1e12 + 7e9 / 1e11, 1e-12));
  CHECK_THAT(host.link_seconds, WithinRel(3 * (1e-5 + 4000 / 25e9), 1e-12));
  // A host that has nothing to do is no device.
  const Reckoned idle = reckon(four_layers(), four_layers_traffic(), 1000, 1, {"", 80e9, 2e12, 1e11}, {64e9, 1e11}, 0);
  CHECK(idle.layers == std::vector<std::int64_t>{4});
  CHECK(idle.link_seconds == 0);
}

TEST_CASE("reckoning: what one token moves of a small model") {
  // GLA: two layers, every number of which a token reads but those of the embedding table.
  const test::json config = test::small_config("gla");
  const Plan plan = plan_model(Config(config));
  const auto whole = random_checkpoint(Config(config), 1, DType::bf16);
  const std::vector<StoredTensor> tensors = tensors_without_data(Config(config), DType::bf16);
  REQUIRE(tensors.size() == whole->tensors.size());
  double read = 0;
  for (const StoredTensor& tensor : tensors) {
    const double each = tensor.shape.size() > 1 && tensor.name.find("conv") == std::string::npos ? 2 : 4;
    read += each * static_cast<double>(tensor.name == plan.embeddings && !plan.tied ? plan.hidden : tensor.size());
  }
  double sum = 0;
  for (const TokenTraffic& part : token_traffic(plan, tensors)) sum += part.weights;
  CHECK_THAT(sum, WithinRel(read, 1e-12));

  const auto model = Model::load(whole, make_cpu_backend(1));
  const std::vector<TokenTraffic> traffic = token_traffic(plan, tensors);
  for (std::int64_t layer = 0; layer < model->layers(); ++layer) {
    const ModelState state = model->start();
    const auto bytes = static_cast<double>(state.layers[static_cast<std::size_t>(layer)].everything.shape.size() * 4);
    CHECK(traffic[static_cast<std::size_t>(layer)].states == 2 * bytes);
    CHECK(traffic[static_cast<std::size_t>(layer)].cache == 0);
  }
}

TEST_CASE("reckoning: of experts a token reads those that are chosen, of partitions those that it comes to") {
  for (const test::SmallModel& small : test::small_models()) {
    INFO(small.name);
    const Plan plan = plan_model(Config(small.config));
    const std::vector<StoredTensor> tensors = tensors_without_data(Config(small.config), DType::bf16);
    const std::vector<TokenTraffic> traffic = token_traffic(plan, tensors);
    const std::vector<PartBytes> parts = part_bytes(plan, tensors);
    REQUIRE(traffic.size() == parts.size());
    for (std::size_t part = 0; part < parts.size(); ++part) {
      CHECK(traffic[part].weights >= 0);
      CHECK(traffic[part].weights + traffic[part].states / 2 <= static_cast<double>(parts[part].own));
    }
  }
}

TEST_CASE("reckoning: released models have the sizes that their names say") {
  struct Case {
    const char* name;
    double parameters, active, states;  // billions; MB in float32, of all matrix states
  };
  // active: what a token reads of them, with the head; states: 48 · 48 · 128 · 128 · 4 bytes = 151 MB, …
  for (const auto& [name, parameters, active, states] :
       {Case{"Qwen3.5-27B", 26.9, 25.6, 151}, Case{"Kimi-Linear-48B-A3B", 49.1, 3.1, 42}, Case{"Qwen3-Next-80B-A3B", 79.7, 3.6, 75},
        Case{"Qwen3.5-397B-A17B", 396.3, 16.3, 189}}) {
    INFO(name);
    const PaperModel model = paper_model(kModels / (std::string(name) + ".json"));
    CHECK(model.name == name);
    CHECK_THAT(model.parameters / 1e9, WithinRel(parameters, 0.005));
    CHECK_THAT(model.weights() / 2e9, WithinRel(active, 0.02));
    CHECK_THAT(model.states() / 2e6, WithinRel(states, 0.08));  // and caches of convolutions
  }
  // 64 layers, 16 of them with keys and values: 4 heads of 256 + 256 numbers of 4 bytes
  CHECK(paper_model(kModels / "Qwen3.5-27B.json").cache() == 16 * 4 * 512 * 4);
}

TEST_CASE("reckoning: a folder is read by its config alone, and a wrong one is named") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "model-7B");
  const std::filesystem::path config = folder / "model-7B" / "config.json";
  test::json wrapped = test::small_config("gla");
  std::ofstream(config) << wrapped;
  CHECK(paper_model(folder / "model-7B").name == "model-7B");
  CHECK(paper_model(config).name == "model-7B");
  CHECK(paper_model(config).dtype == DType::bf16);
  wrapped["torch_dtype"] = "float32";
  std::ofstream(config) << wrapped;
  CHECK(paper_model(config).dtype == DType::f32);
  wrapped["what"] = 3;
  std::ofstream(config) << wrapped;
  CHECK_THROWS_WITH(paper_model(config), Catch::Matchers::StartsWith(config.string() + ": config: "));
  CHECK_THROWS_AS(paper_model(folder / "none"), Error);
}

TEST_CASE("reckoning: what is known of GPUs") {
  const KnownGpus known = known_gpus(kModels / "gpus.json");
  REQUIRE(known.kinds.size() == 3);
  CHECK(known.kinds[1].memory == 80e9);
  CHECK(known.reached > 0);
  CHECK(known.reached <= 1);
}

}  // namespace statescope::reckoning_test
