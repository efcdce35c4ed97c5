#include <fmt/format.h>

#include <QApplication>
#include <algorithm>

#include "app/assets.h"
#include "app/cli/engine.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/common/recording.h"
#include "app/figure/fonts_alone.h"
#include "app/panels/arrangement.h"
#include "app/web/page_of_lesson.h"
#include "app/web/page_of_run.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

/// What runs of the checkpoints open with in the window.
std::vector<std::string> first_views(const PageArguments& arguments, FigureRuns& runs, RunReader* reader) {
  std::vector<RunInfo> planned;
  for (const std::string& checkpoint : arguments.what) {
    FigureArguments one = arguments.figure;
    one.panel.view = view_catalogue().front().id;
    one.checkpoints = {checkpoint};
    planned.push_back(runs.planned(one.spec_of_options(reader).panels.front(), checkpoint));
  }
  std::vector<const ModelInfo*> models;
  for (const RunInfo& run : planned) models.push_back(&run.model);
  const OpeningViews views = opening_views(models);
  return {views.begin(), views.end()};
}

/// Each view of each checkpoint; a view that compares is given the first two.
std::vector<FigurePanel> panels_of(const PageArguments& arguments, FigureRuns& runs, RunReader* reader) {
  const std::vector<std::string> views = !arguments.views.empty() ? arguments.views : first_views(arguments, runs, reader);
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
      panels.push_back(one.spec_of_options(reader).panels.front());
    }
  }
  return panels;
}

Page made_page(const PageArguments& arguments, Recorder& recorder, RunReader* reader, std::vector<std::string>& left_out) {
  switch (arguments.kind()) {
    case PageArguments::Kind::lesson:
      return page_of_lesson(load_lesson(find_lesson(arguments.what.front())), recorder);
    case PageArguments::Kind::spec:
      return page_of_run(load_figure_spec(arguments.what.front()).panels, recorder);
    case PageArguments::Kind::checkpoints:
      break;
  }
  const bool chosen = !arguments.views.empty();
  return page_of_run(panels_of(arguments, recorder.runs(), reader), recorder, chosen ? nullptr : &left_out);
}

/// The name of a shipped one.
bool is_lesson(const fs::path& name) {
  if (name.has_extension() || name.has_parent_path()) return false;
  try {
    find_lesson(name.string());
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

PageArguments::Kind PageArguments::kind() const {
  const fs::path first = what.front();
  std::error_code none;
  if (first.extension() == ".json") return Kind::spec;
  if (first.extension() == ".md") return Kind::lesson;
  if (!figure.engine.place.empty()) return is_lesson(first) ? Kind::lesson : Kind::checkpoints;
  if (first.extension() == ".h5" || fs::is_directory(first, none) || !shipped_checkpoint(first.string()).empty()) return Kind::checkpoints;
  if (first.has_extension() || first.has_parent_path())
    throw Error(first.string() + ": there is no lesson, spec or checkpoint of that name");
  find_lesson(first.string());
  return Kind::lesson;
}

int page_command(const PageArguments& arguments) {
  ReportFile file(arguments.figure.output, arguments.figure.force);
  if (!arguments.figure.engine.place.empty() && arguments.kind() == PageArguments::Kind::lesson)
    throw OptionsError("--engine: a lesson is about models that come with the program; leave it out");
  const Offscreen<QApplication> application;
  const Interruption interruption;
  const FigureArguments& figure = arguments.figure;
  const std::unique_ptr<EngineRuns> engine = reach_engine(figure.engine, figure.device, figure.memory);
  std::optional<ProgressBar> bar(std::in_place, "page");
  const fs::path folder = arguments.kind() == PageArguments::Kind::spec ? fs::path(arguments.what.front()).parent_path() : fs::path();
  FigureRuns runs(
      folder, arguments.figure.device,
      [&bar](double fraction, const std::string& what) {
        bar->show(fraction, what);
        return !Interruption::asked();
      },
      recording_budgets(arguments.figure.memory), engine.get());
  Recorder recorder(runs, arguments.recorder);
  std::vector<std::string> left_out;
  Page page = made_page(arguments, recorder, engine.get(), left_out);
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
