// The safetensors layout: header length (8 bytes, little endian), header (JSON), data; https://github.com/huggingface/safetensors
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace statescope {

/// One tensor of a header; [begin, end) are bytes of the whole file.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as written: "F32", "BF16", "I64", …
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, end = 0;
};

/// A tensor of any type, in the file's own pages.
struct RawTensor {
  std::string name;
  std::string dtype;  // as written
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  bool is_empty() const { return bytes.empty(); }
  std::int64_t size() const;        // elements
  std::string description() const;  // "'model.norm.weight' (BF16 [64])"
};

/// Reads the header of a whole file and holds it against the file's size: afterwards the entries tile the data without gap or overlap.
/// `path` is only named in errors.
std::vector<SafetensorsEntry> parse_safetensors(const std::filesystem::path& path, std::span<const std::byte> file);

/// The header (with its length) for these tensors in this order, each with the type of the same position in `dtypes`.
std::string safetensors_header(const std::vector<const StoredTensor*>& tensors, const std::vector<DType>& dtypes);

/// The tensors of one file, valid as long as what is added to `files`.
std::vector<RawTensor> read_raw_tensors(const std::filesystem::path& path, std::vector<std::shared_ptr<const MappedFile>>& files);

/// F32, F16 and BF16; none for other types.
std::optional<DType> float_type(std::string_view dtype);

}  // namespace statescope
