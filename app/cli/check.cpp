#include <fmt/format.h>

#include <cmath>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/common/prompts.h"
#include "app/common/running.h"
#include "engine/checkpoint/printable.h"
#include "engine/run/device_check.h"
#include "engine/run/reading.h"

namespace statescope {
namespace {

constexpr int kDiffers = 3;

std::string text_of(double relative) { return std::isfinite(relative) ? fmt::format("{:.1e}", relative) : "not a number"; }

void print_layers(const DeviceCheck& check, std::int64_t layers) {
  fmt::print("{:<8}{:>10}  {}\n", "layer", "apart", "most in");
  for (const DeviceDifference& each : check.largest) {
    if (each.name.empty()) continue;  // after what differs nothing was read
    const std::string layer = each.layer == layers ? "after" : fmt::format("{}", each.layer);
    fmt::print("{:<8}{:>10}  {}\n", layer, each.relative == 0 ? "0" : text_of(each.relative),
               each.relative == 0 ? "equal to the bit" : each.name);
  }
}

DeviceCheck compared(Model& one, Model& other, const std::vector<std::int32_t>& ids, const CheckArguments& arguments) {
  ProgressBar bar("comparing");
  return check_devices(one, other, ids, arguments.steps, arguments.tolerance, [&](double done) {
    bar.show(done);
    return true;
  });
}

}  // namespace

int check_command(const CheckArguments& arguments) {
  const std::filesystem::path path = checkpoint_at(arguments.checkpoint);
  const auto checkpoint = open_checkpoint(path);
  DeviceChoice of_one = arguments.device, of_other = arguments.device;
  of_one.name = arguments.devices.front();
  of_other.name = arguments.devices.back();
  of_other.precision = arguments.other_precision.value_or(of_one.precision);
  const auto one = load_model(checkpoint, of_one), other = load_model(checkpoint, of_other);
  const auto tokenizer = make_tokenizer(*checkpoint, one->vocab());
  const std::vector<std::int32_t> ids = encode(first_prompt(arguments.prompt, path.string()), *tokenizer).ids;
  const DeviceCheck check = compared(*one, *other, ids, arguments);
  fmt::print("{}\n  one:   {}\n  other: {}\n", printable(arguments.checkpoint), one->backend().description(),
             other->backend().description());
  fmt::print("{} tokens in passes, {} one by one; {} numbers; apart: of the largest number of the value\n", check.tokens, check.steps,
             check.values);
  print_layers(check, one->layers());
  if (!check.first) {
    fmt::print("they agree within {:g}\n", arguments.tolerance);
    return 0;
  }
  fmt::print("they differ first in {}\n", check.first->text(one->layers()));
  return kDiffers;
}

}  // namespace statescope
