// Interventions as text, and the errors of those that mean nothing to a model.
#include "engine/run/intervention.h"

#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::intervention_test {
namespace {

template <class Call>
std::string error_text(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string parse_error(const std::string& text) {
  return error_text([&] { parse_intervention(text); });
}

}  // namespace

TEST_CASE("intervention: a line of text and a value are the same thing") {
  const std::vector<std::pair<std::string, Intervention>> pairs{
      {"zero state at 30", {.change = ScaleState{}, .at = 30}},
      {"zero partition 2 of layer 1 at 30", {.change = ScaleState{.partition = 2}, .at = 30, .layer = 1}},
      {"scale shared of layer 0 by -0.5 at 0", {.change = ScaleState{.partition = 0, .factor = -0.5F}, .at = 0, .layer = 0}},
      {"zero row 3 of head 1 of partition 2 of layer 0 at 30",
       {.change = ScaleState{.partition = 2, .head = 1, .row = 3}, .at = 30, .layer = 0}},
      {"scale head 1 by 0.1 at 7", {.change = ScaleState{.head = 1, .factor = 0.1F}, .at = 7}},
      {"freeze decay from 30", {.change = ScaleDecay{}, .at = 30}},
      {"scale decay of layer 1 by 0.5 from 30 until 40", {.change = ScaleDecay{0.5F}, .at = 30, .until = 40, .layer = 1}},
      {"writers 2 of layer 1 from 5", {.change = ChangeTopK{.writers = 2}, .at = 5, .layer = 1}},
      {"readers 3 from 5 until 5", {.change = ChangeTopK{.readers = 3}, .at = 5, .until = 5}},
      {"topk 1 from 5", {.change = ChangeTopK{1, 1}, .at = 5}},
      {"writers 1 readers 2 from 5", {.change = ChangeTopK{1, 2}, .at = 5}},
      {"route layer 1 to partition 3,1 from 30", {.change = ForceRouting{{3, 1}}, .at = 30, .layer = 1}},
      {"route to partition 4 from 30 until 31", {.change = ForceRouting{{4}}, .at = 30, .until = 31}},
      {"sharpen gates of layer 0 by 4 from 9", {.change = SharpenGates{4}, .at = 9, .layer = 0}},
      {"replace token by 17 at 12", {.change = ReplaceToken{17}, .at = 12}},
      {"import run 1 token 40 of layer 2 at 30", {.change = ImportState{.run = 1, .token = 40}, .at = 30, .layer = 2}},
      {"import run 2 at 30", {.change = ImportState{.run = 2}, .at = 30}},
  };
  for (const auto& [text, intervention] : pairs) {
    INFO(text);
    CHECK(parse_intervention(text) == intervention);
    CHECK(to_text(intervention) == text);
  }
  // Words in another order, and words that only help to read.
  CHECK(parse_intervention("zero  layer 1 partition 2 from 30") == pairs[1].second);
  CHECK(parse_intervention("scale partition shared of layer 0 by -0.5 at 0") == parse_intervention("scale shared of layer 0 by -0.5 at 0"));
  CHECK(parse_intervention("freeze decay at 30") == pairs[5].second);
}

TEST_CASE("intervention: what is not understood is named, with what would be") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "nothing is said; expected one of zero, scale"},
      {"erase head 1 at 3", "\"erase\" is not understood"},
      {"zero head 1", "say at which token, once; expected zero|scale [row R]"},
      {"zero head 1 at 3 from 3", "say at which token, once"},
      {"zero head x at 3", "\"x\" is not a number"},
      {"zero head 1.5 at 3", "\"1.5\" is not a number"},
      {"zero head 99999999999999999999 at 3", "is not a number"},
      {"zero head 1 at", "a value is missing after \"at\""},
      {"zero partition 0 at 3", "partitions count from 1"},
      {"zero head 1 by 2 at 3", "\"by\" has no meaning after \"zero\""},
      {"zero head 1 head 2 at 3", "\"head\" is said twice"},
      {"zero shared partition 2 at 3", "it is a partition or the shared state"},
      {"fre at 3", "\"fre\" is not understood; expected one of zero"},
      {"zero head 1 at 3 until 4", "\"until\" has no meaning after \"zero\""},
      {"zero expert 1 at 3", "\"expert\" is nothing to zero: a state can be, a partition of it, a head, a row; expected zero|scale"},
      {"flip x at 3", "\"flip\" is not understood; expected one of zero"},
      {"scale head 1 at 3", "\"by\" is missing"},
      {"scale decay from 3", "\"by\" is missing; expected"},
      {"freeze layer 1 at 3", "\"freeze\" is not understood; expected freeze decay"},
      {"route layer 1 from 3", "\"partition\" is missing"},
      {"route to partition 1,,2 from 3", "\"\" is not a number"},
      {"topk from 3", "a value is missing after \"3\""},
      {"writers", "\"\" is not a number"},
      {"replace token at 3", "\"by\" is missing"},
      {"import at 3", "\"run\" is missing"},
  };
  for (const auto& [text, expected] : cases) {
    INFO(text);
    const std::string error = parse_error(text);
    INFO(error);
    CHECK(error.find(expected) != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("intervention: what a model does not have is refused in a line") {
  const json gla = small_config("gla"), sse = sse_config("gla"), mom = small_config("mom", {{"head_dim", 16}, {"shared_mem", false}});
  const json hybrid = small_config("gla", {{"attn", {{"layers", {1}}, {"num_heads", 4}}}});
  struct Case {
    json config;
    std::string text, expected;
  };
  const std::vector<Case> cases{
      {gla, "zero head 1 at 50", "there is no token 50 (tokens are 0 to 49)"},
      {gla, "zero head 1 at -1", "there is no token -1 (tokens are 0 to 49)"},
      {gla, "freeze decay from 5 until 4", "it ends before it begins"},
      {gla, "zero layer 2 at 5", "there is no layer 2 (layers are 0 to 1)"},
      {gla, "zero head 4 of layer 0 at 5", "in layer 0 (gla) there is no head 4 (heads are 0 to 3)"},
      {gla, "zero row 8 at 5", "no layer can do that: there is no row 8 (rows are 0 to 7)"},
      {gla, "zero partition 1 of layer 0 at 5", "there are no partitions"},
      {gla, "zero shared at 5", "there is no shared state"},
      {gla, "topk 1 from 5", "there are no partitions"},
      {gla, "route to partition 1 from 5", "there are no partitions"},
      {gla, "sharpen gates by 2 from 5", "there are no head gates"},
      {gla, "replace token by 97 at 5", "the vocabulary has ids 0 to 96"},
      {gla, "scale state by nan at 5", "the factor is nan"},
      {gla, "scale decay by -1 from 5", "expected a number ≥ 0"},
      {small_config("linear_attn"), "freeze decay from 5", "nothing decays"},
      {small_config("delta_net"), "scale decay by 2 from 5", "nothing decays"},
      {s4_config("diag"), "scale decay by 2 from 5", "states decay by exp(Δ A), a weight that is the same at every token"},
      {small_config("gated_deltanet", with(sla({{"gdn_decay", false}}), {{"head_dim", 16}})), "freeze decay from 5", "nothing decays"},
      {small_config("retnet", sla()), "sharpen gates by -2 from 5", "λ is -2"},
      {small_config("transformer"), "zero head 0 at 5", "there is no matrix state"},
      {hybrid, "zero head 0 of layer 1 at 5", "in layer 1 (transformer) there is no matrix state"},
      {hybrid, "sharpen gates by 2 from 5", "from 5: no layer can do that: there are no head gates"},
      {hybrid, "zero partition 1 at 5", "in layer 0 (gla) there are no partitions; in layer 1 (transformer) there is no matrix state"},
      {sse, "zero partition 5 at 5", "there is no partition 5 (partitions are 1 to 4)"},
      {sse, "writers 5 from 5", "a token can have 1 to 4 partitions"},
      {sse, "readers 0 from 5", "a token can have 1 to 4 partitions"},
      {sse, "route to partition 2,5 from 5", "there is no partition 5 (partitions are 1 to 4)"},
      {sse, "route to partition 2,2 from 5", "partition 2 is named twice"},
      {mom, "writers 1 from 5", "tokens read the partitions that they write: say topk"},
      {mom, "zero shared at 5", "there is no shared state"},
      {log_linear_config(), "zero partition 2 at 5",
       "there are no partitions but levels of one memory, which are changed together: the state can be, a head of it, a row"},
      {log_linear_config(), "zero shared at 5", "levels of one memory, which are changed together"},
      {s4_config("diag"), "zero partition 1 at 5", "the real and imaginary parts of one state, which are changed together"},
  };
  for (const Case& one : cases) {
    INFO(one.text);
    const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(one.config), 5), make_cpu_backend(1));
    const std::string error = error_text([&] { changed_layers(parse_intervention(one.text), *model, 50); });
    INFO(error);
    CHECK(error.find(one.expected) != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("intervention: without a layer it is for all that have what it names") {
  const json hybrid = sse_config("gla", {{"num_hidden_layers", 3}, {"attn", {{"layers", {1}}, {"num_heads", 4}}}});
  const std::shared_ptr<Model> model = Model::load(random_checkpoint(Config(hybrid), 5), make_cpu_backend(1));
  CHECK(changed_layers(parse_intervention("freeze decay from 5"), *model, 9) == std::vector<std::int64_t>{0, 2});
  CHECK(changed_layers(parse_intervention("zero partition 4 at 8"), *model, 9) == std::vector<std::int64_t>{0, 2});
  CHECK(changed_layers(parse_intervention("import run 0 at 5"), *model, 9) == std::vector<std::int64_t>{0, 1, 2});
}

}  // namespace statescope::test::intervention_test
