// Any config.json, a zero byte, any safetensors file: refused with an Error, or tensors of which every number can be read.
#include "engine/checkpoint/quantised.h"

#include "engine/checkpoint/format.h"
#include "engine/error.h"
#include "kernels/ops/linear.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace statescope;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view config = text.substr(0, text.find('\0'));
  check_json_text("input", "config.json", config);
  const auto file = std::as_bytes(std::span(data, size)).subspan(std::min(config.size() + 1, size));
  std::vector<RawTensor> tensors;
  for (SafetensorsEntry& entry : parse_safetensors("input", file))
    tensors.push_back({entry.name, entry.dtype, entry.shape, file.subspan(entry.begin, entry.end - entry.begin)});
  Checkpoint checkpoint;
  checkpoint.path = "input";
  take_tensors(checkpoint, std::move(tensors), quantisation_of(config, config));
  for (const StoredTensor& tensor : checkpoint.tensors) {
    unsigned sum = 0;
    for (std::int64_t i = 0; i < tensor.bytes(); ++i) sum += std::to_integer<unsigned>(tensor.data[i]);
    if (sum == 0 || tensor.dtype != DType::f8) continue;
    std::vector<float> row(static_cast<std::size_t>(tensor.shape[1]));
    for (std::int64_t o = 0; o < tensor.shape[0]; ++o) widen_row(row.data(), tensor.matrix(), o);
  }
  return 0;
} catch (const statescope::Error&) {
  return 0;
}
