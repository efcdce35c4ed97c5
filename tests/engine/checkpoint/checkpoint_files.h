// Small checkpoint files made byte by byte or call by call, so that a test knows what it reads.
#pragma once

#include <hdf5.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/hdf5_handle.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace statescope::test {

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::remove(path);  // a file that is cut short and written anew waits for the disk
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string raw(const StoredTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes())};
}

/// Header length, header, data.
inline std::string safetensors(const std::string& header, const std::string& data) {
  std::string length;
  for (unsigned i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return length + header + data;
}

/// What the Error says; fails the test if there is none, or if it is not one line.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == text.npos);
    CHECK(text.size() < 5000);
    return text;
  }
  FAIL("no Error was thrown");
  return {};
}

inline std::string open_error(const std::filesystem::path& path) {
  const std::string text = error_of([&] { open_checkpoint(path); });
  CHECK(text.find(path.filename().string()) != text.npos);
  return text;
}

/// Reads every number of a checkpoint, so that a sanitizer sees a tensor that lies outside.
inline unsigned touch(const Checkpoint& checkpoint) {
  unsigned sum = 0;
  for (const StoredTensor& tensor : checkpoint.tensors)
    for (std::int64_t i = 0; i < tensor.bytes(); ++i) sum += static_cast<unsigned>(tensor.data[i]);
  return sum;
}

/// An HDF5 checkpoint written call by call with the C library.
class Hdf5File {
 public:
  explicit Hdf5File(const std::filesystem::path& path, H5F_libver_t version = H5F_LIBVER_V110) {
    { const Hdf5Guard sets_the_library_up; }
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, version, H5F_LIBVER_LATEST);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    REQUIRE(file >= 0);
  }
  ~Hdf5File() { H5Fclose(file); }
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  void text(hid_t object, const char* name, const std::string& value) const {
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, value.size() + 1);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, value.c_str());
    H5Aclose(attribute), H5Sclose(space), H5Tclose(type);
  }
  void version(int value) const {
    const hid_t space = H5Screate(H5S_SCALAR), attribute = H5Acreate2(file, "version", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT, &value);
    H5Aclose(attribute), H5Sclose(space);
  }
  hid_t group(const char* name) const { return H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT); }
  /// Everything but the tensors.
  void head(const std::string& config = R"({"model_type": "gla"})") const {
    text(file, "format", "statescope-checkpoint");
    version(1);
    text(file, "config", config);
  }
  /// A dataset of any type; `data` may be null to write nothing.
  void dataset(hid_t group_id, const char* name, hid_t type, const std::vector<hsize_t>& extents, const void* data,
               hid_t creation = H5P_DEFAULT, const char* dtype = nullptr) const {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t id = H5Dcreate2(group_id, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    REQUIRE(id >= 0);
    if (data) REQUIRE(H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    if (dtype) text(id, "dtype", dtype);
    H5Dclose(id), H5Sclose(space);
  }

  hid_t file = -1;
};

}  // namespace statescope::test
