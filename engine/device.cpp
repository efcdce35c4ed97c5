#include "engine/device.h"

#include <fmt/format.h>

#include <new>

namespace statescope {

std::string wrong_device_name(const std::string& name) {
  constexpr std::string_view indexed = "cuda:";
  constexpr std::size_t longest = 4;  // of an index
  const std::string index = name.starts_with(indexed) ? name.substr(indexed.size()) : "";
  const bool digits = !index.empty() && index.size() <= longest && index.find_first_not_of("0123456789") == index.npos;
  if (digits || name == "cpu" || name == "cuda" || name == "auto") return "";
  return fmt::format("there is no device \"{}\"; give cpu, cuda, cuda:1 or auto", name);
}

std::shared_ptr<Backend> open_cuda_device(const DeviceChoice& choice) {
  if (choice.name == "cpu") return nullptr;
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
