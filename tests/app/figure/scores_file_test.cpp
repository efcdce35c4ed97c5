// Files of scores and times that figures read: what was written comes back, and anything else is refused in a line.
#include "app/eval/scores_file.h"

#include <algorithm>
#include <fstream>

#include "app/bench/sse.h"
#include "app/eval/report.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::scores_file_test {
namespace {

CellScore sample_score() {
  CellScore score{.checkpoint = "a.h5", .cell = {}, .impossible = {}, .task = TaskScore{}, .text = {}};
  score.cell.task.length = 256;
  score.cell.task.needles = 4;
  score.task->questions = 500;
  score.task->exact = {0.5, 0.4, 0.6};
  score.task->tokens = {0.75, 0.5};
  return score;
}

SseTimings sample_timings() {
  return {"a CPU", 4, 128, 1, {{"masking", 1024, 4, 0.02, 0.01, 0.03}, {"varlen", 1024, 4, 0.01, 0.01, 0.01}}};
}

template <class Parse>
void check_every_beginning_is_refused(const std::string& text, Parse parse) {
  for (std::size_t size = 0; size <= text.find_last_of('}'); ++size) {
    INFO(size << " of " << text.size() << " bytes");
    CHECK_THROWS_AS(parse(text.substr(0, size), "the file"), Error);
  }
}

/// In one line that says `why`.
template <class Parse>
void check_refused(Parse parse, const std::string& text, const std::string& why) {
  try {
    parse(text, "the file");
    FAIL("accepted, though " << why);
  } catch (const Error& error) {
    const std::string line = error.what();
    INFO(line);
    CHECK(line.find(why) != std::string::npos);
    CHECK(line.find('\n') == std::string::npos);
  }
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

/// refused(what, with, why): `text` with one thing replaced is.
template <class Parse>
auto damaged(const std::string& text, Parse parse) {
  return [=](const std::string& what, const std::string& with, const std::string& why) {
    check_refused(parse, replaced(text, what, with), why);
  };
}

}  // namespace

TEST_CASE("scores come back as they were written", "[scores]") {
  CellScore none = sample_score();
  none.task.reset();
  none.impossible = "too short";
  const std::vector<CellScore> written{sample_score(), none};
  const std::vector<CellScore> read = parse_scores(eval_json(written), "scores");
  REQUIRE(read.size() == 2);
  CHECK(read[0].checkpoint == "a.h5");
  CHECK(read[0].cell.task.length == 256);
  CHECK(read[0].cell.task.needles == 4);
  CHECK(read[0].task->exact.high == 0.6);
  CHECK(read[1].impossible == "too short");
  CHECK_FALSE(read[1].task);
}

TEST_CASE("the shipped scores can be read", "[scores]") {
  const std::filesystem::path folder = from_source("assets/scores");
  CHECK(load_scores(folder / "niah.json").size() == 216);
  CHECK(load_scores(folder / "mqar.json").size() == 168);
  CHECK(load_scores(folder / "prose.json").size() == 6);
}

TEST_CASE("damaged scores are refused in a line", "[scores]") {
  const std::vector<CellScore> written{sample_score()};
  const std::string text = eval_json(written);
  check_every_beginning_is_refused(text, parse_scores);
  const auto refused = damaged(text, parse_scores);
  refused("statescope-scores", "other", "is not a file of statescope eval");
  refused("\"exact\": 0.5", "\"exact\": 5", "\"exact\" is not a number from 0 to 1");
  refused("\"low\": 0.4", "\"low\": 0.55", "do not ascend");
  refused("\"length\": 256", "\"length\": -1", "cell 1: \"length\"");
  refused("\"checkpoint\": \"a.h5\"", "\"checkpoint\": 3", "\"checkpoint\" is not a text");
  refused("\"needles\"", "\"nails\"", "is no key of a cell");
}

TEST_CASE("times of SSE come back as they were written, and damaged ones are refused in a line", "[sse]") {
  const std::string text = to_json(sample_timings());
  const SseTimings read = parse_sse_timings(text, "times");
  CHECK(read.device == "a CPU");
  REQUIRE(read.timings.size() == 2);
  CHECK(read.timings[0].form == "masking");
  CHECK(read.timings[0].most == 0.03);
  CHECK(to_json(read) == text);
  check_every_beginning_is_refused(text, parse_sse_timings);
  const auto refused = damaged(text, parse_sse_timings);
  refused("masking", "dancing", "there is no form");
  refused("\"seconds\": 0.02", "\"seconds\": -1", "is not a time above 0");
  refused("\"seconds\": 0.02", "\"seconds\": 7", "do not ascend");
  refused("\"partitions\": 4", "\"partitions\": 0.5", "\"partitions\" is not a whole number");
}

TEST_CASE("what bench sse measures: both sweeps, or every pair of what is given", "[sse]") {
  CHECK(sse_places({}, {}, false).size() == 10);
  CHECK(sse_places({64, 128}, {2, 8}, false).size() == 4);
  const std::vector<SsePlace> lengths = sse_places({64, 128}, {}, false);
  REQUIRE(lengths.size() == 2);
  CHECK(lengths[1].length == 128);
  CHECK(lengths[1].partitions == 4);
}

}  // namespace statescope::scores_file_test
