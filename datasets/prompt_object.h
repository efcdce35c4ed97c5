// One JSON object of a prompt file: our own, RULER's, a line of lm-eval's log of samples, or token ids.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "datasets/prompt.h"

namespace statescope {

/// `where` says which part of the file it is: "", or "line 3: ". Throws std::runtime_error with one line naming the file.
Prompt prompt_of(const std::filesystem::path& path, const nlohmann::json& object, const std::string& where);

/// Whether a JSON value is a list of token ids, at least one. Throws std::runtime_error where one of its numbers cannot be an id.
bool are_ids(const std::filesystem::path& path, const nlohmann::json& value, const std::string& where);
std::vector<std::int32_t> ids_of(const nlohmann::json& value);

}  // namespace statescope
