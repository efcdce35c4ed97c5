// A trained model on disk: its config, its tensors, and what came with it. HDF5 files and Hugging Face folders look the same from here.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"

namespace statescope {

class MappedFile;

/// One tensor as it is stored; `data` stays valid as long as its checkpoint.
struct StoredTensor {
  std::string name;                 // state_dict name
  DType dtype = DType::f32;         // f32, f16, bf16 or f8
  std::vector<std::int64_t> shape;  // any rank; a conv weight is [C, 1, w]
  const std::byte* data = nullptr;  // row-major, little endian, aligned to the element
  const BlockScales* scales = {};   // of f8, which is [out, in]; valid as long as `data`

  std::int64_t size() const;  // elements
  std::int64_t bytes() const;
  std::span<const float> scale_values() const;  // all of them; empty where there are none
  ConstTensor matrix() const;                   // as [shape[0], …] up to rank 4, with its scales; scalars as [1]
};

/// Read-only after opening. Tensor data is the file's own pages (mapped), except where the file keeps it compressed or misaligned: nothing
/// is read twice and no second copy is made.
class Checkpoint {
 public:
  std::string name;  // of the file or folder, without extension
  std::filesystem::path path;
  std::string config;                             // config.json, verbatim
  std::vector<StoredTensor> tensors;              // sorted by name
  std::map<std::string, std::string> tokenizer;   // file name → bytes: tokenizer.json, …; may be empty
  std::map<std::string, std::string> provenance;  // file name → bytes: recipe, scores, source; may be empty
  std::vector<std::string> notes;                 // what was passed over or mended on opening, a sentence each

  /// Null if there is none of that name.
  const StoredTensor* find(std::string_view tensor_name) const;
  std::int64_t bytes() const;       // of all tensors
  std::int64_t parameters() const;  // elements of all tensors

  /// Throws Error where a file became shorter since it was opened: what was read of it is not what it was. Ask before numbers are used.
  void require_whole_files() const;

  std::vector<std::shared_ptr<const MappedFile>> files;  // whose pages tensors are
  std::vector<std::shared_ptr<const void>> storage;      // keeps tensors alive that are no pages of these
};

/// The longest sequences that a checkpoint was trained on, as its own recipe says (provenance recipe.json: recipe.phases[].length), in
/// tokens; 0: it does not say.
std::int64_t trained_length(const Checkpoint& checkpoint);

/// Opens an .h5 file or a Hugging Face folder (config.json, *.safetensors, sharded or not). Throws Error: one line that says which file,
/// what is wrong with it and, where it helps, what to do.
std::shared_ptr<const Checkpoint> open_checkpoint(const std::filesystem::path& path);

/// Called with 0 … 1 as work goes on; returning false cancels it.
using Progress = std::function<bool(double fraction)>;

struct WriteOptions {
  /// Null keeps each tensor's type, float8 becomes float32; else every float tensor of rank ≥ 2 is rounded (to nearest even) to it.
  const DType* dtype = nullptr;
  bool overwrite = false;
  Progress progress;
};

/// Writes `path` ending in .h5 as an HDF5 checkpoint, any other path as a Hugging Face folder (model.safetensors, config.json and the other
/// files). The target appears whole or not at all. Throws Error; on cancel or failure nothing is left behind.
void write_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& path, const WriteOptions& options = {});

/// Reads one safetensors file by itself (golden inputs and outputs); integer tensors come widened.
struct SafetensorsFile {
  std::vector<StoredTensor> tensors;                          // float tensors
  std::map<std::string, std::vector<std::int64_t>> integers;  // I64, I32 and U8 tensors, flattened
  std::map<std::string, std::vector<std::int64_t>> integer_shapes;
  std::vector<std::shared_ptr<const void>> storage;
  const StoredTensor* find(std::string_view tensor_name) const;
};
SafetensorsFile open_safetensors(const std::filesystem::path& path);

}  // namespace statescope
