// Pages: one file that needs nothing else, of a run and of a lesson; what cannot be made is refused in a line.
#include "app/web/page.h"

#include <regex>

#include "app/figure/view_picture.h"
#include "app/lesson/lesson.h"
#include "app/web/page_of_lesson.h"
#include "app/web/page_of_run.h"
#include "app/web/prose.h"
#include "engine/error.h"
#include "tests/app/window/place.h"
#include "tests/app/window/qt_application.h"

namespace statescope::page_test {
namespace {

using namespace test::place;

constexpr std::size_t most = 5'000'000;

FigurePanel panel_of(const std::string& view, const std::string& mode = "") {
  FigurePanel panel;
  panel.view = view;
  panel.mode = mode;
  panel.checkpoints = {"niah-sse-gla-n4k1.h5"};
  panel.prompt = "needle.json";
  return panel;
}

/// Without what is packed, which may look like anything.
std::string readable(const std::string& html) {
  std::string text;
  for (std::size_t at = 0; at < html.size();) {
    const std::size_t packed = std::min(html.find("class=\"view-data\"", at), html.size());
    text += html.substr(at, packed - at);
    at = std::min(html.find("</script>", packed), html.size());
  }
  return text;
}

/// What a browser would fetch.
std::vector<std::string> references(const std::string& page) {
  static const std::regex pattern(R"((https?:|\bsrc\s*=|\bhref\s*=|url\(|@import|//[a-z]+\.|fetch\(|XMLHttpRequest|WebSocket|import\())");
  const std::string html = readable(page);
  return {std::sregex_token_iterator(html.begin(), html.end(), pattern), {}};
}

std::string short_lesson() {
  return "---\ntitle: A <small> lesson\nminutes: 1\ncheckpoint: niah-sse-gla-n4k1.h5\ntext: the code of hanna is 4 1 7 7\nviews: "
         "state\n---\n"
         "## One\ntoken: 3\nplay: 1\ncaption: the rows\nlayer: 1\nhead: 1\n\nThere are **{length}** tokens.\n\n- a\n- b\n\n"
         "predict: How many layers?\n- few [.. 3]\n- more [3 ..]\nanswer: layers\ntoken: 5\n\nIt has {layers}.\n"
         "## Two\nviews: state, routing\nbeside: niah-gla.h5\n\nlast\n";
}

}  // namespace

TEST_CASE("page: a run's page fetches nothing and stays small") {
  qt_application();
  FigureRuns runs;
  Recorder recorder(runs, {.tokens = {.first = 20, .last = 24}});
  const Page page = page_of_run({panel_of("routing"), panel_of("state", "Change")}, recorder);
  REQUIRE(page.views.size() == 2);
  CHECK(page.views[1].title == "State (Change)");
  CHECK(page.views[0].tokens == 5);
  const std::string html = page_html(page, most);
  CHECK(references(html) == std::vector<std::string>{});
  CHECK(html.find("{{") == std::string::npos);
  CHECK(html.size() < 300'000);
  CHECK_THROWS_AS(page_html(page, 10'000), Error);
}

TEST_CASE("page: every view is drawn alike in both themes, and has what its regions need") {
  qt_application();
  FigureRuns runs;
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == "needle_grid" || row.id == "branches") continue;  // of hundreds of prompts; of a run that was changed
    if (row.id == "remembered") continue;                           // no shipped model keeps coefficients
    INFO(row.id);
    FigurePanel panel = panel_of(std::string(row.id));
    if (row.id == "delta_rule") panel.checkpoints = {"niah-gated-deltanet.h5"};
    if (row.id == "head_gates") panel.checkpoints = {"niah-sla-gla.h5"};
    if (row.id == "choices") {
      panel.checkpoints = {"mqar-nsa.h5"};
      panel.prompt = {};
    }
    if (row.id == "experts") {  // no shipped model has any
      panel.checkpoints = {from_source("tests/golden/models/nemotron_h")};
      panel.prompt.clear();
      panel.input = PromptInput{.text = {}, .spans = {}, .ids = {1, 2, 3, 4}, .expected = {}, .generate = {}};
    }
    if (row.make()->compares()) panel.checkpoints.emplace_back("niah-sse-gla-n4k2.h5");
    Recorder recorder(runs, {.tokens = {.first = -2, .last = -1}});
    CHECK(recorder.record(panel).tokens == 2);
  }
}

TEST_CASE("page: of the views that open with a model, those that show nothing of it are left out") {
  const Place place;
  const std::string models = from_source("tests/golden/models/");
  place.write("ids", "1 2 3 4");
  for (const char* model : {"s4_hippo", "s4d", "nsa", "moba"}) {
    INFO(model);
    const Outcome made = place.run("page " + models + model + " --ids ids --tokens 2..3 -o a.html --force");
    INFO(made.errors);
    CHECK(made.status == 0);
    const bool has_all = std::string_view(model) != "s4_hippo";  // whose coefficients do not decay one by one
    CHECK((made.errors.find("is left out: ") == std::string::npos) == has_all);
    CHECK(place.text_of("a.html").find("class=\"view-data\"") != std::string::npos);
    const Outcome asked = place.run("page " + models + model + " --view routing --ids ids --tokens 2..3 -o b.html");
    CHECK(asked.status == 1);
    CHECK(asked.errors.find("shows nothing") != std::string::npos);
  }
}

TEST_CASE("page: what would be larger is refused, with what would fit") {
  qt_application();
  FigureRuns runs;
  Recorder recorder(runs, {.tokens = {.first = 0, .last = 59}, .most_bytes = 20'000});
  try {
    recorder.record(panel_of("state"));
    FAIL("it was recorded");
  } catch (const Error& error) {
    const std::string said = error.what();
    INFO(said);
    CHECK(said.find("tokens of these views would fit, or all with --max-size") != std::string::npos);
    CHECK(said.find('\n') == std::string::npos);
  }
}

TEST_CASE("page: a lesson's page says what its player says") {
  qt_application();
  FigureRuns runs;
  Recorder recorder(runs, {});
  const Page page = page_of_lesson(parse_lesson(short_lesson(), "l.md"), recorder);
  REQUIRE(page.steps.size() == 2);
  const PageStep& one = page.steps[0];
  CHECK(one.prose == "<p>There are <strong>9</strong> tokens.</p>\n<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n");
  CHECK(one.reveal == "<p>It has 4.</p>\n");
  CHECK(one.picture.token == 3);
  CHECK(one.picture.play == 1);
  CHECK(one.picture.caption == "the rows");
  CHECK(one.revealed.token == 5);
  CHECK_FALSE(one.revealed.play);
  CHECK(one.picture.views == one.revealed.views);
  REQUIRE(one.question);
  CHECK(one.question->right == 1);
  CHECK(one.question->open == "The run’s answer: 4.");
  CHECK(one.question->as_said == "As you predicted. The run’s answer: 4.");
  CHECK(page.views[one.picture.views[0]].place == "layer 1, shared, head 1");
  const PageStep& two = page.steps[1];
  REQUIRE(two.picture.views.size() == 4);
  CHECK(two.picture.letters == std::vector<std::string>{"A", "B", "A", "B"});
  CHECK(one.picture.letters.empty());
  CHECK(page.views[two.picture.views[1]].model == "niah-gla");
  const std::string html = page_html(page, most);
  CHECK(references(html) == std::vector<std::string>{});
  CHECK(html.find("A &lt;small&gt; lesson") != std::string::npos);
}

#ifndef STATESCOPE_SANITIZE
TEST_CASE("page: the largest of the shipped lessons stay within 5 MB and fetch nothing") {
  qt_application();
  const std::string lesson = GENERATE("collapse", "real");
  FigureRuns runs;
  Recorder recorder(runs, {});
  const Page page = page_of_lesson(load_lesson(find_lesson(lesson)), recorder);
  for (const PageStep& step : page.steps) {
    INFO(step.title);
    CHECK(step.broken.empty());
    CHECK(step.prose.find("unknown") == std::string::npos);
    CHECK((!step.question || step.question->right));
    for (const PagePicture& picture : {step.picture, step.revealed}) {
      for (const std::size_t view : picture.views) {
        CHECK(picture.token >= page.views[view].first);
        CHECK(picture.token < page.views[view].first + page.views[view].tokens);
      }
    }
  }
  CHECK(references(page_html(page, most)) == std::vector<std::string>{});
}
#endif

TEST_CASE("page: Markdown becomes plain elements, whatever stands in it") {
  qt_application();
  CHECK(html_of_markdown("a *b* **c** `d<e>`\n\n1. x\n2. y") ==
        "<p>a <em>b</em> <strong>c</strong> <code>d&lt;e&gt;</code></p>\n<ol>\n<li>x</li>\n<li>y</li>\n</ol>\n");
  CHECK(html_of_markdown("<script>alert(1)</script>").find("<script") == std::string::npos);
  CHECK(html_of_markdown("").empty());
}

TEST_CASE("page: ranges of tokens are read or refused") {
  CHECK(recorded_tokens("3..9").last == 9);
  CHECK(recorded_tokens("-20 .. -1").first == -20);
  CHECK_FALSE(recorded_tokens("5..").last);
  CHECK(recorded_tokens("..5").first == 0);
  for (const char* bad : {"", "5", "a..b", "1..2x"}) CHECK_THROWS_AS(recorded_tokens(bad), Error);
}

TEST_CASE("page: what does not go together is told at once, and nothing is written") {
  const Place place;
  const auto said = [&](const std::string& arguments, int status) {
    INFO(arguments);
    const Outcome outcome = place.run("page " + arguments);
    CHECK(outcome.status == status);
    CHECK(!outcome.errors.empty());
    return outcome.errors;
  };
  CHECK(said("forgetting --layer 1 -o a.html", 2).find("a lesson says that itself") != std::string::npos);
  CHECK(said("forgetting --text words -o a.html", 2).find("a lesson says that itself") != std::string::npos);
  CHECK(said("forgetting routing -o a.html", 2).find("takes one lesson alone") != std::string::npos);
  CHECK(said("remembering -o a.html", 2).find("there is no lesson \"remembering\"") != std::string::npos);
  CHECK(said(kReading + " --view stat -o a.html", 2).find("there is no view \"stat\"") != std::string::npos);
  CHECK(said(kReading + " --size 10x10 -o a.html", 2).find("is not a size") != std::string::npos);
  CHECK(said(kReading + " --tokens 9..3 -o a.html", 1).find("a page from token 9 to token 3 has none") != std::string::npos);
  CHECK(said(kReading + " --tokens 300000.. -o a.html", 1).find("there is no token 300000 (tokens are 0 to") != std::string::npos);
  CHECK(said(kAssets + "figures/mqar.json -o a.html", 1).find("a page has views alone") != std::string::npos);
  place.write("b.html", "mine");
  CHECK(said(kReading + " --tokens 0..1 -o b.html", 1).find("--force") != std::string::npos);
  CHECK(place.text_of("b.html") == "mine");
  CHECK(place.names() == std::vector<std::string>{"b.html"});
}

}  // namespace statescope::page_test
