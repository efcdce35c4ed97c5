#include <fmt/format.h>

#include <QApplication>
#include <algorithm>

#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/common/recording.h"
#include "app/figure/fonts_alone.h"
#include "app/web/page_of_lesson.h"
#include "app/web/page_of_run.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

/// Each view of each checkpoint; a view that compares is given the first two.
std::vector<FigurePanel> panels_of(const PageArguments& arguments, FigureRuns& runs) {
  const std::vector<std::string> views =
      !arguments.views.empty() ? arguments.views : opening_views(runs.model(arguments.what.front())->info());
  std::vector<FigurePanel> panels;
  for (const std::string& checkpoint : arguments.what) {
    for (const std::string& named : views) {
      const std::size_t slash = named.find('/');
      FigureArguments one = arguments.figure;
      one.panel.view = named.substr(0, slash);
      one.panel.mode = slash == named.npos ? "" : named.substr(slash + 1);
      one.checkpoints = {checkpoint};
      const auto row = std::ranges::find(view_catalogue(), one.panel.view, &ViewRow::id);
      const std::unique_ptr<View> view = row->make();
      if (!one.panel.mode.empty()) view->set_mode(mode_number(*view, row->id, one.panel.mode));
      if (view->compares() && checkpoint != arguments.what.front()) continue;
      if (view->compares() && arguments.what.size() > 1) one.checkpoints.push_back(arguments.what[1]);
      panels.push_back(one.spec_of_options().panels.front());
    }
  }
  return panels;
}

Page made_page(const PageArguments& arguments, Recorder& recorder, std::vector<std::string>& left_out) {
  switch (arguments.kind()) {
    case PageArguments::Kind::lesson:
      return page_of_lesson(load_lesson(find_lesson(arguments.what.front())), recorder);
    case PageArguments::Kind::spec:
      return page_of_run(load_figure_spec(arguments.what.front()).panels, recorder);
    case PageArguments::Kind::checkpoints:
      break;
  }
  const bool chosen = !arguments.views.empty();
  return page_of_run(panels_of(arguments, recorder.runs()), recorder, chosen ? nullptr : &left_out);
}

}  // namespace

PageArguments::Kind PageArguments::kind() const {
  const fs::path first = what.front();
  std::error_code none;
  if (first.extension() == ".json") return Kind::spec;
  if (first.extension() == ".md") return Kind::lesson;
  if (first.extension() == ".h5" || fs::is_directory(first, none)) return Kind::checkpoints;
  if (first.has_extension() || first.has_parent_path())
    throw Error(first.string() + ": there is no lesson, spec or checkpoint of that name");
  find_lesson(first.string());
  return Kind::lesson;
}

int page_command(const PageArguments& arguments) {
  ReportFile file(arguments.figure.output, arguments.figure.force);
  const Offscreen<QApplication> application;
  std::optional<ProgressBar> bar(std::in_place, "page");
  const Interruption interruption;
  const fs::path folder = arguments.kind() == PageArguments::Kind::spec ? fs::path(arguments.what.front()).parent_path() : fs::path();
  FigureRuns runs(
      folder, arguments.figure.device,
      [&bar](double fraction, const std::string& what) {
        bar->show(fraction, what);
        return !Interruption::asked();
      },
      recording_budgets(arguments.figure.memory));
  Recorder recorder(runs, arguments.recorder);
  std::vector<std::string> left_out;
  Page page = made_page(arguments, recorder, left_out);
  page.theme = arguments.theme;
  const std::string html = page_html(page, arguments.recorder.most_bytes);
  bar.reset();
  print_notes(runs.notes());
  print_notes(left_out);
  file.write(html);
  if (!file.is_standard_output()) fmt::print("{}\n", printable(arguments.figure.output));
  return 0;
}

}  // namespace statescope
