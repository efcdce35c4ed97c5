#include "engine/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <new>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;

std::int64_t StoredTensor::size() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::int64_t StoredTensor::bytes() const { return size() * static_cast<std::int64_t>(size_of(dtype)); }

ConstTensor StoredTensor::matrix() const {
  Shape extents;
  if (shape.empty()) extents.push_back(1);
  if (shape.size() > 4)
    throw Error(fmt::format("tensor {} has {} axes; a model's tensors have at most four", in_quotes(name), shape.size()));
  for (const std::int64_t extent : shape) extents.push_back(extent);
  return {data, dtype, extents};
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
  return checkpoint;
}

}  // namespace statescope
