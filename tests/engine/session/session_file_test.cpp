// Session files: a run comes back as it was, with its branches and all that was asked.
#include "engine/session/session_file.h"

#include "engine/session/saving_due.h"
#include "tests/engine/session/session_files.h"

namespace statescope::test::session_files {

TEST_CASE("session: saved, opened and gone on with, a run is what it would have been without, to the bit") {
  for (const char* name : {"sse gla n4k2, conv", "gla hybrid", "sse gdn grouped, neg, w2 r3", "mom, one projection", "mamba2", "gsa",
                           "retnet", "sse swa moba gdn", "qwen3_next", "transformer", "rwkv7", "zamba", "hymba", "log_linear_mamba2"}) {
    INFO(name);
    const Begun begun(name);
    // Within the prompt, at its end, and twice in what follows.
    for (const std::int64_t stop : {std::int64_t{0}, kAtOnce, kPrompt, kPrompt + 7}) {
      fs::remove(begun.path()), fs::remove(begun.recording());
      {
        SessionFile session = SessionFile::create(begun.path(), begun.record);
        Run run(begun.model(), begun.record.options);
        go_on(run, session, stop);
        session.save(run);
      }
      SessionFile session = SessionFile::open(begun.path());
      const std::unique_ptr<Run> run = session.restore(begun.model());
      CHECK(run->tokens() == stop);
      go_on(*run, session, kPrompt + 20);
      session.save(*run);

      Begun other(name);
      SessionFile uninterrupted = SessionFile::create(other.path(), other.record, 1h);
      Run whole(other.model(), other.record.options);
      go_on(whole, uninterrupted, kPrompt + 20);
      check_same(*run, whole);
    }
  }
}

TEST_CASE("session: everything that was asked comes back") {
  const Begun begun;
  {
    SessionFile session = SessionFile::create(begun.path(), begun.record);
    Run run(begun.model(), begun.record.options);
    go_on(run, session, kPrompt + 3);
    session.save(run);
  }
  SessionFile session = SessionFile::open(begun.path());
  const SessionRecord& record = session.record();
  CHECK(record.checkpoint == begun.record.checkpoint);
  CHECK(record.prompt.text == begun.record.prompt.text);
  REQUIRE(record.prompt.spans.size() == 1);
  CHECK(record.prompt.spans[0].kind == SpanKind::question);
  CHECK(record.prompt.spans[0].end == 4);
  REQUIRE(record.prompt.turns.size() == 2);
  CHECK(record.prompt.turns[0].role == "system");
  CHECK(record.prompt.turns[0].spans.empty());
  CHECK(record.prompt.turns[1].text == begun.record.prompt.text);
  CHECK(record.prompt.turns[1].spans.at(0).end == 8);
  CHECK(record.prompt.generate == 100'000);
  CHECK(record.prompt_ids == begun.record.prompt_ids);
  CHECK(record.generated.size() == 3);
  CHECK(record.sampling.temperature == 0.7);
  CHECK(record.sampling.seed == 0xffffffffffffffff);
  CHECK(record.options.chunk_size == 16);
  CHECK(session.open_checkpoint()->tensors.size() == begun.checkpoint->tensors.size());
  CHECK(contains(session_error(begun.path()), "another program has this session open"));
}

TEST_CASE("session: its branches come back, to the bit, and the current one is the current one") {
  const Begun begun;
  constexpr std::int64_t tokens = kPrompt + 9;
  const std::shared_ptr<Model> model = begun.model();
  std::vector<std::shared_ptr<Run>> made;
  {
    SessionFile session = SessionFile::create(begun.path(), begun.record);
    Branches tree(session.restore(model));
    go_on(*tree[0].run, session, tokens);
    tree.intervene({parse_intervention("zero partition 2 of layer 0 at 40"), parse_intervention("scale decay by 2 from 50 until 60")});
    tree.intervene({parse_intervention("replace token by 5 at 45")});
    tree.undo(), tree.undo();
    tree.intervene({parse_intervention("topk 1 from 33")});
    const std::int32_t id = 7;  // read on by hand
    tree[3].run->read({&id, 1}, kPrompt);
    tree.undo();
    tree.redo();
    session.save(tree);
    for (std::int64_t i = 0; i < tree.count(); ++i) made.push_back(tree[i].run);
  }
  SessionFile session = SessionFile::open(begun.path());
  const Branches tree = session.restore_branches(model);
  REQUIRE(tree.count() == 4);
  CHECK(tree.current() == 3);
  for (std::int64_t i = 0; i < 4; ++i) {
    INFO("branch " << i);
    CHECK(tree[i].parent == std::vector<std::int64_t>{-1, 0, 1, 0}[static_cast<std::size_t>(i)]);
    CHECK(tree[i].run->tokens() == tokens + (i == 3 ? 1 : 0));
    check_same(*tree[i].run, *made[static_cast<std::size_t>(i)]);
  }
  CHECK(to_text(tree[1].interventions.at(1)) == "scale decay by 2 from 50 until 60");
}

TEST_CASE("session: runs of other prompts, and what was imported from them, come back to the bit") {
  const Begun begun;
  const std::shared_ptr<Model> model = begun.model();
  std::vector<std::shared_ptr<Run>> made;
  {
    SessionFile session = SessionFile::create(begun.path(), begun.record);
    Branches tree(session.restore(model));
    go_on(*tree[0].run, session, kPrompt + 4);
    auto other = std::make_shared<Run>(model, tree[0].run->beside());
    other->read(some_ids(45, 97, 11), 45);
    REQUIRE(tree.add(std::move(other)) == 1);
    tree.intervene({parse_intervention("import run 1 token 40 at 33")});
    session.save(tree);
    for (std::int64_t i = 0; i < tree.count(); ++i) made.push_back(tree[i].run);
  }
  SessionFile session = SessionFile::open(begun.path());
  const Branches tree = session.restore_branches(model);
  REQUIRE((tree.count() == 3 && tree.current() == 2 && tree[1].parent == -1));
  for (std::int64_t i = 0; i < 3; ++i) {
    INFO("run " << i);
    check_same(*tree[i].run, *made[static_cast<std::size_t>(i)]);
  }
  CHECK(tree[2].run->state(0, 33).values == made[1]->state(0, 40).values);
}

TEST_CASE("session: a branch that was being read when the program ended is read to its end when the session is opened") {
  const Begun begun;
  constexpr std::int64_t tokens = kPrompt + 9;
  const std::shared_ptr<Model> model = begun.model();
  SessionFile session = SessionFile::create(begun.path(), begun.record, 0ms);
  Branches tree(session.restore(model));
  go_on(*tree[0].run, session, tokens);
  // What a crash after that pass would leave.
  std::vector<std::pair<std::int64_t, std::unique_ptr<TemporaryFolder>>> left;
  tree.intervene({parse_intervention("scale state by 0.25 at 40")}, [&](std::int64_t read) {
    session.follow(tree);
    auto copy = std::make_unique<TemporaryFolder>();
    fs::copy(begun.path(), *copy / "run.scope");
    fs::copy(begun.recording(), *copy / "run.scope.recording");
    left.emplace_back(read, std::move(copy));
    return true;
  });
  REQUIRE((left.front().first < kPrompt && left.back().first == tokens));
  for (const auto& [read, copy] : left) {
    INFO("after " << read << " tokens of it");
    SessionFile opened = SessionFile::open(*copy / "run.scope");
    REQUIRE(opened.record().branches.size() == 1);
    CHECK(std::ssize(opened.record().branches[0].generated) == std::max<std::int64_t>(read - kPrompt, 0));
    CHECK(opened.record().current == 1);
    const Branches back = opened.restore_branches(model);
    REQUIRE((back.count() == 2 && back.current() == 1 && back[1].run->tokens() == tokens));
    check_same(*back[1].run, *tree[1].run);
  }
  // One that was given up is no part of it.
  CHECK_THROWS_AS(tree.intervene({parse_intervention("topk 1 from 33")}, [&](std::int64_t) { return session.follow(tree), false; }), Error);
  session.save(tree);
  CHECK((session.record().branches.size() == 1 && session.record().current == 1));
}

TEST_CASE("session: a pass is as long as fits into a second, and at most as long as a run's") {
  const Begun begun;
  const std::int64_t tokens = tokens_within_a_second(begun.model(), begun.record.prompt_ids, begun.record.options);
  CHECK((tokens >= 1 && tokens <= kAtOnce));
}

TEST_CASE("session: where passes take long, the file is written before what a crash takes would be too much") {
  constexpr auto due = [](std::chrono::milliseconds since, std::chrono::milliseconds pass, std::chrono::milliseconds saving) {
    return saving_is_due(since, pass, saving, 4000ms, 1000ms);
  };
  static_assert(!due(3999ms, 10ms, 10ms));
  static_assert(due(4000ms, 10ms, 10ms));
  static_assert(!due(2500ms, 2400ms, 0ms));
  static_assert(due(2500ms, 2500ms, 0ms));  // another pass like this one would end after 5 s
  static_assert(due(2000ms, 2000ms, 1000ms));
  const Begun begun;
  for (const auto interval : {std::chrono::milliseconds(0), std::chrono::milliseconds(1h)}) {
    fs::remove(begun.path()), fs::remove(begun.recording());
    SessionFile session = SessionFile::create(begun.path(), begun.record, interval);
    Run run(begun.model(), begun.record.options);
    run.read(std::span(begun.record.prompt_ids).first(kAtOnce), kPrompt);
    session.follow(run);
    CHECK(session.record().tokens() == (interval == 0ms ? kAtOnce : 0));
  }
}

TEST_CASE("session: one that exists is not written over") {
  const Begun begun;
  SessionFile::create(begun.path(), begun.record);
  CHECK_THROWS_AS(SessionFile::create(begun.path(), begun.record), Error);
  CHECK(session_error(begun.path()) == "");
  const fs::path other = begun.folder / "other.scope";
  write_bytes(begun.folder / "other.scope.recording", "of somebody");
  CHECK_THROWS_AS(SessionFile::create(other, begun.record), Error);
  CHECK(!fs::exists(other));
  CHECK(read_bytes(begun.folder / "other.scope.recording") == "of somebody");
}

TEST_CASE("session: where the reader stood is kept; a place that cannot be is refused") {
  SessionRecord record = Begun().record;
  CHECK_FALSE(parse_session(to_json(record, "none.scope"), "none.scope").place);
  record.place = {10, 2, 119, "views"};
  const json good = json::parse(to_json(record, "good.scope"));
  const std::optional<RunPlace> place = parse_session(good.dump(), "good.scope").place;
  REQUIRE(place);
  CHECK((place->layer == 10 && place->head == 2 && place->token == 119 && place->views == "views"));
  const auto refused = [&](const std::function<void(json & place)>& change) {
    json bad = good;
    change(bad["session"]["place"]);
    Digest digest;
    digest.add(bad["session"].dump());
    bad["digest"] = digest.text();
    CHECK_THROWS_AS(parse_session(bad.dump(), "bad.scope"), Error);
  };
  refused([](json& p) { p["layer"] = -1; });
  refused([](json& p) { p["token"] = 1.5; });
  refused([](json& p) { p["views"] = 3; });
  refused([](json& p) { p.erase("head"); });
  refused([](json& p) { p["more"] = 1; });
}

}  // namespace statescope::test::session_files
