// Prompts from text.
#pragma once

#include "datasets/prompt.h"
#include "tests/datasets/input_file.h"

namespace statescope::test {

/// What is read from a file of that name with that text.
inline Prompt read(const std::string& name, const std::string& text, std::size_t index = 0) {
  return read_prompt(InputFile(name, text).path, index);
}

}  // namespace statescope::test
