// Hugging Face folders: config.json, model.safetensors (or shards, with or without an index), tokenizer files, and what we keep beside
// them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/checkpoint/blocks.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/passed_over.h"
#include "engine/checkpoint/quantised.h"
#include "engine/checkpoint/safetensors.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_files = 10'000;
constexpr const char* index_name = "model.safetensors.index.json";
constexpr const char* whole_name = "model.safetensors";

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

/// Names of the tensors of some files.
std::set<std::string, std::less<>> names_of(const std::vector<RawTensor>& tensors) {
  std::set<std::string, std::less<>> names;
  for (const RawTensor& tensor : tensors) names.insert(tensor.name);
  return names;
}

void append(std::vector<RawTensor>& tensors, std::vector<RawTensor> more) {
  tensors.insert(tensors.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Shards as the index has them. Where it is stale, nothing may be missing that it names.
class IndexedShards {
 public:
  /// `names`: of all files of the folder.
  IndexedShards(Checkpoint& checkpoint, const std::vector<std::string>& names)
      : checkpoint_(checkpoint), index_(checkpoint.path / index_name), files_(read_index(index_)) {
    for (const auto& [name, file] : files_) shards_.insert(file);
    for (const std::string& name : names) {
      if (name.starts_with("model") && name.ends_with(".safetensors") && !shards_.contains(name)) others_.push_back(name);
    }
    for (const std::string& shard : shards_) {
      if (!contains(names, shard)) missing_ = shard;
    }
  }

  std::vector<RawTensor> read() {
    std::vector<RawTensor> tensors;
    if (contains(others_, whole_name)) return instead({whole_name});
    if (!missing_.empty() && !others_.empty()) return instead(others_);
    if (!missing_.empty()) fail(index_, fmt::format("names {}, which is missing from the folder; fetch it too", in_quotes(missing_)));
    for (const std::string& shard : shards_) {
      std::vector<RawTensor> more = read_raw_tensors(checkpoint_.path / shard, checkpoint_.files);
      for (const RawTensor& tensor : more) count(tensor.name, shard);
      append(tensors, std::move(more));
    }
    check_names(names_of(tensors), "none of its files has");
    note(moved_, "is stale: tensors lie in other files than it says");
    note(unnamed_, "is stale: tensors are in its files that it does not name");
    return tensors;
  }

 private:
  /// Files that the index does not name: model.safetensors, which is what Transformers reads then, or other shards where its own are
  /// missing. They must have all tensors.
  std::vector<RawTensor> instead(const std::vector<std::string>& files) {
    std::vector<RawTensor> tensors;
    for (const std::string& file : files) append(tensors, read_raw_tensors(checkpoint_.path / file, checkpoint_.files));
    const std::string read = one_line(files.front(), 100) + (files.size() > 1 ? ", …" : "");
    check_names(names_of(tensors), fmt::format("{} beside it does not have", read));
    checkpoint_.notes.push_back(fmt::format("{} names other files than {}, read instead: all tensors are there", index_name, read));
    return tensors;
  }

  void count(const std::string& name, const std::string& shard) {
    const auto said = files_.find(name);
    if (said == files_.end()) unnamed_.push_back(name);
    if (said != files_.end() && said->second != shard) moved_.push_back(name);
  }

  void check_names(const std::set<std::string, std::less<>>& found, std::string_view what) {
    std::vector<std::string> missing;
    for (const auto& [name, file] : files_) {
      if (!found.contains(name) && passed_over_as(name).empty())
        fail(index_, fmt::format("names tensor {}, which {}", in_quotes(name), what));
      if (!found.contains(name)) missing.push_back(name);
    }
    note(missing, "names tensors that are not there and not needed");
  }

  void note(const std::vector<std::string>& names, std::string_view what) {
    if (names.empty()) return;
    checkpoint_.notes.push_back(fmt::format("{} {}: {}{}", index_name, what, one_line(names.front(), 100), names.size() > 1 ? ", …" : ""));
  }

  Checkpoint& checkpoint_;
  const fs::path index_;
  const std::map<std::string, std::string> files_;
  std::set<std::string> shards_;
  std::vector<std::string> others_;  // sorted
  std::string missing_;              // one of the shards
  std::vector<std::string> moved_, unnamed_;
};

/// An index decides; else model.safetensors; else every safetensors file there is.
std::vector<RawTensor> read_weights(Checkpoint& checkpoint, const std::vector<std::string>& names) {
  const auto ends_with = [&](const char* end) { return [end](const std::string& name) { return name.ends_with(end); }; };
  if (contains(names, index_name)) return IndexedShards(checkpoint, names).read();
  std::vector<std::string> shards{whole_name};
  if (!contains(names, whole_name)) {
    shards = names;
    std::erase_if(shards, std::not_fn(ends_with(".safetensors")));
  }
  const auto gguf = std::ranges::find_if(names, ends_with(".gguf"));
  if (shards.empty() && gguf != names.end())
    fail(checkpoint.path, fmt::format("has its weights as GGUF ({}), which is not read; take the model's *.safetensors", in_quotes(*gguf)));
  if (shards.empty())
    fail(checkpoint.path, "has no *.safetensors file; weights in other formats have to be converted to safetensors first");
  std::vector<RawTensor> tensors;
  for (const std::string& shard : shards) append(tensors, read_raw_tensors(checkpoint.path / shard, checkpoint.files));
  return tensors;
}

std::string read_if_there(const fs::path& folder, const std::vector<std::string>& names, const char* name) {
  if (!contains(names, name)) return {};
  std::string text = read_file(folder / name, max_text_bytes);
  check_json_text(folder, name, text);
  return text;
}

}  // namespace

void read_folder(Checkpoint& checkpoint) {
  const std::vector<std::string> names = names_in(checkpoint.path);
  if (!contains(names, "config.json"))
    fail(checkpoint.path, "has no config.json; a folder with config.json and *.safetensors was expected");
  checkpoint.config = read_file(checkpoint.path / "config.json", max_text_bytes);
  check_json_text(checkpoint.path, "config.json", checkpoint.config);
  const Quantisation said = quantisation_of(checkpoint.config, read_if_there(checkpoint.path, names, "hf_quant_config.json"));
  take_tensors(checkpoint, read_weights(checkpoint, names), said);
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
