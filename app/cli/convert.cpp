#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <set>

#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/common/running.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/printable.h"

namespace statescope {

namespace {

/// A folder is written where the name does not end with .h5: not where a file of another kind was meant.
void check_target(const std::filesystem::path& path) {
  static const std::set<std::string> endings{".safetensors", ".bin", ".pt",   ".pth", ".ckpt", ".gguf", ".ggml", ".onnx", ".npz",
                                             ".npy",         ".pkl", ".hdf5", ".he5", ".json", ".zip",  ".tar",  ".gz"};
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (endings.contains(ending) || (ending == ".h5" && path.extension() != ".h5"))
    fail(path, "convert writes NAME.h5, or a folder with model.safetensors in it; no folder has such a name");
}

}  // namespace

int convert_command(const ConvertArguments& arguments) {
  check_target(arguments.to);
  const auto checkpoint = open_checkpoint(arguments.from);
  const std::shared_ptr<const Model> could_be_read = load_model(checkpoint, {});  // throws Error where it could not
  const DType dtype = arguments.dtype == "f16" ? DType::f16 : arguments.dtype == "bf16" ? DType::bf16 : DType::f32;
  {
    ProgressBar bar(fmt::format("writing {}", arguments.to));
    write_checkpoint(*checkpoint, arguments.to,
                     {.dtype = arguments.dtype.empty() ? nullptr : &dtype, .overwrite = arguments.force, .progress = [&](double fraction) {
                        bar.show(fraction);
                        return true;
                      }});
  }
  fmt::print("{}: {} tensors, {:.2f} million parameters\n", printable(arguments.to), checkpoint->tensors.size(),
             static_cast<double>(checkpoint->parameters()) / 1e6);
  return 0;
}

}  // namespace statescope
