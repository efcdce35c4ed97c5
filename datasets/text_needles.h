// Needles in real text, for models with a tokenizer of their own: notes among sentences, a question at the end, and the beginning of its
// answer. Lengths count the model's tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/task.h"

namespace statescope {

/// The words and sentences that they are made of, as assets/tasks/text-needles.json has them: {kind}, {kinds}, {key}, {keys} and {value}
/// are put in. A key is a first word and a second one.
struct TextTemplates {
  std::vector<std::string> first, second;
  std::map<std::string, std::pair<std::string, std::string>> kinds;  // of value: one, several
  std::string filler, introduction, needle, question, questions, answer, answers;
};

/// Throws std::runtime_error with one line naming the file.
TextTemplates read_text_templates(const std::filesystem::path& path);

/// The model that reads the examples.
struct TextReader {
  std::function<std::int64_t(std::string_view)> count;     // tokens of a prompt
  std::function<std::string(const std::string&)> in_chat;  // what a user says, as its chat template puts it; empty: it has none
};

/// Of `options`: length (of the prompt, without the answer, the longest that is not longer), needles, values, queries, depth_percent,
/// value, haystack (filler: own sentences again and again; else `text`, from any of its sentences on, and again from its beginning), seed,
/// split. An example has a question for each value asked; `given` begins where the prompt ends, with the space before the value. Throws
/// OptionsError.
std::unique_ptr<const Task> make_text_needles(const TaskOptions& options, TextTemplates templates, const std::string& text,
                                              TextReader reader);

}  // namespace statescope
