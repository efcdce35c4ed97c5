#include <fmt/format.h>

#include <cstdio>

#include "app/cli_commands.h"
#include "engine/checkpoint/checkpoint.h"

namespace statescope {

int convert_command(const ConvertArguments& arguments) {
  const auto checkpoint = open_checkpoint(arguments.from);
  print_notes(checkpoint->notes);
  const DType dtype = arguments.dtype == "f16" ? DType::f16 : arguments.dtype == "bf16" ? DType::bf16 : DType::f32;
  {
    ProgressBar bar(fmt::format("writing {}", arguments.to));
    write_checkpoint(*checkpoint, arguments.to,
                     {.dtype = arguments.dtype.empty() ? nullptr : &dtype, .overwrite = arguments.force, .progress = [&](double fraction) {
                        bar.show(fraction);
                        return true;
                      }});
  }
  fmt::print("{}: {} tensors, {:.2f} million parameters\n", arguments.to, checkpoint->tensors.size(),
             static_cast<double>(checkpoint->parameters()) / 1e6);
  return 0;
}

}  // namespace statescope
