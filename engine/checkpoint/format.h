// What both formats share: limits on what a file may declare, and the checks that hold a hostile one back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace statescope {

inline constexpr std::size_t max_tensors = 1'000'000;
inline constexpr std::size_t max_rank = 8;
inline constexpr std::size_t max_nesting = 64;           // of JSON; what reads it copies and prints values by recursion
inline constexpr std::size_t max_text_bytes = 64 << 20;  // config.json, a tokenizer file, a file of the provenance

/// A tensor name that every format can hold: UTF-8, not empty, no '/', no control character.
void check_tensor_name(const std::filesystem::path& path, std::string_view name);
/// A name that stays inside the folder it is written to.
void check_file_name(const std::filesystem::path& path, std::string_view name);
/// The bytes that a tensor of this shape takes; refuses a rank, an extent or a product that no tensor has.
std::int64_t checked_bytes(const std::filesystem::path& path, std::string_view name, const std::vector<std::int64_t>& shape,
                           std::size_t element);
/// Refuses [offset, offset + bytes) that does not lie within `size` bytes.
void check_range(const std::filesystem::path& path, std::string_view name, std::uint64_t offset, std::int64_t bytes, std::size_t size);
/// JSON that is safe to parse and to print recursively: not empty, neither too long nor nested too deeply.
void check_json_text(const std::filesystem::path& path, std::string_view what, std::string_view text);

/// Under which Transformers writes what JSON cannot say.
inline constexpr const char* python_float_key = "__float__";
/// Python writes bare NaN and Infinity; outside strings they become {"__float__": "Infinity"}. Throws Error where it is nested too deeply.
std::string quote_python_floats(std::string_view text);

/// Files of a Hugging Face folder that belong to the tokenizer.
bool is_tokenizer_file(std::string_view name);
/// Files of a Hugging Face folder that say how the model was made and how good it is.
bool is_provenance_file(std::string_view name);

/// `data` if it is aligned to the element, else a copy that is, kept in `storage`.
const std::byte* aligned(const std::byte* data, std::int64_t bytes, DType dtype, std::vector<std::shared_ptr<const void>>& storage);
/// Sorts by name; refuses two of the same name.
void sort_by_name(const std::filesystem::path& path, std::vector<StoredTensor>& tensors);
/// Null if there is none of that name. `tensors` are sorted.
const StoredTensor* find_by_name(const std::vector<StoredTensor>& tensors, std::string_view name);

/// Fill everything but `name` and `path`.
void read_folder(Checkpoint& checkpoint);
void read_hdf5(Checkpoint& checkpoint);
/// Holds nothing but what a checkpoint folder holds, so that replacing it destroys nothing else.
bool is_checkpoint_folder(const std::filesystem::path& path);
/// Write to `draft`, which does not exist yet.
void write_folder(const Checkpoint& checkpoint, const std::filesystem::path& draft, const WriteOptions& options);
void write_hdf5(const Checkpoint& checkpoint, const std::filesystem::path& draft, const WriteOptions& options);

}  // namespace statescope
