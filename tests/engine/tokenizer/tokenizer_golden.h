// The reference cases of golden/tokenizers: a vocabulary each, texts with their ids, ids with their texts.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/source.h"

namespace statescope::test {

inline std::vector<std::string> tokenizer_kinds() {
  std::vector<std::string> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(from_source("tests/golden/tokenizers")))
    if (entry.is_directory()) kinds.push_back(entry.path().filename());
  return kinds;
}

inline std::filesystem::path tokenizer_folder(const std::string& kind) { return from_source("tests/golden/tokenizers/" + kind); }

inline std::vector<nlohmann::json> json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// The vocabulary of a kind: its name and its path.
inline std::filesystem::path vocabulary_file(const std::string& kind) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.tiktoken", "tekken.json", "rwkv_vocab.txt"})
    if (exists(tokenizer_folder(kind) / name)) return tokenizer_folder(kind) / name;
  return {};
}

}  // namespace statescope::test
