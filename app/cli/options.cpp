#include "app/cli/options.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/error.h"
#include "views/chosen.h"

namespace statescope {
namespace {

template <class Set>
CLI::Option* add_parsed(CLI::App& command, const char* name, const Set& set, const char* help) {
  return command.add_option_function<std::string>(
      name,
      [set, name](const std::string& text) {
        try {
          set(text);
        } catch (const Error& error) {
          throw CLI::ValidationError(name, error.what());
        }
      },
      help);
}

/// A row's number, or "all". Throws Error.
std::int64_t row_in(const std::string& text) {
  if (text == "all") return kAllRows;
  std::int64_t row = -1;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, row);
  if (error != std::errc() || end != last || row < 0) throw Error(text + " is no row: write its number, or all");
  return row;
}

Precision precision_called(const std::string& text) {
  if (text == "float32") return Precision::float32;
  if (text == "bfloat16") return Precision::bfloat16;
  throw Error(text + " is neither float32 nor bfloat16");
}

/// Where in the run, and how it is looked at.
void add_panel(CLI::App& command, FigurePanel& panel) {
  command.add_option("--mode", panel.mode, "one of the view's ways to be looked at, by its name");
  command.add_option("--layer", panel.layer, "default: the first that routes, else the first with a state")->check(at_least(0));
  command.add_option("--head", panel.head, "default: 0")->check(at_least(0));
  command.add_option("--slot", panel.slot, "partition, 0: the shared one (default)")->check(at_least(0));
  command.add_option("--token", panel.token, "below 0: counted from the prompt's end (default: -1, its last)")->check(whole_number());
  command.add_option("--reference", panel.reference, "the token to compare with, counted likewise")->check(whole_number());
  add_parsed(
      command, "--row", [&panel](const std::string& text) { panel.row = row_in(text); },
      "of the chosen cell; all: the slot's state as a whole");
  command.add_option("--column", panel.column, "of the chosen cell (default: the whole row)")->check(at_least(0));
  command.add_option("--knob", panel.knob, "the view's number: λ of the head gates, tokens of the timeline");
  add_parsed(
      command, "--range", [&panel](const std::string& text) { panel.range = figure_range(text); },
      "of colours: own, full, most, or low,high");
  command.add_flag("--logarithmic", panel.range.logarithmic, "colours of equal ratios are equal steps");
  command.add_option("--do", panel.interventions, "an intervention, as `statescope intervene` has it")->allow_extra_args(false);
  command.add_option("--generate", panel.generate, "tokens (default: as many as the prompt expects)")->check(CLI::Range(0, 1'000'000));
  command.add_option("--title", panel.title, "above the drawing");
}

/// What all panels have in common.
void add_look(CLI::App& command, FigureSpec& style) {
  command.add_option("--font", style.family, "typeface (default: DejaVu Sans, which is shipped)");
  command.add_option("--line-width", style.line_width, "times the usual")->check(CLI::Range(0.1, 10.0));
  add_parsed(
      command, "--map", [&style](const std::string& text) { style.colors = figure_colors(text); },
      "colours of magnitudes: viridis (default), cividis, grey");
  command.add_option("--ticks", style.ticks, "how densely, times the usual")->check(CLI::Range(0.1, 4.0));
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
  command.add_option("--type", style.type_pt, "5 to 12 pt (default: 7; neurips, iclr 8; slide 12)")->check(CLI::Range(5.0, 12.0));
  command.add_option("--dpi", style.dpi, "of a PNG (default: 600)")->check(CLI::Range(50, 2400));
  add_look(command, style);
}

}  // namespace

CLI::Validator at_least(std::int64_t least) {
  const auto wrong = [least](std::string& text) {
    std::int64_t number = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return error == std::errc() && end == last && number >= least ? "" : fmt::format("{} is no whole number from {} on", text, least);
  };
  return {wrong, ""};
}

CLI::Validator whole_number() {
  const auto wrong = [](std::string& text) {
    std::int64_t number = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return error == std::errc() && end == last ? "" : fmt::format("{} is no whole number, or too large a one", text);
  };
  return {wrong, ""};
}

void add_chat_prompt(CLI::App& group, PromptArguments& prompt) {
  group.add_option("--chat", prompt.chat, "what the user says to an instruct model: the prompt that its chat template makes of it");
  group.add_option("--chat-file", prompt.chat_file, "a conversation: a JSON list of messages, or an object as `statescope chat` reads it");
}

void add_chat_settings(CLI::App& command, PromptArguments& prompt) {
  command.add_option("--chat-set", prompt.chat_settings, "NAME=VALUE for the chat template: enable_thinking=false")
      ->allow_extra_args(false);
}

void add_prompt(CLI::App& command, PromptArguments& prompt, bool required) {
  auto* group = command.add_option_group("prompt", "what the model reads");
  group->add_option("--text", prompt.text, "a text");
  group->add_option("--ids", prompt.ids, "a file of token ids, or - for standard input");
  group->add_option(
      "--prompt", prompt.file,
      "a prompt file, or - for standard input: text, JSON with \"prompt\", \"expected\", \"spans\", or JSONL of examples (ours, "
      "RULER's, lm-eval's)");
  add_chat_prompt(*group, prompt);
  group->require_option(required ? 1 : 0, 1);
  add_chat_settings(command, prompt);
  command.add_flag("--special", prompt.special, "with --text: names of special tokens in it (<|im_end|>) are those tokens, not letters");
}

void add_json(CLI::App& command, std::string& json, const std::string& what) {
  command.add_option("--json", json, "write " + what + " as JSON to FILE; without one, or with -, to standard output")
      ->option_text("[FILE]");
}

void add_device(CLI::App& command, DeviceChoice& device) {
  command.add_option("--device", device.name, "cpu, cuda, cuda:1, …; auto: a CUDA device if there is one (default: cpu)")
      ->check(CLI::Validator(wrong_device_name, ""));
  add_parsed(
      command, "--precision", [&device](const std::string& text) { device.precision = precision_called(text); },
      "of the operands of products: float32 (default), bfloat16, which is faster");
}

void add_compute(CLI::App& command, DeviceChoice& device) {
  add_device(command, device);
  command.add_option("--threads", device.threads, "of the CPU; 0: one per core")->check(CLI::Range(0, 1024));
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
  command.add_option("-o,--output", figure.output, "the .pdf, .svg, .png or .eps to write")->required();
  command.add_option("--data", figure.data, "write the numbers to this .h5 or .csv");
  command.add_option("--caption", figure.caption, "write a draft of the caption to this file");
  command.add_option("--preview", figure.preview, "write it also as those eyes see it, as PNG beside it: protan, deutan, tritan, grey")
      ->check(CLI::IsMember({"protan", "deutan", "tritan", "grey"}));
  add_compute(command, figure.device);
  command.add_flag("--force", figure.force, "replace existing files");
  command.callback([&figure, view, spec, from] {
    if (view->count() + spec->count() + from->count() == 0)
      throw CLI::ValidationError("figure", "needs a view and a checkpoint, --spec or --from");
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
  command.add_option("--first", film.film.first, "token; below 0: counted from the prompt's end (default: 0)")->check(whole_number());
  command.add_option("--last", film.film.last, "token, counted likewise (default: the last that was generated)")->check(whole_number());
  command.add_option("--seconds", film.film.seconds_per_token, "of each token (default: 0.5)")->check(CLI::Range(0.01, 60.0));
  command.add_option("--fps", film.film.frames_per_second, "frames a second (default: 30)")->check(CLI::Range(1, 120));
  command.add_option("--width", film.film.width, "pixels, even (default: 1280)")->check(CLI::Range(200, 7680));
  command.add_option("--height", film.film.height, "pixels, even (default: 720)")->check(CLI::Range(200, 4320));
  figure.style.type_pt = 12;
  command.add_option("--type", figure.style.type_pt, "5 to 12 pt, as if it were 254 mm wide (default: 12)")->check(CLI::Range(5.0, 12.0));
  add_look(command, figure.style);
  command.add_option("-o,--output", figure.output, "the .mp4 or .gif to write")->required();
  add_compute(command, figure.device);
  command.add_flag("--force", figure.force, "replace an existing file");
  command.callback([&film, view, spec] {
    if (view->count() + spec->count() == 0) throw CLI::ValidationError("film", "needs a view and a checkpoint, or --spec");
    if (const std::string wrong = wrong_film(film.film); !wrong.empty()) throw CLI::ValidationError("film", wrong);
  });
}

void add_batch(CLI::App& app, BatchArguments& batch) {
  CLI::App& command = *app.add_subcommand("batch", "many figures: specs × checkpoints × prompts; goes on where it was broken off");
  command
      .add_option(
          "file", batch.file,
          R"(JSON: {"figures": [spec files], "checkpoints": […], "prompts": […], "output": "folder", "format": "pdf"}; checkpoints and )"
          "prompts take the place of the specs' own")
      ->required();
  command.add_option("--processes", batch.processes, "at a time (default: 2)")->check(CLI::Range(1, 256));
  add_device(command, batch.device);
  command.add_flag("--force", batch.force, "make again what is there");
}

}  // namespace statescope
