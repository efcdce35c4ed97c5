// Session files: a run comes back as it was, and nothing that befalls the program or the disk takes more than its last moments.
#include "engine/session/session_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "engine/checkpoint/digest.h"
#include "engine/session/saving_due.h"
#include "engine/session/session_record.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::session_file_test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::int64_t kPrompt = 70, kAtOnce = 32;

json model_config(const std::string& name) {
  for (const SmallModel& model : small_models()) {
    if (model.name == name) return model.config;
  }
  throw std::logic_error("no model " + name);
}

/// A checkpoint file and a session of it that has not begun.
struct Begun {
  explicit Begun(const std::string& model_name = "sse gla n4k2, conv") {
    write_checkpoint(*random_checkpoint(Config(model_config(model_name)), 5), folder / "model.h5");
    checkpoint = open_checkpoint(folder / "model.h5");
    record.checkpoint = folder / "model.h5";
    record.checkpoint_digest = content_digest(*checkpoint);
    record.prompt.text = "what was \"read\"\n";
    record.prompt.spans = {{SpanKind::question, 0, 4}};
    record.prompt.turns = {{"system", "Be brief."}, {"user", "what was \"read\"\n", {{SpanKind::question, 5, 8}}}};
    record.prompt.generate = 100'000;
    record.prompt_ids = some_ids(kPrompt);
    record.sampling = {.temperature = 0.7, .top_p = 0.9, .seed = 0xffffffffffffffff};
    record.options = {.chunk_size = 16, .tokens_at_once = kAtOnce, .keyframe_interval = kAtOnce};
  }
  std::shared_ptr<Model> model() const { return Model::load(checkpoint, make_cpu_backend(1)); }
  fs::path path() const { return folder / "run.scope"; }
  fs::path recording() const { return folder / "run.scope.recording"; }

  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> checkpoint;
  SessionRecord record;
};

/// Reads what is left of the prompt, then a token at a time, as the session's sampler draws them, until there are `tokens`.
void go_on(Run& run, SessionFile& session, std::int64_t tokens) {
  const SessionRecord& record = session.record();
  if (run.tokens() < std::min(tokens, record.prompt_length())) {
    const std::span rest = std::span(record.prompt_ids).subspan(static_cast<std::size_t>(run.tokens()));
    run.read(rest, record.prompt_length(), [&](std::int64_t read) {
      session.follow(run);
      return read < tokens;
    });
  }
  Sampler sampler(record.sampling);
  if (run.tokens() > record.prompt_length()) sampler.skip(run.tokens() - record.prompt_length());
  while (run.tokens() < tokens) {
    const std::int32_t id = sampler.next(run.logits(run.tokens() - 1));
    run.read({&id, 1}, record.prompt_length());
    session.follow(run);
  }
}

/// Tokens, logits, states and routing of the first tokens of `whole` are those of `run`, to the bit.
void check_same(Run& run, Run& whole) {
  const std::int64_t tokens = run.tokens();
  REQUIRE(tokens <= whole.tokens());
  CHECK(std::equal(run.ids().begin(), run.ids().end(), whole.ids().begin()));
  CHECK((run.logits(0, tokens) == whole.logits(0, tokens)));
  for (std::int64_t layer = 0; layer < run.model().layers(); ++layer) {
    if (const auto routing = run.routing(layer)) {
      const auto expected = whole.routing(layer);
      CHECK(std::equal(routing->gate.begin(), routing->gate.end(), expected->gate.begin()));
      CHECK(std::equal(routing->selected.begin(), routing->selected.end(), expected->selected.begin()));
    }
    for (std::int64_t token : {std::int64_t{0}, kAtOnce - 1, kAtOnce, tokens - 1}) {
      if (token < tokens && token <= whole.tokens() - 1) CHECK((run.state(layer, token).values == whole.state(layer, token).values));
    }
  }
}

std::string session_error(const fs::path& path, const std::function<void(SessionFile&)>& use = {}) {
  try {
    SessionFile session = SessionFile::open(path);
    if (use) use(session);
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == text.npos);
    return text;
  }
  return "";
}

std::string restore_error(const Begun& begun) {
  return session_error(begun.path(), [&](SessionFile& session) { session.restore(begun.model()); });
}

bool contains(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("digest: as xxhsum prints it, in whatever pieces") {
  const auto digest_of = [](std::string_view text, std::size_t piece) {
    Digest digest;
    for (; text.size() > piece; text.remove_prefix(piece)) digest.add(text.substr(0, piece));
    digest.add(text);
    return digest.text();
  };
  CHECK(digest_of("", 1) == "ef46db3751d8e999");
  CHECK(digest_of("a", 1) == "d24ec4f1a98c6e5b");
  CHECK(digest_of("abc", 2) == "44bc2cf5ad770999");
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) CHECK(digest_of(text, piece) == "0b242d361fda71bc");
}

TEST_CASE("session: saved, opened and gone on with, a run is what it would have been without, to the bit") {
  for (const char* name : {"sse gla n4k2, conv", "gla hybrid", "sse gdn grouped, neg, w2 r3", "mom, one projection", "mamba2", "gsa",
                           "retnet", "sse swa moba gdn", "qwen3_next", "transformer"}) {
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

TEST_CASE("session: a program that is killed while it records loses its last moments and nothing else") {
  constexpr auto interval = 20ms;
  const Begun begun;
  std::int64_t saved_before = -1, kills_that_kept = 0;
  for (int kill_number = 0; kill_number < 8; ++kill_number) {
    // The child tells how much it has saved, then goes on until it is killed.
    int pipe_ends[2];
    REQUIRE(::pipe(pipe_ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        SessionFile session =
            kill_number == 0 ? SessionFile::create(begun.path(), begun.record, interval) : SessionFile::open(begun.path(), interval);
        const std::unique_ptr<Run> run = session.restore(begun.model());
        while (true) {
          go_on(*run, session, run->tokens() + 1);
          const std::int64_t saved = session.record().tokens();
          if (::write(pipe_ends[1], &saved, sizeof saved) != sizeof saved) ::_exit(1);
        }
      } catch (...) {
        ::_exit(1);
      }
    }
    ::close(pipe_ends[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + 140 * kill_number));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));

    std::int64_t saved = 0, last = 0;
    while (::read(pipe_ends[0], &last, sizeof last) == sizeof last) saved = last;
    ::close(pipe_ends[0]);

    if (!fs::exists(begun.path())) {
      REQUIRE(kill_number == 0);
      --kill_number;
      continue;
    }
    SessionFile session = SessionFile::open(begun.path());
    const std::unique_ptr<Run> run = session.restore(begun.model());
    CHECK(run->tokens() >= std::max(saved_before, saved));
    kills_that_kept += run->tokens() > saved_before;
    saved_before = run->tokens();
  }
  CHECK(kills_that_kept > 0);
  REQUIRE(saved_before > kPrompt);

  SessionFile session = SessionFile::open(begun.path());
  const std::unique_ptr<Run> run = session.restore(begun.model());
  const Begun other;
  SessionFile uninterrupted = SessionFile::create(other.path(), other.record, 1h);
  Run whole(other.model(), other.record.options);
  go_on(whole, uninterrupted, saved_before);
  check_same(*run, whole);
}

namespace {

/// Writes the session of a run that has read the prompt and two tokens.
void save_two_tokens(const Begun& begun) {
  SessionFile session = SessionFile::create(begun.path(), begun.record);
  Run run(begun.model(), begun.record.options);
  go_on(run, session, kPrompt + 2);
  session.save(run);
}

}  // namespace

TEST_CASE("session: cut off at any byte it is refused in a line, and stays as it is") {
  const Begun begun("retnet");
  save_two_tokens(begun);
  const std::string whole = read_bytes(begun.path()), recording = read_bytes(begun.recording());
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {  // the last byte ends the line
    write_bytes(begun.path(), std::string_view(whole).substr(0, length));
    if (session_error(begun.path()).empty()) FAIL("accepted, cut off after " << length << " bytes");
  }
  CHECK(read_bytes(begun.path()) == whole.substr(0, whole.size() - 2));
  write_bytes(begun.path(), whole);
  const std::shared_ptr<Model> model = begun.model();
  const std::size_t most = recording.size() - 1;
  for (std::size_t length = 0; length <= most; length += length < most ? std::min<std::size_t>(most - length, 997) : 1) {
    write_bytes(begun.recording(), std::string_view(recording).substr(0, length));
    const std::string error = session_error(begun.path(), [&](SessionFile& session) { session.restore(model); });
    if (error.empty()) FAIL("accepted, cut off after " << length << " bytes");
  }
  CHECK(fs::file_size(begun.recording()) == most);
  CHECK(read_bytes(begun.path()) == whole);
  // What stands behind the saved tokens is what a crash left.
  write_bytes(begun.recording(), recording + "more");
  CHECK(restore_error(begun) == "");
  fs::remove(begun.recording());
  CHECK(contains(restore_error(begun), "is missing"));
}

TEST_CASE("session: a flipped bit is seen wherever it is") {
  const Begun begun("retnet");
  save_two_tokens(begun);
  const std::string whole = read_bytes(begun.path()), recording = read_bytes(begun.recording());
  for (std::size_t bit = 0; bit < 8 * (whole.size() - 1); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    write_bytes(begun.path(), flipped);
    if (session_error(begun.path()).empty()) FAIL("accepted, with bit " << bit << " flipped");
  }
  write_bytes(begun.path(), whole);
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    std::string flipped = recording;
    char& byte = flipped[random() % flipped.size()];
    byte = static_cast<char>(byte ^ 1 << random() % 8);
    write_bytes(begun.recording(), flipped);
    CHECK(contains(restore_error(begun), "is damaged"));
    CHECK(read_bytes(begun.recording()) == flipped);
  }
}

TEST_CASE("session: sound JSON that says something impossible is refused") {
  const Begun begun;
  SessionFile::create(begun.path(), begun.record);
  const json good = json::parse(read_bytes(begun.path()));
  const auto refused = [&](const std::function<void(json & session)>& change) {
    json bad = good;
    change(bad["session"]);
    Digest digest;
    digest.add(bad["session"].dump());
    bad["digest"] = digest.text();
    CHECK_THROWS_AS(parse_session(bad.dump(), "bad.scope"), Error);
  };
  CHECK_NOTHROW(parse_session(good.dump(), "good.scope"));
  refused([](json& s) { s["more"] = 1; });
  refused([](json& s) { s.erase("run"); });
  refused([](json& s) { s["run"]["tokens_at_once"] = 0; });
  refused([](json& s) { s["run"]["tokens_at_once"] = 1e300; });
  refused([](json& s) { s["run"]["keyframe_interval"] = 0xffffffffffffffff; });
  refused([](json& s) { s["device"]["name"] = "toaster"; });
  refused([](json& s) { s["prompt"]["ids"] = json::array(); });
  refused([](json& s) { s["prompt"]["ids"][0] = -1; });
  refused([](json& s) { s["prompt"]["spans"][0]["end"] = 1000; });
  refused([](json& s) { s["sampling"]["top_p"] = -0.5; });
  refused([](json& s) { s["generated"] = {1}; });
  refused([](json& s) { s["recording"]["passes"] = {{32, 1'000'000'000}}; });
  refused([](json& s) { s["recording"]["passes"] = {{33, 1}}; });
  refused([](json& s) { s["recording"]["pieces"] = {{32, "0123456789abcdef"}}; });
  refused([](json& s) { s["recording"]["pieces"] = {{0x7fffffff, "0123456789abcdef"}, {0x7fffffff, "0123456789abcdef"}}; });
  refused([](json& s) { s = 1; });
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

TEST_CASE("session: branches that cannot be are refused") {
  SessionRecord record = Begun().record;
  record.passes = {{32, 2}, {6, 1}};
  record.pieces = {{70, "0123456789abcdef"}};
  record.branches = {{.parent = 0, .interventions = {parse_intervention("freeze decay from 3")}, .prompt = {}, .generated = {1, 2}},
                     {.parent = 1, .interventions = {parse_intervention("topk 1 from 9")}, .prompt = {}, .generated = {}, .to_generate = 3},
                     {.parent = -1, .interventions = {}, .prompt = {5, 6}, .generated = {}}};
  record.current = 2;
  const json good = json::parse(to_json(record, "good.scope"));
  const SessionRecord back = parse_session(good.dump(), "good.scope");
  CHECK((back.current == 2 && back.branches[1].parent == 1 && back.branches[0].generated == std::vector<std::int32_t>{1, 2}));
  CHECK((back.branches[1].to_generate == 3 && back.branches[2].parent == -1 && back.branches[2].prompt == std::vector<std::int32_t>{5, 6}));
  CHECK(to_json(back, "good.scope") == to_json(record, "good.scope"));
  const auto refused = [&](const std::function<void(json & branches)>& change) {
    json bad = good;
    change(bad["session"]["branches"]);
    Digest digest;
    digest.add(bad["session"].dump());
    bad["digest"] = digest.text();
    CHECK_THROWS_AS(parse_session(bad.dump(), "bad.scope"), Error);
  };
  refused([](json& b) { b["list"][0]["parent"] = 1; });
  refused([](json& b) { b["list"][1]["parent"] = -1; });
  refused([](json& b) { b["list"][0]["interventions"][0] = "dance"; });
  refused([](json& b) { b["list"][0]["interventions"][0] = 1; });
  refused([](json& b) { b["list"][0]["generated"][0] = -1; });
  refused([](json& b) { b["list"][0]["more"] = 1; });
  refused([](json& b) { b["current"] = 3; });  // another prompt's run is not shown
  refused([](json& b) { b["current"] = 4; });
  refused([](json& b) { b["list"][1]["to_generate"] = 0; });
  refused([](json& b) { b["list"][2]["prompt"] = json::array(); });
  refused([](json& b) { b["list"][2]["parent"] = 0; });
  refused([](json& b) { b["list"].push_back({{"parent", 3}, {"interventions", json::array()}, {"generated", json::array()}}); });
  refused([](json& b) { b.erase("current"); });
  refused([](json& b) { b = 1; });
}

TEST_CASE("session: where the disk is full one line says so, and what was saved before stays") {
  const Begun begun;
  SessionFile session = SessionFile::create(begun.path(), begun.record);
  Run run(begun.model(), begun.record.options);
  go_on(run, session, kPrompt + 5);
  session.save(run);
  const std::string before = read_bytes(begun.path());
  const auto recorded = fs::file_size(begun.recording());
  go_on(run, session, kPrompt + 30);

  std::string error;
  {
    struct rlimit unlimited {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &unlimited) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit full { recorded + 1000, unlimited.rlim_max };
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
    try {
      session.save(run);
    } catch (const Error& thrown) {
      error = thrown.what();
    }
    ::setrlimit(RLIMIT_FSIZE, &unlimited);
    std::signal(SIGXFSZ, handler);
  }
  CHECK(contains(error, "run.scope.recording: cannot be written: File too large"));
  CHECK(error.find('\n') == error.npos);
  CHECK(read_bytes(begun.path()) == before);
  {
    // As a program that starts anew finds it.
    TemporaryFolder copy;
    fs::copy(begun.path(), copy / "run.scope");
    fs::copy(begun.recording(), copy / "run.scope.recording");
    SessionFile opened = SessionFile::open(copy / "run.scope");
    CHECK(opened.restore(begun.model())->tokens() == kPrompt + 5);
  }
  // With room again the same run is saved.
  session.save(run);
  { const SessionFile closed = std::move(session); }
  SessionFile opened = SessionFile::open(begun.path());
  const std::unique_ptr<Run> restored = opened.restore(begun.model());
  CHECK(restored->tokens() == kPrompt + 30);
  check_same(*restored, run);
}

TEST_CASE("session: a checkpoint that is missing, or is not the one it was, is told of in a line") {
  const Begun begun;
  SessionFile::create(begun.path(), begun.record);
  const auto open = [](SessionFile& session) { session.open_checkpoint(); };
  CHECK(session_error(begun.path(), open) == "");
  fs::remove(begun.folder / "model.h5");
  const std::string missing = session_error(begun.path(), open);
  CHECK(contains(missing, "model.h5', is missing"));
  Editable changed(*begun.checkpoint);
  changed.floats("lm_head.weight")[0] += 1;
  write_checkpoint(*changed.checkpoint(), begun.folder / "model.h5");
  CHECK(contains(session_error(begun.path(), open), "model.h5', has changed since"));
}

TEST_CASE("session: a recording that is a link to another file is not written through") {
  const Begun begun;
  const fs::path victim = begun.path().parent_path() / "victim.txt";
  std::ofstream(victim) << "mine";
  fs::create_symlink(victim, begun.recording());
  CHECK_THROWS_AS(SessionFile::create(begun.path(), begun.record), Error);
  CHECK(read_bytes(victim) == "mine");
  fs::remove(victim);
  CHECK_THROWS_AS(SessionFile::create(begun.path(), begun.record), Error);
  CHECK(!fs::exists(victim));
}

TEST_CASE("session: a prompt that JSON cannot hold is refused before anything is written") {
  Begun begun;
  begun.record.prompt.text = "\xff";
  CHECK_THROWS_AS(SessionFile::create(begun.path(), begun.record), Error);
  CHECK(!fs::exists(begun.path()));
}

}  // namespace statescope::test::session_file_test
