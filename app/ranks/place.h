// Which of several processes this one is, where mpirun or srun started them together.
#pragma once

#include <optional>

#include "engine/device.h"

namespace statescope {

struct RankPlace {
  int rank = 0, size = 1;
  int local = 0;       // among those of its node
  int local_size = 0;  // of them; 0: unknown

  bool is_first() const { return rank == 0; }
};

/// As its environment says. Unset: it was started by itself, or alone.
std::optional<RankPlace> rank_place();
/// What belongs to this process's children no more.
void forget_rank_place();

/// cuda and auto: the GPU of its place on the node, of `gpus` that it may use; auto without any: the CPU. The processes of a node share its
/// cores.
DeviceChoice device_of_rank(DeviceChoice choice, const RankPlace& place, int gpus);
/// Of this node, that this process may use.
int visible_gpus();

}  // namespace statescope
