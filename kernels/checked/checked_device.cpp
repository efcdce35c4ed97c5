#include "kernels/checked/checked_device.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>

#include "kernels/checked/operands.h"

namespace statescope {
namespace {

std::string text_of(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.8g", number);
  return text.data();
}

/// "[17, 2, 5]": number `at` of a tensor of this shape.
std::string index_text(std::int64_t at, const Shape& shape) {
  std::string text = "]";
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text.insert(0, (axis > 0 ? ", " : "[") + std::to_string(at % shape[axis]));
    at /= shape[axis];
  }
  return text;
}

/// From the first number of x to its last one, what lies between its rows included.
Tensor extent(Tensor x) { return {x.data, x.dtype, {(x.rows() - 1) * x.stride + x.row_size()}}; }

double number_at(const std::vector<std::byte>& bytes, DType type, std::int64_t i) {
  const std::byte* const at = bytes.data() + static_cast<std::size_t>(i) * size_of(type);
  const auto as = [at]<class T>(T number) { return std::memcpy(&number, at, sizeof number), number; };
  switch (type) {
    case DType::f32:
      return as(0.0F);
    case DType::i32:
      return as(std::int32_t{});
    case DType::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(as(std::uint16_t{})) << 16);
    default:
      throw std::invalid_argument("results of type " + std::string(name_of(type)) + " are not compared");
  }
}

bool equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// What a device may leave unwritten: decays that it computes inside their memory, and room for what only a convolution reads.
struct Unwritten {
  std::vector<const void*> memory;

  void operator()(const ops::ForgetGatedOuterProduct& op) { memory.push_back(op.gate.y.data); }
  void operator()(const ops::SparseState& op) {
    for (std::size_t i = 0; op.from && i < op.from->decays.size(); ++i) memory.push_back(op.from->decays[i].y.data);
  }
  void operator()(const ops::Project& op) { leave_rooms(op.projections); }
  void operator()(const ops::ProjectOne& op) { leave_rooms(op.projections); }
  void operator()(const auto&) {}

 private:
  void leave_rooms(std::span<const Projection> all) {
    for (const Projection& p : all) {
      if (const auto* convolve = std::get_if<Convolve>(&p.finish); convolve && !p.z) memory.push_back(convolve->room.data);
    }
  }
};

}  // namespace

DevicesDiffer::DevicesDiffer(std::string_view operation, const void* memory, std::string result, std::string numbers)
    : operation_(operation), value_(std::move(result)), numbers_(std::move(numbers)), memory_(memory) {
  write();
}

void DevicesDiffer::name_value(std::string name) {
  if (!name.empty()) value_ = std::move(name);
  write();
}

void DevicesDiffer::name_place(std::string name) {
  place_ = std::move(name) + ", ";
  write();
}

void DevicesDiffer::write() { text_ = place_ + operation_ + ", " + value_ + " " + numbers_; }

/// Pieces of memory of the first device, and where on the other one the same numbers are.
class CheckedDevice::Counterparts : public std::enable_shared_from_this<Counterparts> {
 public:
  /// Keeps both until the result goes.
  Buffer add(const void* memory, Buffer one, const void* counterpart, Buffer other, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto piece = pieces_.insert({static_cast<const char*>(memory), {static_cast<const char*>(counterpart), bytes}});
    return Buffer(const_cast<void*>(memory), [self = shared_from_this(), piece, one, other](void*) mutable {
      self->remove(piece);
      one.reset();
      other.reset();
    });
  }
  /// Null where there is none.
  const void* of(const void* memory) const {
    const auto* const at = static_cast<const char*>(memory);
    const std::lock_guard lock(mutex_);
    for (auto piece = pieces_.upper_bound(at); piece != pieces_.begin();) {
      --piece;
      const std::ptrdiff_t offset = at - piece->first;
      if (offset < static_cast<std::ptrdiff_t>(piece->second.bytes)) return piece->second.counterpart + offset;
    }
    return nullptr;
  }

 private:
  struct Piece {
    const char* counterpart;
    std::size_t bytes;
  };
  using Pieces = std::multimap<const char*, Piece>;
  void remove(Pieces::iterator piece) {
    const std::lock_guard lock(mutex_);
    pieces_.erase(piece);
  }

  Pieces pieces_;
  mutable std::mutex mutex_;  // buffers may be let go by any thread
};

/// What an operation has written, on both devices.
struct CheckedDevice::Result {
  Tensor here, there;
  std::vector<std::byte> one{}, other{};

  void read(Backend& on_one, Backend& on_other) {
    for (const auto& [device, x, bytes] : {std::tuple(&on_one, here, &one), std::tuple(&on_other, there, &other)}) {
      const Tensor all = extent(x);
      bytes->resize(static_cast<std::size_t>(all.shape[0]) * size_of(x.dtype));
      device->download(Tensor(bytes->data(), all.dtype, all.shape), all);
    }
  }
  /// f(i, a, b) for each number, the i-th of its shape.
  void each(const std::function<void(std::int64_t, double, double)>& f) const {
    const std::int64_t width = here.row_size();
    for (std::int64_t i = 0; i < here.shape.size(); ++i) {
      const std::int64_t at = i / width * here.stride + i % width;
      f(i, number_at(one, here.dtype, at), number_at(other, here.dtype, at));
    }
  }
};

CheckedDevice::CheckedDevice(Devices::Device one, Devices::Device other, double tolerance)
    : one_(std::move(one)),
      other_(std::move(other)),
      tolerance_(tolerance),
      counterparts_(std::make_shared<Counterparts>()),
      scratch_(*other_.backend) {}

std::string CheckedDevice::description() const { return one().description() + "; each operation checked on " + other().description(); }

Buffer CheckedDevice::allocate(std::size_t bytes) {
  const Buffer here = one().allocate(bytes), there = other().allocate(bytes);
  return counterparts_->add(here.get(), here, there.get(), there, bytes);
}

Buffer CheckedDevice::allocate_weights(std::size_t bytes) {
  const Buffer here = one().allocate_weights(bytes), there = other().allocate_weights(bytes);
  return counterparts_->add(here.get(), here, there.get(), there, bytes);
}

void CheckedDevice::upload(Tensor device, ConstTensor host) {
  one().upload(device, host);
  other().upload(there(device), host);
}

std::size_t CheckedDevice::free_bytes() { return std::min(one().free_bytes(), other().free_bytes()) / 2; }

std::int64_t CheckedDevice::tokens_at_once() const { return std::min(one().tokens_at_once(), other().tokens_at_once()); }

ConstTensor CheckedDevice::adopt(ConstTensor host, Buffer& owner) {
  Buffer of_one = owner, of_other = owner;
  const ConstTensor here = one().adopt(host, of_one), there = other().adopt(host, of_other);
  owner = of_one;
  if (here.data == there.data) return here;
  const std::size_t bytes = static_cast<std::size_t>(host.shape.size()) * size_of(host.dtype);
  owner = counterparts_->add(here.data, of_one, there.data, of_other, bytes);
  return here;
}

DType CheckedDevice::activation_type(std::int64_t rows) const {
  const DType type = one().activation_type(rows);
  return type == other().activation_type(rows) ? type : DType::f32;
}

Tensor CheckedDevice::there(Tensor x) const {
  if (!x || x.shape.size() == 0) return x;
  const void* const memory = counterparts_->of(x.data);
  if (memory == nullptr) throw std::logic_error("a checked device is to write to memory that is not its own");
  x.data = const_cast<void*>(memory);
  return x;
}

ConstTensor CheckedDevice::there(ConstTensor x) const {
  if (!x || x.shape.size() == 0) return x;
  const void* const memory = counterparts_->of(x.data);
  if (memory == nullptr && has_own_memory()) throw std::logic_error("a checked device is to read memory that is not its own");
  if (memory != nullptr) x.data = memory;  // else weights, which both read where they are
  return x;
}

void CheckedDevice::run(const Operation& operation) {
  const Workspace::Mark mark(scratch_);
  std::vector<Result> results;
  Unwritten unwritten;
  std::visit(unwritten, operation);
  struct Exchange final : OperandExchange {
    CheckedDevice& device;
    std::vector<Result>& results;
    const std::vector<const void*>& unwritten;

    Exchange(CheckedDevice& device_, std::vector<Result>& results_, const std::vector<const void*>& unwritten_)
        : device(device_), results(results_), unwritten(unwritten_) {}
    Tensor written(Tensor x) override {
      const Tensor there = device.there(x);
      if (there && x.shape.size() > 0 && std::ranges::find(unwritten, x.data) == unwritten.end()) results.push_back({x, there});
      return there;
    }
    ConstTensor read(ConstTensor x) override { return device.there(x); }
    const std::int32_t* list(const std::int32_t* x) override {
      const void* const there = device.counterparts_->of(x);
      return there == nullptr ? x : static_cast<const std::int32_t*>(there);
    }
    Workspace& scratch(Workspace&) override { return device.scratch_; }
  } exchange(*this, results, unwritten.memory);
  OtherOperands others(exchange);
  const Operation of_other = others.of(operation);
  one().run(operation);
  other().run(of_other);
  for (Result& result : results) result.read(one(), other());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].one != results[i].other) compare(results[i], name_of(operation), results.size() == 1 ? 0 : i + 1);
  }
  for (const Result& result : results) {
    const Tensor all = extent(result.there);
    if (result.one != result.other) other().upload(all, ConstTensor(result.one.data(), all.dtype, all.shape));
  }
}

void CheckedDevice::compare(const Result& result, std::string_view operation, std::size_t number) const {
  double largest = 0;
  result.each([&](std::int64_t, double a, double b) {
    for (const double x : {a, b}) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  });
  const double most = result.here.dtype == DType::i32 ? 0 : tolerance_ * largest;
  result.each([&](std::int64_t i, double a, double b) {
    if (equal(a, b) || std::abs(a - b) <= most) return;
    const std::string numbers = index_text(i, result.here.shape) + ": " + text_of(a) + " on " + one_.name + ", " + text_of(b) + " on " +
                                other_.name + " (tolerance: " + text_of(tolerance_) + " of its largest number, " + text_of(largest) + ")";
    throw DevicesDiffer(operation, result.here.data, number == 0 ? "result" : "result " + std::to_string(number), numbers);
  });
}

}  // namespace statescope
