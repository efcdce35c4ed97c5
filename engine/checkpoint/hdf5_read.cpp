// An HDF5 checkpoint: the reader, a program of its own (hdf5_catalogue.h), says where each tensor lies, and its word is checked here.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/isolate.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// The catalogue is no more trusted than the file.
StoredTensor accept_tensor(Checkpoint& checkpoint, const json& entry, const MappedFile& file, const MappedFile& memory) {
  StoredTensor tensor{entry.at("name"), entry.at("dtype").get<DType>(), entry.at("shape"), nullptr};
  const std::span<const std::byte> pages = entry.at("in_file").get<bool>() ? file.bytes() : memory.bytes();
  const auto offset = entry.at("offset").get<std::uint64_t>();
  if (tensor.dtype > DType::bf16) fail(checkpoint.path, fmt::format("tensor {} is of an unknown type", in_quotes(tensor.name)));
  check_tensor_name(checkpoint.path, tensor.name);
  const std::int64_t bytes = checked_bytes(checkpoint.path, tensor.name, tensor.shape, size_of(tensor.dtype));
  check_range(checkpoint.path, tensor.name, offset, bytes, pages.size());
  tensor.data = aligned(pages.data() + offset, bytes, tensor.dtype, checkpoint.storage);
  return tensor;
}

std::map<std::string, std::string> accept_files(const fs::path& path, const json& entries) {
  std::map<std::string, std::string> files = entries;
  for (const auto& [name, bytes] : files) check_file_name(path, name);
  return files;
}

void accept(Checkpoint& checkpoint, const std::shared_ptr<const MappedFile>& file, const IsolatedResult& result) {
  checkpoint.files = {file, result.memory};
  checkpoint.config = result.catalogue.at("config");
  checkpoint.tokenizer = accept_files(checkpoint.path, result.catalogue.at("tokenizer"));
  checkpoint.provenance = accept_files(checkpoint.path, result.catalogue.at("provenance"));
  for (const json& entry : result.catalogue.at("tensors"))
    checkpoint.tensors.push_back(accept_tensor(checkpoint, entry, *file, *result.memory));
  sort_by_name(checkpoint.path, checkpoint.tensors);
}

}  // namespace

void read_hdf5(Checkpoint& checkpoint) {
  const auto file = std::make_shared<const MappedFile>(checkpoint.path);
  check_is_no_pointer(checkpoint.path, file->text());
  if (file->text().starts_with("GGUF"))
    fail(checkpoint.path, "is a GGUF file, which is not read; open the folder with config.json and *.safetensors that it was made from");
  try {
    accept(checkpoint, file, run_isolated(checkpoint.path, file->bytes().size(), {reader_program(), checkpoint.path}));
  } catch (const json::exception&) {
    fail(checkpoint.path, "is damaged: what was read of it makes no sense");
  } catch (const Error&) {
    file->require_whole();
    throw;
  }
}

}  // namespace statescope
