#include "app/figure/from_view.h"

#include <fmt/format.h>

#include "app/common/console.h"
#include "app/figure/data.h"
#include "engine/error.h"
#include "views/words.h"

namespace statescope {
namespace {

/// What the figure was made from, as `statescope figure` says it.
Provenance provenance_of(const FigureExport& figure) {
  FigureRuns runs;
  return {.spec = figure.spec,
          .sources = sources_of(figure.spec, runs),
          .command = "statescope",
          .program = STATESCOPE_VERSION,
          .device = figure.device};
}

std::filesystem::path data_file(const FigureExport& figure) { return std::filesystem::path(figure.path).replace_extension(".data.h5"); }
std::filesystem::path caption_file(const FigureExport& figure) {
  return std::filesystem::path(figure.path).replace_extension(".caption.txt");
}

}  // namespace

std::unique_ptr<View> build(const ViewRecipe& recipe) {
  const InEnglish paper;
  std::unique_ptr<View> view = recipe.row->make();
  view->set_mode(recipe.mode);
  if (recipe.knob) view->turn(*recipe.knob);
  view->set_range(recipe.range);
  view->build(*recipe.snapshot, recipe.cursor, recipe.findings);
  return view;
}

FigurePanel panel_of(const ViewRecipe& recipe, std::vector<std::string> checkpoints, const PromptInput& prompt) {
  const RunInfo& run = *recipe.snapshot->run;
  FigurePanel panel;
  panel.view = recipe.row->id;
  panel.checkpoints = std::move(checkpoints);
  panel.input = prompt;
  panel.input->generate.reset();
  panel.generate = std::ssize(run.tokens) - run.prompt_length;
  panel.interventions = run.branch.interventions;
  panel.layer = recipe.cursor.layer;
  panel.head = recipe.cursor.head;
  panel.slot = recipe.cursor.slot;
  panel.token = recipe.cursor.token;
  if (recipe.cursor.reference >= 0) panel.reference = recipe.cursor.reference;
  panel.row = recipe.cursor.row;
  panel.column = recipe.cursor.column;
  const std::unique_ptr<View> view = build(recipe);  // in English, with the ways to look that are the layer's
  if (const auto modes = view->modes(); recipe.mode < modes.size()) panel.mode = modes[recipe.mode];
  panel.knob = recipe.knob;
  panel.range = recipe.range;
  return panel;
}

std::vector<std::filesystem::path> files_of(const FigureExport& figure) {
  std::vector<std::filesystem::path> files{figure.path};
  if (figure.with_data) files.push_back(data_file(figure));
  if (figure.with_caption) files.push_back(caption_file(figure));
  return files;
}

std::string write_figure(const FigureExport& figure) {
  const FigureFormat format = figure_format(figure.path.string());
  const std::unique_ptr<View> view = build(figure.recipe);
  std::vector<std::unique_ptr<PanelPicture>> panels;
  panels.push_back(picture_of(*view));
  const Figure drawn(figure.spec, std::move(panels));
  std::optional<Provenance> provenance;
  std::string remark;
  try {
    provenance = provenance_of(figure);
  } catch (const Error& error) {
    remark = error.what();
  }
  const QByteArray bytes = figure_bytes(drawn, format, provenance ? &*provenance : nullptr);
  if (figure.with_data) write_figure_hdf5(drawn, provenance ? to_json(*provenance) : "", data_file(figure).string(), true);
  if (figure.with_caption) ReportFile(caption_file(figure).string(), true).write(drawn.caption());
  ReportFile(figure.path.string(), true).write(bytes.toStdString());
  return remark;
}

}  // namespace statescope
