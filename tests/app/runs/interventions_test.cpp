// Interventions at the cursor's place.
#include "app/runs/interventions.h"

#include "tests/catch.h"

namespace statescope::interventions_test {

TEST_CASE("interventions here: of the cursor's partition, of all that a layer without partitions keeps") {
  const LayerInfo sse{.slot_names = {"shared", "1", "2"}, .partitions = 2, .has_shared_slot = true};
  const LayerInfo levels{.slot_names = {"level 0", "level 1", "level 2"}};
  const Cursor cursor{.token = 3, .layer = 1, .slot = 2};
  for (const InterventionKind kind : {InterventionKind::zero_partition, InterventionKind::scale_row}) {
    CHECK(std::get<ScaleState>(intervention_here(kind, sse, cursor, 0.5).change).partition == 2);
    CHECK_FALSE(std::get<ScaleState>(intervention_here(kind, levels, cursor, 0.5).change).partition);
  }
}

}  // namespace statescope::interventions_test
