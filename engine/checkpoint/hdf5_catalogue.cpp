#include "engine/checkpoint/hdf5_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/hdf5_handle.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr std::uint64_t max_owned_bytes = std::uint64_t{64} << 30;  // decompressed, of the whole file
constexpr std::uint64_t max_ratio = 1100;                           // deflate cannot do better than about 1030
constexpr std::uint64_t small_chunk = 16 << 20;

std::string type_name(hid_t type) {
  const std::size_t bits = 8 * H5Tget_size(type);
  const std::string order = H5Tget_order(type) == H5T_ORDER_BE ? "big-endian " : "";
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{}{}int{}", order, H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_FLOAT:
      return fmt::format("{}float{}", order, bits);
    case H5T_STRING:
      return "string";
    case H5T_COMPOUND:
      return "compound";
    case H5T_REFERENCE:
      return "reference";
    case H5T_VLEN:
      return "variable-length list";
    default:
      return "of another class";
  }
}

bool same(hid_t type, hid_t other) { return H5Tequal(type, other) > 0; }

/// The padding that fixed-length strings have at their end.
std::string unpadded(std::string text, H5T_str_t padding) {
  if (padding == H5T_STR_NULLTERM) return text.substr(0, text.find('\0'));
  const std::size_t last = text.find_last_not_of(padding == H5T_STR_SPACEPAD ? std::string_view(" \0", 2) : std::string_view("\0", 1));
  return text.substr(0, last == text.npos ? 0 : last + 1);
}

struct Link {
  std::string name;
  H5L_type_t type;
};

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* links) try {
  auto& list = *static_cast<std::vector<Link>*>(links);
  list.push_back({name, info->type});
  return list.size() > max_tensors ? 1 : 0;
} catch (...) {
  return -1;
}

class Reader {
 public:
  Reader(const fs::path& path, std::span<const std::byte> pages, SharedMemory& memory)
      : path_(path), pages_(pages), memory_(memory), file_(open_file()) {}

  json catalogue() {
    check_format();
    if (H5Aexists(file_, "config") <= 0) fail(path_, "has no attribute config; the model's config.json was expected there");
    json result{{"config", string_attribute(file_, "config")}, {"tensors", json::array()}};
    const Hdf5Id tensors = open_group("tensors");
    if (!tensors) fail(path_, "has no group /tensors");
    for (const std::string& name : names_in(tensors, "tensors")) result["tensors"].push_back(tensor(tensors, name));
    result["tokenizer"] = files("tokenizer");
    result["provenance"] = files("provenance");
    return result;
  }

 private:
  Hdf5Id open_file() {
    if (H5Fis_hdf5(path_.c_str()) <= 0)
      fail(path_, "is neither an HDF5 file nor a folder; a .h5 checkpoint, or a folder with config.json and *.safetensors, was expected");
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fapl_sec2(access);
    H5Pset_file_locking(access, /*use=*/false, /*ignore_when_disabled=*/true);  // network file systems often have no locks
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    return {checked(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access), path_, "is damaged"), H5Fclose};
  }

  void check_format() {
    if (H5Aexists(file_, "format") <= 0 || string_attribute(file_, "format") != "statescope-checkpoint")
      fail(path_, "is an HDF5 file but no checkpoint; the root attribute format = \"statescope-checkpoint\" was expected");
    const Hdf5Id attribute(checked(H5Aopen(file_, "version", H5P_DEFAULT), path_, "has no attribute version"), H5Aclose);
    const Hdf5Id type(H5Aget_type(attribute), H5Tclose);
    const Hdf5Id space(H5Aget_space(attribute), H5Sclose);
    long long version = 0;
    if (H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_npoints(space) != 1 || H5Aread(attribute, H5T_NATIVE_LLONG, &version) < 0)
      fail_hdf5(path_, "its attribute version is not an integer");
    if (version != 1) fail(path_, fmt::format("is of version {}; this program reads version 1", version));
  }

  std::string string_attribute(hid_t object, const char* name) {
    const Hdf5Id attribute(checked(H5Aopen(object, name, H5P_DEFAULT), path_, fmt::format("attribute {} cannot be read", name)), H5Aclose);
    const Hdf5Id type(checked(H5Aget_type(attribute), path_, fmt::format("attribute {} cannot be read", name)), H5Tclose);
    const Hdf5Id space(checked(H5Aget_space(attribute), path_, fmt::format("attribute {} cannot be read", name)), H5Sclose);
    if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1)
      fail(path_, fmt::format("attribute {} is {}; one string was expected", name, type_name(type)));
    return H5Tis_variable_str(type) > 0 ? variable_string(attribute, type, name) : fixed_string(attribute, type, name);
  }

  std::string variable_string(hid_t attribute, hid_t type, const char* name) {
    char* text = nullptr;
    checked(H5Aread(attribute, type, &text), path_, fmt::format("attribute {} cannot be read", name));
    const std::unique_ptr<char, herr_t (*)(void*)> owner(text, H5free_memory);
    if (text && std::strlen(text) > max_text_bytes) fail(path_, fmt::format("attribute {} is longer than {} bytes", name, max_text_bytes));
    return text ? text : "";
  }

  std::string fixed_string(hid_t attribute, hid_t type, const char* name) {
    const std::size_t size = H5Tget_size(type);
    if (size > std::min(max_text_bytes, pages_.size())) fail(path_, fmt::format("attribute {} declares {} bytes", name, size));
    std::string text(size, '\0');
    checked(H5Aread(attribute, type, text.data()), path_, fmt::format("attribute {} cannot be read", name));
    return unpadded(std::move(text), H5Tget_strpad(type));
  }

  /// Nothing if there is no such group.
  Hdf5Id open_group(const char* name) {
    if (H5Lexists(file_, name, H5P_DEFAULT) <= 0) return {};
    H5L_info_t info{};
    checked(H5Lget_info(file_, name, &info, H5P_DEFAULT), path_, fmt::format("group /{} cannot be read", name));
    check_link({name, info.type});
    return open_object(file_, name, H5I_GROUP, "a group");
  }

  /// Only hard links are followed, and only one level deep: so there is no way out of the file and no way round in circles.
  void check_link(const Link& link) {
    if (link.type != H5L_TYPE_HARD)
      fail(path_, fmt::format("{} is a soft or external link; the object itself was expected", in_quotes(link.name)));
  }

  Hdf5Id open_object(hid_t group, const std::string& name, H5I_type_t kind, std::string_view kind_name) {
    Hdf5Id object(checked(H5Oopen(group, name.c_str(), H5P_DEFAULT), path_, fmt::format("{} cannot be read", in_quotes(name))), H5Oclose);
    if (H5Iget_type(object) != kind) fail(path_, fmt::format("{} is not {}", in_quotes(name), kind_name));
    return object;
  }

  std::vector<std::string> names_in(hid_t group, std::string_view group_name) {
    std::vector<Link> links;
    const herr_t status = H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect_link, &links);
    checked(status, path_, fmt::format("group /{} cannot be listed", group_name));
    if (status > 0) fail(path_, fmt::format("group /{} has more than {} members", group_name, max_tensors));
    std::vector<std::string> names;
    for (Link& link : links) {
      check_link(link);
      check_tensor_name(path_, link.name);
      names.push_back(std::move(link.name));
    }
    return names;
  }

  /// A dataset, its element type and its extents; what lies outside this file is refused.
  struct Dataset {
    std::string name;
    Hdf5Id id, creation, type;
    H5D_layout_t layout = H5D_LAYOUT_ERROR;
    std::vector<std::int64_t> shape;
  };

  Dataset open_dataset(hid_t group, const std::string& name) {
    const std::string unreadable = fmt::format("dataset {} cannot be read", in_quotes(name));
    Dataset set;
    set.name = name;
    set.id = open_object(group, name, H5I_DATASET, "a dataset");
    set.creation = {checked(H5Dget_create_plist(set.id), path_, unreadable), H5Pclose};
    set.layout = checked(H5Pget_layout(set.creation), path_, unreadable);
    if (set.layout == H5D_VIRTUAL || H5Pget_external_count(set.creation) != 0)
      fail(path_, fmt::format("dataset {} keeps its data in other files; copy the data into this one", in_quotes(name)));
    set.type = {checked(H5Dget_type(set.id), path_, unreadable), H5Tclose};
    const Hdf5Id space(checked(H5Dget_space(set.id), path_, unreadable), H5Sclose);
    if (H5Sget_simple_extent_type(space) == H5S_NULL) fail(path_, fmt::format("dataset {} has no elements", in_quotes(name)));
    std::array<hsize_t, H5S_MAX_RANK> extents{};
    const int rank = checked(H5Sget_simple_extent_dims(space, extents.data(), nullptr), path_, unreadable);
    set.shape.assign(extents.begin(), extents.begin() + rank);
    return set;
  }

  json tensor(hid_t group, const std::string& name) {
    const Dataset set = open_dataset(group, name);
    const DType dtype = float_type(set);
    const std::int64_t bytes = checked_bytes(path_, name, set.shape, size_of(dtype));
    const bool in_file = set.layout == H5D_CONTIGUOUS;
    return {{"name", name},
            {"dtype", dtype},
            {"shape", set.shape},
            {"in_file", in_file},
            {"offset", in_file ? offset_in_file(set, bytes) : offset_in_memory(set, bytes)}};
  }

  DType float_type(const Dataset& set) {
    const bool says_bfloat16 = H5Aexists(set.id, "dtype") > 0 && string_attribute(set.id, "dtype") == "bfloat16";
    if (same(set.type, hdf5_bfloat16()) || (says_bfloat16 && same(set.type, H5T_STD_U16LE))) return DType::bf16;
    if (!says_bfloat16 && same(set.type, H5T_IEEE_F32LE)) return DType::f32;
    if (!says_bfloat16 && same(set.type, hdf5_float16())) return DType::f16;
    fail(path_, fmt::format("tensor {} is {}{}; little-endian float32, float16 or bfloat16 was expected", in_quotes(set.name),
                            type_name(set.type), says_bfloat16 ? " and says that it is bfloat16" : ""));
  }

  std::size_t offset_in_file(const Dataset& set, std::int64_t bytes) {
    const haddr_t offset = H5Dget_offset(set.id);
    if (offset == HADDR_UNDEF) fail_hdf5(path_, fmt::format("dataset {} was never written", in_quotes(set.name)));
    check_range(path_, set.name, offset, bytes, pages_.size());
    return offset;
  }

  /// Compressed, chunked or tiny data, read once; the memory type is the file's, so nothing is converted.
  std::size_t offset_in_memory(const Dataset& set, std::int64_t bytes) {
    check_declared_size(set, static_cast<std::uint64_t>(bytes));
    return memory_.append(static_cast<std::size_t>(bytes), [&](std::byte* data) { read_into(set, data); });
  }

  void read_into(const Dataset& set, void* data) {
    checked(H5Dread(set.id, set.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), path_,
            fmt::format("dataset {} cannot be read", in_quotes(set.name)));
  }

  void check_declared_size(const Dataset& set, std::uint64_t bytes) {
    if (set.layout == H5D_CHUNKED) check_chunks(set, bytes);
    const std::uint64_t stored = std::min<std::uint64_t>(H5Dget_storage_size(set.id), pages_.size());
    if (bytes / max_ratio > stored || stored == 0)
      fail(path_, fmt::format("dataset {} declares {} bytes but stores {}; it is damaged or was never written", in_quotes(set.name), bytes,
                              stored));
    owned_bytes_ += bytes;
    if (bytes > max_owned_bytes || owned_bytes_ > max_owned_bytes || owned_bytes_ / max_ratio > pages_.size())
      fail(path_, fmt::format("dataset {} takes the decompressed data beyond what this file can hold", in_quotes(set.name)));
  }

  void check_chunks(const Dataset& set, std::uint64_t bytes) {
    check_filters(set);
    std::array<hsize_t, max_rank> chunk{};
    const int rank = H5Pget_chunk(set.creation, static_cast<int>(chunk.size()), chunk.data());
    if (rank != static_cast<int>(set.shape.size())) fail_hdf5(path_, fmt::format("dataset {} has damaged chunks", in_quotes(set.name)));
    const std::vector<std::int64_t> extents(chunk.begin(), chunk.begin() + rank);
    const auto chunk_bytes = static_cast<std::uint64_t>(checked_bytes(path_, set.name, extents, H5Tget_size(set.type)));
    std::uint64_t chunks = 1;
    for (std::size_t axis = 0; axis < extents.size(); ++axis)
      chunks *= static_cast<std::uint64_t>((set.shape[axis] - 1) / extents[axis] + 1);  // at most the number of elements
    constexpr std::uint64_t index_entry = 8;                                            // the least that the file spends on each chunk
    if (chunk_bytes > std::max(bytes, small_chunk) || chunks > pages_.size() / index_entry)
      fail(path_, fmt::format("dataset {} declares {} chunks of {} bytes, more than this file can hold", in_quotes(set.name), chunks,
                              chunk_bytes));
  }

  void check_filters(const Dataset& set) {
    static constexpr std::array<H5Z_filter_t, 4> known{H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32, H5Z_FILTER_SZIP};
    for (int i = 0; i < H5Pget_nfilters(set.creation); ++i) {
      unsigned flags = 0, configuration = 0;
      std::size_t parameters = 0;
      std::array<char, 64> name{};
      const H5Z_filter_t filter =
          H5Pget_filter2(set.creation, static_cast<unsigned>(i), &flags, &parameters, nullptr, name.size(), name.data(), &configuration);
      if (std::ranges::find(known, filter) == known.end())
        fail(path_, fmt::format("dataset {} is compressed with filter {} {}; gzip or none was expected", in_quotes(set.name), filter,
                                name.data()));
    }
  }

  /// /tokenizer or /provenance: datasets of bytes, each one file.
  json files(const char* group_name) {
    json result = json::object();
    const Hdf5Id group = open_group(group_name);
    if (!group) return result;
    for (const std::string& name : names_in(group, group_name)) {
      check_file_name(path_, name);
      const Dataset set = open_dataset(group, name);
      if (H5Tget_class(set.type) != H5T_INTEGER || H5Tget_size(set.type) != 1 || set.shape.size() != 1)
        fail(path_,
             fmt::format("/{}/{} is {} of {} axes; a list of bytes was expected", group_name, name, type_name(set.type), set.shape.size()));
      result[name] = file_bytes(set);
    }
    return result;
  }

  std::string file_bytes(const Dataset& set) {
    if (set.shape[0] == 0) return {};
    const std::int64_t bytes = checked_bytes(path_, set.name, set.shape, 1);
    if (static_cast<std::uint64_t>(bytes) > max_text_bytes)
      fail(path_, fmt::format("{} has {} bytes; at most {} are read", in_quotes(set.name), bytes, max_text_bytes));
    if (set.layout == H5D_CONTIGUOUS)
      offset_in_file(set, bytes);
    else
      check_declared_size(set, static_cast<std::uint64_t>(bytes));
    std::string text(static_cast<std::size_t>(bytes), '\0');
    read_into(set, text.data());
    return text;
  }

  const fs::path& path_;
  std::span<const std::byte> pages_;
  SharedMemory& memory_;
  Hdf5Id file_;
  std::uint64_t owned_bytes_ = 0;
};

}  // namespace

json hdf5_catalogue(const fs::path& path, std::span<const std::byte> pages, SharedMemory& memory) {
  return Reader(path, pages, memory).catalogue();
}

}  // namespace statescope
