// Questions about a run, answered on a thread of their own while the run is used by another.
#include "engine/answers/analyst.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/answers/answers.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::analyst_test {
namespace {

/// Hears what an analyst tells, on whatever thread.
class Heard {
 public:
  Analyst::Tell tell() {
    return [this](const Question& question, Finding finding) {
      const std::lock_guard lock(mutex_);
      if (finding.answer || !finding.refused.empty()) findings_.emplace_back(question, std::move(finding));
      changed_.notify_all();
    };
  }
  /// Waits until so many have ended; false after a long time.
  bool wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return findings_.size() >= count; });
  }
  std::vector<std::pair<Question, Finding>> findings() {
    const std::lock_guard lock(mutex_);
    return findings_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<Question, Finding>> findings_;
};

}  // namespace

TEST_CASE("analyst: answers are those of the run, in the order of asking; what cannot be is refused in a line") {
  SmallEvidence small(sse_config("gla"), 41);
  Analyst analyst(small.mutex);
  analyst.set_reading(small.reading);
  Heard heard;
  const LayerSeriesQuestion series{.layer = 0, .from = 0, .to = 41};
  const LossSeriesQuestion loss{.from = 0, .to = 41};
  analyst.ask(1, small.reading->info(), {series, HistoryQuestion{.row = 999}, loss}, heard.tell());
  REQUIRE(heard.wait(3));
  const auto found = heard.findings();
  CHECK(found[0].first == Question(series));
  CHECK(found[1].second.refused == "there is no row 999 (rows are 0 to 15)");
  CHECK(found[2].first == Question(loss));
  const auto& told = *static_cast<const LayerSeries*>(found[0].second.answer.get());
  CHECK(told.state_norm == answer(series, small.evidence).state_norm);

  // Known by now: the very same answer.
  Heard again;
  analyst.ask(2, small.reading->info(), {series}, again.tell());
  REQUIRE(again.wait(1));
  CHECK(again.findings()[0].second.answer == found[0].second.answer);
}

TEST_CASE("analyst: of the answers those last asked for are kept, as many as its memory holds") {
  SmallEvidence small(sse_config("gla"), 41);
  const LossSeriesQuestion first{.from = 0, .to = 41}, second{.from = 0, .to = 40}, third{.from = 0, .to = 39};
  const std::size_t one = bytes_of(first, {std::make_shared<const LossSeries>(answer(first, small.evidence)), {}, 1});
  CHECK(one >= 41 * 2 * sizeof(float));
  Analyst analyst(small.mutex, 2 * one);
  analyst.set_reading(small.reading);
  Heard heard;
  auto ask = [&, asked = std::size_t{0}](const Question& question) mutable {
    analyst.ask(1, small.reading->info(), {question}, heard.tell());
    REQUIRE(heard.wait(++asked));
    return heard.findings().back().second.answer;
  };
  const auto a = ask(first), b = ask(second);
  CHECK(ask(first) == a);
  ask(third);
  CHECK(ask(first) == a);
  CHECK(ask(second) != b);
}

TEST_CASE("analyst: who looks ahead waits for all others, and what was found for later is there when it is asked") {
  SmallEvidence small(sse_config("gla"), 41);
  Analyst analyst(small.mutex);
  analyst.set_reading(small.reading);
  Heard ahead, heard;
  std::vector<Question> later, now;
  for (std::int64_t token = 0; token < 12; ++token) {
    later.emplace_back(StateQuestion{.layer = 0, .token = token});
    now.emplace_back(SpectraQuestion{.layer = 1, .token = token});
  }
  std::atomic<std::size_t> found_early = 0;
  {
    const std::lock_guard held(small.mutex);  // nothing can be worked out yet
    analyst.ask(-3, small.reading->info(), later, ahead.tell());
    analyst.ask(7, small.reading->info(), now, [&, tell = heard.tell()](const Question& question, Finding finding) {
      found_early = ahead.findings().size();
      tell(question, std::move(finding));
    });
  }
  REQUIRE(heard.wait(now.size()));
  REQUIRE(ahead.wait(later.size()));
  CHECK(found_early <= 1);  // at most the one that was under way when the others came
  Heard asked;
  analyst.ask(7, small.reading->info(), later, asked.tell());
  REQUIRE(asked.wait(later.size()));
  for (std::size_t i = 0; i < later.size(); ++i) CHECK(asked.findings()[i].second.answer == ahead.findings()[i].second.answer);
}

TEST_CASE("analyst: looking ahead takes the room that is left and no other") {
  SmallEvidence small(sse_config("gla"), 41);
  const LossSeriesQuestion asked_for{.from = 0, .to = 41};
  const std::size_t one = bytes_of(asked_for, {std::make_shared<const LossSeries>(answer(asked_for, small.evidence)), {}, 1});
  Analyst analyst(small.mutex, 3 * one);
  analyst.set_reading(small.reading);
  Heard heard, ahead, again;
  analyst.ask(1, small.reading->info(), {asked_for}, heard.tell());
  REQUIRE(heard.wait(1));
  std::vector<Question> later;
  for (std::int64_t to = 40; to > 30; --to) later.emplace_back(LossSeriesQuestion{.from = 0, .to = to});
  analyst.ask(-1, small.reading->info(), later, ahead.tell());
  REQUIRE(ahead.wait(2));
  analyst.ask(1, small.reading->info(), {asked_for}, again.tell());
  REQUIRE(again.wait(1));
  CHECK(again.findings()[0].second.answer == heard.findings()[0].second.answer);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(ahead.findings().size() == 2);
}

TEST_CASE("analyst: what an asker asks replaces what it asked before, and another run's questions are dropped") {
  SmallEvidence small(sse_config("gla"), 41);
  Analyst analyst(small.mutex);
  analyst.set_reading(small.reading);
  Heard heard;
  {
    const std::lock_guard held(small.mutex);  // nothing can be worked out yet
    for (std::int64_t token = 0; token < 20; ++token)
      analyst.ask(1, small.reading->info(), {SpectraQuestion{.layer = 0, .token = token}}, heard.tell());
  }
  REQUIRE(heard.wait(1));
  const auto is_last = [](const auto& found) { return found.first == Question(SpectraQuestion{.layer = 0, .token = 19}); };
  for (int i = 0; i < 600 && !std::ranges::any_of(heard.findings(), is_last); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(std::ranges::any_of(heard.findings(), is_last));
  CHECK(heard.findings().size() <= 2);  // the one under way, at most, and the last

  Heard stale, now;
  analyst.ask(2, std::make_shared<const RunInfo>(*small.reading->info()), {LossSeriesQuestion{.from = 0, .to = 3}}, stale.tell());
  analyst.ask(3, small.reading->info(), {LossSeriesQuestion{.from = 0, .to = 3}}, now.tell());
  REQUIRE(now.wait(1));
  CHECK(stale.findings().empty());
}

TEST_CASE("analyst: a run that goes on is used in turns, and an end in the middle of work waits for nothing") {
  SmallEvidence small(sse_config("gla"), 41);
  Heard heard;
  {
    Analyst analyst(small.mutex);
    analyst.set_reading(small.reading);
    for (int i = 0; i < 12; ++i) {
      {
        const std::lock_guard turn(small.mutex);
        small.reading->generate_one();
      }
      const std::shared_ptr<const RunInfo> run = small.reading->info();
      analyst.ask(1, run, {LossSeriesQuestion{.from = 0, .to = std::ssize(run->tokens)}, RankSeriesQuestion{.layer = 0}}, heard.tell());
    }
    REQUIRE(heard.wait(2));
    const auto last = heard.findings().back();
    CHECK(last.second.refused.empty());
    for (int asker = 2; asker < 40; ++asker)
      analyst.ask(asker, small.reading->info(), {NeedleQuestion{.begin = 3, .end = 6, .question = 40}}, heard.tell());
  }
  const std::size_t told = heard.findings().size();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(heard.findings().size() == told);
}

}  // namespace statescope::test::analyst_test
