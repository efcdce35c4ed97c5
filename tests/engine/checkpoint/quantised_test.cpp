// Quantised folders: what is read of them, by hand-checkable numbers, and under which name the others are refused.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include "engine/config/weights.h"
#include "tests/engine/checkpoint/checkpoint_files.h"

namespace statescope::quantised_test {
using namespace statescope::test;

namespace {

struct Part {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;  // empty: zeros, of the size that the type takes
};

std::size_t bytes_of(const Part& part) {
  const auto numbers = std::accumulate(part.shape.begin(), part.shape.end(), std::int64_t{1}, std::multiplies{});
  const std::size_t each = part.dtype.ends_with("64") ? 8 : part.dtype.ends_with("32") ? 4 : part.dtype.ends_with("16") ? 2 : 1;
  return static_cast<std::size_t>(numbers) * each;
}

std::string file_of(const std::vector<Part>& parts) {
  std::vector<std::string> entries;
  std::string data;
  for (const Part& part : parts) {
    const std::string bytes = part.bytes.empty() ? std::string(bytes_of(part), '\0') : part.bytes;
    entries.push_back(fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", part.name, part.dtype,
                                  fmt::join(part.shape, ","), data.size(), data.size() + bytes.size()));
    data += bytes;
  }
  return safetensors(fmt::format("{{{}}}", fmt::join(entries, ",")), data);
}

/// A folder with these tensors beside one that is not quantised; `config` is what stands in config.json.
class Folder {
 public:
  Folder(const std::string& config, std::vector<Part> parts, const std::string& hf_quant_config = "") {
    parts.push_back({"norm.weight", "BF16", {2}, {}});
    write_bytes(path() / "config.json", config);
    write_bytes(path() / "model.safetensors", file_of(parts));
    if (!hf_quant_config.empty()) write_bytes(path() / "hf_quant_config.json", hf_quant_config);
  }
  std::filesystem::path path() const { return folder_ / "m"; }
  std::shared_ptr<const Checkpoint> open() const { return open_checkpoint(path()); }
  std::string error() const {
    const std::string text = error_of([&] { open(); });
    INFO(text);
    CHECK(text.starts_with(path().string()));
    return text;
  }

 private:
  TemporaryFolder folder_;
};

std::string settings(const std::string& inside) { return R"({"quantization_config": {)" + inside + "}}"; }

std::vector<float> widened(const Checkpoint& checkpoint, const std::string& name) {
  const StoredTensor* const tensor = checkpoint.find(name);
  REQUIRE(tensor);
  std::vector<float> values(static_cast<std::size_t>(tensor->size()));
  widen(values.data(), *tensor);
  return values;
}

bool has_note(const Checkpoint& checkpoint, const std::string& words) {
  return std::ranges::any_of(checkpoint.notes, [&](const std::string& note) { return note.find(words) != note.npos; });
}

const std::string kFp8 = settings(R"("quant_method": "fp8")");
// 1, 2, −0.5, 448, and the smallest number, 2^-9
const std::string kFiveNumbers{"\x38\x40\xb0\x7e\x01\x00", 6};

/// Says "compressed-tensors" with one group of this form.
std::string compressed(const std::string& format) {
  return settings(R"("quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"]}}, "format": ")" + format +
                  "\"");
}

}  // namespace

TEST_CASE("FP8 matrices stay as they are stored, with one scale, one for each row, or blocks") {
  const Part matrix{"x.weight", "F8_E4M3", {2, 3}, kFiveNumbers};
  const float smallest = 0x1p-9F;
  const struct {
    std::string config, scale, dtype;
    std::vector<std::int64_t> shape;
    std::string bytes;
    std::vector<float> expected;
  } cases[] = {
      {kFp8, "weight_scale_inv", "F32", {}, raw<float>({2}), {2, 4, -1, 896, 2 * smallest, 0}},
      {kFp8, "weight_scale", "F32", {1}, raw<float>({0.5F}), {0.5F, 1, -0.25F, 224, smallest / 2, 0}},
      {kFp8, "weight_scale", "BF16", {1, 1}, raw<std::uint16_t>({0x4000}), {2, 4, -1, 896, 2 * smallest, 0}},
      {"{}", "weight_scale", "F32", {2}, raw<float>({1, 3}), {1, 2, -0.5F, 1344, 3 * smallest, 0}},
      {"{}", "weight_scale", "F16", {2, 1}, raw<std::uint16_t>({0x3c00, 0x4200}), {1, 2, -0.5F, 1344, 3 * smallest, 0}},
      {settings(R"("quant_method": "fp8", "weight_block_size": [1, 2])"),
       "weight_scale_inv",
       "F32",
       {2, 2},
       raw<float>({1, 2, 3, 4}),
       {1, 2, -1, 1344, 3 * smallest, 0}},
      {settings(R"("quant_method": "compressed-tensors", "format": "float-quantized",
                   "config_groups": {"FP8": {"weights": {"block_structure": [2, 2]}}})"),
       "weight_scale",
       "F32",
       {1, 2},
       raw<float>({2, 4}),
       {2, 4, -2, 896, 2 * smallest, 0}},
      {settings(R"("quant_method": "modelopt", "quant_algo": "FP8_PB_WO")"),
       "weight_scale",
       "F32",
       {1, 1, 1, 1},
       raw<float>({2}),
       {2, 4, -1, 896, 2 * smallest, 0}},
      {kFp8, "weight_scale_inv", "F8_E8M0", {1, 1}, "\x80", {2, 4, -1, 896, 2 * smallest, 0}},
  };
  for (const auto& one : cases) {
    const Folder folder(one.config, {matrix, {"x." + one.scale, one.dtype, one.shape, one.bytes}});
    const auto checkpoint = folder.open();
    CHECK(checkpoint->tensors.size() == 2);
    CHECK(checkpoint->find("x.weight")->dtype == DType::f8);
    CHECK(raw(*checkpoint->find("x.weight")) == kFiveNumbers);
    CHECK(widened(*checkpoint, "x.weight") == one.expected);
    CHECK(has_note(*checkpoint, "FP8"));
  }
}

TEST_CASE("scales of activations and quantised towers are passed over with a note") {
  const Folder folder(kFp8, {{"x.weight", "F8_E4M3", {2, 3}, kFiveNumbers},
                             {"x.weight_scale", "F32", {}, raw<float>({1})},
                             {"x.input_scale", "F32", {}, {}},
                             {"attn.k_scale", "F32", {1}, {}},
                             {"model.visual.w.weight", "U8", {2, 3}, {}},
                             {"attn.num_batches_tracked", "I64", {}, {}},
                             {"nothing", "F32", {0, 3}, {}}});
  const auto checkpoint = folder.open();
  CHECK(checkpoint->tensors.size() == 2);
  for (const char* words : {"2 tensors of scales of activations", "a vision or sound tower", "buffers", "no elements"})
    CHECK(has_note(*checkpoint, words));
}

TEST_CASE("scales that do not fit, are no numbers or are missing are named") {
  const Part matrix{"x.weight", "F8_E4M3", {2, 3}, kFiveNumbers};
  const auto says = [&](std::vector<Part> parts, const std::string& words) {
    parts.push_back(matrix);
    const std::string error = Folder(kFp8, std::move(parts)).error();
    INFO(error << "\nexpected: " << words);
    CHECK(error.find(words) != error.npos);
  };
  says({}, "'x.weight' (F8_E4M3 [2, 3]) lacks its scale, weight_scale or weight_scale_inv");
  says({{"x.weight_scale", "F32", {}, {}}, {"x.weight_scale_inv", "F32", {}, {}}}, "has both");
  says({{"x.weight_scale", "F32", {3}, {}}}, "'x.weight_scale' (F32 [3]) does not fit the matrix of [2, 3]");
  says({{"x.weight_scale", "F32", {2, 2}, {}}}, "does not fit");
  says({{"x.weight_scale", "F32", {1, 1, 2}, {}}}, "does not fit");
  says({{"x.weight_scale", "F32", {2}, raw<float>({1, std::nanf("")})}}, "'x.weight_scale' (F32 [2]) is nan at number 1");
  says({{"x.weight_scale", "F32", {}, raw<float>({INFINITY})}}, "is inf at number 0");
  says({{"x.weight_scale", "I64", {}, {}}}, "is of a type that scales do not have");
  says({{"x.weight_scale", "F32", {}, {}}, {"x.pre_quant_scale", "BF16", {3}, {}}}, "AWQ");
  CHECK(Folder("{}", {{"x.weight", "F8_E4M3", {2, 3, 1}, kFiveNumbers}, {"x.weight_scale", "F32", {}, {}}}).error().find("[2, 3, 1]") !=
        std::string::npos);
  CHECK(Folder("{}", {{"x.weight", "BF16", {2, 3}, {}}, {"x.weight_scale", "F32", {}, {}}}).error().find("unclear") != std::string::npos);
}

TEST_CASE("INT8 of compressed-tensors is widened, with its zero points") {
  const Part matrix{"x.weight", "I8", {2, 2}, "\x01\xff\x7f\x80"}, scale{"x.weight_scale", "F32", {2, 1}, raw<float>({2, 0.5F})};
  CHECK(widened(*Folder(compressed("int-quantized"), {matrix, scale}).open(), "x.weight") == std::vector<float>{2, -2, 63.5F, -64});
  const Part zero{"x.weight_zero_point", "I8", {2, 1}, "\x01\xfe"};
  CHECK(widened(*Folder(compressed("int-quantized"), {matrix, scale, zero}).open(), "x.weight") == std::vector<float>{0, -4, 64.5F, -63});
  CHECK(Folder(compressed("int-quantized"), {matrix}).error().find("lacks its scale") != std::string::npos);
  CHECK(Folder(compressed("int-quantized"), {matrix, scale, {"x.weight_zero_point", "I8", {1}, {}}}).error().find("as many numbers") !=
        std::string::npos);
  CHECK(Folder("{}", {matrix, scale}).error().find("'x.weight' (I8 [2, 2])") != std::string::npos);
}

TEST_CASE("FP4: MXFP4 and NVFP4 are widened") {
  std::string bytes(16, '\0');
  bytes[0] = '\x21';   // 0.5, 1
  bytes[15] = '\xf7';  // 6, −6
  std::vector<float> expected(32);
  expected[0] = 0.5F, expected[1] = 1, expected[30] = 6, expected[31] = -6;
  const auto times = [&](float first, float second) {
    std::vector<float> scaled = expected;
    for (std::size_t i = 0; i < 32; ++i) scaled[i] *= i < 16 ? first : second;
    return scaled;
  };
  const Part packed{"x.weight_packed", "U8", {1, 16}, bytes};
  CHECK(widened(*Folder(compressed("mxfp4-pack-quantized"), {packed, {"x.weight_scale", "U8", {1, 1}, "\x81"}}).open(), "x.weight") ==
        times(4, 4));
  const Part scale{"x.weight_scale", "F8_E4M3", {1, 2}, "\x38\x40"};
  CHECK(widened(*Folder(compressed("nvfp4-pack-quantized"), {packed, scale, {"x.weight_global_scale", "F32", {1}, raw<float>({2})}}).open(),
                "x.weight") == times(0.5F, 1));
  const std::string modelopt = R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}})";
  CHECK(
      widened(*Folder("{}", {{"x.weight", "U8", {1, 16}, bytes}, scale, {"x.weight_scale_2", "F32", {}, raw<float>({2})}}, modelopt).open(),
              "x.weight") == times(2, 4));

  const auto says = [](const std::vector<Part>& parts, const std::string& words) {
    const std::string error = Folder(compressed("nvfp4-pack-quantized"), parts).error();
    INFO(error << "\nexpected: " << words);
    CHECK(error.find(words) != error.npos);
  };
  says({packed, {"x.weight_scale", "U8", {1, 1}, "\xff"}}, "is nan");
  says({packed, {"x.weight_scale", "U8", {1, 2}, {}}}, "does not fit");
  says({packed, scale}, "FP4 in an unknown layout");
  says({packed, scale, {"x.weight_global_scale", "F32", {1}, {}}}, "global scale of 0");
  says({packed, scale, {"x.weight_global_scale", "F32", {2}, {}}}, "should be one number");
  says({packed, {"x.weight_scale", "F8_E4M3", {1, 1}, {}}, {"x.weight_global_scale", "F32", {1}, raw<float>({2})}}, "does not fit");
  says({packed, {"x.weight", "BF16", {1, 32}, {}}, {"x.weight_scale", "U8", {1, 1}, {}}}, "is there beside 'x.weight' itself");
}

TEST_CASE("every other form is refused under its name, with a tensor as evidence and what would help") {
  const Part qweight{"x.qweight", "I32", {8, 96}, {}}, byte{"x.weight", "U8", {2, 2}, {}}, int8{"x.weight", "I8", {2, 2}, {}};
  const struct {
    std::string config;
    std::vector<Part> parts;
    std::string name;
  } cases[] = {
      {settings(R"("quant_method": "gptq", "bits": 4)"), {qweight}, "GPTQ"},
      {settings(R"("quant_method": "awq", "version": "gemm")"), {qweight}, "AWQ"},
      {settings(R"("quant_method": "auto-round")"), {qweight}, "AutoRound"},
      {R"({"text_config": {"quantization_config": {"quant_method": "gptq"}}})", {qweight}, "GPTQ"},
      {R"({"compression_config": {"quantization_config": {"quant_method": "gptq"}}})", {qweight}, "GPTQ"},
      {R"({"eps": Infinity, "quantization_config": {"quant_method": "gptq"}})", {qweight}, "GPTQ"},
      {"{}", {qweight}, "GPTQ or AWQ"},
      {settings(R"("load_in_4bit": true, "quant_method": "bitsandbytes")"), {byte}, "bitsandbytes"},
      {"{}", {{"x.weight.absmax", "U8", {2}, {}}}, "bitsandbytes"},
      {settings(R"("quant_method": "bitsandbytes", "load_in_8bit": true)"), {int8, {"x.SCB", "F32", {2}, {}}}, "bitsandbytes"},
      {compressed("pack-quantized"), {{"x.weight_packed", "I32", {2, 2}, {}}}, "compressed-tensors pack-quantized"},
      {"{}", {{"x.weight_packed", "I32", {2, 2}, {}}}, "compressed-tensors pack-quantized"},
      {settings(R"("quant_method": "compressed-tensors", "format": "dense", "sparsity_config": {"format": "sparse-24-bitmask"})"),
       {{"x.weight.bitmask", "U8", {2, 2}, {}}},
       "compressed-tensors sparse-24-bitmask"},
      {compressed("mxfp6-pack-quantized"), {{"x.weight_packed", "U8", {2, 48}, {}}}, "MXFP6"},
      {"{}", {{"x.weight_packed", "U8", {2, 48}, {}}, {"x.weight_scale", "U8", {2, 2}, {}}}, "MXFP6"},
      {settings(R"("quant_method": "mxfp8")"), {{"x.weight", "F8_E4M3", {2, 64}, {}}, {"x.weight_scale", "U8", {2, 2}, {}}}, "MXFP8"},
      {"{}", {{"x.weight", "F8_E4M3", {2, 64}, {}}, {"x.weight_scale", "U8", {2, 2}, {}}}, "MXFP8"},
      {settings(R"("quant_method": "modelopt", "quant_algo": "MXFP8")"), {{"x.weight", "F8_E4M3", {2, 64}, {}}}, "MXFP8"},
      {settings(R"("quant_method": "fp8", "fmt": "e5m2")"), {{"x.weight", "F8_E5M2", {2, 2}, {}}}, "E5M2"},
      {"{}", {{"x.weight", "F8_E5M2", {2, 2}, {}}}, "E5M2"},
      {settings(R"("quant_method": "fp8", "weight_block_size": [128, 128])"),
       {{"x.experts.gate_up_proj", "F8_E4M3", {2, 4, 3}, {}}, {"x.experts.gate_up_proj_scale_inv", "F32", {2, 1, 1}, {}}},
       "FP8 with all experts of a layer in one tensor"},
      {settings(R"("quant_method": "modelopt", "quant_algo": "NVFP4_AWQ")"), {byte}, "NVFP4"},
      {settings(R"("quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"x": {"quant_algo": "INT4_AWQ"}})"),
       {byte},
       "INT4_AWQ"},
      {R"({"quantization": {"group_size": 32, "bits": 4}})", {{"x.weight", "U32", {2, 2}, {}}}, "MLX"},
      {"{}", {{"x.weight", "U32", {2, 2}, {}}}, "MLX"},
      {settings(R"("quant_method": "hqq")"), {{"x.W_q", "U8", {4}, {}}}, "hqq"},
      {settings(R"("quant_method": "quanto")"), {{"x.weight._data", "I8", {2, 2}, {}}}, "quanto"},
      {settings(R"("quant_method": "bitnet")"), {byte, {"x.weight_scale", "BF16", {1}, {}}}, "bitnet"},
      {settings(R"("quant_method": "exl3")"), {{"x.trellis", "I16", {1, 2, 3}, {}}}, "exl3"},
      {settings(R"("quant_method": "mxfp4")"), {{"x_blocks", "U8", {1, 2, 1, 16}, {}}}, "MXFP4"},
      {"{}", {{"x_blocks", "U8", {1, 2, 1, 16}, {}}}, "MXFP4"},
      {settings(R"("quant_method": "ternary42")"), {int8}, "ternary42"},
      {settings(R"("bits": 3)"), {int8}, "a method without a name"},
      {"{}", {byte}, "U8"},
      {"{}", {{"x.weight", "I16", {2, 2}, {}}}, "I16"},
      {"{}", {{"x.weight", "BOOL", {2, 2}, {}}}, "BOOL"},
  };
  for (const auto& one : cases) {
    const std::string error = Folder(one.config, one.parts).error();
    INFO(error << "\nexpected: " << one.name);
    CHECK(error.find(one.name) != error.npos);
    CHECK(error.find("'x") != error.npos);
    CHECK(error.find("take the original weights") != error.npos);
  }
}

TEST_CASE("a config that speaks of a quantisation, over weights that have none, is no hindrance") {
  const Folder folder(settings(R"("quant_method": "gptq")"), {{"x.weight", "BF16", {2, 2}, {}}});
  const auto checkpoint = folder.open();
  CHECK(checkpoint->tensors.size() == 2);
  CHECK(has_note(*checkpoint, "read as they are"));
}

TEST_CASE("a converted FP8 matrix is float32, or what is asked for") {
  const Folder folder(kFp8, {{"x.weight", "F8_E4M3", {2, 3}, kFiveNumbers}, {"x.weight_scale", "F32", {2}, raw<float>({1, 3})}});
  const auto checkpoint = folder.open();
  const TemporaryFolder target;
  write_checkpoint(*checkpoint, target / "a.h5");
  const auto read = open_checkpoint(target / "a.h5");
  CHECK(read->find("x.weight")->dtype == DType::f32);
  CHECK(widened(*read, "x.weight") == widened(*checkpoint, "x.weight"));
  const DType dtype = DType::bf16;
  write_checkpoint(*checkpoint, target / "b", {.dtype = &dtype});
  CHECK(open_checkpoint(target / "b")->find("x.weight")->dtype == DType::bf16);
}

TEST_CASE("an FP8 folder cut off at any byte, or with any bit flipped, never hurts") {
  const Folder folder(settings(R"("quant_method": "fp8", "weight_block_size": [1, 2])"),
                      {{"x.weight", "F8_E4M3", {2, 3}, kFiveNumbers}, {"x.weight_scale_inv", "F32", {2, 2}, raw<float>({1, 2, 3, 4})}});
  const std::string sound = read_bytes(folder.path() / "model.safetensors");
  const auto try_it = [&](const std::string& bytes) {
    write_bytes(folder.path() / "model.safetensors", bytes);
    try {
      const auto checkpoint = folder.open();
      for (const StoredTensor& tensor : checkpoint->tensors) widened(*checkpoint, tensor.name);
    } catch (const Error&) {
    }
  };
  for (std::size_t length = 0; length < sound.size(); ++length) try_it(sound.substr(0, length));
  for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    try_it(flipped);
  }
}

}  // namespace statescope::quantised_test
