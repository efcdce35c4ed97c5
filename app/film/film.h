// A figure that moves: a run, token by token, as a film for a talk.
#pragma once

#include <filesystem>
#include <string_view>

#include "app/figure/render.h"

namespace statescope {

struct FilmOptions {
  std::int64_t first = 0;            // token; below 0: counted from the prompt's end, −1 its last
  std::optional<std::int64_t> last;  // unset: the last that was generated
  int width = 1280, height = 720;    // pixels, even
  int frames_per_second = 30;        // 1 … 120
  double seconds_per_token = 0.5;    // each token has as many frames as any other
};

/// What is wrong with them; empty: nothing.
std::string wrong_film(const FilmOptions& options);

/// All panels of the spec at one token after the other, the step's motion between them, encoded by the system's ffmpeg as `path` ends: .mp4
/// or .gif. `spec` has the panels' style; type is as large as if the film were 254 mm wide. Throws Error, Cancelled where `runs` was told
/// to; nothing is left half-written.
void write_film(FigureSpec spec, const FilmOptions& options, FigureRuns& runs, const std::filesystem::path& path, bool overwrite);

}  // namespace statescope
