#include "app/web/page_of_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/figure/view_picture.h"
#include "engine/error.h"
#include "views/parts.h"

namespace statescope {
namespace {

/// "niah-gla and niah-sse-gla-n4k1"
std::string models_of(const std::vector<RecordedView>& views) {
  std::vector<std::string> names;
  for (const RecordedView& view : views)
    if (std::ranges::count(names, view.model) == 0) names.push_back(view.model);
  return joined(names, " and ");
}

}  // namespace

Page page_of_run(const std::vector<FigurePanel>& wanted, Recorder& recorder, std::vector<std::string>* left_out) {
  if (std::ranges::any_of(wanted, [](const FigurePanel& panel) { return panel.view.empty(); }))
    throw Error("a chart does not move: a page has views alone");
  recorder.expect(wanted.size());
  Page page;
  std::vector<FigurePanel> panels;
  std::vector<std::string> checkpoints;  // by letter
  for (const FigurePanel& panel : wanted) {
    try {
      page.views.push_back(recorder.record(panel));
    } catch (const NothingShown& nothing) {
      const bool last = &panel == &wanted.back();
      if (!left_out || (last && panels.empty())) throw;
      left_out->push_back(fmt::format("{} is left out: {}", panel.view, nothing.what()));
      continue;
    }
    page.picture.views.push_back(panels.size());
    panels.push_back(panel);
    if (std::ranges::count(checkpoints, panel.checkpoints.front()) == 0) checkpoints.push_back(panel.checkpoints.front());
  }
  for (const FigurePanel& panel : panels) {
    const auto place = std::ranges::find(checkpoints, panel.checkpoints.front());
    if (checkpoints.size() > 1) page.picture.letters.emplace_back(1, static_cast<char>('A' + (place - checkpoints.begin())));
  }
  const RunInfo run = recorder.runs().run(panels.front(), panels.front().checkpoints.front()).info();
  page.title = models_of(page.views);
  page.about = fmt::format("{}, {} read, {} generated", run.model.family, tokens_text(run.prompt_length),
                           tokens_text(std::ssize(run.tokens) - run.prompt_length));
  page.picture.token = page.views.front().first;
  page.runs.push_back(run);
  return page;
}

}  // namespace statescope
