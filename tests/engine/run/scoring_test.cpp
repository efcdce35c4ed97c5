#include "engine/run/scoring.h"

#include <atomic>
#include <thread>

#include "engine/error.h"
#include "engine/run/sampling.h"
#include "tests/catch.h"
#include "tests/engine/model/failing_device.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::scoring_test {
namespace {

/// A sequence whose every token but the first is to be predicted.
ScoredSequence all_of(std::vector<std::int32_t> ids) {
  ScoredSequence sequence{.ids = std::move(ids), .prompt_length = 0, .targets = {}};
  sequence.prompt_length = std::ssize(sequence.ids);
  for (std::size_t i = 1; i < sequence.ids.size(); ++i) sequence.targets.push_back({static_cast<std::int64_t>(i) - 1, sequence.ids[i]});
  return sequence;
}

ScoredSequence numbered(std::int64_t i) { return all_of(some_ids(40 + i % 7, 97, static_cast<std::uint32_t>(i))); }

bool same(const std::vector<std::vector<TargetScore>>& a, const std::vector<std::vector<TargetScore>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const TargetScore& p, const TargetScore& q) { return p.right == q.right && p.nll == q.nll; });
  });
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("scores are those of the whole sequence's logits") {
  const std::shared_ptr<Model> model = Editable(small_config("gla")).model();
  const std::vector<std::int32_t> ids = some_ids(1100);  // three spans
  const auto V = static_cast<std::size_t>(model->vocab());
  ScoredSequence sequence{.ids = ids, .prompt_length = 1100, .targets = {}};
  for (std::int64_t position : {0, 1, 511, 512, 513, 700, 1023, 1024, 1099}) sequence.targets.push_back({position, 5});
  const std::vector<float> logits = logits_of(*model, ids);
  const auto row = [&](std::int64_t position) { return std::span(logits).subspan(static_cast<std::size_t>(position) * V, V); };
  sequence.targets[3].id = most_probable_id(row(512));

  const std::vector<TargetScore> scores = Scorer(model).score(sequence);
  REQUIRE(scores.size() == sequence.targets.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto [position, id] = sequence.targets[i];
    INFO("position " << position);
    CHECK(scores[i].right == (most_probable_id(row(position)) == id));
    CHECK_THAT(std::exp(-scores[i].nll), Catch::Matchers::WithinRel(probability_of(row(position), id), 1e-3F));
  }
  CHECK(scores[3].right);
}

TEST_CASE("nothing behind the last target is read, and nothing at all without targets") {
  Scorer scorer(Editable(small_config("gla")).model());
  ScoredSequence sequence{.ids = {3, 4, 9999}, .prompt_length = 3, .targets = {{1, 5}}};
  CHECK(scorer.score(sequence).size() == 1);
  sequence.targets = {{2, 5}};
  CHECK(error_of([&] { scorer.score(sequence); }).find("9999") != std::string::npos);
  sequence.targets = {{1, 97}};
  CHECK(error_of([&] { scorer.score(sequence); }).find("97") != std::string::npos);
  sequence.targets.clear();
  CHECK(scorer.score(sequence).empty());
}

TEST_CASE("a pool gives the same scores with any number of threads") {
  const auto checkpoint = random_checkpoint(Config(small_config("gated_deltanet", {{"head_dim", 16}})), 1);
  const auto alone = ScorerPool(checkpoint, {.threads = 1}).score(23, numbered);
  CHECK(alone.size() == 23);
  CHECK(alone[3].size() == numbered(3).targets.size());
  for (int threads : {2, 5}) CHECK(same(ScorerPool(checkpoint, {.threads = threads}).score(23, numbered), alone));
  ScorerPool pool(checkpoint, {.threads = 3});
  CHECK(pool.score(0, numbered).empty());
  CHECK(same(pool.score(23, numbered), alone));  // nothing stays of an earlier call
}

TEST_CASE("a pool counts tokens, can be cancelled, and hands on the first failure") {
  ScorerPool pool(random_checkpoint(Config(small_config("gla")), 1), {.threads = 3});
  std::int64_t counted = 0, expected = 0;
  for (std::int64_t i = 0; i < 9; ++i) expected += numbered(i).targets.back().position + 1;
  pool.score(9, numbered, [&](std::int64_t tokens) {
    counted = tokens;
    return true;
  });
  CHECK(counted == expected);

  std::atomic<std::int64_t> made = 0;
  const auto slow = [&](std::int64_t i) {
    ++made;
    return numbered(i);
  };
  CHECK(error_of([&] { pool.score(1'000'000, slow, [](std::int64_t) { return false; }); }) == "cancelled");
  CHECK(made < 1'000'000);

  const auto failing = [](std::int64_t i) {
    if (i >= 6) throw Error("number " + std::to_string(i));
    return numbered(i);
  };
  CHECK(error_of([&] { pool.score(20, failing); }) == "number 6");
}

TEST_CASE("a model beside another holds no weights of its own and reads the same at the same time") {
  for (const char* family : {"gla", "gated_deltanet", "transformer"}) {
    INFO(family);
    const std::shared_ptr<Model> model = Editable(small_config(family)).model();
    int taken = 0;
    const auto beside = model->beside(std::make_shared<FailingDevice>([&](std::string_view operation) {
      if (operation == "adopt" || operation == "allocate") ++taken;
    }));
    CHECK(taken == 0);
    CHECK(&beside->checkpoint() == &model->checkpoint());
    const std::vector<ScoredSequence> sequences = {numbered(1), numbered(2), numbered(3)};
    const auto scored = [&](const std::shared_ptr<Model>& which) {
      std::vector<std::vector<TargetScore>> scores;
      Scorer scorer(which);
      for (const ScoredSequence& sequence : sequences) scores.push_back(scorer.score(sequence));
      return scores;
    };
    const std::vector<std::vector<TargetScore>> alone = scored(model);
    std::vector<std::vector<TargetScore>> together;
    {
      const std::jthread other([&] { together = scored(beside); });
      CHECK(same(scored(model), alone));
    }
    CHECK(same(together, alone));
  }
}

TEST_CASE("texts that find no room for their states wait for others; one that needs more than there is is refused") {
  const Editable softmax(small_config("transformer"));
  const std::size_t of_one = bytes_of_states(*softmax.model(), 46);
  CHECK(of_one > bytes_of_states(*softmax.model(), 45));
  CHECK(bytes_of_states(*Editable(small_config("gla")).model(), 46) == bytes_of_states(*Editable(small_config("gla")).model(), 45));
  ScorerPool free(softmax.checkpoint(), {.threads = 3}), narrow(softmax.checkpoint(), {.threads = 3}, of_one);
  CHECK(same(free.score(20, numbered), narrow.score(20, numbered)));
  ScorerPool too_narrow(softmax.checkpoint(), {.threads = 3}, of_one - 1);
  CHECK(error_of([&] { too_narrow.score(20, numbered); }).starts_with("states and caches of a text of 46 tokens take "));

  ReadingRoom room(100);
  std::atomic<int> inside = 0, most = 0;
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 8; ++i) {
      readers.emplace_back([&] {
        const ReadingRoom::Place place = room.take(40, 1);
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --inside;
      });
    }
  }
  CHECK(most <= 2);
}

}  // namespace statescope::test::scoring_test
