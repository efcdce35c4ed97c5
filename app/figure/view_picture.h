// Panels that are views of a run.
#pragma once

#include <memory>

#include "app/figure/panel.h"
#include "app/figure/runs.h"
#include "engine/error.h"

namespace statescope {

/// The view has nothing to show of this model.
class NothingShown : public Error {
 public:
  using Error::Error;
};

/// The panel's view with all that it asks answered. Throws NothingShown where there is nothing to show, unless it may be empty; Error;
/// Cancelled.
std::unique_ptr<PanelPicture> make_view_picture(const FigurePanel& panel, FigureRuns& runs, bool may_be_empty = false);

/// "layer 1, head 0": as much of the place as the view's numbers are of; empty: they are of the run.
std::string place_words(const ViewRow& row, const RunInfo& run, const Cursor& at);

/// Where the panel stands in its run. Throws Error where the run has no such place.
Cursor cursor_of(const FigurePanel& panel, const RunInfo& run);
/// The first layer that routes, else the first with a state; of the view of experts the first that has some.
std::int64_t interesting_layer(const ModelInfo& model, std::string_view view = {});

/// The panel with its run's own places in it: layer and tokens as numbers from 0, the prompt itself.
FigurePanel settled(const FigurePanel& panel, FigureRuns& runs);

}  // namespace statescope
