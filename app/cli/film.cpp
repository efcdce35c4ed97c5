#include <fmt/format.h>

#include <QTemporaryDir>
#include <cstdio>

#include "app/cli/engine.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/common/recording.h"
#include "app/figure/fonts_alone.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {

namespace {

namespace fs = std::filesystem;

/// Where the film is written: a file of its own where it goes to standard output, in which ffmpeg could not go back.
class FilmFile {
 public:
  explicit FilmFile(const FigureArguments& figure) : is_streamed_(figure.output == "-"), path_(figure.output) {
    if (!is_streamed_ && !figure.format.empty())
      throw OptionsError("--format is for standard output; the name of a file must end in .mp4 or .gif");
    if (!is_streamed_) return;
    if (!folder_.emplace().isValid()) throw Error("no room for temporary files: " + folder_->errorString().toStdString());
    path_ = fs::path(folder_->path().toStdString()) / ("film." + (figure.format.empty() ? "mp4" : figure.format));
  }
  const fs::path& path() const { return path_; }

  /// To standard output, or where it is.
  void hand_over() const {
    if (!is_streamed_) return fmt::print("{}\n", printable(path_.string()));
    const std::string bytes = read_file(path_, fs::file_size(path_));
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  }

 private:
  bool is_streamed_;
  fs::path path_;
  std::optional<QTemporaryDir> folder_;
};

}  // namespace

int film_command(const FilmArguments& arguments) {
  const FigureArguments& figure = arguments.figure;
  const FilmFile film(figure);
  const FontsAlone fonts;
  const Interruption interruption;
  const std::unique_ptr<EngineRuns> engine = reach_engine(figure.engine, figure.device, figure.memory);
  const FigureSpec spec = figure.spec.empty() ? figure.spec_of_options(engine.get()) : load_figure_spec(figure.spec);
  ProgressBar bar("film");
  FigureRuns runs(
      std::filesystem::path(figure.spec).parent_path(), figure.device,
      [&bar](double fraction, const std::string& what) {
        bar.show(fraction, what);
        return !Interruption::asked();
      },
      recording_budgets(figure.memory), engine.get());
  try {
    write_film(spec, arguments.film, runs, film.path(), figure.force);
  } catch (const Error&) {
    if (Interruption::asked()) throw Cancelled();  // which ffmpeg has heard too
    throw;
  }
  print_notes(runs.notes());
  film.hand_over();
  return 0;
}

}  // namespace statescope
