// The report tells a collapsed model from healthy ones, and its figures are those of the analyses.
#include "engine/analysis/collapse_report.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/text/tokenizer.h"
#include "tests/catch.h"
#include "tests/engine/golden.h"
#include "tests/engine/small_models.h"

namespace statescope::test {
namespace {

const std::filesystem::path kAssets = std::filesystem::path(STATESCOPE_SOURCE_DIR) / "assets";

SequenceReport inspected(const std::filesystem::path& path) {
  const auto checkpoint = open_checkpoint(path);
  const std::shared_ptr<Model> model = Model::load(checkpoint, make_cpu_backend(1));
  const json prompt = json::parse(std::ifstream(kAssets / "prompts/needles-512.json"));
  return inspect_sequence(*model, make_tokenizer(*checkpoint, model->vocab())->encode(prompt["prompt"].get<std::string>()).ids);
}

std::vector<Verdict> verdicts_on(const std::filesystem::path& path) { return verdicts({inspected(path)}); }

}  // namespace

TEST_CASE("collapse report: the model that was trained without the balance loss is found among the others") {
  std::vector<std::string> collapsed;
  int routed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kAssets / "checkpoints")) {
    const std::string name = entry.path().stem().string();
    if (name.rfind("niah-", 0) != 0) continue;
    for (const Verdict& verdict : verdicts_on(entry.path())) {
      INFO(name << ": " << verdict.name << " " << verdict.value << " in layer " << verdict.layer);
      routed += verdict.name == "routing" ? 1 : 0;
      if (!verdict.healthy) collapsed.push_back(name + " " + verdict.name);
    }
  }
  CHECK(routed > 6);
  CHECK(collapsed == std::vector<std::string>{"niah-sse-gla-n4k1-collapsed routing"});
}

TEST_CASE("collapse report: figures of every family are those of the run itself") {
  const std::vector<std::int32_t> ids = some_ids(300);
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(small.config), 5), make_cpu_backend(1));
    const SequenceReport report = inspect_sequence(*model, ids);
    REQUIRE(static_cast<std::int64_t>(report.layers.size()) == model->layers());
    CHECK(report.tokens == 300);

    ModelState state = model->start();
    const std::vector<float> logits = read_logits(*model, state, ids, {.prompt_length = 300});
    double nll = 0, eighths = 0;
    const auto V = static_cast<std::size_t>(model->vocab());
    for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
      double sum = 0;
      for (std::size_t v = 0; v < V; ++v) sum += std::exp(static_cast<double>(logits[t * V + v]));
      nll += std::log(sum) - logits[t * V + static_cast<std::size_t>(ids[t + 1])];
    }
    for (const double mean : report.nll_by_eighth) eighths += mean / 8;
    CHECK(std::abs(eighths - nll / 299) < 0.05 * nll / 299);  // eighths differ by a token in length

    for (std::int64_t l = 0; l < model->layers(); ++l) {
      const LayerReport& layer = report.layers[static_cast<std::size_t>(l)];
      CHECK((layer.heads.empty() && layer.slots.empty()) == model->layout(l).memory.empty());
      CHECK(layer.routing.has_value() == (model->layout(l).partitions > 0));
      CHECK(layer.residual_norm > 0);
      if (layer.heads.empty()) continue;
      const Tensor memory = state.layers[static_cast<std::size_t>(l)].memory[0];
      const std::vector<float> expected = host_copy(model->backend(), memory);
      double squares = 0, reported = 0;
      for (const float x : expected) squares += static_cast<double>(x) * x;
      if (memory.shape[1] == 1) {
        for (const SlotReport& slot : layer.slots) reported += slot.norm * slot.norm;
        CHECK(std::abs(reported - squares) <= 1e-3 * squares);
      }
      for (const SlotReport& slot : layer.slots) CHECK((slot.norm >= 0 && slot.load >= 0));
    }
    const json written = to_json(report);
    CHECK(json::parse(written.dump()) == written);
    CHECK(written["layers"].size() == report.layers.size());
  }
}

TEST_CASE("collapse report: the worst layer of all sequences decides, and what is no number is the worst") {
  const auto sequence = [](std::vector<double> load_entropies) {
    SequenceReport report;
    for (const double entropy : load_entropies) report.layers.emplace_back().routing.emplace().load_entropy = entropy;
    return report;
  };
  const std::vector<Verdict> good = verdicts({sequence({0.9, 0.8}), sequence({0.95, 0.85})});
  REQUIRE(good.size() == 1);  // nothing to say of ranks
  CHECK((good[0].healthy && good[0].value == 0.8 && good[0].layer == 1));
  const std::vector<Verdict> bad = verdicts({sequence({0.9, 0.8}), sequence({0.2, 0.85})});
  CHECK((!bad[0].healthy && bad[0].value == 0.2 && bad[0].layer == 0));
  const std::vector<Verdict> broken = verdicts({sequence({0.9, std::nan("")}), sequence({0.2, 0.85})});
  CHECK((!broken[0].healthy && std::isnan(broken[0].value) && broken[0].layer == 1));
  CHECK(to_json(broken[0])["value"].is_null());
  CHECK(verdicts({}).empty());
}

}  // namespace statescope::test
