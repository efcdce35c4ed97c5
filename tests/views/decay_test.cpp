#include "views/decay.h"
#include "views/sheets.h"

#include <cmath>
#include <limits>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::decay_test {
namespace {

/// Two rows at four tokens of four: the first keeps half each time, the second everything.
Findings two_rows() {
  Decay decay{.axis = Decay::Axis::rows, .channels = 2, .token = {0, 1, 2, 3}};
  const float half = std::log(0.5f);
  for (int t = 0; t < 4; ++t) {
    decay.log_decay.insert(decay.log_decay.end(), {half, 0.0f});
    decay.log_sum.insert(decay.log_sum.end(), {half * (t + 1.0), 0.0});
  }
  decay.half_life = {1, std::numeric_limits<float>::infinity()};
  decay.width = {1.5f, 1.5f};
  decay.censored = {4, 4};
  decay.measured = 4;
  Findings findings;
  findings.answer(DecayQuestion{0, 0, 0, 0, 4}, decay);
  return findings;
}

Snapshot snapshot_at(std::int64_t token) {
  static const Sample sample({.tokens = 4, .partitions = 0, .heads = 1, .rows = 2, .columns = 2});
  return sample.at(token);
}

}  // namespace

TEST_CASE("decay: what is left of each write after the cursor's token, row by row") {
  const DecayData data = build_decay(snapshot_at(2), {.token = 2, .row = 1}, two_rows(), DecayMode::cumulative);
  REQUIRE_FALSE(data.message);
  CHECK(data.until == 3);
  CHECK(data.chosen == 1);
  REQUIRE(data.left.size() == 6);
  CHECK(data.left[0] == Approx(0.25));
  CHECK(data.left[1] == Approx(0.5));
  CHECK(data.left[2] == 1);
  CHECK(data.left[3] == 1);
  CHECK(data.alpha[0] == Approx(0.5));
  CHECK(tokens_until(data, 0, 0.6f) == 1);
  CHECK(tokens_until(data, 0, 0.3f) == 2);
  CHECK(tokens_until(data, 1, 0.5f) == -1);
}

TEST_CASE("decay: of a selective scan, whose cells decay each by itself, a row's is said to be a mean") {
  const Sample scan({.tokens = 4, .partitions = 0, .heads = 1, .rows = 2, .columns = 2, .memory = "selective scan"});
  CHECK(build_decay(scan.at(2), {.token = 2}, two_rows(), DecayMode::half_life).place == "layer 0, head 0, mean over channels");
  CHECK(build_decay(snapshot_at(2), {.token = 2}, two_rows(), DecayMode::half_life).place == "layer 0, head 0");
}

TEST_CASE("decay: before a row is chosen the one of middling half-life is shown") {
  const Sample sample({.tokens = 4, .partitions = 0});
  Decay decay{.axis = Decay::Axis::rows, .channels = 3, .token = {0}, .log_decay = {0, 0, 0}, .log_sum = {0, 0, 0}};
  decay.half_life = {90, 1, 20};
  decay.width = {0, 0, 0};
  decay.censored = {1, 1, 1};
  Findings findings;
  findings.answer(DecayQuestion{0, 0, 0, 0, 4}, decay);
  CHECK(build_decay(sample.at(0), {}, findings, DecayMode::cumulative).chosen == 2);
  CHECK(build_decay(sample.at(0), {.row = 0}, findings, DecayMode::cumulative).chosen == 0);
  CHECK(build_decay(sample.at(0), {.row = 99}, findings, DecayMode::cumulative).chosen == 2);
}

TEST_CASE("decay: while a token moves the landscape is the one before") {
  const DecayData data = build_decay(snapshot_at(2), {.token = 2, .progress = 0.5f}, two_rows(), DecayMode::cumulative);
  CHECK(data.token == 1);
  CHECK(data.until == 2);
  CHECK(data.left[0] == Approx(0.5));
  CHECK(build_decay(snapshot_at(0), {.progress = 0}, two_rows(), DecayMode::cumulative).until == 0);
}

TEST_CASE("decay: a memory that never forgets says so, and so does one that nothing came to") {
  Findings findings;
  findings.answer(DecayQuestion{0, 0, 0, 0, 4}, Decay{});
  CHECK(build_decay(snapshot_at(1), {.token = 1}, findings, {}).message.headline == "The memory of layer 0 (gla) never forgets by decay");
  const Sample sse({.tokens = 4});
  findings.answer(DecayQuestion{0, 2, 1, 0, 4}, Decay{.axis = Decay::Axis::rows, .channels = 16});
  CHECK(build_decay(sse.at(1), {.token = 1, .head = 1, .slot = 2}, findings, {}).message.headline ==
        "No token from 0 to 3 came to layer 0, partition 2, head 1");
  CHECK(build_decay(sse.attention_at(1), {.token = 1}, {}, {}).message.headline == "Layer 1 (softmax_attention) keeps no matrix state");
  CHECK(build_decay(sse.at(1), {.token = 1}, {}, {}).message.headline ==
        "The decay of layer 0, shared, head 0 has not been worked out yet");
}

TEST_CASE("decay: channels are ranked, censored ones are marked; hits choose rows and tokens") {
  const auto view = make_decay();
  view->set_mode(2);
  view->build(snapshot_at(3), {.token = 3}, two_rows());
  CHECK(view->table().rows[1] == std::vector<std::string>{"row 1", "∞", "1.5", "4 of 4"});
  CHECK(view->sentence() == "Half is gone after 1 to ∞ tokens, median ∞ · layer 0, head 0.");
  TextCanvas canvas({600, 300});
  view->draw(canvas, {0, 0, 600, 300}, {light_theme(), 1});
  const auto last = canvas.hits().at({590, 250});
  REQUIRE(last);
  CHECK(view->on_hit(*last).row == 1);
  CHECK(view->tooltip(*last).find("reach the run's beginning = 4 of 4") != std::string::npos);

  view->set_mode(0);
  view->build(snapshot_at(3), {.token = 3, .row = 0}, two_rows());
  CHECK(view->on_hit({DecaySheets::cells, 1, 1}).row == 1);
  CHECK_FALSE(view->on_hit({DecaySheets::cells, 1, 1}).token);
  CHECK(view->on_hit({DecaySheets::curve, Hit::here, 1}).token == 1);
  CHECK(view->tooltip({DecaySheets::cells, 0, 1}).starts_with("row 0, token 1 “␣grass”\nΔ = 0.25   Δ_{t,s} = "));
  CHECK(view->tooltip({DecaySheets::curve, Hit::here, 1}).starts_with("row 0, token 1 “␣grass”\nα = 0.5   S_t = "));
  CHECK(view->table().rows[0] == std::vector<std::string>{"0", "the", "0.125", "0.5"});
  view->set_mode(1);
  view->build(snapshot_at(3), {.token = 3, .row = 0}, two_rows());
  CHECK(view->on_hit({DecaySheets::cells, 1, 1}).token == 1);
}

TEST_CASE("decay: where heads decay as one, heads are the channels") {
  const Sample sample({.tokens = 4, .partitions = 0});
  Decay decay{.axis = Decay::Axis::heads, .channels = 2, .token = {0, 1}, .log_decay = {0, -1, 0, -1}, .log_sum = {0, -1, 0, -2}};
  decay.half_life = {1, 2};
  decay.width = {3, 4};
  decay.censored = {0, 0};
  Findings findings;
  findings.answer(DecayQuestion{0, 0, 1, 0, 4}, decay);
  const DecayData data = build_decay(sample.at(1), {.token = 1, .head = 1}, findings, DecayMode::cumulative);
  CHECK(data.chosen == 1);
  CHECK(data.place == "layer 0");
  CHECK(data.channel_name(1) == "head 1");
}

}  // namespace statescope::decay_test
