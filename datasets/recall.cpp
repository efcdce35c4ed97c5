#include "datasets/recall.h"

#include <algorithm>
#include <map>
#include <vector>

#include "datasets/draws.h"
#include "datasets/words.h"

namespace statescope {
namespace {

enum Stream : std::uint32_t { key_stream, value_stream, slot_stream, asked_stream, noise_stream };
constexpr std::uint32_t key_count = 256, value_count = 256, noise_count = 64;

void check(const TaskOptions& options) {
  if (options.filler != "noise" && options.filler != "zero") throw OptionsError("mqar: the filler is noise or zero, not " + options.filler);
  if (options.pairs < 1 || options.pairs > key_count)
    throw OptionsError("mqar: " + std::to_string(options.pairs) + " pairs; there are 1 to " + std::to_string(key_count) + " keys");
  if (options.pairs * 4 > options.length)
    throw OptionsError("mqar: " + std::to_string(options.pairs) + " pairs and their questions need " + std::to_string(options.pairs * 4) +
                       " words; the length is " + std::to_string(options.length));
}

class Recall : public Task {
 public:
  explicit Recall(const TaskOptions& options)
      : options_(options), pairs_(static_cast<std::size_t>(options.pairs)), length_(static_cast<std::size_t>(options.length)) {
    check(options);
  }

  Example example(std::int64_t index) const override {
    const Draws draws(options_.seed, options_.split, static_cast<std::uint64_t>(index));
    const std::vector<std::uint32_t> keys = shuffled(key_count, draws, key_stream);
    std::vector<std::string> words = filler(draws);
    for (std::uint32_t j = 0; j < pairs_; ++j) {
      words[2 * j] = "k" + std::to_string(keys[j]);
      words[2 * j + 1] = "v" + std::to_string(draws.below(value_count, value_stream, j));
    }
    const std::map<std::size_t, std::size_t> asked = asked_pairs(draws);
    for (const auto& [position, pair] : asked) words[position] = words[2 * pair];
    return example_of(index, words, asked);
  }

  std::string unit() const override { return "words"; }

 private:
  std::vector<std::string> filler(const Draws& draws) const {
    std::vector<std::string> words(length_, "n0");
    if (options_.filler == "zero") return words;
    for (std::size_t p = 2 * pairs_; p < length_; ++p)
      words[p] = "n" + std::to_string(draws.below(noise_count, noise_stream, static_cast<std::uint32_t>(p)));
    return words;
  }

  /// Position of a question → its pair. Priority sampling: the smallest of uniform · (i + 1) are slots drawn with weight 1 / (i + 1).
  std::map<std::size_t, std::size_t> asked_pairs(const Draws& draws) const {
    const std::vector<std::uint32_t> slots =
        ordered(length_ / 2 - pairs_, [&](std::uint32_t i) { return std::uint64_t{draws.bits(slot_stream, i)} * (i + 1); });
    const std::vector<std::uint32_t> order = shuffled(pairs_, draws, asked_stream);
    std::map<std::size_t, std::size_t> asked;
    for (std::size_t x = 0; x < pairs_; ++x) asked[2 * pairs_ + 2 * std::size_t{slots[x]}] = order[x];
    return asked;
  }

  Example example_of(std::int64_t index, const std::vector<std::string>& words, const std::map<std::size_t, std::size_t>& asked) const {
    const WordText joined = join(words);
    Example example{.index = index, .length = options_.length, .text = joined.text, .needles = {}, .questions = {}};
    for (std::size_t j = 0; j < pairs_; ++j) example.needles.push_back(joined.range(2 * j, 2));
    for (const auto& [position, pair] : asked)
      example.questions.push_back({.asked = joined.range(position),
                                   .answer = words[2 * pair + 1],
                                   .given = {},
                                   .needles = {pair},
                                   .depth = static_cast<double>(pair) / static_cast<double>(pairs_)});
    return example;
  }

  TaskOptions options_;
  std::size_t pairs_, length_;
};

}  // namespace

std::unique_ptr<const Task> make_recall(const TaskOptions& options) { return std::make_unique<Recall>(options); }

}  // namespace statescope
