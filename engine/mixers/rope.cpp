#include "engine/mixers/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "engine/config/config_keys.h"
#include "engine/error.h"
#include "engine/mixers/parts.h"

namespace statescope {
namespace {

constexpr std::int64_t kDefaultPositions = 32768;  // of max_position_embeddings in the classes that this is for

bool is_set(const Config& config, std::string_view key) { return config.has(key) && !config.raw()[std::string(key)].empty(); }

/// A "rope_scaling" that says something stands for the whole of "rope_parameters"; either may be nested by kind of layer.
Config settings_of(const Config& config) {
  Config settings = config.object(is_set(config, "rope_scaling") ? "rope_scaling" : "rope_parameters");
  if (settings.raw().contains("full_attention")) {
    for (const std::string& key : settings.keys()) {
      if (!key.ends_with("_attention")) throw Error(fmt::format("config: rope settings have \"{}\" beside \"full_attention\"", key));
    }
    if (!settings.has("full_attention"))
      throw Error("config: rope settings of \"full_attention\" are null: no positions are not supported");
    settings = settings.object("full_attention");
  }
  require_known_rope_keys(settings);
  return settings;
}

/// Which of both says `key`: the settings, or the config beside them. Null is no number there.
const Config& sayer(const Config& settings, const Config& config, std::string_view key) {
  if (settings.has(key)) return settings;
  for (const Config* where : {&settings, &config}) {
    if (where->raw().contains(std::string(key)) && !where->has(key))
      throw Error(fmt::format("config: \"{}\" is null, expected a number", key));
  }
  return config;
}

/// s
double scale_of(const Config& settings, std::optional<double> fallback = {}) {
  const double scale = settings.number("factor", fallback);
  if (!(scale >= 1 && scale <= 1e9)) throw Error(fmt::format("config: rope \"factor\" is {}, expected a number from 1 on", scale));
  return scale;
}

/// o: at the top level, in the settings, or m.
double original_length(const Config& config, const Config& settings) {
  constexpr const char* key = "original_max_position_embeddings";
  const Config& where = config.has(key) ? config : settings;
  return static_cast<double>(where.has(key) ? where.integer(key) : config.integer("max_position_embeddings", kDefaultPositions));
}

double longest_length(const Config& config) { return static_cast<double>(config.integer("max_position_embeddings", kDefaultPositions)); }

/// A number that is absent, null or 0 has its default.
double or_default(const Config& settings, std::string_view key, double fallback) {
  const double value = settings.not_negative(key, 0);
  return value == 0 ? fallback : value;
}

}  // namespace

Rope::Rope(const Config& config, std::int64_t head_dim, double default_part) {
  const Config settings = settings_of(config);
  theta_ = sayer(settings, config, "rope_theta").positive("rope_theta", 10000.0);
  const double part = sayer(settings, config, "partial_rotary_factor").number("partial_rotary_factor", default_part);
  if (!(part >= 0 && part <= 1)) throw Error(fmt::format("config: \"partial_rotary_factor\" is {}, expected 0 to 1", part));
  channels_ = static_cast<std::int64_t>(static_cast<double>(head_dim) * part);
  name_ = settings.text("rope_type", settings.text("type", "default"));
  if (name_ == "mrope") name_ = "default";  // older multi-axis configs
  if (name_ == "proportional") channels_ = head_dim;
  require_pairs(channels_, "head_dim · partial_rotary_factor");
  if (name_ != "default") read_kind(config, settings, part);
}

void Rope::read_kind(const Config& config, const Config& settings, double part) {
  if (channels_ > 2 * Rotation::most_frequencies)
    throw Error(fmt::format("config: {} rotated channels, too many for \"{}\"", channels_, name_));
  kind_ = Kind::listed;
  if (name_ == "linear") {
    // ω_i = θ^{−2i/d} / s
    scale_ = scale_of(settings);
    for (std::int64_t i = 0; i < channels_ / 2; ++i) listed_.push_back(static_cast<float>(plain(i) / scale_));
  } else if (name_ == "dynamic") {
    kind_ = Kind::dynamic;
    scale_ = scale_of(settings);
    trained_ = config.integer("max_position_embeddings", kDefaultPositions);
    if (channels_ == 2) throw Error("config: rope type \"dynamic\" needs more than 2 rotated channels");
  } else if (name_ == "yarn") {
    read_yarn(config, settings);
  } else if (name_ == "llama3") {
    read_llama3(config, settings);
  } else if (name_ == "longrope") {
    read_longrope(config, settings);
  } else if (name_ == "proportional") {
    read_proportional(settings, part);
  } else {
    throw Error(fmt::format(
        "config: rope type {} is not supported; known are default, linear, dynamic, yarn, llama3, longrope, proportional", shown(name_)));
  }
}

/// θ^{−2i/d}
double Rope::plain(std::int64_t i) const { return std::pow(theta_, -2.0 * static_cast<double>(i) / static_cast<double>(channels_)); }

void Rope::read_yarn(const Config& config, const Config& settings) {
  if (!settings.raw().contains("factor")) throw Error("config: rope \"factor\" is missing, or null for the ratio of lengths");
  const double o = original_length(config, settings), d = static_cast<double>(channels_);
  scale_ = scale_of(settings, longest_length(config) / o);
  if (!(theta_ > 1)) throw Error(fmt::format("config: \"rope_theta\" is {}, expected a number greater than 1", theta_));
  // The pair that turns x times within o tokens: d · ln(o / 2πx) / (2 ln θ)
  const auto at = [&](double turns) { return d * std::log(o / (2 * std::numbers::pi * turns)) / (2 * std::log(theta_)); };
  double low = at(or_default(settings, "beta_fast", 32)), high = at(or_default(settings, "beta_slow", 1));
  if (settings.boolean("truncate", true)) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, d - 1);
  if (low == high) high += 0.001;
  // ω_i = r_i θ^{−2i/d} / s + (1 − r_i) θ^{−2i/d},   r_i = clamp((i − lo) / (hi − lo), 0, 1)
  for (std::int64_t i = 0; i < channels_ / 2; ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    listed_.push_back(static_cast<float>(ramp * plain(i) / scale_ + (1 - ramp) * plain(i)));
  }
  // A = g(mscale) / g(mscale_all_dim), or g(1);   g(x) = 1 + 0.1 x ln s
  const auto g = [&](double x) { return 1 + 0.1 * x * std::log(scale_); };
  const double mscale = settings.number("mscale", 0), all_dim = settings.number("mscale_all_dim", 0);
  const double own = mscale != 0 && all_dim != 0 ? g(mscale) / g(all_dim) : g(1);
  factor_ = static_cast<float>(settings.not_negative("attention_factor", own));
  score_factor_ = static_cast<float>(g(all_dim) * g(all_dim));
}

void Rope::read_llama3(const Config& config, const Config& settings) {
  scale_ = scale_of(settings);
  const double o = original_length(config, settings);
  const double low = settings.number("low_freq_factor"), high = settings.number("high_freq_factor");
  if (!(high > low)) throw Error(fmt::format("config: \"high_freq_factor\" is {}, expected more than \"low_freq_factor\" ({})", high, low));
  // ω_i = w_i θ^{−2i/d} + (1 − w_i) θ^{−2i/d} / s,   w_i = clamp((o θ^{−2i/d} / 2π − low) / (high − low), 0, 1)
  for (std::int64_t i = 0; i < channels_ / 2; ++i) {
    const double w = std::clamp((o * plain(i) / (2 * std::numbers::pi) - low) / (high - low), 0.0, 1.0);
    listed_.push_back(static_cast<float>(w * plain(i) + (1 - w) * plain(i) / scale_));
  }
}

void Rope::read_longrope(const Config& config, const Config& settings) {
  kind_ = Kind::longrope;
  const double o = original_length(config, settings), s = settings.has("factor") ? scale_of(settings) : longest_length(config) / o;
  trained_ = static_cast<std::int64_t>(o);
  scale_ = s;
  // A = √(1 + ln s / ln o), of either list
  const double own = s <= 1 ? 1 : std::sqrt(1 + std::log(s) / std::log(o));
  if (!std::isfinite(own)) throw Error(fmt::format("config: \"original_max_position_embeddings\" is {}, too few for longrope", o));
  factor_ = static_cast<float>(settings.not_negative("attention_factor", own));
  listed_ = divided_by_list(settings, "short_factor");
  longer_ = divided_by_list(settings, "long_factor");
}

/// ω_i = θ^{−2i/d} / f_i
std::vector<float> Rope::divided_by_list(const Config& settings, std::string_view key) const {
  const std::vector<double> factors = settings.numbers(key);
  if (std::ssize(factors) != channels_ / 2 || std::ranges::any_of(factors, [](double f) { return !(f > 1e-6 && f < 1e9); }))
    throw Error(fmt::format("config: rope \"{}\" has {} numbers, expected {} that are greater than 0", key, factors.size(), channels_ / 2));
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < channels_ / 2; ++i)
    frequencies.push_back(static_cast<float>(plain(i) / factors[static_cast<std::size_t>(i)]));
  return frequencies;
}

void Rope::read_proportional(const Config& settings, double part) {
  scale_ = scale_of(settings, 1);
  // ω_i = θ^{−2i/h} / s of the first ⌊p h / 2⌋ pairs (i, i + h/2); the others stay as they are
  const auto turning = static_cast<std::int64_t>(part * static_cast<double>(channels_) / 2);
  for (std::int64_t i = 0; i < channels_ / 2; ++i) listed_.push_back(i < turning ? static_cast<float>(plain(i) / scale_) : 0.0F);
}

std::vector<float> Rope::frequencies(std::int64_t length) const {
  if (kind_ == Kind::longrope && length > trained_) return longer_;
  if (kind_ == Kind::listed || kind_ == Kind::longrope) return listed_;
  Rope based = *this;
  if (kind_ == Kind::dynamic) {
    // θ' = θ · (s · max(L, m) / m − (s − 1))^{d / (d − 2)}
    const double m = static_cast<double>(trained_), d = static_cast<double>(channels_);
    based.theta_ = theta_ * std::pow(scale_ * std::max(static_cast<double>(length), m) / m - (scale_ - 1), d / (d - 2));
  }
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < channels_ / 2; ++i) frequencies.push_back(static_cast<float>(based.plain(i)));
  return frequencies;
}

Value Rope::operator()(Program& p, Value x) const {
  if (kind_ == Kind::plain) return p.apply(program::Rope{theta_, channels_}, x);
  // A prompt has the frequencies of its whole length, however it is cut into calls; a token after it those of the context up to itself.
  const auto of_length = [rope = *this](std::int64_t length) { return rope.frequencies(length); };
  return p.apply(program::ListedRope{of_length, kind_ != Kind::listed, factor_}, x);
}

std::string Rope::description() const {
  if (name_ == "default") return "";
  std::string text = fmt::format("positions: {}, factor {:.4g}", name_, scale_);
  if (factor_ != 1) text += fmt::format(", cos and sin times {:.4g}", factor_);
  if (trained_ > 0) text += fmt::format("; the frequencies change beyond {} tokens", trained_);
  return text;
}

}  // namespace statescope
