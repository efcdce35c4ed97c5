#include "views/spectrum.h"
#include "views/sheets.h"

#include <algorithm>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::spectrum_test {
namespace {

Snapshot snapshot_of() { return Sample({.tokens = 3, .partitions = 1, .heads = 2, .rows = 2, .columns = 3}).at(2); }

Findings answered() {
  Findings findings;
  findings.answer(SpectraQuestion{0, 2}, Spectra{.heads = 2,
                                                 .count = 3,
                                                 .partitions = 2,
                                                 .sigma = {40, 3, 0, 5, 5, 5},
                                                 .entropy = {0.25f, 1},
                                                 .rank = {1.5f, 3},
                                                 .rank_of_squares = {1.25f, 3},
                                                 .partition_entropy = {0.1f, 0.2f, 0.3f, 0.4f},
                                                 .partition_rank = {1, 1.5f, 2, 1.25f}});
  findings.answer(RankSeriesQuestion{0}, RankSeries{.heads = 2,
                                                    .token = {0, 1, 2},
                                                    .entropy = {0, 0, 0.1f, 0.5f, 0.25f, 1},
                                                    .rank = {1, 1, 1.2f, 2, 1.5f, 3},
                                                    .norm = {5, 6, 7, 8, 9, 12}});
  return findings;
}

SpectrumData built(SpectrumMode mode, const Cursor& cursor = {.token = 2, .head = 1}) {
  return build_spectrum(snapshot_of(), cursor, answered(), mode);
}

}  // namespace

TEST_CASE("spectrum: one question, of the layer at the cursor or of its run") {
  const auto view = make_spectrum();
  CHECK(view->questions(snapshot_of(), {.token = 2}) == std::vector<Question>{SpectraQuestion{0, 2}});
  CHECK(view->questions(snapshot_of(), {.token = 2, .progress = 0}) == std::vector<Question>{SpectraQuestion{0, 1}});
  view->set_mode(3);
  CHECK(view->questions(snapshot_of(), {.token = 2}) == std::vector<Question>{RankSeriesQuestion{0}});
  CHECK(view->questions(Sample({.tokens = 3}).attention_at(1), {}).empty());
}

TEST_CASE("spectrum: singular values on powers of ten, what is nearly 0 at their foot") {
  const SpectrumData data = built(SpectrumMode::values);
  CHECK(data.sigma_axis.logarithmic);
  CHECK(data.sigma_axis.low == Approx(1));
  CHECK(data.sigma_axis.high == Approx(100));
  CHECK(data.below == 1);
  CHECK(data.spectra[0].sigma == std::vector<float>{40, 3, 0});
  CHECK(data.title == "Head 1 uses 3.0 of 3 directions, head 0 only 1.5 after token 2 “␣was” · layer 0");
}

TEST_CASE("spectrum: heads may stand in the order of their rank") {
  CHECK(built(SpectrumMode::values).spectra[0].head == 0);
  CHECK(built(SpectrumMode::by_rank).spectra[0].head == 1);
}

TEST_CASE("spectrum: a state of zeros has an axis too") {
  Findings zeros;
  zeros.answer(SpectraQuestion{0, 2}, Spectra{.heads = 2,
                                              .count = 3,
                                              .partitions = 2,
                                              .sigma = std::vector<float>(6),
                                              .entropy = {0, 0},
                                              .rank = {0, 0},
                                              .rank_of_squares = {0, 0},
                                              .partition_entropy = {0, 0, 0, 0},
                                              .partition_rank = {0, 0, 0, 0}});
  const SpectrumData data = build_spectrum(snapshot_of(), {.token = 2}, zeros, SpectrumMode::values);
  CHECK(data.below == 6);
  CHECK(data.sigma_axis.high > data.sigma_axis.low);
  CHECK(data.sigma_axis.low > 0);
}

TEST_CASE("spectrum: rank, entropy and norm along the run, head by head") {
  const SpectrumData rank = built(SpectrumMode::rank_series);
  CHECK(rank.series[0] == std::vector<float>{1, 1.2f, 1.5f});
  CHECK(rank.series[1] == std::vector<float>{1, 2, 3});
  CHECK(rank.title == "Effective rank of head 1 is 3 after token 2 · layer 0");
  CHECK(built(SpectrumMode::entropy_series).series_axis.high == 1);
  CHECK(built(SpectrumMode::norm_series).series_axis.high == 20);
  CHECK(built(SpectrumMode::norm_series, {.token = 2, .head = 99}).message.headline == "The memory of layer 0 has no head 99");
}

TEST_CASE("spectrum: tooltips say what and how, hits choose heads, partitions and tokens") {
  const auto view = make_spectrum();
  view->build(snapshot_of(), {.token = 2, .head = 1}, answered());
  CHECK(
      view->tooltip({SpectrumSheets::heads, Hit::all, 0}).starts_with("singular value 0\nσ: head 0 = 40, head 1 = 5   singular values of"));
  CHECK(view->tooltip({SpectrumSheets::heads, Hit::all, 3}).empty());
  CHECK(view->tooltip({SpectrumSheets::heads, 0}).find("effective rank = 1.5   exp(−Σ p log p)") != std::string::npos);
  CHECK(view->tooltip({SpectrumSheets::heads, 0}).ends_with("within 0.0001 of the value"));
  CHECK(view->on_hit({SpectrumSheets::heads, 1}).head == 1);
  CHECK(view->tooltip({SpectrumSheets::heads, 2}).empty());
  CHECK(view->table().rows[0] == std::vector<std::string>{"0", "40", "3", "0", "0.25", "1.5", "1.25"});
  view->set_mode(2);
  view->build(snapshot_of(), {.token = 2, .head = 1}, answered());
  CHECK(view->tooltip({SpectrumSheets::partitions, 1, 1}).starts_with("head 1, partition 1\neffective rank = 1.25"));
  CHECK(view->on_hit({SpectrumSheets::partitions, 1, 1}).head == 1);
  CHECK(view->on_hit({SpectrumSheets::partitions, 1, 1}).slot == 1);
  CHECK_FALSE(view->on_hit({SpectrumSheets::partitions, 2, 0}).head);
  CHECK(view->sentence() == "Head 1, shared uses 2.0 of 2 directions, head 0, shared only 1.0 after token 2 “␣was” · layer 0.");
  view->set_mode(4);
  view->build(snapshot_of(), {.token = 2, .head = 0}, answered());
  CHECK(view->on_hit({SpectrumSheets::series, Hit::here, 1}).token == 1);
  CHECK(view->tooltip({SpectrumSheets::series, Hit::here, 1}).starts_with("head 0, token 1 “␣grass”\nsingular value entropy = 0.1"));
  CHECK(view->table().rows[2] == std::vector<std::string>{"2", "␣was", "0.25", "1"});
}

TEST_CASE("spectrum: what is missing is said") {
  CHECK(build_spectrum({}, {}, {}, SpectrumMode::values).message.headline == "No token has been read yet");
  Findings under_way;
  under_way.set(RankSeriesQuestion{0}, {nullptr, "", 0.5});
  CHECK(build_spectrum(snapshot_of(), {}, under_way, SpectrumMode::rank_series).message.detail == "50 % done.");
  CHECK(build_spectrum(snapshot_of(), {}, under_way, SpectrumMode::values).message.headline.starts_with("The spectrum of layer 0"));
}

TEST_CASE("spectrum: more heads than lines are said to be more") {
  const Sample sample({.tokens = 3, .partitions = 0, .heads = 40, .rows = 4, .columns = 4});
  const auto view = make_spectrum();
  view->build(sample.at(2), {.token = 2, .head = 39}, sample_findings(view->questions(sample.at(2), {.token = 2}), sample.at(2)));
  TextCanvas canvas({900, 300});
  view->draw(canvas, {0, 0, 900, 300}, {light_theme(), 1});
  const auto drawn = [&](std::string_view words) {
    return std::ranges::any_of(canvas.texts(), [&](const auto& placed) { return placed.text == words; });
  };
  CHECK(drawn("10 of 40 shown"));
  CHECK(drawn("head 39"));  // the chosen one always
}

}  // namespace statescope::spectrum_test
