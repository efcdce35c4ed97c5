// Where a folder keeps its chat templates, and which of them is used.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

class TemplateFolder {
 public:
  /// A checkpoint (folder or .h5 file), a folder of template files alone, or one such file. Throws Error for files that cannot be read;
  /// that there is no template is an error only when one is asked for.
  explicit TemplateFolder(const std::filesystem::path& path);
  bool has_templates() const { return !sources_.empty(); }
  /// The source of the template of that name; without a name: with tools the one called tool_use, else the default. Throws Error.
  const std::string& source(const std::string& name, bool tools) const;
  /// bos_token, eos_token, …: those that the tokenizer has.
  const Dict& special_tokens() const { return special_tokens_; }

 private:
  std::filesystem::path path_;
  std::map<std::string, std::string> sources_;  // by name; the one without a name: default
  Dict special_tokens_;
};

}  // namespace statescope::chat
