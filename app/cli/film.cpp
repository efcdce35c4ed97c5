#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/common/recording.h"
#include "app/figure/fonts_alone.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {

int film_command(const FilmArguments& arguments) {
  const FigureArguments& figure = arguments.figure;
  const FigureSpec spec = figure.spec.empty() ? figure.spec_of_options() : load_figure_spec(figure.spec);
  const FontsAlone fonts;
  ProgressBar bar("film");
  const Interruption interruption;
  FigureRuns runs(
      std::filesystem::path(figure.spec).parent_path(), figure.device,
      [&bar](double fraction, const std::string& what) {
        bar.show(fraction, what);
        return !Interruption::asked();
      },
      recording_budgets(figure.memory));
  try {
    write_film(spec, arguments.film, runs, figure.output, figure.force);
  } catch (const Error&) {
    if (Interruption::asked()) throw Cancelled();  // which ffmpeg has heard too
    throw;
  }
  print_notes(runs.notes());
  fmt::print("{}\n", printable(figure.output));
  return 0;
}

}  // namespace statescope
