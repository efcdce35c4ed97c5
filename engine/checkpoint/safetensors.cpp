#include "engine/checkpoint/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/mapped_file.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;  // the limit of the reference implementation

/// Takes the header apart as it is parsed, so that nothing but its entries is ever in memory. Its levels:
/// { name: { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] }, …, "__metadata__": { key: text } }
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const fs::path& path) : path_(path) {}
  std::vector<SafetensorsEntry> entries;

  bool start_object(std::size_t) override {
    if (in_list_ || ++depth_ > 2) malformed("an object where there should be none");
    if (depth_ == 2) fields_ = {};
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2 && !in_metadata_) finish_entry();
    in_metadata_ = false;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ == 2) return in_metadata_ || begin_field(name);
    in_metadata_ = name == "__metadata__";
    if (in_metadata_) return true;
    check_tensor_name(path_, name);
    if (entries.size() == max_tensors) fail(path_, fmt::format("has more than {} tensors", max_tensors));
    entries.push_back({.name = name, .dtype = {}, .shape = {}});
    return true;
  }
  bool string(std::string& text) override {
    if (depth_ == 2 && in_metadata_) return true;
    if (depth_ != 2 || in_list_ || field_ != Field::dtype) malformed("a text where there should be none");
    entries.back().dtype = text.substr(0, 32);
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_list_ || field_ == Field::dtype) malformed("a list where there should be none");
    in_list_ = true;
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (!in_list_) malformed("a number where there should be none");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) malformed("a number beyond 2^63");
    std::vector<std::int64_t>& list = field_ == Field::shape ? entries.back().shape : offsets_;
    if (list.size() > max_rank) malformed("a list that is too long");
    list.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_integer(std::int64_t) override { malformed("a negative number"); }
  bool number_float(double, const std::string&) override { malformed("a number that is not an integer"); }
  bool boolean(bool) override { malformed("true or false"); }
  bool null() override { malformed("null"); }
  bool binary(nlohmann::json::binary_t&) override { malformed("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(path_, fmt::format("the header is not JSON (at byte {}); the file is damaged or not a safetensors file", length_bytes + position));
  }

 private:
  enum class Field { dtype, shape, offsets };
  static constexpr std::array<std::string_view, 3> field_names{"dtype", "shape", "data_offsets"};

  bool begin_field(const std::string& name) {
    const auto found = std::ranges::find(field_names, name);
    if (found == field_names.end()) malformed("the unknown key " + in_quotes(name));
    const auto index = static_cast<std::size_t>(found - field_names.begin());
    if (std::exchange(fields_[index], true)) malformed("the key " + in_quotes(name) + " twice");
    field_ = static_cast<Field>(index);
    return true;
  }
  void finish_entry() {
    if (fields_ != std::array{true, true, true} || offsets_.size() != 2) malformed("no complete dtype, shape and data_offsets");
    entries.back().begin = static_cast<std::size_t>(offsets_[0]);
    entries.back().end = static_cast<std::size_t>(offsets_[1]);
    offsets_.clear();
  }
  [[noreturn]] void malformed(std::string_view what) const {
    fail(path_, fmt::format("the header has {}{}", what, entries.empty() ? "" : " at tensor " + in_quotes(entries.back().name)));
  }

  const fs::path& path_;
  int depth_ = 0;
  bool in_metadata_ = false, in_list_ = false;
  Field field_ = Field::dtype;
  std::array<bool, 3> fields_{};
  std::vector<std::int64_t> offsets_;
};

std::uint64_t header_length(const fs::path& path, std::span<const std::byte> file) {
  if (file.size() < length_bytes) fail(path, fmt::format("has {} bytes; too short for a safetensors file", file.size()));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > file.size() - length_bytes)
    fail(path, fmt::format("declares a header of {} bytes but has {}; it is cut off or not a safetensors file", length, file.size()));
  if (length > max_header_bytes) fail(path, fmt::format("declares a header of {} bytes; at most {} are read", length, max_header_bytes));
  return length;
}

/// Bytes of one element of a safetensors type; 0 if unknown.
std::size_t element_size(std::string_view dtype) {
  struct Size {
    std::string_view name;
    std::size_t bytes;
  };
  static constexpr std::array<Size, 18> sizes{{{"F32", 4},
                                               {"F16", 2},
                                               {"BF16", 2},
                                               {"I64", 8},
                                               {"I32", 4},
                                               {"F64", 8},
                                               {"U64", 8},
                                               {"U32", 4},
                                               {"I16", 2},
                                               {"U16", 2},
                                               {"I8", 1},
                                               {"U8", 1},
                                               {"BOOL", 1},
                                               {"F8_E4M3", 1},
                                               {"F8_E5M2", 1},
                                               {"F8_E8M0", 1},
                                               {"F8_E4M3FNUZ", 1},
                                               {"F8_E5M2FNUZ", 1}}};
  const auto found = std::ranges::find(sizes, dtype, &Size::name);
  return found == sizes.end() ? 0 : found->bytes;
}

/// The entries must follow one another from the start of the data to the end of the file.
void check_tiling(const fs::path& path, std::vector<SafetensorsEntry>& entries, std::size_t data_begin, std::size_t file_size) {
  std::ranges::sort(entries, {}, [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::size_t expected = 0;
  for (SafetensorsEntry& entry : entries) {
    const std::size_t element = element_size(entry.dtype);
    if (element == 0) fail(path, fmt::format("tensor {} has the unknown type {}", in_quotes(entry.name), in_quotes(entry.dtype)));
    const bool is_empty = std::ranges::find(entry.shape, 0) != entry.shape.end();
    const auto bytes = is_empty ? 0 : static_cast<std::size_t>(checked_bytes(path, entry.name, entry.shape, element));
    if (entry.begin != expected || entry.end < entry.begin || entry.end - entry.begin != bytes)
      fail(path, fmt::format("tensor {} lies at bytes {} to {} of the data; its shape and its predecessor ask for {} bytes from {}",
                             in_quotes(entry.name), entry.begin, entry.end, bytes, expected));
    if (entry.end > file_size - data_begin)
      fail(path, fmt::format("tensor {} ends {} bytes past the end of the file, which is cut off", in_quotes(entry.name),
                             entry.end - (file_size - data_begin)));
    expected = entry.end;
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  if (expected != file_size - data_begin) fail(path, fmt::format("has {} bytes after its last tensor", file_size - data_begin - expected));
}

std::string_view type_name(DType dtype) { return dtype == DType::f32 ? "F32" : dtype == DType::f16 ? "F16" : "BF16"; }

StoredTensor stored(const SafetensorsEntry& entry, DType dtype, std::span<const std::byte> file,
                    std::vector<std::shared_ptr<const void>>& storage) {
  const auto bytes = static_cast<std::int64_t>(entry.end - entry.begin);
  return {entry.name, dtype, entry.shape, aligned(file.data() + entry.begin, bytes, dtype, storage)};
}

template <class Integer>
std::vector<std::int64_t> widened(std::span<const std::byte> bytes) {
  std::vector<std::int64_t> values(bytes.size() / sizeof(Integer));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Integer value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    values[i] = value;
  }
  return values;
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors(const fs::path& path, std::span<const std::byte> file) {
  check_is_no_pointer(path, {reinterpret_cast<const char*>(file.data()), file.size()});
  const std::uint64_t length = header_length(path, file);
  const auto* header = reinterpret_cast<const char*>(file.data()) + length_bytes;
  HeaderReader reader(path);
  nlohmann::json::sax_parse(header, header + length, &reader);
  check_tiling(path, reader.entries, length_bytes + length, file.size());
  return std::move(reader.entries);
}

std::string safetensors_header(const std::vector<const StoredTensor*>& tensors, const std::vector<DType>& dtypes) {
  Json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t end = offset + tensors[i]->size() * static_cast<std::int64_t>(size_of(dtypes[i]));
    header[tensors[i]->name] = {{"dtype", type_name(dtypes[i])}, {"shape", tensors[i]->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length;
  for (std::size_t i = 0; i < length_bytes; ++i) length += static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xff);
  return length + text;
}

std::optional<DType> float_type(std::string_view dtype) {
  if (dtype == "F32") return DType::f32;
  if (dtype == "F16") return DType::f16;
  if (dtype == "BF16") return DType::bf16;
  return std::nullopt;
}

std::int64_t RawTensor::size() const {
  return is_empty() ? 0 : std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies{});
}

std::string RawTensor::description() const {
  return fmt::format("{} ({} [{}])", in_quotes(name), one_line(dtype, 32), fmt::join(shape, ", "));
}

std::vector<RawTensor> read_raw_tensors(const fs::path& path, std::vector<std::shared_ptr<const MappedFile>>& files) {
  const auto file = std::make_shared<const MappedFile>(path);
  std::vector<RawTensor> tensors;
  for (SafetensorsEntry& entry : parse_safetensors(path, file->bytes())) {
    const auto bytes = file->bytes().subspan(entry.begin, entry.end - entry.begin);
    tensors.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape), bytes});
  }
  files.push_back(file);
  return tensors;
}

SafetensorsFile open_safetensors(const fs::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  SafetensorsFile result;
  for (const SafetensorsEntry& entry : parse_safetensors(path, file->bytes())) {
    const std::span<const std::byte> bytes = file->bytes().subspan(entry.begin, entry.end - entry.begin);
    if (const std::optional<DType> dtype = float_type(entry.dtype)) {
      result.tensors.push_back(stored(entry, *dtype, file->bytes(), result.storage));
    } else if (entry.dtype == "I64" || entry.dtype == "I32") {
      result.integers[entry.name] = entry.dtype == "I64" ? widened<std::int64_t>(bytes) : widened<std::int32_t>(bytes);
      result.integer_shapes[entry.name] = entry.shape;
    } else if (entry.dtype == "U8") {
      result.integers[entry.name] = widened<std::uint8_t>(bytes);
      result.integer_shapes[entry.name] = entry.shape;
    } else {
      fail(path, fmt::format("tensor {} has type {}; F32, F16, BF16, I64, I32 and U8 are read", in_quotes(entry.name), entry.dtype));
    }
  }
  result.storage.push_back(file);
  sort_by_name(path, result.tensors);
  return result;
}

const StoredTensor* SafetensorsFile::find(std::string_view tensor_name) const { return find_by_name(tensors, tensor_name); }

}  // namespace statescope
