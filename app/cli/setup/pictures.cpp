// Options of the window, figures, films and pages.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "app/assets.h"
#include "app/cli/setup/setup.h"
#include "app/panels/arrangement.h"
#include "views/chosen.h"

namespace statescope {
namespace {

/// A row's number, or "all". Throws Error.
std::int64_t row_in(const std::string& text) {
  if (text == "all") return kAllRows;
  std::int64_t row = -1;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, row);
  if (error != std::errc() || end != last || row < 0) throw Error(text + " is not a row; write its number, or all");
  return row;
}

/// Where in the run, and how it is looked at.
void add_panel(CLI::App& command, FigurePanel& panel) {
  command.add_option("--mode", panel.mode, "the view's mode, by its name");
  command
      .add_option("--layer", panel.layer, "default: the first that routes, else the first with a state; of experts the first that has some")
      ->check(at_least(0));
  command.add_option("--head", panel.head, "default: 0")->check(at_least(0));
  command.add_option("--slot", panel.slot, "partition, 0: the shared one (default)")->check(at_least(0));
  command.add_option("--token", panel.token, "below 0: counted from the prompt's end (default: -1, its last)")->check(whole_number());
  command.add_option("--reference", panel.reference, "the token to compare with; below 0: counted from the prompt's end")
      ->check(whole_number());
  add_parsed(
      command, "--row", [&panel](const std::string& text) { panel.row = row_in(text); },
      "row of the chosen cell; all: the slot's state as a whole");
  command.add_option("--column", panel.column, "column of the chosen cell (default: the whole row)")->check(at_least(0));
  command.add_option("--knob", panel.knob, "the view's number: λ of the head gates, tokens of the timeline");
  add_parsed(
      command, "--range", [&panel](const std::string& text) { panel.range = figure_range(text); },
      "range of the colours: own, full, most, or low,high");
  command.add_flag("--logarithmic", panel.range.logarithmic, "logarithmic colours: equal ratios are equal steps");
  command.add_option("--do", panel.interventions, "an intervention, as `statescope intervene` has it")->allow_extra_args(false);
  command.add_option("--generate", panel.generate, "tokens (default: as many as the prompt expects)")->check(CLI::Range(0, 1'000'000));
  command.add_option("--title", panel.title, "title above the drawing");
}

/// What all panels have in common.
void add_look(CLI::App& command, FigureSpec& style) {
  command.add_option("--font", style.family, "typeface (default: DejaVu Sans, which is shipped)");
  command.add_option("--line-width", style.line_width, "width of lines, times the usual")->check(CLI::Range(0.1, 10.0));
  add_parsed(
      command, "--map", [&style](const std::string& text) { style.colors = figure_colors(text); },
      "colours of magnitudes: viridis (default), cividis, grey; grey-safe: ever lighter ones for signed numbers too");
  command.add_flag("--transparent", style.transparent, "without a white ground");
  command.add_option("--ticks", style.ticks, "density of ticks, times the usual")->check(CLI::Range(0.1, 4.0));
  command.add_flag("--captions", style.captions, "with the sentences that the view writes about itself");
  command.add_flag("!--no-annotations", style.annotations, "without needle spans, borders of partitions, training length");
  command.add_flag("!--no-color-bar", style.color_bars, "without the bars of colours");
}

/// Options before --size give way to it, those after it stand.
void add_style(CLI::App& command, FigureSpec& style) {
  add_parsed(
      command, "--size", [&style](const std::string& text) { set_size(style, text); },
      "single (89 mm, default), double (183 mm), neurips, iclr (5.5 in), slide (16:9), 120mm, or 89x60mm")
      ->trigger_on_parse();
  command.add_option("--aspect", style.aspect, "width to height of a panel (default: 1.5; similarity 1.2)")->check(CLI::Range(0.1, 10.0));
  command.add_option("--type", style.type_pt, "5 to 12 pt, of the smallest text (default: 6; neurips, iclr 7; slide 10)")
      ->check(CLI::Range(5.0, 12.0));
  command.add_option("--dpi", style.dpi, "dots per inch of a PNG (default: 600)")->check(CLI::Range(50, 2400));
  add_look(command, style);
}

/// Of one that an engine on another machine opens only that machine knows.
std::string wrong_checkpoint(const WindowArguments& window, std::string& path) {
  if (!window.engine.place.empty()) return "";
  std::string found = checkpoint_at(path).string();
  return CLI::ExistingPath(found);
}

/// WIDTHxHEIGHT. Throws Error.
Size page_size(const std::string& text) {
  constexpr int least_width = 240, least_height = 180, most = 2000;
  int width = 0, height = 0;
  const char* last = text.data() + text.size();
  const auto [cross, wrong_width] = std::from_chars(text.data(), last, width);
  const bool has_both = wrong_width == std::errc() && cross != last && *cross == 'x';
  const auto [end, wrong_height] = std::from_chars(has_both ? cross + 1 : last, last, height);
  if (!has_both || wrong_height != std::errc() || end != last || width < least_width || height < least_height ||
      std::max(width, height) > most)
    throw Error(text + " is not a size; write WIDTHxHEIGHT, from 240x180 to 2000x2000");
  return {static_cast<float>(width), static_cast<float>(height)};
}

/// A file says all that a figure is; the command line, beside it, where it goes and what computes it.
void refuse_beside(const CLI::App& command, std::string_view file, const PromptArguments& prompt, std::vector<std::string_view> others) {
  const std::string what = fmt::format("{} says that itself", file);
  if (prompt.given()) throw CLI::ValidationError("prompt", what);
  others.insert(others.end(), {"--output", "--format", "--device", "--precision", "--threads", "--memory", "--force", "--help"});
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0 && std::ranges::none_of(others, [&](std::string_view name) { return option->check_name(std::string(name)); }))
      throw CLI::ValidationError(option->get_name(), what);
  }
}

/// What says which run it is and where in it: a lesson and a spec say that themselves.
void refuse_options_of_runs(const CLI::App& command, const PageArguments& page) {
  constexpr std::array ways{"lesson", "spec", "checkpoint"};
  const PageArguments::Kind kind = page.kind();
  if (kind == PageArguments::Kind::checkpoints) return;
  const std::string what = fmt::format("a {} says that itself", ways[static_cast<std::size_t>(kind)]);
  if (page.what.size() > 1) throw CLI::ValidationError("page", fmt::format("takes one {} alone", ways[static_cast<std::size_t>(kind)]));
  if (page.figure.prompt.given()) throw CLI::ValidationError("prompt", what);
  std::vector<std::string> of_all{"subject",  "--output",    "--size",    "--theme", "--max-size",
                                  "--device", "--precision", "--threads", "--force", "--help"};
  if (kind == PageArguments::Kind::spec) of_all.emplace_back("--tokens");
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0 && std::ranges::none_of(of_all, [&](const std::string& name) { return option->check_name(name); }))
      throw CLI::ValidationError(option->get_name(), what);
  }
}

}  // namespace

void add_window(CLI::App& app, WindowArguments& window) {
  add_engine(app, window.engine);  // before what it has to say about checkpoints
  auto* open = app.add_option("--open", window.checkpoint, "checkpoint to open (default: the one shipped)");
  const auto side_by_side = [&window](const std::vector<std::string>& checkpoints) {
    window.checkpoint = checkpoints.front();
    window.beside.assign(checkpoints.begin() + 1, checkpoints.end());
  };
  app.add_option_function<std::vector<std::string>>("checkpoints", side_by_side, "checkpoints to open side by side, at most four")
      ->expected(1, 4)
      ->check(CLI::Validator([&window](std::string& path) { return wrong_checkpoint(window, path); }, ""))
      ->excludes(open);
  add_prompt(app, window.prompt, false);
  app.get_option_group("prompt")
      ->add_option("--example", window.prompt.example,
                   "an example, of that length, of what the checkpoint was trained on, as inspect reads it")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--number", window.prompt.number, "number of the example, or of the prompt in a file with several (default: 0)")
      ->check(at_least(0));
  add_device(app, window.device);
  add_memory(app, window.memory);
  app.add_option("--theme", window.theme, "light, dark, high-contrast, system")
      ->check(CLI::IsMember({"light", "dark", "high-contrast", "system"}));
  app.add_option("--scale", window.scale, "size of type and spacing, 1 to 3")->check(CLI::Range(1.0F, 3.0F));
  app.add_flag("--no-opengl", window.software, "draw without OpenGL");
  app.add_flag("--no-autoplay", window.no_autoplay, "do not start playing");
  const auto is_png = [](std::string& name) { return name.ends_with(".png") ? "" : name + " does not end in .png"; };
  app.add_option("--screenshot", window.screenshot, "write a PNG of the window at --token, --layer, --head, --slot, and exit")
      ->check(CLI::Validator(is_png, ""));
  app.add_option("--watch", window.watch, "a training's folder: each of its checkpoints is inspected as it comes")
      ->check(CLI::ExistingDirectory);
  app.add_option("--lesson", window.lesson, "begin a lesson: a file, or the name of one in assets/lessons");
  app.add_option("--step", window.step, "the lesson's step to show in the screenshot")->check(CLI::Range(1, 200));
  app.add_flag("--revealed", window.revealed, "show the step's answer in the screenshot");
  app.add_option("--token", window.token, "the token to start at, and to show in the screenshot")->check(at_least(0));
  app.add_option("--layer", window.layer, "the layer, likewise")->check(at_least(0));
  app.add_option("--head", window.head, "the head, likewise")->check(at_least(0));
  app.add_option("--slot", window.slot, "the partition, likewise; 0: the shared one")->check(at_least(0));
  const auto is_view = [](std::string& name) { return wrong_view(name); };
  app.add_option("--view", window.views, "a view to show, given up to six times, with its mode after a slash: routing, decay/Half-life")
      ->allow_extra_args(false)
      ->expected(1, static_cast<int>(most_views))
      ->check(CLI::Validator(is_view, ""))
      ->excludes("--lesson");
  app.add_option("--size", window.size, "size of the screenshot, WIDTHxHEIGHT");
}

void add_figure(CLI::App& app, FigureArguments& figure) {
  CLI::App& command = *app.add_subcommand("figure", "a view, or a grid of them, as a figure for a paper");
  auto* view = command.add_option("view", figure.panel.view, "as the catalogue calls it: state, similarity, needle, …");
  command.add_option("checkpoints", figure.checkpoints, "an .h5 file or a Hugging Face folder; two where the view compares")
      ->expected(0, 2);
  auto* spec = command.add_option("--spec", figure.spec, "a JSON file that says all of it (assets/figures/README.md)");
  auto* from = command.add_option("--from", figure.from, "a figure of this program, to be made again: .pdf, .svg, .png");
  for (CLI::Option* file : {spec, from}) file->excludes(view);
  spec->excludes(from);
  add_prompt(command, figure.prompt, false);
  add_panel(command, figure.panel);
  add_style(command, figure.style);
  command.add_flag("--outlines", figure.style.outlines, "letters as shapes, in PDF, SVG and EPS");
  command.add_option("-o,--output", figure.output, "the .pdf, .svg, .png or .eps to write; -: to standard output")->required();
  command.add_option("--format", figure.format, "pdf, svg, png, eps (default: by the name; of standard output pdf)")
      ->check(CLI::IsMember({"pdf", "svg", "png", "eps"}));
  command.add_flag("--anonymous", figure.anonymous, "no folders and no names of their owners in the figure: for a review that is blind");
  command.add_option("--data", figure.data,
                     "write the numbers to this .h5 or .csv, or those of a chart to this .dat, for pgfplots; -: as CSV to standard output");
  command.add_option("--caption", figure.caption,
                     "write a draft of the caption to this file, for LaTeX where it ends in .tex; -: to standard output");
  command
      .add_option("--preview", figure.preview, "also write a PNG beside it, as seen with this colour vision: protan, deutan, tritan, grey")
      ->check(CLI::IsMember({"protan", "deutan", "tritan", "grey"}));
  add_compute(command, figure.device);
  add_memory(command, figure.memory);
  command.add_flag("--force", figure.force, "replace existing files");
  command.callback([&figure, &command, view, spec, from] {
    if (view->count() + spec->count() + from->count() == 0)
      throw CLI::ValidationError("figure", "needs a view and a checkpoint, --spec or --from");
    const std::vector<std::string_view> beside{"--spec", "--from", "--anonymous", "--data", "--caption", "--preview"};
    if (view->count() == 0) refuse_beside(command, spec->count() > 0 ? "the spec" : "the figure", figure.prompt, beside);
  });
}

void add_film(CLI::App& app, FilmArguments& film) {
  CLI::App& command = *app.add_subcommand("film", "a run, token by token, as a film for a talk; needs ffmpeg");
  FigureArguments& figure = film.figure;
  auto* view = command.add_option("view", figure.panel.view, "as the catalogue calls it: state, routing, attention, …");
  command.add_option("checkpoints", figure.checkpoints, "an .h5 file or a Hugging Face folder; two where the view compares")
      ->expected(0, 2);
  auto* spec = command.add_option("--spec", figure.spec, "a JSON file of panels that move together (assets/figures/README.md)");
  spec->excludes(view);
  add_prompt(command, figure.prompt, false);
  add_panel(command, figure.panel);
  command.remove_option(command.get_option("--token"));
  command.add_option("--first", film.film.first, "the first token to show; below 0: counted from the prompt's end (default: 0)")
      ->check(whole_number());
  command
      .add_option("--last", film.film.last, "the last token to show, not how many; counted likewise (default: the last that was generated)")
      ->check(whole_number());
  command.add_option("--seconds", film.film.seconds_per_token, "seconds for each token (default: 0.5)")->check(CLI::Range(0.01, 60.0));
  command.add_option("--fps", film.film.frames_per_second, "frames a second (default: 30)")->check(CLI::Range(1, 120));
  command.add_option("--width", film.film.width, "pixels, even (default: 1280)")->check(CLI::Range(200, 7680));
  command.add_option("--height", film.film.height, "pixels, even (default: 720)")->check(CLI::Range(200, 4320));
  figure.style.type_pt = 10;
  command.add_option("--type", figure.style.type_pt, "5 to 12 pt, of the smallest text, as if it were 254 mm wide (default: 10)")
      ->check(CLI::Range(5.0, 12.0));
  add_look(command, figure.style);
  command.add_option("-o,--output", figure.output, "the .mp4 or .gif to write; -: to standard output")->required();
  command.add_option("--format", figure.format, "of standard output: mp4 (default), gif")->check(CLI::IsMember({"mp4", "gif"}));
  add_compute(command, figure.device);
  add_memory(command, figure.memory);
  command.add_flag("--force", figure.force, "replace an existing file");
  command.callback([&film, &command, view, spec] {
    if (view->count() + spec->count() == 0) throw CLI::ValidationError("film", "needs a view and a checkpoint, or --spec");
    if (spec->count() > 0)
      refuse_beside(command, "the spec", film.figure.prompt, {"--spec", "--first", "--last", "--seconds", "--fps", "--width", "--height"});
    if (const std::string wrong = wrong_film(film.film); !wrong.empty()) throw CLI::ValidationError("film", wrong);
  });
}

void add_page(CLI::App& app, PageArguments& page, const EngineArguments& engine) {
  CLI::App& command = *app.add_subcommand("page", "a lesson or a run as one HTML file, which a browser steps through without a network");
  FigureArguments& figure = page.figure;
  command
      .add_option("subject", page.what,
                  "a lesson (a file, or the name of one that is shipped), a spec of panels that move together (.json), or checkpoints, at "
                  "most four, side by side")
      ->required()
      ->expected(1, 4);
  add_prompt(command, figure.prompt, false);
  add_panel(command, figure.panel);
  for (const char* name : {"--token", "--mode", "--title"}) command.remove_option(command.get_option(name));
  const auto is_view = [](std::string& name) { return wrong_view(name); };
  command
      .add_option("--view", page.views,
                  "once for each, with its way of looking behind it: routing, state/Change (default: those that a run opens with)")
      ->allow_extra_args(false)
      ->check(CLI::Validator(is_view, ""));
  add_parsed(
      command, "--tokens", [&page](const std::string& text) { page.recorder.tokens = recorded_tokens(text); },
      "FIRST..LAST, one of them may be left out; below 0: counted from the prompt's end (default: all)");
  add_parsed(
      command, "--size", [&page](const std::string& text) { page.recorder.size = page_size(text); },
      "of a view, WIDTHxHEIGHT; a browser scales it to the room there is (default: 480x360)");
  command.add_option("--theme", page.theme, "light or dark at first (default: as the reader's system)")
      ->check(CLI::IsMember({"light", "dark"}));
  command
      .add_option_function<double>(
          "--max-size", [&page](double megabytes) { page.recorder.most_bytes = static_cast<std::size_t>(megabytes * 1e6); },
          "MB; a page that would be larger is not written (default: 20)")
      ->check(CLI::Range(0.1, 1000.0));
  command.add_option("-o,--output", figure.output, "the .html to write")->required();
  add_compute(command, figure.device);
  add_memory(command, figure.memory);
  command.add_flag("--force", figure.force, "replace an existing file");
  command.footer("For example: statescope page forgetting -o forgetting.html");
  command.callback([&command, &page, &engine] {
    page.figure.engine = engine;  // which has its checkpoints
    try {
      refuse_options_of_runs(command, page);
    } catch (const Error& error) {
      throw CLI::ValidationError("page", error.what());
    }
  });
}

void add_batch(CLI::App& app, BatchArguments& batch) {
  CLI::App& command = *app.add_subcommand("batch", "many figures: specs × checkpoints × prompts; continues where it was interrupted");
  command
      .add_option(
          "file", batch.file,
          R"(JSON: {"figures": [spec files], "checkpoints": […], "prompts": […], "output": "folder", "format": "pdf"}; checkpoints and )"
          "prompts take the place of the specs' own")
      ->required();
  command.add_option("--processes", batch.processes, "processes at a time (default: 2)")->check(CLI::Range(1, 256));
  add_device(command, batch.device);
  command.add_flag("--force", batch.force, "make again what is there");
}

}  // namespace statescope
