// Every reference case, read in every way a run may read it: step by step, in chunks of any size, and split between the two.
#include "tests/engine/model/golden.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/device.h"
#include "engine/error.h"
#include "engine/mixers/attention/attention_pattern.h"
#include "tests/catch.h"
#include "tests/kernels/device_cases.h"
#include "tests/source.h"

namespace statescope::test::golden_test {
namespace {

constexpr double kTolerance = 1e-4;            // float32 against the float32 reference; nearly all land below 1e-5
constexpr double kRoundedTolerance = 3e-2;     // with the precision bfloat16, of a prompt
constexpr double kRoundedDecode = 6e-2;        // the same of tokens behind it, which read a state made of rounded numbers
constexpr double kOtherChoiceTolerance = 0.3;  // the same, where a rounding changed what is chosen

/// What is chosen by largest scores, and the reference's name for it.
const std::map<std::string, std::string> kChoices{{"partition_selected", "route_ids"}, {"moe_selected", "moe_ids"},
                                                  {"moba_selected", "moba_selected"},  {"row_selected", "row_ids"},
                                                  {"nsa_selected", "nsa_selected"},    {"dsa_selected", "dsa_selected"}};

/// How the prompt is cut: pieces of tokens, each with a chunk size (0: step form).
struct Piece {
  std::int64_t tokens, chunk_size;
};
using Way = std::vector<Piece>;

Way whole(std::int64_t T, std::int64_t chunk_size) { return {{T, chunk_size}}; }
Way steps(std::int64_t T) { return Way(static_cast<std::size_t>(T), Piece{1, 0}); }

std::map<std::string, Way> ways(std::int64_t T) {
  std::map<std::string, Way> all{{"step", steps(T)},
                                 {"chunk 1", whole(T, 1)},
                                 {"chunk 7", whole(T, 7)},
                                 {"chunk 64", whole(T, 64)},
                                 {"chunk T", whole(T, T)},
                                 {"1 + rest", {{1, 64}, {T - 1, 16}}},
                                 {"17 + 47 + 32", {{17, 7}, {47, 64}, {T - 64, 64}}}};
  Way mixed{{40, 16}};
  for (int i = 0; i < 5; ++i) mixed.push_back({1, 0});
  mixed.push_back({T - 45, 64});
  all["chunks, steps, chunks"] = mixed;
  return all;
}

struct Case {
  std::shared_ptr<Model> model;
  SafetensorsFile io;
  std::vector<std::int32_t> prompt, decode;

  /// `layers`: how many of them, in order, live on each of several devices.
  Case(const std::filesystem::path& folder, std::shared_ptr<Backend> backend, const std::vector<std::int64_t>& layers = {})
      : model(Model::load(open_checkpoint(folder), std::move(backend), layers)), io(open_safetensors(folder / "io.safetensors")) {
    for (std::int64_t id : io.integers.at("input_ids")) prompt.push_back(static_cast<std::int32_t>(id));
    for (std::int64_t id : io.integers.at("decode_ids")) decode.push_back(static_cast<std::int32_t>(id));
  }
  std::int64_t T() const { return static_cast<std::int64_t>(prompt.size()); }
};

/// Reads `ids` of a sequence whose first `prompt_length` tokens are the prompt, and appends the logits of each.
void read(Case& c, ModelState& state, std::span<const std::int32_t> ids, std::int64_t chunk_size, std::int64_t prompt_length,
          std::vector<float>& logits, Recording* seen) {
  const auto T = static_cast<std::int64_t>(ids.size());
  Backend& backend = c.model->backend();
  const Shape hidden{T, c.model->hidden()}, vocab{T, c.model->vocab()};
  const Buffer x_memory = backend.allocate(static_cast<std::size_t>(hidden.size()) * sizeof(float)),
               y_memory = backend.allocate(static_cast<std::size_t>(vocab.size()) * sizeof(float));
  const Tensor x(x_memory.get(), DType::f32, hidden), y(y_memory.get(), DType::f32, vocab);
  backend.fill(y, std::nanf(""));
  c.model->forward(state, ids, {.chunk_size = chunk_size, .prompt_length = prompt_length}, x, seen);
  c.model->logits(y, x);
  const std::vector<float> out = host_copy(backend, y);
  logits.insert(logits.end(), out.begin(), out.end());
}

/// Reference name of a state → our memory: which one, its first slot, how many slots.
struct StatePlace {
  std::size_t memory;
  std::int64_t first, count;
};
std::map<std::string, StatePlace> state_places(const MixerLayout& layout) {
  std::map<std::string, StatePlace> places;
  for (std::size_t m = 0; m < layout.memory.size(); ++m) places[layout.memory[m].name] = {m, 0, layout.memory[m].shape[0]};
  return places;
}

void compare_states(Case& c, const ModelState& state, std::int64_t tokens) {
  for (std::int64_t layer = 0; layer < c.model->layers(); ++layer) {
    const MixerLayout& layout = c.model->layout(layer);
    std::map<std::string, StatePlace> places = state_places(layout);
    if (c.model->plan().family == "mom" && !layout.memory.empty()) {
      const std::int64_t slots = layout.memory[0].shape[0];
      places = {{"recurrent_shared", {0, 0, 1}}, {"recurrent", {0, 1, slots - 1}}};
    }
    // The levels that so few tokens reach.
    if (c.model->plan().family == "log_linear_mamba2") places = {{"recurrent", {0, 0, 8}}};
    // Where a window of inputs is all that a layer keeps.
    if (const StoredTensor* window = c.io.find(fmt::format("layers.{}.state.conv.t{}", layer, tokens))) {
      INFO("window of layer " << layer << " after " << tokens << " tokens");
      const Tensor kept = state.layers[static_cast<std::size_t>(layer)].conv_caches.at(0);
      CHECK(relative_error(host_copy(c.model->backend(), kept), floats(*window)) < kTolerance);
    }
    if (const StoredTensor* keys = c.io.find(fmt::format("layers.{}.cache.index_k", layer)); keys && tokens == keys->shape[0]) {
      INFO("the indexer's keys of layer " << layer);
      const KvCache& kv = state.layers[static_cast<std::size_t>(layer)].kv;
      CHECK(relative_error(host_copy(c.model->backend(), kv.index.slice(0, kv.length)), floats(*keys)) < kTolerance);
    }
    for (const auto& [name, place] : places) {
      const StoredTensor* expected = c.io.find(fmt::format("layers.{}.state.{}.t{}", layer, name, tokens));
      if (!expected) continue;
      const Tensor memory = state.layers[static_cast<std::size_t>(layer)].memory[place.memory].slice(place.first, place.count);
      REQUIRE(memory.shape.size() == expected->size());
      INFO("state " << name << " of layer " << layer << " after " << tokens << " tokens");
      CHECK(relative_error(host_copy(c.model->backend(), memory), floats(*expected)) < kTolerance);
    }
  }
}

/// What we chose, each token's and head's in the reference's order: that of MoBA's own family is ascending, ours the largest first.
std::vector<std::int64_t> chosen(const Case& c, const std::vector<std::int32_t>& ours, const std::vector<std::int64_t>& theirs) {
  std::vector<std::int64_t> all(ours.begin(), ours.end());
  if (c.model->plan().family != "moba" || all.size() != theirs.size()) return all;
  const std::int64_t width = c.model->plan().layers[0].config.integer("moba_topk") - 1;
  for (auto first = all.begin(); first != all.end(); first += width) {
    const auto none = std::find(first, first + width, -1);
    std::sort(first, none);
  }
  return all;
}

/// Our scores of what was chosen against the reference's of all that could be, [T, groups, width].
void compare_scores(Case& c, Recording& seen, std::int64_t layer, const std::string& ours, const std::string& selected,
                    const std::string& theirs) {
  const StoredTensor* expected = c.io.find(fmt::format("layers.{}.{}", layer, theirs));
  if (!expected) return;
  INFO(theirs << " of layer " << layer);
  const std::vector<std::int32_t>& ids = seen.integers(layer, selected);
  const std::int64_t width = expected->shape.back(), groups = expected->size() / width, count = std::ssize(ids) / groups;
  std::vector<float> chosen;
  for (std::int64_t i = 0; i < std::ssize(ids); ++i) {
    const std::int32_t id = ids[static_cast<std::size_t>(i)];
    chosen.push_back(id < 0 ? 0 : floats(*expected)[static_cast<std::size_t>(i / count * width + id)]);
  }
  CHECK(relative_error(seen.floats(layer, ours), chosen) < kTolerance);
}

/// λ of the levels that so few tokens reach.
void compare_levels(Case& c, Recording& seen, std::int64_t layer) {
  const StoredTensor* expected = c.io.find(fmt::format("layers.{}.level_scales", layer));
  if (!expected) return;
  INFO("level_scales of layer " << layer);
  const std::vector<float>& all = seen.floats(layer, "level_scale");
  const std::int64_t kept = expected->shape.back(), levels = std::ssize(all) * kept / expected->size();
  std::vector<float> first;
  for (std::int64_t i = 0; i < expected->size(); ++i) first.push_back(all[static_cast<std::size_t>(i / kept * levels + i % kept)]);
  CHECK(relative_error(first, floats(*expected)) < kTolerance);
}

void compare_recording(Case& c, Recording& seen) {
  for (std::int64_t layer = 0; layer < c.model->layers(); ++layer) {
    auto compare = [&](const std::string& ours, const std::string& theirs, std::int64_t from_layer) {
      const StoredTensor* expected = c.io.find(fmt::format("layers.{}.{}", layer, theirs));
      if (!expected) return;
      std::vector<float> got = seen.floats(from_layer, ours);
      INFO(theirs << " of layer " << layer);
      // The same for every token.
      if (expected->shape.size() == 1) got.resize(static_cast<std::size_t>(expected->size()));
      REQUIRE(static_cast<std::int64_t>(got.size()) == expected->size());
      CHECK(relative_error(got, floats(*expected)) < kTolerance);
    };
    compare("residual", "hidden", layer + 1);
    for (const char* same : {"log_decay", "beta", "dt", "erase_rate", "shared_out", "moe_logits", "moe_weights", "mixer_out", "nsa_gates"})
      compare(same, same, layer);
    if (c.model->plan().family != "sse_swa_moba" || c.model->layout(layer).memory.empty()) compare("readout", "pre_o_proj", layer);
    compare("attention_readout", "pre_o_proj_attention", layer);
    if (c.model->plan().family == "hymba") {
      compare("attention_readout", "attn_out", layer);
      compare("scan_readout", "mamba_out", layer);
    }
    compare_levels(c, seen, layer);
    compare("q", "ssm_C", layer);
    compare("k", "ssm_B", layer);
    compare("partition_logits", "route_logits", layer);
    compare("partition_gate", "route_probs", layer);
    compare("head_gate_q", "sla_gate_q", layer);
    compare("head_gate_k", "sla_gate_k", layer);
    compare_scores(c, seen, layer, "nsa_importance", "nsa_selected", "nsa_importance");
    compare_scores(c, seen, layer, "dsa_scores", "dsa_selected", "dsa_index_scores");
    for (const auto& [ours, theirs] : kChoices) {
      const auto expected = c.io.integers.find(fmt::format("layers.{}.{}", layer, theirs));
      if (expected == c.io.integers.end()) continue;
      INFO(theirs << " of layer " << layer);
      CHECK(chosen(c, seen.integers(layer, ours), expected->second) == expected->second);
    }
  }
}

/// Where positions turn by the length of the context, a token that was decoded is another than one of a prompt: the reference has read all
/// tokens as one prompt, and all of them one by one.
void compare_other_prompts(Case& c) {
  if (!c.io.find("full_logits")) return;
  std::vector<std::int32_t> ids = c.prompt;
  ids.insert(ids.end(), c.decode.begin(), c.decode.end());
  const auto T = static_cast<std::int64_t>(ids.size());
  std::vector<float> together, stepwise;
  ModelState first = c.model->start(), second = c.model->start();
  for (const std::int64_t end : {std::int64_t{40}, T})
    read(c, first, std::span(ids).subspan(static_cast<std::size_t>(first.position), static_cast<std::size_t>(end - first.position)), 16, T,
         together, nullptr);
  for (const std::int32_t id : ids) read(c, second, {&id, 1}, 0, 0, stepwise, nullptr);
  CHECK(relative_error(together, floats(*c.io.find("full_logits"))) < kTolerance);
  CHECK(relative_error(stepwise, floats(*c.io.find("stepwise_logits"))) < kTolerance);
}

/// Bit j of byte b of a query and head: it sees key 8 b + j.
void compare_sight(Case& c) {
  for (std::int64_t layer = 0; layer < c.model->layers(); ++layer) {
    const std::string name = fmt::format("layers.{}.visible_bits", layer);
    if (!c.io.integers.contains(name)) continue;
    const std::vector<std::int64_t>& bits = c.io.integers.at(name);
    const std::int64_t heads = c.io.integer_shapes.at(name)[0], T = c.io.integer_shapes.at(name)[1],
                       bytes = c.io.integer_shapes.at(name)[2];
    const auto pattern = AttentionPattern::of(c.model->plan().layers[static_cast<std::size_t>(layer)].config, layer, heads);
    REQUIRE(pattern);
    const FixedPattern rule = pattern->on_host();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < heads * T * T; ++i) {
      const std::int64_t h = i / (T * T), t = i / T % T, s = i % T;
      const bool seen = (bits[static_cast<std::size_t>((h * T + t) * bytes + s / 8)] >> s % 8 & 1) != 0;
      wrong += seen != (s <= t && rule.sees(h, t / rule.block_size, s / rule.block_size));
    }
    CHECK(wrong == 0);
  }
}

void compare_with_reference(Case c, const std::map<std::string, Way>& all_ways) {
  compare_sight(c);
  for (const auto& [way_name, way] : all_ways) {
    INFO("read by " << way_name);
    ModelState state = c.model->start();
    Recording seen(c.model->backend());
    std::vector<float> logits;
    std::span<const std::int32_t> rest = c.prompt;
    for (const Piece& piece : way) {
      read(c, state, rest.first(static_cast<std::size_t>(piece.tokens)), piece.chunk_size, c.T(), logits, &seen);
      rest = rest.subspan(static_cast<std::size_t>(piece.tokens));
      // The prefixes of the reference were prompts of their own, which only MoBA can tell from parts of a longer one.
      if (c.model->plan().family != "sse_swa_moba" || state.position == c.T()) compare_states(c, state, state.position);
    }
    REQUIRE(rest.empty());
    CHECK(relative_error(logits, floats(*c.io.find("logits"))) < kTolerance);
    compare_recording(c, seen);
    std::vector<float> decoded;
    for (std::int32_t id : c.decode) read(c, state, {&id, 1}, 0, c.T(), decoded, nullptr);
    CHECK(relative_error(decoded, floats(*c.io.find("decode_logits"))) < kTolerance);
    compare_states(c, state, state.position);
  }
  compare_other_prompts(c);
}

void compare_with_reference(Case c) {
  const std::map<std::string, Way> all_ways = ways(c.T());
  compare_with_reference(std::move(c), all_ways);
}

/// On two devices, cut between any two layers and before the first, in passes and steps.
void compare_cuts(const std::string& name, const std::string& devices_name, const std::shared_ptr<Backend>& devices) {
  const std::int64_t layers = Case(golden_root() / name, make_cpu_backend()).model->layers();
  for (std::int64_t first = 0; first < layers; ++first) {
    INFO(name << ", the first " << first << " of " << layers << " layers on the first of " << devices_name);
    Case c(golden_root() / name, devices, {first, layers - first});
    const std::string way = "chunks, steps, chunks";
    const Way mixed = ways(c.T()).at(way);
    compare_with_reference(std::move(c), {{way, mixed}});
  }
}

bool same_choices(Case& c, Recording& seen) {
  for (std::int64_t layer = 0; layer < c.model->layers(); ++layer) {
    for (const auto& [ours, theirs] : kChoices) {
      const auto expected = c.io.integers.find(fmt::format("layers.{}.{}", layer, theirs));
      if (expected == c.io.integers.end()) continue;
      if (chosen(c, seen.integers(layer, ours), expected->second) != expected->second) return false;
    }
  }
  return true;
}

/// Zamba's block has no residual, and normalises what may be small: rounding grows there, as its distance from the float64 check tells.
double growth_of(const Case& c) { return c.model->plan().family.starts_with("zamba") ? 5 : 1; }

void compare_rounded(Case c) {
  for (const char* way_name : {"chunk T", "chunks, steps, chunks"}) {
    INFO("read by " << way_name);
    ModelState state = c.model->start();
    Recording seen(c.model->backend());
    std::vector<float> logits, decoded;
    std::span<const std::int32_t> rest = c.prompt;
    const Way way = ways(c.T()).at(way_name);
    for (const Piece& piece : way) {
      read(c, state, rest.first(static_cast<std::size_t>(piece.tokens)), piece.chunk_size, c.T(), logits, &seen);
      rest = rest.subspan(static_cast<std::size_t>(piece.tokens));
    }
    for (std::int32_t id : c.decode) read(c, state, {&id, 1}, 0, c.T(), decoded, nullptr);
    const bool same = same_choices(c, seen);
    CHECK(relative_error(logits, floats(*c.io.find("logits"))) < (same ? growth_of(c) * kRoundedTolerance : kOtherChoiceTolerance));
    CHECK(relative_error(decoded, floats(*c.io.find("decode_logits"))) < (same ? growth_of(c) * kRoundedDecode : kOtherChoiceTolerance));
  }
}

}  // namespace

TEST_CASE("golden: logits, block outputs, routing, states and decode, however the prompt is cut") {
  for (const std::string& name : golden_cases()) {
    DYNAMIC_SECTION(name) { compare_with_reference({golden_root() / name, make_cpu_backend()}); }
  }
}

TEST_CASE("golden: the same on a device", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend();
  if (!device) return;
  for (const std::string& name : golden_cases()) {
    DYNAMIC_SECTION(name) { compare_with_reference({golden_root() / name, device}); }
  }
}

TEST_CASE("golden: the same with layers on two devices, cut at every place", "[device]") {
  for (const char* name : {"cuda:0,cpu", "cpu,cuda:0", "cuda:0,cuda:1"}) {
    std::shared_ptr<Backend> devices;
    try {
      devices = open_device({.name = name, .threads = 0});
    } catch (const DeviceError& error) {
      WARN("skipped: no devices " << name << " (" << error.what() << ")");
      continue;
    }
    for (const std::string& golden : golden_cases()) compare_cuts(golden, name, devices);
  }
}

TEST_CASE("golden: nearly the same on the CPU in bfloat16") {
  for (const std::string& name : golden_cases()) {
    DYNAMIC_SECTION(name) { compare_rounded({golden_root() / name, make_cpu_backend(0, Precision::bfloat16)}); }
  }
}

TEST_CASE("golden: nearly the same on a device in bfloat16", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend(Precision::bfloat16);
  if (!device) return;
  for (const std::string& name : golden_cases()) {
    DYNAMIC_SECTION(name) { compare_rounded({golden_root() / name, device}); }
  }
}

/// The cases of a folder beside the project; none where it is not there.
std::vector<std::filesystem::path> cases_beside(const std::string& name) {
  const std::filesystem::path shared = from_source("../shared/" + name);
  std::vector<std::filesystem::path> cases;
  if (!std::filesystem::is_directory(shared))
    WARN("skipped: no ../shared/" << name << " here");
  else
    for (const auto& entry : std::filesystem::directory_iterator(shared))
      if (entry.is_directory()) cases.push_back(entry.path());
  std::ranges::sort(cases);
  return cases;
}

TEST_CASE("golden: the copies are those of ../shared/golden") {
  for (const auto& folder : cases_beside("golden")) CHECK(std::filesystem::is_directory(golden_root() / folder.filename()));
}

void compare_or_be_refused(const std::filesystem::path& folder, const std::shared_ptr<Backend>& device) {
  try {
    compare_with_reference({folder, device});
  } catch (const Error& error) {
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("config: ") || Catch::Matchers::ContainsSubstring("is not supported"));
  }
}

TEST_CASE("golden: of the cases beside the project each agrees, or is refused by name") {
  for (const auto& folder : cases_beside("golden-next")) DYNAMIC_SECTION(folder.filename().string()) {
      compare_or_be_refused(folder, make_cpu_backend());
    }
}

TEST_CASE("golden: the same of the cases beside the project on a device", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend();
  if (!device) return;
  for (const auto& folder : cases_beside("golden-next")) DYNAMIC_SECTION(folder.filename().string()) {
      compare_or_be_refused(folder, device);
    }
}

}  // namespace statescope::test::golden_test
