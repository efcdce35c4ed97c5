// The files that a tokenizer is read from.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace statescope {

struct TokenizerFiles {
  std::filesystem::path source;                           // what errors name
  std::map<std::string, std::string, std::less<>> files;  // name → bytes
  std::int64_t vocab_size;                                // ids that the model has; the largest number there is where no model is known

  /// Null if there is none of that name.
  const std::string* find(std::string_view name) const;
};

}  // namespace statescope
