// The file of a batch.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/batch/batch.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

std::string text_in(const std::string& key, const json& value) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) throw Error(key + " is not a text, or a list of them");
  return value.get<std::string>();
}

std::vector<std::string> texts_in(const std::string& key, const json& value) {
  if (!value.is_array()) return {text_in(key, value)};
  std::vector<std::string> texts;
  for (const json& each : value) texts.push_back(text_in(key, each));
  return texts;
}

Batch batch_of(const json& value) {
  if (!value.is_object()) throw Error("is not a JSON object");
  Batch batch;
  for (const auto& [key, member] : value.items()) {
    if (key == "figures")
      batch.figures = texts_in(key, member);
    else if (key == "checkpoints")
      batch.checkpoints = texts_in(key, member);
    else if (key == "prompts")
      batch.prompts = texts_in(key, member);
    else if (key == "output")
      batch.output = text_in(key, member);
    else if (key == "format")
      batch.format = text_in(key, member);
    else
      throw Error(in_quotes(key) + " is no key of a batch");
  }
  if (batch.figures.empty()) throw Error("has no \"figures\"");
  constexpr std::string_view formats[] = {"pdf", "svg", "png", "eps"};
  if (std::ranges::find(formats, batch.format) == std::end(formats)) throw Error("format is not pdf, svg, png or eps");
  return batch;
}

}  // namespace

Batch parse_batch(std::string_view text, const std::string& name) {
  check_json_text(name, "it", text);
  try {
    return batch_of(json::parse(text, nullptr, false));
  } catch (const Error& error) {
    fail(name, error.what());
  }
}

}  // namespace statescope
