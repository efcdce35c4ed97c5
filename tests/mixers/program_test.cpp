// What a mixer describes is what runs after all passes: the same numbers, to the bit.
#include "kernels/passes/passes.h"
#include "kernels/program/run.h"
#include "tests/mixers/mixer_rig.h"

namespace statescope::test::program_test {
namespace {

/// Reads x as described, operation by operation, without any pass.
Pass read_as_described(MixerRig& rig, const program::Program& program, std::span<const float> x, const Way& way) {
  const auto backend = make_cpu_backend(1);
  Workspace workspace(*backend);
  const auto T = static_cast<std::int64_t>(x.size()) / rig.input_width();
  Pass pass{std::vector<float>(static_cast<std::size_t>(T * rig.hidden()), std::nanf("")), rig.start(), {}};
  Channels channels;
  std::int64_t position = 0;
  for (const Piece& piece : way) {
    const Workspace::Mark mark(workspace);
    const std::array<std::int32_t, 2> cu_seqlens{0, static_cast<std::int32_t>(piece.tokens)};
    run(program,
        program::Pass{.backend = *backend,
                      .workspace = workspace,
                      .tokens = piece.tokens,
                      .position = position,
                      .chunk_size = piece.chunk_size,
                      .prompt_length = T,
                      .cu_seqlens = cu_seqlens,
                      .x = ConstTensor(x.data() + position * rig.input_width(), DType::f32, {piece.tokens, rig.input_width()}),
                      .norm = {},
                      .residual = {},
                      .y = Tensor(pass.y.data() + position * rig.hidden(), DType::f32, {piece.tokens, rig.hidden()}),
                      .memory = pass.state.memory,
                      .conv_caches = pass.state.conv_caches,
                      .kv = &pass.state.kv},
        [&](std::string_view name, ConstTensor values) { channels.channel(name, values); });
    position += piece.tokens;
  }
  pass.channels = std::move(channels.by_name);
  return pass;
}

/// Calls `work` for every mixer of every small model.
template <class Work>
void for_each_program(Work work) {
  for (const SmallModel& model : small_models()) {
    const auto checkpoint = random_checkpoint(Config(model.config), 1);
    const Plan plan = plan_model(Config(model.config));
    for (std::size_t layer = 0; layer < plan.layers.size(); ++layer) {
      if (plan.layers[layer].mixer.empty()) continue;
      INFO(model.name << ", layer " << layer);
      MixerRig rig(checkpoint, static_cast<std::int64_t>(layer));
      work(rig, rig.mixer->program());
    }
  }
}

}  // namespace

TEST_CASE("programs: passes change no number, of many tokens and of one, with every channel shown") {
  std::size_t programs = 0;
  for_each_program([&](MixerRig& rig, const program::Program& program) {
    const std::vector<float> x = rig.some_input(19);
    for (const Way& way : {Way{{19, 8}}, steps(19)}) {
      const Pass described = read_as_described(rig, program, x, way), compiled = rig.read(x, way);
      CHECK(described.y == compiled.y);
      CHECK(values_of(described.state.everything) == values_of(compiled.state.everything));
      REQUIRE(described.channels.size() == compiled.channels.size());
      for (const auto& [name, channel] : described.channels) {
        INFO(name);
        CHECK(channel.floats == compiled[name].floats);
        CHECK(channel.integers == compiled[name].integers);
      }
    }
    ++programs;
  });
  CHECK(programs > 20);
}

TEST_CASE("programs: passes change no number where nobody watches, and leave out what nobody needs") {
  for_each_program([&](MixerRig& rig, const program::Program& program) {
    const std::vector<float> x = rig.some_input(19);
    for (const Way& way : {Way{{19, 8}}, steps(19)}) {
      const Pass described = read_as_described(rig, program, x, way), compiled = rig.read_unwatched(x, way);
      CHECK(described.y == compiled.y);
      CHECK(values_of(described.state.everything) == values_of(compiled.state.everything));
    }
    const program::Purpose nobody{.wanted = std::vector<bool>(program.channels.size(), false)};
    const program::Program compiled = program::compiled(program, nobody);
    CHECK(compiled.channels.empty());
    // In a gated convolution and in S4 nothing can be put together or left out.
    const bool is_small = rig.row->name == "gated_convolution" || rig.row->name == "s4";
    const std::size_t at_most = program.operations.size() - (is_small ? 0 : 1);
    CHECK(compiled.operations.size() <= at_most);
  });
}

}  // namespace statescope::test::program_test
