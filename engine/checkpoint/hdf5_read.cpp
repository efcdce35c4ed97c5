#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"

namespace statescope {

void read_hdf5(Checkpoint& checkpoint) { fail(checkpoint.path, "HDF5 files are not read yet"); }

}  // namespace statescope
