// What every mixer owes, over every row of the table and every family.
#include <set>

#include "tests/mixers/mixer_rig.h"

namespace statescope::test::contract_test {
namespace {

constexpr double kTolerance = 1e-4;  // of outputs: the norm after the memory enlarges the rounding of a small readout
constexpr double kStateTolerance = 1e-5;

/// Calls `work` for every mixer of every small model, alike layers once.
template <class Work>
void for_each_mixer(Work work) {
  for (const SmallModel& model : small_models()) {
    const auto checkpoint = random_checkpoint(Config(model.config), 1);
    const Plan plan = plan_model(Config(model.config));
    std::set<std::string> seen;
    for (std::size_t layer = 0; layer < plan.layers.size(); ++layer) {
      if (plan.layers[layer].mixer.empty()) continue;
      if (!seen.insert(plan.layers[layer].mixer + plan.layers[layer].config.raw().dump()).second) continue;
      INFO(model.name << ", layer " << layer);
      MixerRig rig(checkpoint, static_cast<std::int64_t>(layer));
      work(rig, plan.layers[layer].config);
    }
  }
}

std::vector<Way> ways(std::int64_t T) {
  std::vector<Way> all;
  for (std::int64_t chunk_size : {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, T}) all.push_back({{T, chunk_size}});
  if (T < 3) return all;
  all.push_back({{1, 64}, {T - 1, 64}});
  all.push_back({{T / 3, 5}, {1, 0}, {1, 0}, {T - T / 3 - 2, 64}});
  all.push_back({{T - 1, 16}, {1, 0}});
  return all;
}

void check_channels(const Pass& pass, const MixerRow& row, std::int64_t T) {
  for (const auto& [name, channel] : pass.channels) {
    INFO("channel " << name);
    CHECK(std::find(row.channels.begin(), row.channels.end(), name) != row.channels.end());
    CHECK_FALSE(channel_row(name).axes.empty());
    CHECK(channel.shape[0] == T);
    CHECK(std::all_of(channel.floats.begin(), channel.floats.end(), [](float x) { return std::isfinite(x); }));
  }
}

}  // namespace

TEST_CASE("contract: chunks of any size, steps and splits give the same output, state and channels, and leave nothing unwritten") {
  for_each_mixer([](MixerRig& rig, const Config&) {
    for (std::int64_t T : {1, 63}) {
      const std::vector<float> x = rig.some_input(T);
      const Pass stepped = rig.read(x, steps(T));
      for (const Way& way : ways(T)) {
        INFO("T = " << T << ", first piece " << way[0].tokens << " tokens in chunks of " << way[0].chunk_size);
        const Pass pass = rig.read(x, way);
        CHECK(difference(pass.y, stepped.y) < kTolerance);
        check_same_state(pass.state, stepped.state, kStateTolerance);
        check_channels(pass, *rig.row, T);
        REQUIRE(pass.channels.size() == stepped.channels.size());
        for (const auto& [name, channel] : stepped.channels) {
          INFO("channel " << name);
          // The effect of the read gate is a part of y, and may be as small as y's rounding.
          if (name == "read_gate_effective") {
            CHECK(largest_distance(pass[name].floats, channel.floats) < kTolerance);
          } else {
            CHECK(difference(pass[name].floats, channel.floats) < kTolerance);
          }
          CHECK(pass[name].integers == channel.integers);
        }
      }
    }
  });
}

TEST_CASE("contract: every row of the table is reached, and every channel that it declares is emitted by some config") {
  std::map<std::string, std::set<std::string>> emitted;
  for_each_mixer([&](MixerRig& rig, const Config&) {
    for (const auto& [name, channel] : rig.read(rig.some_input(2)).channels) emitted[std::string(rig.row->name)].insert(name);
  });
  for (const MixerRow& row : mixer_table()) {
    INFO(row.name);
    CHECK(emitted[std::string(row.name)] == std::set<std::string>(row.channels.begin(), row.channels.end()));
  }
}

TEST_CASE("contract: the state has the layout's shapes, and starts at zero") {
  for_each_mixer([](MixerRig& rig, const Config&) {
    const MixerLayout& layout = rig.layout;
    MixerState state = rig.start();
    REQUIRE(state.memory.size() == layout.memory.size());
    REQUIRE(state.conv_caches.size() == layout.conv_caches.size());
    CHECK(rig.row->recurrence.empty() == layout.memory.empty());
    for (std::size_t m = 0; m < state.memory.size(); ++m) CHECK(state.memory[m].shape == layout.memory[m].shape);
    for (std::size_t c = 0; c < state.conv_caches.size(); ++c) CHECK(state.conv_caches[c].shape == layout.conv_caches[c]);
    for (float value : values_of(state.everything)) REQUIRE(value == 0);
    CHECK((layout.kv_heads > 0 || !layout.memory.empty() || !layout.conv_caches.empty()));
    CHECK(layout.slot_names.size() == (layout.memory.empty() ? 0 : static_cast<std::size_t>(layout.memory[0].shape[0])));
    if (layout.partitions > 0) CHECK(layout.memory[0].shape[0] == layout.partitions + (layout.has_shared_slot ? 1 : 0));
    const Pass pass = rig.read(rig.some_input(3));
    CHECK(pass.state.kv.length == (layout.kv_heads > 0 ? 3 : 0));
    if (layout.kv_heads > 0) CHECK(pass.state.kv.k.row_size() == layout.kv_heads * layout.key_dim);
    if (layout.kv_heads > 0) CHECK(pass.state.kv.v.row_size() == layout.kv_heads * layout.value_dim);
    CHECK(pass.state.kv.index.row_size() == layout.index_dim);
  });
}

TEST_CASE("contract: a replay that stops at the state brings it to the same value") {
  for_each_mixer([](MixerRig& rig, const Config&) {
    const std::vector<float> x = rig.some_input(41);
    const Pass full = rig.read(x);
    for (const Way& way : {Way{{41, 64}}, Way{{41, 7}}, steps(41)}) {
      const Pass replay = rig.read(x, way, /*state_only=*/true);
      CHECK(difference(values_of(replay.state.everything), values_of(full.state.everything)) <= kStateTolerance);
      CHECK(std::all_of(replay.y.begin(), replay.y.end(), [](float value) { return std::isnan(value); }));
    }
  });
}

TEST_CASE("contract: a token changes nothing before it") {
  for_each_mixer([](MixerRig& rig, const Config&) {
    const std::int64_t T = 40, last = 29;
    std::vector<float> x = rig.some_input(T);
    const Pass before = rig.read(x);
    for (std::int64_t i = last * rig.input_width(); i < T * rig.input_width(); ++i) x[static_cast<std::size_t>(i)] *= -1;
    const Pass after = rig.read(x);
    const auto earlier = static_cast<std::size_t>(last * rig.hidden());
    CHECK(difference(std::span(after.y).first(earlier), std::span(before.y).first(earlier)) < kTolerance);
    CHECK(difference(std::span(after.y).subspan(earlier), std::span(before.y).subspan(earlier)) > 1e-2);
  });
}

TEST_CASE("contract: a token leaves the states that it was not routed to bitwise as they were") {
  std::int64_t routed = 0;
  for_each_mixer([&](MixerRig& rig, const Config& config) {
    if (rig.layout.partitions == 0) return;
    ++routed;
    const std::int64_t T = 30, W = config.has("topk") ? config.integer("topk") : config.integer("num_writer", 2);
    const std::vector<float> x = rig.some_input(T + 1);
    for (std::int64_t chunk_size : {0, 64}) {
      const Pass before = rig.read(std::span(x).first(static_cast<std::size_t>(T * rig.input_width())), {{T, 64}});
      const Pass after = rig.read(x, {{T, 64}, {1, chunk_size}});
      const Channel& selected = after["partition_selected"];
      std::set<std::int64_t> written;
      if (rig.layout.has_shared_slot) written.insert(0);
      for (std::int64_t w = 0; w < W; ++w) {
        written.insert(selected.integers[static_cast<std::size_t>(T * selected.shape.row_size() + w)] +
                       (rig.layout.has_shared_slot ? 1 : 0));
      }
      for (std::int64_t slot = 0; slot < rig.layout.memory[0].shape[0]; ++slot) {
        INFO("slot " << slot << ", chunk size " << chunk_size);
        const bool same = values_of(before.state.memory[0].slice(slot, 1)) == values_of(after.state.memory[0].slice(slot, 1));
        CHECK(same == !written.contains(slot));
      }
    }
  });
  CHECK(routed >= 15);
}

}  // namespace statescope::test::contract_test
