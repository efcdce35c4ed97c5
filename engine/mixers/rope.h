// Rotary positions as Transformers' configs describe them: which settings count, and the frequencies of every kind (spec §19.15).
#pragma once

#include <string>
#include <vector>

#include "engine/mixers/parts.h"

namespace statescope {

/// Of a head's channels, in Qwen3-Next and Qwen3.5, where the config does not say.
constexpr double kQwenRotatedPart = 0.25;

class Rope {
 public:
  Rope() = default;
  /// From the text config's "rope_scaling", "rope_parameters" and what stands beside them, for heads of `head_dim` channels, of which the
  /// part `default_part` turns where the config does not say. Throws Error: which key, and what it may be.
  Rope(const Config& config, std::int64_t head_dim, double default_part);

  /// x [T, H, head_dim], turned
  Value operator()(Program& p, Value x) const;
  /// "" for the default kind, else kind and numbers for people.
  std::string description() const;
  /// What latent attention multiplies its scores with besides (spec §18.1): g(mscale_all_dim)² of yarn, else 1.
  float score_factor() const { return score_factor_; }

  // The two below tell the tests what the equations give.
  /// ω [n] of a context of `length` tokens.
  std::vector<float> frequencies(std::int64_t length) const;
  /// A, which multiplies cos and sin.
  float factor() const { return factor_; }

 private:
  enum class Kind { plain, listed, dynamic, longrope };

  void read_kind(const Config& config, const Config& settings, double part);
  void read_yarn(const Config& config, const Config& settings);
  void read_llama3(const Config& config, const Config& settings);
  void read_longrope(const Config& config, const Config& settings);
  void read_proportional(const Config& settings, double part);
  std::vector<float> divided_by_list(const Config& settings, std::string_view key) const;
  double plain(std::int64_t i) const;

  std::string name_ = "default";
  Kind kind_ = Kind::plain;
  double theta_ = 10000, scale_ = 1;     // θ, s
  std::int64_t channels_ = 0;            // d, those that turn
  std::int64_t trained_ = 0;             // dynamic: m, longrope: o: beyond so many tokens frequencies change
  float factor_ = 1, score_factor_ = 1;  // A; g(mscale_all_dim)²
  std::vector<float> listed_, longer_;   // ω; longrope: up to o tokens, and of more
};

}  // namespace statescope
