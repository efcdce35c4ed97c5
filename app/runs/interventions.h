// Interventions where the cursor is, to be chosen from a list.
#pragma once

#include <QString>
#include <span>

#include "engine/run/intervention.h"
#include "views/view.h"

namespace statescope {

enum class InterventionKind {
  zero_row,
  zero_head,
  zero_partition,
  scale_row,
  scale_head,
  scale_partition,
  freeze_decay,
  scale_decay,
  top_k,
  writers,
  readers,
  route,
  sharpen_gates,
  replace_token,
  import_state
};

struct InterventionRow {
  InterventionKind kind;
  const char* name;   // translated in the context "Interventions"
  const char* value;  // what must be given beside the place; empty: nothing
};
std::span<const InterventionRow> intervention_rows();

/// At the cursor's token and in its layer, of its head, partition and row (the first where none is chosen). `value`: what the row asks for,
/// a token's id for a token, a run's number for a run.
Intervention intervention_here(InterventionKind kind, const LayerInfo& layer, const Cursor& cursor, double value);

/// "branch 2: zero row 3 of head 1 at 30 and freeze decay from 40"; empty for the model's own run.
QString words_of_branch(const BranchInfo& branch);

}  // namespace statescope
