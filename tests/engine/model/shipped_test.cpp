// The trained checkpoints that come with the program, and those beside the repository where there are any: they answer as their references
// did.
#include <fmt/format.h>

#include <fstream>

#include "engine/run/reading.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"
#include "tests/source.h"

namespace statescope::test::shipped_test {
namespace {

const std::filesystem::path kSource = from_source("");

std::vector<std::filesystem::path> entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::int32_t> narrowed(const std::vector<std::int64_t>& wide) { return {wide.begin(), wide.end()}; }

/// Logits where answers are predicted, the most probable token everywhere, and the residual stream at the last token.
void compare_prompt(Model& model, const SafetensorsFile& io, const std::string& prompt) {
  INFO("prompt " << prompt);
  const std::vector<std::int32_t> ids = narrowed(io.integers.at(prompt + ".ids"));
  Recording seen(model.backend());
  ModelState state = model.start();
  const std::vector<float> logits = read_logits(model, state, ids, {.prompt_length = static_cast<std::int64_t>(ids.size())}, &seen);
  const auto V = static_cast<std::size_t>(model.vocab()), D = static_cast<std::size_t>(model.hidden());

  const std::vector<std::int64_t>& positions = io.integers.at(prompt + ".positions");
  const std::span<const float> expected = floats(*io.find(prompt + ".logits"));
  REQUIRE(expected.size() == positions.size() * V);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    CHECK(relative_error(std::span(logits).subspan(static_cast<std::size_t>(positions[i]) * V, V), expected.subspan(i * V, V)) < 1e-4);
  }
  const std::vector<std::int64_t>& argmax = io.integers.at(prompt + ".argmax");
  REQUIRE(argmax.size() == ids.size());
  for (std::size_t t = 0; t < argmax.size(); ++t) {
    const auto* row = logits.data() + t * V;
    const auto* largest = std::max_element(row, row + V);
    // In the filler two words may be all but equally probable; an answer must be the same.
    if (std::find(positions.begin(), positions.end(), static_cast<std::int64_t>(t)) != positions.end()) CHECK(largest - row == argmax[t]);
    CHECK(row[argmax[t]] >= *largest - 1e-4F * (1 + std::abs(*largest)));
  }
  const std::span<const float> residual = floats(*io.find(prompt + ".residual_last"));
  const std::size_t rows = residual.size() / D;
  for (std::int64_t layer = 0; layer <= model.layers(); ++layer) {
    const std::int64_t row = static_cast<std::int64_t>(rows) - 1 - model.layers() + layer;
    if (row < 0) continue;
    CHECK(relative_error(std::span(seen.floats(layer, "residual")).last(D), residual.subspan(static_cast<std::size_t>(row) * D, D)) < 1e-4);
  }
}

void compare(const std::filesystem::path& checkpoint, const std::filesystem::path& io_path) {
  INFO(checkpoint.filename());
  const SafetensorsFile io = open_safetensors(io_path);
  const std::shared_ptr<Model> model = Model::load(open_checkpoint(checkpoint), make_cpu_backend(1));
  int prompts = 0;
  for (; io.integers.contains(fmt::format("p{}.ids", prompts)); ++prompts) compare_prompt(*model, io, fmt::format("p{}", prompts));
  CHECK(prompts > 0);
}

bool answers(const std::shared_ptr<Model>& model, const std::shared_ptr<const Tokenizer>& tokenizer, const json& prompt) {
  PromptInput input;
  input.text = prompt["prompt"];
  input.expected = prompt["expected"];
  Reading reading(model, tokenizer, input);
  std::vector<std::int32_t> answer;
  for (std::int64_t i = 0; i < reading.to_generate(); ++i) {
    reading.generate_one();
    answer.push_back(reading.info()->tokens.back().id);
  }
  return tokenizer->decode(answer) == input.expected;
}

/// The scores of its recipe in cells of the prompt's kind.
std::vector<json> scores_of_kind(const Checkpoint& checkpoint, const json& prompt_cell) {
  const json scores = json::parse(checkpoint.provenance.at("scores.json"));
  std::vector<json> cells;
  for (const json& cell : scores["cells"]) {
    if (cell["task"] == prompt_cell["task"] && cell.value("haystack", "filler") == prompt_cell.value("haystack", "filler"))
      cells.push_back(cell);
  }
  return cells;
}

/// Whether at least nine in ten are right in a cell that is no shorter and has no fewer needles.
bool is_up_to(const std::vector<json>& scores, const json& prompt_cell) {
  return std::any_of(scores.begin(), scores.end(), [&](const json& cell) {
    return cell["length"] >= prompt_cell["length"] && cell["needles"] >= prompt_cell["needles"] && cell["exact"] >= 0.9;
  });
}

std::vector<std::filesystem::path> shipped_checkpoints() {
  std::vector<std::filesystem::path> paths;
  for (const char* task : {"mqar", "niah", "prose"}) {
    const std::vector<std::filesystem::path> some = entries(kSource / "assets/checkpoints" / task);
    paths.insert(paths.end(), some.begin(), some.end());
  }
  return paths;
}

}  // namespace

TEST_CASE("shipped checkpoints give the logits and answers of their references") {
  for (const std::filesystem::path& checkpoint : shipped_checkpoints())
    compare(checkpoint, kSource / "tests/golden/shipped" / checkpoint.stem() / "io.safetensors");
}

TEST_CASE("every reference is of a shipped checkpoint") {
  std::vector<std::filesystem::path> names;
  for (const std::filesystem::path& checkpoint : shipped_checkpoints()) names.push_back(checkpoint.stem());
  for (const std::filesystem::path& folder : entries(kSource / "tests/golden/shipped"))
    CHECK(std::find(names.begin(), names.end(), folder.filename()) != names.end());
}

TEST_CASE("shipped prompts are answered by the models whose scores say that they can") {
  for (const std::filesystem::path& prompt_path : entries(kSource / "assets/prompts")) {
    const json prompt = json::parse(std::ifstream(prompt_path));
    int answered = 0;
    for (const std::filesystem::path& path : shipped_checkpoints()) {
      const auto checkpoint = open_checkpoint(path);
      const std::vector<json> scores = scores_of_kind(*checkpoint, prompt["cell"]);
      if (scores.empty()) continue;
      INFO(path.filename() << " reads " << prompt_path.filename());
      const std::shared_ptr<Model> model = Model::load(checkpoint, make_cpu_backend(1));
      const bool right = answers(model, make_tokenizer(*checkpoint, model->vocab()), prompt);
      if (is_up_to(scores, prompt["cell"])) CHECK(right);
      answered += right ? 1 : 0;
    }
    INFO(prompt_path.filename());
    CHECK(answered > 0);
  }
}

TEST_CASE("the trained checkpoints of ../shared/checkpoints give the logits and answers of their references") {
  const std::filesystem::path shared = kSource / "../shared/checkpoints";
  if (!std::filesystem::is_directory(shared)) {
    WARN("skipped: no ../shared/checkpoints here");
    return;
  }
  for (const std::filesystem::path& task : entries(shared)) {
    if (!std::filesystem::is_directory(task)) continue;
    for (const std::filesystem::path& folder : entries(task)) {
      if (std::filesystem::is_directory(folder)) compare(folder, folder / "io.safetensors");
    }
  }
}

}  // namespace statescope::test::shipped_test
