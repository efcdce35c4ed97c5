// The HDF5 library held at arm's length: one caller at a time, handles that close themselves, its reasons in one line.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>

namespace statescope {

/// Lets one thread at a time into the library and keeps its error stack off the terminal. Hold one around every use.
class Hdf5Guard {
 public:
  Hdf5Guard();

 private:
  std::scoped_lock<std::mutex> lock_;
};

/// Owns an identifier; closes it with `close`.
class Hdf5Id {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Id() = default;
  Hdf5Id(hid_t id, Close closer) : id_(id), close_(closer) {}
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Id() {
    if (id_ >= 0) close_(id_);
  }

  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }
  /// Closes now; false if that failed.
  bool close() { return close_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Throws Error "path: what (the library's innermost reason)".
[[noreturn]] void fail_hdf5(const std::filesystem::path& path, std::string_view what);

/// Passes an identifier or a status through; throws as above if it is negative.
template <class Status>
Status checked(Status status, const std::filesystem::path& path, std::string_view what) {
  if (status < 0) fail_hdf5(path, what);
  return status;
}

/// A UTF-8 attribute. Throws Error naming `path`.
void write_text_attribute(hid_t object, const char* name, std::string_view text, const std::filesystem::path& path);

/// A 16-bit float type: h5py reads IEEE half as float16 and bfloat16 as float32.
Hdf5Id hdf5_float16();
Hdf5Id hdf5_bfloat16();

}  // namespace statescope
