// Needles in real text and prompt files: replies scored as RULER's are, by a small model with a tokenizer of pieces.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/cli/commands.h"
#include "app/eval/replies.h"
#include "app/eval/report.h"
#include "app/eval/scores_file.h"
#include "app/eval/text_task.h"
#include "engine/error.h"
#include "engine/run/reading.h"
#include "tests/app/cli/piece_model.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::eval_text_test {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

const std::string& kTemplate = test::kPieceTemplate;

/// A folder with a random model, a tokenizer of 905 pieces, and maybe a chat template.
class Place {
 public:
  explicit Place(const std::string& chat_template = "") { test::write_piece_model(folder_ / "model", chat_template); }
  std::string model() const { return path("model"); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return path(name);
  }

  /// The first cell of what eval writes.
  json score(EvalArguments arguments) const {
    arguments.checkpoints = {model()};
    arguments.json = path("scores.json");
    arguments.force = true;
    arguments.device.threads = 2;
    REQUIRE(eval_command(arguments) == 0);
    return json::parse(contents(arguments.json))["cells"][0];
  }
  json score_file(const std::string& file) const {
    EvalArguments arguments;
    arguments.prompts = {file};
    return score(arguments);
  }
  std::string refusal(const std::string& file) const {
    EvalArguments arguments;
    arguments.checkpoints = {model()};
    arguments.prompts = {file};
    try {
      eval_command(arguments);
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  }

 private:
  test::TemporaryFolder folder_;
};

EvalArguments niah(std::int64_t length, std::int64_t samples) {
  EvalArguments arguments;
  arguments.lists.base.task.value = "number";
  arguments.lists.lengths = {length};
  arguments.lists.base.samples = samples;
  return arguments;
}

/// What the model says greedily after this text.
std::string greedy(const Place& place, const std::string& text, int tokens) {
  const auto checkpoint = open_checkpoint(place.model());
  const auto model = Model::load(checkpoint, make_cpu_backend(1));
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
  PromptInput input;
  input.text = text;
  Reading reading(model, tokenizer, input);
  std::vector<std::int32_t> said;
  for (int i = 0; i < tokens; ++i) {
    reading.generate_one();
    said.push_back(reading.info()->tokens.back().id);
  }
  return tokenizer->decode(said, true);
}

}  // namespace

TEST_CASE("replies: how many answers one contains, capitals or not") {
  CHECK(contained("The code is AB12, I think.", {"ab12"}) == 1);
  CHECK(contained("one, two and four", {"one", "two", "three"}) == 2);
  CHECK(contained("", {"one"}) == 0);
  CHECK(contained("ÉTÉ", {"été"}) == 1);
  CHECK(contained("12", {"123"}) == 0);
}

TEST_CASE("replies: Wilson's interval where each prompt has one answer, else that of the mean over prompts") {
  const TaskScore one = summarise_replies(std::vector<ReplyHits>{{1, 1}, {0, 1}, {1, 1}, {1, 1}});
  CHECK((one.by_reply && one.questions == 4 && one.hits == 3));
  CHECK(one.exact.mean == 0.75);
  CHECK(one.exact.low == wilson(3, 4).low);
  CHECK(one.exact.high == wilson(3, 4).high);
  const TaskScore several = summarise_replies(std::vector<ReplyHits>{{2, 4}, {1, 1}});
  CHECK((several.questions == 5 && several.hits == 3));
  CHECK(several.exact.mean == 0.75);
  CHECK(several.exact.low == clustered(std::vector<double>{0.5, 1}).low);
}

TEST_CASE("needles in real text are scored by replies, and the scores file says so") {
  const Place place;
  const json cell = place.score(niah(200, 3));
  CHECK(cell["task"] == "niah");
  CHECK(cell["length"] == 200);
  CHECK(cell["samples"] == 3);
  CHECK(cell["questions"] == 3);
  CHECK(cell["scored_by"] == "reply");
  CHECK(cell["hits"].is_number_unsigned());
  CHECK(cell["exact"].get<double>() == cell["hits"].get<double>() / 3);
  CHECK((cell["low"] <= cell["exact"] && cell["exact"] <= cell["high"] && cell["high"] > 0));
  CHECK(cell["chat"] == false);
  CHECK(!cell.contains("nll"));
  const CellScore read = load_scores(place.path("scores.json"))[0];
  CHECK((read.task && read.task->by_reply));
  CHECK(std::isnan(read.task->nll));
}

TEST_CASE("needles in real text go through a chat template where the model has one") {
  const Place place(kTemplate);
  CHECK(place.score(niah(200, 2))["chat"] == true);
  const ChatForm chat = chat_form(place.model());
  REQUIRE(chat);
  CHECK(chat("Where?") == "<|im_start|>user\nWhere?<|im_end|>\n<|im_start|>assistant\n<tool_call>");
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*open_checkpoint(place.model()), 912);
  TaskOptions options;
  options.length = 300;
  const Example example = make_text_task(options, tokenizer, from_source("assets"), chat)->example(0);
  const std::string prompt = example.text.substr(0, example.questions[0].given.begin);
  CHECK(prompt.starts_with("<|im_start|>user\n"));
  const std::vector<std::int32_t> ids = tokenizer->encode(prompt, encoding_of(chat)).ids;
  CHECK(std::ssize(ids) == example.length);
  CHECK(example.length <= 300);
  CHECK(ids[0] == 901);
}

TEST_CASE("RULER's and lm-eval's prompts are scored by what the reply contains") {
  const Place place;
  const std::string text = "One of the special magic numbers for tall-hat is", said = greedy(place, text, 6);
  REQUIRE(said.size() > 1);
  const std::string right = said.substr(1, said.size() - 1);
  const json line{{"index", 0}, {"input", "One of the special magic numbers for tall-hat"}, {"outputs", {right}}, {"answer_prefix", " is"}};
  json wrong = line;
  wrong["outputs"] = {"no such words"};
  const json cell = place.score_file(place.file("validation.jsonl", line.dump() + "\n" + wrong.dump() + "\n"));
  CHECK(cell["task"] == "file");
  CHECK(cell["file"] == place.path("validation.jsonl"));
  CHECK(cell["samples"] == 2);
  CHECK(cell["questions"] == 2);
  CHECK(cell["hits"] == 1);
  CHECK(cell["exact"] == 0.5);
  CHECK(cell["low"].get<double>() == Approx(wilson(1, 2).low));
  CHECK(load_scores(place.path("scores.json"))[0].cell.task.haystack == place.path("validation.jsonl"));

  json both = line;
  both["outputs"] = {right, "no such words"};
  const json several = place.score_file(place.file("several.jsonl", both.dump() + "\n"));
  CHECK((several["samples"] == 1 && several["questions"] == 2 && several["hits"] == 1 && several["exact"] == 0.5));

  const json logged{{"doc_id", 0}, {"target", right}, {"arguments", {{"gen_args_0", {{"arg_0", text}, {"arg_1", json::object()}}}}}};
  CHECK(place.score_file(place.file("samples.jsonl", logged.dump() + "\n"))["hits"] == 1);
}

TEST_CASE("of RULER's question answering any answer will do; the scores say by which rule") {
  CHECK(hits_of("one and two", {{}, {"one", "two", "three"}, false}).hits == 2);
  CHECK(hits_of("one and two", {{}, {"one", "two", "three"}, true}).hits == 1);
  CHECK(hits_of("neither", {{}, {"one", "two"}, true}).answers == 1);

  const Place place;
  const std::string text = "The sea is", said = greedy(place, text, 6);
  const json both{{"input", text}, {"outputs", {"no such words", said.substr(1)}}};
  const std::string file = place.file("both.jsonl", both.dump() + "\n"), qa = place.file("qa_1.jsonl", both.dump() + "\n");
  const auto is = [](const json& cell, const char* rule, int questions, double exact) {
    INFO(cell.dump());
    CHECK((cell["score"] == rule && cell["questions"] == questions && cell["hits"] == 1 && cell["exact"] == exact));
  };
  is(place.score_file(file), "all", 2, 0.5);
  is(place.score_file(qa), "any", 1, 1);
  CHECK(load_scores(place.path("scores.json"))[0].cell.score == "any");
  json named = both;
  named["task"] = "qa_2";
  is(place.score_file(place.file("named.jsonl", named.dump() + "\n")), "any", 1, 1);
  const json mixed = place.score_file(place.file("mixed.jsonl", named.dump() + "\n" + both.dump() + "\n"));
  CHECK((mixed["score"] == "mixed" && mixed["questions"] == 3 && mixed["hits"] == 2 && mixed["exact"] == 0.75));
  EvalArguments arguments;
  arguments.prompts = {qa};
  arguments.lists.base.score = "all";
  is(place.score(arguments), "all", 2, 0.5);
  arguments.prompts = {file};
  arguments.lists.base.score = "any";
  is(place.score(arguments), "any", 1, 1);
}

TEST_CASE("replies: no longer than asked") {
  const Place place;
  const std::string text = "The sea is calm", said = greedy(place, text, 12);
  REQUIRE(greedy(place, text, 1).find(said) == std::string::npos);
  const std::string file = place.file("one.json", json{{"prompt", text}, {"expected", said}}.dump());
  EvalArguments arguments;
  arguments.prompts = {file};
  CHECK(place.score(arguments)["hits"] == 1);
  arguments.lists.base.reply = 1;  // token
  const json cell = place.score(arguments);
  CHECK(cell["hits"] == 0);
  CHECK(cell["reply"] == 1);
}

TEST_CASE("prompt files that cannot be scored are refused in a line") {
  const Place place;
  const auto refused = [&](const std::string& name, const std::string& text, const std::string& why) {
    const std::string what = place.refusal(place.file(name, text));
    INFO(what);
    CHECK(what.find(why) != std::string::npos);
    CHECK(what.find('\n') == std::string::npos);
  };
  refused("none.jsonl",
          R"({"input": "a", "outputs": ["b"]})"
          "\n"
          R"({"input": "a"})"
          "\n",
          "prompt 2 does not say what a right reply contains");
  refused("blank.json", R"({"input": "a", "outputs": ["b", ""]})", "prompt 1 does not say");
  refused("empty.json", R"({"input": "", "outputs": ["b"]})", "prompt 1 is empty");
  refused("ids.json", R"({"ids": [1, 912], "outputs": ["b"]})", "912");
  refused("text.txt", "What is it?", "prompt 1 does not say");
  refused("broken.jsonl", R"({"input": "a", "outp)", "broken.jsonl");

  EvalLists lists;
  lists.base.task.name = "file";
  lists.base.task.values = 2;
  CHECK(wrong_lists(lists) == "--values is of --task niah, not of file");
  EvalArguments arguments = niah(20, 2);
  arguments.checkpoints = {place.model()};
  CHECK_THROWS_AS(eval_command(arguments), OptionsError);
}

TEST_CASE("dataset --chat: the prompts of eval in chat form, which say so and are read likewise") {
  const Place place(kTemplate), plain;
  DatasetArguments dataset;
  dataset.task.length = 160;
  dataset.samples = 2;
  dataset.tokenizer = place.model();
  dataset.output = place.path("needles.jsonl");
  dataset.chat = true;
  REQUIRE(dataset_command(dataset) == 0);
  const std::string first = contents(dataset.output).substr(0, contents(dataset.output).find('\n'));
  CHECK(json::parse(first)["chat"] == true);
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*open_checkpoint(place.model()), 912);
  const ChatForm chat = chat_form(place.model());
  const Example example = make_text_task(dataset.task, tokenizer, from_source("assets"), chat)->example(0);
  CHECK(json::parse(first)["text"] == example.text);
  const PromptInput input = load_prompt({.file = dataset.output});
  CHECK(input.in_chat);
  CHECK(encode(input, *tokenizer).ids == asked_of(example, *tokenizer, encoding_of(chat)).ids);
  CHECK(place.score_file(dataset.output)["chat"] == true);
  dataset.tokenizer = plain.model();
  dataset.output = plain.path("needles.jsonl");
  CHECK_THROWS_WITH(dataset_command(dataset), Catch::Matchers::ContainsSubstring("has no chat template"));
}

TEST_CASE("needle: survival and cause of death of a needle in real text") {
  for (const std::string& chat : Texts{"", kTemplate}) {
    const Place place(chat);
    DatasetArguments dataset;
    dataset.task.length = 160;
    dataset.task.value = "number";
    dataset.samples = 2;
    dataset.tokenizer = place.model();
    dataset.output = place.path("needles.jsonl");
    REQUIRE(dataset_command(dataset) == 0);
    NeedleArguments needle;
    needle.checkpoint = place.model();
    needle.prompt.file = dataset.output;
    needle.json = place.path("needle.json");
    REQUIRE(needle_command(needle) == 0);
    const json report = json::parse(contents(needle.json));
    const std::string text = report["needle"]["text"];
    INFO(text);
    CHECK(text.find("Note: the number of the ") != std::string::npos);
    REQUIRE(report["layers"].size() == 2);
    CHECK(!report["layers"][0]["heads"][0]["survival"]["kept"].empty());
    CHECK(report["verdict"]["losses"].is_array());
    CHECK(place.score_file(dataset.output)["samples"] == 2);
  }
}

}  // namespace statescope::eval_text_test
