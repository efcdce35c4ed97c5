// What the layers that choose attend to (spec §18.2 to §18.4).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/answers/answers.h"
#include "engine/error.h"
#include "engine/mixers/mixer.h"
#include "engine/place_words.h"

namespace statescope {
namespace {

/// Those of one token: `each` numbers of a channel's row, −1 where there are fewer.
void add_token(Choices& all, const float* indices, const float* scores, std::int64_t each) {
  for (std::int64_t i = 0; i < each; ++i) {
    if (indices[i] < 0) continue;
    all.chosen.push_back(static_cast<std::int32_t>(indices[i]));
    if (scores) all.score.push_back(scores[i]);
  }
  all.begin.push_back(std::ssize(all.chosen));
}

/// Of channels [heads, S], or [S] where all heads attend to the same.
Choices of_channels(const ChannelRows& selected, const ChannelRows& scores, const ChoicesQuestion& question, std::int64_t group,
                    std::int64_t size) {
  const bool by_head = selected.shape.size() == 2;
  const std::int64_t heads = by_head ? selected.shape[0] : 1, each = selected.shape.back();
  Choices all{.heads = by_head ? heads * group : 1, .size = size, .begin = {0}, .chosen = {}, .score = {}};
  all.head = by_head ? question.head : 0;
  for (std::int64_t t = question.from; t < question.to; ++t) {
    const auto row = static_cast<std::size_t>((t * heads + all.head / group) * each);
    add_token(all, selected.values.data() + row, scores.values.data() + row, each);
  }
  return all;
}

/// The chosen past blocks and the token's own; behind the prompt every block (spec §18.4).
Choices of_moba(const ChannelRows& selected, const ChoicesQuestion& question, std::int64_t size, std::int64_t prompt) {
  const std::int64_t heads = selected.shape[0], each = selected.shape[1];
  Choices all{.heads = heads, .head = question.head, .size = size, .begin = {0}, .chosen = {}, .score = {}};
  for (std::int64_t t = question.from; t < question.to; ++t) {
    std::vector<float> blocks;
    if (t >= prompt) {
      for (std::int64_t block = 0; block < t / size; ++block) blocks.push_back(static_cast<float>(block));
    } else {
      const auto row = selected.values.begin() + (t * heads + all.head) * each;
      blocks.assign(row, row + each);
      std::ranges::sort(blocks);
    }
    blocks.push_back(static_cast<float>(t / size));
    add_token(all, blocks.data(), nullptr, std::ssize(blocks));
  }
  return all;
}

}  // namespace

Choices answer(const ChoicesQuestion& question, Evidence& evidence) {
  if (question.from < 0 || question.to > evidence.tokens() || question.to <= question.from || question.to - question.from > 512)
    throw Error(fmt::format("no window of tokens {} to {}", question.from, question.to));
  const LayerInfo& layer = evidence.layer(question.layer);
  if (layer.memory != "softmax attention") return {};
  check_index("head", question.head, layer.attention_heads);
  const Config& config = evidence.model().plan().layers[static_cast<std::size_t>(question.layer)].config;
  if (const ChannelRows* tokens = evidence.channel(question.layer, "dsa_selected"))
    return of_channels(*tokens, *evidence.channel(question.layer, "dsa_scores"), question, 1, 1);
  if (const ChannelRows* blocks = evidence.channel(question.layer, "nsa_selected")) {
    const std::int64_t heads = evidence.channel(question.layer, "nsa_gates")->shape[0];
    return of_channels(*blocks, *evidence.channel(question.layer, "nsa_importance"), question, heads / blocks->shape[0],
                       config.integer("block_size"));
  }
  if (const ChannelRows* blocks = evidence.channel(question.layer, "moba_selected"))
    return of_moba(*blocks, question, config.integer("moba_chunk_size", 0, 0), evidence.info().prompt_length);
  return {};
}

}  // namespace statescope
