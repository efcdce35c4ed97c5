#include "engine/run/block_inputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/checkpoint/hdf5_handle.h"
#include "engine/error.h"

namespace statescope {
namespace {

std::filesystem::path temporary_path() {
  static std::atomic<int> files = 0;
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(none);
  return (folder.empty() ? std::filesystem::path("/tmp") : folder) / fmt::format("statescope-{}-{}.h5", getpid(), files++);
}

}  // namespace

/// Dataset /residual/<stream> [rows, D] for each stream, grown block by block.
class BlockInputs::File {
 public:
  File(std::int64_t streams, std::int64_t D) : path_(temporary_path()), D_(static_cast<hsize_t>(D)) {
    const Hdf5Guard guard;
    file_ = Hdf5Id(H5Fcreate(path_.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    if (!file_) fail_hdf5(path_, "the recording cannot be written");
    // The open file lives on without its name.
    std::filesystem::remove(path_);
    const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose), layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose),
        access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    // Rows go straight to the file, so that a full disk is noticed while they are still here.
    H5Pset_chunk_cache(access, 0, 0, 0);
    H5Pset_create_intermediate_group(links, 1);
    const hsize_t block[2] = {kBlock, D_}, none[2] = {0, D_}, unlimited[2] = {H5S_UNLIMITED, D_};
    H5Pset_chunk(layout, 2, block);
    H5Pset_fill_time(layout, H5D_FILL_TIME_NEVER);
    const Hdf5Id space(H5Screate_simple(2, none, unlimited), H5Sclose);
    for (std::int64_t stream = 0; stream < streams; ++stream) {
      const std::string name = fmt::format("residual/{}", stream);
      sets_.emplace_back(
          checked(H5Dcreate2(file_, name.c_str(), H5T_IEEE_F32LE, space, links, layout, access), path_, "the recording cannot be written"),
          H5Dclose);
    }
  }
  ~File() {
    const Hdf5Guard guard;
    sets_.clear();
    file_ = {};
  }

  void write(std::int64_t stream, std::int64_t block, const std::vector<float>& rows) {
    const Hdf5Guard guard;
    const hid_t set = sets_[static_cast<std::size_t>(stream)];
    const hsize_t grown[2] = {static_cast<hsize_t>((block + 1) * kBlock), D_};
    checked(H5Dset_extent(set, grown), path_, "the recording cannot be written");
    const Hdf5Id there = rows_of(set, block * kBlock, kBlock), here = memory(kBlock);
    checked(H5Dwrite(set, H5T_NATIVE_FLOAT, here, there, H5P_DEFAULT, rows.data()), path_, "the recording cannot be written");
  }
  void read(float* to, std::int64_t stream, std::int64_t first, std::int64_t count) const {
    const Hdf5Guard guard;
    const hid_t set = sets_[static_cast<std::size_t>(stream)];
    const Hdf5Id there = rows_of(set, first, count), here = memory(count);
    checked(H5Dread(set, H5T_NATIVE_FLOAT, here, there, H5P_DEFAULT, to), path_, "the recording cannot be read");
  }

 private:
  Hdf5Id rows_of(hid_t set, std::int64_t first, std::int64_t count) const {
    Hdf5Id space(checked(H5Dget_space(set), path_, "the recording cannot be read"), H5Sclose);
    const hsize_t start[2] = {static_cast<hsize_t>(first), 0}, extent[2] = {static_cast<hsize_t>(count), D_};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, extent, nullptr);
    return space;
  }
  Hdf5Id memory(std::int64_t count) const {
    const hsize_t extent[2] = {static_cast<hsize_t>(count), D_};
    return {H5Screate_simple(2, extent, nullptr), H5Sclose};
  }

  std::filesystem::path path_;
  hsize_t D_;
  Hdf5Id file_;
  std::vector<Hdf5Id> sets_;
};

BlockInputs::BlockInputs(std::int64_t streams, std::int64_t D) : D_(D), blocks_(static_cast<std::size_t>(streams)) {}
BlockInputs::~BlockInputs() = default;

void BlockInputs::append(std::int64_t stream, std::span<const float> rows) {
  std::vector<std::vector<float>>& blocks = blocks_[static_cast<std::size_t>(stream)];
  const auto block_size = static_cast<std::size_t>(kBlock * D_);
  while (!rows.empty()) {
    if (blocks.empty() || static_cast<std::int64_t>(blocks.size()) == spilled_ || blocks.back().size() == block_size) {
      blocks.emplace_back().reserve(block_size);
    }
    const std::size_t fitting = std::min(rows.size(), block_size - blocks.back().size());
    blocks.back().insert(blocks.back().end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(fitting));
    bytes_in_memory_ += fitting * sizeof(float);
    rows = rows.subspan(fitting);
  }
}

void BlockInputs::keep_within(std::size_t budget) {
  const auto block_size = static_cast<std::size_t>(kBlock * D_);
  const auto complete = [&](const std::vector<std::vector<float>>& blocks) {
    const auto block = static_cast<std::size_t>(spilled_);
    return block < blocks.size() && blocks[block].size() == block_size;
  };
  while (bytes_in_memory_ > budget && std::all_of(blocks_.begin(), blocks_.end(), complete)) {
    const auto streams = static_cast<std::int64_t>(blocks_.size());
    if (!file_) file_ = std::make_unique<File>(streams, D_);
    for (std::int64_t s = 0; s < streams; ++s)
      file_->write(s, spilled_, blocks_[static_cast<std::size_t>(s)][static_cast<std::size_t>(spilled_)]);
    for (std::vector<std::vector<float>>& blocks : blocks_) blocks[static_cast<std::size_t>(spilled_)] = {};
    bytes_in_memory_ -= blocks_.size() * block_size * sizeof(float);
    ++spilled_;
  }
}

void BlockInputs::read(float* to_rows, std::int64_t stream, std::int64_t from, std::int64_t to) const {
  const std::int64_t in_file = std::min(to, spilled_ * kBlock);
  if (from < in_file) {
    file_->read(to_rows, stream, from, in_file - from);
    to_rows += (in_file - from) * D_;
    from = in_file;
  }
  while (from < to) {
    const std::int64_t end = std::min(to, (from / kBlock + 1) * kBlock);
    const std::vector<float>& block = blocks_[static_cast<std::size_t>(stream)][static_cast<std::size_t>(from / kBlock)];
    std::copy_n(block.data() + from % kBlock * D_, (end - from) * D_, to_rows);
    to_rows += (end - from) * D_;
    from = end;
  }
}

std::size_t BlockInputs::bytes_in_file() const { return static_cast<std::size_t>(spilled_ * kBlock * D_) * blocks_.size() * sizeof(float); }

std::size_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kilobytes = 0; info >> name >> kilobytes; std::getline(info, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return std::size_t{4} << 30;
}

}  // namespace statescope
