// What every view costs the interface thread at awkward sizes: building it, and drawing it without pixels and with Qt's painter.
#include <fmt/format.h>

#include <QApplication>
#include <QImage>
#include <QPainter>
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "app/canvas/paper_canvas.h"
#include "app/canvas/text_canvas.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/view.h"

using namespace statescope;

namespace {

constexpr Size kArea{1600, 900};

struct Case {
  std::string name;
  Snapshot snapshot;
  Cursor cursor;
};

std::vector<Case> cases() {
  const Sample large({.tokens = 8, .partitions = 8, .heads = 16, .rows = 128, .columns = 128});
  const Sample rows({.tokens = 8, .partitions = 24, .heads = 1, .rows = 120, .columns = 32});
  const Sample tokens({.tokens = 32768, .partitions = 16, .heads = 2, .rows = 16, .columns = 16});
  Snapshot last = tokens.at(20);
  last.token = 32767;
  return {{"9 slots x 16 heads x 128 x 128", large.at(7), {.token = 7, .head = 3, .slot = 2, .row = 5, .column = 5}},
          {"25 slots x 120 rows", rows.at(7), {.token = 7, .slot = 2, .row = 5, .column = 5}},
          {"32768 tokens", last, {.token = 32767, .slot = 2, .row = 5, .column = 5}}};
}

/// Milliseconds.
struct Cost {
  std::string what;
  double ask = 0, build = 0, draw = 0, paint = 0;
};

Cost cost_of(const ViewRow& row, std::size_t mode, const Case& c) {
  const auto view = row.make();
  view->set_mode(mode);
  const std::string name = view->modes().empty() ? "" : fmt::format(", {}", view->modes()[mode]);
  Cost cost{.what = fmt::format("{}{} | {}", row.title, name, c.name)};
  const Findings findings = sample_findings(view->questions(c.snapshot, c.cursor), c.snapshot);
  const auto milliseconds = [](const auto& work) {  // the least of three: other work on the machine only adds
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
      const auto start = std::chrono::steady_clock::now();
      work();
      least = std::min(least, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return least;
  };
  cost.ask = milliseconds([&] { view->questions(c.snapshot, c.cursor); });
  cost.build = milliseconds([&] { view->build(c.snapshot, c.cursor, findings); });
  const Frame frame{light_theme(), 1};
  const Rect area{0, 0, kArea.w, kArea.h};
  cost.draw = milliseconds([&] {
    TextCanvas canvas(kArea);
    view->draw(canvas, area, frame);
  });
  QImage image(static_cast<int>(kArea.w), static_cast<int>(kArea.h), QImage::Format_RGB32);
  cost.paint = milliseconds([&] {
    QPainter painter(&image);
    PaperCanvas canvas(painter, kArea, nullptr, {.moving = true});
    view->draw(canvas, area, frame);
  });
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  const QApplication application(argc, argv);
  std::vector<Cost> costs;
  for (const Case& c : cases()) {
    for (const ViewRow& row : view_catalogue()) {
      for (std::size_t mode = 0; mode < std::max<std::size_t>(1, row.make()->modes().size()); ++mode)
        costs.push_back(cost_of(row, mode, c));
    }
  }
  std::ranges::stable_sort(costs, std::ranges::greater{}, [](const Cost& cost) { return std::max(cost.build, cost.draw); });
  fmt::print("{:>8} {:>8} {:>8} {:>8}  ms, {} x {} units, the slowest first\n", "ask", "build", "draw", "paint", kArea.w, kArea.h);
  for (const Cost& cost : costs)
    fmt::print("{:8.2f} {:8.2f} {:8.2f} {:8.2f}  {}\n", cost.ask, cost.build, cost.draw, cost.paint, cost.what);
}
