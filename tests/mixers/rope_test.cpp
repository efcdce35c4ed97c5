// Rotary positions of every kind: the frequencies that the reference read from the same settings, what is refused, and which of them a
// token has.
#include "engine/mixers/rope.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/error.h"
#include "kernels/program/run.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"

namespace statescope::test::rope_test {
namespace {

using nlohmann::json;

constexpr std::int64_t kHeadDim = 32;

json yarn(const json& changes = json::object()) {
  json settings{{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}, {"partial_rotary_factor", 0.5}};
  settings.update(changes);
  return settings;
}

Rope rope_of(const json& config) { return Rope(Config(config), kHeadDim, kQwenRotatedPart); }
Rope rope_with(const json& settings) { return rope_of({{"rope_parameters", settings}}); }

std::string complaint(const json& config) {
  try {
    rope_of(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("rope: frequencies and factor are those of the reference, in every spelling") {
  const json cases = json::parse(std::ifstream(from_source("tests/golden/rope/frequencies.json")));
  REQUIRE(cases.size() == 18);
  for (const auto& [name, one] : cases.items()) {
    INFO(name);
    const Config config{json(one.at("config"))};
    const Rope rope(config, config.integer("head_dim"), kQwenRotatedPart);
    CHECK(relative_error(rope.frequencies(96), one["inv_freq"].get<std::vector<float>>()) < 1e-6);
    CHECK(rope.factor() == Approx(one["attention_factor"].get<float>()).epsilon(1e-6));
    if (one.contains("inv_freq_t101")) CHECK(relative_error(rope.frequencies(101), one["inv_freq_t101"].get<std::vector<float>>()) < 1e-6);
    CHECK(rope.description().find(name == "rope_dynamic_switch" ? "beyond 98 tokens" : "positions") != std::string::npos);
  }
}

TEST_CASE("rope: settings that no kind can have are refused by key") {
  const json lists{{"rope_type", "longrope"}, {"original_max_position_embeddings", 64}, {"short_factor", {1, 1, 1, 1}}};
  const auto with_settings = [](json settings, const json& changes) {
    settings.update(changes);
    return json{{"rope_parameters", settings}};
  };
  CHECK(complaint({{"rope_parameters", yarn()}}) == "none");
  for (const auto& [config, says] : std::vector<std::pair<json, std::string>>{
           {{{"rope_parameters", yarn({{"rope_type", "ntk-by-parts"}})}}, "ntk-by-parts"},
           {{{"rope_parameters", yarn({{"rope_type", "su"}})}}, "su"},
           {{{"rope_parameters", yarn({{"factor", 0.5}})}}, "factor"},
           {{{"rope_parameters", {{"rope_type", "yarn"}}}}, "factor"},
           {{{"rope_parameters", {{"rope_type", "linear"}}}}, "factor"},
           {{{"rope_parameters", yarn({{"rope_theta", 1.0}})}}, "rope_theta"},
           {{{"rope_parameters", yarn({{"rope_theta", nullptr}})}}, "rope_theta"},
           {{{"rope_parameters", yarn({{"partial_rotary_factor", 0.1}})}}, "pairs"},
           {{{"rope_parameters", yarn({{"beta_medium", 3}})}}, "beta_medium"},
           {{{"rope_scaling", {{"type", "llama3"}, {"factor", 2}}}}, "freq_factor"},
           {{{"rope_scaling", {{"type", "llama3"}, {"factor", 2}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}}}, "high_freq_factor"},
           {with_settings(lists, {{"long_factor", {1, 1, 1}}}), "long_factor"},
           {with_settings(lists, {{"long_factor", {1, 1, 0, 1}}}), "long_factor"},
           {with_settings(lists, json::object()), "long_factor"},
           {{{"rope_parameters", {{"full_attention", nullptr}}}}, "full_attention"},
           {{{"rope_parameters", {{"full_attention", yarn()}, {"factor", 2}}}}, "factor"},
           {{{"rope_theta", nullptr}}, "rope_theta"},
           {{{"rope_scaling", "yarn"}}, "rope_scaling"},
       }) {
    INFO(config.dump());
    CHECK(complaint(config).find(says) != std::string::npos);
  }
}

TEST_CASE("rope: every number of a kind's settings counts") {
  const json llama3{{"rope_type", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"rope_theta", 500.0},
                    {"partial_rotary_factor", 0.5},
                    {"original_max_position_embeddings", 64}};
  const json longrope{{"rope_type", "longrope"},
                      {"attention_factor", 1.5},
                      {"rope_theta", 500.0},
                      {"short_factor", {1, 2}},
                      {"long_factor", {3, 4}},
                      {"partial_rotary_factor", 0.125},
                      {"original_max_position_embeddings", 64}};
  const json full_yarn =
      yarn({{"rope_theta", 500.0}, {"beta_fast", 8.0}, {"beta_slow", 0.5}, {"mscale", 2.0}, {"mscale_all_dim", 0.5}, {"truncate", false}});
  const json dynamic{{"rope_type", "dynamic"}, {"factor", 2.0}, {"rope_theta", 500.0}, {"partial_rotary_factor", 0.5}};
  for (const json& settings : {llama3, longrope, full_yarn, yarn({{"attention_factor", 1.2}, {"truncate", false}}), dynamic}) {
    const auto told = [](const json& of) {
      const Rope rope = rope_of({{"rope_parameters", of}, {"max_position_embeddings", 128}});
      return std::tuple(rope.frequencies(60), rope.frequencies(70), rope.frequencies(200), rope.factor());
    };
    for (const auto& [key, value] : settings.items()) {
      if (!value.is_number() && !value.is_boolean()) continue;
      json other = settings;
      other[key] = value.is_boolean()          ? json(!value.get<bool>())
                   : value.is_number_integer() ? json(value.get<int>() + 13)
                                               : json(value.get<double>() * 1.5);
      INFO(settings.dump() << " with another " << key);
      if (key == "partial_rotary_factor" && settings.contains("long_factor")) continue;  // refused: the lists have another length
      CHECK(told(other) != told(settings));
    }
  }
}

TEST_CASE("rope: which settings count") {
  const auto frequencies = [](const json& config) { return rope_of(config).frequencies(8); };
  const json plain{{"rope_parameters", {{"rope_theta", 500.0}, {"partial_rotary_factor", 0.5}}}};
  CHECK(frequencies({{"rope_theta", 500.0}, {"partial_rotary_factor", 0.5}}) == frequencies(plain));
  CHECK(frequencies({{"rope_theta", 7.0}, {"rope_parameters", plain["rope_parameters"]}}) == frequencies(plain));
  CHECK(frequencies({{"rope_parameters", {{"full_attention", plain["rope_parameters"]}, {"sliding_attention", yarn()}}}}) ==
        frequencies(plain));
  // An empty rope_scaling says nothing; another one drops rope_parameters with its theta.
  CHECK(frequencies({{"rope_scaling", json::object()}, {"rope_parameters", plain["rope_parameters"]}}) == frequencies(plain));
  CHECK(frequencies({{"rope_scaling", {{"type", "default"}}}, {"rope_parameters", plain["rope_parameters"]}}) ==
        frequencies(json::object()));
  CHECK(rope_with(yarn({{"type", "linear"}})).frequencies(8) == rope_with(yarn()).frequencies(8));
  CHECK(rope_with(yarn({{"mscale", 2.0}})).factor() == rope_with(yarn()).factor());  // alone it has no effect
  CHECK(rope_with(yarn({{"attention_factor", 0}})).factor() == 0);
}

TEST_CASE("rope: a prompt has the frequencies of its length however it is cut, a token after it those of its own context") {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  Workspace workspace(*backend);
  const json dynamic{{"rope_type", "dynamic"}, {"factor", 3.0}, {"partial_rotary_factor", 0.5}};
  const Rope rope = rope_of({{"rope_parameters", dynamic}, {"max_position_embeddings", 6}});
  Program turning(kHeadDim);
  turning.result = rope(turning, turning.with_axes(turning.x(), {1, kHeadDim}));
  const auto turned = [&](std::int64_t first, std::int64_t tokens) {
    const std::vector<float> ones(static_cast<std::size_t>(tokens * kHeadDim), 1.0F);
    std::vector<float> y(ones.size(), NAN);
    program::run(turning,
                 {.backend = *backend,
                  .workspace = workspace,
                  .tokens = tokens,
                  .position = first,
                  .prompt_length = 8,
                  .x = ConstTensor(ones.data(), DType::f32, {tokens, kHeadDim}),
                  .y = Tensor(y.data(), DType::f32, {tokens, 1, kHeadDim})},
                 [](std::string_view, ConstTensor) {});
    return y;
  };
  const std::vector<float> whole = turned(0, 12);
  std::vector<float> parts = turned(0, 3);
  for (const auto& [first, tokens] : std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 4}, {7, 2}, {9, 1}, {10, 2}}) {
    const std::vector<float> next = turned(first, tokens);
    parts.insert(parts.end(), next.begin(), next.end());
  }
  CHECK(whole == parts);
  // Channel 1, the second pair's first: cos(t ω) − sin(t ω), ω that of 8 tokens within the prompt, of t + 1 after it.
  for (const std::int64_t t : {2, 7, 8, 11}) {
    const double angle = static_cast<double>(t) * rope.frequencies(t < 8 ? 8 : t + 1)[1];
    CHECK(whole[static_cast<std::size_t>(t * kHeadDim + 1)] == Approx(std::cos(angle) - std::sin(angle)).margin(1e-5));
  }
  CHECK(rope.frequencies(8) != rope.frequencies(9));
  CHECK(rope.frequencies(5) == rope.frequencies(6));
}

}  // namespace statescope::test::rope_test
