// Writes what h5py reads in three lines; layout in README.md, "Files".
#include <fmt/format.h>

#include <array>

#include "engine/checkpoint/blocks.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/hdf5_handle.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

constexpr hsize_t alignment = 64;  // a cache line, and what every vector load asks for

class Writer {
 public:
  Writer(const Checkpoint& checkpoint, const fs::path& draft, const WriteOptions& options)
      : checkpoint_(checkpoint), path_(draft), options_(options), blocks_(checkpoint, options), file_(create_file()) {}

  void write() {
    write_string(file_, "format", "statescope-checkpoint");
    write_version();
    write_string(file_, "config", checkpoint_.config);
    write_tensors();
    write_files("tokenizer", checkpoint_.tokenizer);
    write_files("provenance", checkpoint_.provenance);
    checked(H5Fflush(file_, H5F_SCOPE_GLOBAL), path_, cannot_);
    if (!file_.close()) fail_hdf5(path_, cannot_);
    flush_to_disk(path_);
  }

 private:
  Hdf5Id create_file() {
    OutputFile(path_).finish();  // says plainly why a file cannot be made here
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);  // its metadata carries checksums
    H5Pset_alignment(access, alignment, alignment);
    H5Pset_file_locking(access, /*use=*/false, /*ignore_when_disabled=*/true);  // the draft is ours alone
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    const Hdf5Id creation = timeless(H5P_FILE_CREATE);
    return {checked(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, creation, access), path_, cannot_), H5Fclose};
  }

  /// Objects without the time of their making: the same checkpoint gives the same bytes.
  static Hdf5Id timeless(hid_t creation_class) {
    Hdf5Id creation(H5Pcreate(creation_class), H5Pclose);
    H5Pset_obj_track_times(creation, /*track_times=*/false);
    return creation;
  }

  void write_string(hid_t object, const char* name, const std::string& text) {
    if (text.find('\0') != text.npos) fail(checkpoint_.path, fmt::format("{} has a zero byte and cannot be written as text", name));
    write_text_attribute(object, name, text, path_);
  }

  void write_version() {
    const int version = 1;
    write_attribute(file_, "version", H5T_STD_I32LE, H5T_NATIVE_INT, &version);
  }

  void write_attribute(hid_t object, const char* name, hid_t type, hid_t memory_type, const void* value) {
    const Hdf5Id space(H5Screate(H5S_SCALAR), H5Sclose);
    const Hdf5Id attribute(checked(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), path_, cannot_), H5Aclose);
    checked(H5Awrite(attribute, memory_type, value), path_, cannot_);
  }

  Hdf5Id create_group(const char* name) {
    const Hdf5Id creation = timeless(H5P_GROUP_CREATE);
    return {checked(H5Gcreate2(file_, name, H5P_DEFAULT, creation, H5P_DEFAULT), path_, cannot_), H5Gclose};
  }

  Hdf5Id create_dataset(hid_t group, const std::string& name, hid_t type, hid_t space) {
    const Hdf5Id creation = timeless(H5P_DATASET_CREATE);
    H5Pset_layout(creation, H5D_CONTIGUOUS);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);  // so that a reader can map it
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);    // every byte is about to be written
    return {checked(H5Dcreate2(group, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT), path_, cannot_), H5Dclose};
  }

  void write_tensors() {
    const Hdf5Id group = create_group("tensors");
    for (const StoredTensor& tensor : checkpoint_.tensors) write_tensor(group, tensor);
  }

  void write_tensor(hid_t group, const StoredTensor& tensor) {
    check_tensor_name(checkpoint_.path, tensor.name);
    const DType dtype = written_dtype(tensor, options_);
    const Hdf5Id type = dtype == DType::f32   ? Hdf5Id(H5Tcopy(H5T_IEEE_F32LE), H5Tclose)
                        : dtype == DType::f16 ? hdf5_float16()
                                              : hdf5_bfloat16();
    const std::vector<hsize_t> extents(tensor.shape.begin(), tensor.shape.end());
    const Hdf5Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
    const Hdf5Id dataset = create_dataset(group, tensor.name, type, space);
    if (dtype == DType::bf16) write_string(dataset, "dtype", "bfloat16");
    blocks_.write_tensor(tensor, dtype, [&](std::int64_t first, std::int64_t count, std::span<const std::byte> bytes) {
      write_rows(dataset, type, extents, static_cast<hsize_t>(first), static_cast<hsize_t>(count), bytes);
    });
  }

  void write_rows(hid_t dataset, hid_t type, std::vector<hsize_t> extents, hsize_t first, hsize_t count, std::span<const std::byte> bytes) {
    if (extents.empty()) {
      checked(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), path_, cannot_);
      return;
    }
    std::vector<hsize_t> start(extents.size(), 0);
    start[0] = first;
    extents[0] = count;
    const Hdf5Id rows(H5Dget_space(dataset), H5Sclose);
    H5Sselect_hyperslab(rows, H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr);
    const Hdf5Id memory(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
    checked(H5Dwrite(dataset, type, memory, rows, H5P_DEFAULT, bytes.data()), path_, cannot_);
  }

  void write_files(const char* group_name, const std::map<std::string, std::string>& files) {
    if (files.empty()) return;
    const Hdf5Id group = create_group(group_name);
    for (const auto& [name, bytes] : files) {
      check_file_name(checkpoint_.path, name);
      const hsize_t size = bytes.size();
      const Hdf5Id space(H5Screate_simple(1, &size, nullptr), H5Sclose);
      const Hdf5Id dataset = create_dataset(group, name, H5T_STD_U8LE, space);
      checked(H5Dwrite(dataset, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), path_, cannot_);
    }
  }

  static constexpr std::string_view cannot_ = "cannot be written";
  const Checkpoint& checkpoint_;
  const fs::path& path_;
  const WriteOptions& options_;
  BlockWriter blocks_;
  Hdf5Id file_;
};

}  // namespace

void write_hdf5(const Checkpoint& checkpoint, const fs::path& draft, const WriteOptions& options) {
  const Hdf5Guard guard;
  Writer(checkpoint, draft, options).write();
}

}  // namespace statescope
