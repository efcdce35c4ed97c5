#include "engine/run/block_inputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "engine/checkpoint/hdf5_handle.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::size_t kMoving = 4;  // blocks on their way to the host at the same time, beside the computing

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

  void write(std::int64_t stream, std::int64_t block, const float* rows) {
    const Hdf5Guard guard;
    const hid_t set = sets_[static_cast<std::size_t>(stream)];
    const hsize_t grown[2] = {static_cast<hsize_t>((block + 1) * kBlock), D_};
    checked(H5Dset_extent(set, grown), path_, "the recording cannot be written");
    const Hdf5Id there = rows_of(set, block * kBlock, kBlock), here = memory(kBlock);
    checked(H5Dwrite(set, H5T_NATIVE_FLOAT, here, there, H5P_DEFAULT, rows), path_, "the recording cannot be written");
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

BlockInputs::BlockInputs(Backend& backend, const std::vector<Backend*>& of_streams, std::int64_t D)
    : backend_(backend), D_(D), rows_(of_streams.size(), 0) {
  for (Backend* device : of_streams) Piece::add(parts_, *device, kBlock * D);
}
BlockInputs::~BlockInputs() = default;

void BlockInputs::append(std::int64_t stream, ConstTensor rows) {
  std::int64_t& have = rows_[static_cast<std::size_t>(stream)];
  while (rows.rows() > 0) {
    const auto block = static_cast<std::size_t>(have / kBlock - in_file_);
    const std::int64_t row = have % kBlock, count = std::min(rows.rows(), kBlock - row);
    if (block == blocks_.size()) {
      blocks_.emplace_back(backend_, parts_, !device_was_full_);
      device_was_full_ = device_was_full_ || !blocks_.back().on_device();
    }
    blocks_[block].store((stream * kBlock + row) * D_, rows.slice(0, count));
    have += count;
    rows = rows.slice(count, rows.rows() - count);
  }
}

std::size_t BlockInputs::complete() const {
  return static_cast<std::size_t>(*std::min_element(rows_.begin(), rows_.end()) / kBlock - in_file_);
}

void BlockInputs::keep_within(std::size_t on_device, std::size_t on_host, std::int64_t coming) {
  const std::int64_t blocks = (rows_.front() + coming + kBlock - 1) / kBlock - in_file_ - std::ssize(blocks_);
  move_to_host(on_device - std::min(on_device, static_cast<std::size_t>(blocks) * block_bytes()));
  while (bytes_on_host() > on_host && complete() > 0) {
    blocks_.front().finish_move();
    if (!file_) file_ = std::make_unique<File>(streams(), D_);
    for (std::int64_t stream = 0; stream < streams(); ++stream)
      file_->write(stream, in_file_, blocks_.front().host() + stream * kBlock * D_);
    blocks_.pop_front();
    ++in_file_;
  }
}

void BlockInputs::move_to_host(std::size_t on_device) {
  const auto end = blocks_.begin() + static_cast<std::ptrdiff_t>(complete());
  const auto stays = [](const Piece& block) { return block.on_device() && !block.moving(); };
  std::size_t held = bytes_on_device();
  auto moving = static_cast<std::size_t>(std::count_if(blocks_.begin(), end, std::mem_fn(&Piece::moving)));
  // Moves begin before the budget is reached. Within one memory there is nothing to wait for, and each would take its room twice.
  const bool early = backend_.has_own_memory();
  const std::size_t begin_at = early ? on_device - std::min(on_device / 8, kMoving * block_bytes()) : on_device;
  const std::size_t most = early ? kMoving : 1;
  while (true) {
    const auto next = std::find_if(blocks_.begin(), end, stays);
    if (next != end && moving < most && held - moving * block_bytes() > begin_at) {
      next->begin_move();
      ++moving;
    } else if (moving > 0 && held > on_device) {
      std::find_if(blocks_.begin(), end, std::mem_fn(&Piece::moving))->finish_move();
      --moving;
      held -= block_bytes();
    } else {
      return;
    }
  }
}

void BlockInputs::read(Tensor rows, std::int64_t stream, std::int64_t from) const {
  if (const std::int64_t count = std::min(rows.rows(), in_file_ * kBlock - from); count > 0) {
    std::vector<float> host(static_cast<std::size_t>(count * D_));
    file_->read(host.data(), stream, from, count);
    backend_.upload(rows.slice(0, count), ConstTensor(host.data(), DType::f32, {count, D_}));
    rows = rows.slice(count, rows.rows() - count);
    from += count;
  }
  while (rows.rows() > 0) {
    const std::int64_t row = from % kBlock, count = std::min(rows.rows(), kBlock - row);
    blocks_[static_cast<std::size_t>(from / kBlock - in_file_)].load(rows.slice(0, count), (stream * kBlock + row) * D_);
    rows = rows.slice(count, rows.rows() - count);
    from += count;
  }
}

std::size_t BlockInputs::bytes_on_device() const {
  return static_cast<std::size_t>(std::ranges::count_if(blocks_, &Piece::on_device)) * block_bytes();
}
std::size_t BlockInputs::bytes_on_host() const { return blocks_.size() * block_bytes() - bytes_on_device(); }

}  // namespace statescope
