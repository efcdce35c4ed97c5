#include "engine/checkpoint/hdf5_handle.h"

#include <fmt/format.h>

#include <string>

#include "engine/checkpoint/file.h"

namespace statescope {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

herr_t keep_first(unsigned n, const H5E_error2_t* error, void* reason) {
  if (n == 0 && error->desc) *static_cast<std::string*>(reason) = error->desc;
  return 0;
}

/// Where the library reports a failed system call, with buffer addresses and times, only the system's own words.
std::string system_words(const std::string& reason) {
  static constexpr std::string_view mark = "error message = '";
  const std::size_t begin = reason.find(mark);
  if (begin == reason.npos) return reason;
  return reason.substr(begin + mark.size(), reason.find('\'', begin + mark.size()) - begin - mark.size());
}

Hdf5Id float_of_16_bits(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias) {
  Hdf5Id type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits);
  H5Tset_precision(type, 16);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, bias);
  return type;
}

}  // namespace

Hdf5Guard::Hdf5Guard() : lock_(library_mutex()) {
  H5dont_atexit();  // at the end of the program it would stumble over a file whose last bytes found no room on the disk
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // the stack is one per thread
}

void fail_hdf5(const std::filesystem::path& path, std::string_view what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  H5Eclear2(H5E_DEFAULT);
  fail(path, reason.empty() ? std::string(what) : fmt::format("{} ({})", what, system_words(reason)));
}

void write_text_attribute(hid_t object, const char* name, std::string_view text, const std::filesystem::path& path) {
  const Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  const std::string copy(text);
  const char* start = copy.c_str();
  const Hdf5Id attribute(checked(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), path, "cannot be written"), H5Aclose);
  checked(H5Awrite(attribute, type, &start), path, "cannot be written");
}

Hdf5Id hdf5_float16() { return float_of_16_bits(5, 10, 15); }
Hdf5Id hdf5_bfloat16() { return float_of_16_bits(8, 7, 127); }

}  // namespace statescope
