// A view of the window as a figure: built again from what it was built from, on any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "app/figure/figure.h"

namespace statescope {

struct ViewRecipe {
  const ViewRow* row = nullptr;
  std::size_t mode = 0;
  std::optional<double> knob;
  RangeChoice range;
  std::shared_ptr<const Snapshot> snapshot;
  Cursor cursor;
  Findings findings;
};

/// In English, whatever the window's language.
std::unique_ptr<View> build(const ViewRecipe& recipe);

/// Where `statescope figure` finds the same: the recipe's place in its run, of that prompt and these checkpoints (the second: what the view
/// compares with).
FigurePanel panel_of(const ViewRecipe& recipe, std::vector<std::string> checkpoints, const PromptInput& prompt);

struct FigureExport {
  ViewRecipe recipe;
  FigureSpec spec;  // of one panel
  std::string device;
  std::filesystem::path path;
  bool with_data = false, with_caption = false;
};
/// Where its files go: `path`, and beside it, where asked for, its numbers as .data.h5 (a checkpoint of the same name is safe) and its
/// caption as .caption.txt.
std::vector<std::filesystem::path> files_of(const FigureExport& figure);
/// Puts them in the place of whatever is there. Gives what is to be said of the figure: empty, or why it does not say what it was made
/// from. Throws Error; nothing is left half-written.
std::string write_figure(const FigureExport& figure);

}  // namespace statescope
