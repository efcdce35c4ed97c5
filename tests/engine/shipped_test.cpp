// The trained checkpoints that come with the program, and those beside the repository where there are any: they answer as their references
// did.
#include <fmt/format.h>

#include <fstream>

#include "engine/run/reading.h"
#include "tests/catch.h"
#include "tests/engine/golden.h"
#include "tests/engine/small_models.h"

namespace statescope::test {
namespace {

const std::filesystem::path kSource = STATESCOPE_SOURCE_DIR;

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

}  // namespace

TEST_CASE("shipped checkpoints give the logits and answers of their references") {
  const std::vector<std::filesystem::path> checkpoints = entries(kSource / "assets/checkpoints");
  CHECK(checkpoints.size() >= 5);
  for (const std::filesystem::path& checkpoint : checkpoints) {
    if (checkpoint.extension() == ".h5") compare(checkpoint, kSource / "tests/golden/shipped" / checkpoint.stem() / "io.safetensors");
  }
}

TEST_CASE("shipped needle models answer the shipped prompts") {
  int answered = 0;
  for (const std::filesystem::path& path : entries(kSource / "assets/checkpoints")) {
    if (!path.filename().string().starts_with("niah-")) continue;
    const auto checkpoint = open_checkpoint(path);
    const std::shared_ptr<Model> model = Model::load(checkpoint, make_cpu_backend(1));
    const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
    for (const std::filesystem::path& prompt_path : entries(kSource / "assets/prompts")) {
      const json prompt = json::parse(std::ifstream(prompt_path));
      INFO(path.filename() << " reads " << prompt_path.filename());
      PromptInput input;
      input.text = prompt["prompt"];
      input.expected = prompt["expected"];
      Reading reading(model, tokenizer, input);
      while (reading.to_generate() > static_cast<std::int64_t>(reading.info()->tokens.size()) - reading.info()->prompt_length)
        reading.generate_one();
      std::vector<std::int32_t> answer;
      for (std::size_t t = static_cast<std::size_t>(reading.info()->prompt_length); t < reading.info()->tokens.size(); ++t) {
        answer.push_back(reading.info()->tokens[t].id);
      }
      CHECK(tokenizer->decode(answer) == input.expected);
      ++answered;
    }
  }
  CHECK(answered >= 8);
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

}  // namespace statescope::test
