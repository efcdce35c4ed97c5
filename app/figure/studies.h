// What a figure shows of several runs, or of score files, by name: charts beyond the views, such as those of the papers.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "app/figure/panel.h"
#include "app/figure/runs.h"
#include "views/chart.h"

namespace statescope {

enum class StudyNeeds { checkpoints, scores, columns, nothing };

/// A row of the table of studies.
struct StudyRow {
  std::string_view name;                // in specs, after "chart"
  StudyNeeds needs;                     // what the panel must have
  std::vector<std::string_view> modes;  // in specs, after "mode"; the first is the usual one; empty: one alone
  Chart (*make)(const FigurePanel& panel, FigureRuns& runs);
};
const std::vector<StudyRow>& study_table();

/// The study that the panel names, worked out. Throws Error where there is none, or it lacks what it needs; Cancelled.
std::unique_ptr<PanelPicture> make_study(const FigurePanel& panel, FigureRuns& runs);

/// Checkpoints by their files' names, without what all of them begin with: "niah-gla", "niah-sse" are "gla", "sse".
std::vector<std::string> series_names(std::span<const std::string> checkpoints);

}  // namespace statescope
