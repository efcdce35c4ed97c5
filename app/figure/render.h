// A figure, built: its panels in their places, drawn on any canvas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/figure/panel.h"
#include "app/figure/runs.h"
#include "app/figure/spec.h"

namespace statescope {

class Figure {
 public:
  /// Panels that are built, in the order of the spec. Throws Error where they have no room.
  Figure(FigureSpec spec, std::vector<std::unique_ptr<PanelPicture>> panels);

  const FigureSpec& spec() const { return spec_; }
  const std::vector<std::unique_ptr<PanelPicture>>& panels() const { return panels_; }
  /// By the panels' aspect where the spec has none.
  double height_mm() const;
  /// Units of the canvas: type of the usual size is then as large on paper as the spec has it.
  Size size() const;
  /// Units of the canvas to a millimetre.
  double units_per_mm() const;
  /// In light colours. The canvas has size().
  void draw(Canvas& canvas) const;
  /// What a paper would say below it: a sentence or two for each panel.
  std::string caption() const;
  /// In a line, what of its colours greyscale would make ambiguous; empty: nothing.
  std::string warning() const;

 private:
  std::string title(std::size_t panel) const;
  bool has_letters() const;
  void draw_panel(std::size_t panel, Canvas& canvas, Rect area, const Frame& frame) const;
  float draw_bar_label(std::size_t panel, Canvas& canvas, Rect body, const Frame& frame) const;

  FigureSpec spec_;
  std::vector<std::unique_ptr<PanelPicture>> panels_;
  std::vector<std::string> bar_labels_;  // of the panels' colours; empty where there is no bar
  float title_height_ = 0;               // of the line above each panel, in units
};

/// "a", "b", …, "z", "aa"
std::string panel_letter(std::size_t panel);

/// Runs what the spec asks for, each checkpoint and prompt once, and builds all panels. Throws Error; Cancelled where `runs` was told to.
Figure build_figure(const FigureSpec& spec, FigureRuns& runs);

/// The spec with all that its files said filled in: the prompts themselves, places as numbers. Its runs must have been built.
FigureSpec settled(const FigureSpec& spec, FigureRuns& runs);

/// A view that has been built, as a panel; it outlives the figure.
std::unique_ptr<PanelPicture> picture_of(const View& view);

}  // namespace statescope
