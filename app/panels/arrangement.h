// Which views stand on the stage and how they share it: plain data, remembered by the settings, or one of the presets.
#pragma once

#include <QString>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/snapshot.h"

namespace statescope {

inline constexpr std::size_t most_views = 6;

/// The first two views share the upper row, the others the lower one.
struct Arrangement {
  std::vector<std::string> views;  // ids of the catalogue, the large one first; 1 … most_views
  std::vector<float> widths;       // each view's share of its row, > 0; parallel to `views`
  float upper = 0.64f;             // share of the upper row, where there are two
  std::vector<std::size_t> modes;  // each view's way of looking (View::modes); parallel to `views`, or shorter: the first

  bool operator==(const Arrangement&) const = default;
};

/// With the usual sizes. A way of looking may follow a view's id: "state/Difference" (View::modes). Ids that the catalogue does not have
/// are left out, as is what exceeds most_views; if none is left, the views that a run opens with.
Arrangement arrangement_of(std::span<const std::string_view> views);

/// Why arrangement_of leaves out a view that is named so; empty: it does not.
std::string wrong_view(std::string_view named);

/// Ids of the two views that runs open with.
using OpeningViews = std::array<std::string, 2>;
/// What the memories of these models do, and their states; where one of the models has no such thing, what all of them have.
OpeningViews opening_views(std::span<const ModelInfo* const> models);
/// With the views `wanted` in the place of `before`, if these are all that there is; else as it is.
Arrangement reopened(Arrangement arrangement, const OpeningViews& before, const OpeningViews& wanted);

struct Preset {
  const char* id;  // stable
  const char* name;
  std::vector<std::string_view> views;  // as arrangement_of has them
};
std::span<const Preset> presets();
/// In the place of a routing that the model lacks stands what its memories do.
Arrangement arrangement_of(const Preset& preset, const ModelInfo& model);

QString to_text(const Arrangement& arrangement);
/// Nothing where the text is not one of to_text's, or no view of it is left in the catalogue.
std::optional<Arrangement> arrangement_from(const QString& text);

}  // namespace statescope
