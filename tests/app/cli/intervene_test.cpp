// statescope intervene: shipped models whose answers hang on what is changed.
#include <filesystem>
#include <fstream>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/common/recording.h"
#include "app/jobs/branch_report.h"
#include "engine/error.h"
#include "engine/run/sampling.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::intervene_test {
namespace {

const std::string kAssets = from_source("assets/");

InterveneArguments with(const std::string& model, std::vector<std::string> interventions) {
  InterveneArguments arguments;
  arguments.checkpoint = shipped_checkpoint(model).string();
  arguments.prompt.file = kAssets + "prompts/needle.json";
  arguments.interventions = std::move(interventions);
  return arguments;
}

std::string error_of(const InterveneArguments& arguments) {
  try {
    intervene_command(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("intervene: every kind on shipped models, as text and as JSON") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"niah-sse-gla-n4k1", "zero state at 60"},
      {"niah-sse-gla-n4k1", "zero partition 2 of layer 1 at 60"},
      {"niah-sse-gla-n4k1", "route to partition 1 from 20"},
      {"niah-sse-gla-n4k1", "topk 2 from 20 until 30"},
      {"niah-gla", "freeze decay from 20"},
      {"niah-sla-gdn", "sharpen gates by 4 from 20"},
      {"niah-transformer", "replace token by 7 at 20"},
      {"niah-sse-gla-n4k1", "scale state by 1 at 60"},
  };
  for (const auto& [model, text] : cases) {
    INFO(model << ": " << text);
    InterveneArguments arguments = with(model, {text});
    CHECK(intervene_command(arguments) == 0);
    arguments.json = "-";
    CHECK(intervene_command(arguments) == 0);
  }
  InterveneArguments other = with("niah-gla", {"import run 1 at 60"});
  other.others = {kAssets + "prompts/needles-512.json"};
  CHECK(intervene_command(other) == 0);
}

TEST_CASE("intervene: what a recording takes is a line, or numbers") {
  CHECK(recording_text({.keyframe_interval = 128, .memory = 12'340'000, .memory_budget = 5'791'000'000}) ==
        "recording: a keyframe every 128 tokens; 12.3 of 5791.0 MB of memory");
  CHECK(
      recording_text({.keyframe_interval = 8192,
                      .memory = 6'200'000'000,
                      .memory_budget = 6'200'000'000,
                      .host = 3'000'000,
                      .host_budget = 8'000'000,
                      .file = 1'000'000}) ==
      "recording: a keyframe every 8192 tokens; 6200.0 of 6200.0 MB of the device's memory, 3.0 of 8.0 MB of the host's, 1.0 MB in a file");
  CHECK(recording_budgets(0).memory_budget == 0);
  CHECK((recording_budgets(64).memory_budget == 64'000'000 && recording_budgets(64).host_memory_budget == 64'000'000));
}

TEST_CASE("intervene: what two branches of a tree have apart, however they are related") {
  const auto checkpoint = open_checkpoint(kAssets + "checkpoints/niah/niah-sse-gla-n4k1.h5");
  const auto model = Model::load(checkpoint, make_cpu_backend(1));
  const auto tokenizer = make_tokenizer(*checkpoint, model->vocab());
  const PromptInput prompt = load_prompt({.text = {}, .ids = {}, .file = kAssets + "prompts/needle.json"});
  const std::vector<std::int32_t> ids = tokenizer->encode(prompt.text).ids;
  auto root = std::make_shared<Run>(model);
  root->read(ids, std::ssize(ids));
  for (int i = 0; i < 4; ++i) {
    const std::int32_t id = most_probable_id(root->logits(root->tokens() - 1));
    root->read({&id, 1}, std::ssize(ids));
  }
  Branches tree(root);
  tree.intervene({parse_intervention("freeze decay from 230")});    // 1
  tree.intervene({parse_intervention("zero partition 4 at 240")});  // 2, of 1
  tree.go_to(0);
  tree.intervene({parse_intervention("zero partition 4 at 240")});  // 3, of 0
  const BranchReport report = report_branches(tree, 3, 2, *tokenizer, prompt.expected);
  REQUIRE((report.only_before.size() == 1 && report.only_after.size() == 2));  // of both ways to where they are one
  CHECK((report.answer_before == "4 8 1 5" && report.expected == "1 8 1 5"));
  CHECK(report.difference.from == 230);
  CHECK(report.difference.logits == tree.compare(3, 2).logits);
  REQUIRE(report.states.size() == 3);
  CHECK((report.states[0].token == 230 && report.states[1].token == 240 && report.states[2].token == root->tokens() - 1));
  CHECK(report.states[2].layers[0].difference == compare_states(*tree[3].run, *tree[2].run, 0, root->tokens() - 1).difference);
  CHECK(report_branches(tree, 0, 3, *tokenizer, "").only_after.size() == 1);
}

TEST_CASE("intervene: what the model or the run does not have is refused in one line") {
  CHECK(error_of(with("niah-gla", {"zero partition 1 at 5"})).find("no layer can do that: there are no partitions") != std::string::npos);
  CHECK(error_of(with("niah-gla", {"zero head 0 of layer 9 at 5"})).find("there is no layer 9 (layers are 0 to 3)") != std::string::npos);
  CHECK(error_of(with("niah-gla", {"zero head 0 at 100000"})).find("there is no token 100000 (tokens are 0 to ") != std::string::npos);
  CHECK(error_of(with("niah-gla", {"import run 1 at 5"})).find("there is no run 1 (the only one is 0)") != std::string::npos);
  CHECK(error_of(with("niah-gla", {"nonsense"})).find("\"nonsense\" is not understood") != std::string::npos);
}

}  // namespace statescope::intervene_test
