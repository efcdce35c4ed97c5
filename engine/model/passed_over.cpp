#include "engine/model/passed_over.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "engine/error.h"

namespace statescope {
namespace {

/// Tensors whose name begins with, or ends in, a text.
struct Part {
  std::string_view what;  // empty: of no interest to anybody
  std::vector<std::string_view> beginnings, endings;
};

const std::array<Part, 5>& parts() {
  static const std::array<Part, 5> all{{
      {"the part for pictures",
       {"model.visual.", "visual.", "vision_tower.", "model.vision_tower.", "vision_model.", "model.vision_model.", "multi_modal_projector.",
        "model.multi_modal_projector."},
       {}},
      {"the part for sound", {"audio_tower.", "model.audio_tower.", "model.audio_projector.", "audio_projector."}, {}},
      {"heads for several tokens at once", {"mtp.", "model.mtp."}, {}},
      {"heads for other tasks", {"score.", "classifier.", "v_head.", "value_head."}, {}},
      {"", {}, {"rotary.inv_freq", "rotary_emb.inv_freq", ".k_scale", ".v_scale"}},
  }};
  return all;
}

const Part* part_of(std::string_view tensor) {
  const auto is_of = [&](const Part& part) {
    return std::ranges::any_of(part.beginnings, [&](std::string_view text) { return tensor.starts_with(text); }) ||
           std::ranges::any_of(part.endings, [&](std::string_view text) { return tensor.ends_with(text); });
  };
  const auto found = std::ranges::find_if(parts(), is_of);
  return found == parts().end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> passed_over(const std::vector<std::string>& unused, std::string_view family) {
  std::map<std::string_view, std::vector<std::string>> kinds;
  std::vector<std::string> unknown;
  for (const std::string& tensor : unused) {
    const Part* part = part_of(tensor);
    (part ? kinds[part->what] : unknown).push_back(tensor);
  }
  if (!unknown.empty()) {
    constexpr std::size_t named = 4;
    const auto end = unknown.begin() + static_cast<std::ptrdiff_t>(std::min(unknown.size(), named));
    throw Error(fmt::format("a {} model of this config does not use the tensor{} {}{}; the config lacks what says how they enter, or they "
                            "do not belong here",
                            family, unknown.size() > 1 ? "s" : "", fmt::join(unknown.begin(), end, ", "),
                            unknown.size() > named ? fmt::format(" and {} more", unknown.size() - named) : ""));
  }
  std::vector<std::string> notes;
  for (const auto& [what, tensors] : kinds) {
    if (!what.empty()) notes.push_back(fmt::format("passed over: {} ({} tensors: {}, …)", what, tensors.size(), tensors.front()));
  }
  return notes;
}

}  // namespace statescope
