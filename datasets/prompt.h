// A prompt as its maker wrote it: text, and which parts are needle, question and answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace statescope {

enum class PromptPart { needle, question, answer };

/// Bytes [begin, end) of the text.
struct PromptSpan {
  PromptPart part = PromptPart::needle;
  std::size_t begin = 0, end = 0;
};

struct Prompt {
  std::string text;
  std::string expected;  // what a right answer says, empty if unknown
  std::vector<PromptSpan> spans;
};

/// Reads a prompt file. A .json file holds one object, or a list of which `index` chooses one, with "prompt" (text) and optionally
/// "expected" (text, or a list of words) and "spans" ([{"part": "needle", "begin": 12, "end": 40}, …]); of a .jsonl file (records.h)
/// `index` chooses the line; any other file is the text itself, in UTF-8. Throws std::runtime_error with one line naming the file.
Prompt read_prompt(const std::filesystem::path& path, std::size_t index = 0);
/// All that the file holds, at least one.
std::vector<Prompt> read_prompts(const std::filesystem::path& path);

/// Reads a file of whitespace-separated token ids, at least one. Throws std::runtime_error with one line naming the file.
std::vector<std::int32_t> read_ids(const std::filesystem::path& path);

}  // namespace statescope
