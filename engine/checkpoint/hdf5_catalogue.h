// Reads what write_hdf5 or a few lines of h5py wrote. HDF5 is a language in which a file can point anywhere, grow without end and refer to
// itself; what a checkpoint has no use for is refused before the library is asked to follow it. Even so the library can be made to overrun
// its memory or to loop, so it works in a process of its own and hands back a catalogue: where in the file each tensor lies (this process
// maps it), and in shared memory what had to be decompressed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "engine/checkpoint/isolate.h"

namespace statescope {

/// {"config", "tokenizer": {file: bytes}, "provenance": likewise, "tensors": [{"name", "dtype", "shape", "in_file", "offset"}]} of a file
/// whose bytes are `pages`; what has to be decompressed goes into `memory`. Throws Error. The HDF5 library is not safe against every file:
/// only statescope-reader calls this.
nlohmann::json hdf5_catalogue(const std::filesystem::path& path, std::span<const std::byte> pages, SharedMemory& memory);

}  // namespace statescope
