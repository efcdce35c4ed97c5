#include "app/common/running.h"

#include <new>

#include "engine/error.h"

namespace statescope {

std::shared_ptr<Model> load_model(std::shared_ptr<const Checkpoint> checkpoint, const DeviceChoice& device) {
  std::shared_ptr<Model> model = Model::load(std::move(checkpoint), open_device(device));
  print_notes(model->notes());
  return model;
}

int run_with_fallback(DeviceChoice& device, const std::function<int()>& command, const std::function<void(const std::string&)>& note) {
  const auto on_cpu = [&](const std::string& why) {
    note(why + "; the CPU does it from the beginning");
    device.name = "cpu";
    return command();
  };
  if (device.name != "auto") return command();
  try {
    return command();
  } catch (const DeviceError& error) {
    return on_cpu(error.what());
  } catch (const std::bad_alloc&) {
    if (!open_cuda_device(device)) throw;  // the host's
  }
  return on_cpu("cuda: out of memory");
}

}  // namespace statescope
