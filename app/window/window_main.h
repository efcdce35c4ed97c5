// The window, as the command line starts it.
#pragma once

#include <QString>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/common/prompts.h"
#include "engine/device.h"
#include "engine/session/session.h"

namespace statescope {

enum class ThemeChoice { system, light, dark, high_contrast };

struct WindowOptions {
  std::filesystem::path checkpoint;           // empty: the window opens without a run
  std::vector<std::filesystem::path> beside;  // checkpoints to compare with it, at most three
  PromptInput prompt;
  std::optional<PromptArguments> prompt_there;  // instead, where the engine makes it of the checkpoint's files
  std::string engine;                           // HOST:PORT, ssh://USER@HOST; empty: this program's own
  std::string engine_token_file, engine_authorities;
  std::vector<std::string> engine_options;  // where ssh starts it
  DeviceChoice device;
  std::size_t memory = 0;  // bytes of a recording (Session)
  ThemeChoice theme = ThemeChoice::system;
  float scale = 0;        // of type and spacing, 1 … 3; 0: as last time
  bool software = false;  // draw without OpenGL
  bool autoplay = true;   // play soon after the first run stands, unless a place is asked for

  /// A PNG to write when the first run stands at the place below; then the program ends.
  std::string screenshot;
  /// Where the window stands when the first run does; −1 keeps the place that the window chooses.
  std::int64_t token = -1, layer = -1, head = -1, slot = -1;
  std::vector<std::string> views;  // of the stage (arrangement_of); empty: as last time
  bool has_place() const { return token >= 0 || layer >= 0 || head >= 0 || slot >= 0 || !views.empty(); }
  std::filesystem::path training;   // a folder to watch; empty: none
  std::filesystem::path lesson;     // begun instead of opening the checkpoint; empty: none
  std::int64_t step = 1;            // of the lesson, in a screenshot
  bool revealed = false;            // its question answered
  int width = 1600, height = 1000;  // of the screenshot
};

struct WindowDevice {
  std::shared_ptr<Backend> backend;  // null: the CPU
  std::string why_cpu;               // a sentence, where that is not what was asked for
};
/// What the window reads on. Never throws for a device that cannot be used.
WindowDevice open_window_device(const DeviceChoice& choice);

/// What the window runs on, in a sentence; then what is missing and what to do about it. `why_no_opengl` is empty where OpenGL draws.
QString start_words(const WindowDevice& device, const std::string& why_no_opengl, Precision precision = Precision::float32);

/// Opens the window and runs until it is closed; the exit status.
int run_window(int argc, char** argv, const WindowOptions& options);

}  // namespace statescope
