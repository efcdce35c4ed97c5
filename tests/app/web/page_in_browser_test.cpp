// A page in Chromium and Firefox, without a window: it steps, answers, and says under the pointer what the program would.
#include <QTemporaryDir>
#include <QTextDocumentFragment>
#include <fstream>
#include <regex>
#include <sstream>

#include "app/figure/view_picture.h"
#include "app/lesson/lesson.h"
#include "app/web/page_of_lesson.h"
#include "app/web/page_of_run.h"
#include "tests/app/web/browsers.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"
#include "views/hits.h"

namespace statescope::page_in_browser_test {
namespace {

/// Calls `check` with each browser that is there, and says which are not.
template <class Check>
void in_each_browser(const Check& check) {
  std::vector<std::string> missing;
  for (const std::unique_ptr<test::Browser>& browser : test::browsers(missing)) {
    INFO(browser->name());
    check(*browser);
  }
  for (const std::string& name : missing) WARN("skipped: there is no " << name);
}

/// A page on disk; `at` gives what a browser has made of it, as HTML.
class Opened {
 public:
  Opened(const Page& page, test::Browser& browser) : browser_(browser) { std::ofstream(file()) << page_html(page, 50'000'000); }

  std::string at(const std::string& place) const { return browser_.dom("file://" + file() + "#" + place); }

 private:
  std::string file() const { return folder_.filePath("page.html").toStdString(); }
  test::Browser& browser_;
  QTemporaryDir folder_;
};

/// The text of the element with that id, where it has no elements in it.
std::string text_of(const std::string& dom, const std::string& id) {
  std::smatch found;
  if (!std::regex_search(dom, found, std::regex("id=\"" + id + "\"[^>]*>([^<]*)<"))) return "there is no " + id;
  return QTextDocumentFragment::fromHtml(QString::fromStdString("<pre>" + found[1].str() + "</pre>")).toPlainText().toStdString();
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// The same words, numbers to three digits.
bool same_line(const std::string& shown, const std::string& exact) {
  const auto same_word = [](const std::string& a, const std::string& b) {
    char *end_a = nullptr, *end_b = nullptr;
    const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
    return end_a == a.c_str() || end_b == b.c_str() ? a == b : x == Approx(y).epsilon(6e-3) && std::string(end_a) == end_b;
  };
  return std::ranges::equal(words_of(shown), words_of(exact), same_word);
}

/// Its lines in their order: all but what choosing a place would show, and what is remarked of each of many places.
void check_same(const std::string& shown, const std::string& exact) {
  INFO(shown << "\n---\n" << exact);
  std::istringstream of_page(shown), of_program(exact);
  std::size_t lines = 0;
  for (std::string line, other; std::getline(of_page, line); ++lines) {
    bool found = false;
    while (!found && std::getline(of_program, other)) found = same_line(line, other);
    CHECK(found);
  }
  CHECK(lines >= 3);
}

FigurePanel panel_of(const std::string& view) {
  FigurePanel panel;
  panel.view = view;
  panel.checkpoints = {"niah-sse-gla-n4k1.h5"};
  panel.prompt = "needle.json";
  return panel;
}

}  // namespace

TEST_CASE("page in a browser: a run steps, and what stands under the pointer is the program's") {
  qt_application();
  FigureRuns runs;
  Recorder recorder(runs, {.tokens = {.first = 10, .last = 14}});
  const std::vector<FigurePanel> panels{panel_of("state"), panel_of("routing"), panel_of("predictions"), panel_of("decay")};
  const Page made = page_of_run(panels, recorder);
  TextWidths widths;
  in_each_browser([&](test::Browser& browser) {
    const Opened page(made, browser);
    for (std::size_t i = 0; i < panels.size(); ++i) {
      FigurePanel panel = panels[i];
      panel.token = 12;
      const auto picture = make_view_picture(panel, runs);
      WebCanvas canvas(recorder.options().size, widths);
      picture->view()->draw(canvas, {0, 0, canvas.size().w, canvas.size().h}, {light_theme(), 1, {.hints = false}});
      HitRegions hits;
      for (const WebCanvas::Region& region : canvas.regions()) hits.add(region.rect, region.visible, region.grid);
      REQUIRE(!canvas.regions().empty());
      const auto cells = [](const WebCanvas::Region& region) { return region.grid.rows * region.grid.columns; };
      const Rect rect = std::ranges::max(canvas.regions(), {}, cells).visible;
      const Point at{rect.x + 0.4F * rect.w, rect.y + 0.6F * rect.h};
      const auto hit = hits.at(at);
      REQUIRE(hit);
      const std::string dom = page.at(fmt::format("token=12&point={},{},{}", i, at.x, at.y));
      INFO(panel.view);
      CHECK(dom.find("data-token=\"12\"") != std::string::npos);
      check_same(text_of(dom, "tip"), picture->view()->tooltip(*hit));
      CHECK(text_of(dom, "token").starts_with("token 12 of 256"));
      CHECK(text_of(dom, "problem").empty());
    }
  });
}

TEST_CASE("page in a browser: a lesson goes to its steps, asks, and says the run's answer") {
  qt_application();
  FigureRuns runs;
  Recorder recorder(runs, {});
  const std::string text =
      "---\ntitle: A lesson\ncheckpoint: niah-gla.h5\ntext: the code of hanna is 4 1 7 7\nviews: state\n---\n"
      "## One\ntoken: 3\n\nWords.\n\n## Two\ntoken: 2\ncaption: the rows\n\npredict: How many layers?\n- few [.. 3]\n- more [3 ..]\n"
      "answer: layers\ntoken: 5\n\nIt has {layers}.\n";
  const Page made = page_of_lesson(parse_lesson(text, "l.md"), recorder);
  in_each_browser([&](test::Browser& browser) {
    const Opened page(made, browser);
    CHECK(text_of(page.at("step=1"), "heading") == "One");
    const std::string open = page.at("step=2");
    CHECK(text_of(open, "question") == "How many layers?");
    CHECK(text_of(open, "verdict").empty());
    CHECK(text_of(open, "caption") == "Look at: the rows");
    CHECK(open.find("data-token=\"2\"") != std::string::npos);
    const std::string wrong = page.at("step=2&answer=1");
    CHECK(text_of(wrong, "verdict") == "Not what you predicted. The run’s answer: 4.");
    CHECK(wrong.find("It has 4.") != std::string::npos);
    CHECK(wrong.find("data-token=\"5\"") != std::string::npos);
    CHECK(wrong.find(">✗  few</button>") != std::string::npos);
    CHECK(wrong.find(">✓  more</button>") != std::string::npos);
    CHECK(text_of(page.at("step=2&answer=2"), "verdict") == "As you predicted. The run’s answer: 4.");
    CHECK(text_of(page.at("step=2&answer=0"), "verdict") == "The run’s answer: 4.");

    const auto order = [](const std::string& dom, std::initializer_list<const char*> parts) {
      std::vector<std::size_t> places;
      for (const char* part : parts) places.push_back(dom.find(part));
      CHECK(places.back() != std::string::npos);
      CHECK(std::ranges::is_sorted(places));
    };
    order(open, {"id=\"caption\"", "id=\"prose\"", "id=\"question\"", "<figure>"});
    browser.width = 600;  // a phone's
    order(page.at("step=2"), {"id=\"caption\"", "<figure>", "id=\"prose\"", "id=\"question\""});
    order(page.at("step=2&answer=2"), {"id=\"caption\"", "id=\"question\"", "id=\"verdict\"", "<figure>", "id=\"reveal\""});
    browser.width = 1200;
  });
}

}  // namespace statescope::page_in_browser_test
