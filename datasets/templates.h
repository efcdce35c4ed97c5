// The words and sentences that needle tasks are made of, as assets/tasks/needles.json has them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

/// A word of a sentence: always the same, or one of a class.
struct TemplateWord {
  std::string word;
  std::optional<std::size_t> one_of;  // index into Templates::classes
};

struct Templates {
  std::vector<std::vector<std::string>> classes;
  std::size_t names = 0;  // the class of those whom needles are about
  std::vector<std::vector<TemplateWord>> filler;
  std::string needle, question;              // words joined by single spaces, with {name} and four {digit}
  std::string prose_needle, prose_question;  // with {name} and {value}; the needle ends in a space
};

/// Throws std::runtime_error with one line naming the file.
Templates read_templates(const std::filesystem::path& path);

/// `text` with {name} and {value} put in, and for each {digit} the next character of `value`.
std::string filled(std::string_view text, std::string_view name, std::string_view value);

}  // namespace statescope
