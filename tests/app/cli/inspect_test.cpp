// statescope inspect: from checkpoints to verdicts, without being told which is which.
#include <fmt/format.h>

#include <QXmlStreamReader>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/inspect/checkpoints.h"
#include "app/inspect/report.h"
#include "app/inspect/window_command.h"
#include "app/panels/arrangement.h"
#include "engine/error.h"
#include "tests/app/cli/json_schema.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::inspect_test {
namespace {

using nlohmann::json;

std::string shipped(const std::string& name) { return shipped_checkpoint(name).string(); }

/// A file name that is free, and is so again at the end.
struct Scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "statescope-inspect-test.json";
  Scratch() { std::filesystem::remove(path); }
  ~Scratch() { std::filesystem::remove(path); }
};

json inspected(InspectArguments arguments, const Scratch& scratch) {
  arguments.json = scratch.path.string();
  arguments.force = true;
  REQUIRE(inspect_command(arguments) == 0);
  return json::parse(std::ifstream(scratch.path));
}

/// The first complaint of the schema about a report; empty: there is none.
std::string complaint(const json& report) { return test::complaint(report, "inspection"); }

/// What is wrong with the page as XML, which it is too; empty: nothing.
std::string malformed(const std::string& page) {
  QXmlStreamReader reader(QByteArray::fromStdString(page));
  while (!reader.atEnd()) reader.readNext();
  return reader.hasError() ? reader.errorString().toStdString() : "";
}

std::string error_of(const InspectArguments& arguments) {
  try {
    inspect_command(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("inspect: of all shipped models those are ill whose routing is uneven, on their own tasks") {
  const Scratch scratch;
  InspectArguments arguments;
  for (const std::filesystem::path& path : shipped_checkpoints()) arguments.checkpoints.push_back(path.string());
  CHECK(arguments.checkpoints.size() > 35);
  arguments.samples = 1;
  const json written = inspected(arguments, scratch);
  std::vector<std::string> ill;
  for (const json& checkpoint : written["checkpoints"]) {
    CHECK(checkpoint["sequences"].size() == 3);
    for (const json& verdict : checkpoint["verdicts"]) {
      INFO(checkpoint["checkpoint"] << " " << verdict.dump());
      ill.push_back(checkpoint["checkpoint"].get<std::string>() + " " + verdict["id"].get<std::string>());
    }
  }
  std::ranges::sort(ill);  // the balance loss weighs little: of both tasks some leave a partition of a layer unused
  CHECK(ill == std::vector<std::string>{shipped("mqar-sse-gla-n8k1") + " dead_partition", shipped("mqar-sse-gla-n8k2") + " dead_partition",
                                        shipped("niah-sse-gla-n4k1-collapsed") + " routing_collapse",
                                        shipped("niah-sse-h-n4k1") + " dead_partition"});
}

TEST_CASE("inspect: a prompt that the model never saw is no evidence; with --check an illness ends with 3") {
  const Scratch scratch;
  InspectArguments arguments;
  arguments.checkpoints = {shipped("niah-gla")};
  std::string random = "the";
  for (int i = 0; i < 60; ++i) random += i % 3 == 0 ? " 1" : i % 3 == 1 ? " ivan" : " .";
  arguments.prompt.text = random;
  const json checkpoint = inspected(arguments, scratch)["checkpoints"][0];
  CHECK(checkpoint["verdicts"].empty());
  CHECK(checkpoint["cannot_say"].get<std::string>().starts_with("the model was not made for such a prompt"));
  InspectArguments check;
  check.checkpoints = {shipped("niah-sse-gla-n4k1-collapsed")};
  check.samples = 1;
  CHECK(inspect_command(check) == 0);
  check.check = true;
  CHECK(inspect_command(check) == 3);
  check.checkpoints = {shipped("niah-gla")};
  CHECK(inspect_command(check) == 0);
}

TEST_CASE("inspect: a trainer's folders are taken in the order of their steps; those that are not whole are named and skipped") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "statescope-trainer";
  fs::remove_all(folder);
  const auto make = [&](const std::string& name, bool config, bool weights) {
    fs::create_directories(folder / name);
    if (config) std::ofstream(folder / name / "config.json") << "{}";
    if (weights) std::ofstream(folder / name / "model.safetensors") << "x";
  };
  make("checkpoint-900", true, true);
  make("checkpoint-1000", true, true);
  make("checkpoint-1100", true, false);
  make("checkpoint-1150", true, true);
  make("checkpoint-1175", true, true);
  make("checkpoint-1200", false, false);
  make("runs", false, false);
  std::ofstream(folder / "checkpoint-1000" / "trainer_state.json") << R"({"global_step": 1001})";
  std::ofstream(folder / "checkpoint-1100" / "model.safetensors.index.json") << R"({"weight_map": {"a": "model-1.safetensors"}})";
  std::ofstream(folder / "checkpoint-1150" / "model.safetensors.index.json")
      << R"({"weight_map": {"a": ")" << std::string(300, 'x') << R"("}})";
  std::ofstream(folder / "checkpoint-1175" / "trainer_state.json") << R"({"global_step": 18446744073709551615})";
  const FoundCheckpoints found = find_checkpoints({folder.string()});
  REQUIRE(found.checkpoints.size() == 3);
  CHECK((found.checkpoints[0].path == (folder / "checkpoint-900").string() && found.checkpoints[0].steps == 900));
  CHECK((found.checkpoints[1].path == (folder / "checkpoint-1000").string() && found.checkpoints[1].steps == 1001));
  CHECK((found.checkpoints[2].path == (folder / "checkpoint-1175").string() && found.checkpoints[2].steps == 1175));  // not what it says
  CHECK(found.skipped == std::vector<std::string>{(folder / "checkpoint-1100").string() + ": its weights are not all there yet",
                                                  (folder / "checkpoint-1150").string() + ": its weights are not all there yet",
                                                  (folder / "checkpoint-1200").string() + ": no config.json yet"});
  fs::remove_all(folder);
}

TEST_CASE("inspect: figures of every sequence stand in the report, and the report is as its schema says") {
  const Scratch scratch;
  InspectArguments arguments;
  arguments.checkpoints = {shipped("niah-sse-gla-n4k1"), shipped("niah-sse-h-n4k1"), shipped("mqar-gated-deltanet")};
  arguments.samples = 1;
  const json written = inspected(arguments, scratch);
  CHECK(written["format"] == "statescope-inspection");
  for (const json& checkpoint : written["checkpoints"]) CHECK(checkpoint["sequences"].size() == 3);
  const json& first = written["checkpoints"][0];
  CHECK(first["trained_length"] == 1024);
  CHECK(first["sequences"][2]["tokens"] == 2048);
  CHECK(first["sequences"][0]["layers"][3]["routing"]["load"].size() == 4);
  CHECK(first["sequences"][0]["layers"][3]["slots"][0]["name"] == "shared");
  CHECK(written["checkpoints"][2]["sequences"][0]["layers"][0]["routing"].is_null());
  const json& sequence = first["sequences"][0];
  CHECK(sequence["perplexity_by_eighth"][3].get<double>() == Approx(std::exp(sequence["nll_by_eighth"][3].get<double>())));

  if (!test::has_jsonschema()) return;
  CHECK(complaint(written) == "");
  // The schema is not so wide that anything fits.
  json wrong = written;
  wrong["checkpoints"][0]["sequences"][1]["layers"][2]["heads"][0].erase("effective_rank");
  CHECK(complaint(wrong) == "'effective_rank' is a required property");
  wrong = written;
  wrong["checkpoints"][0]["sequences"][0]["layers"][0]["routing"]["mood"] = 1;
  CHECK_FALSE(complaint(wrong).empty());
  wrong = written;
  wrong["checkpoints"][1]["cannot_say"] = 7;
  CHECK(complaint(wrong) == "7 is not of type 'string', 'null'");
}

TEST_CASE("inspect: a set of prompts is read as a whole; sequences of one kind are told by their mean") {
  const Scratch scratch;
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "statescope-inspect-prompts";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "two.json")
      << R"([{"prompt": "the code of ivan 1 8 1 5 ."}, {"prompt": "the lamp was large . the mill was old ."}])";
  std::ofstream(folder / "one.txt") << "the mill was old .";
  InspectArguments arguments;
  arguments.checkpoints = {shipped("niah-gla")};
  arguments.prompts = {(folder / "two.json").string(), (folder / "one.txt").string()};
  const json sequences = inspected(arguments, scratch)["checkpoints"][0]["sequences"];
  REQUIRE(sequences.size() == 3);
  CHECK((sequences[0]["name"] == "two.json" && sequences[1]["name"] == "two.json" && sequences[2]["name"] == "one.txt"));
  CHECK((sequences[0]["tokens"] == 9 && sequences[1]["tokens"] == 10 && sequences[2]["tokens"] == 5));
  std::filesystem::remove_all(folder);

  LayerReport layer{.mixer = "gla", .residual_norm = 2, .heads = {}, .slots = {}, .routing = {}};
  Inspected some{.checkpoint = "a.h5", .names = {"niah", "niah", "mqar"}, .sequences = {}};
  for (const double norm : {1.0, 2.0, 5.0}) {
    layer.residual_norm = norm;
    some.sequences.push_back({.tokens = 64, .nll_by_eighth = {}, .layers = {layer}});
  }
  const std::string text = inspection_text(some, true);
  CHECK(text.starts_with("a.h5\n  healthy   none of 12 illnesses was found"));
  CHECK(text.find("  niah; mean of 2, 64 tokens\n") != text.npos);
  CHECK(text.find("gla                        1.5\n") != text.npos);
  CHECK(text.find("  mqar, 64 tokens\n") != text.npos);
}

TEST_CASE("inspect: two checkpoints stand side by side, each figure with its difference") {
  const LayerReport layer{.mixer = "gla", .residual_norm = 2, .heads = {}, .slots = {}, .routing = {}};
  Inspected a{.checkpoint = "a.h5", .names = {"niah"}, .sequences = {{.tokens = 64, .nll_by_eighth = {}, .layers = {layer, layer}}}}, b = a;
  b.checkpoint = "b.h5";
  b.sequences[0].layers[1].residual_norm = 3.5;
  b.judgement.cannot_say = "nothing was read";
  const std::string verdicts = "A: a.h5\n  healthy   none of 12 illnesses was found (on )\nB: b.h5\n  cannot say: nothing was read\n";
  CHECK(comparison_text(a, b, true) == verdicts +
                                           "niah, 64 and 64 tokens\n"
                                           "                                                    A          B      B - A\n"
                                           "  layer 0 residual norm                             2          2         +0\n"
                                           "  layer 1 residual norm                             2        3.5       +1.5\n");
  CHECK(comparison_text(a, b, false).starts_with(verdicts + "niah, 64 and 64 tokens\n  layer             half-life"));
  b.names = {"mqar"};
  CHECK(comparison_text(a, b, true).empty());
}

TEST_CASE("inspect: the verdict stands first; without --all what tells most of each layer, on the length that the model was trained on") {
  LayerReport layer{.mixer = "gla", .residual_norm = 2, .heads = {}, .slots = {}, .routing = {}};
  layer.full_rank = 4;
  StateSimilarity& head = layer.heads.emplace_back();
  head.stacked.rank = 2;
  head.rows.mean_abs = 0.25;
  const LayerReport attention{.mixer = "transformer", .memory = "softmax attention", .heads = {}, .slots = {}, .routing = {}};
  Inspected one{.checkpoint = "a.h5", .trained = 512, .names = {}, .sequences = {}};
  for (const std::int64_t tokens : {128, 512, 1024}) {
    one.names.push_back(fmt::format("niah, {} words", tokens));
    one.sequences.push_back({.tokens = tokens, .nll_by_eighth = std::vector<double>(8, std::log(4.0)), .layers = {layer, attention}});
  }
  CHECK(inspection_text(one, false) ==
        "a.h5\n"
        "  healthy   none of 12 illnesses was found (on )\n"
        "  niah, 512 words, 512 tokens (trained on 512)\n"
        "  layer mixer                half-life receptive  rank       |cos|  loads (1: fair)\n"
        "      0 gla                          –         –   2.0/4      0.25\n"
        "      1 transformer          softmax attention\n"
        "  perplexity at the end, by tokens: 128: 4, 512: 4, 1024: 4\n"
        "  half-life and receptive field: in tokens; rank: of a head's state, effective; |cos|: of its rows, mean\n");
  const std::string whole = inspection_text(one, true);
  for (const char* words :
       {"niah, 128 words", "niah, 512 words", "niah, 1024 words", "perplexity by eighth", "residual: norm of what enters"})
    CHECK(whole.find(words) != std::string::npos);
}

TEST_CASE("inspect: half-lives that do not end and widths that may be larger keep their sign wherever checkpoints stand side by side") {
  LayerReport layer{.mixer = "gla", .residual_norm = 2, .heads = {}, .slots = {}, .routing = {}};
  layer.full_rank = 4;
  layer.heads.emplace_back().stacked.rank = 2;
  layer.heads_read_effect = layer.heads_norm = layer.heads_likeness = layer.heads_same_reads = {0.1};
  layer.slots.push_back({.name = "state", .half_life = 20.0, .receptive_field = 60.0, .censored = 0.0});
  Inspected a{.checkpoint = "a.h5", .names = {"niah"}, .sequences = {{.tokens = 64, .nll_by_eighth = {}, .layers = {layer}}}}, b = a;
  b.checkpoint = "b.h5";
  const auto change = [](Inspected& one, double half_life, double width, double censored) {
    SlotReport& slot = one.sequences[0].layers[0].slots[0];
    slot.half_life = half_life, slot.receptive_field = width, slot.censored = censored;
  };
  const auto line = [&](const std::string& name) {
    const std::string text = comparison_text(a, b, true), from = text.substr(text.find("layer 0 " + name) + 8 + name.size());
    std::string words;
    for (const char c : from.substr(0, from.find('\n')))
      if (c != ' ' || !words.ends_with(' ')) words += c;
    return words;
  };
  CHECK(line("receptive field") == " 60 60 +0");
  change(b, INFINITY, 64, 0.25);
  CHECK(line("receptive field") == " 60 ≥ 64 ≥ +4");
  CHECK(line("half-life") == " 20 ∞ –");
  change(a, 20, 62, 1);
  CHECK(line("receptive field") == " ≥ 62 ≥ 64 –");
  change(b, 20, 64, 0);
  CHECK(line("receptive field") == " ≥ 62 64 ≤ +2");
  CHECK(inspection_text(a, true).find(" 20      ≥ 62") != std::string::npos);

  change(b, INFINITY, 64, 0.25);
  const std::string overview = overview_text({a, b, b});
  CHECK(overview.find("      20      ≥ 62") != std::string::npos);
  CHECK(overview.find("       ∞      ≥ 64") != std::string::npos);
  const std::string page = inspection_html({a, b});
  CHECK(page.find("<td>20.0</td><td>≥ 62.0</td>") != page.rfind("<td>20.0</td><td>≥ 62.0</td>"));  // of the overview and of its layer
  CHECK(page.find("<td>∞</td><td>≥ 64.0</td>") != page.rfind("<td>∞</td><td>≥ 64.0</td>"));
  const std::string csv = inspection_csv({a, b});
  CHECK(csv.starts_with("checkpoint,steps,sequence,tokens,layer,part,quantity,value,bound\n"));
  CHECK(csv.find("a.h5,,niah,64,0,slot state,half_life,20,=\n") != std::string::npos);
  CHECK(csv.find("a.h5,,niah,64,0,slot state,receptive_field,62,>=\n") != std::string::npos);
  CHECK(csv.find("b.h5,,niah,64,0,slot state,half_life,inf,=\n") != std::string::npos);
  const auto slot = [](const Inspected& one) {
    return json::parse(inspection_json({one}))["checkpoints"][0]["sequences"][0]["layers"][0]["slots"][0];
  };
  CHECK((slot(a)["receptive_field_bound"] == ">=" && slot(a)["decays"] == true && slot(a)["half_life"] == 20));
  CHECK((slot(b)["half_life"].is_null() && slot(b)["decays"] == false));
  change(b, 20, 64, 0);
  CHECK(slot(b)["receptive_field_bound"] == "=");
}

TEST_CASE("inspect: many checkpoints stand in a table, a line each") {
  LayerReport layer{
      .mixer = "sse", .residual_norm = 1, .norm_by_eighth = {1, 1, 1, 2, 2, 2, 2, 5}, .heads = {}, .slots = {}, .routing = {}};
  layer.full_rank = 4;
  layer.heads.emplace_back().rows.mean_abs = 0.25;
  layer.heads_read_effect = layer.heads_norm = layer.heads_likeness = layer.heads_same_reads = {0.1};
  layer.heads.back().stacked.rank = 2;
  layer.routing.emplace().load_entropy = 0.125;
  Inspected one{.checkpoint = "folder/gla-step900.h5", .steps = 900, .names = {"niah"}, .sequences = {}};
  one.sequences.push_back({.tokens = 64, .nll_by_eighth = std::vector<double>(8, std::log(4.0)), .layers = {layer}});
  Inspected other{.checkpoint = "plain.h5", .names = {"niah"}, .sequences = {{.tokens = 9, .nll_by_eighth = {}, .layers = {}}}};
  Inspected folder{.checkpoint = "models/some-1.3B/", .names = {}, .sequences = {}};
  one.judgement.diagnoses.push_back({.illness = Illness::routing_collapse, .layers = {0}, .heads = {}, .evidence = {}, .sentence = {}});
  folder.judgement.cannot_say = "nothing was read";
  const std::string text = overview_text({one, other, folder});
  CHECK(text.find(
            "gla-step900                              900         0.12          0.50         –         –          0.25        2.50 none") !=
        text.npos);
  CHECK(text.find("1 middle                  ill: routing collapse, layer 0; 64: 4\n") != text.npos);
  CHECK(text.find(
            "plain                                      –            –             –         –         –             –           – none") !=
        text.npos);
  CHECK(text.find("  healthy; \n") != text.npos);
  CHECK(text.find("  cannot say; \n") != text.npos);
}

TEST_CASE("inspect: a folder is a trajectory, in order of its steps; the page holds every checkpoint and loads nothing") {
  const Scratch scratch;
  InspectArguments arguments;
  arguments.checkpoints = {from_source("assets/checkpoints/trajectories")};
  arguments.lengths = {64};
  arguments.samples = 2;
  arguments.html = scratch.path.string();
  CHECK(inspect_command(arguments) == 0);
  std::ifstream file(scratch.path);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::size_t last = 0;
  for (const char* name :
       {"mqar-gla-step1000", "mqar-gla-step5000", "mqar-sse-gla-n4k1-step1000", "niah-gla-step8333", "niah-sse-gla-n4k1-step8333"}) {
    const std::size_t row = page.find(">" + std::string(name) + "</a></th>");
    CHECK(row != std::string::npos);
    CHECK(row > last);
    last = row;
  }
  for (const char* outside : {"http", "src=", "href=\"h", "href=\"/", "<script ", "@import", "url("})
    CHECK(page.find(outside) == std::string::npos);
  CHECK(page.find("<script>") == page.rfind("<script>"));  // its own, which copies commands
  CHECK(malformed(page).empty());
  CHECK(page.find("niah, 64 words; mean of 2: 64 tokens") != std::string::npos);
  CHECK(page.find("dead partitions (load at most 0.1)") != std::string::npos);
  CHECK(page.find("By eighth of the sequence") != std::string::npos);
  CHECK(page.find("<th scope=\"row\">perplexity</th><td class=\"left\"><svg ") != std::string::npos);
  CHECK(page.find("role=\"img\" aria-label=\"loads ") != std::string::npos);
  CHECK(page.find("largest growth of a state's norm") != std::string::npos);

  arguments.html.clear();
  arguments.checkpoints = {std::filesystem::temp_directory_path().string() + "/statescope-no-such-folder"};
  CHECK(error_of(arguments).find("statescope-no-such-folder") != std::string::npos);
}

TEST_CASE("inspect: each verdict and figure of the page has the command that opens the window there, on the prompt that shows it") {
  const Scratch scratch;
  const std::string collapsed = shipped("niah-sse-gla-n4k1-collapsed");
  InspectArguments arguments;
  arguments.checkpoints = {collapsed};
  arguments.samples = 2;
  arguments.html = scratch.path.string();
  const auto page = [&] {
    arguments.force = true;
    REQUIRE(inspect_command(arguments) == 0);
    std::ifstream file(scratch.path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(malformed(text).empty());
    return text;
  };
  const std::string of_task = page();
  const std::string verdict =
      of_task.substr(of_task.find("<li class=\"bad\">"), of_task.find("</li>") - of_task.find("<li class=\"bad\">"));
  CHECK(verdict.find(" " + collapsed +
                     " <span class=\"place\">--layer 3 --token 1023</span> --view routing --example 1024 --number 0</code>") !=
        std::string::npos);
  for (const char* figure :
       {"--view 'spectrum/Norm along the run' --example 2048 --number 0", "--view decay/Half-life --example 2048",
        "--view spectrum --example 2048", "<span class=\"place\">--layer 3 --token 255</span> --view routing --example 256",
        "<circle data-place=\"--layer 3 --head 2\"", "<polyline data-place=\"--layer 1\"", "<tr data-place=\"--layer 2\">"})
    CHECK(of_task.find(figure) != std::string::npos);

  std::string text = "the code of ivan 1 8 1 5 .";
  for (int i = 0; i < 8; ++i) text += " the lamp was large .";
  arguments.prompt.text = text;
  CHECK(page().find("--view spectrum --text '" + text + "'</code>") != std::string::npos);
  arguments.prompt = {};
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "statescope it's <a>";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "two.json") << R"([{"prompt": "the mill was old ."}, {"prompt": ")" << text << R"("}])";
  arguments.prompts = {(folder / "two.json").string()};
  const std::string of_file = page(), quoted = std::filesystem::temp_directory_path().string() + "/statescope it'\\''s &lt;a&gt;/two.json'";
  CHECK(of_file.find("--view routing --prompt '" + quoted + "</code>") != std::string::npos);
  CHECK(of_file.find("--view spectrum --prompt '" + quoted + " --number 1</code>") != std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("inspect: where an illness is to be seen; no command for a prompt that cannot be read again") {
  Inspected some{.checkpoint = "a.h5", .trained = 100, .names = {"x", "y", "z"}, .sequences = {}};
  for (const std::int64_t tokens : {50, 100, 200}) some.sequences.push_back({.tokens = tokens, .nll_by_eighth = {}, .layers = {}});
  some.reread = {"--example 50", "", "--example 200"};
  const auto seen = [&](Illness illness) {
    const SeenAt at =
        seen_at(some, {.illness = illness, .layers = {1, 4}, .heads = {3}, .evidence = {{"layer", 4.0}, {"token", 7.0}}, .sentence = {}});
    return fmt::format("{} {} {}", at.sequence, place_words(at.place), at.place.view);
  };
  CHECK(seen(Illness::rank_collapse) == "1 --layer 4 --head 3 --token 99 spectrum");
  CHECK(seen(Illness::length_drift) == "2 --layer 4 --head 3 --token 199 spectrum/Norm along the run");
  CHECK(seen(Illness::not_finite) == "1 --layer 4 --head 3 --token 7 state");
  for (const IllnessRow& row : illnesses())
    CHECK(
        wrong_view(seen_at(some, {.illness = row.illness, .layers = {}, .heads = {}, .evidence = {}, .sentence = {}}).place.view).empty());
  CHECK(window_command_at(some, 0, {.view = "state"})->after == "--view state --example 50");
  CHECK_FALSE(window_command_at(some, 1, {.view = "state"}));
  CHECK_FALSE(window_command_at(some, 3, {.view = "state"}));
}

TEST_CASE("inspect: a word comes through a shell as it is, whatever stands in it") {
  for (const std::string& word : std::vector<std::string>{"a.h5", "", "two words", "it's", "$HOME `id` \"x\" \\ !", "-n", "a\nb\tc",
                                                          "\x1b[31m'\\", "\xff\xfe broken \xc3", "Größe 的"}) {
    const std::string quoted = shell_word(word);
    INFO(quoted);
    CHECK(quoted.find('\n') == std::string::npos);
    FILE* const pipe = ::popen(("exec bash -c " + shell_word("printf %s " + quoted)).c_str(), "r");
    REQUIRE(pipe);
    std::string said;
    for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
    CHECK(::pclose(pipe) == 0);
    CHECK(said == word);
  }
}

TEST_CASE("inspect: a prompt or lengths of one's own; errors in one line, and no file") {
  const Scratch scratch;
  InspectArguments arguments;
  arguments.checkpoints = {shipped("niah-gla")};
  arguments.json = scratch.path.string();
  arguments.prompt.text = "the code of ivan 1 8 1 5 .";
  CHECK(inspect_command(arguments) == 0);
  CHECK(json::parse(std::ifstream(scratch.path))["checkpoints"][0]["sequences"][0]["tokens"] == 9);
  CHECK(error_of(arguments).find("exists already") != std::string::npos);
  std::filesystem::remove(scratch.path);

  InspectArguments places = arguments;
  places.json = places.csv = "-";
  CHECK_THROWS_WITH(inspect_command(places), "-: two reports cannot go to one place");
  places.csv = places.checkpoints.front();
  CHECK_THROWS_WITH(inspect_command(places), places.csv + ": a report cannot take the place of the checkpoint");
  places.checkpoints = {from_source("assets/checkpoints/niah")};  // one of a folder's
  CHECK_THROWS_WITH(inspect_command(places), places.csv + ": a report cannot take the place of the checkpoint");
  arguments.prompt.text = "unheardof";
  CHECK(error_of(arguments).find("unheardof") != std::string::npos);
  arguments.prompt = {};
  arguments.checkpoints = {"nowhere.h5"};
  CHECK(error_of(arguments).find("nowhere.h5") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scratch.path));
  arguments.checkpoints = {shipped("niah-gla")};
  arguments.lengths = {100};
  CHECK(inspect_command(arguments) == 0);
}

}  // namespace statescope::inspect_test
