// SSE's switches (spec §4): each changes what it should, and nothing else.
#include "tests/mixers/mixer_rig.h"

namespace statescope::test::sse_test {
namespace {

using Names = std::set<std::string>;

struct Switch {
  const char* type;
  json base, change;
  Names changes;
};

Pass read(const json& config) {
  MixerRig rig{Editable(config)};
  return rig.read(rig.some_input(40));
}

/// Half 0 (shared) or 1 (sparse) of a paired channel [T, 2, …].
std::vector<float> half(const Channel& channel, std::size_t which) {
  std::vector<float> values;
  const auto n = static_cast<std::size_t>(channel.shape.row_size() / 2);
  for (std::int64_t t = 0; t < channel.shape[0]; ++t) {
    const std::span<const float> part = channel.row(t).subspan(which * n, n);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

}  // namespace

TEST_CASE("SSE: every switch changes what it should and nothing else") {
  const json none = json::object(), conv{{"use_short_conv", true}}, two{{"num_writer", 2}, {"num_reader", 2}};
  const json v1 = with(two, {{"sse_formulation", "v1"}}), after_l2{{"sse_gdn_gate", "post_l2"}};
  const Names read{"readout", "y"}, written{"readout", "state", "y"};
  const auto and_also = [](Names names, const Names& more) {
    names.insert(more.begin(), more.end());
    return names;
  };
  const std::vector<Switch> switches{
      {"gla", none, {{"use_q_softmax", true}}, and_also(read, {"q"})},
      {"gla", none, {{"use_k_softmax", false}}, and_also(written, {"k"})},
      {"gla", none, {{"emulq", false}}, read},
      {"gla", none, {{"emulk", false}}, written},
      {"gla", none, {{"num_reader", 2}}, and_also(read, {"partition_selected"})},
      {"gla", none, {{"num_writer", 2}}, and_also(written, {"partition_selected"})},
      {"gla", none, {{"gate_logit_normalizer", 4}}, and_also(written, {"log_decay"})},
      {"gla", none, {{"sse_gdn_gate", "post_l2"}}, {}},
      {"gla", none, {{"allow_neg_eigval", true}}, {}},
      {"gla", none, {{"sse_implementation", "mask"}}, {}},
      {"gla", conv, {{"sparse_branch_after_conv", true}}, and_also(written, {"q", "k"})},
      {"gla", two, {{"sse_formulation", "v1"}}, and_also(written, {"q", "v"})},
      {"gla", v1, {{"v1_joint_softmax", true}}, written},
      {"gla", v1, {{"emulq", false}, {"emulk", false}}, {}},
      {"gdn", none, {{"use_q_softmax", true}}, and_also(read, {"q"})},
      {"gdn", none, {{"use_k_softmax", true}}, and_also(written, {"k"})},
      {"gdn", none, {{"emulq", false}, {"emulk", false}}, {}},
      {"gdn", none, {{"sse_gdn_gate", "post_l2"}}, written},
      {"gdn", after_l2, {{"emulq", false}}, read},
      {"gdn", after_l2, {{"emulk", false}}, written},
      {"gdn", none, {{"allow_neg_eigval", true}}, and_also(written, {"beta"})},
      {"gdn", none, {{"num_reader", 3}}, and_also(read, {"partition_selected"})},
  };
  for (const Switch& s : switches) {
    INFO(s.type << " " << s.base.dump() << " with " << s.change.dump());
    const Editable base(sse_config(s.type, s.base));
    Editable switched(*base.checkpoint());
    MixerRig a(base), b(switched.set(s.change));
    const std::vector<float> x = a.some_input(40);
    CHECK(changed(a.read(x), b.read(x)) == s.changes);
  }
}

TEST_CASE("SSE: the convolution acts on the shared branch, and on the sparse one only if asked") {
  const Editable plain(sse_config("gla", {{"use_short_conv", true}, {"use_k_softmax", false}}));
  Editable both(*plain.checkpoint()), neither(*plain.checkpoint());
  both.set({{"sparse_branch_after_conv", true}});
  neither.set({{"use_short_conv", false}});
  MixerRig a(plain), b(both), c(neither);
  const std::vector<float> x = a.some_input(20);
  const Pass shared_only = a.read(x), with_both = b.read(x), without = c.read(x);
  for (const char* name : {"q", "k"}) {
    CHECK(half(shared_only[name], 0) == half(with_both[name], 0));
    CHECK(difference(half(shared_only[name], 1), half(without[name], 1)) < 1e-6);
    CHECK(difference(half(shared_only[name], 0), half(without[name], 0)) > 1e-2);
    CHECK(difference(half(shared_only[name], 1), half(with_both[name], 1)) > 1e-2);
  }
  CHECK(shared_only["v"].floats == with_both["v"].floats);
}

TEST_CASE("SSE: grouped value heads repeat q, k and the gates of their key head") {
  const Pass pass = read(sse_config("gla", {{"num_v_heads", 4}}));
  for (const char* name : {"q", "k", "log_decay"}) {
    const Channel& channel = pass[name];
    REQUIRE(channel.shape == Shape({40, 2, 4, 16}));
    for (std::size_t head = 0; head < 2 * 4 * 40; head += 2) {
      REQUIRE(std::equal(channel.floats.begin() + static_cast<std::ptrdiff_t>(head * 16),
                         channel.floats.begin() + static_cast<std::ptrdiff_t>(head * 16 + 16),
                         channel.floats.begin() + static_cast<std::ptrdiff_t>(head * 16 + 16)));
    }
  }
  CHECK(pass["v"].shape == Shape({40, 4, 16}));
  CHECK(pass.state.memory[0].shape == Shape({5, 4, 16, 16}));
}

TEST_CASE("SSE: gates are a softmax of the logits, and the chosen are the largest") {
  const Pass pass = read(sse_config("gla", {{"num_sparse_partition", 7}, {"num_writer", 2}, {"num_reader", 3}}));
  for (std::int64_t t = 0; t < 40; ++t) {
    const std::span<const float> e = pass["partition_gate"].row(t), logits = pass["partition_logits"].row(t);
    double sum = 0;
    for (float logit : logits) sum += std::exp(static_cast<double>(logit));
    for (std::size_t n = 0; n < 7; ++n) CHECK(e[n] == Approx(std::exp(static_cast<double>(logits[n])) / sum));
    std::vector<float> sorted(e.begin(), e.end());
    std::sort(sorted.rbegin(), sorted.rend());
    const std::int32_t* chosen = pass["partition_selected"].integers.data() + t * 3;
    for (std::size_t w = 0; w < 3; ++w) CHECK(e[static_cast<std::size_t>(chosen[w])] == sorted[w]);
  }
}

}  // namespace statescope::test::sse_test
