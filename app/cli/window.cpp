#include <fmt/format.h>

#include <cstdlib>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/common/recording.h"
#include "app/lesson/lesson.h"
#include "app/remote/tunnel.h"
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

/// Otherwise the window begins with its start page.
bool opens_something(const WindowArguments& arguments) {
  const bool stands =
      arguments.token >= 0 || arguments.layer >= 0 || arguments.head >= 0 || arguments.slot >= 0 || !arguments.views.empty();
  return arguments.prompt.given() || !arguments.beside.empty() || !arguments.screenshot.empty() || !arguments.watch.empty() || stands;
}

/// What only an engine's own machine has. Throws OptionsError.
void check_fits_engine(const WindowArguments& arguments) {
  const std::string& place = arguments.engine.place;
  const bool by_ssh = is_ssh(place);
  const auto refuse = [&](bool given, const char* option, const char* why) {
    if (given) throw OptionsError(fmt::format("{} does not go with --engine {}: {}", option, place, why));
  };
  const char* const reads = "it reads the checkpoint on this machine";
  refuse(arguments.prompt.example > 0, "--example", reads);
  refuse(arguments.prompt.is_chat(), "--chat", reads);
  refuse(arguments.prompt.special, "--special", reads);
  refuse(!arguments.watch.empty(), "--watch", "it looks at a folder of this machine");
  refuse(!by_ssh && arguments.device.name != "cpu", "--device", "statescope serve has been told which");
  refuse(!by_ssh && arguments.memory > 0, "--memory", "statescope serve has been told how much");
  refuse(by_ssh && !arguments.engine.token_file.empty(), "--engine-token-file", "the engine is started with a token of its own");
  refuse(by_ssh && !arguments.engine.authorities.empty(), "--engine-ca", "ssh encrypts");
}

/// What `serve` is told of these where ssh starts it.
std::vector<std::string> engine_options(const WindowArguments& arguments) {
  std::vector<std::string> options{"--device", arguments.device.name, "--precision",
                                   arguments.device.precision == Precision::bfloat16 ? "bfloat16" : "float32"};
  if (arguments.memory > 0) options.insert(options.end(), {"--memory", std::to_string(arguments.memory)});
  return options;
}

ThemeChoice theme_called(const std::string& name) {
  if (name == "light") return ThemeChoice::light;
  if (name == "dark") return ThemeChoice::dark;
  return name == "high-contrast" ? ThemeChoice::high_contrast : ThemeChoice::system;
}

}  // namespace

int window_command(int argc, char** argv, const WindowArguments& arguments) {
  if (!arguments.engine.place.empty()) check_fits_engine(arguments);
  if (!has_display()) {
    // Before any Qt application object: with neither display nor platform Qt would abort.
    setenv("QT_QPA_PLATFORM", "offscreen", 1);
    if (!arguments.watch.empty()) throw OptionsError("--watch needs a display; without one: statescope inspect --watch " + arguments.watch);
    if (arguments.screenshot.empty()) {
      if (!arguments.engine.place.empty()) throw OptionsError("--engine needs a display, or --screenshot");
      fmt::print("No display (DISPLAY and WAYLAND_DISPLAY are unset): answering the prompt and writing pictures of the views instead.\n");
      return run_headless(argc, argv, arguments);
    }
  }
  WindowOptions options;
  options.checkpoint = arguments.checkpoint;
  if (options.checkpoint.empty() && opens_something(arguments)) options.checkpoint = default_run().checkpoint;
  options.beside.assign(arguments.beside.begin(), arguments.beside.end());
  options.prompt = first_prompt(arguments.prompt, arguments.checkpoint);
  if (!arguments.lesson.empty()) options.lesson = find_lesson(arguments.lesson);
  options.training = arguments.watch;
  options.step = arguments.step;
  options.revealed = arguments.revealed;
  options.theme = theme_called(arguments.theme);
  options.device = arguments.device;
  options.engine = arguments.engine.place;
  options.engine_token_file = arguments.engine.token_file;
  options.engine_authorities = arguments.engine.authorities;
  options.engine_options = engine_options(arguments);
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
