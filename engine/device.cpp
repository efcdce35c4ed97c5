#include "engine/device.h"

#include <fmt/format.h>

#include <new>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kernels/checked/checked_device.h"
#include "kernels/devices.h"

namespace statescope {

namespace {

/// "cuda:0,cpu" → "cuda:0", "cpu"
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) c == ',' ? parts.emplace_back() : parts.back() += c;
  return parts;
}

/// By which two names are one device.
std::string plain(const std::string& name) {
  if (name == "cpu") return name;
  constexpr std::size_t prefix = 5;  // "cuda:"
  return fmt::format("cuda:{}", name.size() > prefix ? std::stoi(name.substr(prefix)) : 0);
}

/// The GPUs in turn, then the CPU.
class InTurn {
 public:
  explicit InTurn(const DeviceChoice& choice) : choice_(choice) {}
  std::optional<Devices::Device> operator()() {
    while (next_ >= 0) {
      const std::string name = fmt::format("cuda:{}", next_++);
      try {
        return Devices::Device{name, make_backend(name, 0, choice_.precision)};
      } catch (const DeviceError&) {
        next_ = -1;  // there are no more
      } catch (const std::bad_alloc&) {
        continue;  // others use its memory
      }
    }
    return std::exchange(cpu_is_left_, false) ? std::optional(Devices::Device{"cpu", make_cpu_backend(choice_.threads, choice_.precision)})
                                              : std::nullopt;
  }

 private:
  DeviceChoice choice_;
  int next_ = 0;
  bool cpu_is_left_ = true;
};

}  // namespace

std::string wrong_device_name(const std::string& name) {
  if (name == "auto") return "";
  try {
    if (checked_devices(name)) return "";
  } catch (const std::invalid_argument& wrong) {
    return wrong.what();
  }
  std::set<std::string> known;
  for (const std::string& part : parts_of(name)) {
    if (!is_device(part))
      return fmt::format(
          "there is no device \"{}\"; give cpu, cuda, cuda:1 or auto, or several in order: cuda:0,cuda:1,cpu, or two to check: "
          "check:cpu,cuda",
          part);
    if (!known.insert(plain(part)).second) return fmt::format("the device \"{}\" is named twice", part);
  }
  return "";
}

std::shared_ptr<Backend> open_cuda_device(const DeviceChoice& choice) {
  if (choice.name == "cpu") return nullptr;
  if (checked_devices(choice.name)) return make_backend(choice.name, choice.threads, choice.precision);
  if (const std::vector<std::string> parts = parts_of(choice.name); parts.size() > 1) {
    std::vector<Devices::Device> devices;
    for (const std::string& part : parts) devices.push_back({part, make_backend(part, choice.threads, choice.precision)});
    return std::make_shared<Devices>(std::move(devices));
  }
  if (choice.name != "auto") return make_backend(choice.name, 0, choice.precision);
  InTurn in_turn(choice);
  Devices::Device first = *in_turn();
  return first.backend->has_own_memory() ? std::make_shared<Devices>(std::vector{std::move(first)}, std::move(in_turn)) : nullptr;
}

std::shared_ptr<Backend> open_device(const DeviceChoice& choice) {
  std::shared_ptr<Backend> device = open_cuda_device(choice);
  return device ? device : make_cpu_backend(choice.threads, choice.precision);
}

}  // namespace statescope
