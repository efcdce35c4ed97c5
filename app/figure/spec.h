// A figure as plain data: its paper, its style, and what stands in each place of its grid. Written and read as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/figure/chart_keys.h"
#include "engine/session/session.h"
#include "views/view.h"

namespace statescope {

/// What stands in one place: a view of a run, or a study of several (studies.h).
struct FigurePanel {
  std::string view;                          // id in the catalogue; empty: `chart`
  std::string chart;                         // name of a study
  std::vector<std::string> checkpoints;      // of a view its own, then the one that it compares with; of a study all
  std::vector<std::string> data;             // files that a study reads
  std::optional<std::int64_t> length, load;  // of its scores those of so many tokens, and of so many needles or pairs; unset: all
  std::string prompt;                        // a file; empty: `input`, or an example of the task that the checkpoint was trained on
  std::optional<PromptInput> input;          // the prompt itself
  std::optional<std::int64_t> generate;      // tokens; unset: as many as the prompt expects
  std::vector<std::string> interventions;    // engine/run/intervention.h
  std::optional<std::int64_t> layer;         // unset: interesting_layer
  std::int64_t head = 0, slot = 0;
  std::optional<std::int64_t> token;      // below 0: counted from the prompt's end, −1 its last; unset: that one
  std::optional<std::int64_t> reference;  // likewise: the token to compare with
  std::int64_t row = -1, column = -1;     // what is chosen of the state (views/chosen.h); −1: nothing
  std::string mode;                       // one of View::modes; empty: the first
  std::optional<double> knob;
  RangeChoice range;
  ChartKeys keys;                    // of a chart
  std::optional<std::string> title;  // unset: what is special about this panel
};

/// Which colours a heatmap of magnitudes has. Signed ones have diverging colours; in grey, and where grey has to be safe (viridis then),
/// ever lighter ones from the least to the greatest.
enum class FigureColors { viridis, cividis, grey, grey_safe };

struct FigureSpec {
  double width_mm = 89;
  std::optional<double> height_mm;      // unset: by `aspect`
  std::optional<double> max_height_mm;  // the grid's rows go on on further pages (PDF); unset: one page, however high
  std::optional<double> aspect;         // width to height of each panel; unset: usual_aspect of the first panel
  std::string family;                   // of type; empty: the shipped one
  double type_pt = 6;                   // the smallest that is written; 5 … 12
  double line_width = 1;                // of lines, times the usual
  FigureColors colors = FigureColors::viridis;
  bool shared_range = false;  // all panels have one range of colours
  bool color_bars = true, titles = true, annotations = true;
  bool captions = false;        // the sentences that views write about themselves
  std::optional<bool> letters;  // a, b, c; unset: where there are several panels
  double ticks = 1;             // how densely they stand, of the usual
  bool transparent = false;     // without a white ground
  bool outlines = false;        // letters as shapes, for who has not the typeface
  int dpi = 600;                // of a PNG
  std::int64_t columns = 0;     // of the grid; 0: as the lists that panels were expanded from have it, else as square as it goes
  std::vector<FigurePanel> panels;

  std::int64_t grid_columns() const;
  std::int64_t grid_rows() const;
};

/// Throws Error "name:line: …" or "name: panels[2].layer …". Lists under "checkpoint", "layer", "head", "slot", "token" and "mode" of a
/// panel make a panel of each combination, the last list along the rows of the grid. What "defaults" says holds for all panels.
FigureSpec parse_figure_spec(std::string_view text, const std::string& name);
/// "-": standard input.
FigureSpec load_figure_spec(const std::filesystem::path& path);
/// What parse_figure_spec reads as the same spec: keys in one order, numbers in full, nothing left out that is not usual.
std::string to_json(const FigureSpec& spec);

/// Width to height of a panel in which that view, or a chart (empty), leaves no side empty.
double usual_aspect(std::string_view view);

/// Width and, unless a name's, height: "single", "double", "neurips", "iclr", "slide", "89mm", "89x60mm". Sets the usual size of type too.
/// Throws Error.
void set_size(FigureSpec& spec, std::string_view size);
/// Throws Error.
FigureColors figure_colors(std::string_view name);
/// "own", "full", "most" or "low,high". Throws Error.
RangeChoice figure_range(std::string_view text);

/// Throws Error where it is neither a view with its checkpoints and mode nor a chart.
void check_panel(const FigurePanel& panel);

/// Of a way to look, among those of the view as it was last built. Throws Error that names them.
std::size_t mode_number(const View& view, std::string_view id, const std::string& mode);

/// The file that a spec in `folder` means: there, where the program was started, or among the assets in `kind` ("checkpoints", "prompts").
/// Throws Error.
std::filesystem::path figure_file(const std::string& name, const std::filesystem::path& folder, const char* kind);

}  // namespace statescope
