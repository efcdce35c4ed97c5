#include "engine/mixers/attention/attention_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostBlocks = std::int64_t{1} << 24;  // that a list may name

/// The numbers of a list, each from `low` on. Throws Error.
std::vector<std::int32_t> listed_numbers(const Config& pattern, std::string_view key, std::int64_t low) {
  std::vector<std::int32_t> numbers;
  for (const std::int64_t number : pattern.integers(key)) {
    if (number < low || number > kMostBlocks) throw Error(fmt::format("config: \"{}\" holds {}, expected {} or more", key, number, low));
    numbers.push_back(static_cast<std::int32_t>(number));
  }
  return numbers;
}

/// Throws Error for a key that belongs to another type.
void require_keys_of(const Config& pattern, std::string_view type, std::initializer_list<std::string_view> known) {
  for (const std::string& key : pattern.keys()) {
    if (key != "type" && std::ranges::find(known, key) == known.end())
      throw Error(fmt::format("config: \"{}\" is {}, a key that the type {} does not have", key, shown(pattern.raw()[key]), type));
  }
}

/// One list of lists as long as is wanted. Throws Error.
const nlohmann::json& lists(const nlohmann::json& all, std::int64_t index, std::int64_t count, std::string_view what) {
  if (!all.is_array() || std::ssize(all) != count)
    throw Error(fmt::format("config: \"random_blocks\" must hold a list for each of {} {}", count, what));
  return all[static_cast<std::size_t>(index)];
}

}  // namespace

std::optional<AttentionPattern> AttentionPattern::of(const Config& config, std::int64_t layer, std::int64_t heads) {
  if (!config.has("attn_pattern")) return std::nullopt;
  if (config.has("window_size")) throw Error("config: \"window_size\" stands beside \"attn_pattern\", expected one of the two");
  const Config pattern = config.object("attn_pattern");
  AttentionPattern result;
  try {
    const std::string type = pattern.text("type", {}, {"longformer", "bigbird", "blocksparse"});
    if (type == "longformer") result.read_longformer(pattern, heads);
    if (type == "bigbird") result.read_bigbird(pattern, layer, config.integer("num_hidden_layers", 24), heads);
    if (type == "blocksparse") result.read_blocksparse(pattern, heads);
  } catch (const Error& error) {
    throw Error(fmt::format("{}, in \"attn_pattern\"", error.what()));
  }
  return result;
}

/// (t − s) mod dilation = 0 and (t − s) / dilation < window, or either token is global
void AttentionPattern::read_longformer(const Config& pattern, std::int64_t heads) {
  require_keys_of(pattern, "longformer", {"window", "dilation", "global_tokens"});
  rule_.block_size = 1;
  rule_.window = pattern.integer("window");
  dilation_ = listed_numbers(pattern, "dilation", 1);
  if (!dilation_.empty() && std::ssize(dilation_) != heads)
    throw Error(fmt::format("config: \"dilation\" has {} numbers, expected one for each of {} heads", dilation_.size(), heads));
  global_ = listed_numbers(pattern, "global_tokens", 0);
  while (rule_.leading < std::ssize(global_) && global_[static_cast<std::size_t>(rule_.leading)] == rule_.leading) ++rule_.leading;
  global_.erase(global_.begin(), global_.begin() + rule_.leading);
}

/// a − b < window_blocks, or either block is one of the first global_blocks, or b is in the list of a
void AttentionPattern::read_bigbird(const Config& pattern, std::int64_t layer, std::int64_t layers, std::int64_t heads) {
  require_keys_of(pattern, "bigbird", {"block_size", "window_blocks", "global_blocks", "random_blocks"});
  rule_.block_size = pattern.integer("block_size");
  rule_.window = pattern.integer("window_blocks");
  rule_.leading = pattern.integer("global_blocks", 0, 0, 4096);
  if (!pattern.has("random_blocks")) return;
  const nlohmann::json& of_heads = lists(pattern.raw()["random_blocks"], layer, layers, "layers");
  std::vector<std::vector<std::vector<std::int32_t>>> all;
  for (std::int64_t h = 0; h < heads; ++h) {
    const nlohmann::json& of_blocks = lists(of_heads, h, heads, "heads");
    if (!of_blocks.is_array()) throw Error("config: \"random_blocks\" of a head must hold a list for each block of queries");
    auto& of_head = all.emplace_back();
    for (const nlohmann::json& list : of_blocks) {
      const Config one(nlohmann::json{{"random_blocks", list}});
      of_head.push_back(listed_numbers(one, "random_blocks", 0));
      rule_.listed_width = std::max<std::int64_t>(rule_.listed_width, std::ssize(of_head.back()));
    }
    if (of_head.size() != all[0].size()) throw Error("config: \"random_blocks\" lists more blocks for one head than for another");
  }
  if (heads * std::ssize(all[0]) > kMostBlocks / std::max<std::int64_t>(rule_.listed_width, 1))
    throw Error("config: \"random_blocks\" has one list that is too long for so many blocks");
  rule_.listed_rows = std::ssize(all[0]);
  for (const auto& of_blocks : all) {
    for (std::vector<std::int32_t> list : of_blocks) {
      list.resize(static_cast<std::size_t>(rule_.listed_width), -1);
      listed_.insert(listed_.end(), list.begin(), list.end());
    }
  }
}

/// a − b < local_blocks, or (b + h · step + 1) mod vert_stride = 0, step = max(1, ⌊vert_stride / H⌋), 0 for equal heads
void AttentionPattern::read_blocksparse(const Config& pattern, std::int64_t heads) {
  require_keys_of(pattern, "blocksparse", {"block_size", "local_blocks", "vert_stride", "homo_head"});
  rule_.block_size = pattern.integer("block_size");
  rule_.window = pattern.integer("local_blocks");
  rule_.stride = pattern.integer("vert_stride");
  rule_.head_step = pattern.boolean("homo_head", false) ? 0 : std::max<std::int64_t>(1, rule_.stride / heads);
}

FixedPattern AttentionPattern::with_lists(const std::int32_t* dilation, const std::int32_t* global, const std::int32_t* listed) const {
  FixedPattern rule = rule_;
  rule.globals = std::ssize(global_);
  if (!dilation_.empty()) rule.dilation = dilation;
  if (!global_.empty()) rule.global = global;
  if (!listed_.empty()) rule.listed = listed;
  return rule;
}

FixedPattern AttentionPattern::on_host() const { return with_lists(dilation_.data(), global_.data(), listed_.data()); }

FixedPattern AttentionPattern::on_device(const WeightScope& weights) const {
  const auto there = [&](const std::vector<std::int32_t>& list) {
    return list.empty() ? nullptr : static_cast<const std::int32_t*>(weights.indices(list).data);
  };
  return with_lists(there(dilation_), there(global_), there(listed_));
}

}  // namespace statescope
