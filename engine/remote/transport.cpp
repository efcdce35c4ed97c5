#include "engine/remote/transport.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "engine/error.h"
#include "kernels/cpu/beside.h"

namespace statescope::remote {
namespace {

/// What the module exports (grpc/module.cpp).
using MakeTransport = Transport* (*)();

/// Never unloaded, as gRPC has threads of its own.
Transport& load() {
  const std::filesystem::path file = beside_program("libstatescope-remote.so");
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    throw Error("this program was installed without its module for other machines (package statescope-remote)");
  void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw Error(std::string("the module for other machines cannot be loaded: ") + dlerror());
  void* const symbol = dlsym(module, "statescope_make_transport");
  if (symbol == nullptr) throw Error(std::string("the module for other machines is damaged: ") + dlerror());
  return *reinterpret_cast<MakeTransport>(symbol)();
}

}  // namespace

Transport& transport() {
  static Transport& loaded = load();
  return loaded;
}

}  // namespace statescope::remote
