// Figures opened again: what they were made from, where they were made.
#include <algorithm>

#include "app/figure/provenance.h"
#include "app/window/figure_in_window.h"
#include "app/window/main_window.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// Those that show views, of the first one's checkpoint and run, once each; a window shows one run.
std::vector<FigurePanel> panels_to_open(const Provenance& figure, const std::filesystem::path& path) {
  std::vector<FigurePanel> panels;
  for (const FigurePanel& panel : figure.spec.panels) {
    const bool known = std::ranges::find(panels, panel.view, &FigurePanel::view) != panels.end();
    if (!panel.view.empty() && panel.input && !panel.checkpoints.empty() && !known) panels.push_back(panel);
  }
  if (panels.empty()) throw Error(path.string() + " shows no view of a run; `statescope figure --from` makes it again");
  return panels;
}

}  // namespace

bool is_figure(const std::filesystem::path& path) {
  return path.extension() == ".pdf" || path.extension() == ".svg" || path.extension() == ".png";
}

void MainWindow::open_figure(const std::filesystem::path& path) {
  try {
    const std::vector<FigurePanel> panels = panels_to_open(read_provenance(path), path);
    const FigurePanel& first = panels.front();
    PromptInput prompt = *first.input;
    prompt.generate = first.generate;
    const std::filesystem::path checkpoint = figure_file(first.checkpoints.front(), path.parent_path(), "checkpoints");
    open_checkpoint(checkpoint, std::move(prompt));
    const auto then = [this](auto next) { connect(navigator_.get(), &Navigator::opening_ended, this, next, Qt::SingleShotConnection); };
    then([this, panels, checkpoint, then] {
      if (navigator_->checkpoint() != checkpoint) return;  // it could not be opened
      std::vector<Intervention> interventions;
      for (const std::string& text : panels.front().interventions) interventions.push_back(parse_intervention(text));
      if (interventions.empty()) return arrive(panels);
      then([this, panels] { arrive(panels); });
      navigator_->intervene(std::move(interventions));
    });
  } catch (const Error& error) {
    show_error(QString::fromUtf8(error.what()));
  }
}

void MainWindow::arrive(const std::vector<FigurePanel>& panels) {
  std::vector<std::string_view> views;
  for (const FigurePanel& panel : panels) {
    if (panel.view != strip_view) views.push_back(panel.view);
  }
  if (!views.empty()) arrange(arrangement_of(views));
  for (ViewPanel* place : stage_->panels()) {
    const auto panel = std::ranges::find(panels, place->row().id, &FigurePanel::view);
    if (panel != panels.end()) place->take_look(*panel);
  }
  const FigurePanel& first = panels.front();
  navigator_->move({.token = first.token,
                    .layer = first.layer,
                    .head = first.head,
                    .slot = first.slot,
                    .row = first.row,
                    .column = first.column,
                    .reference = first.reference.value_or(-1)});
  say(tr("Opened what the figure was made from."));
}

}  // namespace statescope
