// Plain arrays as an HDF5 file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace statescope {

using Hdf5Texts = std::vector<std::pair<std::string, std::string>>;  // attributes: name, UTF-8

struct Hdf5Array {
  std::string path;  // "/a/0/values": groups are made
  std::vector<std::int64_t> shape;
  std::vector<float> values;        // row-major; or, where that is empty,
  std::vector<double> coordinates;  // these
  Hdf5Texts attributes;
};

/// The same arrays give the same bytes. Throws Error naming the file; nothing is left half-written.
void write_hdf5_arrays(const std::filesystem::path& path, std::span<const Hdf5Array> arrays, const Hdf5Texts& attributes, bool overwrite);

}  // namespace statescope
