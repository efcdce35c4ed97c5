// What the tests of session files share: a session that has begun, reading on in it, what a file that is opened is refused for.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "engine/checkpoint/digest.h"
#include "engine/session/session_file.h"
#include "engine/session/session_record.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::session_files {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

inline constexpr std::int64_t kPrompt = 70, kAtOnce = 32;

inline json model_config(const std::string& name) {
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
inline void go_on(Run& run, SessionFile& session, std::int64_t tokens) {
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
inline void check_same(Run& run, Run& whole) {
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

inline std::string session_error(const fs::path& path, const std::function<void(SessionFile&)>& use = {}) {
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

inline std::string restore_error(const Begun& begun) {
  return session_error(begun.path(), [&](SessionFile& session) { session.restore(begun.model()); });
}

inline bool contains(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != text.npos;
}

}  // namespace statescope::test::session_files
