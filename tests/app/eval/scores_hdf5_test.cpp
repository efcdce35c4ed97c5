// Scores as an HDF5 file, read back with h5py.
#include "app/eval/scores_hdf5.h"

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "engine/error.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace statescope::scores_hdf5_test {
namespace {

using test::TemporaryFolder;

CellScore needles(const std::string& checkpoint, std::int64_t length, double exact, std::vector<double> tokens) {
  CellScore score{.checkpoint = checkpoint, .cell = {}, .impossible = {}, .task = {}, .text = {}};
  score.cell.task.name = "niah";
  score.cell.task.length = length;
  score.task = TaskScore{.questions = 40, .exact = {exact, exact - 0.1, exact + 0.1}, .tokens = std::move(tokens), .nll = 0.5};
  return score;
}

std::vector<CellScore> scores() {
  CellScore text{.checkpoint = "b.h5", .cell = {}, .impossible = {}, .task = {}, .text = {}};
  text.cell.task.name = "text";
  text.text = TextScore{.windows = 3, .bits_per_byte = 2.25, .standard_error = 0.5};
  CellScore impossible = needles("a.h5", 4, 0, {});
  impossible.task.reset();
  impossible.impossible = "too short";
  return {needles("a.h5", 128, 0.25, {0.5, 0.75}), impossible, needles("a.h5", 512, 0.125, {0.5, 0.75, 1}), needles("b.h5", 128, 1, {1}),
          text};
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("scores as HDF5: groups of columns, NaN where a cell has none") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "scores.h5";
  write_scores_hdf5(scores(), file, false);
  write_scores_hdf5(scores(), folder / "again.h5", false);
  CHECK(read(file) == read(folder / "again.h5"));
  CHECK_THROWS_AS(write_scores_hdf5(scores(), file, false), Error);
  if (std::system("python3 -c 'import h5py' 2>/dev/null") != 0) {
    WARN("skipped: no Python with h5py here");
    return;
  }
  std::ofstream(folder / "check.py") << R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1])
assert f.attrs["format"] == "statescope-scores"
assert sorted(f) == ["0", "1", "2"], sorted(f)
a, b, text = f["0"], f["1"], f["2"]
same = lambda x, y: np.array_equal(x[:], np.array(y, float), equal_nan=True)
nan = float("nan")
assert same(a["length"], [128, 4, 512]) and same(a["exact"], [0.25, nan, 0.125]) and same(a["questions"], [40, nan, 40])
assert same(a["tokens"], [[0.5, 0.75, nan], [nan] * 3, [0.5, 0.75, 1]]), a["tokens"][:]
assert a["exact"].attrs["checkpoint"] == "a.h5" and a["exact"].attrs["task"] == "niah"
assert b["exact"].attrs["checkpoint"] == "b.h5" and same(b["exact"], [1])
assert text["bits_per_byte"].attrs["task"] == "text" and same(text["bits_per_byte"], [2.25]) and text["parts"].shape == (1, 8)
)";
  CHECK(std::system(("python3 -B " + (folder / "check.py").string() + " " + file.string()).c_str()) == 0);
}

}  // namespace statescope::scores_hdf5_test
