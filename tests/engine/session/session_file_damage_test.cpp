// Session files: nothing that befalls the program, the disk or the file takes more than the last moments, and what is wrong is told in a
// line.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <thread>

#include "tests/engine/session/session_files.h"

namespace statescope::test::session_files {
namespace {

/// Writes the session of a run that has read the prompt and two tokens.
void save_two_tokens(const Begun& begun) {
  SessionFile session = SessionFile::create(begun.path(), begun.record);
  Run run(begun.model(), begun.record.options);
  go_on(run, session, kPrompt + 2);
  session.save(run);
}

}  // namespace

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

TEST_CASE("session: a checkpoint that was moved is found by its name and content beside the session or where it is told to look") {
  const Begun begun;
  SessionFile::create(begun.path(), begun.record);
  const fs::path elsewhere = begun.folder / "elsewhere", there = elsewhere / "model.h5";
  fs::create_directory(elsewhere);
  fs::rename(begun.folder / "model.h5", there);
  const std::vector<fs::path> places = {begun.folder / "nowhere", elsewhere};
  SessionFile session = SessionFile::open(begun.path());
  CHECK_THROWS_WITH(session.open_checkpoint(), Catch::Matchers::ContainsSubstring("put it beside the session"));
  CHECK(content_digest(*session.open_checkpoint(places)) == begun.record.checkpoint_digest);
  CHECK(session.record().checkpoint == there);
  // Beside the session, wherever that has been sent to.
  const fs::path sent = begun.folder / "sent";
  fs::create_directory(sent);
  for (const fs::path& file : {begun.path(), begun.recording(), there}) fs::copy(file, sent / file.filename());
  SessionFile colleague = SessionFile::open(sent / "run.scope");
  CHECK(content_digest(*colleague.open_checkpoint()) == begun.record.checkpoint_digest);
  CHECK(colleague.record().checkpoint == sent / "model.h5");
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

}  // namespace statescope::test::session_files
