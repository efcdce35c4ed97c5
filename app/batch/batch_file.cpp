// The file of a batch.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/batch/batch.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/json_object.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

/// A text or a list of them, none empty.
void take_texts(JsonObject& object, const char* key, std::vector<std::string>& out) {
  const json* value = object.find(key);
  if (!value) return;
  for (const json& each : value->is_array() ? *value : json::array({*value})) {
    if (!each.is_string() || each.get_ref<const std::string&>().empty()) object.wrong(key, "a text, or a list of them");
    out.push_back(each.get<std::string>());
  }
}

Batch batch_of(const json& value, const std::string& name) {
  JsonObject object(value, name);
  Batch batch;
  take_texts(object, "figures", batch.figures);
  take_texts(object, "checkpoints", batch.checkpoints);
  take_texts(object, "prompts", batch.prompts);
  object.take("output", batch.output);
  object.take("format", batch.format);
  object.nothing_else("a batch");
  if (batch.figures.empty()) object.refuse("has no \"figures\"");
  if (batch.output.empty()) object.refuse("\"output\" is empty");
  constexpr std::string_view formats[] = {"pdf", "svg", "png", "eps"};
  if (std::ranges::find(formats, batch.format) == std::end(formats)) object.wrong("format", "pdf, svg, png or eps");
  return batch;
}

}  // namespace

Batch parse_batch(std::string_view text, const std::string& name) {
  check_json_text(name, "it", text);
  return batch_of(json::parse(text, nullptr, false), name);
}

}  // namespace statescope
