// The specs of the papers' figures in assets/figures: each can be read, and those that take little are drawn.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "app/canvas/text_canvas.h"
#include "app/figure/render.h"
#include "app/figure/studies.h"
#include "engine/error.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::shipped_figures_test {
namespace {

namespace fs = std::filesystem;

const fs::path kFigures = from_source("assets/figures");

struct Drawn {
  std::vector<std::string> texts;
  std::string caption;
  std::vector<Array> numbers;  // of the first panel

  bool says(std::string_view text) const { return std::ranges::find(texts, text) != texts.end(); }
};

Drawn drawn(const FigureSpec& spec) {
  qt_application();
  FigureRuns runs(kFigures);
  const Figure figure = build_figure(spec, runs);
  TextCanvas canvas(figure.size());
  figure.draw(canvas);
  Drawn all{{}, figure.caption(), figure.panels().front()->arrays()};
  for (const TextCanvas::Placed& placed : canvas.texts()) all.texts.push_back(placed.text);
  return all;
}

Drawn drawn(const char* name) { return drawn(load_figure_spec(kFigures / name)); }

/// A spec of one chart.
FigureSpec chart(const std::string& rest) { return parse_figure_spec("{\"size\": \"600x120mm\", \"panels\": [{" + rest + "}]}", "spec"); }

std::string refusal(const std::string& rest) {
  try {
    drawn(chart(rest));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every shipped figure is a sound spec and is explained", "[figures]") {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFigures)) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path());
    const FigureSpec spec = load_figure_spec(entry.path());
    for (const FigurePanel& panel : spec.panels) {
      for (const std::string& checkpoint : panel.checkpoints) CHECK_NOTHROW(figure_file(checkpoint, kFigures, "checkpoints"));
      if (panel.view.empty()) CHECK(std::ranges::count(study_table(), panel.chart, &StudyRow::name) == 1);
    }
    names.insert(entry.path().stem().string());
  }
  CHECK(names == std::set<std::string>{"entropy", "gate-entropy", "luck", "mqar", "needle-grid", "recall", "receptive-field", "row-cosine",
                                       "speed", "speed-h200"});
}

TEST_CASE("scores drawn are those of the files", "[figures]") {
  const Drawn mqar = drawn("mqar.json");
  CHECK(mqar.says("pairs"));
  CHECK(mqar.says("gla-row-sparse, 3 seeds"));
  const auto& labels = mqar.numbers[0].axes[0].labels;
  const auto gla = static_cast<std::size_t>(std::ranges::find(labels, "gla, 5 seeds") - labels.begin());
  CHECK(mqar.numbers[0].axes[1].coordinates == std::vector<double>{8, 16, 32, 64});
  CHECK(mqar.numbers[0].values[gla * 4 + 3] == Approx(41.4).margin(0.1));  // the median of 54.2, 44.3, 33.6, 41.4 and 35.0
  CHECK(mqar.numbers[1].values[gla * 4 + 3] == Approx(33.6).margin(0.1));
  CHECK(mqar.numbers[2].values[gla * 4 + 3] == Approx(54.2).margin(0.1));
  CHECK(has(mqar.caption, "the median"));
  CHECK(has(mqar.caption, "the least and the most of the seeds"));
  const Drawn recall = drawn("recall.json");
  CHECK(recall.says("k = 1"));
  CHECK(recall.says("k = 4"));
  CHECK(recall.numbers[0].axes[1].coordinates == std::vector<double>{4, 8, 16});
  CHECK(has(recall.caption, "64 pairs in 256 tokens; three or five seeds"));
}

TEST_CASE("seeds stand side by side, each training a point of its own", "[figures]") {
  const Drawn luck = drawn("luck.json");
  CHECK(luck.says("seed of the training"));
  CHECK(luck.numbers[0].axes[1].coordinates == std::vector<double>{1, 2, 3, 4, 5});
  const auto& labels = luck.numbers[0].axes[0].labels;
  const auto gla = static_cast<std::size_t>(std::ranges::find(labels, "gla") - labels.begin());
  CHECK(luck.numbers[0].values.at(gla * 5 + 2) == Approx(33.6).margin(0.1));
  CHECK(has(luck.caption, "each point is one training"));
  CHECK(!has(luck.caption, "median"));
}

TEST_CASE("what ends like a seed and is none is part of the name", "[figures]") {
  std::ifstream shipped(from_source("assets/recipes/seeds/mqar.json"));
  for (const std::string& ending : std::vector<std::string>{"-seed", "-seedling", "-seed" + std::string(400, '9')}) {
    nlohmann::json scores = nlohmann::json::parse(shipped);
    shipped.seekg(0);
    scores["cells"] = {scores["cells"][0]};
    scores["cells"][0]["checkpoint"] = "my-model" + ending;
    const test::TemporaryFolder folder;
    const fs::path file = folder / "scores.json";
    std::ofstream(file) << scores;
    const Drawn alone = drawn(chart(R"("chart": "recall", "mode": "over seeds", "data": [")" + file.string() + R"("])"));
    CHECK(alone.numbers[0].axes[1].coordinates == std::vector<double>{1});
  }
}

TEST_CASE("a training on another seed is drawn with the others of its model, or alone where it is named", "[figures]") {
  const std::string scores = R"("chart": "recall", "length": 256, "data": ["../recipes/seeds/mqar.json"])";
  const Drawn alone = drawn(chart(scores + R"(, "checkpoints": ["mqar-gla-seed2"])"));
  CHECK(alone.numbers[0].values.at(3) == Approx(44.3).margin(0.1));
  CHECK(!has(alone.caption, "median"));
  const std::vector<std::string> all = drawn(chart(scores)).numbers[0].axes[0].labels;
  CHECK(all.size() == 24);
  CHECK(std::ranges::count(all, "sse-gdn-n4k1, 5 seeds") == 1);
  CHECK(std::ranges::count(all, "mamba2, 3 seeds") == 1);
}

TEST_CASE("figures of chosen seeds name them in their titles", "[figures]") {
  for (const char* name :
       {"entropy.json", "gate-entropy.json", "needle-grid.json", "recall.json", "receptive-field.json", "row-cosine.json"}) {
    INFO(name);
    for (const FigurePanel& panel : load_figure_spec(kFigures / name).panels) CHECK(has(panel.title.value_or(""), "seed"));
  }
}

TEST_CASE("times drawn are those of the file, in both sweeps", "[figures]") {
  const Drawn speed = drawn("speed.json");
  for (const char* text : {"varlen", "masking", "sequential", "length (tokens)", "partitions N"}) {
    INFO(text);
    CHECK(speed.says(text));
  }
}

TEST_CASE("studies of runs: a point for each layer and model, a curve for each gated layer", "[figures]") {
  const Drawn entropy = drawn(chart(
      R"("chart": "entropy_by_layer", "checkpoints": ["mqar-gla.h5", "mqar-sse-gla-n4k1.h5"], "prompt": {"ids": [1, 2, 3, 4, 5, 6]})"));
  REQUIRE(entropy.numbers.size() == 3);
  CHECK(entropy.numbers[0].axes[0].labels == std::vector<std::string>{"gla", "sse-gla-n4k1"});
  CHECK(entropy.numbers[0].axes[1].coordinates == std::vector<double>{0, 1});
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(entropy.numbers[1].values[i] <= entropy.numbers[0].values[i]);
    CHECK(entropy.numbers[0].values[i] <= entropy.numbers[2].values[i]);
    CHECK(entropy.numbers[0].values[i] > 0);
  }
  CHECK(has(entropy.caption, "the 6 tokens of the prompt"));

  const Drawn field =
      drawn(chart(R"("chart": "receptive_field_by_layer", "checkpoints": ["mqar-gla.h5"], "prompt": {"ids": [1, 2, 3, 4, 5, 6]})"));
  for (const float width : field.numbers[0].values) CHECK((width >= 0 && width <= 5));

  const Drawn gates =
      drawn(chart(R"("chart": "gate_entropy_by_lambda", "checkpoints": ["mqar-sla-gla.h5"], "prompt": {"ids": [1, 2, 3, 4, 5, 6]})"));
  const Array& curves = gates.numbers[0];
  CHECK(curves.axes[0].labels == std::vector<std::string>{"layer 0", "layer 1"});
  for (std::int64_t i = 1; i < curves.axes[1].count; ++i) {
    CHECK(curves.values[static_cast<std::size_t>(i)] <= curves.values[static_cast<std::size_t>(i - 1)]);  // SLA Theorem 4.2
  }
}

TEST_CASE("a study that lacks something says what", "[figures]") {
  CHECK(has(refusal(R"("chart": "entropie")"), "there is no study 'entropie'; there are entropy_by_layer"));
  CHECK(has(refusal(R"("chart": "entropy_by_layer")"), "needs checkpoints"));
  CHECK(has(refusal(R"("chart": "speed", "mode": "over time")"), "speed has no mode"));
  CHECK(has(refusal(R"("chart": "recall")"), "recall needs data"));
  CHECK(has(refusal(R"("chart": "recall", "data": ["nowhere.json"])"), "nowhere.json: there is no such file"));
  CHECK(has(refusal(R"("chart": "recall", "data": ["../scores/mqar.json"])"), "choose one with \"length\": 256, 512, 2048"));
  CHECK(has(refusal(R"("chart": "recall", "data": ["../scores/mqar.json", "../scores/niah.json"])"), "one task"));
  CHECK(has(refusal(R"("chart": "recall", "data": ["../scores/mqar.json"], "length": 256, "checkpoints": ["niah-gla.h5"])"),
            "no score of niah-gla"));
  CHECK(has(
      refusal(
          R"("chart": "recall", "data": ["../scores/mqar.json"], "mode": "over partitions", "length": 256, "load": 8, "checkpoints": ["mqar-gla.h5"])"),
      "none of these models has partitions"));
  CHECK(has(refusal(R"("chart": "gate_entropy_by_lambda", "checkpoints": ["mqar-gla.h5"], "prompt": {"ids": [1, 2]})"), "head gates"));
}

TEST_CASE("series are named by what tells them apart", "[figures]") {
  const std::vector<std::string> two{"a/niah-gla.h5", "niah-gla-row-sparse.h5"}, one{"niah-gla.h5"}, none{"gla.h5", "sse.h5"};
  CHECK(series_names(two) == std::vector<std::string>{"gla", "gla-row-sparse"});
  CHECK(series_names(one) == std::vector<std::string>{"niah-gla"});
  CHECK(series_names(none) == std::vector<std::string>{"gla", "sse"});
}

}  // namespace statescope::shipped_figures_test
