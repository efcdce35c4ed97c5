#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/assets.h"
#include "app/cli/engine.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/common/recording.h"
#include "app/figure/data.h"
#include "app/figure/figure.h"
#include "app/figure/fonts_alone.h"
#include "app/figure/latex.h"
#include "datasets/files.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

/// Refuses other bytes under the names that the figure was made from.
void check_sources(const std::vector<FigureSource>& now, const std::vector<FigureSource>& then, const std::string& figure) {
  for (const FigureSource& source : then) {
    const auto found = std::ranges::find(now, source.name, &FigureSource::name);
    if (found != now.end() && found->sha256 != source.sha256)
      throw Error(fmt::format("{}: {} is another file now: SHA-256 {} instead of {}", figure, source.name, found->sha256, source.sha256));
  }
}

std::optional<FigureEyes> eyes_called(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, FigureEyes>, 4> all{
      {{"protan", FigureEyes::protan}, {"deutan", FigureEyes::deutan}, {"tritan", FigureEyes::tritan}, {"grey", FigureEyes::grey}}};
  const auto found = std::ranges::find(all, name, [](const auto& row) { return row.first; });
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

/// Of the output's name, or the one that is asked for.
FigureFormat format_of(const FigureArguments& arguments) {
  if (!arguments.format.empty()) return figure_format("." + arguments.format);
  return arguments.output == "-" ? FigureFormat::pdf : figure_format(arguments.output);
}

/// One output fits there.
void check_standard_output(const FigureArguments& arguments) {
  const std::array outputs{arguments.output, arguments.data, arguments.caption};
  if (std::ranges::count(outputs, "-") > 1) throw OptionsError("of --output, --data and --caption one can go to standard output");
  if (arguments.output == "-" && !arguments.preview.empty()) throw OptionsError("--preview lies beside the output, which has no name");
}

bool is_hdf5(const std::string& path) { return fs::path(path).extension() == ".h5"; }

bool ends_in(const std::string& path, const char* ending) { return fs::path(path).extension() == ending; }

void check_data_name(const std::string& path) {
  if (!path.empty() && path != "-" && !is_hdf5(path) && !ends_in(path, ".csv") && !ends_in(path, ".dat"))
    throw OptionsError(path + ": data are .h5 or .csv, or .dat for pgfplots");
}

}  // namespace

std::string FigureArguments::preview_file() const {
  return preview.empty() ? "" : fs::path(output).replace_extension(preview + ".png").string();
}

FigureSpec FigureArguments::spec_of_options(RunReader* reader) const {
  FigurePanel one = panel;
  one.checkpoints = checkpoints;
  if (prompt.is_chat() && checkpoints.size() != 1) throw OptionsError("--chat is for one checkpoint: each has a template of its own");
  const bool is_said = prompt.text || !prompt.ids.empty() || prompt.is_chat() || (!prompt.file.empty() && is_stream(prompt.file));
  const std::string checkpoint = checkpoints.empty() ? "" : checkpoints[0];
  if (is_said) one.input = reader ? reader->prompt(prompt, checkpoint) : load_prompt(prompt, "", checkpoint);
  if (!is_said) one.prompt = prompt.file;
  check_panel(one);
  FigureSpec all = style;
  all.panels = {one};
  return all;
}

int figure_command(const FigureArguments& arguments) {
  const FigureFormat format = format_of(arguments);
  check_standard_output(arguments);
  check_data_name(arguments.data);
  const bool csv = !arguments.data.empty() && !is_hdf5(arguments.data);
  ReportFile output(arguments.output, arguments.force), caption(arguments.caption, arguments.force),
      preview(arguments.preview_file(), arguments.force), table(csv ? arguments.data : "", arguments.force);
  if (!csv && !arguments.data.empty()) Draft(arguments.data, arguments.force);  // says at once what is in the way

  std::optional<Provenance> recorded, from;  // as the figure has it; with files where they are now
  if (!arguments.from.empty()) recorded = read_provenance(arguments.from);
  const bool is_elsewhere = !arguments.engine.place.empty();  // and its files are called as they were
  if (recorded) from = is_elsewhere ? *recorded : found_again(*recorded, fs::path(arguments.from).parent_path());

  const FontsAlone fonts;
  std::optional<Interruption> interruption;  // an engine is told that nobody waits any more
  if (is_elsewhere) interruption.emplace();
  const std::unique_ptr<EngineRuns> engine = reach_engine(arguments.engine, arguments.device, arguments.memory);
  const FigureSpec spec = from                     ? from->spec
                          : arguments.spec.empty() ? arguments.spec_of_options(engine.get())
                                                   : load_figure_spec(arguments.spec);
  const fs::path folder = fs::path(from ? arguments.from : arguments.spec).parent_path();

  std::optional<ProgressBar> bar(std::in_place, "figure");
  FigureRuns runs(
      folder, arguments.device,
      [&](double fraction, const std::string& what) {
        bar->show(fraction, what);
        return !Interruption::asked();
      },
      recording_budgets(arguments.memory), engine.get());
  const std::vector<FigureSource> sources = sources_of(spec, runs);
  if (from) check_sources(sources, from->sources, arguments.from);
  const Figure figure = build_figure(spec, runs);
  bar.reset();
  print_notes(runs.notes());
  Provenance made{.spec = recorded ? recorded->spec : settled(spec, runs),
                  .sources = recorded ? recorded->sources : sources,
                  .command = from ? from->command : arguments.command,
                  .program = from ? from->program : STATESCOPE_VERSION,
                  .device = runs.device_name()};
  if (from && from->program != STATESCOPE_VERSION)
    print_note(fmt::format("{} was made by Statescope {}, this is {}", arguments.from, from->program, STATESCOPE_VERSION));
  if (const std::string warning = figure.warning(); !warning.empty()) print_note(warning);

  if (arguments.anonymous) made = anonymous(std::move(made));
  const QByteArray bytes = figure_bytes(figure, format, &made);
  if (csv) table.prepare(ends_in(arguments.data, ".dat") ? pgf_table(figure) : figure_csv(figure));
  caption.prepare(ends_in(arguments.caption, ".tex") ? latex_caption(figure) : figure.caption());
  const std::optional<FigureEyes> eyes = eyes_called(arguments.preview);
  if (eyes) preview.prepare(figure_preview(figure, *eyes).toStdString());
  output.prepare(bytes.toStdString());
  if (!csv && !arguments.data.empty()) write_figure_hdf5(figure, to_json(made), arguments.data, arguments.force);
  if (csv) table.publish();
  if (eyes) preview.publish();
  if (!arguments.caption.empty()) caption.publish();
  output.publish();
  const bool speaks = !output.is_standard_output() && !table.is_standard_output() && !caption.is_standard_output();
  if (speaks) fmt::print("{}\n", printable(arguments.output));
  return 0;
}

}  // namespace statescope
