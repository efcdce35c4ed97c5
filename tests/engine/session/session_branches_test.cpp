// Branches in the session: what the interface is told of them, what it is shown, and the file that keeps them.
#include <filesystem>
#include <thread>

#include "engine/run/intervention.h"
#include "engine/session/session_record.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/session/session_cases.h"

namespace statescope::test::session_branches_test {
namespace {

constexpr std::int64_t kPrompt = 40, kGenerated = 4;

/// A session that has read a prompt.
struct Open {
  explicit Open(const std::shared_ptr<Backend>& device = nullptr, const DeviceChoice& name = {})
      : session(
            posts.post(), [device] { return device; }, name) {
    request([&](auto callbacks) { session.open(kSse, ids_prompt(kPrompt, kGenerated), callbacks); });
  }

  /// Waits for the end of what is asked for.
  template <class Ask>
  void request(Ask ask) {
    answers = Opening();
    ask(answers.callbacks());
    posts.run_until([&] { return answers.done || !answers.failures.empty(); });
    if (answers.tree) tree = answers.tree;
    if (!answers.runs.empty()) run = answers.runs.back();
  }
  void intervene(const std::string& text) {
    request([&](auto callbacks) { session.intervene({parse_intervention(text)}, callbacks); });
  }
  void undo() {
    request([&](auto callbacks) { session.undo(callbacks); });
  }
  void redo() {
    request([&](auto callbacks) { session.redo(callbacks); });
  }
  void go_to(std::int64_t branch) {
    request([&](auto callbacks) { session.go_to_branch(branch, callbacks); });
  }
  std::string save(const std::filesystem::path& path) {
    std::optional<std::string> said;
    session.save(
        path, [&] { said = "saved"; }, [&](std::string message) { said = std::move(message); });
    posts.run_until([&] { return said.has_value(); });
    posts.run_all();
    if (answers.tree) tree = answers.tree;
    return *said;
  }
  /// Of layer 0, as the interface sees it.
  std::vector<float> state(std::int64_t token) {
    std::shared_ptr<const Snapshot> snapshot;
    session.show(0, 0, token, [&](std::shared_ptr<const Snapshot> shown) { snapshot = std::move(shown); });
    posts.run_until([&] { return snapshot != nullptr; });
    CHECK(snapshot->run == run);
    return snapshot->state.values;
  }
  std::vector<std::vector<float>> states() {
    std::vector<std::vector<float>> all;
    for (const std::int64_t token : {0, 19, 20, 21, 39, 43}) all.push_back(state(token));
    return all;
  }
  template <class Question>
  typename Question::Answer answer(const Question& question) {
    std::optional<Finding> finding;
    session.ask(1, run, {question}, [&](const statescope::Question&, Finding found) {
      if (found.answer || !found.refused.empty()) finding = std::move(found);
    });
    posts.run_until([&] { return finding.has_value(); });
    REQUIRE(finding->refused == "");
    return *static_cast<const typename Question::Answer*>(finding->answer.get());
  }

  Posts posts;
  Opening answers;
  std::shared_ptr<const BranchTree> tree;
  std::shared_ptr<const RunInfo> run;
  Session session;
};

}  // namespace

TEST_CASE("session: a branch is another run from a token on; undo, redo and going to it restore what was there, to the bit") {
  Open open;
  CHECK(open.run->branch.number == 0);
  REQUIRE(open.tree->runs.size() == 1);
  const auto own = open.run;
  const auto before = open.states();

  open.intervene("zero partition 2 at 20");
  REQUIRE(open.answers.failures.empty());
  const auto branch = open.run;
  CHECK(branch->branch.number == 1);
  CHECK(branch->branch.parent == 0);
  CHECK(branch->branch.from == 21);
  CHECK(branch->branch.interventions == std::vector<std::string>{"zero partition 2 at 20"});
  CHECK(std::ssize(branch->tokens) == kPrompt + kGenerated);
  CHECK((open.tree->runs.size() == 2 && open.tree->current == 1 && open.tree->redo == -1));
  const auto after = open.states();
  CHECK(std::equal(after.begin(), after.begin() + 2, before.begin()));  // up to token 19
  for (std::size_t i = 2; i < after.size(); ++i) CHECK(after[i] != before[i]);

  open.undo();
  CHECK(open.run == own);
  CHECK((open.tree->current == 0 && open.tree->redo == 1));
  CHECK(open.states() == before);
  open.redo();
  CHECK(open.run == branch);
  CHECK(open.states() == after);
  open.go_to(0);
  CHECK(open.run == own);
  CHECK(open.states() == before);
}

TEST_CASE("session: where there is nothing to undo or redo all stays; what cannot be done is one line") {
  Open open;
  open.undo();
  CHECK((open.answers.done && open.answers.runs.empty()));
  open.redo();
  CHECK((open.answers.done && open.answers.runs.empty()));
  open.go_to(3);
  CHECK(open.answers.failures == std::vector<std::string>{"there are branches 0 to 0"});
  open.intervene("zero partition 9 at 20");
  REQUIRE(open.answers.failures.size() == 1);
  CHECK(open.answers.failures[0].find("partition 9") != std::string::npos);
  open.intervene("zero partition 1 at 400");
  CHECK(open.answers.failures.size() == 1);
  CHECK(open.tree->runs.size() == 1);
  open.state(43);  // is shown as before

  Posts posts;
  Session none(posts.post());
  Opening opening;
  none.intervene({parse_intervention("freeze decay from 3")}, opening.callbacks());
  posts.run_until([&] { return opening.ended(); });
  CHECK(opening.failures == std::vector<std::string>{"no checkpoint is open"});
}

TEST_CASE("session: an intervention that is cancelled leaves the tree as it was; moves wait for what is under way") {
  Open open;
  open.request([&](auto callbacks) { open.session.read(ids_prompt(20'000), callbacks); });
  open.answers = Opening();
  open.answers.on_progress = [&] { open.session.cancel(); };
  open.session.intervene({parse_intervention("freeze decay from 3")}, open.answers.callbacks());
  open.posts.run_until([&] { return open.answers.done || !open.answers.failures.empty(); });
  CHECK(open.answers.failures == std::vector<std::string>{"cancelled"});
  CHECK(open.answers.runs.empty());

  Opening first, second, third;
  open.session.intervene({parse_intervention("freeze decay from 19990")}, first.callbacks());
  open.session.undo(second.callbacks());
  open.session.redo(third.callbacks());
  open.posts.run_until([&] { return third.done; });
  REQUIRE((first.runs.size() == 1 && second.runs.size() == 1 && third.runs.size() == 1));
  CHECK(first.runs[0] == third.runs[0]);
  CHECK(second.runs[0]->branch.number == 0);
}

TEST_CASE("session: another prompt is read beside the run, and its states imported, undone and kept") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "run.scope";
  std::vector<std::vector<float>> imported;
  {
    Open open;
    const auto before = open.states();
    CHECK(open.save(path) == "saved");
    const std::shared_ptr<const RunInfo> own = open.run;
    PromptInput prompt;
    prompt.ids = some_ids(50, 97, 9);
    open.request([&](auto callbacks) { open.session.add_run(prompt, callbacks); });
    REQUIRE(open.answers.failures.empty());
    CHECK(open.answers.runs.empty());  // the run shown stays
    REQUIRE(open.tree->runs.size() == 2);
    const RunInfo& other = *open.tree->runs[1];
    CHECK((other.branch.number == 1 && other.branch.parent == -1 && other.prompt_length == 50));
    CHECK((open.tree->current == 0 && open.tree->redo == -1));
    open.go_to(1);
    REQUIRE(open.answers.failures.size() == 1);
    CHECK(open.answers.failures[0].find("is of another prompt") != std::string::npos);

    open.intervene("import run 1 token 49 at 20");
    CHECK(open.run->branch.number == 2);
    imported = open.states();
    CHECK(imported[1] == before[1]);
    CHECK(imported[2] != before[2]);
    open.undo();
    CHECK(open.run == own);
    CHECK(open.states() == before);
    open.redo();
  }
  Open open;
  open.request([&](auto callbacks) { open.session.open_session(path, callbacks); });
  REQUIRE(open.answers.failures.empty());
  CHECK((open.tree->runs.size() == 3 && open.run->branch.number == 2));
  CHECK(open.states() == imported);
  PromptInput nothing;
  open.request([&](auto callbacks) { open.session.add_run(nothing, callbacks); });
  CHECK(open.answers.failures.size() == 1);
  CHECK(open.tree->runs.size() == 3);
}

TEST_CASE("session: a branch is in the session's file while it is read; given up, it is not") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "run.scope";
  std::atomic<bool> slow = false;
  Open open(std::make_shared<FailingDevice>([&](std::string_view what) {
    if (slow && what == "embed") std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }));
  open.request([&](auto callbacks) { open.session.read(ids_prompt(10'000), callbacks); });
  CHECK(open.save(path) == "saved");
  const auto kept = [&] { return parse_session(read_bytes(path), path).branches.size(); };
  slow = true;
  open.answers = Opening();
  open.answers.on_progress = [&] {
    if (kept() == 1) open.session.cancel();
  };
  open.session.intervene({parse_intervention("freeze decay from 1")}, open.answers.callbacks());
  open.posts.run_until([&] { return open.answers.done || !open.answers.failures.empty(); });
  CHECK(open.answers.failures == std::vector<std::string>{"cancelled"});
  CHECK(kept() == 0);
}

TEST_CASE("session: more is generated on the branch that is shown") {
  Open open;
  open.intervene("zero partition 2 at 20");
  open.request([&](auto callbacks) { open.session.generate(kPrompt + kGenerated + 5, callbacks); });
  CHECK(open.run->branch.number == 1);
  CHECK(std::ssize(open.run->tokens) == kPrompt + kGenerated + 5);
  open.undo();
  CHECK(std::ssize(open.run->tokens) == kPrompt + kGenerated);
}

TEST_CASE("session: what a branch has that the one it left has not") {
  Open open;
  open.intervene("zero partition 2 at 20");
  const BranchPredictions predictions = open.answer(BranchPredictionsQuestion{});
  CHECK(predictions.from == 21);
  CHECK(std::ssize(predictions.kl) == kPrompt + kGenerated - 21);
  CHECK(predictions.logits.size() == predictions.kl.size());
  CHECK(predictions.kl.front() > 0);
  const BranchStates same = open.answer(BranchStatesQuestion{19}), other = open.answer(BranchStatesQuestion{30});
  CHECK(same.difference[0] == 0);
  CHECK(same.left[0] > 0);
  CHECK(other.difference[0] > 0);
}

TEST_CASE("session: saved, closed and opened, the tree and the states are what they were, and what comes later is kept too") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "run.scope";
  std::vector<std::vector<float>> branched, deeper;
  {
    Open open;
    open.intervene("zero partition 2 at 20");
    CHECK(open.save(path) == "saved");
    CHECK(open.tree->session == path);
    branched = open.states();
    open.intervene("freeze decay from 25");  // kept without asking
    deeper = open.states();
  }
  Open open;
  open.request([&](auto callbacks) { open.session.open_session(path, callbacks); });
  REQUIRE(open.answers.failures.empty());
  CHECK(open.tree->session == path);
  CHECK(open.tree->prompt.ids == some_ids(kPrompt));
  REQUIRE(open.tree->runs.size() == 3);
  CHECK(open.run == open.tree->runs[2]);
  CHECK(open.states() == deeper);
  open.undo();
  CHECK(open.states() == branched);

  // The name is taken, by this session and by another one.
  CHECK(open.save(path) == "saved");
  Open other;
  CHECK(other.save(path).find("exists already") != std::string::npos);
  CHECK(other.save("/nowhere/run.scope").find("/nowhere/run.scope") != std::string::npos);
  other.request([&](auto callbacks) { other.session.open_session(path, callbacks); });
  REQUIRE(other.answers.failures.size() == 1);
  CHECK(other.answers.failures[0].find("another program has this session open") != std::string::npos);
  CHECK(other.state(43).size() == branched[5].size());  // the run shown stays
}

TEST_CASE("session: saved on one device and opened on another, it says how near the numbers are") {
  const TemporaryFolder folder;
  const std::filesystem::path on_cpu = folder / "cpu.scope", on_cuda = folder / "cuda.scope";
  const DeviceChoice cuda{.name = "cuda", .precision = Precision::bfloat16};
  Failure none("none", 1);
  {
    Open open;
    CHECK(open.save(on_cpu) == "saved");
    Open other(none.device(), cuda);
    CHECK(other.save(on_cuda) == "saved");
  }
  const auto said = [](Open& open, const std::filesystem::path& path) {
    open.request([&](auto callbacks) { open.session.open_session(path, callbacks); });
    open.posts.run_all();
    CHECK(open.answers.failures == std::vector<std::string>());
    return open.answers.other_device;
  };
  // One program at a time has a session open.
  {
    Open open;
    CHECK(said(open, on_cpu).empty());
    const auto on_other = said(open, on_cuda);
    CHECK(on_other == std::vector<std::string>{
                          "Saved on a CUDA device in bfloat16, read on the CPU: numbers agree with those of then within rounding."});
    CHECK(open.tree->checkpoint == std::filesystem::absolute(kSse));
  }
  Open other(none.device(), cuda);
  CHECK(said(other, on_cuda).empty());
  CHECK(said(other, on_cpu).size() == 1);
}

TEST_CASE("session: a device that cannot be opened is told, and the CPU reads") {
  Posts posts;
  Opening opening;
  bool on_this_thread = false;
  Session session(posts.post(), [&, here = std::this_thread::get_id()]() -> std::shared_ptr<Backend> {
    on_this_thread = std::this_thread::get_id() == here;
    throw DeviceError("cuda: there is no such device");
  });
  session.open(kSse, ids_prompt(9), opening.callbacks());
  posts.run_until([&] { return opening.done || !opening.failures.empty(); });
  CHECK(opening.failures.empty());
  CHECK(opening.device_failures == std::vector<std::string>{"cuda: there is no such device; the CPU reads from here on"});
  CHECK(opening.runs.back()->model.device.starts_with("CPU"));
  CHECK_FALSE(on_this_thread);
}

TEST_CASE("session: a device that fails at an intervention or after it: the tree is read again on the CPU") {
  const std::string where = GENERATE("while it is read", "when it is shown");
  INFO(where);
  const bool reading = where == "while it is read";
  Failure failure(reading ? "embed" : "upload", reading ? 2 : 1);
  failure.armed = false;
  Open open(failure.device());
  open.intervene("zero partition 2 at 20");
  const std::int64_t tokens = std::ssize(open.run->tokens);
  failure.armed = true;
  if (reading) {
    open.intervene("freeze decay from 25");
  } else {
    open.answers = Opening();  // the one that made the run shown listens
    open.session.show(0, 0, 7, [](std::shared_ptr<const Snapshot>) {});
    open.posts.run_until([&] { return open.answers.done || !open.answers.failures.empty(); });
    open.run = open.answers.runs.back();
  }
  CHECK(failure.failed);
  CHECK(open.answers.device_failures == std::vector<std::string>{kLost});
  CHECK(open.run->branch.number == (reading ? 2 : 1));
  CHECK(open.run->model.device.starts_with("CPU"));
  CHECK(std::ssize(open.run->tokens) == tokens);
  CHECK(open.state(30).size() > 0);
}

}  // namespace statescope::test::session_branches_test
