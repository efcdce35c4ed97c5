#include "app/film/film.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/figure/figure.h"
#include "app/figure/view_picture.h"
#include "app/film/encoder.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/place_words.h"

namespace statescope {
namespace {

constexpr double mm_per_inch = 25.4, slide_mm = 254, motion_seconds = 0.4;

/// Tokens [first, last] of the film, in the run of its first panel.
struct FilmedTokens {
  std::int64_t first, last;
  std::int64_t tokens() const { return last - first + 1; }
};

std::int64_t place_in(std::int64_t token, const RunInfo& run) { return token_place(token, run.prompt_length, std::ssize(run.tokens)); }

FilmedTokens filmed_tokens(const FilmOptions& options, const RunInfo& run) {
  const FilmedTokens filmed{place_in(options.first, run), options.last ? place_in(*options.last, run) : std::ssize(run.tokens) - 1};
  if (filmed.last < filmed.first) throw Error(fmt::format("a film from token {} to token {} has none", filmed.first, filmed.last));
  return filmed;
}

/// All panels at that token.
Figure figure_at(FigureSpec spec, std::int64_t token, FigureRuns& runs) {
  std::vector<std::unique_ptr<PanelPicture>> pictures;
  for (FigurePanel& panel : spec.panels) {
    panel.token = token;
    pictures.push_back(make_view_picture(panel, runs));
  }
  return {std::move(spec), std::move(pictures), Figure::Kind::moving};
}

/// So many frames: the step from the token before, where there is one, then rest.
void add_token(const Figure& figure, const FilmOptions& options, bool moves, Encoder& encoder) {
  const double dpi = options.width * mm_per_inch / slide_mm;
  const auto frames = std::lround(options.frames_per_second * options.seconds_per_token);
  const double moving = moves ? std::min(motion_seconds, options.seconds_per_token) * options.frames_per_second : 1;  // frames
  QImage image;
  for (long frame = 0; frame < frames; ++frame) {
    if (static_cast<double>(frame) < moving) {
      for (const auto& panel : figure.panels()) panel->set_progress(std::min(1.0F, static_cast<float>((frame + 1) / moving)));
      image = figure_image(figure, dpi);
    }
    encoder.add(image);
  }
}

}  // namespace

std::string wrong_film(const FilmOptions& options) {
  if (options.width % 2 != 0 || options.height % 2 != 0) return "both sides of a film are even";
  if (std::lround(options.frames_per_second * options.seconds_per_token) < 1)
    return "a token would have no frame: more seconds or more frames";
  return {};
}

void write_film(FigureSpec spec, const FilmOptions& options, FigureRuns& runs, const std::filesystem::path& path, bool overwrite) {
  if (std::ranges::any_of(spec.panels, [](const FigurePanel& panel) { return panel.view.empty(); }))
    throw Error("a chart does not move: a film can only show views");
  spec.width_mm = slide_mm;
  spec.height_mm = slide_mm * options.height / options.width;
  Draft draft(path, overwrite);
  OutputFile(draft).finish();  // says in our words why not
  const FigurePanel& leader = spec.panels.front();
  const FilmedTokens filmed = filmed_tokens(options, runs.planned(leader, leader.checkpoints.front()));
  Encoder encoder(draft.path(), path.extension().string(), options.width, options.height, options.frames_per_second);
  for (std::int64_t token = filmed.first; token <= filmed.last; ++token) {
    runs.begin(static_cast<std::size_t>(token - filmed.first), static_cast<std::size_t>(filmed.tokens()));
    add_token(figure_at(spec, token, runs), options, token > filmed.first, encoder);
    runs.tell(1, fmt::format("token {} of {}", token, filmed.last));
  }
  encoder.finish();
  draft.publish();
}

}  // namespace statescope
