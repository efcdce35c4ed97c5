#include "engine/run/piece.h"

#include <algorithm>
#include <new>

namespace statescope {

void Piece::add(std::vector<Part>& parts, Backend& device, std::int64_t numbers) {
  if (numbers == 0) return;
  if (parts.empty() || parts.back().device != &device) parts.push_back({&device, 0});
  parts.back().numbers += numbers;
}

Piece::Piece(Backend& backend, std::span<const Part> parts, bool on_device) : backend_(&backend), parts_(parts.begin(), parts.end()) {
  for (const Part& part : parts_) numbers_ += part.numbers;
  try {
    for (const Part& part : parts_) {
      if (on_device) device_.push_back(part.device->allocate(static_cast<std::size_t>(part.numbers) * sizeof(float)));
    }
  } catch (const std::bad_alloc&) {
    device_.clear();
  }
  if (device_.empty()) host_ = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(numbers_));
}

float* Piece::at(std::int64_t number) const {
  std::size_t part = 0;
  while (number >= parts_[part].numbers) number -= parts_[part++].numbers;
  return static_cast<float*>(device_[part].get()) + number;
}

void Piece::store(std::int64_t at, ConstTensor rows) {
  if (!device_.empty()) {
    backend_->copy(Tensor(this->at(at), DType::f32, rows.shape), rows);
  } else {
    backend_->download(Tensor(host_.get() + at, DType::f32, rows.shape), rows);
  }
}

void Piece::load(Tensor rows, std::int64_t at) const {
  if (!device_.empty()) {
    backend_->copy(rows, ConstTensor(this->at(at), DType::f32, rows.shape));
  } else {
    backend_->upload(rows, ConstTensor(host_.get() + at, DType::f32, rows.shape));
  }
}

void Piece::begin_move() {
  if (device_.empty() || moving()) return;
  host_ = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(numbers_));
  std::int64_t first = 0;
  for (const Part& part : parts_) {
    const Shape shape{1, part.numbers};
    downloads_.push_back(
        part.device->download_later(Tensor(host_.get() + first, DType::f32, shape), ConstTensor(at(first), DType::f32, shape)));
    first += part.numbers;
  }
}

void Piece::finish_move() {
  if (device_.empty()) return;
  begin_move();
  for (const std::unique_ptr<Download>& download : downloads_) download->wait();
  downloads_.clear();
  device_.clear();
}

bool GatheredRows::make_room(ConstTensor rows) {
  const std::int64_t needed = on_device_ + rows.rows();
  if (memory_ && needed <= rows_.rows() && rows.row_size() == rows_.row_size()) return true;
  Shape shape = rows.shape;
  shape[0] = std::max(needed, 2 * on_device_);
  try {
    Buffer memory = backend_->allocate(static_cast<std::size_t>(shape.size()) * size_of(rows.dtype));
    const Tensor grown(memory.get(), rows.dtype, shape);
    if (on_device_ > 0) backend_->copy(grown.slice(0, on_device_), rows_.slice(0, on_device_));
    memory_ = std::move(memory);
    rows_ = grown;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void GatheredRows::append(ConstTensor rows) {
  if (make_room(rows)) {
    backend_->copy(rows_.slice(on_device_, rows.rows()), rows);
    on_device_ += rows.rows();
  } else {
    bring_to_host();
    for (std::int64_t t = 0; t < rows.rows(); ++t) append_on_host(rows.slice(t, 1));
  }
}

void GatheredRows::bring_to_host() {
  if (on_device_ > 0) append_on_host(rows_.slice(0, on_device_));
  on_device_ = 0;
}

void GatheredRows::append_on_host(ConstTensor rows) {
  const std::size_t had = host_.size();
  host_.resize(had + static_cast<std::size_t>(rows.shape.size()) * size_of(rows.dtype));
  backend_->download(Tensor(host_.data() + had, rows.dtype, rows.shape), rows);
  on_host_ += rows.rows();
}

}  // namespace statescope
