// Any bytes as a config.json: refused with an Error, or an object that answers for every key, with a value or an Error, and from which a
// model can be planned, or not, with an Error.
#include "engine/config/config.h"

#include <functional>

#include "engine/checkpoint/format.h"
#include "engine/error.h"
#include "engine/model/family.h"

using statescope::Config;

namespace {

void ask(const std::function<void()>& question) {
  try {
    question();
  } catch (const statescope::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ask([&] {
    statescope::check_json_text("input", "config.json", text);  // as open_checkpoint does
    const Config config = Config::parse(text);
    ask([&] { statescope::plan_model(config); });
    for (const std::string& key : config.keys()) {
      ask([&] { config.integer(key); });
      ask([&] { config.number(key, {}, true); });
      ask([&] { config.boolean(key, false); });
      ask([&] { config.text(key, {}, {"gla"}); });
      ask([&] { config.integers(key); });
      ask([&] { config.texts(key); });
      ask([&] { config.numbers(key); });
      ask([&] { config.object(key); });
      ask([&] { config.objects(key); });
    }
  });
  return 0;
}
