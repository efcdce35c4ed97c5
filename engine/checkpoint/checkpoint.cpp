#include "engine/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;

std::int64_t StoredTensor::size() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::int64_t StoredTensor::bytes() const { return size() * static_cast<std::int64_t>(size_of(dtype)); }

std::span<const float> StoredTensor::scale_values() const {
  if (!scales) return {};
  const std::int64_t blocks_of_rows = (shape[0] + scales->rows - 1) / scales->rows;
  return {scales->values, static_cast<std::size_t>(blocks_of_rows * scales->per_row)};
}

ConstTensor StoredTensor::matrix() const {
  Shape extents;
  if (shape.empty()) extents.push_back(1);
  if (shape.size() > 4)
    throw Error(fmt::format("tensor {} has {} axes; a model's tensors have at most four", in_quotes(name), shape.size()));
  for (const std::int64_t extent : shape) extents.push_back(extent);
  ConstTensor whole(data, dtype, extents);
  whole.scales = scales;
  return whole;
}

const StoredTensor* Checkpoint::find(std::string_view tensor_name) const { return find_by_name(tensors, tensor_name); }

std::int64_t Checkpoint::bytes() const {
  std::int64_t sum = 0;
  for (const StoredTensor& tensor : tensors) sum += tensor.bytes();
  return sum;
}

std::int64_t Checkpoint::parameters() const {
  std::int64_t sum = 0;
  for (const StoredTensor& tensor : tensors) sum += tensor.size();
  return sum;
}

void Checkpoint::require_whole_files() const {
  for (const auto& file : files) file->require_whole();
}

std::int64_t trained_length(const Checkpoint& checkpoint) {
  const auto file = checkpoint.provenance.find("recipe.json");
  if (file == checkpoint.provenance.end()) return 0;
  std::int64_t longest = 0;
  try {
    const auto recipe = nlohmann::json::parse(file->second);
    for (const nlohmann::json& phase : recipe.at("recipe").at("phases"))
      longest = std::max(longest, phase.at("length").get<std::int64_t>());
  } catch (const nlohmann::json::exception&) {
    return 0;
  }
  return longest;
}

std::shared_ptr<const Checkpoint> open_checkpoint(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail_errno(path, "cannot be opened", error ? error.value() : ENOENT);
  const bool folder = fs::is_directory(status);
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->path = path;
  fs::path full = fs::absolute(path).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();
  checkpoint->name = (folder ? full.filename() : full.stem()).string();
  try {
    folder ? read_folder(*checkpoint) : read_hdf5(*checkpoint);
  } catch (const std::bad_alloc&) {
    fail(path, "needs more memory than there is");
  }
  check_json_text(path, "config.json", checkpoint->config);
  if (checkpoint->tensors.empty()) fail(path, "has no tensors");
  checkpoint->require_whole_files();
  return checkpoint;
}

namespace {

/// The user knows the target, not the draft.
std::string renamed(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

}  // namespace

void write_checkpoint(const Checkpoint& checkpoint, const fs::path& path, const WriteOptions& options) {
  fs::path target = path.lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  const bool hdf5 = target.extension() == ".h5";
  const bool folder_there = fs::is_directory(fs::symlink_status(target));
  if (options.overwrite && fs::exists(fs::symlink_status(target)) && folder_there == hdf5)
    fail(target, folder_there ? "is a folder; it is not replaced by a file" : "is a file; it is not replaced by a folder");
  if (options.overwrite && folder_there && !is_checkpoint_folder(target))
    fail(target, "holds other files than a checkpoint's; it is not replaced");
  Draft draft(target, options.overwrite);
  try {
    hdf5 ? write_hdf5(checkpoint, draft.path(), options) : write_folder(checkpoint, draft.path(), options);
  } catch (const Error& error) {
    throw Error(renamed(error.what(), draft.path().string(), target.string()));
  }
  draft.publish();
}

}  // namespace statescope
