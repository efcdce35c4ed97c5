// A figure, built: its panels in their places, drawn on any canvas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/figure/panel.h"
#include "app/figure/room.h"
#include "app/figure/runs.h"
#include "app/figure/spec.h"

namespace statescope {

/// What tells panels apart, where it is said once: above the columns, above the rows, above each panel.
struct FigureTitles {
  std::vector<std::string> columns, rows, panels;  // empty where nothing is to be said
};
FigureTitles figure_titles(const FigureSpec& spec);

class Figure {
 public:
  /// printed: nothing of what is chosen in the window, and all that the views show has its room; moving: a picture of a film, which shows
  /// the cursor.
  enum class Kind { printed, moving };

  /// Panels that are built, in the order of the spec. Where the spec has neither height nor aspect, the figure is as high as they need.
  /// Throws Error where there is no room for what they show, with the size that would have it.
  Figure(FigureSpec spec, std::vector<std::unique_ptr<PanelPicture>> panels, Kind kind = Kind::printed);

  const FigureSpec& spec() const { return spec_; }
  const std::vector<std::unique_ptr<PanelPicture>>& panels() const { return panels_; }
  /// Of a page.
  double height_mm() const { return layout_.height_mm; }
  std::size_t pages() const;
  /// Units of the canvas: type of the usual size is then as large on paper as the spec has it.
  Size size() const;
  /// Units of the canvas to a millimetre.
  double units_per_mm() const;
  /// In light colours. The canvas has size().
  void draw(Canvas& canvas, std::size_t page = 0) const;
  /// "Similarity", "recall, speed": what it is of, in a few words.
  std::string subject() const;
  /// What a paper would say below it: a sentence or two for each panel.
  std::string caption() const;
  /// In a line, what of its colours greyscale would make ambiguous; empty: nothing.
  std::string warning() const;

 private:
  /// The size of a page with so many rows, and in units what stands above the columns, the rows and the panels.
  struct Layout {
    double width_mm = 0, height_mm = 0;
    std::size_t rows = 1;
    float over_columns = 0, over_rows = 0, over_panels = 0;
  };

  bool has_letters() const;
  Frame frame() const;
  /// The bar that all panels with colours would have, each of its own; empty: they differ, or there are not two of them.
  std::optional<DrawnBar> bar_of_all() const;
  /// As it is in that place of the figure, or, for want of one, of a panel of about the usual size.
  std::optional<DrawnBar> bar_of(std::size_t panel, const Layout* layout = nullptr, Rect body = {}) const;
  float bar_width() const;
  std::vector<std::string> bar_name() const;
  Size size_of(const Layout& layout) const;
  float panel_width(double width_mm) const;
  /// Of that width and height; unset: by the panels' aspect, `higher` times as high, as many rows on a page as it may have.
  Layout layout_of(double width_mm, std::optional<double> height_mm, double higher = 1) const;
  std::size_t pages(const Layout& layout) const;
  bool has_room(const Layout& layout) const;
  /// RoomCanvas::collision
  std::string first_collision(const Layout& layout) const;
  /// The least tried size, of about the same shape, that has room; of no size, if none has.
  Layout size_that_does() const;
  void draw(Canvas& canvas, const Layout& layout, std::size_t page) const;
  Rect panel_place(std::size_t panel, const Layout& layout) const;
  void draw_bar_of_all(Canvas& canvas, const Layout& layout, std::size_t page) const;
  void draw_panel(std::size_t panel, Canvas& canvas, Rect area, const Layout& layout) const;
  void draw_bar_label(std::size_t panel, Canvas& canvas, Rect body, const Layout& layout) const;

  FigureSpec spec_;
  std::vector<std::unique_ptr<PanelPicture>> panels_;
  Kind kind_;
  FigureTitles titles_;
  std::vector<std::string> bar_labels_;  // of the panels' colours; empty where there is no bar
  std::optional<DrawnBar> bar_;          // that stands for all
  float bar_width_ = 0;                  // what it takes at the right
  Layout layout_;
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
