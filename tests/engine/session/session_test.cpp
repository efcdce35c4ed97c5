// The session from the interface thread's side: this thread is it, and runs what is posted when it chooses to.
#include <set>

#include "engine/run/reading.h"
#include "engine/unread.h"
#include "tests/catch.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/session/session_cases.h"
#include "tests/source.h"

namespace statescope::test::session_test {
namespace {

const std::filesystem::path kNeedles = from_source("assets/checkpoints/niah/niah-gla.h5");

}  // namespace

TEST_CASE("session: opens a checkpoint, reads a prompt, shows a layer at a token") {
  Posts posts;
  Session session(posts.post());
  Opening opening;
  PromptInput prompt;
  prompt.text = "the code of vera 3 6 8 6 . what is the code of vera";
  prompt.spans = {{SpanKind::needle, 0, 24}, {SpanKind::question, 27, prompt.text.size()}};
  prompt.expected = "3 6 8 6";
  session.open(kNeedles, prompt, opening.callbacks());
  posts.run_until([&] { return opening.done || !opening.failures.empty(); });
  REQUIRE(opening.failures.empty());
  const RunInfo& read = *opening.runs[0];
  CHECK(read.prompt_length == 15);
  CHECK(read.tokens.size() == 15);
  CHECK(read.tokens[3].text == "vera");
  REQUIRE(read.spans.size() == 2);
  CHECK((read.spans[0].begin == 0 && read.spans[0].end == 8));
  CHECK((read.spans[1].begin == 9 && read.spans[1].end == 15));
  CHECK(read.model.family == "gla");
  // Generated tokens are told of in order, the last one in any case; the prompt stays as long as it was.
  REQUIRE(opening.runs.size() >= 2);
  for (std::size_t i = 1; i < opening.runs.size(); ++i) CHECK(opening.runs[i]->tokens.size() > opening.runs[i - 1]->tokens.size());
  CHECK(opening.runs.back()->tokens.size() == 19);
  CHECK(opening.runs.back()->prompt_length == 15);
  for (std::size_t i = 1; i < opening.progress.size(); ++i) CHECK(opening.progress[i].first <= 1);

  std::shared_ptr<const Snapshot> snapshot;
  session.show(1, 0, 7, [&](std::shared_ptr<const Snapshot> answer) { snapshot = std::move(answer); });
  posts.run_until([&] { return snapshot != nullptr; });
  CHECK(snapshot->layer == 1);
  CHECK(snapshot->token == 7);
  CHECK(snapshot->run->tokens.size() == 19);
  CHECK((snapshot->state.slots == 1 && snapshot->state.heads == 4));
  CHECK(snapshot->state.values.size() == static_cast<std::size_t>(snapshot->state.rows * snapshot->state.columns));
  CHECK(snapshot->state.values != snapshot->before.values);
  CHECK(snapshot->routing == nullptr);
  CHECK(snapshot->predictions.size() == 8);
  CHECK(snapshot->accuracy == kReplayed);
}

TEST_CASE("session: of waiting requests only the newest is answered, once") {
  Posts posts;
  Session session(posts.post());
  std::vector<std::pair<std::int64_t, std::int64_t>> answers;
  auto ask = [&](std::int64_t layer, std::int64_t token) {
    session.show(layer, 0, token,
                 [&](std::shared_ptr<const Snapshot> snapshot) { answers.emplace_back(snapshot->layer, snapshot->token); });
  };
  // Nothing is open yet, so all of these wait.
  for (std::int64_t token : {3, 1, 4, 1, 5}) ask(0, token);
  ask(1, 9);
  Opening opening;
  session.open(kSse, ids_prompt(20), opening.callbacks());
  posts.run_until([&] { return !answers.empty(); });
  CHECK(opening.runs.size() == 1);
  ask(0, 2);
  posts.run_until([&] { return answers.size() == 2; });
  posts.run_all();
  CHECK(answers == std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 9}, {0, 2}});
}

TEST_CASE("session: an exact state says so, and routing comes with the snapshot") {
  Posts posts;
  Session session(posts.post());
  Opening opening;
  session.open(kSse, ids_prompt(20), opening.callbacks());
  std::shared_ptr<const Snapshot> last;
  session.show(0, 0, 19, [&](std::shared_ptr<const Snapshot> answer) { last = std::move(answer); });
  posts.run_until([&] { return last != nullptr; });
  CHECK(last->accuracy == kExact);
  REQUIRE(last->routing);
  CHECK(last->routing->tokens() == 20);
  CHECK(last->state.slots == last->routing->partitions + 1);
}

TEST_CASE("session: failures are one line that names the file") {
  Posts posts;
  Session session(posts.post());
  Opening missing, empty, unopened;
  session.read(ids_prompt(3), unopened.callbacks());
  posts.run_until([&] { return unopened.ended(); });
  CHECK(unopened.failures == std::vector<std::string>{"no checkpoint is open"});
  session.open("/nowhere/model.h5", ids_prompt(3), missing.callbacks());
  posts.run_until([&] { return missing.ended(); });
  REQUIRE(missing.failures.size() == 1);
  CHECK(missing.failures[0].find("/nowhere/model.h5") != std::string::npos);
  CHECK(missing.failures[0].find('\n') == std::string::npos);
  PromptInput nothing;
  session.open(kGla, nothing, empty.callbacks());
  posts.run_until([&] { return empty.ended(); });
  CHECK(empty.failures.empty());  // a model without a prompt shows itself on sample ids
  CHECK(empty.runs.size() == 1);
  CHECK(missing.runs.empty());
}

TEST_CASE("session: another prompt on the open model; the run stays when a reading fails or is cancelled") {
  Posts posts;
  Session session(posts.post());
  Opening first, second, foreign, cancelled;
  session.open(kGla, ids_prompt(10), first.callbacks());
  posts.run_until([&] { return first.ended(); });
  session.read(ids_prompt(12, 2), second.callbacks());
  posts.run_until([&] { return second.done; });
  CHECK(second.runs[0]->tokens.size() == 12);

  PromptInput bad;
  bad.ids = {5, 1'000'000};
  session.read(bad, foreign.callbacks());
  posts.run_until([&] { return foreign.ended(); });
  REQUIRE(foreign.failures.size() == 1);
  CHECK(foreign.failures[0].find("1000000") != std::string::npos);
  session.read(ids_prompt(100'000), cancelled.callbacks());
  session.cancel();
  posts.run_until([&] { return cancelled.ended(); });
  CHECK(cancelled.failures == std::vector<std::string>{"cancelled"});

  std::shared_ptr<const Snapshot> snapshot;
  session.show(0, 0, 13, [&](std::shared_ptr<const Snapshot> answer) { snapshot = std::move(answer); });
  posts.run_until([&] { return snapshot != nullptr; });
  CHECK(snapshot->run->tokens.size() == 14);
}

TEST_CASE("session: while another prompt is read, the run shown can be looked at, saved and asked") {
  const TemporaryFolder folder;
  Posts posts;
  Session session(posts.post());
  Opening first, second;
  session.open(kSse, ids_prompt(30), first.callbacks());
  posts.run_until([&] { return first.done; });
  const std::shared_ptr<const RunInfo> shown = first.runs.back();
  std::vector<std::int64_t> tokens;
  bool saved = false, answered = false;
  session.read(ids_prompt(200'000), second.callbacks());
  posts.run_until([&] { return !second.progress.empty() && second.progress.back().second == "reading"; });
  const auto look = [&](std::int64_t token) {
    session.show(0, 0, token, [&](std::shared_ptr<const Snapshot> snapshot) {
      CHECK(snapshot->run == shown);
      tokens.push_back(snapshot->token);
    });
    posts.run_until([&] { return !tokens.empty() && tokens.back() == token; });
  };
  look(7);
  look(3);
  session.save(
      folder / "shown.scope", [&] { saved = true; }, [](const std::string& message) { FAIL(message); });
  session.ask(1, shown, {PredictionsQuestion{}},
              [&](const Question&, const Finding& found) { answered = answered || found.answer != nullptr; });
  posts.run_until([&] { return saved && answered; });
  CHECK(second.runs.empty());
  CHECK(second.tree == nullptr);  // its listener hears nothing of the run before
  session.cancel();
  posts.run_until([&] { return second.ended(); });
  CHECK(second.failures == std::vector<std::string>{"cancelled"});
}

TEST_CASE("session: another checkpoint over the run shown comes with the first tokens of its prompt, too") {
  Posts posts;
  Session session(posts.post());
  Opening first, second;
  session.open(kGla, ids_prompt(30), first.callbacks());
  posts.run_until([&] { return first.done; });
  session.open(kSse, ids_prompt(60'000), second.callbacks());
  posts.run_until([&] { return !second.runs.empty(); });
  CHECK(second.runs.front()->model.family == "sse");
  CHECK(unread(*second.runs.front()) > 0);
  std::shared_ptr<const Snapshot> snapshot;
  session.show(0, 0, 5, [&](std::shared_ptr<const Snapshot> answer) { snapshot = std::move(answer); });
  posts.run_until([&] { return second.done && snapshot; });
  CHECK(unread(*snapshot->run) > 0);
  CHECK(unread(*second.runs.back()) == 0);
}

TEST_CASE("session: a run says what its recording takes and may take") {
  Posts posts;
  Session session(posts.post(), {}, {}, 2'000'000);
  Opening opening;
  session.open(kSse, ids_prompt(20'000, 3), opening.callbacks());
  posts.run_until([&] { return opening.done; });
  const RecordingInfo& early = opening.runs.front()->recording;
  const RecordingInfo& recording = opening.runs.back()->recording;
  CHECK((recording.memory_budget == 2'000'000 && recording.host_budget == 0));
  CHECK((recording.memory > 0 && recording.memory <= 2'200'000));
  CHECK((recording.file > 0 && recording.file >= early.file));
  CHECK(recording.keyframe_interval >= 128);
}

TEST_CASE(
    "session: the first run comes with the first tokens of its prompt, what is asked of it is answered, and it ends as read at once") {
  constexpr std::int64_t kLong = 60'000;  // takes long enough to be asked meanwhile
  Posts posts;
  Session session(posts.post());
  Opening opening;
  session.open(kSse, ids_prompt(kLong, 2), opening.callbacks());
  posts.run_until([&] { return !opening.runs.empty(); });
  const RunInfo& early = *opening.runs.front();
  CHECK(early.prompt_length == kLong);
  CHECK(unread(early) == kLong - std::ssize(early.tokens));
  CHECK(unread(early) > 0);
  bool too_early = false;
  session.show(0, 0, kLong - 1, [&](std::shared_ptr<const Snapshot>) { too_early = true; });
  std::shared_ptr<const Snapshot> first, last;
  session.show(0, 0, 5, [&](std::shared_ptr<const Snapshot> answer) { first = std::move(answer); });
  posts.run_until([&] { return opening.done && first; });
  CHECK_FALSE(too_early);
  CHECK(unread(*first->run) > 0);
  session.show(0, 0, kLong - 1, [&](std::shared_ptr<const Snapshot> answer) { last = std::move(answer); });
  posts.run_until([&] { return last != nullptr; });

  const auto checkpoint = open_checkpoint(kSse);
  const auto model = Model::load(checkpoint, make_cpu_backend());
  Reading whole(model, make_tokenizer(*checkpoint, model->vocab()), ids_prompt(kLong));
  for (int i = 0; i < 2; ++i) whole.generate_one();
  CHECK(first->state.values == whole.snapshot(0, 0, 5)->state.values);
  CHECK(last->state.values == whole.snapshot(0, 0, kLong - 1)->state.values);
  CHECK(last->run->tokens.size() == kLong + 2);
}

TEST_CASE("session: a prompt whose reading was cancelled is gone on with, and can be saved as it is") {
  const TemporaryFolder folder;
  Posts posts;
  Session session(posts.post());
  Opening opening, rest;
  session.open(kGla, ids_prompt(60'000), opening.callbacks());
  opening.on_progress = [&] {
    if (!opening.runs.empty()) session.cancel();
  };
  posts.run_until([&] { return !opening.failures.empty(); });
  CHECK(unread(*opening.runs.back()) > 0);
  bool saved = false;
  session.save(
      folder / "part.scope", [&] { saved = true; }, [](const std::string& message) { FAIL(message); });
  posts.run_until([&] { return saved; });
  session.generate(60'002, rest.callbacks());
  posts.run_until([&] { return rest.done || !rest.failures.empty(); });
  CHECK(rest.failures.empty());
  CHECK(unread(*rest.runs.back()) == 0);
  CHECK(rest.runs.back()->tokens.size() == 60'002);
}

TEST_CASE("session: a reading under way is cancelled, by hand or by a newer opening") {
  Posts posts;
  Session session(posts.post());
  Opening by_hand, replaced, newer;
  session.open(kGla, ids_prompt(200'000), by_hand.callbacks());
  by_hand.on_progress = [&] {
    if (by_hand.progress.back().second == "reading") session.cancel();
  };
  posts.run_until([&] { return !by_hand.failures.empty(); });
  CHECK(by_hand.failures == std::vector<std::string>{"cancelled"});

  session.open(kGla, ids_prompt(200'000), replaced.callbacks());
  session.open(kSse, ids_prompt(7), newer.callbacks());
  posts.run_until([&] { return newer.ended() && replaced.ended(); });
  CHECK(replaced.failures == std::vector<std::string>{"cancelled"});
  for (const auto& run : replaced.runs) CHECK(unread(*run) > 0);  // its first tokens may have come before
  REQUIRE(newer.runs.size() == 1);
  CHECK(newer.runs[0]->model.family == "sse");
}

TEST_CASE("session: ends while busy, and nothing is heard from it afterwards") {
  Posts posts;
  Opening opening;
  int shown = 0;
  {
    Session session(posts.post());
    session.open(kGla, ids_prompt(200'000), opening.callbacks());
    posts.run_until([&] { return !opening.progress.empty() && opening.progress.back().second == "reading"; });
    session.show(0, 0, 0, [&](std::shared_ptr<const Snapshot>) { ++shown; });
  }
  const std::size_t heard = opening.progress.size();
  posts.run_all();
  CHECK(opening.progress.size() == heard);
  CHECK(opening.failures.empty());
  CHECK(shown == 0);
  { const Session idle(posts.post()); }
}

TEST_CASE("session: what a device fails at is done again on the CPU, and nothing is lost") {
  struct Case {
    std::string what, operation;
    int calls;
    bool out_of_memory = false;
  };
  const auto c = GENERATE(Case{"loading", "adopt", 3, true}, Case{"the prompt", "embed", 2}, Case{"out of memory", "allocate", 12, true},
                          Case{"generating", "embed", 6}, Case{"the last token", "embed", 3 + 8});
  INFO(c.what);
  Posts posts;
  Failure failure(c.operation, c.calls, c.out_of_memory);
  Session session(posts.post(), [&] { return failure.device(); });
  Opening opening;
  session.open(kGla, ids_prompt(300, 8), opening.callbacks());
  posts.run_until([&] { return opening.done || !opening.failures.empty(); });
  CHECK(opening.failures.empty());
  CHECK(failure.failed);
  REQUIRE(!opening.runs.empty());
  CHECK(opening.runs.back()->tokens.size() == 308);
  CHECK(opening.runs.back()->model.device.starts_with("CPU"));
  CHECK(opening.device_failures ==
        std::vector<std::string>{c.out_of_memory ? "the device is out of memory; the CPU reads from here on" : kLost});

  // A device that has failed is left alone.
  failure.asked_again = 0;
  Opening next;
  session.read(ids_prompt(5), next.callbacks());
  posts.run_until([&] { return next.done || !next.failures.empty(); });
  CHECK(next.runs.size() == 1);
  CHECK(next.device_failures.empty());
  CHECK(failure.asked_again == 0);
}

TEST_CASE("session: a prompt that nobody looks at while it is read is read without waiting for a look") {
  Posts posts;
  Session session(posts.post());
  Opening opening;
  Session::OpenCallbacks callbacks = opening.callbacks();
  callbacks.looks = false;
  const auto begin = std::chrono::steady_clock::now();
  session.open(kSse, ids_prompt(300), std::move(callbacks));
  posts.run_until([&] { return opening.done || !opening.failures.empty(); });
  CHECK(opening.failures.empty());
  CHECK(opening.runs.back()->tokens.size() == 300);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
}

TEST_CASE("session: a device that is full, whoever asks it for memory: the run is read all the same, and a line says where") {
  std::set<std::string> lines;
  int asked = 0;
  for (int refused = 1; refused == 1 || asked >= refused - 1; ++refused) {
    INFO("request " << refused);
    asked = 0;
    Posts posts;
    const auto device = std::make_shared<FailingDevice>([&](std::string_view what) {
      if (what == "allocate" && ++asked == refused) throw std::bad_alloc();
    });
    Session session(posts.post(), [&] { return device; });
    Opening opening;
    Session::OpenCallbacks callbacks = opening.callbacks();
    callbacks.run = [&](std::shared_ptr<const RunInfo> run) {  // a picture is asked for at once: the session need not wait for that
      session.show(0, 0, 0, [](const std::shared_ptr<const Snapshot>&) {});
      opening.runs.push_back(std::move(run));
    };
    session.open(kSse, ids_prompt(300, 2), std::move(callbacks));
    posts.run_until([&] { return opening.done || !opening.failures.empty(); });
    CHECK(opening.failures.empty());
    REQUIRE(!opening.runs.empty());
    CHECK(opening.runs.back()->tokens.size() == 302);
    CHECK(opening.device_failures.size() <= 1);
    lines.insert(opening.device_failures.begin(), opening.device_failures.end());
  }
  CHECK(lines == std::set<std::string>{"the device is out of memory; the CPU reads from here on",
                                       "the device is out of memory: the recording continues in the host's"});
}

TEST_CASE("session: a device that fails at a snapshot: the run is read again on the CPU, with as many tokens") {
  Posts posts;
  Failure failure("upload", 1);
  failure.armed = false;
  Session session(posts.post(), [&] { return failure.device(); });
  Opening opening;
  std::shared_ptr<const Snapshot> last, earlier;
  session.open(kSse, ids_prompt(20, 4), opening.callbacks());
  posts.run_until([&] { return opening.done; });
  CHECK(opening.runs.back()->model.device == "a device that fails");
  const std::size_t told = opening.runs.size();
  opening.done = false;
  failure.armed = true;
  session.show(0, 0, 7, [&](std::shared_ptr<const Snapshot> answer) { earlier = std::move(answer); });
  posts.run_until([&] { return opening.done; });
  CHECK(opening.failures.empty());
  CHECK(opening.device_failures == std::vector<std::string>{kLost});
  REQUIRE(opening.runs.size() > told);
  CHECK(opening.runs.back()->tokens.size() == 24);
  CHECK(opening.runs.back()->model.device.starts_with("CPU"));
  CHECK(earlier == nullptr);  // the interface asks anew when the run stands
  session.show(0, 0, 7, [&](std::shared_ptr<const Snapshot> answer) { earlier = std::move(answer); });
  posts.run_until([&] { return earlier != nullptr; });
  CHECK(earlier->run == opening.runs.back());
}

TEST_CASE("session: the next prompt after a fall-back that was cancelled is read on the CPU") {
  Posts posts;
  Failure failure("copy", 1);
  failure.armed = false;
  Session session(posts.post(), [&] { return failure.device(); });
  Opening opening, next;
  session.open(kGla, ids_prompt(20'000), opening.callbacks());
  posts.run_until([&] { return opening.done; });
  opening.done = false;
  opening.on_progress = [&] {
    if (opening.progress.back().second == "reading") session.cancel();
  };
  failure.armed = true;
  session.show(0, 0, 7, [](std::shared_ptr<const Snapshot>) {});
  posts.run_until([&] { return opening.done || !opening.failures.empty(); });
  CHECK(opening.failures == std::vector<std::string>{"cancelled"});
  opening.on_progress = {};
  session.read(ids_prompt(5), next.callbacks());
  posts.run_until([&] { return next.done || !next.failures.empty(); });
  CHECK(next.failures.empty());
  CHECK(next.runs.back()->model.device.starts_with("CPU"));
}

TEST_CASE("session: a mistake of the reader is none of the device's") {
  Posts posts;
  Failure failure("none", 1);
  Session session(posts.post(), [&] { return failure.device(); });
  Opening bad, good;
  PromptInput prompt;
  prompt.ids = {5, 1'000'000};
  session.open(kGla, prompt, bad.callbacks());
  posts.run_until([&] { return bad.ended(); });
  CHECK(bad.failures.size() == 1);
  CHECK(bad.device_failures.empty());
  session.open(kGla, ids_prompt(5), good.callbacks());
  posts.run_until([&] { return good.ended(); });
  CHECK(good.runs.back()->model.device == "a device that fails");
}

}  // namespace statescope::test::session_test
