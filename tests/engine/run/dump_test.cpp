// A dump read back: everything the run computed, under the names that the design gives.
#include "engine/run/dump.h"

#include <fmt/format.h>

#include "engine/run/run.h"
#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::dump_test {
namespace {

constexpr std::int64_t kTokens = 21;

struct Dataset {
  std::vector<hsize_t> extents;
  std::vector<float> floats;
  std::vector<std::int32_t> integers;
};

Dataset read_dataset(hid_t file, const std::string& name) {
  Dataset out;
  const hid_t set = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  INFO(name);
  REQUIRE(set >= 0);
  const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
  out.extents.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, out.extents.data(), nullptr);
  const auto size = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
  if (H5Tget_class(type) == H5T_INTEGER) {
    CHECK(H5Tequal(type, H5T_STD_I32LE) > 0);
    out.integers.resize(size);
    REQUIRE(H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.integers.data()) >= 0);
  } else {
    CHECK(H5Tequal(type, H5T_IEEE_F32LE) > 0);
    out.floats.resize(size);
    REQUIRE(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.floats.data()) >= 0);
  }
  H5Tclose(type), H5Sclose(space), H5Dclose(set);
  return out;
}

std::string text_attribute(hid_t file, const std::string& object, const char* name) {
  const hid_t attribute = H5Aopen_by_name(file, object.c_str(), name, H5P_DEFAULT, H5P_DEFAULT);
  INFO(object << " @ " << name);
  REQUIRE(attribute >= 0);
  const hid_t type = H5Aget_type(attribute);
  std::string text;
  if (H5Tis_variable_str(type) > 0) {
    char* chars = nullptr;
    REQUIRE(H5Aread(attribute, type, &chars) >= 0);
    text = chars;
    H5free_memory(chars);
  } else {
    text.resize(H5Tget_size(type));
    REQUIRE(H5Aread(attribute, type, text.data()) >= 0);
    text.resize(text.find_last_not_of('\0') + 1);
  }
  H5Tclose(type), H5Aclose(attribute);
  return text;
}

std::vector<hsize_t> dims(std::initializer_list<std::int64_t> extents) { return {extents.begin(), extents.end()}; }

/// Both at once: what goes into the file, and what it is held against.
class Both final : public Observer {
 public:
  Both(Observer& a, Observer& b) : a_(a), b_(b) {}
  void residual(std::int64_t layer, ConstTensor x) override { a_.residual(layer, x), b_.residual(layer, x); }
  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override {
    a_.channel(layer, name, values), b_.channel(layer, name, values);
  }
  bool wants_all() const override { return true; }

 private:
  Observer &a_, &b_;
};

/// Reads 20 tokens and then one more, dumping states after tokens 4, 19 and 20.
struct Dumped {
  std::shared_ptr<Model> model;
  std::vector<std::int32_t> ids = some_ids(kTokens);
  Dump dump;
  Recording seen;
  std::vector<float> logits;

  explicit Dumped(const json& config)
      : model(Model::load(random_checkpoint(Config(config), 5), make_cpu_backend(1))), dump(*model), seen(model->backend()) {
    ModelState state = model->start();
    Both both(dump, seen);
    std::int64_t read = 0;
    for (std::int64_t end : {5, 20, 21}) {
      const std::vector<float> rows =
          read_logits(*model, state, std::span(ids).subspan(static_cast<std::size_t>(read), static_cast<std::size_t>(end - read)),
                      {.prompt_length = 20}, &both);
      dump.logits(ConstTensor(rows.data(), DType::f32, {end - read, 97}));
      dump.states(end - 1, state);
      logits.insert(logits.end(), rows.begin(), rows.end());
      read = end;
    }
  }
};

}  // namespace

TEST_CASE("dump: names, shapes, types, attributes and numbers of everything that was computed") {
  const json attn{{"layers", {1}}, {"num_heads", 4}};
  Dumped run(sse_config("gdn", {{"num_writer", 2}, {"num_reader", 2}, {"num_hidden_layers", 3}, {"attn", attn}}));
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "run.h5";
  run.dump.write(path, run.ids, false);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  REQUIRE(file >= 0);
  CHECK(text_attribute(file, "/", "format") == "statescope-dump");
  CHECK(text_attribute(file, "/", "config") == run.model->checkpoint().config);

  CHECK(read_dataset(file, "/input_ids").integers == run.ids);
  CHECK(read_dataset(file, "/input_ids").extents == dims({kTokens}));
  CHECK(read_dataset(file, "/logits").extents == dims({kTokens, 97}));
  CHECK(read_dataset(file, "/logits").floats == run.logits);
  CHECK_FALSE(text_attribute(file, "/logits", "equation").empty());
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    const Dataset hidden = read_dataset(file, fmt::format("/hidden/{}", layer));
    CHECK(hidden.extents == dims({kTokens, 64}));
    CHECK(hidden.floats == run.seen.floats(layer + 1, "residual"));
  }
  const std::map<std::string, std::vector<hsize_t>> channels{
      {"q", dims({kTokens, 2, 2, 16})},       {"k", dims({kTokens, 2, 2, 16})},
      {"v", dims({kTokens, 2, 16})},          {"log_decay", dims({kTokens, 2, 2})},
      {"beta", dims({kTokens, 2, 2})},        {"partition_logits", dims({kTokens, 4})},
      {"partition_gate", dims({kTokens, 4})}, {"partition_selected", dims({kTokens, 2})},
      {"readout", dims({kTokens, 32})},       {"mixer_out", dims({kTokens, 64})}};
  for (const auto& [name, extents] : channels) {
    const std::string place = "/channels/2/" + name;
    const Dataset values = read_dataset(file, place);
    INFO(place);
    CHECK(values.extents == extents);
    CHECK(values.floats == run.seen.floats(2, name));
    CHECK(values.integers == run.seen.integers(2, name));
    CHECK(text_attribute(file, place, "unit") == channel_row(name).unit);
    CHECK(text_attribute(file, place, "equation") == channel_row(name).equation);
    CHECK(text_attribute(file, place, "axes").starts_with("[token, "));
  }
  CHECK(read_dataset(file, "/channels/1/q").extents == dims({kTokens, 4, 16}));
  CHECK(H5Lexists(file, "/channels/1/partition_gate", H5P_DEFAULT) == 0);

  Run replay(run.model);
  replay.read(run.ids, 20);
  for (std::int64_t layer : {0, 2}) {
    for (std::int64_t t : {4, 19, 20}) {
      const Dataset state = read_dataset(file, fmt::format("/state/{}/{}", layer, t));
      CHECK(state.extents == dims({5, 2, 16, 16}));
      CHECK(relative_error(state.floats, replay.state(layer, t).values) < 1e-5);
    }
  }
  CHECK(H5Lexists(file, "/state/1", H5P_DEFAULT) == 0);
  H5Fclose(file);
}

TEST_CASE("dump: a mixer's second memory has a place of its own") {
  Dumped run(small_config("gsa", {{"num_slots", 12}}));
  const TemporaryFolder folder;
  run.dump.write(folder / "run.h5", run.ids, false);
  const hid_t file = H5Fopen((folder / "run.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  CHECK(read_dataset(file, "/state/1/20").extents == dims({1, 4, 12, 16}));
  CHECK(read_dataset(file, "/state/1/recurrent_k/20").extents == dims({1, 4, 16, 12}));
  H5Fclose(file);
}

TEST_CASE("dump: a state's axes are called what the family calls them") {
  const TemporaryFolder folder;
  const auto axes_of = [&](const json& config, const char* name) {
    Dumped run(config);
    run.dump.write(folder / name, run.ids, false);
    const hid_t file = H5Fopen((folder / name).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const std::string axes = text_attribute(file, "/state/1/20", "axes");
    H5Fclose(file);
    return axes;
  };
  CHECK(axes_of(small_config("gla"), "gla.h5") == "[segment, head, key row, value column]");
  CHECK(axes_of(small_config("mamba"), "mamba.h5") == "[segment, head, state, channel]");
}

TEST_CASE("dump: a file that is there is replaced only if asked, and no folder is invented") {
  Dumped run(small_config("gla"));
  const TemporaryFolder folder;
  write_bytes(folder / "run.h5", "mine");
  error_of([&] { run.dump.write(folder / "run.h5", run.ids, false); });
  CHECK(read_bytes(folder / "run.h5") == "mine");
  run.dump.write(folder / "run.h5", run.ids, true);
  CHECK(read_bytes(folder / "run.h5").substr(1, 3) == "HDF");
  const std::string text = error_of([&] { run.dump.write(folder / "none/run.h5", run.ids, false); });
  CHECK(text.find("none") != text.npos);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

}  // namespace statescope::test::dump_test
