// Jobs of commands, and what comes of them, travel whole.
#include "app/jobs/jobs.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/engine/remote/wire_cases.h"

namespace statescope::test::jobs_wire_test {
namespace {

const PromptInput kPrompt{"text", {{SpanKind::needle, 0, 2}}, {4, 5}, "expected", 6, true, {{"user", "said", {}}}};

NeedleReport needle_report() {
  NeedleReport report{.checkpoint = "a.h5", .run = nullptr, .needle = {0, 1}, .text = "w1", .question = 1, .fates = {}, .survivals = {}};
  report.run = std::make_shared<const RunInfo>(run_info());
  NeedleFate fate{.slot = 1, .head = 0, .written = 2, .kept = 0.75};
  fate.events = {{1, Loss::overwrite, 0.5}};
  fate.read = true;
  report.fates = {{fate}, {}};
  report.survivals = {{{{0, 1}, {1, 0.75}, {0, 0.25}, {0, 0}, {2, 0}}}, {}};
  report.verdict = {{0.5, 0.25, 0, 0.25, 0}, {{0, 1, 0, Loss::misroute, 0.25, 1}}, NeedleRead{0, 1, 0, 0.5}};
  report.notes = {"a note"};
  return report;
}

BranchReport branch_report() {
  BranchReport report{.before = 0, .after = 1, .only_before = {}, .only_after = {parse_intervention("zero state at 0")}};
  report.answer_before = "1 8", report.answer_after = "4 8", report.expected = "1 8";
  report.difference = {1, {0.5F, 2}, {0.125, 0.25}, 2, {}};
  report.states = {{2, {{1, 2, 0.5}, {}}}};
  report.stateful = {0};
  report.texts = {"a", "b", "c"};
  report.changed_before = Prediction{7, "7", 0.5F};
  report.changed_after = Prediction{8, "8", 0.75F};
  return report;
}

Inspected inspection() {
  LayerReport layer{.mixer = "sse", .memory = "decayed", .residual_norm = 2};
  layer.norm_by_eighth = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const double norm : layer.norm_by_eighth) layer.moments.push_back({8, norm, 0.5, 0.25, 2});
  StateSimilarity head;
  head.stacked = {0.5, 3, 2};
  head.partitions = {{0.25, 2, 1}};
  layer.heads = {head, head};
  layer.heads_read_effect = layer.heads_norm = layer.heads_likeness = layer.heads_same_reads = {0.5, 0.25};
  layer.likest = {0, 1};
  layer.slots = {{.name = "shared", .norm = 3, .half_life = 12.5}, {.name = "1", .load = 2}};
  layer.routing = RoutingReport{.balance = {{0.5, 0.5}, {0.25, 0.75}, {1, 1}, 0.5, 1}, .uneven = {{1}, {0}}, .load_entropy = 0.75};
  layer.writing = Competition{0.5, 0.25, 1};
  layer.full_rank = 4;
  SequenceReport report{.tokens = 64, .remembrance = {{8, 0.5}}, .nll_by_eighth = {8, 7, 6, 5, 4, 3, 2, 1}, .layers = {layer}};
  Inspected inspected{.checkpoint = "runs/a.h5", .trained = 64, .steps = 200, .names = {"niah, 64 words"}, .sequences = {report}};
  inspected.reread = {"--example 64"};
  inspected.notes = {"note"};
  inspected.judgement.diagnoses = {{.illness = Illness::dead_partition,
                                    .layers = {0},
                                    .heads = {1},
                                    .heads_by_layer = {{1}},
                                    .evidence = {{"layer", 0}, {"load", 0.05}},
                                    .sentence = "Partition 2 is dead."}};
  inspected.read_on = "niah, 64 words";
  return inspected;
}

template <class Found>
Found again(const Found& found) {
  check_whole(JobDone<Found>{"why", found});
  const auto done = unpack<JobDone<Found>>(pack(JobDone<Found>{"why", found}));
  CHECK(done.note == "why");
  return done.found;
}

/// What is said where `change` has been made in what came.
template <class Found, class Change>
std::string refusal(Found found, const Change& change) {
  if constexpr (requires { found.report; }) {
    change(found.report);
  } else {
    change(found);
  }
  try {
    unpack<JobDone<Found>>(pack(JobDone<Found>{"", found}));
  } catch (const WireError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kRefused = "a message has a report whose parts do not fit together";

}  // namespace

TEST_CASE("jobs: what is asked travels whole") {
  for (const Job& job :
       {Job(InterveneJob{kPrompt, {parse_intervention("zero state at 5")}, {kPrompt, {}}, 3}), Job(NeedleJob{kPrompt, "needle.json", 5}),
        Job(ModelJob{true, 2, true, true}), Job(ModelJob{}),
        Job(InspectJob{7, {{"prompt", kPrompt, "--text text"}}, {64, 128}, 2, " --device cuda"}), Job(FindJob{}),
        Job(EvalJob{{{EvalCell{.reply = 4}, "text", {{.text = "text", .answers = {"a"}, .spans = {{PromptPart::question, 0, 2}}}}}}})}) {
    const JobAsked asked{"models/a.h5", job};
    check_whole(asked);
    const JobAsked same = unpack<JobAsked>(pack(asked));
    CHECK(same.checkpoint == asked.checkpoint);
    CHECK(same.job.index() == job.index());
  }
}

TEST_CASE("jobs: what is found travels whole") {
  const NeedleFound needle = again(NeedleFound{needle_report(), "a remark"});
  CHECK(needle.remark == "a remark");
  CHECK(needle_json(needle.report) == needle_json(needle_report()));
  CHECK(needle_html(needle.report) == needle_html(needle_report()));
  CHECK(needle_text(needle.report, 4, 3) == needle_text(needle_report(), 4, 3));

  Intervened intervened{.report = branch_report(), .family = "gla", .device = "CPU", .notes = {"note"}, .remarks = {"remark"}};
  intervened.recording = {16, 1, 2, 3, 4, 5};
  intervened.tokens = 3;
  intervened.again_from = 1;
  CHECK(to_json(again(intervened).report) == to_json(branch_report()));

  const ModelFound model = again(ModelFound{run_info().model, {"window of 16 tokens", ""}, 64, 128, {{"y = a x\n", {0, 1}}}});
  CHECK(model.info.layers.size() == 2);
  CHECK(model.details == std::vector<std::string>{"window of 16 tokens", ""});
  CHECK(model.programs[0].layers == std::vector<std::int64_t>{0, 1});

  const Inspected inspected = again(inspection());
  CHECK(inspection_json({inspected}) == inspection_json({inspection()}));
  CHECK(inspection_html({inspected}) == inspection_html({inspection()}));
  CHECK(inspection_csv({inspected}) == inspection_csv({inspection()}));
  CHECK(inspection_text(inspected, true) == inspection_text(inspection(), true));
  CellOutcome outcome;
  outcome.score = {
      .checkpoint = {}, .notes = {"note"}, .cell = {}, .impossible = {}, .task = TaskScore{.questions = 3, .hits = 2}, .text = {}};
  const auto outcomes = again(std::vector<CellOutcome>{outcome, {.not_finite = "it is NaN"}});
  CHECK((outcomes.size() == 2 && outcomes[0].score.task->hits == 2 && outcomes[1].not_finite == "it is NaN"));
  outcome.score.text = TextScore();
  CHECK_THROWS_AS(unpack<CellOutcome>(pack(outcome)), WireError);
  outcome.score.task.reset(), outcome.score.text.reset();
  CHECK_THROWS_AS(unpack<CellOutcome>(pack(outcome)), WireError);
  const FoundCheckpoints found = again(FoundCheckpoints{{{"runs/a.h5", 200}}, {"runs/b: no config.json yet"}});
  CHECK((found.checkpoints[0].path == "runs/a.h5" && found.checkpoints[0].steps == 200 && found.skipped.size() == 1));
}

TEST_CASE("jobs: a report that names what it does not have is refused") {
  const NeedleFound needle{needle_report()};
  const std::vector<std::function<void(NeedleReport&)>> wrong{
      [](NeedleReport& report) { report.run = nullptr; },
      [](NeedleReport& report) { report.fates.pop_back(); },
      [](NeedleReport& report) { report.survivals[0].clear(); },
      [](NeedleReport& report) { report.fates[0][0].slot = 2; },
      [](NeedleReport& report) { report.fates[0][0].events[0].token = 2; },
      [](NeedleReport& report) { report.verdict.losses[0].layer = -1; },
      [](NeedleReport& report) { report.verdict.losses[0].token = 99; },
      [](NeedleReport& report) { report.verdict.read->slot = -1; },
  };
  for (const auto& change : wrong) CHECK(refusal(needle, change) == kRefused);
  const Intervened intervened{.report = branch_report()};
  const std::vector<std::function<void(BranchReport&)>> apart{
      [](BranchReport& report) { report.texts.pop_back(); },
      [](BranchReport& report) { report.difference.from = -1; },
      [](BranchReport& report) { report.difference.logits.pop_back(); },
      [](BranchReport& report) { report.difference.changed = 3; },
      [](BranchReport& report) { report.changed_after.reset(); },
      [](BranchReport& report) { report.states[0].token = 3; },
  };
  for (const auto& change : apart) CHECK(refusal(intervened, change) == kRefused);
  const std::vector<std::function<void(Inspected&)>> inspections{
      [](Inspected& one) { one.names.clear(); },
      [](Inspected& one) { one.sequences.push_back({}), one.names.emplace_back("other"); },
      [](Inspected& one) { one.sequences[0].tokens = -1; },
      [](Inspected& one) { one.sequences[0].layers[0].norm_by_eighth.pop_back(); },
      [](Inspected& one) { one.sequences[0].layers[0].moments.clear(); },
      [](Inspected& one) { one.sequences[0].layers[0].heads.pop_back(); },
      [](Inspected& one) { one.sequences[0].layers[0].heads_norm.clear(); },
      [](Inspected& one) { one.sequences[0].layers[0].routing->balance.load.pop_back(); },
      [](Inspected& one) { one.sequences[0].layers[0].routing->uneven.dead = {2}; },
      [](Inspected& one) { one.judgement.diagnoses[0].layers.clear(); },
  };
  for (const auto& change : inspections)
    CHECK(refusal(inspection(), change) == "a message has an inspection whose parts do not fit together");
}

TEST_CASE("jobs: what is damaged on the way and read all the same can be told") {
  std::mt19937 random(5);
  const auto damage = [&]<class Found>(const Found& found, const auto& tell) {
    const std::string bytes = pack(JobDone<Found>{"", found});
    for (int i = 0; i < 3000; ++i) {
      std::string damaged = bytes;
      damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
      try {
        tell(unpack<JobDone<Found>>(damaged).found);
      } catch (const WireError&) {
      }
    }
  };
  damage(NeedleFound{needle_report()},
         [](const NeedleFound& found) { needle_text(found.report, 4, 3), needle_json(found.report), needle_html(found.report); });
  damage(Intervened{.report = branch_report()}, [](const Intervened& found) { to_json(found.report); });
  damage(inspection(), [](const Inspected& found) {
    inspection_text(found, true), inspection_json({found}), inspection_html({found}), inspection_csv({found});
  });
}

}  // namespace statescope::test::jobs_wire_test
