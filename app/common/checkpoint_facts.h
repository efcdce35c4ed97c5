// What a checkpoint's files say of it, before a model is made of them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "engine/run/not_finite.h"
#include "engine/run/prompt_input.h"

namespace statescope {

struct CheckpointFacts {
  std::string config;                         // verbatim
  std::string sha256;                         // of its bytes; empty: not asked for
  std::optional<PromptInput> prompt;          // an example of what the model was trained on
  std::string why_no_prompt;                  // in a line, where there is none
  std::optional<NotFiniteWeight> not_finite;  // the first such weight
};

/// Of a file's bytes; of a folder, of its files' names and bytes in order. Throws Error; Cancelled where `goes_on` returns false.
std::string sha256_of(const std::filesystem::path& path, const std::function<bool()>& goes_on = {});

/// `name`: what it is called where something is wrong with it. Throws as sha256_of.
CheckpointFacts facts_of(const std::filesystem::path& checkpoint, const std::string& name, bool digest,
                         const std::function<bool()>& goes_on = {});

}  // namespace statescope
