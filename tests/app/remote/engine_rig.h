// An engine and its clients in one process, and what is asked of a source as a test asks it: until the answer has come.
#pragma once

#include <QTest>
#include <optional>
#include <string>
#include <vector>

#include "app/remote/engine_server.h"
#include "app/remote/remote_source.h"
#include "engine/remote/wire.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope {

inline constexpr int kLongMs = 60'000;

/// What a recording may take: the same each time.
inline std::unique_ptr<RunSource> session_here() { return make_session_source(nullptr, {}, 64 << 20); }

inline ServeSetup serve_setup(const std::filesystem::path& root) {
  test_application();
  return {.address = "127.0.0.1:0", .root = root, .make_source = session_here};
}

inline EnginePlace place_of(const EngineServer& server) { return engine_place("127.0.0.1:" + std::to_string(server.port()), "", ""); }

/// A source, and what came of it.
class Asked {
 public:
  explicit Asked(std::unique_ptr<RunSource> of) : source(std::move(of)) {}

  std::unique_ptr<RunSource> source;
  std::vector<std::shared_ptr<const RunInfo>> runs;
  std::shared_ptr<const BranchTree> branches;
  std::string failed, remarked;
  bool ended = false;

  Session::OpenCallbacks callbacks() {
    ended = false;
    failed.clear();
    return {.progress = [](double, const std::string&) {},
            .run = [this](std::shared_ptr<const RunInfo> run) { runs.push_back(std::move(run)); },
            .failed = [this](const Failure& failure) { failed = failure.message, ended = true; },
            .done = [this] { ended = true; },
            .device_failed = [this](const std::string& words) { remarked = words; },
            .branches = [this](std::shared_ptr<const BranchTree> tree) { branches = std::move(tree); }};
  }
  bool ends() {
    return QTest::qWaitFor([this] { return ended; }, kLongMs);
  }
  const std::shared_ptr<const RunInfo>& run() const { return runs.back(); }

  std::shared_ptr<const Snapshot> shown(std::int64_t layer, std::int64_t head, std::int64_t token) {
    return shown_by(*source, layer, head, token);
  }
  static std::shared_ptr<const Snapshot> shown_by(RunSource& source, std::int64_t layer, std::int64_t head, std::int64_t token) {
    const auto answer = std::make_shared<std::shared_ptr<const Snapshot>>();
    source.show(layer, head, token, [answer](std::shared_ptr<const Snapshot> snapshot) { *answer = std::move(snapshot); });
    if (!QTest::qWaitFor([&] { return *answer != nullptr; }, kLongMs)) return nullptr;
    return *answer;
  }
  /// The last finding of each.
  std::vector<std::pair<Question, Finding>> found(const std::vector<Question>& questions, int ms = kLongMs) {
    const auto answers = std::make_shared<std::vector<std::pair<Question, Finding>>>();
    const auto whole = std::make_shared<std::size_t>(0);
    source->ask(1, run(), questions, [answers, whole](const Question& question, const Finding& finding) {
      if (finding.progress < 1 && finding.refused.empty()) return;
      answers->emplace_back(question, finding);
      ++*whole;
    });
    const bool all = QTest::qWaitFor([&] { return *whole >= questions.size(); }, ms);
    return all ? *answers : std::vector<std::pair<Question, Finding>>();
  }
};

/// What differs between two snapshots with all that belongs to them; empty: nothing.
inline std::string difference(const Snapshot& a, const Snapshot& b) {
  std::string words;
  if (remote::pack(a) != remote::pack(b)) words += "the snapshot ";
  if ((a.routing == nullptr) != (b.routing == nullptr) || (a.routing && remote::pack(*a.routing) != remote::pack(*b.routing)))
    words += "its routing ";
  if (remote::pack(*a.run) != remote::pack(*b.run)) words += "its run";
  return words;
}

}  // namespace statescope
