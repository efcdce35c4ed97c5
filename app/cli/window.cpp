#include <fmt/format.h>

#include <cstdlib>

#include "app/assets.h"
#include "app/cli/engine.h"
#include "app/common/recording.h"
#include "app/lesson/lesson.h"
#include "app/window/headless.h"
#include "app/window/window_main.h"
#include "engine/error.h"

namespace statescope {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

/// Also true where the caller chose a Qt platform: they know what they do.
bool has_display() { return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") || is_set("QT_QPA_PLATFORM"); }

/// Whether the place to begin at, or what is shown there, is given.
bool stands_somewhere(const WindowArguments& arguments) {
  return arguments.token >= 0 || arguments.layer >= 0 || arguments.head >= 0 || arguments.slot >= 0 || !arguments.views.empty();
}

/// Otherwise the window begins with its start page.
bool opens_something(const WindowArguments& arguments) {
  return arguments.prompt.given() || !arguments.beside.empty() || !arguments.screenshot.empty() || !arguments.watch.empty() ||
         stands_somewhere(arguments);
}

/// What the work without a display would pass over.
void refuse_without_display(const WindowArguments& arguments) {
  const std::string& lesson = arguments.lesson;
  if (!lesson.empty()) {
    find_lesson(lesson);
    throw OptionsError(
        fmt::format("a lesson needs a display; as a page for a browser it needs none: statescope page {} -o lesson.html", lesson));
  }
  if (!arguments.beside.empty()) throw OptionsError("models side by side need a display, or --screenshot");
  if (stands_somewhere(arguments)) throw OptionsError("--view, --token, --layer, --head and --slot need a display, or --screenshot");
}

ThemeChoice theme_called(const std::string& name) {
  if (name == "light") return ThemeChoice::light;
  if (name == "dark") return ThemeChoice::dark;
  return name == "high-contrast" ? ThemeChoice::high_contrast : ThemeChoice::system;
}

}  // namespace

int window_command(int argc, char** argv, const WindowArguments& arguments) {
  const std::string& engine = arguments.engine.place;
  if (!engine.empty()) check_fits_engine(arguments.engine, arguments.device, arguments.memory);
  if (!engine.empty() && !arguments.watch.empty())
    throw OptionsError(fmt::format("--watch does not go with --engine {}: it looks at a folder of this machine", engine));
  if (!has_display()) {
    // Before any Qt application object: with neither display nor platform Qt would abort.
    setenv("QT_QPA_PLATFORM", "offscreen", 1);
    if (!arguments.watch.empty()) throw OptionsError("--watch needs a display; without one: statescope inspect --watch " + arguments.watch);
    if (arguments.screenshot.empty()) {
      refuse_without_display(arguments);
      if (!engine.empty()) throw OptionsError("--engine needs a display, or --screenshot");
      fmt::print("No display (DISPLAY and WAYLAND_DISPLAY are unset): answering the prompt and writing pictures of the views instead.\n");
      return run_headless(argc, argv, arguments);
    }
  }
  WindowOptions options;
  options.checkpoint = arguments.checkpoint;
  if (options.checkpoint.empty() && opens_something(arguments)) options.checkpoint = default_run().checkpoint;
  options.beside.assign(arguments.beside.begin(), arguments.beside.end());
  const bool is_made_there = arguments.prompt.is_chat() || arguments.prompt.special || arguments.prompt.example > 0;
  if (!engine.empty() && is_made_there)
    options.prompt_there = arguments.prompt;
  else
    options.prompt = first_prompt(arguments.prompt, arguments.checkpoint);
  if (!arguments.lesson.empty()) options.lesson = find_lesson(arguments.lesson);
  options.training = arguments.watch;
  options.step = arguments.step;
  options.revealed = arguments.revealed;
  options.theme = theme_called(arguments.theme);
  options.device = arguments.device;
  options.engine = engine;
  options.engine_token_file = arguments.engine.token_file;
  options.engine_authorities = arguments.engine.authorities;
  options.engine_options = engine_options(arguments.device, arguments.memory);
  options.memory = recording_budgets(arguments.memory).memory_budget;
  options.scale = arguments.scale;
  options.software = arguments.software;
  options.autoplay = !arguments.no_autoplay;
  options.screenshot = arguments.screenshot;
  options.token = arguments.token;
  options.layer = arguments.layer;
  options.head = arguments.head;
  options.slot = arguments.slot;
  options.views = arguments.views;
  if (std::sscanf(arguments.size.c_str(), "%dx%d", &options.width, &options.height) != 2 || options.width < 200 || options.height < 200 ||
      options.width > 16384 || options.height > 16384) {
    throw Error(fmt::format("--size {}: expected WIDTHxHEIGHT, 200 to 16384 each", arguments.size));
  }
  return run_window(argc, argv, options);
}

}  // namespace statescope
