#include "engine/checkpoint/hdf5_arrays.h"

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/hdf5_handle.h"

namespace statescope {
namespace {

constexpr const char* kFailed = "cannot be written";

void write_array(hid_t file, const Hdf5Array& array, const std::filesystem::path& path) {
  const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose), creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  H5Pset_obj_track_times(creation, false);  // the hour must not be in the bytes
  const std::vector<hsize_t> extents(array.shape.begin(), array.shape.end());
  const Hdf5Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
  const bool exact = array.values.empty();
  const hid_t stored = exact ? H5T_IEEE_F64LE : H5T_IEEE_F32LE, given = exact ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
  const Hdf5Id set(checked(H5Dcreate2(file, array.path.c_str(), stored, space, links, creation, H5P_DEFAULT), path, kFailed), H5Dclose);
  const void* values = exact ? static_cast<const void*>(array.coordinates.data()) : array.values.data();
  checked(H5Dwrite(set, given, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), path, kFailed);
  for (const auto& [name, text] : array.attributes) write_text_attribute(set, name.c_str(), text, path);
}

}  // namespace

void write_hdf5_arrays(const std::filesystem::path& path, std::span<const Hdf5Array> arrays, const Hdf5Texts& attributes, bool overwrite) {
  Draft draft(path, overwrite);
  {
    const Hdf5Guard guard;
    const Hdf5Id file(H5Fcreate(draft.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    if (!file) fail_hdf5(path, kFailed);
    for (const auto& [name, text] : attributes) write_text_attribute(file, name.c_str(), text, path);
    for (const Hdf5Array& array : arrays) write_array(file, array, path);
    checked(H5Fflush(file, H5F_SCOPE_GLOBAL), path, kFailed);
  }
  flush_to_disk(draft.path());
  draft.publish();
}

}  // namespace statescope
