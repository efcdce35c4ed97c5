// Jobs of commands, and what comes of them, travel whole.
#include "app/jobs/jobs.h"

#include <functional>
#include <nlohmann/json.hpp>

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
  report.verdict = {{0.5, 0.25, 0, 0.25, 0}, {{0, 1, 0, Loss::misroute, 0.25, 1}}, NeedleVerdict::Read{0, 1, 0, 0.5}};
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
  change(found.report);
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
  for (const Job& job : {Job(InterveneJob{kPrompt, {parse_intervention("zero state at 5")}, {kPrompt, {}}, 3}),
                         Job(NeedleJob{kPrompt, "needle.json", 5}), Job(ModelJob{true, 2, true, true}), Job(ModelJob{})}) {
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

  const ModelFound model = again(ModelFound{run_info().model, 64, 128, {{"y = a x\n", {0, 1}}}});
  CHECK(model.info.layers.size() == 2);
  CHECK(model.programs[0].layers == std::vector<std::int64_t>{0, 1});
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
}

}  // namespace statescope::test::jobs_wire_test
