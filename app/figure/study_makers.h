// Charts of the table of studies (studies.cpp). All throw Error: in a line, what is missing; Cancelled.
#pragma once

#include "app/figure/runs.h"
#include "views/chart.h"

namespace statescope {

// Of runs: the panel's prompt, read by each of its checkpoints.

/// Hs of the stacked states after the prompt, layer by layer: mean over the heads (SSE Fig. 5).
Chart entropy_by_layer(const FigurePanel& panel, FigureRuns& runs);
/// How far back a layer's states reach: mean over channels and heads, the shared state and the partitions each (SSE Fig. 9).
Chart receptive_field_by_layer(const FigurePanel& panel, FigureRuns& runs);
/// Entropy of the head gates with their logits times λ: mean over tokens, layer by layer (SLA Theorem 4.2). Mode "write gates" or "read
/// gates".
Chart gate_entropy_by_lambda(const FigurePanel& panel, FigureRuns& runs);

// Of files that `statescope eval --json` and `statescope bench sse --json` wrote.

/// Mode "over load" (needles, pairs), "over length", "over partitions" (one series for each number of partitions chosen) or "over seeds" (a
/// point for each training); the panel's length and load say which cells where the files have several (SSE Fig. 7, 8).
Chart recall(const FigurePanel& panel, FigureRuns& runs);
/// Mode "over length" or "over partitions" (SSE Fig. 6); measured anew where the panel has no data.
Chart speed(const FigurePanel& panel, FigureRuns& runs);

// Of any file.

/// The panel's columns over another one (app/figure/columns_file.h).
Chart columns_of_a_file(const FigurePanel& panel, FigureRuns& runs);

}  // namespace statescope
