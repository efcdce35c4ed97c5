// A session over a connection is the session that is here.
#include <fmt/format.h>

#include <chrono>

#include "app/assets.h"
#include "app/common/prompts.h"
#include "engine/run/intervention.h"
#include "tests/app/remote/engine_rig.h"
#include "tests/temporary_folder.h"

namespace statescope::remote_source_test {
namespace {

PromptInput needle_prompt(std::int64_t generate) {
  PromptInput prompt = load_prompt({}, default_run().prompt.string());
  prompt.generate = generate;
  return prompt;
}

/// What both say is the same to the bit, at places all over the run.
void check_same(Asked& here, Asked& there) {
  REQUIRE(!here.runs.empty());
  REQUIRE(!there.runs.empty());
  CHECK((remote::pack(*here.run()) == remote::pack(*there.run())));
  const std::int64_t tokens = std::ssize(here.run()->tokens);
  for (const std::int64_t token : {std::int64_t{0}, tokens / 3, tokens - 1, tokens / 2}) {
    for (const std::int64_t layer : {0, 1}) {
      INFO("layer " << layer << ", token " << token);
      const auto a = here.shown(layer, 0, token), b = there.shown(layer, 0, token);
      REQUIRE(a);
      REQUIRE(b);
      CHECK(difference(*a, *b) == "");
      CHECK(b->run == there.run());
    }
  }
}

void check_same_findings(Asked& here, Asked& there) {
  const std::vector<Question> questions{ModelMapQuestion{}, PredictionsQuestion{.from = 3, .to = 40},
                                        DecayQuestion{.layer = 1, .slot = 1, .from = 0, .to = 60}, SimilarityQuestion{},
                                        StateQuestion{.layer = 1, .token = 12}};
  const auto a = here.found(questions), b = there.found(questions);
  REQUIRE(a.size() == questions.size());
  REQUIRE(b.size() == questions.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(i);
    CHECK((a[i].first == b[i].first));
    CHECK((remote::pack_finding(a[i].first, a[i].second) == remote::pack_finding(b[i].first, b[i].second)));
    CHECK(b[i].second.refused.empty());
  }
}

}  // namespace

TEST_CASE("remote: snapshots, findings, generation, branches and undo are those of a session here, to the bit") {
  const test::TemporaryFolder folder;
  const EngineServer server(serve_setup(folder.path()));
  Asked here(session_here()), there(make_remote_source(place_of(server)));
  for (Asked* one : {&here, &there}) {
    one->source->open(default_run().checkpoint, needle_prompt(2), one->callbacks());
    REQUIRE(one->ends());
    REQUIRE(one->failed.empty());
  }
  CHECK(there.branches->checkpoint == default_run().checkpoint);
  CHECK(there.source->facts().vocab == here.source->facts().vocab);
  check_same(here, there);
  check_same_findings(here, there);

  for (Asked* one : {&here, &there}) {
    one->source->generate(std::ssize(one->run()->tokens) + 5, one->callbacks());
    REQUIRE(one->ends());
  }
  check_same(here, there);

  for (Asked* one : {&here, &there}) {
    one->source->intervene({parse_intervention("zero partition 1 at 20")}, one->callbacks());
    REQUIRE(one->ends());
    REQUIRE(one->failed.empty());
    CHECK(one->run()->branch.number == 1);
  }
  check_same(here, there);
  check_same_findings(here, there);
  const auto root = std::make_unique<Asked>(there.source->beside(there.branches->runs[0]));
  const auto root_here = std::make_unique<Asked>(here.source->beside(here.branches->runs[0]));
  const auto a = root_here->shown(1, 0, 30), b = root->shown(1, 0, 30);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(difference(*a, *b) == "");
  CHECK(b->run == there.branches->runs[0]);

  for (Asked* one : {&here, &there}) {
    one->source->undo(one->callbacks());
    REQUIRE(one->ends());
    CHECK(one->run()->branch.number == 0);
  }
  check_same(here, there);
}

TEST_CASE("remote: an engine hears that nobody looks at a run, whose prompt it then reads at once") {
  const test::TemporaryFolder folder;
  const EngineServer server(serve_setup(folder.path()));
  const auto seconds_of = [&](bool looks) {
    Asked there(make_remote_source(place_of(server)));
    Session::OpenCallbacks callbacks = there.callbacks();
    callbacks.looks = looks;
    const auto begin = std::chrono::steady_clock::now();
    there.source->open(default_run().checkpoint, needle_prompt(0), std::move(callbacks));
    CHECK(there.ends());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  CHECK(seconds_of(false) + 0.5 < seconds_of(true));
}

TEST_CASE("remote: what cannot be done is told as it is of a session here") {
  const test::TemporaryFolder folder;
  const EngineServer server(serve_setup(folder.path()));
  Asked there(make_remote_source(place_of(server)));
  there.source->generate(10, there.callbacks());
  REQUIRE(there.ends());
  CHECK(there.failed == "no checkpoint is open");
  for (const std::string wrong : {"/etc/passwd", "../../etc/passwd", "/", "none-of-these.h5", ""}) {
    there.source->open(wrong, needle_prompt(0), there.callbacks());
    INFO(wrong);
    REQUIRE(there.ends());
    CHECK_FALSE(there.failed.empty());
    CHECK(there.runs.empty());
  }
}

TEST_CASE("remote: two clients have runs of their own") {
  const test::TemporaryFolder folder;
  const EngineServer server(serve_setup(folder.path()));
  Asked one(make_remote_source(place_of(server))), other(make_remote_source(place_of(server)));
  one.source->open(default_run().checkpoint, needle_prompt(0), one.callbacks());
  REQUIRE(one.ends());
  CHECK(other.runs.empty());
  other.source->generate(4, other.callbacks());
  REQUIRE(other.ends());
  CHECK(other.failed == "no checkpoint is open");
  PromptInput text{.text = "the glass was", .spans = {}, .ids = {}, .expected = {}, .generate = 1};
  other.source->open("niah-gla.h5", text, other.callbacks());
  REQUIRE(other.ends());
  REQUIRE(other.failed == "");
  CHECK(server.sessions() == 2);
  const std::int64_t tokens = std::ssize(one.run()->tokens);
  one.source->generate(tokens + 1, one.callbacks());
  REQUIRE(one.ends());
  CHECK(std::ssize(one.run()->tokens) == tokens + 1);
  CHECK(one.run()->model.name != other.run()->model.name);
  other.source.reset();
  CHECK(QTest::qWaitFor([&] { return server.sessions() == 1; }, kLongMs));
}

}  // namespace statescope::remote_source_test
