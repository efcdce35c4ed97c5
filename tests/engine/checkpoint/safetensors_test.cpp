// Hugging Face folders and safetensors files: what is read from sound ones, and what is said about unsound ones.
#include "tests/engine/checkpoint/checkpoint_files.h"

namespace statescope::safetensors_test {
using namespace statescope::test;

namespace {

const std::vector<float> six{1, 2, 3, 4, 5, 6};
const std::string sound_header = R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                                 R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]}})";
const std::string sound = safetensors(sound_header, raw(six) + raw(std::vector<std::uint16_t>{0x3f80, 0x4000}));

std::string one_tensor(const std::string& name, const std::string& shape, const std::string& offsets, const std::string& dtype = "F32") {
  return R"({")" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

void write_folder(const std::filesystem::path& folder, const std::string& weights) {
  write_bytes(folder / "config.json", R"({"model_type": "gla"})");
  write_bytes(folder / "model.safetensors", weights);
}

}  // namespace

TEST_CASE("a folder gives its config, its tensors by name, its tokenizer and its provenance") {
  const TemporaryFolder folder;
  const auto model = folder / "gla-1.3B";
  write_folder(model, sound);
  write_bytes(model / "tokenizer.json", "{\"a\": 0}");
  write_bytes(model / "eval.json", "{}");
  write_bytes(model / "provenance/recipe.txt", "by hand");
  write_bytes(model / "io.safetensors", "not looked at");
  const auto checkpoint = open_checkpoint(model / "");
  CHECK(checkpoint->name == "gla-1.3B");
  CHECK(checkpoint->config == R"({"model_type": "gla"})");
  REQUIRE(checkpoint->tensors.size() == 2);
  CHECK(checkpoint->tensors[0].name == "b");
  CHECK(checkpoint->tensors[0].dtype == DType::bf16);
  const StoredTensor* w = checkpoint->find("w");
  REQUIRE(w);
  CHECK(raw(*w) == raw(six));
  CHECK(w->matrix().shape == Shape{2, 3});
  CHECK(w->matrix().f32(1)[0] == 4);
  CHECK(checkpoint->find("c") == nullptr);
  CHECK(checkpoint->find("") == nullptr);
  CHECK(checkpoint->parameters() == 8);
  CHECK(checkpoint->bytes() == 28);
  CHECK(checkpoint->tokenizer == std::map<std::string, std::string>{{"tokenizer.json", "{\"a\": 0}"}});
  CHECK(checkpoint->provenance == std::map<std::string, std::string>{{"eval.json", "{}"}, {"recipe.txt", "by hand"}});
}

TEST_CASE("tensors stay valid as long as their checkpoint, wherever they lie in the file") {
  const TemporaryFolder folder;
  const std::string header = one_tensor("w", "[2,3]", "[0,24]");
  for (std::size_t padding = 0; padding < 8; ++padding) {
    write_folder(folder / "m", safetensors(header + std::string(padding, ' '), raw(six)));
    const auto checkpoint = open_checkpoint(folder / "m");
    CHECK(reinterpret_cast<std::uintptr_t>(checkpoint->tensors[0].data) % 4 == 0);
    std::filesystem::remove_all(folder / "m");
    CHECK(raw(checkpoint->tensors[0]) == raw(six));
  }
}

TEST_CASE("a scalar is one number, a convolution keeps its axes") {
  const TemporaryFolder folder;
  write_folder(folder / "m", safetensors(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                                         R"("c":{"dtype":"F32","shape":[5,1,1],"data_offsets":[4,24]}})",
                                         raw(six)));
  const auto checkpoint = open_checkpoint(folder / "m");
  CHECK(checkpoint->find("s")->matrix().shape == Shape{1});
  CHECK(checkpoint->find("c")->matrix().shape == Shape{5, 1, 1});
}

TEST_CASE("integer tensors come widened from a file by itself, and are no weights") {
  const TemporaryFolder folder;
  const std::string header =
      R"({"long":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"int":{"dtype":"I32","shape":[2,1],"data_offsets":[16,24]},)"
      R"("w":{"dtype":"F32","shape":[6],"data_offsets":[24,48]}})";
  const std::string file =
      safetensors(header, raw(std::vector<std::int64_t>{-1, std::int64_t{1} << 40}) + raw(std::vector<std::int32_t>{-2, 7}) + raw(six));
  write_bytes(folder / "io.safetensors", file);
  const SafetensorsFile io = open_safetensors(folder / "io.safetensors");
  CHECK(io.integers.at("long") == std::vector<std::int64_t>{-1, std::int64_t{1} << 40});
  CHECK(io.integers.at("int") == std::vector<std::int64_t>{-2, 7});
  CHECK(io.integer_shapes.at("int") == std::vector<std::int64_t>{2, 1});
  CHECK(raw(*io.find("w")) == raw(six));
  CHECK(io.find("int") == nullptr);
  write_folder(folder / "m", file);
  CHECK(error_of([&] { open_checkpoint(folder / "m"); }).find("'int' (I32 [2, 1]) is of a type that weights do not have") !=
        std::string::npos);
}

TEST_CASE("shards: by index, or all of them") {
  const TemporaryFolder folder;
  const auto model = folder / "m";
  const auto shard = [](const std::string& name) { return safetensors(one_tensor(name, "[6]", "[0,24]"), raw(six)); };
  const auto index = [&](const std::string& map) { write_bytes(model / "model.safetensors.index.json", R"({"weight_map":)" + map + "}"); };
  write_bytes(model / "config.json", "{}");
  write_bytes(model / "model-1.safetensors", shard("a"));
  write_bytes(model / "model-2.safetensors", shard("b"));
  CHECK(open_checkpoint(model)->tensors.size() == 2);
  index(R"({"a":"model-1.safetensors","b":"model-2.safetensors"})");
  CHECK(open_checkpoint(model)->tensors.size() == 2);

  const auto says = [&](const std::string& what) {
    const std::string error = error_of([&] { open_checkpoint(model); });
    INFO(error);
    CHECK(error.find(what) != error.npos);
  };
  index(R"({"a":"model-1.safetensors","b":"model-3.safetensors"})");
  says("names tensor 'a', which model-2.safetensors beside it does not have");
  index(R"({"a":"model-1.safetensors","c":"model-2.safetensors"})");
  says("names tensor 'c', which none of its files has");
  index(R"({"a":"../m/model-1.safetensors"})");
  says("is not the plain name of a file");
  index(R"({"a":["model-1.safetensors"]})");
  says("does not name a file for tensor 'a'");
  index("[]");
  says("is not a safetensors index");
  index(std::string(100000, '['));
  says("nested more than 64 deep");
  std::filesystem::remove(model / "model.safetensors.index.json");
  write_bytes(model / "model-3.safetensors", shard("a"));
  says("tensor 'a' is there twice");
}

TEST_CASE("a stale index is noted where all tensors are there, and refused where one is not") {
  const TemporaryFolder folder;
  const auto model = folder / "m";
  const auto shard = [](const std::string& name) { return safetensors(one_tensor(name, "[6]", "[0,24]"), raw(six)); };
  const auto index = [&](const std::string& map) { write_bytes(model / "model.safetensors.index.json", R"({"weight_map":)" + map + "}"); };
  const auto note = [&] {
    const auto checkpoint = open_checkpoint(model);
    REQUIRE(checkpoint->notes.size() == 1);
    return checkpoint->notes[0];
  };
  write_bytes(model / "config.json", "{}");
  write_bytes(model / "model-1.safetensors", shard("a"));
  write_bytes(model / "model-2.safetensors", shard("b"));
  index(R"({"a":"model-2.safetensors","b":"model-2.safetensors", "c":"model-1.safetensors"})");
  CHECK(error_of([&] { open_checkpoint(model); }).find("names tensor 'c', which none of its files has") != std::string::npos);
  index(R"({"a":"model-2.safetensors","b":"model-1.safetensors"})");
  CHECK(note().find("lie in other files than it says: a, …") != std::string::npos);
  index(R"({"a":"model-1.safetensors","b":"model-2.safetensors","mtp.norm.weight":"model-2.safetensors"})");
  CHECK(note().find("not there and not needed: mtp.norm.weight") != std::string::npos);
  write_bytes(model / "model-1.safetensors", safetensors(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                                                         R"("d":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}})",
                                                         raw(six)));
  index(R"({"a":"model-1.safetensors","b":"model-2.safetensors"})");
  CHECK(note().find("in its files that it does not name: d") != std::string::npos);

  // One file beside an index of shards: it is read if it has all of them.
  std::filesystem::remove(model / "model-1.safetensors");
  write_bytes(model / "model.safetensors", shard("a"));
  CHECK(error_of([&] { open_checkpoint(model); }).find("names tensor 'b', which model.safetensors beside it does not have") !=
        std::string::npos);
  index(R"({"a":"model-1.safetensors"})");
  CHECK(note().find("names other files than model.safetensors, read instead") != std::string::npos);

  // Other shards than the index names, where its own are missing.
  std::filesystem::remove(model / "model.safetensors");
  index(R"({"b":"model-1-of-1.safetensors"})");
  CHECK(note().find("names other files than model-2.safetensors, read instead") != std::string::npos);
  index(R"({"a":"model-1.safetensors"})");
  CHECK(error_of([&] { open_checkpoint(model); }).find("names tensor 'a', which model-2.safetensors beside it does not have") !=
        std::string::npos);
  std::filesystem::remove(model / "model-2.safetensors");
  CHECK(error_of([&] { open_checkpoint(model); }).find("names 'model-1.safetensors', which is missing from the folder; fetch it too") !=
        std::string::npos);
}

TEST_CASE("an index cut off at any byte, or with any bit flipped, is read or refused") {
  const TemporaryFolder folder;
  const auto model = folder / "m", path = model / "model.safetensors.index.json";
  const std::string whole = R"({"metadata":{"total_size":24},"weight_map":{"w":"a.safetensors"}})";
  write_bytes(model / "config.json", "{}");
  write_bytes(model / "a.safetensors", safetensors(one_tensor("w", "[6]", "[0,24]"), raw(six)));
  const auto try_it = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    try {
      return open_checkpoint(model)->tensors.size() == 1;
    } catch (const Error& error) {
      return std::string(error.what()).find('\n') == std::string::npos;
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length)
    error_of([&] { write_bytes(path, whole.substr(0, length)), open_checkpoint(model); });
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    CHECK(try_it(flipped));
  }
}

TEST_CASE("what Git LFS or llama.cpp left in a file's place is named as such") {
  const TemporaryFolder folder;
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 234728\n";
  const auto says = [&](const std::filesystem::path& path, const char* words) {
    CHECK(error_of([&] { open_checkpoint(path); }).find(words) != std::string::npos);
  };
  write_bytes(folder / "model.h5", pointer);
  says(folder / "model.h5", "model.h5: is a Git LFS pointer");
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"}) {
    write_folder(folder / "m", sound);
    write_bytes(folder / "m" / name, pointer);
    says(folder / "m", "is a Git LFS pointer, not the file itself; fetch that with: git lfs pull");
    std::filesystem::remove_all(folder / "m");
  }
  write_bytes(folder / "model.gguf", "GGUF\x03");
  says(folder / "model.gguf", "is a GGUF file");
  write_bytes(folder / "m/config.json", "{}");
  write_bytes(folder / "m/x.Q4.gguf", "GGUF\x03");
  says(folder / "m", "has its weights as GGUF ('x.Q4.gguf')");
}

TEST_CASE("unsound headers are refused, each with its reason") {
  const TemporaryFolder folder;
  const std::string data = raw(six);
  const std::string huge = "9223372036854775807";
  const struct {
    std::string bytes, reason;
  } cases[] = {
      {"", "is empty"},
      {"1234567", "too short"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}", "declares a header of 18446744073709551615 bytes"},
      {safetensors("{", ""), "not JSON"},
      {safetensors("[]", ""), "a list where there should be none"},
      {safetensors("\"w\"", ""), "a text where there should be none"},
      {safetensors(R"({"w":"F32"})", ""), "a text where there should be none"},
      {safetensors("7", ""), "a number where there should be none"},
      {safetensors(std::string(1000000, '['), ""), "a list where there should be none"},
      {safetensors(R"({"a":)" + std::string(1000000, '{'), ""), "not JSON"},
      {safetensors(R"({"a":{"b":{"c":1}}})", ""), "the unknown key 'b'"},
      {safetensors(R"({"__metadata__":{"a":{"b":{}}}})", ""), "an object where there should be none"},
      {safetensors("{\"\xff\":{}}", ""), "not JSON"},
      {safetensors(one_tensor("a\\u0000b", "[6]", "[0,24]"), data), "a character that names do not have"},
      {safetensors(one_tensor("a/b", "[6]", "[0,24]"), data), "a character that names do not have"},
      {safetensors(one_tensor("a\\nb", "[6]", "[0,24]"), data), "a character that names do not have"},
      {safetensors(one_tensor("", "[6]", "[0,24]"), data), "a character that names do not have"},
      {safetensors(one_tensor("w", "[6]", "[0,20]"), data), "lies at bytes 0 to 20"},
      {safetensors(one_tensor("w", "[6]", "[24,0]"), data), "lies at bytes 24 to 0"},
      {safetensors(one_tensor("w", "[6]", "[4,28]"), data), "lies at bytes 4 to 28"},
      {safetensors(one_tensor("w", "[6]", "[0,48]"), data), "lies at bytes 0 to 48"},
      {safetensors(one_tensor("w", "[12]", "[0,48]"), data), "24 bytes past the end"},
      {safetensors(one_tensor("w", "[6]", "[-1,24]"), data), "a negative number"},
      {safetensors(one_tensor("w", "[6.5]", "[0,24]"), data), "not an integer"},
      {safetensors(one_tensor("w", "[6]", "[0,99999999999999999999]"), data), "not an integer"},
      {safetensors(one_tensor("w", "[6]", "[0,18446744073709551615]"), data), "beyond 2^63"},
      {safetensors(one_tensor("w", "[" + huge + "," + huge + "]", "[0,24]"), data), "more elements than there can be"},
      {safetensors(one_tensor("w", "[4294967296,4294967296,6]", "[0,24]"), data), "more elements than there can be"},
      {safetensors(one_tensor("w", "[0,6]", "[0,0]"), ""), "has no tensors"},
      {safetensors(one_tensor("w", "[1,1,1,1,1,1,1,1,6]", "[0,24]"), data), "has 9 axes"},
      {safetensors(one_tensor("w", "[1,1,1,1,1,1,1,1,1,1,1,6]", "[0,24]"), data), "a list that is too long"},
      {safetensors(one_tensor("w", "[6]", "[0]"), data), "no complete dtype"},
      {safetensors(one_tensor("w", "[6]", "[0,12,24]"), data), "no complete dtype"},
      {safetensors(one_tensor("w", "[6]", "[[0,24]]"), data), "a list where there should be none"},
      {safetensors(one_tensor("w", "null", "[0,24]"), data), "null"},
      {safetensors(R"({"w":{"dtype":"F32","shape":[6]}})", data), "no complete dtype"},
      {safetensors(R"({"w":{"dtype":"F32","dtype":"F32","shape":[6],"data_offsets":[0,24]}})", data), "'dtype' twice"},
      {safetensors(one_tensor("w", "[3]", "[0,24]", "F64"), data), "'w' (F64 [3]) is of a type that weights do not have"},
      {safetensors(one_tensor("w", "[24]", "[0,24]", "F4"), data), "unknown type 'F4'"},
      {safetensors(one_tensor("w", "[6]", "[0,24]") + "x", data), "not JSON"},
      {safetensors(one_tensor("w", "[6]", "[0,24]"), data + "x"), "1 bytes after its last tensor"},
      {safetensors("{}", ""), "has no tensors"},
      {safetensors(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"w":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})",
                   data),
       "'w' is there twice"},
      {safetensors(R"({"v":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"w":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}})",
                   data),
       "'w' lies at bytes 8 to 24"},
  };
  for (const auto& [bytes, reason] : cases) {
    write_folder(folder / "m", bytes);
    const std::string error = error_of([&] { open_checkpoint(folder / "m"); });
    INFO(error << "\nexpected: " << reason);
    CHECK(error.find(reason) != error.npos);
    CHECK(error.starts_with(folder.path().string()));
  }
}

TEST_CASE("a safetensors file cut off at any byte, or longer by one, is refused; a flipped bit never hurts") {
  const TemporaryFolder folder;
  write_folder(folder / "m", sound);
  for (std::size_t length = 0; length < sound.size(); ++length) {
    write_bytes(folder / "m/model.safetensors", sound.substr(0, length));
    error_of([&] { open_checkpoint(folder / "m"); });
  }
  write_bytes(folder / "m/model.safetensors", sound + '\0');
  error_of([&] { open_checkpoint(folder / "m"); });
  for (std::size_t bit = 0; bit < 8 * (sound.size() - 28); ++bit) {
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    write_bytes(folder / "m/model.safetensors", flipped);
    try {
      touch(*open_checkpoint(folder / "m"));
    } catch (const Error&) {
    }
  }
}

TEST_CASE("what is no checkpoint is refused by name") {
  const TemporaryFolder folder;
  CHECK(open_error(folder / "nothing").find("No such file") != std::string::npos);
  write_bytes(folder / "text.txt", "hello");
  CHECK(open_error(folder / "text.txt").find("neither an HDF5 file nor a folder") != std::string::npos);
  write_bytes(folder / "empty.h5", "");
  CHECK(open_error(folder / "empty.h5").find("is empty") != std::string::npos);
  CHECK(open_error(folder.path()).find("has no config.json") != std::string::npos);
  write_bytes(folder / "m/config.json", "{}");
  CHECK(open_error(folder / "m").find("has no *.safetensors file") != std::string::npos);
  write_folder(folder / "m", sound);
  for (const std::string& config : {std::string(" \n"), std::string(70, '['), R"({"a":)" + std::string(1000, '{')}) {
    write_bytes(folder / "m/config.json", config);
    CHECK(open_error(folder / "m").find("config.json is") != std::string::npos);
  }
  std::filesystem::remove(folder / "m/config.json");
  std::filesystem::create_directory(folder / "m/config.json");
  CHECK(error_of([&] { open_checkpoint(folder / "m"); }).find("is a folder, a file was expected") != std::string::npos);
}

TEST_CASE("a name with line breaks or without end stays one short line") {
  const TemporaryFolder folder;
  write_folder(folder / "m", safetensors(one_tensor(std::string(100000, 'x'), "[6]", "[0,24]"), raw(six)));
  CHECK(error_of([&] { open_checkpoint(folder / "m"); }).size() < 1000);
}

}  // namespace statescope::safetensors_test
