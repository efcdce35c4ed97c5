// A part of a recording: kept on the device as it is made, and on the host once the device should hold less.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace statescope {

/// A fixed number of float32 numbers. Not for use by two threads at once.
class Piece {
 public:
  /// So many numbers on one device.
  struct Part {
    Backend* device = nullptr;
    std::int64_t numbers = 0;
  };
  /// More numbers behind those of `parts`.
  static void add(std::vector<Part>& parts, Backend& device, std::int64_t numbers);

  /// Unwritten, on the devices of its parts, unless that is not wanted or one of them is out of memory: on the host then. Rows come from
  /// and go to any device of `backend`. Throws std::bad_alloc.
  Piece(Backend& backend, std::span<const Part> parts, bool on_device);

  std::size_t bytes() const { return static_cast<std::size_t>(numbers_) * sizeof(float); }
  bool on_device() const { return !device_.empty(); }
  bool moving() const { return !downloads_.empty(); }

  /// Contiguous float32 rows on the device become the numbers from `at` on. Not while it moves.
  void store(std::int64_t at, ConstTensor rows);
  /// Contiguous float32 rows on the device become those numbers.
  void load(Tensor rows, std::int64_t at) const;

  /// Begins to move to the host; the device does other work meanwhile. Throws std::bad_alloc.
  void begin_move();
  /// Returns when all is on the host and the device's memory is free again. Throws DeviceError.
  void finish_move();
  /// [numbers], of a piece that is on the host.
  const float* host() const { return host_.get(); }

 private:
  /// Where a number lies on its device.
  float* at(std::int64_t number) const;

  Backend* backend_;
  std::vector<Part> parts_;
  std::int64_t numbers_ = 0;
  std::vector<Buffer> device_;     // of each part; empty: on the host
  std::unique_ptr<float[]> host_;  // null before a move
  std::vector<std::unique_ptr<Download>> downloads_;
};

/// Rows of one shape and type, gathered on the device until somebody asks for them, on the host where the device is out of memory. Once
/// they have been taken, rows of another shape may follow.
class GatheredRows {
 public:
  explicit GatheredRows(Backend& backend) : backend_(&backend) {}

  std::int64_t count() const { return on_host_ + on_device_; }
  /// With the room for more.
  std::size_t bytes_on_device() const { return memory_ ? static_cast<std::size_t>(rows_.shape.size()) * size_of(rows_.dtype) : 0; }
  std::size_t bytes_on_host() const { return host_.capacity(); }
  /// Rows on the device. Throws std::bad_alloc.
  void append(ConstTensor rows);
  /// Appends all rows to `to`, and has none left.
  template <class Number>
  void take(std::vector<Number>& to) {
    bring_to_host();
    const auto* first = reinterpret_cast<const Number*>(host_.data());
    to.insert(to.end(), first, first + host_.size() / sizeof(Number));
    on_host_ = 0;
    host_.clear();
    if (rows_.rows() <= kKept) return;
    host_ = {};
    memory_.reset();
  }

 private:
  static constexpr std::int64_t kKept = 256;  // rows whose room stays when they have been taken
  /// Whether these rows have room on the device, which is asked for more where need be.
  bool make_room(ConstTensor rows);
  void bring_to_host();
  void append_on_host(ConstTensor rows);

  Backend* backend_;
  std::vector<std::byte> host_;  // of the first rows
  std::int64_t on_host_ = 0;
  Buffer memory_;
  Tensor rows_;  // [capacity, …]: those that follow
  std::int64_t on_device_ = 0;
};

}  // namespace statescope
