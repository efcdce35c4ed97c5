// A prompt as its maker wrote it: text or token ids, and which parts are needle, question and answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace statescope {

enum class PromptPart { needle, question, answer };

/// Bytes [begin, end) of the text, or tokens where there are ids.
struct PromptSpan {
  PromptPart part = PromptPart::needle;
  std::size_t begin = 0, end = 0;
};

struct Prompt {
  std::string text;
  std::vector<std::int32_t> ids;     // in place of the text; empty: none
  std::string expected;              // how a right answer begins; empty: unknown
  std::vector<std::string> answers;  // what a right reply contains; empty: unknown
  bool any_answer = false;           // one of them is enough, as in RULER's question answering; else each is wanted
  std::vector<PromptSpan> spans;
  bool in_chat = false;  // the text is a chat template's, special tokens and all
};

/// Reads a prompt file, or standard input ("-"). JSON holds one object, or a list of which `index` chooses one; of JSONL `index` chooses
/// the line. Files that end with .json, .jsonl or .ndjson, in small letters or capitals, are such; those that end with .txt or .md are the
/// text itself, in UTF-8; all others are what their content says. What an object may hold is told in README.md. Throws std::runtime_error
/// with one line naming the file.
Prompt read_prompt(const std::filesystem::path& path, std::size_t index = 0);
/// All that the file holds, at least one.
std::vector<Prompt> read_prompts(const std::filesystem::path& path);

/// Reads token ids, at least one: separated by white space or commas, as a JSON list, or as an object's "ids". Throws std::runtime_error
/// with one line naming the file.
std::vector<std::int32_t> read_ids(const std::filesystem::path& path);

}  // namespace statescope
