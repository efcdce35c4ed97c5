// Hugging Face folders: config.json, model.safetensors (or shards, with or without an index), tokenizer files, and what we keep beside
// them.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/checkpoint/blocks.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/safetensors.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_files = 10'000;
constexpr const char* index_name = "model.safetensors.index.json";

/// Names of the entries of a folder, sorted.
std::vector<std::string> names_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (names.size() == max_files) fail(folder, fmt::format("has more than {} files; it is not a model's folder", max_files));
    names.push_back(entry->path().filename().string());
  }
  if (error) fail_errno(folder, "cannot be read", error.value());
  std::ranges::sort(names);
  return names;
}

bool contains(const std::vector<std::string>& sorted, std::string_view name) { return std::ranges::binary_search(sorted, name); }

/// tensor name → file, as the index says.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const std::string text = read_file(path, max_text_bytes);
  check_json_text(path, "the index", text);
  const nlohmann::json index = nlohmann::json::parse(text, nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object() || index["weight_map"].empty())
    fail(path, "is not a safetensors index: an object with \"weight_map\" was expected");
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string()) fail(path, fmt::format("does not name a file for tensor {}", in_quotes(name)));
    check_file_name(path, file.get_ref<const std::string&>());
    files[name] = file;
  }
  return files;
}

void read_indexed_shards(Checkpoint& checkpoint) {
  const fs::path index = checkpoint.path / index_name;
  const std::map<std::string, std::string> files = read_index(index);
  std::set<std::string> shards;
  for (const auto& [name, file] : files) shards.insert(file);
  for (const std::string& shard : shards) {
    if (!fs::exists(checkpoint.path / shard)) fail(index, fmt::format("names {}, which is missing from the folder", in_quotes(shard)));
    read_safetensors_shard(checkpoint, checkpoint.path / shard);
  }
  sort_by_name(checkpoint.path, checkpoint.tensors);
  for (const auto& [name, file] : files)
    if (!checkpoint.find(name)) fail(index, fmt::format("names tensor {} in {}, which does not have it", in_quotes(name), in_quotes(file)));
}

/// An index decides; else model.safetensors; else every safetensors file there is.
void read_weights(Checkpoint& checkpoint, const std::vector<std::string>& names) {
  if (contains(names, index_name)) return read_indexed_shards(checkpoint);
  std::vector<std::string> shards{"model.safetensors"};
  if (!contains(names, shards.front())) {
    shards = names;
    std::erase_if(shards, [](const std::string& name) { return !name.ends_with(".safetensors"); });
  }
  if (shards.empty())
    fail(checkpoint.path, "has no *.safetensors file; weights in other formats have to be converted to safetensors first");
  for (const std::string& shard : shards) read_safetensors_shard(checkpoint, checkpoint.path / shard);
  sort_by_name(checkpoint.path, checkpoint.tensors);
}

}  // namespace

void read_folder(Checkpoint& checkpoint) {
  const std::vector<std::string> names = names_in(checkpoint.path);
  if (!contains(names, "config.json"))
    fail(checkpoint.path, "has no config.json; a folder with config.json and *.safetensors was expected");
  checkpoint.config = read_file(checkpoint.path / "config.json", max_text_bytes);
  read_weights(checkpoint, names);
  for (const std::string& name : names) {
    if (is_tokenizer_file(name)) checkpoint.tokenizer[name] = read_file(checkpoint.path / name, max_text_bytes);
    if (is_provenance_file(name)) checkpoint.provenance[name] = read_file(checkpoint.path / name, max_text_bytes);
  }
  if (!contains(names, "provenance")) return;
  for (const std::string& name : names_in(checkpoint.path / "provenance")) {
    const fs::path file = checkpoint.path / "provenance" / name;
    if (fs::is_regular_file(file) && !name.starts_with('.')) checkpoint.provenance[name] = read_file(file, max_text_bytes);
  }
}

namespace {

void write_file(const fs::path& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.finish();
}

/// Larger elements first, so that every tensor is aligned to its own.
std::vector<const StoredTensor*> in_file_order(const Checkpoint& checkpoint, const WriteOptions& options) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : checkpoint.tensors) order.push_back(&tensor);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](const StoredTensor* tensor) { return size_of(written_dtype(*tensor, options)); });
  return order;
}

void write_weights(const Checkpoint& checkpoint, const fs::path& path, const WriteOptions& options) {
  const std::vector<const StoredTensor*> order = in_file_order(checkpoint, options);
  std::vector<DType> dtypes;
  for (const StoredTensor* tensor : order) {
    check_tensor_name(checkpoint.path, tensor->name);
    dtypes.push_back(written_dtype(*tensor, options));
  }
  OutputFile file(path);
  file.write(safetensors_header(order, dtypes));
  BlockWriter blocks(checkpoint, options);
  for (std::size_t i = 0; i < order.size(); ++i)
    blocks.write_tensor(*order[i], dtypes[i], [&](std::int64_t, std::int64_t, std::span<const std::byte> bytes) { file.write(bytes); });
  file.finish();
}

void create_folder(const fs::path& path) {
  std::error_code error;
  if (!fs::create_directory(path, error)) fail_errno(path, "cannot be written", error.value());
}

}  // namespace

void write_folder(const Checkpoint& checkpoint, const fs::path& draft, const WriteOptions& options) {
  create_folder(draft);
  write_file(draft / "config.json", checkpoint.config);
  write_weights(checkpoint, draft / "model.safetensors", options);
  for (const auto& [name, bytes] : checkpoint.tokenizer) {
    if (!is_tokenizer_file(name)) fail(checkpoint.path, fmt::format("{} is not the name of a tokenizer file", in_quotes(name)));
    write_file(draft / name, bytes);
  }
  if (!checkpoint.provenance.empty()) create_folder(draft / "provenance");
  for (const auto& [name, bytes] : checkpoint.provenance) {
    check_file_name(checkpoint.path, name);
    write_file(draft / "provenance" / name, bytes);
  }
}

bool is_checkpoint_folder(const fs::path& path) {
  const std::vector<std::string> names = names_in(path);
  return std::ranges::all_of(names, [](const std::string& name) {
    return name == "config.json" || name == index_name || name == "provenance" || name.ends_with(".safetensors") ||
           is_tokenizer_file(name) || is_provenance_file(name);
  });
}

}  // namespace statescope
