// What is said against a config.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/error.h"
#include "engine/model/family.h"

namespace statescope::test {

/// "" where a model of this config may be planned.
inline std::string complaint(const nlohmann::json& config) {
  try {
    plan_model(Config(config));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace statescope::test
