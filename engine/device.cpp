#include "engine/device.h"

#include <fmt/format.h>

#include <new>
#include <set>
#include <vector>

#include "kernels/devices.h"

namespace statescope {

namespace {

bool is_one_device(const std::string& name) {
  constexpr std::string_view indexed = "cuda:";
  constexpr std::size_t longest = 4;  // of an index
  const std::string index = name.starts_with(indexed) ? name.substr(indexed.size()) : "";
  const bool digits = !index.empty() && index.size() <= longest && index.find_first_not_of("0123456789") == index.npos;
  return digits || name == "cpu" || name == "cuda";
}

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

}  // namespace

std::string wrong_device_name(const std::string& name) {
  if (name == "auto") return "";
  std::set<std::string> known;
  for (const std::string& part : parts_of(name)) {
    if (!is_one_device(part))
      return fmt::format("there is no device \"{}\"; give cpu, cuda, cuda:1 or auto, or several in order: cuda:0,cuda:1,cpu", part);
    if (!known.insert(plain(part)).second) return fmt::format("the device \"{}\" is named twice", part);
  }
  return "";
}

std::shared_ptr<Backend> open_cuda_device(const DeviceChoice& choice) {
  if (choice.name == "cpu") return nullptr;
  if (const std::vector<std::string> parts = parts_of(choice.name); parts.size() > 1) {
    std::vector<Devices::Device> devices;
    for (const std::string& part : parts) devices.push_back({part, make_backend(part, choice.threads, choice.precision)});
    return std::make_shared<Devices>(std::move(devices));
  }
  if (choice.name != "auto") return make_backend(choice.name, 0, choice.precision);
  try {
    return make_backend("cuda", 0, choice.precision);
  } catch (const DeviceError&) {
    return nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::shared_ptr<Backend> open_device(const DeviceChoice& choice) {
  std::shared_ptr<Backend> device = open_cuda_device(choice);
  return device ? device : make_cpu_backend(choice.threads, choice.precision);
}

}  // namespace statescope
