// `statescope eval`: from an example to scores, the files it reads and what it prints.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <thread>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/eval/report.h"
#include "engine/error.h"
#include "engine/run/reading.h"
#include "engine/run/sampling.h"
#include "tests/catch.h"
#include "tests/engine/model/small_models.h"
#include "tests/source.h"

namespace statescope::eval_test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::WithinAbs;

const fs::path kAssets = from_source("assets");

fs::path checkpoint_path(const std::string& name) { return shipped_checkpoint(name); }

struct Opened {
  explicit Opened(const std::string& name, int threads = 1)
      : checkpoint(open_checkpoint(checkpoint_path(name))),
        model(Model::load(checkpoint, make_cpu_backend(1))),
        tokenizer(make_tokenizer(*checkpoint, model->vocab())),
        pool(checkpoint, {.threads = threads}) {}
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  ScorerPool pool;
};

EvalCell niah(std::int64_t length, std::int64_t needles, std::int64_t samples) {
  EvalCell cell;
  cell.task.length = length;
  cell.task.needles = needles;
  cell.samples = samples;
  return cell;
}

/// What the model says after the question, token by token.
std::string generated(const Opened& opened, const std::string& text, const std::string& expected) {
  PromptInput input;
  input.text = text;
  input.expected = expected;
  Reading reading(opened.model, opened.tokenizer, input);
  std::vector<std::int32_t> answer;
  for (std::int64_t i = 0; i < reading.to_generate(); ++i) {
    reading.generate_one();
    answer.push_back(reading.info()->tokens.back().id);
  }
  return opened.tokenizer->decode(answer);
}

bool all_right(std::span<const TargetScore> scores) {
  return std::all_of(scores.begin(), scores.end(), [](const TargetScore& score) { return score.right; });
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    std::string pattern = (fs::temp_directory_path() / "statescope-eval-XXXXXX").string();
    ::close(::mkstemp(pattern.data()));
    path = pattern;
    std::ofstream(path, std::ios::binary) << text;
  }
  ~TemporaryFile() { fs::remove(path); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  fs::path path;
};

struct TemporaryFolder {
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "statescope-eval-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(path), {}); }
  fs::path path;
};

std::string refusal(const std::string& grid) {
  const TemporaryFile file(grid);
  try {
    read_cells(file.path, {});
  } catch (const Error& error) {
    const std::string what = error.what();
    CHECK(what.starts_with(file.path.string() + ": "));
    CHECK(what.find('\n') == what.npos);
    return what.substr(file.path.string().size() + 2);
  }
  return "";
}

/// Knows all bytes but '!'; one token each.
class Letters final : public Tokenizer {
 public:
  Encoding encode(std::string_view text, const EncodeOptions&) const override {
    Encoding encoding;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '!') throw Error("no '!'");
      encoding.ids.push_back(static_cast<unsigned char>(text[i]));
      encoding.begin.push_back(i);
      encoding.end.push_back(i + 1);
    }
    return encoding;
  }
  std::string text_of(std::int32_t id) const override { return {static_cast<char>(id)}; }
  std::string decode(std::span<const std::int32_t>, bool) const override { return ""; }
};

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != text.npos);
  return text.find(part) != text.npos;
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  FAIL("no error was thrown");
  return "";
}

TargetScore right(double nll = 0.5) { return {true, nll}; }
TargetScore wrong(double nll = 1.5) { return {false, nll}; }

}  // namespace

TEST_CASE("an answer in the text is predicted token by token, one that is not after its question") {
  Example example;
  example.text = "ab q1xyz q2uv";
  example.questions = {{.asked = {3, 5}, .answer = "xyz", .given = {5, 8}, .needles = {}},
                       {.asked = {9, 11}, .answer = "uv", .given = {11, 13}, .needles = {}}};
  const ExampleTokens given = tokens_of(example, Letters());
  CHECK(given.answers == std::vector<std::size_t>{3, 2});
  CHECK(given.sequence.prompt_length == 5);
  const std::vector<Target>& targets = given.sequence.targets;
  REQUIRE(targets.size() == 5);
  CHECK((targets[0].position == 4 && targets[0].id == 'x'));
  CHECK((targets[2].position == 6 && targets[2].id == 'z'));
  CHECK((targets[4].position == 11 && targets[4].id == 'v'));

  example.questions = {{.asked = {3, 5}, .answer = "k", .given = {}, .needles = {}}};
  const ExampleTokens noise = tokens_of(example, Letters());
  REQUIRE(noise.sequence.targets.size() == 1);
  CHECK((noise.sequence.targets[0].position == 4 && noise.sequence.targets[0].id == 'k'));
  CHECK(noise.sequence.prompt_length == 13);
  example.questions[0].answer = "kk";
  CHECK_THROWS_WITH(tokens_of(example, Letters()), "the answer \"kk\" is 2 tokens, but only one can be asked for here");
}

TEST_CASE("an answer scores as right exactly if the model generates it") {
  int answered = 0, failed = 0;
  for (const char* name : {"niah-gla", "niah-sse-gla-n4k1", "niah-gated-deltanet", "niah-sla-gdn"}) {
    const Opened opened(name);
    TaskOptions options;
    options.length = 300;
    options.needles = 12;
    const auto task = make_task(options, kAssets);
    Scorer scorer(opened.model);
    for (std::int64_t i = 0; i < 8; ++i) {
      INFO(name << " example " << i);
      const Example example = task->example(i);
      const ExampleQuestion& question = example.questions.at(0);
      const bool generates = generated(opened, example.text.substr(0, question.asked.end), question.answer) == question.answer;
      CHECK(all_right(scorer.score(tokens_of(example, *opened.tokenizer).sequence)) == generates);
      (generates ? answered : failed) += 1;
    }
  }
  CHECK(answered > 0);
  CHECK(failed > 0);
}

TEST_CASE("associative recall is scored where its keys are asked") {
  const Opened opened("mqar-sse-gdn-n4k1");
  EvalCell cell;
  cell.task.name = "mqar";
  cell.task.length = 256;
  cell.task.pairs = 64;
  cell.samples = 4;
  const PreparedCell prepared = prepare(cell, kAssets);
  std::int64_t agreed = 0;
  for (std::int64_t i = 0; i < cell.samples; ++i) {
    const Example example = prepared.task->example(i);
    Run run(opened.model);
    run.read(opened.tokenizer->encode(example.text).ids, 256);
    const ExampleTokens tokens = tokens_of(example, *opened.tokenizer);
    CHECK(tokens.answers == std::vector<std::size_t>(64, 1));
    for (const Target& target : tokens.sequence.targets) agreed += most_probable_id(run.logits(target.position)) == target.id ? 1 : 0;
  }
  ScorerPool pool(opened.checkpoint, {.threads = 2});
  const CellScore score = score_cell(prepared, pool, opened.tokenizer);
  REQUIRE(score.task);
  CHECK(score.task->questions == 256);
  CHECK_THAT(score.task->exact.mean * 256, WithinAbs(static_cast<double>(agreed), 1e-9));
  CHECK(score.task->exact.mean > 0.2);  // by chance: 1 in 256
  CHECK(score.task->exact.low < score.task->exact.mean);
}

TEST_CASE("a cell's score does not depend on the number of threads") {
  const PreparedCell prepared = prepare(niah(256, 4, 20), kAssets);
  Opened one("niah-gla", 1), three("niah-gla", 3);
  const CellScore a = score_cell(prepared, one.pool, one.tokenizer), b = score_cell(prepared, three.pool, three.tokenizer);
  CHECK(eval_json({&a, 1}) == eval_json({&b, 1}));
  CHECK(a.task->questions == 20);
  CHECK(a.task->tokens.size() == 4);
  CHECK(a.task->exact.mean > 0.8);
}

TEST_CASE("a task whose words the model lacks is refused by word and task") {
  EvalCell cell;
  cell.task.name = "mqar";
  cell.samples = 3;
  Opened opened("niah-gla");
  const std::string what = error_of([&] { score_cell(prepare(cell, kAssets), opened.pool, opened.tokenizer); });
  contains(what, "niah-gla.h5: cannot do task mqar: text: word ");
  contains(what, "is not among the ");
  CHECK(what.find("--ids") == what.npos);
}

TEST_CASE("needles that do not fit make a cell impossible, not the evaluation") {
  const PreparedCell prepared = prepare(niah(64, 50, 3), kAssets);
  CHECK(!prepared.impossible.empty());
  Opened opened("niah-gla");
  const CellScore score = score_cell(prepared, opened.pool, opened.tokenizer);
  CHECK(!score.task);
  CHECK(score.impossible == prepared.impossible);
  contains(eval_table({&score, 1}), score.impossible);
}

TEST_CASE("bits per byte: windows of a text file, taken whole") {
  std::string book;
  for (int i = 0; i < 400; ++i) book += "The sea was calm and the night was long. ";
  const TemporaryFile file(book);
  EvalCell cell;
  cell.task.name = "text";
  cell.task.haystack = file.path.string();
  cell.task.length = 100;
  const PreparedCell prepared = prepare(cell, kAssets);
  CHECK(prepared.impossible.empty());
  CHECK(prepared.samples() == static_cast<std::int64_t>(prepared.text.size()) / 100);
  CHECK(prepared.text.size() == book.size() - 1);  // without the last space
  cell.task.length = 1;
  CHECK(!prepare(cell, kAssets).impossible.empty());
  cell.task.length = 1'000'000;
  CHECK(!prepare(cell, kAssets).impossible.empty());

  Opened opened("niah-gla");
  contains(error_of([&] { score_cell(prepared, opened.pool, opened.tokenizer); }),
           "cannot do task text: it takes a model that reads bytes");
}

TEST_CASE("a model of bytes is scored on prose; one that knows nothing needs eight bits for each") {
  test::Editable model(test::small_config("gla", {{"vocab_size", 256}}));
  model.fill("lm_head.weight", 0);
  ScorerPool pool(model.checkpoint(), {.threads = 2});
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*model.checkpoint(), 256);
  EvalCell cell;
  cell.task.name = "text";
  cell.task.haystack = "prose";
  cell.task.length = 64;
  cell.samples = 10;
  const CellScore text = score_cell(prepare(cell, kAssets), pool, tokenizer);
  REQUIRE(text.text);
  CHECK(text.text->windows == 10);
  CHECK_THAT(text.text->bits_per_byte, WithinAbs(8, 1e-6));
  CHECK_THAT(text.text->standard_error, WithinAbs(0, 1e-6));
  for (double part : text.text->parts) CHECK_THAT(part, WithinAbs(8, 1e-6));
  contains(eval_table({&text, 1}), "8.0000");

  EvalCell needles = niah(400, 2, 4);
  needles.task.haystack = "prose";
  needles.task.value = "number";
  const CellScore score = score_cell(prepare(needles, kAssets), pool, tokenizer);
  REQUIRE(score.task);
  CHECK(score.task->tokens == std::vector<double>(7, 0));  // seven digits
  CHECK_THAT(score.task->nll, WithinAbs(std::log(256.0), 1e-6));
}

TEST_CASE("bits per byte: the mean over windows, and over each eighth of them") {
  const double one_bit = std::numbers::ln2;
  std::vector<std::vector<TargetScore>> windows(2, std::vector<TargetScore>(15, right(one_bit)));
  for (TargetScore& score : windows[1]) score.nll = 3 * one_bit;
  windows[0][14].nll = 16 * one_bit;  // the last of 16 bytes
  const TextScore score = summarise_text(windows, 16);
  CHECK(score.windows == 2);
  CHECK_THAT(score.bits_per_byte, WithinAbs(2.5, 1e-12));
  CHECK_THAT(score.standard_error, WithinAbs(0.5, 1e-12));
  CHECK_THAT(score.parts[0], WithinAbs(2, 1e-12));
  CHECK_THAT(score.parts[7], WithinAbs((1 + 16 + 3 + 3) / 4.0, 1e-12));
}

TEST_CASE("summary: exact answers, tokens by place, likelihood") {
  const std::vector<ExampleScores> examples{{{right(), right()}}, {{right(), wrong()}}, {{wrong(), right(), right()}}};
  const TaskScore score = summarise(examples);
  CHECK(score.questions == 3);
  CHECK_THAT(score.exact.mean, WithinAbs(1.0 / 3, 1e-12));
  CHECK(score.exact.low == wilson(1, 3).low);
  REQUIRE(score.tokens.size() == 3);
  CHECK_THAT(score.tokens[0], WithinAbs(2.0 / 3, 1e-12));
  CHECK_THAT(score.tokens[1], WithinAbs(2.0 / 3, 1e-12));
  CHECK(score.tokens[2] == 1);
  CHECK_THAT(score.nll, WithinAbs((5 * 0.5 + 2 * 1.5) / 7, 1e-12));

  const std::vector<ExampleScores> several{{{right()}, {wrong()}}, {{right()}, {right()}}};
  const TaskScore clusters = summarise(several);
  CHECK(clusters.questions == 4);
  CHECK(clusters.exact.mean == 0.75);
  CHECK(clusters.exact.high == 1);
  CHECK(clusters.exact.low == clustered(std::vector<double>{0.5, 1}).low);
}

TEST_CASE("lists make a grid; options of another task are refused") {
  EvalLists lists;
  lists.lengths = {256, 512};
  lists.needles = {4, 8};
  lists.depths = even_depths(3);
  const std::vector<EvalCell> cells = cells_of(lists);
  REQUIRE(cells.size() == 12);
  CHECK(cells[1].task.depth_percent == 50);
  CHECK(cells[11].task.length == 512);
  CHECK(cells[11].task.needles == 8);
  CHECK(wrong_lists(lists).empty());
  lists.base.task.name = "mqar";
  CHECK(wrong_lists(lists) == "--needles is of --task niah, not of mqar");
  CHECK(even_depths(5) == std::vector<int>{0, 25, 50, 75, 100});
  CHECK(even_depths(4) == std::vector<int>{0, 33, 67, 100});
  CHECK(even_depths(1) == std::vector<int>{50});

  EvalLists text;
  text.base.task.name = "text";
  CHECK(cells_of(text)[0].task.length == 1024);
  CHECK(cells_of(text)[0].task.haystack == "prose");
  for (const char* task : {"niah", "mqar", "copy"}) {
    EvalLists usual;
    usual.base.task.name = task;
    CHECK(prepare(cells_of(usual)[0], kAssets).impossible.empty());
  }
}

TEST_CASE("a grid file says what its cells are") {
  const TemporaryFile file(R"([{"task": "niah", "length": 300, "needles": 7, "depth_percent": 20, "samples": 9},
                              {"task": "mqar", "pairs": 5, "filler": "zero", "seed": 4294967295}])");
  EvalCell base;
  base.samples = 11;
  const std::vector<EvalCell> cells = read_cells(file.path, base);
  REQUIRE(cells.size() == 2);
  CHECK((cells[0].task.length == 300 && cells[0].task.needles == 7 && cells[0].task.depth_percent == 20 && cells[0].samples == 9));
  CHECK((cells[1].task.name == "mqar" && cells[1].task.pairs == 5 && cells[1].task.seed == 4294967295U && cells[1].samples == 11));
}

TEST_CASE("a suite is one of several lists of cells") {
  const TemporaryFile file(R"({"short": [{"length": 64}], "long": [{"length": 4096}, {"task": "mqar"}], "none": []})");
  EvalCell base;
  base.samples = 11;
  const std::vector<EvalCell> cells = read_suite(file.path, "long", base);
  REQUIRE(cells.size() == 2);
  CHECK((cells[0].task.length == 4096 && cells[0].samples == 11 && cells[1].task.name == "mqar"));
  contains(error_of([&] { read_suite(file.path, "wide", {}); }), ": has no suite 'wide'; there are: long, none, short");
  contains(error_of([&] { read_suite(file.path, "none", {}); }), ": is not a JSON list of cells");
  contains(error_of([&] { read_suite(TemporaryFile("[]").path, "long", {}); }), ": is not a JSON object of lists of cells");
}

TEST_CASE("every cell of the shipped suites can be made") {
  for (const char* suite : {"niah", "mqar", "prose"}) {
    for (const EvalCell& cell : read_suite(kAssets / "tasks/scores.json", suite, {})) CHECK(prepare(cell, kAssets).impossible.empty());
  }
}

TEST_CASE("hostile grid files are refused in a line") {
  contains(refusal(""), "is empty");
  CHECK(refusal("7") == "is not a JSON list of cells");
  CHECK(refusal("[]") == "is not a JSON list of cells");
  CHECK(refusal("[{\"task\": \"niah\"}") == "is not a JSON list of cells");
  contains(refusal(std::string(100000, '[')), "nested");
  CHECK(refusal("[{}, 3]") == "cell 2: is not an object");
  CHECK(refusal(R"([{"task": "chess"}])") == "cell 1: there is no task 'chess'; there are niah, mqar, copy, text and file");
  CHECK(refusal(R"([{"lenght": 5}])") == "cell 1: 'lenght' is no key of a cell");
  contains(refusal("[{\"a\\nb\": 5}]"), "is no key of a cell");
  for (const char* number : {"0", "-1", "1.5", "\"512\"", "null", "1e300", "18446744073709551615", "[1]"})
    CHECK(refusal(fmt::format(R"([{{"length": {}}}])", number)) == "cell 1: \"length\" is not a whole number from 1 to 100000000");
  CHECK(refusal(R"([{"seed": 4294967296}])") == "cell 1: \"seed\" is not a whole number from 0 to 4294967295");
  CHECK(refusal(R"([{"depth_percent": 101}])") == "cell 1: \"depth_percent\" is not a whole number from 0 to 100");
  CHECK(refusal(R"([{"haystack": "a\u0000b"}])") == "cell 1: \"haystack\" is not a text");
}

TEST_CASE("scores as a table, as JSON and as CSV") {
  std::vector<CellScore> scores;
  for (std::int64_t length : {256, 512}) {
    for (int depth : {0, 100}) {
      CellScore& score = scores.emplace_back();
      score.checkpoint = "models/small.h5";
      score.cell = niah(length, 4, 100);
      score.cell.task.depth_percent = depth;
      score.task = TaskScore{.questions = 100, .exact = {0.9, 0.82, 0.95}, .tokens = {0.95, 0.9}, .nll = 0.25};
    }
  }
  scores.back().task.reset();
  scores.back().impossible = "does not fit, \"really\"";
  CHECK(eval_table(scores) ==
        "niah   length  needles  depth %  questions  exact         95 %     nll  by token of the answer\n"
        "small     256        4        0        100  0.900  0.820-0.950  0.2500  0.950 0.900\n"
        "small     256        4      100        100  0.900  0.820-0.950  0.2500  0.950 0.900\n"
        "small     512        4        0        100  0.900  0.820-0.950  0.2500  0.950 0.900\n"
        "small     512        4      100  does not fit, \"really\"\n"
        "\n"
        "exact by depth and length: small, needles 4\n"
        "depth %    256  512\n"
        "0        0.900  0.900\n"
        "100      0.900  -\n");
  const auto json = nlohmann::json::parse(eval_json(scores));
  CHECK(json["format"] == "statescope-scores");
  CHECK(json["version"] == 1);
  CHECK(json["split"] == "evaluation");
  REQUIRE(json["cells"].size() == 4);
  CHECK(json["cells"][0]["checkpoint"] == "models/small.h5");
  CHECK(json["cells"][0]["depth_percent"] == 0);
  CHECK(json["cells"][0]["tokens"] == nlohmann::json{0.95, 0.9});
  CHECK(!json["cells"][0].contains("pairs"));
  CHECK(json["cells"][3]["impossible"] == "does not fit, \"really\"");
  const std::string csv = eval_csv(scores);
  CHECK(
      csv.starts_with("checkpoint,task,length,needles,values,queries,pairs,depth_percent,file,special,score,haystack,value,filler,seed,"
                      "samples,questions,exact,"
                      "low,high,nll,tokens,scored_by,hits,windows,bits_per_byte,standard_error,parts,impossible\n"
                      "models/small.h5,niah,256,4,1,1,,0,,,,filler,code,,1,100,100,0.9,0.82,0.95,0.25,0.95 0.9,tokens,,,,,,\n"));
  contains(csv, ",\"does not fit, \"\"really\"\"\"\n");
}

TEST_CASE("the command writes its files whole or not at all") {
  TemporaryFolder folder;
  EvalArguments arguments;
  arguments.checkpoints = {checkpoint_path("niah-gla").string()};
  arguments.lists.lengths = {64, 96};
  arguments.lists.base.samples = 5;
  arguments.json = (folder.path / "scores.json").string();
  arguments.csv = (folder.path / "scores.csv").string();
  CHECK(eval_command(arguments) == 0);
  CHECK(nlohmann::json::parse(std::ifstream(arguments.json))["cells"].size() == 2);
  contains(error_of([&] { eval_command(arguments); }), "scores.json: exists already");
  arguments.force = true;
  CHECK(eval_command(arguments) == 0);

  arguments.json = (folder.path / "nowhere/scores.json").string();
  contains(error_of([&] { eval_command(arguments); }), "cannot be written: No such file or directory");
  CHECK(folder.files() == 2);
}

TEST_CASE("Ctrl-C ends the command with one line and without files") {
  TemporaryFolder folder;
  EvalArguments arguments;
  arguments.checkpoints = {checkpoint_path("niah-gla").string()};
  arguments.lists.base.samples = 1'000'000;
  arguments.json = (folder.path / "scores.json").string();
  const auto handler = [] {
    struct sigaction action {};
    ::sigaction(SIGINT, nullptr, &action);
    return action.sa_handler;
  };
  const auto before = handler();
  const std::jthread user([&] {
    while (handler() == before) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(::getpid(), SIGINT);
  });
  CHECK(error_of([&] { eval_command(arguments); }) == "interrupted; no scores were written");
  CHECK(handler() == before);
  CHECK(folder.files() == 0);
}

}  // namespace statescope::eval_test
