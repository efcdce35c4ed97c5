// Which tokenizer some files hold: tokenizer.json before all others.
#include <fmt/format.h>

#include <array>
#include <limits>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"
#include "engine/tokenizer/files/byte_pieces.h"
#include "engine/tokenizer/files/files.h"
#include "engine/tokenizer/files/gpt2_files.h"
#include "engine/tokenizer/files/rwkv.h"
#include "engine/tokenizer/files/sentence_piece.h"
#include "engine/tokenizer/files/tokenizer_json.h"
#include "engine/tokenizer/words.h"

namespace statescope {

const std::string* TokenizerFiles::find(std::string_view name) const {
  const auto found = files.find(name);
  return found == files.end() ? nullptr : &found->second;
}

namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kBytes = 256;
constexpr std::array<std::pair<const char*, const char*>, 2> kPairs{{{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}};

using Files = std::map<std::string, std::string, std::less<>>;

void refuse_pointer(const TokenizerFiles& files, const std::string& name, std::string_view text) {
  if (text.starts_with("version https://git-lfs"))
    fail(files.source, fmt::format("{} is a Git LFS pointer, not the file itself; `git lfs pull` fetches it", name));
}

/// By what a file holds, whatever its name is: Llama-3's tokenizer.model is a tiktoken file. Null: none of these.
std::unique_ptr<Tokenizer> read_by_content(const TokenizerFiles& files, const std::string& name, const std::string& text) {
  refuse_pointer(files, name, text);
  if (text.starts_with('\n')) return read_sentence_piece(files, name, text);
  if (is_tiktoken(text)) return read_tiktoken(files, name, text);
  if (is_rwkv(text)) return read_rwkv(files, name, text);
  if (text.starts_with('{') && text.find("\"default_vocab_size\"") != text.npos) return read_tekken(files, name, text);
  return nullptr;
}

/// One file alone; those beside it say how it is used.
std::unique_ptr<Tokenizer> read_file_alone(const TokenizerFiles& files, const std::string& name) {
  if (auto tokenizer = read_by_content(files, name, *files.find(name))) return tokenizer;
  for (const auto& [vocabulary, merges] : kPairs)
    if ((name == vocabulary || name == merges) && files.find(vocabulary) && files.find(merges))
      return read_gpt2_files(files, *files.find(vocabulary), *files.find(merges));
  if (name.ends_with(".json")) return read_tokenizer_json(files, *files.find(name));
  fail(files.source, "is no tokenizer that is known here");
}

bool is_vocabulary(std::string_view name) {
  return name.starts_with("tokenizer.model") || name == "spiece.model" || name == "tiktoken.model" || name.ends_with(".tiktoken") ||
         name.starts_with("tekken") || name.starts_with("rwkv_vocab");
}

std::unique_ptr<Tokenizer> read_tokenizer(const TokenizerFiles& files) {
  if (const std::string* text = files.find("tokenizer.json")) {
    refuse_pointer(files, "tokenizer.json", *text);
    return read_tokenizer_json(files, *text);
  }
  for (const auto& [name, text] : files.files) {
    if (!is_vocabulary(name)) continue;
    if (auto tokenizer = read_by_content(files, name, text)) return tokenizer;
    fail(files.source, fmt::format("{} is neither of sentencepiece, tiktoken, tekken nor RWKV, or is damaged", name));
  }
  for (const auto& [vocabulary, merges] : kPairs)
    if (files.find(vocabulary) && files.find(merges)) return read_gpt2_files(files, *files.find(vocabulary), *files.find(merges));
  for (const char* name : {"vocab.json", "vocab.txt"})
    if (files.find(name)) fail(files.source, fmt::format("{} alone does not say how texts are split; a tokenizer.json would", name));
  if (files.vocab_size >= kBytes && files.vocab_size <= kBytes + 4) return byte_tokenizer(files.source, files.vocab_size);
  fail(files.source, "has no tokenizer");
}

/// Those of a folder, all that can belong to a tokenizer.
Files tokenizer_files_of(const fs::path& folder) {
  Files files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_tokenizer_file(name) && entry.is_regular_file()) files[name] = read_file(entry.path(), max_text_bytes);
  }
  return files;
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const Checkpoint& checkpoint, std::int64_t vocab_size) {
  try {
    return read_tokenizer({checkpoint.path, {checkpoint.tokenizer.begin(), checkpoint.tokenizer.end()}, vocab_size});
  } catch (const Error& error) {
    return numbers_only(error.what());
  }
}

std::unique_ptr<Tokenizer> open_tokenizer(const fs::path& path) {
  constexpr std::int64_t any_size = std::numeric_limits<std::int32_t>::max();
  if (fs::is_directory(path)) return read_tokenizer({path, tokenizer_files_of(path), any_size});
  if (path.extension() == ".h5") {
    const auto checkpoint = open_checkpoint(path);
    return read_tokenizer({path, {checkpoint->tokenizer.begin(), checkpoint->tokenizer.end()}, any_size});
  }
  const std::string name = path.filename().string();
  Files files = tokenizer_files_of(path.has_parent_path() ? path.parent_path() : fs::path("."));
  files[name] = read_file(path, max_text_bytes);
  return read_file_alone({path, std::move(files), any_size}, name);
}

}  // namespace statescope
