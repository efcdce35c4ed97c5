// The safetensors layout: header length (8 bytes, little endian), header (JSON), data; https://github.com/huggingface/safetensors
#pragma once

#include <filesystem>
#include <functional>
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

/// Reads the header of a whole file and holds it against the file's size: afterwards the entries tile the data without gap or overlap.
/// `path` is only named in errors.
std::vector<SafetensorsEntry> parse_safetensors(const std::filesystem::path& path, std::span<const std::byte> file);

/// The header (with its length) for these tensors in this order, each with the type of the same position in `dtypes`.
std::string safetensors_header(const std::vector<const StoredTensor*>& tensors, const std::vector<DType>& dtypes);

/// Adds the tensors of one shard to a checkpoint.
void read_safetensors_shard(Checkpoint& checkpoint, const std::filesystem::path& path);

}  // namespace statescope
