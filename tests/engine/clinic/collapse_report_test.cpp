// The report tells a collapsed model from healthy ones, and its figures are those of the analyses.
#include "engine/clinic/collapse_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/analysis/predictions.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"
#include "tests/source.h"

namespace statescope::test::collapse_report_test {
namespace {

const std::filesystem::path kAssets = from_source("assets");

}  // namespace

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
    CHECK(report.remembrance.size() == 7);
    for (const Remembrance& left_out : report.remembrance) CHECK((left_out.change >= 0 && left_out.change <= 1));
    const json written = to_json(report);
    CHECK(json::parse(written.dump()) == written);
    CHECK(written["layers"].size() == report.layers.size());
  }
}

TEST_CASE("collapse report: state norms by eighth and outlying rows are those of the states then") {
  const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(sse_config("gla")), 5), make_cpu_backend(1));
  const std::vector<std::int32_t> ids = some_ids(64);
  const SequenceReport report = inspect_sequence(*model, ids);
  const auto state_after = [&](std::size_t tokens) {
    ModelState state = model->start();
    read_logits(*model, state, std::vector<std::int32_t>(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(tokens)),
                {.prompt_length = 64});
    return state;
  };
  for (const std::size_t eighth : {std::size_t{0}, std::size_t{4}, std::size_t{7}}) {
    const ModelState state = state_after(8 * (eighth + 1));
    for (std::size_t l = 0; l < report.layers.size(); ++l) {
      const Tensor memory = state.layers[l].memory[0];
      const std::vector<float> values = host_copy(model->backend(), memory);
      const std::int64_t size = memory.shape[2] * memory.shape[3], count = memory.shape[0] * memory.shape[1];
      double norms = 0;
      for (std::int64_t m = 0; m < count; ++m) {
        double squares = 0;
        for (std::int64_t i = 0; i < size; ++i) squares += std::pow(static_cast<double>(values[static_cast<std::size_t>(m * size + i)]), 2);
        norms += std::sqrt(squares) / static_cast<double>(count);
      }
      REQUIRE(report.layers[l].norm_by_eighth.size() == 8);
      CHECK(report.layers[l].norm_by_eighth[eighth] == Approx(norms).epsilon(1e-4));
      CHECK(report.layers[l].outlier >= 1);
    }
  }
  CHECK(inspect_sequence(*model, some_ids(15)).layers[0].norm_by_eighth.empty());
}

TEST_CASE("collapse report: what a model that forgets at once had long ago changes nothing, what attention sees does") {
  // A window of 9 tokens in 2 layers reaches no more than 16 tokens back, plus the 16 predictions.
  const json short_sighted = small_config("transformer", {{"window_size", 9}});
  const std::shared_ptr<Model> window = Model::load(random_checkpoint(Config(short_sighted), 5), make_cpu_backend(1));
  const SequenceReport forgets = inspect_sequence(*window, some_ids(256));
  REQUIRE(forgets.remembrance.size() == 7);
  CHECK(forgets.remembrance[0].dropped == 32);
  CHECK(forgets.remembrance[3].change < 0.05);
  const std::shared_ptr<Model> all = Model::load(random_checkpoint(Config(small_config("transformer")), 5), make_cpu_backend(1));
  const SequenceReport sees = inspect_sequence(*all, some_ids(256));
  CHECK(sees.remembrance[6].change > sees.remembrance[0].change);
  CHECK(sees.remembrance[6].change > 2 * forgets.remembrance[3].change);
  CHECK(inspect_sequence(*all, some_ids(127)).remembrance.empty());
}

TEST_CASE("collapse report: the mean of several reports is that of each figure; of different figures there is none") {
  const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(sse_config("gla")), 5), make_cpu_backend(1));
  std::vector<SequenceReport> reports;
  for (const std::uint32_t seed : {3U, 4U, 5U}) reports.push_back(inspect_sequence(*model, some_ids(160, 97, seed)));
  const std::optional<SequenceReport> mean = mean_report(reports);
  REQUIRE(mean);
  // Every number of the report, wherever it stands in JSON, but the classes and lists, which follow from the means.
  const json found = to_json(*mean).flatten();
  std::vector<json> each;
  for (const SequenceReport& report : reports) each.push_back(to_json(report).flatten());
  int compared = 0;
  for (const auto& [place, value] : found.items()) {
    if (!value.is_number_float() || place.find("perplexity") != place.npos) continue;
    double sum = 0;
    for (const json& one : each) sum += one.at(place).get<double>() / 3;
    INFO(place);
    CHECK(value.get<double>() == Approx(sum));
    ++compared;
  }
  CHECK(compared > 100);
  const RoutingReport& routing = *mean->layers[0].routing;
  CHECK(routing.uneven.dead == uneven_loads(routing.balance.load, kLoadThresholds).dead);
  CHECK_FALSE(mean_report(std::vector{reports[0], inspect_sequence(*model, some_ids(12))}));
  CHECK_FALSE(mean_report({}));
}

TEST_CASE("collapse report: only the partitions that tokens are written to count, not those that are only read") {
  const std::shared_ptr<Model> model =
      Model::load(random_checkpoint(Config(sse_config("gla", {{"num_writer", 1}, {"num_reader", 3}})), 5), make_cpu_backend(1));
  const SequenceReport report = inspect_sequence(*model, some_ids(200));
  for (const LayerReport& layer : report.layers) {
    double written = 0;
    for (const double f : layer.routing->balance.frequency) written += f;
    CHECK(written == Approx(1));
  }
}

TEST_CASE("collapse report: heads have the class of their rank") {
  CHECK(name_of(head_class(0.05)) == "low");
  CHECK(name_of(head_class(0.1)) == "low");
  CHECK(name_of(head_class(0.3)) == "middle");
  CHECK(name_of(head_class(0.9)) == "high");
  CHECK(name_of(head_class(std::nan(""))) == "low");
}

TEST_CASE("collapse report: what changes where a layer's or a head's read is taken away is what a run by hand shows") {
  const auto checkpoint = open_checkpoint(kAssets / "checkpoints/niah/niah-sse-gla-n4k1.h5");
  const std::shared_ptr<Model> model = Model::load(checkpoint, make_cpu_backend(1));
  const std::vector<std::int32_t> ids = some_ids(200);
  const SequenceReport report = inspect_sequence(*model, ids);
  REQUIRE(report.layers.size() == 4);

  const auto first = std::vector<std::int32_t>(ids.begin(), ids.end() - 64), last = std::vector<std::int32_t>(ids.end() - 64, ids.end());
  const auto logits = [&](std::span<const Rules> rules) {
    ModelState state = model->start();
    read_logits(*model, state, first, {.prompt_length = 200, .rules = {}});
    return read_logits(*model, state, last, {.prompt_length = 200, .rules = rules});
  };
  const auto V = static_cast<std::int64_t>(model->vocab());
  const std::vector<float> untouched = logits({});
  const auto change = [&](std::int64_t layer, const Rules& rules) {
    std::vector<Rules> all(4);
    all[static_cast<std::size_t>(layer)] = rules;
    const std::vector<float> changed = logits(all);
    return mean_total_variation(model->backend(), {untouched.data(), DType::f32, {64, V}}, {changed.data(), DType::f32, {64, V}});
  };
  CHECK(report.layers[1].read_effect == Approx(change(1, {.unread = true})).epsilon(1e-3));
  double all_heads = 0;
  for (std::int64_t h = 0; h < 4; ++h) {
    const double effect = report.layers[2].heads_read_effect[static_cast<std::size_t>(h)];
    CHECK(effect == Approx(change(2, {.unread_head = {h, 4}})).epsilon(1e-3).margin(1e-6));
    all_heads += effect;
  }
  CHECK(all_heads > 0.01);
  CHECK(report.all_reads_effect > 0.01);
}

TEST_CASE("collapse report: a head whose part of the last product is 0 changes nothing, in every family; others do") {
  const std::vector<std::int32_t> ids = some_ids(80);
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(small.config), 5), make_cpu_backend(1));
    for (const LayerReport& layer : inspect_sequence(*model, ids).layers) {
      REQUIRE(layer.heads_read_effect.size() == layer.heads.size());
      if (!layer.heads.empty()) CHECK((layer.read_effect > 0 && layer.read_effect <= 1));
      for (const double effect : layer.heads_read_effect) CHECK((effect > 0 && effect <= 1));
    }
  }
}

TEST_CASE("collapse report: a memory left unread is what is missing, not what goes past it") {
  // Mamba-2 with C = 0: nothing is read from its states, and taking the read away changes nothing. D x goes on.
  const json config = small_config("mamba2", {{"head_dim", 16}, {"state_size", 12}, {"n_groups", 2}});
  const auto checkpoint = random_checkpoint(Config(config), 5);
  Checkpoint without_c = *checkpoint;
  const std::int64_t d_in = 2 * config.at("hidden_size").get<std::int64_t>(), bc = 2 * 12;  // z | x | B | C | dt
  for (StoredTensor& tensor : without_c.tensors) {
    const bool in_proj = tensor.name.ends_with("in_proj.weight");
    if (!in_proj && !tensor.name.ends_with("conv1d.bias")) continue;
    const auto* numbers = reinterpret_cast<const float*>(tensor.data);
    const auto changed = std::make_shared<std::vector<float>>(numbers, numbers + tensor.size());
    const std::int64_t width = tensor.size() / tensor.shape[0], first = (in_proj ? d_in : 0) + d_in + bc;
    std::fill_n(changed->begin() + first * width, bc * width, 0.0F);
    tensor.data = reinterpret_cast<const std::byte*>(changed->data());
    without_c.storage.push_back(changed);
  }
  const std::vector<std::int32_t> ids = some_ids(80);
  const auto inspected = [&](std::shared_ptr<const Checkpoint> of) {
    return inspect_sequence(*Model::load(std::move(of), make_cpu_backend(1)), ids);
  };
  const SequenceReport read = inspected(checkpoint), unread = inspected(std::make_shared<Checkpoint>(without_c));
  for (std::size_t l = 0; l < read.layers.size(); ++l) {
    CHECK(read.layers[l].read_effect > 1e-4);
    CHECK(unread.layers[l].read_effect < 1e-9);
  }
}

TEST_CASE("collapse report: memories of a mixture have decays of their own") {
  const json config = small_config("mom", {{"head_dim", 16}});
  const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(config), 5), make_cpu_backend(1));
  const LayerReport layer = inspect_sequence(*model, some_ids(200)).layers[0];
  for (const SlotReport& slot : layer.slots) CHECK((slot.half_life && *slot.half_life > 0));
  CHECK(layer.slots[1].half_life != layer.slots[2].half_life);
}

TEST_CASE("collapse report: it tells how far it is, and can be cancelled within a sequence") {
  const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(sse_config("gla")), 5), make_cpu_backend(1));
  std::vector<double> parts;
  inspect_sequence(*model, some_ids(600), {}, [&](double part) {
    parts.push_back(part);
    return true;
  });
  CHECK(std::ranges::is_sorted(parts));
  CHECK(parts.size() > 10);
  CHECK(parts.back() == Approx(1));
  CHECK_THROWS_WITH(inspect_sequence(*model, some_ids(600), {}, [](double part) { return part < 0.3; }), "cancelled");
}

TEST_CASE("collapse report: what a task asks for is scored at its own place") {
  const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(sse_config("gla")), 5), make_cpu_backend(1));
  const std::vector<std::int32_t> ids = some_ids(40);
  ModelState state = model->start();
  const std::vector<float> logits = read_logits(*model, state, ids, {.prompt_length = 40, .rules = {}});
  const auto V = static_cast<std::size_t>(model->vocab());
  const std::vector<Target> asked{{.position = 7, .id = 3}, {.position = 39, .id = 5}};
  const auto nll = [&](std::size_t row, std::size_t id) {
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v) sum += std::exp(static_cast<double>(logits[row * V + v]));
    return std::log(sum) - logits[row * V + id];
  };
  const double expected = (nll(7, 3) + nll(39, 5)) / 2;
  CHECK(inspect_sequence(*model, ids, asked).predicting.asked == Approx(expected).epsilon(1e-4));
  CHECK(std::isnan(inspect_sequence(*model, ids).predicting.asked));
}

}  // namespace statescope::test::collapse_report_test
